// Panel 4: the machine, its links coloured by bytes over bandwidth on one scale.
/** The coordinates of the shown slice in the dimensions beyond the third; empty until it is chosen. */
let slice = [];
/** The busiest links, which have a frame unless there are many. */
const framed = (it) => new Set(it.busiest_links[0] <= 8 ? it.busiest_drawn : []);
/** The busiest links and their time, of more than three their number and one of them; then the number of those that are nearly as busy. */
function busiestWords({ top_links, busiest_links: [equal, close] }) {
  if (!top_links.length) return "no message crosses a link";
  const [link, , most] = top_links[0], names = top_links.slice(0, equal).map(([name]) => name);
  const further = close > equal ? `; ${close - equal} more within 5 %` : "";
  const which = equal > 3 ? `${equal} busiest links, such as ${link}` : `busiest: ${listText(names)}`;
  return `${which}, ${secondsText(most)}${equal > 1 ? " each" : ""}${further}`;
}
/** Marks what is between two corners as the busiest link. */
function markBusiest(context, x, y, wide, high) {
  context.strokeStyle = variable("--frame");
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 1, wide + 2, high + 2);
}
const hot = (seconds, top) => seconds ? css("viridis", seconds / top) : variable("--line");
const coordinates = (node) => data.machine.sizes.map((size) => {
  const at = node % size;
  node = Math.floor(node / size);
  return at;
});
/** The slice in which the busiest link begins. */
const busiestSlice = (it) => coordinates(data.machine.from[it.busiest_drawn[0]] || 0).slice(3);
const sliceName = () => slice.length ? `, slice ${slice.map((at, k) => `${at} of dimension ${k + 4}`).join(", ")}` : "";
/** One selector for each dimension beyond the third. */
function sliceChoice() {
  const select = (change) => { change(); redraw(); };
  const chosen = data.machine.sizes.slice(3).map((size, k) => {
    const options = Array.from({ length: size }, (_, at) => make("option", { value: at, selected: at === slice[k] }, String(at)));
    const onchange = (event) => select(() => { slice[k] = Number(event.target.value); });
    return make("label", {}, ` dimension ${k + 4}: `, make("select", { "aria-label": `Coordinate in dimension ${k + 4}`, onchange }, ...options));
  });
  return make("p", {}, "The pictures show dimensions 1 to 3 at ", ...chosen, " ", make("button", { class: "plain", onclick: () => select(() => { slice = busiestSlice(after()); }) }, "Show the busiest slice"));
}

