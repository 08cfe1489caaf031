// Panel 2: the load of every PE, before and after.
let sorted = false;
/** By PE: its heaviest objects, up to three. */
function heaviest(placement) {
  const lists = Array.from({ length: peCount() }, () => []);
  const load = data.objects.load_seconds;
  placement.pe_of.forEach((pe, i) => {
    const list = lists[pe];
    if (list.length === 3 && load[list[2]] >= load[i]) return;
    list.push(i);
    list.sort((a, b) => load[b] - load[a]);
    list.length = Math.min(list.length, 3);
  });
  return lists;
}
/** Whether the lower bound differs from the average, so that it has a line of its own. */
const isBoundShown = ({ metrics }) => loadText(metrics.lower_bound_seconds) !== loadText(metrics.average_load_seconds);
/** Bars of the loads of PEs in this order. Where PEs are narrower than a pixel, a column shows the heaviest of them. */
function loadPicture(it, name, order, top) {
  const { average_load_seconds: average, lower_bound_seconds: bound, max_load_seconds: most } = it.metrics;
  const whole = 560, width = whole - margin, heavy = heaviest(it), y = (load) => 280 - 270 * load / top;
  const labels = middles(order.length, (at) => order[at]);
  const draw = (context) => {
    labelAxes(context, [margin, head, width, 281], labels, [[y(top) / 281, loadText(top)], [y(average) / 281, loadText(average)], [1, "0"]]);
    context.translate(margin, head);
    const wide = width / order.length, gap = wide > 4 ? 1 : 0;
    const columns = new Map();
    order.forEach((pe, at) => {
      const column = wide < 0.5 ? Math.floor(at * wide * 2) / 2 : at * wide;
      const there = columns.get(column);
      if (there === undefined || it.load_seconds[pe] > it.load_seconds[there]) columns.set(column, pe);
    });
    for (const [x, pe] of columns) {
      const load = it.load_seconds[pe], background = Math.min(load, data.pes.background_seconds[pe] || 0);
      context.fillStyle = variable(it === before() ? "--before" : "--after");
      context.fillRect(x, y(load), Math.max(0.5, wide - gap), 280 - y(load));
      context.fillStyle = variable("--mark");
      // At least one pixel, so that a small background is seen.
      const orange = background > 0 ? Math.min(y(background), 279) : 280;
      context.fillRect(x, orange, Math.max(0.5, wide - gap), 280 - orange);
    }
    for (const [load, dash] of [[average, []], ...(isBoundShown(it) ? [[bound, [6, 4]]] : [])]) {
      context.strokeStyle = variable("--text");
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(0, y(load));
      context.lineTo(width, y(load));
      context.stroke();
    }
  };
  const at = (place) => {
    const pe = order[place];
    return `${peName(pe)}: ${loadText(it.load_seconds[pe])}${data.pes.background_seconds[pe] ? `, background ${loadText(data.pes.background_seconds[pe])}` : ""}\n` +
      heavy[pe].map((i) => `${objectName(i)}: ${loadText(data.objects.load_seconds[i])}`).join("\n");
  };
  const cells = [margin, head, width / order.length, 281, order.length, 1];
  const label = `Load of ${order.length} PEs${name && ` ${name}`}: largest ${loadText(most)}, average ${loadText(average)}`;
  return make("div", {}, make("h3", {}, headed(name, `largest load ${loadText(most)}, max/avg ${(1 + it.metrics.imbalance).toFixed(3)}`)),
    picture(whole, head + 281, label, draw, at, cells), make("div", { class: "axis" }, `${sorted ? "PEs by load" : `PE 0 to ${order.length - 1}`}; height: 0 to ${loadText(top)}`));
}
const loads = {
  id: "loads", title: "Loads",
  // Tasks without weights that are alone on their PEs have nothing to show.
  exists: () => data.placements.some((it) => largest(it.load_seconds) > (data.weights && data.objects.load_seconds.every((load) => load === 1) ? 1 : 0)),
  draw(section) {
    const toggle = make("input", { type: "checkbox", "aria-label": "Sorted by load", onchange: (event) => { sorted = event.target.checked; redraw(); } });
    toggle.checked = sorted;
    section.append(make("label", {}, toggle, " sorted by load (else in the order of PE numbers)"));
    const top = Math.max(...pair().map(([it]) => largest(it.load_seconds)));
    const holder = make("div", { class: "pair" });
    for (const [it, name] of pair()) {
      const order = it.load_seconds.map((_, pe) => pe);
      if (sorted) order.sort((a, b) => it.load_seconds[b] - it.load_seconds[a]);
      holder.append(loadPicture(it, name, order, top));
    }
    const { average_load_seconds: average, lower_bound_seconds: bound } = before().metrics;
    const hasBackground = largest(data.pes.background_seconds) > 0, background = (pe) => data.pes.background_seconds[pe] || 0;
    const rows = () => {
      const heavy = heaviest(after());
      return data.pes.nodes.map((_, pe) => [cell(pe, peName), ...pair().map(([it]) => cell(it.load_seconds[pe], loadText)),
        ...(hasBackground ? [cell(background(pe), loadText)] : []),
        heavy[pe].map((i) => `${objectName(i)} ${loadText(data.objects.load_seconds[i])}`).join(", ")]);
    };
    const heads = () => ["PE", ...pair().map(([, name]) => `load ${name}`), ...(hasBackground ? ["background"] : []), `heaviest objects ${pair().at(-1)[1]}`];
    section.append(holder, make("p", { class: "note" }, `Solid line: average (${loadText(average)}).` +
      ` ${isBoundShown(before()) ? `Dashed line: lower bound of the largest load (${loadText(bound)}).` : "It is also the lower bound of the largest load."}` +
      `${hasBackground ? " Orange: background." : ""}`), make("p", { class: "note hint" }, "Point at a PE to see its heaviest objects."),
    asText("Loads as a table", () => make("div", { class: "words" }, table("loads", heads(), rows()))));
    const heaviestPe = (it) => heaviestOf(it.load_seconds, (pe) => `PE ${pe}`);
    const countAbove = (it) => it.load_seconds.filter((load) => load > 1.05 * it.metrics.average_load_seconds).length;
    const most = pair().map(([it, name]) => `${loadText(it.metrics.max_load_seconds)} (${heaviestPe(it)})${spoken(it, name)}`).join(", ");
    return `Largest load: ${most}. More than 5 % above the average: ${pair().map(([it, name], k) => `${countAbove(it)}${k ? "" : ` of ${countText(peCount(), "PE")}`}${spoken(it, name)}`).join(", ")}.${data.run_steps.length && state.after ? ` Loads with ${after().name} are computed from those before the step.` : ""}`;
  },
};
