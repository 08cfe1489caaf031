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
/** Objects with their loads. */
const objectLoads = (objects, between) => objects.map((i) => objectName(i) + between + loadText(data.objects.load_seconds[i]));
const backgroundOf = (pe) => data.pes.background_seconds[pe] || 0;
const hasBackground = () => largest(data.pes.background_seconds) > 0;
/** Whether the lower bound differs from the average, so that it has a line of its own. */
const isBoundShown = ({ metrics }) => loadText(metrics.lower_bound_seconds) !== loadText(metrics.average_load_seconds);
/** Bars of the loads of PEs in this order. */
function loadPicture(it, name, order, top) {
  const { average_load_seconds: average, lower_bound_seconds: bound, max_load_seconds: most } = it.metrics;
  const wide = 560 - margin, heavy = heaviest(it), y = (load) => 280 - 270 * load / top;
  const marks = [[y(top) / 281, loadText(top)], [y(average) / 281, loadText(average)], [1, "0"]];
  const draw = (context) => {
    for (const { item: pe, x, width } of visibleBars(order, wide, (pe) => it.load_seconds[pe])) {
      const load = it.load_seconds[pe], background = Math.min(load, backgroundOf(pe));
      context.fillStyle = variable(it === before() ? "--before" : "--after");
      context.fillRect(x, y(load), width, 280 - y(load));
      context.fillStyle = variable("--mark");
      // At least one pixel, so that a small background is seen.
      const orange = background > 0 ? Math.min(y(background), 279) : 280;
      context.fillRect(x, orange, width, 280 - orange);
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
  const label = `Load of ${order.length} PEs${name && ` ${name}`}: largest ${loadText(most)}, average ${loadText(average)}`;
  return make("div", {}, make("h3", {}, headed(name, `largest load ${loadText(most)}, max/avg ${(1 + it.metrics.imbalance).toFixed(3)}`)),
    plot(label, [head, wide, 281], [order.length, 1], [middles(order.length, (at) => order[at]), marks], draw, at),
    axis(`${sorted ? "PEs by load" : `PE 0 to ${order.length - 1}`}; height: 0 to ${loadText(top)}`));
}
/** The loads of PEs and their heaviest objects as a table. */
function loadTable() {
  const heavy = heaviest(after());
  const heads = ["PE", ...pair().map(([, name]) => `load ${name}`), hasBackground() && "background", `heaviest objects ${pair().at(-1)[1]}`];
  const rows = data.pes.nodes.map((_, pe) => [cell(pe, peName), ...pair().map(([it]) => cell(it.load_seconds[pe], loadText)),
    cell(backgroundOf(pe), loadText), objectLoads(heavy[pe], " ").join(", ")]);
  return make("div", { class: "words" }, table("loads", heads, rows));
}
const loads = {
  id: "loads", title: "Loads",
  // Tasks without weights that are alone on their PEs have nothing to show.
  exists: () => data.placements.some((it) => largest(it.load_seconds) > (data.weights && data.objects.load_seconds.every((load) => load === 1) ? 1 : 0)),
  draw(section) {
    const toggle = make("input", { type: "checkbox", "aria-label": "Sorted by load", onchange: (event) => { sorted = event.target.checked; redraw(); } });
    toggle.checked = sorted;
    const top = Math.max(...pair().map(([it]) => largest(it.load_seconds)));
    const order = (it) => {
      const pes = [...it.load_seconds.keys()];
      return sorted ? pes.sort((a, b) => it.load_seconds[b] - it.load_seconds[a]) : pes;
    };
    const { average_load_seconds: average, lower_bound_seconds: bound } = before().metrics;
    const ofBound = isBoundShown(before()) ? `Dashed line: lower bound of the largest load (${loadText(bound)}).`
      : "It is also the lower bound of the largest load.";
    section.append(make("label", {}, toggle, " sorted by load (else in the order of PE numbers)"),
      sideBySide((it, name) => loadPicture(it, name, order(it), top)),
      note(`Solid line: average (${loadText(average)}). ${ofBound}${hasBackground() ? " Orange: background." : ""}`),
      make("p", { class: "note hint" }, "Point at a PE to see its heaviest objects."), asText("Loads as a table", loadTable));
    const heaviestPe = (it) => heaviestOf(it.load_seconds, (pe) => `PE ${pe}`);
    const most = compared((it) => `${loadText(it.metrics.max_load_seconds)} (${heaviestPe(it)})`);
    const countAbove = (it) => it.load_seconds.filter((load) => load > 1.05 * it.metrics.average_load_seconds).length;
    const above = compared((it, k) => `${countAbove(it)}${k ? "" : ` of ${countText(peCount(), "PE")}`}`);
    const computed = data.run_steps.length && state.after ? ` Loads with ${after().name} are computed from those before the step.` : "";
    return `Largest load: ${most}. More than 5 % above the average: ${above}.${computed}`;
  },
};
