// Panel 4: the machine, its links coloured by bytes over bandwidth on one scale.
/** The coordinates of the shown slice in the dimensions beyond the third; empty until it is chosen. */
let slice = [];
/** The drawn link that heads name; none without bytes, or if it is not drawn. */
const busiestLink = (it) => it.busiest_drawn ?? -1;
/** The busiest link and its time; of several, their number and one of them; then the number of those that are nearly as busy. */
function busiestWords({ top_links, busiest_links: [equal, close] }) {
  if (!top_links.length) return "no message crosses a link";
  const [link, , most] = top_links[0];
  const further = close > equal ? `; ${close - equal} more within 5 %` : "";
  return equal > 1 ? `${equal} busiest links, such as ${link}, ${secondsText(most)} each${further}` : `busiest: ${link}, ${secondsText(most)}${further}`;
}
/** Marks what is between two corners as the busiest link. */
function markBusiest(context, x, y, wide, high) {
  context.strokeStyle = variable("--frame");
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 1, wide + 2, high + 2);
}
const hot = (seconds, top) => seconds ? css("viridis", seconds / top) : variable("--line");
/** The number of nodes of a slice, which has up to three dimensions. */
const sliceSize = () => data.machine.sizes.slice(0, 3).reduce((product, size) => product * size, 1);
const coordinates = (node) => data.machine.sizes.map((size) => {
  const at = node % size;
  node = Math.floor(node / size);
  return at;
});
/** The slice in which the busiest link begins. */
function busiestSlice(it) {
  return coordinates(data.machine.from[busiestLink(it)] || 0).slice(3);
}
const sliceName = () => slice.length ? `, slice ${slice.map((at, k) => `${at} of dimension ${k + 4}`).join(", ")}` : "";
/** One selector for each dimension beyond the third. */
function sliceChoice() {
  const chosen = data.machine.sizes.slice(3).map((size, k) => {
    const options = Array.from({ length: size }, (_, at) => make("option", { value: at, selected: at === slice[k] }, String(at)));
    const select = make("select", { "aria-label": `Coordinate in dimension ${k + 4}`, onchange: (event) => { slice[k] = Number(event.target.value); redraw(); } }, ...options);
    return make("label", {}, ` dimension ${k + 4}: `, select);
  });
  return make("p", {}, "The pictures show dimensions 1 to 3 at ", ...chosen, " ", make("button", { class: "plain", onclick: () => { slice = busiestSlice(after()); redraw(); } }, "Show the busiest slice"));
}