/** How a slice of a grid is drawn: a dimension across the page, one down the page, and the third as pictures side by side. */
function gridLayout() {
  // A slice has up to three dimensions.
  const { sizes } = data.machine, inner = sizes.slice(0, 3).reduce((product, size) => product * size, 1);
  // A long ring or line is folded into rows.
  const isFolded = inner > 64 && Math.max(...sizes.slice(0, 3)) === inner;
  const [w, h = 1, depth = 1] = isFolded ? [64, Math.ceil(inner / 64)] : sizes;
  const first = slice.reduceRight((sum, at, k) => sum * sizes[k + 3] + at, 0) * inner;
  const across = depth < 4 ? depth : Math.ceil(Math.sqrt(depth)), down = Math.ceil(depth / across);
  const side = Math.max(3, Math.min(80, Math.floor(560 / (across * (w + 1))), Math.floor(480 / (down * (h + 1)))));
  // On small squares there is no place for links; each square shows the busiest of its node.
  const isSmall = side < 16, lift = isSmall && depth > 1 ? 12 : 0;
  /** The middle of a node of the slice. */
  const place = (node) => {
    const z = Math.floor(node / (w * h)), y = Math.floor(node / w) % h, x = node % w;
    return [((z % across) * (w + 1) + x + 0.7) * side, lift + (Math.floor(z / across) * (h + 1) + y + 0.7) * side];
  };
  const square = isSmall ? side - (side > 4 ? 1 : 0) : 0.34 * side;
  return { isFolded, inner, w, h, depth, first, across, down, side, isSmall, lift, place, square };
}
/** The links that are drawn as lines, the busiest ones last; and by node, the time that its square shows. */
function linksOfSlice(it, { inner, first, w, h, isSmall }) {
  const { from, to } = data.machine, lines = [], squares = new Map();
  from.forEach((node, i) => {
    if (node < first || node >= first + inner) return;
    const isFlat = Math.floor(node / (w * h)) === Math.floor(to[i] / (w * h));
    if (isFlat && !isSmall) lines.push(i);
    else squares.set(node - first, Math.max(squares.get(node - first) || 0, it.link_seconds[i]));
  });
  lines.sort((a, b) => it.link_seconds[a] - it.link_seconds[b]);
  return { lines, squares };
}
/** Draws a link as a line; returns the left and upper corner of the box around what squares do not cover, its width and its height. */
function drawLine(context, i, colour, { first, side, place, square }) {
  const { from, to } = data.machine, [x, y] = place(from[i] - first), [u, v] = place(to[i] - first);
  // The two directions of a cable lie next to each other; a link around the torus is drawn as a stub at the border.
  const wraps = Math.abs(u - x) > 1.5 * side || Math.abs(v - y) > 1.5 * side;
  const [dx, dy] = [Math.sign(u - x) * (wraps ? -1 : 1), Math.sign(v - y) * (wraps ? -1 : 1)];
  const apart = 0.1 * side, at = (long) => [x + dx * long - dy * apart, y + dy * long + dx * apart], end = wraps ? 0.55 * side : side;
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(...at(0));
  context.lineTo(...at(end));
  context.stroke();
  const ends = [at(square / 2), at(wraps ? end : end - square / 2)], half = Math.max(0.75, 0.07 * side);
  const [left, right, upper, lower] = [0, 1].flatMap((k) => ends.map((end) => end[k]).sort((a, b) => a - b));
  return [left - half, upper - half, right - left + 2 * half, lower - upper + 2 * half];
}
/** The numbers of nodes, and above slices those of the third dimension. */
function drawNumbers(context, { inner, w, h, depth, first, side, isSmall, place }) {
  writeIn(context, "--dim", 10);
  for (let node = 0; node < inner && side >= 40; node++) {
    const [x, y] = place(node);
    context.fillText(String(first + node), x + 0.2 * side, y - 0.22 * side);
  }
  writeIn(context, "--dim", Math.min(12, Math.max(9, 0.35 * side)));
  for (let z = 0; z < depth && depth > 1; z++) {
    const [x, y] = place(z * w * h);
    context.fillText(String(z), isSmall ? x - side / 2 : x - 0.6 * side, isSmall ? y - 0.5 * side - 2 : y - 0.3 * side);
  }
}
/** What squares and lines of the picture are. */
function gridNote({ isFolded, depth, isSmall }) {
  const { sizes, wraps } = data.machine, further = sizes.length > 3 ? " and beyond" : "";
  const square = isSmall ? "the busiest link that begins there" : sizes.length > 2 ? `the busiest link from there to another slice (dimension 3${further})` : "";
  const around = !isSmall && wraps.slice(0, 2).some((wraps, k) => wraps && sizes[k] > 2);
  return [
    square ? `A square is a node; its colour is that of ${square}.` : "A square is a node.",
    isFolded && "A row has 64 nodes of the line.",
    !isFolded && sizes.length > 1 && `Across: dimension 1; down: dimension 2${depth > 1 ? "; numbers of slices: dimension 3" : ""}.`,
    !isSmall && "Two lines side by side: the two directions of a cable, as traffic on the right.",
    around && "Lines that end at a border: links around the torus; each is drawn where it begins.",
    square ? "Grey: no bytes." : "Grey lines: no bytes.",
  ].filter(Boolean).join(" ");
}
function gridPicture(it, top, name) {
  const layout = gridLayout(), { inner, w, h, depth, first, across, down, side, isSmall, lift, place, square } = layout;
  const { lines, squares } = linksOfSlice(it, layout), { from, to } = data.machine, { link_seconds: seconds } = it;
  // Without the space behind the last slices, but for the links around the torus.
  const width = Math.round((across * (w + 1) - 0.55) * side), height = Math.round(lift + (down * (h + 1) - 0.55) * side);
  const draw = (context) => {
    context.lineWidth = Math.max(1.5, 0.14 * side);
    const boxes = new Map(lines.map((i) => [i, drawLine(context, i, hot(seconds[i], top), layout)]));
    const edge = square + (isSmall ? 0 : Math.max(1, 0.06 * side)), back = variable("--back"), grey = variable("--node");
    for (let node = 0; node < inner; node++) {
      const [x, y] = place(node);
      context.fillStyle = back;
      context.fillRect(x - edge / 2, y - edge / 2, edge, edge);
      context.fillStyle = squares.get(node) ? hot(squares.get(node), top) : grey;
      context.fillRect(x - square / 2, y - square / 2, square, square);
    }
    for (const i of framed(it)) {
      const isHere = from[i] >= first && from[i] < first + inner, [x, y] = place(from[i] - first);
      if (isHere) markBusiest(context, ...(boxes.get(i) || [x - square / 2, y - square / 2, square, square]));
    }
    drawNumbers(context, layout);
  };
  const at = (column, row) => {
    const [x, y] = [column % (w + 1), row % (h + 1)], z = Math.floor(row / (h + 1)) * across + Math.floor(column / (w + 1));
    const node = first + x + w * (y + h * z);
    if (x === w || y === h || z >= depth || node >= first + inner) return "";
    const named = (node) => `node ${node} (${coordinates(node).join(", ")})`;
    return [named(node), ...from.flatMap((it, i) => it === node ? [`to ${named(to[i])}: ${secondsText(seconds[i])}`] : [])].join("\n");
  };
  const label = `Links of the grid${name && `, ${name}`}${sliceName()}`;
  return picture(width, height, label, draw, at, [0.2 * side, lift + 0.2 * side, side, side, across * (w + 1) - 1, down * (h + 1) - 1]);
}

