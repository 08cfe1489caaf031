// Panel 2: the load of every PE, before and after.
let sorted = false;
/** By PE: its heaviest objects, up to three. */
function heaviest(placement) {
  const lists = data.pes.nodes.map(() => []);
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
const loads = {
  id: "loads", title: "Loads",
  exists: () => data.placements.length > 0 && largest(before().load_seconds) > 0,
  draw(section) {
    const toggle = make("input", { type: "checkbox", onchange: (event) => { sorted = event.target.checked; redraw(); } });
    toggle.checked = sorted;
    section.append(make("label", {}, toggle, " sorted by load (else in the order of PE numbers)"));
    const top = Math.max(...pair().map(([it]) => largest(it.load_seconds)));
    const holder = make("div", { class: "pair" });
    for (const [it, name] of pair()) {
      const order = it.load_seconds.map((_, pe) => pe);
      if (sorted) order.sort((a, b) => it.load_seconds[b] - it.load_seconds[a]);
      const { average_load_seconds: average, lower_bound_seconds: bound, max_load_seconds: most } = it.metrics;
      const y = (load) => 280 - 270 * load / top;
      const heavy = heaviest(it);
      const draw = (context, width, height) => {
        const wide = width / order.length;
        order.forEach((pe, at) => {
          const background = data.pes.background_seconds[pe] || 0, load = it.load_seconds[pe];
          context.fillStyle = variable(it === before() ? "--before" : "--after");
          context.fillRect(at * wide, y(load), Math.max(1, wide - (wide > 4 ? 1 : 0)), 280 - y(load));
          context.fillStyle = variable("--mark");
          context.fillRect(at * wide, y(Math.min(background, load)), Math.max(1, wide - (wide > 4 ? 1 : 0)), 280 - y(Math.min(background, load)));
        });
        for (const [load, dash] of [[average, []], [bound, [6, 4]]]) {
          context.strokeStyle = variable("--text");
          context.setLineDash(dash);
          context.beginPath();
          context.moveTo(0, y(load));
          context.lineTo(width, y(load));
          context.stroke();
        }
      };
      const at = (x) => {
        const pe = order[Math.min(order.length - 1, Math.floor(x / 560 * order.length))];
        return `${peName(pe)}: ${secondsText(it.load_seconds[pe])}, background ${secondsText(data.pes.background_seconds[pe] || 0)}\n` +
          heavy[pe].map((i) => `${objectName(i)}: ${secondsText(data.objects.load_seconds[i])}`).join("\n");
      };
      const label = `Load of ${order.length} PEs ${name}: largest ${secondsText(most)}, average ${secondsText(average)}`;
      holder.append(make("div", {}, make("h3", {}, `${name}: largest load ${secondsText(most)}, ${(1 + it.metrics.imbalance).toFixed(2)} times the average`),
        picture(560, 281, label, draw, at), make("div", { class: "axis" }, `${sorted ? "PEs by load" : `PE 0 to ${order.length - 1}`}; height: 0 to ${secondsText(top)}`)));
    }
    section.append(holder, make("p", { class: "note" }, `Solid line: average (${secondsText(before().metrics.average_load_seconds)}). Dashed line: lower bound of the largest load ` +
      `(${secondsText(before().metrics.lower_bound_seconds)}). Orange: background. Point at a PE to see its heaviest objects.`));
    return `Largest load: ${pair().map(([it, name]) => `${secondsText(it.metrics.max_load_seconds)} ${spoken(it, name)}`).join(", ")}.`;
  },
};
