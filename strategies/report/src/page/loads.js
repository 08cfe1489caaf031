// Panel 2: the load of every PE, before and after.
let sorted = false;
/** By PE: its heaviest objects, up to three. */
function heaviest(placement) {
  const lists = Array.from({ length: peCount() }, () => []), load = data.objects.load_seconds;
  placement.pe_of.forEach((pe, i) => {
    if (lists[pe].length === 3 && load[lists[pe][2]] >= load[i]) return;
    lists[pe] = [...lists[pe], i].sort((a, b) => load[b] - load[a]).slice(0, 3);
  });
  return lists;
}
const loadOf = (i) => data.objects.load_seconds[i];
const objectLoads = (objects, between) => objects.map((i) => objectName(i) + between + loadText(loadOf(i)));
const backgroundOf = (pe) => data.pes.background_seconds[pe] || 0;
const hasBackground = () => largest(data.pes.background_seconds) > 0;
/** Whether the lower bound differs from the average, so that it has a line of its own. */
const isBoundShown = ({ metrics }) => loadText(metrics.lower_bound_seconds) !== loadText(metrics.average_load_seconds);
function loadPicture(it, name, top) {
  const { average_load_seconds: average, lower_bound_seconds: bound, max_load_seconds: most } = it.metrics;
  const wide = 560 - margin, heavy = heaviest(it), y = (load) => 280 - 270 * load / top;
  const marks = [[y(top) / 281, loadText(top)], [y(average) / 281, loadText(average)], [1, "0"]];
  const order = [...it.load_seconds.keys()];
  if (sorted) order.sort((a, b) => it.load_seconds[b] - it.load_seconds[a]);
  const draw = (context) => {
    const ink = variable(it === before() ? "--before" : "--after"), orange = variable("--mark");
    for (const { item: pe, x, width } of visibleBars(order, wide, (pe) => it.load_seconds[pe])) {
      const load = it.load_seconds[pe], background = Math.min(load, backgroundOf(pe));
      fill(context, ink, [x, y(load), width, 280 - y(load)]);
      // At least one pixel, so that a small background is seen.
      const high = background && Math.max(1, 280 - y(background));
      fill(context, orange, [x, 280 - high, width, high]);
    }
    context.strokeStyle = variable("--text");
    for (const [load, dash] of [[average, []], ...(isBoundShown(it) ? [[bound, [6, 4]]] : [])]) {
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(0, y(load));
      context.lineTo(wide, y(load));
      context.stroke();
    }
  };
  const at = (place) => {
    const pe = order[place], background = backgroundOf(pe) ? `, background ${loadText(backgroundOf(pe))}` : "";
    return `${peName(pe)}: ${loadText(it.load_seconds[pe])}${background}\n${objectLoads(heavy[pe], ": ").join("\n")}`;
  };
  const pes = `${order.length} PEs${name && ` ${name}`}`;
  const label = `Load of ${pes}: largest ${loadText(most)}, average ${loadText(average)}`;
  const labels = [middles(order.length, (at) => order[at]), marks];
  return [plot(label, [head, wide, 281], [order.length, 1], labels, draw, at),
    axis(`${sorted ? "PEs by load" : pesName(0, order.length - 1)}; height: 0 to ${loadText(top)}`)];
}
function loadTable() {
  const heavy = heaviest(after());
  return make("div", { class: "words" }, table("loads", [
    ["PE", (pe) => pe, peName],
    ...pair().map(([it, name]) => [`load ${name}`, (pe) => it.load_seconds[pe], loadText]),
    hasBackground() && ["background", backgroundOf, loadText],
    [`heaviest objects ${pair().at(-1)[1]}`, (pe) => objectLoads(heavy[pe], " ").join(", ")],
  ], [...data.pes.nodes.keys()]));
}
const loads = {
  id: "loads", title: "Loads",
  exists() {
    // Tasks without weights that are alone on their PEs have nothing to show.
    const least = data.weights && data.objects.load_seconds.every((load) => load === 1) ? 1 : 0;
    return data.placements.some((it) => largest(it.load_seconds) > least);
  },
  draw() {
    const onchange = (event) => {
      sorted = event.target.checked;
      redraw();
    };
    const toggle = make("input", { type: "checkbox", "aria-label": "Sorted by load", checked: sorted, onchange });
    const top = Math.max(...pair().map(([it]) => largest(it.load_seconds)));
    const mostText = ({ metrics: { max_load_seconds: most, imbalance } }) =>
      `largest load ${loadText(most)}, max/avg ${ratioText(1 + imbalance)}`;
    const { average_load_seconds: average, lower_bound_seconds: bound } = before().metrics;
    const ofBound = isBoundShown(before()) ? `Dashed line: lower bound of the largest load (${loadText(bound)}).`
      : "It is also the lower bound of the largest load.";
    const heaviestPe = (it) => heaviestOf(it.load_seconds, (pe) => `PE ${pe}`);
    const most = compared((it) => `${loadText(it.metrics.max_load_seconds)} (${heaviestPe(it)})`);
    const countAbove = (it) => it.load_seconds.filter((load) => load > 1.05 * it.metrics.average_load_seconds).length;
    const above = compared((it, k) => `${countAbove(it)}${k ? "" : ` of ${countText(peCount(), "PE")}`}`);
    const computed = data.run_steps.length && state.after
      ? ` Loads with ${after().name} are computed from those before the step.` : "";
    return [
      `Largest load: ${most}. More than 5 % above the average: ${above}.${computed}`,
      make("label", {}, toggle, " sorted by load (else in the order of PE numbers)"),
      sideBySide(mostText, (it, name) => loadPicture(it, name, top)),
      note(`Solid line: average (${loadText(average)}). ${ofBound}${hasBackground() ? " Orange: background." : ""}`),
      make("p", { class: "note hint" }, "Point at a PE to see its heaviest objects."),
      asText("Loads as a table", loadTable),
    ];
  },
};
