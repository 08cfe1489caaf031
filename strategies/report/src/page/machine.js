// Panel 4: the machine, its links coloured by bytes over bandwidth on one scale.
/** The coordinates of the shown slice in the dimensions beyond the third; empty until it is chosen. */
let slice = [];
/** The busiest links, which have a frame unless there are many. */
const framed = (it) => new Set(it.busiest_links[0] <= 8 ? it.busiest_drawn : []);
/** The busiest links and their time, of more than three their number and one; then how many are nearly as busy. */
function busiestWords({ top_links, busiest_links: [equal, close] }) {
  if (!top_links.length) return "no message crosses a link";
  const [link, , most] = top_links[0], names = top_links.slice(0, equal).map(([name]) => name);
  const further = close > equal ? `; ${close - equal} more within 5 %` : "";
  const which = equal > 3 ? `${equal} busiest links, such as ${link}` : `busiest: ${listText(names)}`;
  return `${which}, ${secondsText(most)}${equal > 1 ? " each" : ""}${further}`;
}
function markBusiest(context, [x, y, wide, high]) {
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
const nodeName = (node) => `node ${node} (${coordinates(node).join(", ")})`;
/** The slice in which the busiest link begins. */
const busiestSlice = (it) => coordinates(data.machine.from[it.busiest_drawn[0]] || 0).slice(3);
const sliceName = () => slice.length ? `, slice ${slice.map((at, k) => `${at} of dimension ${k + 4}`).join(", ")}` : "";
function chooseSlice(chosen) {
  slice = chosen;
  redraw();
}
/** One selector for each dimension beyond the third. */
function sliceChoice() {
  const selectors = data.machine.sizes.slice(3).map((size, k) => {
    const label = `Coordinate in dimension ${k + 4}`, choose = (at) => chooseSlice(slice.with(k, at));
    return make("label", {}, ` dimension ${k + 4}: `, select(label, [...Array(size).keys()], slice[k], choose));
  });
  const onclick = () => chooseSlice(busiestSlice(after()));
  return make("p", {}, "The pictures show dimensions 1 to 3 at ", ...selectors, " ",
    make("button", { class: "plain", onclick }, "Show the busiest slice"));
}

/** How a slice is drawn: a dimension across the page, one down the page, and the third as pictures side by side. */
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
/** The line of a link between the squares of its nodes: its left and upper border, its width and its height. */
function linkBox(i, { first, side, place, square }) {
  const [[x, y], [u, v]] = [data.machine.from, data.machine.to].map((ends) => place(ends[i] - first));
  // The two directions of a cable lie next to each other; a link around the torus is drawn as a stub at the border.
  const wraps = Math.abs(u - x) > 1.5 * side || Math.abs(v - y) > 1.5 * side;
  const [dx, dy] = [u - x, v - y].map((way) => Math.sign(way) * (wraps ? -1 : 1));
  const begin = square / 2, end = wraps ? 0.55 * side : side - begin, middle = (begin + end) / 2;
  const thick = Math.max(1.5, 0.14 * side), [wide, high] = dx ? [end - begin, thick] : [thick, end - begin];
  return [x + dx * middle - dy * 0.1 * side - wide / 2, y + dy * middle + dx * 0.1 * side - high / 2, wide, high];
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
function gridNote() {
  const { isFolded, depth, isSmall } = gridLayout(), { sizes, wraps } = data.machine;
  const further = sizes.length > 3 ? " and beyond" : "";
  const square = isSmall ? "the busiest link that begins there"
    : sizes.length > 2 ? `the busiest link from there to another slice (dimension 3${further})` : "";
  const around = !isSmall && wraps.slice(0, 2).some((wraps, k) => wraps && sizes[k] > 2);
  return [
    square ? `A square is a node; its colour is that of ${square}.` : "A square is a node.",
    isFolded && "A row has 64 nodes of the line.",
    !isFolded && sizes.length > 1 && "Across: dimension 1; down: dimension 2" +
      `${depth > 1 ? "; numbers of slices: dimension 3" : ""}.`,
    !isSmall && "Two lines side by side: the two directions of a cable, as traffic on the right.",
    around && "Lines that end at a border: links around the torus; each is drawn where it begins.",
    square ? "Grey: no bytes." : "Grey lines: no bytes.",
  ].filter(Boolean).join(" ");
}
function gridPicture(it, top, named) {
  const layout = gridLayout();
  const { inner, w, h, depth, first, across, down, side, isSmall, lift, place, square } = layout;
  const { lines, squares } = linksOfSlice(it, layout), { from, to } = data.machine, { link_seconds: seconds } = it;
  // Without the space behind the last slices, but for the links around the torus.
  const width = Math.round((across * (w + 1) - 0.55) * side);
  const height = Math.round(lift + (down * (h + 1) - 0.55) * side);
  const boxes = new Map(lines.map((i) => [i, linkBox(i, layout)]));
  const squareAt = (node, size) => place(node).map((middle) => middle - size / 2).concat(size, size);
  const draw = (context) => {
    boxes.forEach((box, i) => fill(context, hot(seconds[i], top), box));
    const edge = square + (isSmall ? 0 : Math.max(1, 0.06 * side));
    const [back, grey] = ["--back", "--node"].map(variable);
    for (let node = 0; node < inner; node++) {
      fill(context, back, squareAt(node, edge));
      fill(context, squares.get(node) ? hot(squares.get(node), top) : grey, squareAt(node, square));
    }
    const busiest = [...framed(it)].filter((i) => from[i] >= first && from[i] < first + inner);
    busiest.forEach((i) => markBusiest(context, boxes.get(i) || squareAt(from[i] - first, square)));
    drawNumbers(context, layout);
  };
  const at = (column, row) => {
    const x = column % (w + 1), y = row % (h + 1);
    const z = Math.floor(row / (h + 1)) * across + Math.floor(column / (w + 1));
    const node = first + x + w * (y + h * z);
    if (x === w || y === h || z >= depth || node >= first + inner) return "";
    const links = from.flatMap((it, i) => it === node ? [`to ${nodeName(to[i])}: ${secondsText(seconds[i])}`] : []);
    return [nodeName(node), ...links].join("\n");
  };
  const cells = [0.2 * side, lift + 0.2 * side, side, side, across * (w + 1) - 1, down * (h + 1) - 1];
  return picture(width, height, `Links of the grid${named}${sliceName()}`, draw, at, cells);
}

/** Levels of a tree, the root on top; the upper half of a vertex is its link up, the lower half its link down. */
function treePicture(it, top, named) {
  const m = data.machine, leaves = m.leaves.length, row = 44, left = 104, wide = 560 - left, levels = m.starts.length;
  const links = (level, up) => m.level.flatMap((it, i) => it === level && m.up[i] === up ? [i] : []);
  const most = framed(it), labels = middles(leaves, (leaf) => m.leaves[leaf]);
  const draw = (context) => {
    const frames = [];
    m.starts.forEach((starts, level) => [true, false].forEach((up) => {
      const y = level * row + (up ? 1 : row / 2), high = row / 2 - 2;
      const edge = (vertex) => left + wide * starts[vertex] / leaves;
      const place = (i) => [edge(m.vertex[i]), edge(m.vertex[i] + 1) - edge(m.vertex[i])];
      for (const { item: i, x, width } of visibleBars(links(level, up), wide, (i) => it.link_seconds[i], place)) {
        fill(context, hot(it.link_seconds[i], top), [x, y, width, high]);
        if (most.has(i)) frames.push([x, y, width, high]);
      }
      writeIn(context, "--dim", 12);
      context.fillText(up ? "↑" : "↓", left - 14, y + 14);
    }));
    writeIn(context, "--text", 11);
    m.starts.forEach((_, level) => context.fillText(m.names[level], 2, level * row + row / 2 + 4));
    labelAxes(context, [left, levels * row + 18, wide, 0], labels, []);
    frames.forEach((frame) => markBusiest(context, frame));
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
  const cells = [left, 0, wide / leaves, row, leaves, levels];
  return picture(560, levels * row + 18, `Links of the tree${named}`, draw, at, cells);
}
/** What the rows of the picture are, and how switches are called. */
function treeNote() {
  const leaves = data.machine.of_nodes ? "nodes" : "PEs", links = pair().flatMap(([it]) => it.top_links);
  const [name, height, part, number] = links.join("\n").match(/switch (\d+)\.(\d+)(?:\.(\d+))?/) || [];
  const called = `The name ${name} means height ${height}, part ${part}${number ? `, switch ${number}` : ""}.`;
  return words("tree").replaceAll("LEAVES", leaves) + (name ? ` ${called} ${words("part")}` : "");
}

/** Groups that send over groups that receive, and a last row and column for the PEs of each group. */
function groupPicture(it, top, named) {
  const { groups: n, from, to } = data.machine, side = Math.max(2, Math.min(28, Math.floor(480 / (n + 2))));
  const left = margin, size = left + (n + 1) * side, edge = (k) => left + k * side, square = side - (side > 6 ? 1 : 0);
  const cells = new Map(from.map((from, i) => [from * (n + 1) + to[i], it.link_seconds[i]]));
  const draw = (context) => {
    cells.forEach((seconds, at) => fill(context, hot(seconds, top),
      [edge(at % (n + 1)), edge(Math.floor(at / (n + 1))), square, square]));
    // A line before the row and the column of the PEs.
    writeIn(context, "--text", 11);
    context.fillRect(edge(n) - 1, left, 1, size - left);
    context.fillRect(left, edge(n) - 1, size - left, 1);
    framed(it).forEach((i) => markBusiest(context, [edge(to[i]), edge(from[i]), side - 1, side - 1]));
    const every = Math.ceil(18 / side);
    for (let k = 0; k <= n; k += k === n || k + every < n ? every : n - k) {
      const text = k === n ? "PEs" : String(k), { width } = context.measureText(text);
      context.fillText(text, Math.min(edge(k) + (side - width) / 2, size - width), left - 6);
      context.fillText(text, left - 6 - width, edge(k) + side / 2 + 4);
    }
  };
  const at = (to, from) => {
    const seconds = cells.get(from * (n + 1) + to);
    if (seconds === undefined) return "";
    const [sender, receiver] = from === n ? [`PEs of group ${to}`, "its routers"]
      : to === n ? [`routers of group ${from}`, "its PEs"]
      : [`group ${from}`, from === to ? "itself" : `group ${to}`];
    return `${sender} to ${receiver}: busiest link ${secondsText(seconds)}`;
  };
  const label = `Busiest link from group to group${named}`;
  return picture(size, size, label, draw, at, [left, left, side, side, n + 1, n + 1]);
}

/** The busiest links as bars, for a machine that has no picture. */
function listPicture(it, top, named) {
  const links = it.top_links.slice(0, 12), line = 20;
  if (!links.length) return make("p", {}, "No message crosses a link.");
  const bars = links.map(([link, , seconds], i) => svgText(0, i * line + 13, link) +
    svgBar([230, i * line + 1, 240 * seconds / top, line - 5], css("viridis", seconds / top), secondsText(seconds)));
  return svg(560, links.length * line, `Busiest links${named}`, bars.join(""));
}

function linkKind(i) {
  const m = data.machine, from = m.from?.[i], to = m.to?.[i];
  if (m.layout === "tree") return `${m.names[m.level[i]]}, ${m.up[i] ? "up" : "down"}`;
  if (m.layout === "grid") {
    const [begin, end] = [from, to].map(coordinates);
    return `dimension ${begin.findIndex((at, k) => at !== end[k]) + 1}`;
  }
  if (from === m.groups) return "from PEs";
  return to === m.groups ? "to PEs" : from === to ? "inside of groups" : "between groups";
}
/** The largest and the mean time of each kind of links. */
function kindTable() {
  const kinds = after().link_seconds.map((_, i) => linkKind(i));
  const times = (it, kind) => it.link_seconds.filter((_, i) => kinds[i] === kind);
  const mean = (list) => sum(list) / list.length;
  const columns = pair().flatMap(([it, name]) => [
    [`largest ${name}`, (kind) => largest(times(it, kind)), secondsText],
    [`mean ${name}`, (kind) => mean(times(it, kind)), secondsText],
  ]);
  const count = data.machine.layout === "grid" ? "count" : "count, parallel cables as one";
  const first = [["links", (kind) => kind], [count, (kind) => times(after(), kind).length]];
  return table("kinds of links", [...first, ...columns], [...new Set(kinds)]);
}

/** The most nodes and spaces next to each other in a picture of a grid, because they are three pixels wide at least. */
const mostAcross = 400;
/** How the machine is drawn: as it is described, but a grid that is too long as the list of its busiest links. */
function shownLayout() {
  if (data.machine.layout !== "grid") return data.machine.layout;
  const { across, down, w, h } = gridLayout();
  return Math.max(across * (w + 1), down * (h + 1)) > mostAcross ? "links" : "grid";
}
const busiestSeconds = (it) => it.top_links[0]?.[2] ?? 0;
/** The time of the busiest link in a picture, whose times are rounded. */
function drawnSeconds(it) {
  const drawn = largest(it.link_seconds), most = busiestSeconds(it);
  return shownLayout() === "links" || most < 1.001 * drawn ? most : drawn;
}
/** Whether the links or the loads limit the program. */
function limitText() {
  const most = largest(after().load_seconds), link = busiestSeconds(after());
  // A weight has no unit.
  if (data.weights || !most) return "";
  const load = `the largest load (${loadText(most)})`;
  const assumed = data.assumed_bandwidth ? ", if links are that slow" : "";
  const slow = `more than ${load}, so messages may take longer than work${assumed}`;
  const fast = `${percentText(link / most)} of ${load}, so work limits the program if messages overlap with it`;
  return ` ${secondsText(link)}${spoken(after())} is ${link > most ? slow : fast}.`;
}

const machine = {
  id: "machine", title: "Machine",
  exists: () => Boolean(data.machine) && data.placements.length > 0,
  lacks: "It needs recorded messages, and a machine whose links are known.",
  draw() {
    const layout = shownLayout(), isDrawn = layout !== "links";
    const hasSlices = layout === "grid" && data.machine.sizes.length > 3;
    if (hasSlices && !slice.length) slice = busiestSlice(after());
    const top = Math.max(...pair().map(([it]) => drawnSeconds(it)), 1e-300);
    const [draw, about] = { grid: [gridPicture, gridNote], tree: [treePicture, treeNote],
      groups: [groupPicture, () => words("groups")], links: [listPicture] }[layout];
    const columns = [["link", ([link]) => link], ["bytes", ([, bytes]) => bytes, bytesText],
      ["bytes over bandwidth", ([, , seconds]) => seconds, secondsText]];
    const notes = [
      about?.(),
      pair().some(([it]) => busiestSeconds(it) > 1.001 * top) && words("elsewhere"),
      isDrawn && pair().some(([it]) => framed(it).size) && words("frames"),
    ];
    const assumed = data.assumed_bandwidth ? ` (assumed: ${bytesText(data.assumed_bandwidth)}/s for each link)` : "";
    const isRecorded = ["before", "as recorded", "in blocks"].includes(before().name);
    const period = data.run_steps.length ? "period before the step" : "recorded period";
    const messages = isRecorded ? ` for the messages of the ${period}` : "";
    const needs = compared((it) => secondsText(busiestSeconds(it))) + messages + assumed;
    return [
      `The busiest link of ${data.topology} needs ${needs}.${limitText()}`,
      hasSlices && sliceChoice(),
      top > 1e-300 && legend("viridis", "0 s", secondsText(top), "bytes of a link over its bandwidth"),
      sideBySide(busiestWords, (it, name) => [
        draw(it, top, name && `, ${name}`),
        asText(`The ${countText(it.top_links.length, "busiest link")}${spoken(it)}`,
          () => table(`busiest links${spoken(it)}`, columns, it.top_links)),
      ]),
      ...notes.filter(Boolean).map(note),
      isDrawn && asText("Links by kind as a table", kindTable),
    ];
  },
};
