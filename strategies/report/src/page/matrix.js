// Panel 5: who sends to whom.
/** The levels of a matrix by cell, 0 where nothing is sent. */
function cellsOf(m) {
  const cells = new Uint16Array(m.bins * m.bins);
  let at = 0;
  m.gaps.forEach((gap, i) => { at += gap; cells[at] = m.levels[i] + 1; });
  return cells;
}
/** The positions, in the order of PEs, where nodes (1) and switches (2) begin. */
function bordersOf(it) {
  const count = new Array(data.pes.nodes.length).fill(0);
  it.pe_of.forEach((pe) => count[pe]++);
  const found = [];
  let sum = 0;
  count.forEach((n, pe) => {
    if (data.pes.borders[pe]) found.push([sum / it.pe_of.length, data.pes.borders[pe]]);
    sum += n;
  });
  return found;
}
function matrixPicture(m, title, lines, low, high, what) {
  const size = 380, cells = cellsOf(m);
  const draw = (context) => {
    paintCells(context, size, size, m.bins, m.bins, (c, r) => {
      const level = cells[r * m.bins + c];
      return level ? colour("viridis", (level - 1 - low) / Math.max(1, high - low)) : null;
    });
    const shown = lines.length > 64 ? lines.filter(([, kind]) => kind === 2) : lines;
    if (shown.length > 64) return;
    for (const [at, kind] of shown) {
      context.fillStyle = kind === 2 ? "rgba(255,43,214,0.9)" : "rgba(255,43,214,0.35)";
      context.fillRect(at * size, 0, 1, size);
      context.fillRect(0, at * size, size, 1);
    }
  };
  const at = (x, y) => {
    const [to, from] = [x, y].map((v) => Math.min(m.bins - 1, Math.floor(v / size * m.bins)));
    const level = cells[from * m.bins + to];
    return `${what(from, m.bins)} to ${what(to, m.bins)}: ${level ? `about ${bytesText(2 ** ((level - 1) / 4))}` : "nothing"}`;
  };
  return make("div", {}, make("h3", {}, title), picture(size, size, `Bytes between objects, ${title}`, draw, at),
    make("div", { class: "axis" }, "Row: sender; column: receiver."));
}
/** The largest cells in the order of tasks. */
function largestCells(name) {
  const { bins, gaps, levels } = data.matrix;
  let at = 0;
  const cells = gaps.map((gap, i) => [at += gap, levels[i]]).sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 200);
  return table(["sender", "receiver", "about"], cells.map(([cell, level]) =>
    [name(Math.floor(cell / bins), bins), name(cell % bins, bins), { value: level, text: bytesText(2 ** (level / 4)) }]));
}
const matrix = {
  id: "matrix", title: "Communication",
  exists: () => Boolean(data.matrix) && data.placements.length > 0,
  draw(section) {
    const all = [data.matrix, ...pair().map(([it]) => it.matrix)];
    const lowest = Math.min(...all.map((m) => m.levels.reduce((least, x) => Math.min(least, x), 1e9)));
    const high = Math.max(...all.map((m) => largest(m.levels))), low = lowest === high ? high - 8 : lowest;
    const n = data.objects.array.length;
    const object = (bin, bins) => {
      const [first, end] = [Math.ceil(bin * n / bins), Math.ceil((bin + 1) * n / bins)];
      return end - first === 1 ? objectName(first) : `${objectName(first)} and ${end - first - 1} following`;
    };
    const holder = make("div", { class: "pair triple" }, matrixPicture(data.matrix, "in the order of tasks", [], low, high, object));
    for (const [it, name] of pair()) {
      const order = it.pe_of.map((_, i) => i).sort((a, b) => it.pe_of[a] - it.pe_of[b] || a - b);
      const placed = (bin, bins) => {
        const i = order[Math.min(n - 1, Math.ceil(bin * n / bins))];
        return `${peName(it.pe_of[i])} (${objectName(i)})`;
      };
      holder.append(matrixPicture(it.matrix, `by placement ${name}`, bordersOf(it), low, high, placed));
    }
    section.append(holder, legend("viridis", bytesText(2 ** (low / 4)), bytesText(2 ** (high / 4)), "bytes, logarithmic"),
      asText("The largest cells as a table", () => largestCells(object)),
      make("p", { class: "note" }, "Cells near the diagonal are messages between objects that are placed together. Pink lines: borders of switches (strong) and of nodes (faint)."));
    const share = (it) => percentText(it.metrics.remote_bytes / Math.max(1, it.metrics.total_bytes));
    return `Part of the bytes that leaves its PE: ${pair().map(([it, name]) => `${share(it)} ${spoken(it, name)}`).join(", ")}.`;
  },
};
