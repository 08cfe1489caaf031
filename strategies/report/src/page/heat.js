// Panels 3 and 8: PEs over steps with a slider, and PEs over time.
/** The chosen column of the panel Steps; none until the panel is drawn. */
let chosen = null;
/** Whether colours are loads over the average of their step. */
let isRelative = false;
const rowLabels = (heat) => middles(heat.rows, (row) => row * heat.pes_per_row);
/**
 * A picture of a heat map, `whole` pixels wide with its labels, on the scale from `low` to `top`. `columns` are labels.
 * `marks()` are frames: the column where each begins and ends, and its dashes; a triangle points at one without width.
 * Values of a column are multiples of `unitOf` it.
 */
function heatPicture(heat, [low, top], whole, label, say, columns, marks, unitOf = () => 1) {
  const n = heat.columns.length, wide = whole - margin, high = Math.max(120, Math.min(420, 14 * heat.rows));
  const paint = (c, r) => colour("cividis", (valueOf(heat, c, r) / unitOf(heat, c) - low) / (top - low));
  const draw = (context) => {
    paintCells(context, wide, high, n, heat.rows, paint);
    context.lineWidth = 2;
    context.strokeStyle = context.fillStyle = variable("--frame");
    for (const [begin, end, dashes] of marks()) {
      const x = begin * wide / n;
      context.setLineDash(dashes);
      if (begin < end) context.strokeRect(x + 1, 1, Math.max(0, (end - begin) * wide / n - 2), high - 2);
      else context.fill(new Path2D(`M ${x - 4} -5 h 8 L ${x} 0 Z`));
    }
  };
  return plot(label, [head, wide, high], [n, heat.rows], [columns, rowLabels(heat)], draw, say);
}
function rowName(heat, row) {
  const first = row * heat.pes_per_row;
  return pesName(first, Math.min(peCount() || Infinity, first + heat.pes_per_row) - 1);
}
const valueOf = (heat, c, r) => heat.cells[c * heat.rows + r] / 1000 * heat.scales[c];
/** A load, as exactly as the thousandths of the largest load of its column are. */
function cellText(heat, c, r) {
  const thousandths = heat.cells[c * heat.rows + r];
  if (!thousandths && heat.scales[c]) return `less than ${loadText(heat.scales[c] / 1000)}`;
  return (thousandths < 50 && heat.scales[c] ? "about " : "") + loadText(valueOf(heat, c, r));
}
const columnOf = (heat, c) => Array.from({ length: heat.rows }, (_, r) => valueOf(heat, c, r));
const axisOf = (heat, from, to) =>
  axis(`Across: ${from} to ${to}. Down: ${rowName(heat, 0)} to ${rowName(heat, heat.rows - 1)}.`);