/** A dimension across the page, one down the page, slices for the third, and one slice of the further dimensions. */
function gridPicture(it, top, name) {
  const m = data.machine, inner = sliceSize();
  // A long ring is folded into rows.
  const isFolded = m.sizes.length === 1 && inner > 64;
  const [w, h = 1, depth = 1] = isFolded ? [64, Math.ceil(inner / 64)] : m.sizes;
  const first = slice.reduceRight((sum, at, k) => sum * m.sizes[k + 3] + at, 0) * inner;
  const across = depth < 4 ? depth : Math.ceil(Math.sqrt(depth)), down = Math.ceil(depth / across);
  const cell = Math.max(3, Math.min(80, Math.floor(560 / (across * (w + 1))), Math.floor(480 / (down * (h + 1)))));
  // On small squares there is no place for links; each square shows the busiest of its node.
  const isSmall = cell < 16, lift = isSmall && depth > 1 ? 12 : 0;
  const place = (node) => {
    const z = Math.floor(node / (w * h)), y = Math.floor(node / w) % h, x = node % w;
    return [((z % across) * (w + 1) + x + 0.7) * cell, lift + (Math.floor(z / across) * (h + 1) + y + 0.7) * cell];
  };
  // Without the space behind the last slices, but for the links around the torus.
  const width = Math.round((across * (w + 1) - 0.55) * cell), height = Math.round(lift + (down * (h + 1) - 0.55) * cell);
  const inside = (node) => node >= first && node < first + inner;
  const isFlat = (i) => Math.floor(m.from[i] / (w * h)) === Math.floor(m.to[i] / (w * h));
  const shownLinks = [], through = new Map(), links = new Map();
  m.from.forEach((from, i) => {
    if (!inside(from)) return;
    if (isFlat(i) && !isSmall) shownLinks.push(i);
    else through.set(from - first, Math.max(through.get(from - first) || 0, it.link_seconds[i]));
    if (!links.has(from)) links.set(from, []);
    links.get(from).push(i);
  });
  const most = busiestLink(it);
  // The busiest links are drawn last, over the others.
  shownLinks.sort((a, b) => it.link_seconds[a] - it.link_seconds[b]);
  const draw = (context) => {
    context.lineWidth = Math.max(1.5, 0.14 * cell);
    const corners = [];
    for (const i of shownLinks) {
      const [x, y] = place(m.from[i] - first), [u, v] = place(m.to[i] - first);
      // The two directions of a cable lie next to each other; a link around the torus is drawn as a stub at the border.
      const wraps = Math.abs(u - x) > 1.5 * cell || Math.abs(v - y) > 1.5 * cell;
      const [dx, dy] = [Math.sign(u - x) * (wraps ? -1 : 1), Math.sign(v - y) * (wraps ? -1 : 1)];
      const side = 0.1 * cell, long = wraps ? 0.55 : 1;
      context.strokeStyle = hot(it.link_seconds[i], top);
      const [a, b] = [[x - dy * side, y + dx * side], [x + dx * cell * long - dy * side, y + dy * cell * long + dx * side]];
      context.beginPath();
      context.moveTo(...a);
      context.lineTo(...b);
      context.stroke();
      if (i === most) corners.push(a, b);
    }
    const size = isSmall ? cell - (cell > 4 ? 1 : 0) : 0.34 * cell, frame = isSmall ? 0 : Math.max(1, 0.06 * cell);
    const back = variable("--back"), grey = variable("--node");
    for (let node = 0; node < inner; node++) {
      const [x, y] = place(node), edge = size + frame;
      context.fillStyle = back;
      context.fillRect(x - edge / 2, y - edge / 2, edge, edge);
      context.fillStyle = through.get(node) ? hot(through.get(node), top) : grey;
      context.fillRect(x - size / 2, y - size / 2, size, size);
    }
    if (inside(m.from[most]) && !corners.length) {
      const [x, y] = place(m.from[most] - first);
      markBusiest(context, x - size / 2, y - size / 2, size, size);
    }
    if (corners.length) {
      const [[left, right], [upper, lower]] = [0, 1].map((k) => corners.map((corner) => corner[k]).sort((a, b) => a - b)), half = Math.max(0.75, 0.07 * cell);
      markBusiest(context, left - half, upper - half, right - left + 2 * half, lower - upper + 2 * half);
    }
    context.fillStyle = variable("--dim");
    if (cell >= 40) {
      context.font = "10px system-ui, sans-serif";
      for (let node = 0; node < inner; node++) {
        const [x, y] = place(node);
        context.fillText(String(first + node), x + 0.2 * cell, y - 0.22 * cell);
      }
    }
    if (depth < 2) return;
    context.font = `${Math.min(12, Math.max(9, 0.35 * cell))}px system-ui, sans-serif`;
    for (let z = 0; z < depth; z++) {
      const [x, y] = place(z * w * h);
      context.fillText(String(z), isSmall ? x - cell / 2 : x - 0.6 * cell, isSmall ? y - 0.5 * cell - 2 : y - 0.3 * cell);
    }
  };
  const at = (x, y) => {
    const [a, b] = [Math.floor(x / cell / (w + 1)), Math.floor((y - lift) / cell / (h + 1))];
    const [u, v, z] = [Math.floor(x / cell - a * (w + 1) - 0.2), Math.floor((y - lift) / cell - b * (h + 1) - 0.2), b * across + a];
    if (u < 0 || v < 0 || u >= w || v >= h || z >= depth) return "";
    const node = first + u + w * (v + h * z);
    if (node >= first + inner) return "";
    return `node ${node} (${coordinates(node).join(", ")})\n` +
      (links.get(node) || []).map((i) => `to node ${m.to[i]} (${coordinates(m.to[i]).join(", ")}): ${secondsText(it.link_seconds[i])}`).join("\n");
  };
  const which = isSmall ? "the busiest link from it" : `the busiest link from it to another slice (dimension 3${m.sizes.length > 3 ? " and beyond" : ""})`;
  const axes = m.sizes.length === 1 ? "" : ` Across: dimension 1; down: dimension 2${depth > 1 ? "; numbers of slices: dimension 3" : ""}.`;
  const note = "A square is a node" + (isSmall || m.sizes.length > 2 ? `; its colour is ${which}, grey without bytes.` : ".") +
    (isFolded ? " A row has 64 nodes of the ring." : "") + axes + (isSmall ? "" : ` Lines next to each other: the two directions of a cable, each on the right as seen in its direction, grey without bytes.${m.wraps.slice(0, 2).some((wraps, k) => wraps && m.sizes[k] > 2) ? " Lines that end at a border: links around the torus." : ""}`);
  return make("div", {}, picture(width, height, `Links of the grid${name && `, ${name}`}${sliceName()}`, draw, at, [0.2 * cell, lift + 0.2 * cell, cell, cell]),
    make("div", { class: "axis" }, note));
}