const leafKind = () => data.machine.of_nodes ? "nodes" : "PEs";
/** Levels of a tree, the root on top; each vertex has its link up in the upper half and its link down in the lower half. */
function treePicture(it, top, name) {
  const m = data.machine, leaves = m.leaves.length, row = 44, left = 104, wide = 560 - left, levels = m.starts.length;
  const links = (level, up) => m.level.flatMap((it, i) => it === level && m.up[i] === up ? [i] : []);
  const most = framed(it), labels = middles(leaves, (leaf) => m.leaves[leaf]);
  const draw = (context) => {
    const frames = [];
    m.starts.forEach((starts, level) => [true, false].forEach((up) => {
      const y = level * row + (up ? 1 : row / 2), high = row / 2 - 2;
      const edge = (i, k) => left + wide * starts[m.vertex[i] + k] / leaves, place = (i) => [edge(i, 0), edge(i, 1) - edge(i, 0)];
      for (const { item: i, x, width } of visibleBars(links(level, up), wide, (i) => it.link_seconds[i], place)) {
        context.fillStyle = hot(it.link_seconds[i], top);
        context.fillRect(x, y, width, high);
        if (most.has(i)) frames.push([x, y, width, high]);
      }
      writeIn(context, "--dim", 12);
      context.fillText(up ? "↑" : "↓", left - 14, y + 14);
    }));
    writeIn(context, "--text", 11);
    m.starts.forEach((_, level) => context.fillText(m.names[level], 2, level * row + row / 2 + 4));
    labelAxes(context, [left, levels * row + 18, wide, 0], labels, []);
    frames.forEach((frame) => markBusiest(context, ...frame));
  };
  const at = (leaf, level) => {
    const vertex = m.starts[level].findIndex((_, v) => leaf < m.starts[level][v + 1]);
    const link = (up) => {
      const i = links(level, up).find((i) => m.vertex[i] === vertex);
      return i === undefined ? "no link" : secondsText(it.link_seconds[i]);
    };
    const nameOfLeaf = m.of_nodes ? `node ${m.leaves[leaf]}` : peName(m.leaves[leaf]);
    const below = level < levels - 1 ? `part ${vertex} of ${m.names[level]}` : nameOfLeaf;
    return `${below}: up ${link(true)}, down ${link(false)}`;
  };
  return picture(560, levels * row + 18, `Links of the tree${name && `, ${name}`}`, draw, at, [left, 0, wide / leaves, row, leaves, levels]);
}
/** What the rows of the picture are, and how switches are called. */
function treeNote() {
  const names = pair().flatMap(([it]) => it.top_links.map(([link]) => link.match(/switch (\d+)\.(\d+)(?:\.(\d+))?/))).filter(Boolean);
  const called = names.slice(0, 1).map(([name, height, part, number]) => ` The name ${name} means height ${height}, part ${part}${number ? `, switch ${number}` : ""}. ${partNote}`);
  return `A row: the links above ${leafKind()}, or above the parts of a height; ↑ up, ↓ down. Parallel cables have the colour of the busiest one. Grey: no bytes. Numbers: ${leafKind()}.${called.join("")}`;
}

