// Panels 3 and 8: PEs over steps with a slider, and PEs over time.
let column = 0;
/** A picture of a heat map on the scale up to `largest`. */
function heatPicture(heat, top, label, at, marked) {
  const draw = (context, width, height) => {
    const n = heat.columns.length;
    paintCells(context, width, height, n, heat.rows, (c, r) => colour("cividis", heat.cells[c * heat.rows + r] / 1000 * heat.largest / top));
    if (marked === undefined) return;
    context.strokeStyle = "#ff2bd6";
    context.strokeRect(marked * width / n + 0.5, 0.5, Math.max(1, width / n - 1), height - 1);
  };
  const where = (x, y, width, height) => at(Math.min(heat.columns.length - 1, Math.floor(x / width * heat.columns.length)), Math.min(heat.rows - 1, Math.floor(y / height * heat.rows)));
  const high = Math.max(120, Math.min(420, 14 * heat.rows));
  return picture(560, high, label, draw, (x, y) => where(x, y, 560, high));
}
const rowName = (heat, row) => heat.pes_per_row === 1 ? peName(row) : `PEs ${row * heat.pes_per_row} to ${Math.min(data.pes.nodes.length || 1e9, (row + 1) * heat.pes_per_row) - 1}`;
const valueOf = (heat, c, r) => heat.cells[c * heat.rows + r] / 1000 * heat.largest;
const steps = {
  id: "steps", title: "Steps",
  exists: () => Boolean(data.steps),
  draw(section) {
    const maps = [[data.steps, "before each step"]];
    if (data.placements.length && after().steps) maps.push([after().steps, `after each step (${after().name})`]);
    const top = Math.max(...maps.map(([heat]) => heat.largest)) || 1;
    column = Math.min(column, data.steps.columns.length - 1);
    const slider = make("input", { type: "range", min: 0, max: data.steps.columns.length - 1, value: column, "aria-label": "Step", style: "width: 320px",
      oninput: (event) => { column = Number(event.target.value); redraw(); document.querySelector("#panel-steps input").focus(); } });
    const at = (heat) => {
      const list = Array.from({ length: heat.rows }, (_, r) => valueOf(heat, column, r));
      return `largest load ${secondsText(largest(list))}`;
    };
    section.append(make("label", {}, "Step ", slider, ` ${data.steps.columns[column]}: ${maps.map(([heat, name]) => `${at(heat)} ${name}`).join(", ")}`));
    const holder = make("div", { class: "pair" });
    for (const [heat, name] of maps) {
      const say = (c, r) => `Step ${heat.columns[c]}, ${rowName(heat, r)}: ${secondsText(valueOf(heat, c, r))}`;
      holder.append(make("div", {}, make("h3", {}, name), heatPicture(heat, top, `Load of PEs at ${heat.columns.length} steps, ${name}`, say, column),
        make("div", { class: "axis" }, `→ step ${heat.columns[0]} to ${heat.columns.at(-1)}; ↓ ${rowName(heat, 0)} to ${rowName(heat, heat.rows - 1)}`)));
    }
    section.append(holder, legend("cividis", "0 s", secondsText(top), "load of a PE"));
    return `Loads of PEs at ${countText(data.steps.columns.length, "step")}.`;
  },
};
const timeline = {
  id: "timeline", title: "Timeline",
  exists: () => Boolean(data.timeline),
  draw(section) {
    const heat = data.timeline;
    const say = (c, r) => `${secondsText(heat.columns[c])}, ${rowName(heat, r)}: busy ${percentText(valueOf(heat, c, r))}`;
    section.append(heatPicture(heat, 1, "Which part of the time each PE was busy", say), make("div", { class: "axis" },
      `→ time, 0 s to ${secondsText(heat.columns.at(-1) + heat.columns[1])}; ↓ ${rowName(heat, 0)} to ${rowName(heat, heat.rows - 1)}`), legend("cividis", "idle", "busy", "part of the time"));
    const mean = heat.cells.reduce((sum, cell) => sum + cell, 0) / heat.cells.length / 1000 * heat.largest;
    section.prepend(make("p", {}, `PEs are busy ${percentText(mean)} of the time on average.`));
    return "The timeline of PEs.";
  },
};