const leafKind = () => data.machine.of_nodes ? "nodes" : "PEs";
/** Levels of a tree, the root on top; each vertex has its link up in the upper half and its link down in the lower half. */
function treePicture(it, top, name) {
  const m = data.machine, leaves = m.leaves.length, row = 44, left = 104, wide = 560 - left, levels = m.starts.length;
  const index = new Map(m.level.map((level, i) => [`${level}/${m.vertex[i]}/${m.up[i]}`, i]));
  const most = busiestLink(it), labels = middles(leaves, (leaf) => m.leaves[leaf]);
  const draw = (context) => {
    let framed;
    m.starts.forEach((starts, level) => [true, false].forEach((up) => {
      const y = level * row + (up ? 1 : row / 2), high = row / 2 - 2;
      // Where vertices are narrower than half a pixel, a column shows the busiest of them.
      const columns = new Map();
      for (let vertex = 0; vertex + 1 < starts.length; vertex++) {
        const i = index.get(`${level}/${vertex}/${up}`);
        if (i === undefined) continue;
        const [x, end] = [starts[vertex], starts[vertex + 1]].map((leaf) => left + wide * leaf / leaves);
        const at = end - x < 0.5 ? Math.floor(2 * x) / 2 : x, there = columns.get(at);
        if (!there || it.link_seconds[i] > there.seconds) columns.set(at, { seconds: it.link_seconds[i], isMost: i === most, width: Math.max(0.5, end - x - (end - x > 4 ? 1 : 0)) });
      }
      for (const [x, { seconds, width, isMost }] of columns) {
        context.fillStyle = hot(seconds, top);
        context.fillRect(x, y, width, high);
        if (isMost) framed = [x, y, width, high];
      }
      context.fillStyle = variable("--dim");
      context.font = "12px system-ui, sans-serif";
      context.fillText(up ? "↑" : "↓", left - 14, y + 14);
    }));
    context.fillStyle = variable("--text");
    context.font = "11px system-ui, sans-serif";
    m.starts.forEach((_, level) => context.fillText(m.names[level], 2, level * row + row / 2 + 4));
    labelAxes(context, [left, levels * row + 18, wide, 0], labels, []);
    if (framed) markBusiest(context, ...framed);
  };
  const at = (x, y) => {
    const level = Math.min(levels - 1, Math.floor(y / row)), leaf = Math.min(leaves - 1, Math.floor((x - left) / wide * leaves));
    if (leaf < 0) return "";
    const vertex = m.starts[level].findIndex((_, v) => leaf < m.starts[level][v + 1]);
    const link = (up) => index.has(`${level}/${vertex}/${up}`) ? secondsText(it.link_seconds[index.get(`${level}/${vertex}/${up}`)]) : "no link";
    return `${level === levels - 1 ? m.of_nodes ? `node ${m.leaves[leaf]}` : peName(m.leaves[leaf]) : `part ${vertex} of ${m.names[level]}`}: up ${link(true)}, down ${link(false)}`;
  };
  const [example] = it.top_links.map(([link]) => link.match(/switch \d+\.[\d.]+/)?.[0]).filter(Boolean);
  return make("div", {}, picture(560, levels * row + 18, `Links of the tree${name && `, ${name}`}`, draw, at, [left, 0, wide / leaves, row, 18]),
    make("div", { class: "axis" }, `Rows: the links above ${leafKind()} and above the parts of a height, the largest parts on top. Parallel cables have the colour of the busiest one. ↑ up, ↓ down. Grey: no bytes.` +
      `${example ? ` Names of switches begin with their height, such as ${example}.` : ""} Numbers: ${leafKind()}.`));
}