/** Groups that send over groups that receive, and a last row and column for the PEs of each group. */
function groupPicture(it, top, name) {
  const m = data.machine, n = m.groups, left = margin, side = Math.max(2, Math.min(28, Math.floor(480 / (n + 2))));
  const size = left + (n + 1) * side, edge = (k) => left + k * side;
  const cells = new Map(m.from.map((from, i) => [from * (n + 1) + m.to[i], it.link_seconds[i]]));
  const draw = (context) => {
    for (const [at, seconds] of cells) {
      context.fillStyle = hot(seconds, top);
      context.fillRect(edge(at % (n + 1)), edge(Math.floor(at / (n + 1))), side - (side > 6 ? 1 : 0), side - (side > 6 ? 1 : 0));
    }
    // A line before the row and the column of the PEs.
    writeIn(context, "--text", 11);
    context.fillRect(edge(n) - 1, left, 1, size - left);
    context.fillRect(left, edge(n) - 1, size - left, 1);
    framed(it).forEach((i) => markBusiest(context, edge(m.to[i]), edge(m.from[i]), side - 1, side - 1));
    const every = Math.ceil(18 / side);
    for (let k = 0; k <= n; k += k === n || k + every < n ? every : n - k) {
      const text = k === n ? "PEs" : String(k), { width } = context.measureText(text);
      context.fillText(text, Math.min(edge(k) + (side - width) / 2, size - width), left - 6);
      context.fillText(text, left - 6 - width, edge(k) + side / 2 + 4);
    }
  };
  const at = (to, from) => {
    if (!cells.has(from * (n + 1) + to)) return "";
    const [sender, receiver] = from === n ? [`PEs of group ${to}`, "its routers"] : to === n ? [`routers of group ${from}`, "its PEs"]
      : [`group ${from}`, from === to ? "itself" : `group ${to}`];
    return `${sender} to ${receiver}: busiest link ${secondsText(cells.get(from * (n + 1) + to))}`;
  };
  return picture(size, size, `Busiest link from group to group${name && `, ${name}`}`, draw, at, [left, left, side, side, n + 1, n + 1]);
}
const groupNote = () => "Row: group of the sender. Column: group of the receiver. Diagonal: between the routers of a group. Last row and column: links from and to PEs. Grey: no bytes.";

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
  const kinds = (data.machine.from || data.machine.level).map((_, i) => linkKind(i));
  const row = (kind) => {
    const times = pair().map(([it]) => it.link_seconds.filter((_, i) => kinds[i] === kind));
    const numbers = times.flatMap((seconds) => [largest(seconds), sum(seconds) / seconds.length]);
    return [kind, times[0].length, ...numbers.map((number) => cell(number, secondsText))];
  };
  const heads = ["links", data.machine.layout === "grid" ? "count" : "count, parallel cables as one", ...pair().flatMap(([, name]) => [`largest ${name}`, `mean ${name}`])];
  return table("kinds of links", heads, [...new Set(kinds)].map(row));
}

