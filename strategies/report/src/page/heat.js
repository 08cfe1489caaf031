// Panels 3 and 8: PEs over steps with a slider, and PEs over time.
/** The chosen column of the panel Steps; none until the panel is drawn. */
let chosen = null;
const rowLabels = (heat) => middles(heat.rows, (row) => row * heat.pes_per_row);
/**
 * A picture of a heat map, `whole` pixels wide with its labels, on the scale from `low` to `top`. `columns` are the labels of its columns.
 * `marks()` are frames: the column where each begins and ends, and its dashes. Where both are the same, a triangle above the picture points at it.
 */
function heatPicture(heat, [low, top], whole, label, say, columns, marks = () => []) {
  const n = heat.columns.length, wide = whole - margin, high = Math.max(120, Math.min(420, 14 * heat.rows));
  const draw = (context) => {
    paintCells(context, wide, high, n, heat.rows, (c, r) => colour("cividis", (valueOf(heat, c, r) - low) / (top - low)));
    context.lineWidth = 2;
    context.strokeStyle = context.fillStyle = variable("--frame");
    for (const [begin, end, dashes] of marks()) {
      const x = begin * wide / n;
      context.setLineDash(dashes);
      if (begin < end) context.strokeRect(x + 1, 1, Math.max(0, (end - begin) * wide / n - 2), high - 2);
      else {
        context.beginPath();
        [[x - 4, -5], [x + 4, -5], [x, 0]].forEach((corner) => context.lineTo(...corner));
        context.fill();
      }
    }
  };
  return plot(label, [head, wide, high], [n, heat.rows], [columns, rowLabels(heat)], draw, say);
}
const rowName = (heat, row) => {
  const first = row * heat.pes_per_row;
  return pesName(first, Math.min(peCount() || Infinity, first + heat.pes_per_row) - 1);
};
const valueOf = (heat, c, r) => heat.cells[c * heat.rows + r] / 1000 * heat.scales[c];
/** A load, as exactly as the thousandths of the largest load of its column are. */
function cellText(heat, c, r) {
  const thousandths = heat.cells[c * heat.rows + r];
  if (!thousandths && heat.scales[c]) return `less than ${loadText(heat.scales[c] / 1000)}`;
  return (thousandths < 50 && heat.scales[c] ? "about " : "") + loadText(valueOf(heat, c, r));
}
const columnOf = (heat, c) => Array.from({ length: heat.rows }, (_, r) => valueOf(heat, c, r));
const axisOf = (heat, from, to) => axis(`Across: ${from} to ${to}. Down: ${rowName(heat, 0)} to ${rowName(heat, heat.rows - 1)}.`);
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
  return Math.min(shared, steps - c * shared) === 1 ? String(columns[c]) : c + 1 < columns.length ? `${columns[c]} to ${columns[c + 1] - 1}` : `${columns[c]} and following`;
}
/** Bars of the loads of all rows at the chosen step. */
function stepPicture(heat, top, name, ink) {
  const wide = 560 - margin, high = 90, labels = [rowLabels(heat), [[0, loadText(top)], [1, "0"]]];
  const draw = (context) => {
    context.fillStyle = variable(ink);
    const bars = visibleBars(columnOf(heat, chosen), wide, (load) => load);
    bars.forEach(({ item, x, width }) => context.fillRect(x, high * (1 - item / top), width, high * item / top));
  };
  const say = (row) => `${rowName(heat, row)}: ${cellText(heat, chosen, row)}`;
  return plot(`Load of PEs at the chosen step, ${name}`, [head, wide, high], [heat.rows, 1], labels, draw, say);
}
const steps = {
  id: "steps", title: "Steps",
  exists: () => Boolean(data.steps),
  lacks: "It needs several load-balancing steps.",
  draw(section) {
    const heats = [[data.steps, "before each step", "--before"]];
    if (data.placements.length && after().steps) heats.push([after().steps, `after each step (${after().name}), computed from the loads before it`, "--after"]);
    const top = Math.max(...heats.map(([heat]) => heat.largest)) || 1, last = data.steps.columns.length - 1;
    // From the least load, so that differences can be seen, but small ones do not look large.
    const low = heats.reduce((low, [heat]) => heat.columns.reduce((low, _, c) => Math.min(low, ...columnOf(heat, c)), low), 0.9 * top);
    // The step of the other panels, or the column that it shares with others.
    const home = Math.max(0, data.steps.columns.findLastIndex((step) => step <= data.step));
    chosen = Math.min(chosen ?? home, last);
    const hasOthers = data.placements.length > 0, words = make("output", { "aria-live": "polite" });
    const describe = () => {
      const most = heats.map(([heat], k) => {
        const ratio = `max/avg ${heat.steps_per_column > 1 ? "at most " : ""}${heat.max_over_avg[chosen].toFixed(3)}`;
        return `${loadText(heat.scales[chosen])} (${ratio})${heats.length > 1 ? [" before", " after"][k] : ""}`;
      });
      words.textContent = ` ${stepsOf(data.steps, chosen)}: largest load ${most.join(", ")}${chosen === home && hasOthers ? " (the step of the other panels)" : ""}`;
    };
    const marks = () => [...(hasOthers ? [[home, home + 1, [5, 4]]] : []), [chosen, chosen + 1, []]];
    // Only the pictures are painted again, because a slider that is replaced would not follow the mouse.
    const slider = make("input", { type: "range", min: 0, max: last, value: chosen, "aria-label": "Step", oninput: (event) => {
      chosen = Number(event.target.value);
      describe();
      section.querySelectorAll("canvas").forEach((canvas) => canvas.paint());
    } });
    describe();
    section.append(make("label", { class: "step" }, "Step ", slider, words));
    const holder = make("div", { class: "pair" });
    for (const [heat, name, ink] of heats) {
      const say = (c, r) => `Step ${stepsOf(heat, c)}, ${rowName(heat, r)}: ${cellText(heat, c, r)}`;
      holder.append(make("div", {}, make("h3", {}, name), heatPicture(heat, [low, top], 560, `Load of PEs at ${countText(heat.steps, "step")}, ${name}`, say, middles(heat.columns.length, (c) => heat.columns[c]), marks),
        axisOf(heat, `step ${heat.columns[0]}`, heat.columns.at(-1)), make("h3", {}, "loads of PEs at the chosen step"), stepPicture(heat, top, name, ink)));
    }
    const rows = () => data.steps.columns.map((step, c) => [{ value: step, text: stepsOf(data.steps, c) },
      ...heats.flatMap(([heat]) => [cell(heat.scales[c], loadText), cell(heat.max_over_avg[c], (ratio) => ratio.toFixed(3))])]);
    section.append(legend("cividis", loadText(low), loadText(top), "load of a PE"), holder, note("Frame: the chosen step." + (hasOthers ? " Dashed frame: the step of the other panels, if it is another one." : "")), asText("Steps as a table", () =>
      table("steps", ["step", ...["before", "after"].slice(0, heats.length).flatMap((when) => [`largest load ${when}`, `max/avg ${when}`])], rows())));
    const heat = data.steps, ratio = (c) => `max/avg ${heat.max_over_avg[c].toFixed(3)}`, heaviest = (c) => heaviestOf(columnOf(heat, c), (row) => rowName(heat, row));
    const measured = last < 8
      ? `Largest load before each step: ${heat.columns.map((_, c) => `${loadText(heat.scales[c])} (${heaviest(c)}, ${ratio(c)})`).join("; ")}.`
      : `Largest load: ${loadText(heat.scales[0])} (${ratio(0)}) before the first step, ${loadText(heat.scales[last])} (${ratio(last)}) before the last, at most ${loadText(heat.largest)}.`;
    return `${measured}${heats.length > 1 ? ` Computed for after the last step, from the loads before it: max/avg ${heats[1][0].max_over_avg.at(-1).toFixed(3)}.` : ""}`;
  },
};
/** The picture and the table of a timeline, whose name is empty if it is the only one. */
function drawTimeline(section, heat, name, steps) {
  const n = heat.columns.length, begin = heat.columns[0], width = heat.columns[1] - begin;
  const end = heat.columns.at(-1) + width;
  const say = (c, r) => `${secondsText(heat.columns[c])}, ${rowName(heat, r)}: busy ${percentText(valueOf(heat, c, r))}`;
  const busy = Array.from({ length: heat.rows }, (_, r) => sum(heat.columns.map((_, c) => valueOf(heat, c, r))) / n);
  const marks = () => steps.map(([, seconds]) => (seconds - begin) / width).map((at) => [at, at, []]);
  if (name) section.append(make("h3", {}, name));
  section.append(heatPicture(heat, [0, 1], 1120, `Which part of the time each PE was busy${name && `, ${name}`}`, say, timeLabels(begin, end), marks), axisOf(heat, `time ${secondsText(begin)}`, secondsText(end)));
  if (steps.length) section.append(axis(`Triangles: load-balancing steps ${steps.slice(0, 12).map(([number, seconds]) => `${number} (${secondsText(seconds)})`).join(", ")}${steps.length > 12 ? ", .." : ""}. There, PE 0 may be busy with the decision.`));
  section.append(axis("The recording lasts from the first event to the last one, which may be shorter than the run."));
  section.append(asText(`Timeline as a table${name && `, ${name}`}`, () => table(`timeline ${name}`, ["PE", "busy"], busy.map((part, r) => [cell(r, () => rowName(heat, r)), cell(part, percentText)]))));
  return sum(busy) / heat.rows;
}
const timeline = {
  id: "timeline", title: "Timeline",
  exists: () => Boolean(data.timeline),
  lacks: "It needs a run with --record or --perfetto.",
  draw(section) {
    const all = data.recorded_timeline ? [[data.recorded_timeline, "recorded", data.timeline_steps], [data.timeline, "simulated", []]] : [[data.timeline, "", data.timeline_steps]];
    section.append(legend("cividis", "0 %", "100 %", "part of the time that a PE is busy"));
    const means = all.map(([heat, name, steps]) => `${percentText(drawTimeline(section, heat, name, steps))}${name && ` (${name})`}`);
    const begin = all[0][0].columns[0];
    return `PEs are busy ${means.join(", ")} of the time on average; otherwise they wait, or handle messages.${begin > 0 ? ` The recording begins at ${secondsText(begin)}; earlier events were dropped.` : ""}`;
  },
};