/** Groups that send over groups that receive, and a last row and column for the PEs of each group. */
function groupPicture(it, top, name) {
  const m = data.machine, n = m.groups, left = margin, cell = Math.max(2, Math.min(28, Math.floor(480 / (n + 2))));
  const size = left + (n + 1) * cell + 6, edge = (k) => left + k * cell + (k === n ? 5 : 0);
  const most = busiestLink(it);
  const cells = new Map(m.from.map((from, i) => [from * (n + 1) + m.to[i], it.link_seconds[i]]));
  const draw = (context) => {
    for (const [at, seconds] of cells) {
      context.fillStyle = hot(seconds, top);
      context.fillRect(edge(at % (n + 1)), edge(Math.floor(at / (n + 1))), cell - (cell > 6 ? 1 : 0), cell - (cell > 6 ? 1 : 0));
    }
    if (most >= 0) markBusiest(context, edge(m.to[most]), edge(m.from[most]), cell - 1, cell - 1);
    context.fillStyle = variable("--text");
    context.font = "11px system-ui, sans-serif";
    const every = Math.ceil(18 / cell);
    for (let k = 0; k <= n; k += k === n || k + every < n ? every : n - k) {
      const text = k === n ? "PEs" : String(k), shift = (cell - context.measureText(text).width) / 2;
      context.fillText(text, edge(k) + Math.max(k === n ? -4 : 0, shift), left - 6);
      context.fillText(text, left - 6 - context.measureText(text).width, edge(k) + cell / 2 + 4);
    }
  };
  const at = (x, y) => {
    const [to, from] = [x, y].map((v) => v >= edge(n) ? n : v < left + n * cell ? Math.floor((v - left) / cell) : -1);
    if (Math.min(from, to) < 0 || !cells.has(from * (n + 1) + to)) return "";
    const [sender, receiver] = from === n ? [`PEs of group ${to}`, "its routers"] : to === n ? [`routers of group ${from}`, "its PEs"]
      : [`group ${from}`, from === to ? "itself" : `group ${to}`];
    return `${sender} to ${receiver}: busiest link ${secondsText(cells.get(from * (n + 1) + to))}`;
  };
  return make("div", {}, picture(size, size, `Busiest link from group to group${name && `, ${name}`}`, draw, at, [left, left, cell, cell]),
    make("div", { class: "axis" }, "Row: group of the sender. Column: group of the receiver. Diagonal: between the routers of a group. Last row and column: links from and to PEs. Grey: no bytes."));
}

/** The busiest links as bars, for a machine that has no picture. */
function listPicture(it, top, name) {
  const links = it.top_links.slice(0, 12), line = 20;
  const inside = links.map(([link, , seconds], i) => `<text x="0" y="${i * line + 13}">${safe(link)}</text>` +
    `<rect x="230" y="${i * line + 2}" width="${Math.max(1, 240 * seconds / top)}" height="${line - 5}" fill="${css("viridis", seconds / top)}"/>` +
    `<text x="${236 + 240 * seconds / top}" y="${i * line + 13}">${secondsText(seconds)}</text>`).join("");
  return links.length ? svg(560, links.length * line, `Busiest links${name && `, ${name}`}`, inside) : make("p", {}, "No message crosses a link.");
}