/** The most nodes and spaces next to each other in a picture of a grid, because they are three pixels wide at least. */
const mostAcross = 400;
/** How the machine is drawn: as it is described, but a grid that is too long as the list of its busiest links. */
function shownLayout() {
  if (data.machine.layout !== "grid") return data.machine.layout;
  const { across, down, w, h } = gridLayout();
  return Math.max(across * (w + 1), down * (h + 1)) > mostAcross ? "links" : "grid";
}

const machine = {
  id: "machine", title: "Machine",
  exists: () => Boolean(data.machine) && data.placements.length > 0,
  lacks: "It needs recorded messages, and a machine whose links are known.",
  draw(section) {
    const { sizes } = data.machine, layout = shownLayout();
    const busiest = (it) => it.top_links[0]?.[2] ?? 0, drawn = layout === "links" ? busiest : (it) => largest(it.link_seconds);
    const top = Math.max(...pair().map(([it]) => drawn(it)), 1e-300);
    const hasSlices = layout === "grid" && sizes.length > 3;
    if (hasSlices && !slice.length) slice = busiestSlice(after());
    const [draw, describe] = { grid: [gridPicture, () => gridNote(gridLayout())], tree: [treePicture, treeNote], groups: [groupPicture, groupNote], links: [listPicture] }[layout];
    if (hasSlices) section.append(sliceChoice());
    if (top > 1e-300) section.append(legend("viridis", "0 s", secondsText(top), "bytes of a link over its bandwidth"));
    section.append(sideBySide((it, name) => {
      const list = () => table(`busiest links${spoken(it, name)}`, ["link", "bytes", "bytes over bandwidth"],
        it.top_links.map(([link, bytes, seconds]) => [link, cell(bytes, bytesText), cell(seconds, secondsText)]));
      return make("div", {}, make("h3", {}, headed(name, busiestWords(it))), draw(it, top, name),
        asText(`The ${countText(it.top_links.length, "busiest link")}${spoken(it, name)}`, list));
    }));
    if (describe) section.append(note(describe()));
    if (pair().some(([it]) => busiest(it) > 1.001 * top)) section.append(note("The busiest link is not in the pictures, as links inside of nodes; the list below a picture has it."));
    if (layout !== "links" && pair().some(([it]) => framed(it).size)) section.append(note("Frames: the busiest links. If more than 8 are equally busy, there are none."));
    if (layout !== "links") section.append(asText("Links by kind as a table", kindTable));
    const assumed = data.assumed_bandwidth ? ` (assumed: ${bytesText(data.assumed_bandwidth)}/s for each link)` : "";
    // A weight has no unit.
    const most = largest(after().load_seconds), name = spoken(after(), after().name);
    const slow = () => busiest(after()) > most
      ? ` ${secondsText(busiest(after()))}${name} is more than the largest load (${loadText(most)}), so messages may take longer than work${data.assumed_bandwidth ? ", if links are that slow" : ""}.`
      : ` ${secondsText(busiest(after()))}${name} is ${percentText(busiest(after()) / most)} of the largest load (${loadText(most)}), so work limits the program if messages overlap with it.`;
    const verdict = !data.weights && most > 0 ? slow() : "";
    const isRecorded = ["before", "as recorded", "in blocks"].includes(before().name), period = isRecorded ? ` for the messages of the ${data.run_steps.length ? "period before the step" : "recorded period"}` : "";
    return `The busiest link of ${data.topology} needs ${compared((it) => secondsText(busiest(it)))}${period}${assumed}.${verdict}`;
  },
};