/** Round times from `begin` to `end`, about eight, as places and texts with the digits in which they differ. */
function timeLabels(begin, end) {
  const step = roundStep((end - begin) / 8), first = Math.ceil(begin / step);
  const [unit, size] = [["s", 1], ["ms", 1e-3], ["us", 1e-6]].find(([, size]) => end >= size) || ["ns", 1e-9];
  const places = Math.min(9, Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9)));
  const times = Array.from({ length: Math.floor(end / step) - first + 1 }, (_, i) => (first + i) * step);
  return times.map((time) => [(time - begin) / (end - begin), `${(time / size).toFixed(places)} ${unit}`]);
}
/** The step of a column, or the steps that share it. */
function stepsOf({ columns, steps, steps_per_column: shared }, c) {
  if (Math.min(shared, steps - c * shared) === 1) return String(columns[c]);
  return c + 1 < columns.length ? `${columns[c]} to ${columns[c + 1] - 1}` : `${columns[c]} and following`;
}
/** Bars of the loads of all rows at the chosen step. */
function stepPicture(heat, top, name, ink) {
  const wide = 560 - margin, high = 90, labels = [rowLabels(heat), [[0, loadText(top)], [1, "0"]]];
  const draw = (context) => {
    const seen = variable(ink), y = (load) => high * (1 - load / top);
    const bars = visibleBars(columnOf(heat, chosen), wide, (load) => load);
    bars.forEach(({ item: load, x, width }) => fill(context, seen, [x, y(load), width, high - y(load)]));
  };
  const say = (row) => `${rowName(heat, row)}: ${cellText(heat, chosen, row)}`;
  return plot(`Load of PEs at the chosen step, ${name}`, [head, wide, high], [heat.rows, 1], labels, draw, say);
}
/** The largest loads before steps: of all steps, if they are few. */
function loadsOfSteps(heat) {
  const last = heat.columns.length - 1, ratio = (c) => `max/avg ${ratioText(heat.max_over_avg[c])}`;
  const [first, final] = [0, last].map((c) => `${loadText(heat.scales[c])} (${ratio(c)}) before the`);
  if (last >= 8) return `Largest load: ${first} first step, ${final} last, at most ${loadText(heat.largest)}.`;
  const heaviest = (c) => heaviestOf(columnOf(heat, c), (row) => rowName(heat, row));
  const listed = heat.columns.map((_, c) => `${loadText(heat.scales[c])} (${heaviest(c)}, ${ratio(c)})`);
  return `Largest load before each step: ${listed.join("; ")}.`;
}
const steps = {
  id: "steps", title: "Steps",
  exists: () => Boolean(data.steps),
  lacks: "It needs several load-balancing steps.",
  draw() {
    const heats = [{ heat: data.steps, when: "before", name: "before each step", ink: "--before" }];
    const hasOthers = data.placements.length > 0;
    if (after()?.steps) {
      const name = `after each step (${after().name}), computed from the loads before it`;
      heats.push({ heat: after().steps, when: "after", name, ink: "--after" });
    }
    const top = Math.max(...heats.map(({ heat }) => heat.largest)) || 1, last = data.steps.columns.length - 1;
    // From the least load, so that differences can be seen, but small ones do not look large.
    const all = heats.flatMap(({ heat }) => heat.columns.map((_, c) => [heat, c]));
    // Columns of several steps have no average.
    const hasAverages = heats.every(({ heat }) => heat.steps_per_column === 1);
    const showsRelative = isRelative && hasAverages;
    const unitOf = (heat, c) => showsRelative && heat.scales[c] / heat.max_over_avg[c] || 1;
    const of = (value) => all.map(([heat, c]) => value(heat, c) / unitOf(heat, c));
    const most = Math.max(...of((heat, c) => heat.scales[c])) || 1;
    const low = Math.min(0.9 * most, ...of((heat, c) => Math.min(...columnOf(heat, c))));
    const text = showsRelative ? ratioText : loadText, ofWhat = showsRelative ? " over the average" : "";
    const onchange = (event) => {
      isRelative = event.target.checked;
      redraw();
    };
    const toggle = make("input", { type: "checkbox", "aria-label": "Relative", checked: isRelative, onchange });
    // The step of the other panels, or the column that it shares with others.
    const home = Math.max(0, data.steps.columns.findLastIndex((step) => step <= data.step));
    chosen = Math.min(chosen ?? home, last);
    const words = make("output", { "aria-live": "polite" });
    const describe = () => {
      const largestOf = heats.map(({ heat, when }) => {
        const ratio = `max/avg ${heat.steps_per_column > 1 ? "at most " : ""}${ratioText(heat.max_over_avg[chosen])}`;
        return `${loadText(heat.scales[chosen])} (${ratio})${heats.length > 1 ? ` ${when}` : ""}`;
      });
      const isHome = chosen === home && hasOthers ? " (the step of the other panels)" : "";
      words.textContent = ` ${stepsOf(data.steps, chosen)}: largest load ${largestOf.join(", ")}${isHome}`;
    };
    const marks = () => [...(hasOthers ? [[home, home + 1, [5, 4]]] : []), [chosen, chosen + 1, []]];
    // Only the pictures are painted again, because a slider that is replaced would not follow the mouse.
    const oninput = (event) => {
      chosen = Number(event.target.value);
      describe();
      slider.closest("section").querySelectorAll("canvas").forEach((canvas) => canvas.paint());
    };
    const slider = make("input", { type: "range", min: 0, max: last, value: chosen, "aria-label": "Step", oninput });
    describe();
    const pictures = heats.map(({ heat, name, ink }) => {
      const say = (c, r) => `Step ${stepsOf(heat, c)}, ${rowName(heat, r)}: ${cellText(heat, c, r)}`;
      const label = `Load of PEs at ${countText(heat.steps, "step")}, ${name}`;
      const columns = middles(heat.columns.length, (c) => heat.columns[c]);
      return captioned(name, heatPicture(heat, [low, most], 560, label, say, columns, marks, unitOf),
        axisOf(heat, `step ${heat.columns[0]}`, heat.columns.at(-1)),
        heading("loads of PEs at the chosen step"), stepPicture(heat, top, name, ink));
    });
    const columns = heats.flatMap(({ heat, when }) => [
      [`largest load ${when}`, (c) => heat.scales[c], loadText],
      [`max/avg ${when}`, (c) => heat.max_over_avg[c], ratioText],
    ]);
    const step = ["step", (c) => data.steps.columns[c], (_, c) => stepsOf(data.steps, c)];
    const dashed = hasOthers ? " Dashed frame: the step of the other panels, if it is another one." : "";
    const computed = heats.slice(1).map(({ heat }) =>
      ` Computed for after the last step, from the loads before it: max/avg ${ratioText(heat.max_over_avg.at(-1))}.`);
    return [
      loadsOfSteps(data.steps) + computed.join(""),
      make("label", { class: "step" }, "Step ", slider, words),
      hasAverages && make("label", {}, toggle, " colours relative to the average load of each step"),
      legend("cividis", text(low), text(most), `load of a PE${ofWhat}`),
      make("div", { class: "pair" }, ...pictures),
      note(`Frame: the chosen step.${dashed}`),
      asText("Steps as a table", () => table("steps", [step, ...columns], [...data.steps.columns.keys()])),
    ];
  },
};
/** The busy part of the time on average, and the parts of the panel; the name is empty if there is one timeline. */
function timelineParts(heat, name, steps) {
  const n = heat.columns.length, begin = heat.columns[0], width = heat.columns[1] - begin;
  const end = heat.columns.at(-1) + width, named = name && `, ${name}`;
  const part = (c, r) => valueOf(heat, c, r);
  const say = (c, r) => `${secondsText(heat.columns[c])}, ${rowName(heat, r)}: busy ${percentText(part(c, r))}`;
  const busy = Array.from({ length: heat.rows }, (_, r) => sum(heat.columns.map((_, c) => part(c, r))) / n);
  const marks = () => steps.map(([, seconds]) => (seconds - begin) / width).map((at) => [at, at, []]);
  const label = `Which part of the time each PE was busy${named}`;
  const listed = steps.slice(0, 12).map(([number, seconds]) => `${number} (${secondsText(seconds)})`);
  const kind = steps.length === 1 ? "Triangle: load-balancing step" : "Triangles: load-balancing steps";
  const triangles = `${kind} ${listed.join(", ")}${steps.length > 12 ? ", .." : ""}.`;
  const columns = [["PE", (r) => r, (r) => rowName(heat, r)], ["busy", (r) => busy[r], percentText]];
  // Eighths of the time, for those who cannot see the picture.
  const spans = Math.min(8, n), place = (at) => Math.floor(at * n / spans);
  const eighths = Array.from({ length: spans }, (_, k) => [place(k), place(k + 1)]);
  const mean = (r, [from, to]) => sum(heat.columns.slice(from, to).map((_, c) => part(from + c, r))) / (to - from);
  const from = ([first]) => `from ${secondsText(begin + first * width)}`;
  columns.push(...eighths.map((span) => [from(span), (r) => mean(r, span), percentText]));
  return [
    sum(busy) / heat.rows,
    name !== "" && heading(name),
    heatPicture(heat, [0, 1], 1120, label, say, timeLabels(begin, end), marks),
    axisOf(heat, `time ${secondsText(begin)}`, secondsText(end)),
    steps.length > 0 && axis(`${triangles} There, PE 0 may be busy with the decision.`),
    name !== "simulated" && axis(words("recording")),
    asText(`Timeline as a table${named}`, () => table(`timeline ${name}`, columns, [...busy.keys()])),
  ];
}
const timeline = {
  id: "timeline", title: "Timeline",
  exists: () => Boolean(data.timeline),
  lacks: "It needs a run with --record or --perfetto.",
  draw() {
    const { timeline: heat, recorded_timeline: recorded, timeline_steps: steps } = data;
    const all = recorded ? [[recorded, "recorded", steps], [heat, "simulated", []]] : [[heat, "", steps]];
    const drawn = all.map((it) => timelineParts(...it)), begin = all[0][0].columns[0];
    const means = drawn.map(([busy], k) => percentText(busy) + (all[k][1] && ` (${all[k][1]})`));
    const dropped = begin > 0 ? ` The recording begins at ${secondsText(begin)}; earlier events were dropped.` : "";
    const busy = `PEs are busy ${means.join(", ")} of the time on average`;
    return [
      `${busy}; otherwise they wait, or handle messages.${dropped}`,
      legend("cividis", "0 %", "100 %", "part of the time that a PE is busy"),
      ...drawn.flatMap(([, ...parts]) => parts),
    ];
  },
};