/** The kind of a drawn link, for the table. */
function linkKind(i) {
  const m = data.machine;
  if (m.layout === "tree") return `${m.names[m.level[i]]}, ${m.up[i] ? "up" : "down"}`;
  if (m.layout === "groups") return m.from[i] === m.groups ? "from PEs" : m.to[i] === m.groups ? "to PEs" : m.from[i] === m.to[i] ? "inside of groups" : "between groups";
  const [from, to] = [m.from[i], m.to[i]].map(coordinates);
  return `dimension ${from.findIndex((at, k) => at !== to[k]) + 1}`;
}
/** The largest and the mean time of each kind of links. */
function kindTable() {
  const kinds = new Map();
  (data.machine.from || data.machine.level).forEach((_, i) => {
    const kind = linkKind(i);
    if (!kinds.has(kind)) kinds.set(kind, []);
    kinds.get(kind).push(i);
  });
  const cells = (it, links) => {
    const seconds = links.map((i) => it.link_seconds[i]);
    return [largest(seconds), seconds.reduce((sum, x) => sum + x, 0) / links.length].map((value) => ({ value, text: secondsText(value) }));
  };
  const heads = ["links", data.machine.layout === "grid" ? "count" : "count, parallel cables as one", ...pair().flatMap(([, name]) => [`largest ${name}`, `mean ${name}`])];
  return table("kinds of links", heads, [...kinds].map(([kind, links]) => [kind, links.length, ...pair().flatMap(([it]) => cells(it, links))]));
}

const machine = {
  id: "machine", title: "Machine",
  exists: () => Boolean(data.machine) && data.placements.length > 0,
  lacks: "It needs recorded messages, and a machine whose links are known.",
  draw(section) {
    const { layout, sizes } = data.machine;
    const busiest = (it) => it.top_links.length ? it.top_links[0][2] : 0;
    const drawn = layout === "links" ? busiest : (it) => largest(it.link_seconds);
    const top = Math.max(...pair().map(([it]) => drawn(it)), 1e-300);
    const hasSlices = layout === "grid" && sizes.length > 3;
    if (hasSlices && !slice.length) slice = busiestSlice(after());
    const draw = { grid: gridPicture, tree: treePicture, groups: groupPicture, links: listPicture }[layout];
    if (hasSlices) section.append(sliceChoice());
    const holder = make("div", { class: "pair" });
    for (const [it, name] of pair()) {
      const list = () => table("busiest links", ["link", "bytes", "bytes over bandwidth"], it.top_links.map(([link, bytes, seconds]) =>
        [link, { value: bytes, text: bytesText(bytes) }, { value: seconds, text: secondsText(seconds) }]));
      holder.append(make("div", {}, make("h3", {}, headed(name, busiestWords(it))), draw(it, top, name),
        asText(`The ${countText(it.top_links.length, "busiest link")}${spoken(it, name)}`, list)));
    }
    if (top > 1e-300) section.append(legend("viridis", "0 s", secondsText(top), "bytes of a link over its bandwidth"));
    section.append(holder);
    if (pair().some(([it]) => busiest(it) > 1.001 * top)) section.append(make("p", { class: "note" }, "The busiest link is not in the pictures, as links inside of nodes; the list below a picture has it."));
    if (layout !== "links") section.append(make("p", { class: "note" }, "Frame: the busiest link, or one of them, if the picture shows it."), asText("Links by kind as a table", kindTable));
    const assumed = data.assumed_bandwidth ? ` (assumed: ${bytesText(data.assumed_bandwidth)}/s for each link)` : "";
    // A weight has no unit.
    const most = largest(after().load_seconds), name = spoken(after(), after().name);
    const slow = () => busiest(after()) > most
      ? ` ${secondsText(busiest(after()))}${name} is more than the largest load (${loadText(most)}), so messages may take longer than work${data.assumed_bandwidth ? ", if links are that slow" : ""}.`
      : ` ${secondsText(busiest(after()))}${name} is ${percentText(busiest(after()) / most)} of the largest load (${loadText(most)}): if messages and work overlap, work decides.`;
    const verdict = !data.weights && most > 0 ? slow() : "";
    const isRecorded = ["before", "as recorded", "in blocks"].includes(before().name), period = isRecorded ? " for the messages of the period before the step" : "";
    return `The busiest link of ${data.topology} needs ${pair().map(([it, name]) => `${secondsText(busiest(it))}${spoken(it, name)}`).join(", ")}${period}${assumed}.${verdict}`;
  },
};
