// Panel 4: the machine, its links coloured by bytes over bandwidth on one scale.
/** A dimension across the page, one down the page, and slices for the third. */
function gridPicture(it, top, name) {
  const m = data.machine, [w, h = 1, slices = 1] = m.sizes;
  const across = Math.ceil(Math.sqrt(slices)), down = Math.ceil(slices / across);
  const cell = Math.max(6, Math.min(90, Math.floor(560 / (across * (w + 1)))));
  const place = (node) => {
    const z = Math.floor(node / (w * h)), y = Math.floor(node / w) % h, x = node % w;
    return [((z % across) * (w + 1) + x + 0.7) * cell, (Math.floor(z / across) * (h + 1) + y + 0.7) * cell];
  };
  const width = across * (w + 1) * cell, height = down * (h + 1) * cell;
  const through = new Map();
  m.from.forEach((from, i) => {
    if (Math.floor(from / (w * h)) !== Math.floor(m.to[i] / (w * h))) through.set(from, Math.max(through.get(from) || 0, it.link_seconds[i]));
  });
  const draw = (context) => {
    m.from.forEach((from, i) => {
      const [x, y] = place(from), [u, v] = place(m.to[i]);
      if (Math.floor(from / (w * h)) !== Math.floor(m.to[i] / (w * h))) return;
      // The two directions of a cable lie next to each other; a link around the torus is drawn as a stub at the border.
      const wraps = Math.abs(u - x) > 1.5 * cell || Math.abs(v - y) > 1.5 * cell;
      const [dx, dy] = [Math.sign(u - x) * (wraps ? -1 : 1), Math.sign(v - y) * (wraps ? -1 : 1)];
      const side = 0.1 * cell, long = wraps ? 0.55 : 1;
      context.strokeStyle = it.link_seconds[i] ? css("viridis", it.link_seconds[i] / top) : variable("--line");
      context.lineWidth = Math.max(1.5, 0.14 * cell);
      context.beginPath();
      context.moveTo(x - dy * side, y + dx * side);
      context.lineTo(x + dx * cell * long - dy * side, y + dy * cell * long + dx * side);
      context.stroke();
    });
    for (let node = 0; node < w * h * slices; node++) {
      const [x, y] = place(node), size = Math.max(3, 0.32 * cell);
      context.fillStyle = through.get(node) ? css("viridis", through.get(node) / top) : variable("--dim");
      context.fillRect(x - size / 2, y - size / 2, size, size);
    }
  };
  const links = new Map();
  m.from.forEach((from, i) => links.set(from, [...links.get(from) || [], i]));
  const at = (x, y) => {
    const [a, b] = [Math.floor(x / cell / (w + 1)), Math.floor(y / cell / (h + 1))];
    const [u, v, z] = [Math.floor(x / cell - a * (w + 1) - 0.2), Math.floor(y / cell - b * (h + 1) - 0.2), b * across + a];
    if (u < 0 || v < 0 || u >= w || v >= h || z >= slices) return "";
    const node = u + w * (v + h * z);
    return `node ${node} (${[u, v, z].slice(0, m.sizes.length).join(", ")})\n` +
      (links.get(node) || []).map((i) => `to node ${m.to[i]}: ${secondsText(it.link_seconds[i])}`).join("\n");
  };
  const note = through.size ? "A square is a node; its colour is the busiest link from it to another slice of the third dimension. Grey: no bytes." : "A square is a node. Grey: no bytes.";
  return make("div", {}, picture(width, height, `Links of the grid, ${name}`, draw, at), make("div", { class: "axis" }, note));
}

/** Levels of a tree, the root on top; each vertex has its link up in the upper half and its link down in the lower half. */
function treePicture(it, top, name) {
  const m = data.machine, leaves = m.leaves.length, row = 44, height = m.starts.length * row;
  const index = new Map(m.level.map((level, i) => [`${level}/${m.vertex[i]}/${m.up[i]}`, i]));
  const draw = (context) => m.level.forEach((level, i) => {
    const [first, end] = [m.starts[level][m.vertex[i]], m.starts[level][m.vertex[i] + 1]];
    const x = 560 * first / leaves, wide = 560 * (end - first) / leaves;
    context.fillStyle = css("viridis", it.link_seconds[i] / top);
    context.fillRect(x, level * row + (m.up[i] ? 2 : row / 2), Math.max(0.5, wide - (wide > 4 ? 1.5 : 0)), row / 2 - 2);
  });
  const at = (x, y) => {
    const level = Math.min(m.starts.length - 1, Math.floor(y / row)), leaf = Math.floor(x / 560 * leaves);
    const vertex = m.starts[level].findIndex((_, v) => leaf < m.starts[level][v + 1]);
    const link = (up) => index.has(`${level}/${vertex}/${up}`) ? secondsText(it.link_seconds[index.get(`${level}/${vertex}/${up}`)]) : "no link";
    const what = level === m.starts.length - 1 ? peName(m.leaves[leaf]) : `switch ${vertex} of level ${level + 1}`;
    return `${what}: up ${link(true)}, down ${link(false)}`;
  };
  return make("div", {}, picture(560, height, `Links of the tree, ${name}`, draw, at),
    make("div", { class: "axis" }, `Rows: levels, the root on top, PEs below. Upper half: link up; lower half: link down.`));
}

function groupPicture(it, top, name) {
  const m = data.machine, n = m.groups, size = Math.max(200, Math.min(480, 24 * n));
  const cells = new Map(m.from.map((from, i) => [from * n + m.to[i], it.link_seconds[i]]));
  const draw = (context) => paintCells(context, size, size, n, n, (c, r) => cells.has(r * n + c) ? colour("viridis", cells.get(r * n + c) / top) : null);
  const at = (x, y) => {
    const [to, from] = [x, y].map((v) => Math.min(n - 1, Math.floor(v / size * n)));
    return `group ${from} to group ${to}: ${secondsText(cells.get(from * n + to) || 0)}`;
  };
  return make("div", {}, picture(size, size, `Busiest link from group to group, ${name}`, draw, at),
    make("div", { class: "axis" }, "Row: group of the sender; column: group of the receiver. The diagonal is the busiest link between routers of a group. Links of PEs are in the list only."));
}

const machine = {
  id: "machine", title: "Machine",
  exists: () => Boolean(data.machine) && data.placements.length > 0,
  draw(section) {
    const busiest = (it) => it.top_links.length ? it.top_links[0][2] : 0;
    const top = Math.max(...pair().map(([it]) => largest(it.link_seconds)), 1e-300);
    const drawing = { grid: gridPicture, tree: treePicture, groups: groupPicture }[data.machine.layout];
    const holder = make("div", { class: "pair" });
    for (const [it, name] of pair()) {
      const list = table(["link", "bytes", "bytes over bandwidth"], it.top_links.map(([link, bytes, seconds]) =>
        [link, { value: bytes, text: bytesText(bytes) }, { value: seconds, text: secondsText(seconds) }]));
      const details = make("details", {}, make("summary", {}, `The ${it.top_links.length} busiest links`), list);
      details.open = !drawing;
      holder.append(make("div", {}, make("h3", {}, `${name}: busiest link ${secondsText(busiest(it))}`), drawing ? drawing(it, top, name) : "", details));
    }
    section.append(holder);
    if (drawing) section.append(legend("viridis", "0 s", secondsText(top), "bytes over bandwidth"));
    return `The busiest link of ${data.topology} needs ${pair().map(([it, name]) => `${secondsText(busiest(it))} ${spoken(it, name)}`).join(", ")}.`;
  },
};
