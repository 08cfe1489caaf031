// Panel 5: who sends to whom.
/** The bytes of a matrix by cell. Bins of a sparse matrix are joined until its cells can be seen. */
function cellsOf({ rows, columns, gaps, levels, ends }) {
  const isSparse = gaps.length < 0.1 * rows * columns;
  const [high, wide] = [rows, columns].map((bins) => {
    const divisors = Array.from({ length: bins }, (_, i) => i + 1).filter((n) => bins % n === 0 && n > 60 && n <= 190);
    return isSparse && bins > 190 && divisors.length ? divisors.at(-1) : bins;
  });
  const bytes = new Float64Array(high * wide);
  let at = 0;
  gaps.forEach((gap, i) => {
    at += gap;
    const of = Math.max(ends[0], Math.min(ends[1], 2 ** (levels[i] / 4)));
    bytes[Math.floor(Math.floor(at / columns) * high / rows) * wide + Math.floor(at % columns * wide / columns)] += of;
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
/** A matrix with the labels of its columns and rows, and with lines. `said(side, bin)` names a row (0) or a column (1). */
function matrixPicture(m, [low, high], { title, across, labels, lines, said }) {
  const part = (bytes) => Math.log(bytes / low) / Math.log(high / low), inks = ["", "rgba(255,43,214,0.4)", "rgba(255,43,214,0.9)"];
  const say = (from, to, bytes) => `${said(0, from)} to ${said(1, to)}: ${bytes ? `about ${bytesText(bytes)}` : "nothing"}`;
  const inked = lines.map(([at, kind]) => [at, inks[kind]]);
  return make("div", {}, make("h3", {}, title),
    matrixPlot(`Bytes ${title}`, 380, m.bytes, [m.wide, m.high], labels, part, inked, say), axis(across));
}
/** The edges with most bytes, and where their objects are. */
function heaviestEdges() {
  const places = (from, to) => pair().map(([it]) => it.pe_of[from] === it.pe_of[to] ? `PE ${it.pe_of[from]}` : `PEs ${it.pe_of[from]} and ${it.pe_of[to]}`);
  return table("heaviest edges", ["sender", "receiver", "bytes", ...pair().map(([it, name]) => `place${spoken(it, name)}`)], data.heaviest_edges.map(([from, to, bytes]) =>
    [objectName(from), objectName(to), cell(bytes, bytesText), ...places(from, to)]));
}
/** The fewest and the most bytes of a cell, and how exact they are: cells hold bytes as levels, of which only the ends are exact, unless they were joined. */
function scaleOf(all) {
  const isExact = all.every((m) => m.isAsStored);
  const high = Math.max(...all.map((m) => isExact ? m.ends[1] : largest(m.bytes)));
  const least = Math.min(...all.map((m) => isExact ? m.ends[0] : m.bytes.reduce((least, x) => x && x < least ? x : least, high)));
  // Cells of one size are all of the largest colour; empty cells are blank.
  return { least, high, low: Math.min(high / 4, least), about: isExact ? "" : "about " };
}
/** What lines of these kinds are. */
function linesNote({ lines, isComplete }) {
  const kinds = new Set(lines.map(([, kind]) => kind)), looks = ["", kinds.has(2) ? "Faint pink" : "Pink", kinds.has(1) ? "Strong pink" : "Pink"];
  const names = ["", "nodes", data.machine?.layout === "groups" ? "groups" : data.pes.largest_parts];
  const borders = [1, 2].filter((kind) => kinds.has(kind)).map((kind) => ` ${looks[kind]} lines: borders of ${names[kind]}.`);
  return `${borders.join("")}${isComplete ? "" : ` Borders of which there are more than ${mostLines} are not drawn.`}`;
}
/** The matrix in the order of objects. Its rows and columns are those that send and receive, if these are few. */
function objectsPicture(m, scale) {
  const everyone = data.objects.array.map((_, i) => i), sides = [data.senders, data.receivers].map((list) => list.length ? list : everyone);
  const labels = sides.map((objects) => {
    const step = Math.max(1, roundStep(objects.length / 8)), count = Math.ceil(objects.length / step);
    return Array.from({ length: count }, (_, k) => [(k * step + 0.5) / objects.length, String(objects[k * step])]);
  });
  const said = (side, bin) => {
    const [first, last] = spanOf(sides[side].length, bin, [m.high, m.wide][side]);
    return `${objectName(sides[side][first])}${last > first ? ` and ${last - first} following` : ""}`;
  };
  const joined = sides.map((objects, side) => countText(Math.ceil(objects.length / [m.high, m.wide][side]), ["sender", "receiver"][side]));
  const only = sides.map((objects, side) => objects === everyone ? ""
    : ` ${["Rows are only the objects that send", "Columns are only the objects that receive"][side]} (${objects.length} of ${everyone.length}).`).join("");
  const cells = joined.join() === "1 sender,1 receiver" ? "" : ` A cell joins ${joined.join(" and ")}.`;
  return matrixPicture(m, scale, { title: "between objects, in their order", across: `Row: sender; column: receiver; numbers: objects, counted from 0.${cells}${only}`, labels: [labels[1], labels[0]], lines: [], said });
}
/** The matrix between the PEs of a placement. */
function pesPicture(m, name, lines, scale) {
  const labels = middles(m.wide, (bin) => spanOf(peCount(), bin, m.wide)[0]), joined = Math.ceil(peCount() / m.wide);
  const said = (_, bin) => pesName(...spanOf(peCount(), bin, m.wide));
  return matrixPicture(m, scale, { title: `between PEs${name}`, across: `Row: sending PE; column: receiving PE.${joined > 1 ? " Cells join PEs." : ""}`, labels: [labels, labels], lines, said });
}
/** Which part of the bytes crosses PEs, and who sends it. */
function sharesText() {
  const part = (it, bytes) => percentText(bytes / Math.max(1, it.metrics.total_bytes)), n = data.objects.array.length;
  const shares = compared((it) => part(it, it.metrics.remote_bytes));
  const of = data.senders.length ? `the ${countText(data.senders.length, "object")} that send${data.senders.length === 1 ? "s" : ""}` : countText(n, "object");
  const senders = data.half_senders && data.half_senders < 0.4 * (data.senders.length || n) ? ` Half of the bytes between objects are sent by ${data.half_senders} of ${of}.` : "";
  const fixed = data.fixed_senders_part > 0.005 ? ` ${percentText(data.fixed_senders_part)} are sent by objects that cannot move.` : "";
  const lists = pair().map(([it]) => sendingPes(it)), few = lists.every((pes) => pes.length && pes.length <= 8 && 2 * pes.length < peCount());
  const isSame = lists.every((pes) => pes.join() === lists[0].join()), named = (pes) => `PE${pes.length > 1 ? "s" : ""} ${listText(pes)}`;
  const from = few ? ` All bytes between objects are sent by ${isSame ? named(lists[0]) : compared((_, k) => named(lists[k]))}.` : "";
  return `Share of bytes between PEs: ${shares}.${senders}${fixed}${from}`;
}
/** The PEs whose objects send, unless PEs share rows. */
function sendingPes({ matrix: { gaps, rows, columns } }) {
  let at = 0;
  const cells = gaps.map((gap) => (at += gap));
  return rows === peCount() ? [...new Set(cells.map((cell) => Math.floor(cell / columns)))] : [];
}
/** Which part of the bytes meets at each level of the machine. */
function levelsTable() {
  const part = (it, k) => cell(it.levels[k][1] / Math.max(1, it.metrics.total_bytes), percentText);
  return table("bytes by level", ["bytes by level of the machine", ...pair().map(([it, name]) => spoken(it, name).trim() || "share")], before().levels.map(([name], k) => [name, ...pair().map(([it]) => part(it, k))]));
}
const matrix = {
  id: "matrix", title: "Communication",
  exists: () => data.placements.length > 0 && Boolean(data.matrix?.gaps.length),
  draw(section) {
    const [tasks, ...placed] = [data.matrix, ...pair().map(([it]) => it.matrix)].map(cellsOf), { least, high, low, about } = scaleOf([tasks, ...placed]);
    const lines = machineLines(), pes = pair().map(([it, name], k) => pesPicture(placed[k], spoken(it, name), lines.lines, [low, high]));
    if (before().levels.length > 2) section.append(levelsTable(), before().levels.some(([name]) => name.includes("height")) ? note(partNote) : "");
    section.append(least === high ? note(`${about}${bytesText(high)} in each cell with bytes.`)
      : legend("viridis", about + bytesText(low), about + bytesText(high), "bytes, logarithmic"),
    make("div", { class: "pair triple" }, objectsPicture(tasks, [low, high]), ...pes));
    if (data.heaviest_edges.length) section.append(asText(`The ${countText(data.heaviest_edges.length, "heaviest edge")} as a table`, heaviestEdges));
    const far = before().distances.filter(([distance]) => distance > 0).length > 1 ? " PEs with close numbers may be far apart on the machine: Distances shows how far bytes travel." : "";
    section.append(note(`The diagonal of a matrix between PEs has the bytes that stay on a PE.${far}${linesNote(lines)}`));
    return sharesText();
  },
};
