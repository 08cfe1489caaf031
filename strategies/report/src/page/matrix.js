// Panel 5: who sends to whom.
/** The bytes of a matrix by cell. Bins of a sparse matrix are joined until its cells can be seen. */
function cellsOf({ rows, columns, gaps, levels, ends }) {
  const isSparse = gaps.length < 0.1 * rows * columns;
  const [high, wide] = [rows, columns].map((bins) => {
    const divisors = Array.from({ length: 130 }, (_, i) => 61 + i).filter((n) => bins % n === 0);
    return isSparse && bins > 190 && divisors.length ? divisors.at(-1) : bins;
  });
  const bytes = new Float64Array(high * wide);
  let at = 0;
  gaps.forEach((gap, i) => {
    at += gap;
    const of = Math.max(ends[0], Math.min(ends[1], 2 ** (levels[i] / 4)));
    const row = Math.floor(Math.floor(at / columns) * high / rows), column = Math.floor(at % columns * wide / columns);
    bytes[row * wide + column] += of;
  });
  return { high, wide, bytes, isAsStored: high === rows && wide === columns, ends };
}
/** The most lines of a kind that leave the cells between them visible. */
const mostLines = 64;
/** The lines where nodes (1) and the largest parts (2) of the machine begin, without kinds with too many. */
function machineLines() {
  const lines = data.pes.borders.flatMap((kind, pe) => kind ? [[pe / peCount(), kind]] : []);
  const few = [1, 2].find((least) => lines.filter(([, kind]) => kind >= least).length <= mostLines) ?? 3;
  return { lines: lines.filter(([, kind]) => kind >= few), isComplete: few === 1 };
}
/** A matrix with the labels of its columns and rows, and lines. `said(side, bin)` names a row (0) or a column (1). */
function matrixPicture(m, [low, high], title, across, labels, lines, said) {
  const part = (bytes) => Math.log(bytes / low) / Math.log(high / low);
  const inked = lines.map(([at, kind]) => [at, `rgba(255,43,214,${kind === 1 ? 0.4 : 0.9})`]);
  const about = (bytes) => bytes ? `about ${bytesText(bytes)}` : "nothing";
  const say = (from, to, bytes) => `${said(0, from)} to ${said(1, to)}: ${about(bytes)}`;
  const plot = matrixPlot(`Bytes ${title}`, 380, m.bytes, [m.wide, m.high], labels, part, inked, say);
  return captioned(title, plot, axis(across));
}
function heaviestEdges() {
  const place = ([a, b]) => a === b ? `PE ${a}` : `PEs ${a} and ${b}`;
  return table("heaviest edges", [
    ["sender", ([from]) => objectName(from)],
    ["receiver", ([, to]) => objectName(to)],
    ["bytes", ([, , bytes]) => bytes, bytesText],
    ...pair().map(([it]) => [`place${spoken(it)}`, ([from, to]) => place([it.pe_of[from], it.pe_of[to]])]),
  ], data.heaviest_edges);
}
/** The fewest and the most bytes of a cell. Cells hold bytes as levels; joined cells are not exact. */
function scaleOf(all) {
  const isExact = all.every((m) => m.isAsStored);
  const high = Math.max(...all.map((m) => isExact ? m.ends[1] : largest(m.bytes)));
  const fewest = ({ bytes }) => bytes.reduce((least, x) => x && x < least ? x : least, high);
  const least = Math.min(...all.map((m) => isExact ? m.ends[0] : fewest(m)));
  // Cells of one size are all of the largest colour; empty cells are blank.
  return { least, high, low: Math.min(high / 4, least), about: isExact ? "" : "about " };
}
/** What lines of these kinds are. */
function linesNote({ lines, isComplete }) {
  const has = (kind) => lines.some((line) => line[1] === kind);
  const parts = data.machine?.layout === "groups" ? "groups" : data.pes.largest_parts;
  const ofNodes = has(1) ? ` ${has(2) ? "Faint pink" : "Pink"} lines: borders of nodes.` : "";
  const ofParts = has(2) ? ` ${has(1) ? "Strong pink" : "Pink"} lines: borders of ${parts}.` : "";
  const rest = isComplete ? "" : ` Borders of which there are more than ${mostLines} are not drawn.`;
  return ofNodes + ofParts + rest;
}
/** The matrix in the order of objects. Its rows and columns are those that send and receive, if these are few. */
function objectsPicture(m, scale) {
  const everyone = [...data.objects.array.keys()];
  const sides = [data.senders, data.receivers].map((list) => list.length ? list : everyone), bins = [m.high, m.wide];
  const [rows, columns] = sides.map((objects) => {
    const step = Math.max(1, roundStep(objects.length / 8)), count = Math.ceil(objects.length / step);
    return Array.from({ length: count }, (_, k) => [(k * step + 0.5) / objects.length, String(objects[k * step])]);
  });
  const said = (side, bin) => {
    const [first, last] = spanOf(sides[side].length, bin, bins[side]);
    return objectName(sides[side][first]) + (last > first ? ` and ${last - first} following` : "");
  };
  const [senders, receivers] = sides.map((objects, side) => Math.ceil(objects.length / bins[side]));
  const cells = senders === 1 && receivers === 1 ? ""
    : ` A cell joins ${countText(senders, "sender")} and ${countText(receivers, "receiver")}.`;
  const only = ["Rows are only the objects that send", "Columns are only the objects that receive"].map((text, side) =>
    sides[side] === everyone ? "" : ` ${text} (${sides[side].length} of ${everyone.length}).`).join("");
  const finds = data.objects.index.length && moves.exists() ? " (Migrations finds #N)" : "";
  const across = `Row: sender; column: receiver; numbers: objects, counted from 0${finds}.${cells}${only}`;
  return matrixPicture(m, scale, "between objects, in their order", across, [columns, rows], [], said);
}
function pesPicture(it, m, lines, scale) {
  const labels = middles(m.wide, (bin) => spanOf(peCount(), bin, m.wide)[0]), isJoined = peCount() > m.wide;
  const said = (_, bin) => pesName(...spanOf(peCount(), bin, m.wide));
  const across = `Row: sending PE; column: receiving PE.${isJoined ? " Cells join PEs." : ""}`;
  return matrixPicture(m, scale, `between PEs${spoken(it)}`, across, [labels, labels], lines, said);
}
/** Which part of the bytes crosses PEs, and who sends it. */
function sharesText() {
  const shares = compared(({ metrics }) => percentText(metrics.remote_bytes / Math.max(1, metrics.total_bytes)));
  const some = data.senders.length, all = some || data.objects.array.length, half = data.half_senders;
  const of = some ? `the ${countText(some, "object")} that send${some === 1 ? "s" : ""}` : countText(all, "object");
  const fixed = data.fixed_senders_part > 0.005 ? percentText(data.fixed_senders_part) : "";
  const lists = pair().map(([it]) => sendingPes(it));
  const named = (pes) => `PE${pes.length > 1 ? "s" : ""} ${listText(pes)}`;
  const areFew = lists.every((pes) => pes.length && pes.length <= 8 && 2 * pes.length < peCount());
  const areSame = lists.every((pes) => pes.join() === lists[0].join());
  const from = areSame ? named(lists[0]) : compared((_, k) => named(lists[k]));
  return [
    `Share of bytes between PEs: ${shares}.`,
    half && half < 0.4 * all && `Half of the bytes between objects are sent by ${half} of ${of}.`,
    fixed && `${fixed} are sent by objects that cannot move.`,
    areFew && `All bytes between objects are sent by ${from}.`,
  ].filter(Boolean).join(" ");
}
/** The PEs whose objects send, unless PEs share rows. */
function sendingPes({ matrix: { gaps, rows, columns } }) {
  let at = 0;
  const cells = gaps.map((gap) => (at += gap));
  return rows === peCount() ? [...new Set(cells.map((cell) => Math.floor(cell / columns)))] : [];
}
const matrix = {
  id: "matrix", title: "Communication",
  exists: () => data.placements.length > 0 && Boolean(data.matrix?.gaps.length),
  draw() {
    const [tasks, ...placed] = [data.matrix, ...pair().map(([it]) => it.matrix)].map(cellsOf);
    const { least, high, low, about } = scaleOf([tasks, ...placed]), lines = machineLines();
    const edges = countText(data.heaviest_edges.length, "heaviest edge");
    const isFar = before().distances.filter(([distance]) => distance > 0).length > 1;
    return [
      sharesText(),
      least === high ? note(`${about}${bytesText(high)} in each cell with bytes.`)
        : legend("viridis", about + bytesText(Math.ceil(low)), about + bytesText(high), "bytes, logarithmic"),
      make("div", { class: "pair triple" }, objectsPicture(tasks, [low, high]),
        ...pair().map(([it], k) => pesPicture(it, placed[k], lines.lines, [low, high]))),
      data.heaviest_edges.length > 0 && asText(`The ${edges} as a table`, heaviestEdges),
      note(words("diagonal") + (isFar ? ` ${words("far")}` : "") + linesNote(lines)),
    ];
  },
};
