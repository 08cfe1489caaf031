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
/** What begins at lines of each kind. */
const partNames = () => ["PEs", "nodes", data.machine?.layout === "groups" ? "groups" : data.pes.largest_parts];
/** Of objects in the order of PEs: the lines where PEs (0), nodes (1) and the largest parts (2) begin, without kinds with too many, and the labels. */
function linesOf(it, objects) {
  const count = new Array(peCount()).fill(0), lines = [], labels = [], spans = new Map();
  objects.forEach((i) => count[it.pe_of[i]]++);
  let sum = 0, border = 0;
  count.forEach((n, pe) => {
    const at = sum / objects.length;
    // What begins with PEs without these objects begins with the next PE.
    border = Math.max(border, data.pes.borders[pe]);
    if (!n) return;
    if (sum) lines.push([at, border]);
    labels.push([at + n / 2 / objects.length, String(pe)]);
    spans.set(pe, [at, n / objects.length]);
    [sum, border] = [sum + n, 0];
  });
  const upTo = (kind) => lines.filter(([, it]) => it >= kind);
  const kind = [0, 1, 2].find((kind) => upTo(kind).length <= mostLines) ?? 3;
  return { objects, lines: upTo(kind), labels, spans, isComplete: kind === 0 };
}
/**
 * A matrix with the objects, lines and labels of its rows (0) and columns (1), whose objects `what` names. If both have `spans` of PEs and are not the
 * same, frames show the cells of each PE with itself.
 */
function matrixPicture(m, title, sides, axis, low, high, what) {
  const size = 380;
  const draw = (context) => {
    labelAxes(context, [margin, margin, size, size], sides[1].labels, sides[0].labels);
    context.translate(margin, margin);
    paintCells(context, size, size, m.wide, m.high, (c, r) => {
      const bytes = m.bytes[r * m.wide + c];
      return bytes ? colour("viridis", Math.log(bytes / low) / Math.log(high / low)) : null;
    });
    sides.forEach(({ lines }, side) => lines.forEach(([at, kind]) => {
      context.fillStyle = [faint, "rgba(255,43,214,0.4)", "rgba(255,43,214,0.9)"][kind];
      // On whole pixels, so that equal lines look equal.
      context.fillRect(...(side ? [Math.round(at * size), 0, 1, size] : [0, Math.round(at * size), size, 1]));
    }));
    if (sides[0] === sides[1]) return;
    context.strokeStyle = variable("--mark");
    context.lineWidth = 2;
    for (const [pe, [top, tall]] of sides[0].spans || []) {
      const [from, broad] = sides[1].spans.get(pe) || [];
      if (broad) context.strokeRect(from * size, top * size, broad * size, tall * size);
    }
  };
  const at = (to, from) => {
    const bytes = m.bytes[from * m.wide + to];
    return `${what(0, from, m.high)} to ${what(1, to, m.wide)}: ${bytes ? `about ${bytesText(bytes)}` : "nothing"}`;
  };
  const whole = margin + size, joined = sides.map(({ objects }, side) => countText(Math.ceil(objects.length / [m.high, m.wide][side]), ["sender", "receiver"][side]));
  return make("div", {}, make("h3", {}, title), picture(whole, whole, `Bytes between objects, ${title}`, draw, at, [margin, margin, size / m.wide, size / m.high, m.wide, m.high]),
    make("div", { class: "axis" }, `Row: sender; column: receiver. ${axis}${joined.join() === "1 sender,1 receiver" ? "" : ` A cell joins ${joined.join(" and ")}.`}`));
}
/** The edges with most bytes, and where their objects are. */
function heaviestEdges() {
  const places = (from, to) => pair().map(([it]) => it.pe_of[from] === it.pe_of[to] ? `PE ${it.pe_of[from]}` : `PEs ${it.pe_of[from]} and ${it.pe_of[to]}`);
  return table("heaviest edges", ["sender", "receiver", "bytes", ...pair().map(([it, name]) => `place${spoken(it, name)}`)], data.heaviest_edges.map(([from, to, bytes]) =>
    [objectName(from), objectName(to), cell(bytes, bytesText), ...places(from, to)]));
}
/** The first and the last object of a bin of a list, and their number. */
function objectsOf(list, bin, bins) {
  const [first, end] = [bin, bin + 1].map((bin) => Math.ceil(bin * list.length / bins));
  return [list[first], list[end - 1], end - first];
}
const andFollowing = (first, count) => `${objectName(first)}${count > 1 ? ` and ${count - 1} following` : ""}`;
/** What `build` makes of the objects of the rows and of the columns, which are the same if all objects send and receive. */
function ofSides(build) {
  const everyone = data.objects.array.map((_, i) => i), first = build(data.senders.length ? data.senders : everyone);
  return [first, data.senders.length || data.receivers.length ? build(data.receivers.length ? data.receivers : everyone) : first];
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
function linesNote(kinds, isComplete) {
  const looks = ["Grey", kinds.has(2) ? "Faint pink" : "Pink", kinds.has(1) ? "Strong pink" : "Pink"];
  const borders = [0, 1, 2].filter((kind) => kinds.has(kind)).map((kind) => ` ${looks[kind]} lines: borders of ${partNames()[kind]}.`);
  return `${borders.join("")}${isComplete ? "" : ` Borders of which there are more than ${mostLines} are not drawn.`}`;
}
/** Which part of the bytes crosses PEs, who sends it, and how far up it goes. */
function sharesText() {
  const part = (it, bytes) => percentText(bytes / Math.max(1, it.metrics.total_bytes)), n = data.objects.array.length;
  const shares = pair().map(([it, name]) => `${part(it, it.metrics.remote_bytes)}${spoken(it, name)}`).join(", ");
  const of = data.senders.length ? `the ${countText(data.senders.length, "object")} that send${data.senders.length === 1 ? "s" : ""}` : countText(n, "object");
  const senders = data.half_senders ? ` Half of the bytes between objects are sent by ${data.half_senders} of ${of}.` : "";
  const fixed = data.fixed_senders_part > 0.005 ? ` ${percentText(data.fixed_senders_part)} are sent by objects that cannot move.` : "";
  const levels = before().levels.map(([name], k) => `${name}: ${pair().map(([it]) => part(it, it.levels[k][1])).join(", ")}`);
  const byLevel = levels.length > 2 ? ` By level of the machine${pair().length > 1 ? ", before and after" : ""}: ${levels.join("; ")}.` : "";
  return `Share of bytes between PEs: ${shares}.${senders}${fixed}${byLevel}`;
}
const matrix = {
  id: "matrix", title: "Communication",
  exists: () => data.placements.length > 0 && Boolean(data.matrix?.gaps.length),
  draw(section) {
    const [tasks, ...placed] = [data.matrix, ...pair().map(([it]) => it.matrix)].map(cellsOf), { least, high, low, about } = scaleOf([tasks, ...placed]);
    const n = data.objects.array.length;
    const inOrder = ofSides((objects) => {
      const step = Math.max(1, roundStep(objects.length / 8)), count = Math.ceil(objects.length / step);
      return { objects, lines: [], labels: Array.from({ length: count }, (_, k) => [(k * step + 0.5) / objects.length, String(objects[k * step])]) };
    });
    const inBin = (side, at, bins) => {
      const [first, , count] = objectsOf(inOrder[side].objects, at, bins);
      return andFollowing(first, count);
    };
    const holder = make("div", { class: "pair triple" }, matrixPicture(tasks, "in the order of objects", inOrder, "Numbers: positions of objects.", low, high, inBin));
    const kinds = new Set();
    let isComplete = true;
    pair().forEach(([it, name], k) => {
      const sides = ofSides((objects) => linesOf(it, objects.slice().sort((a, b) => it.pe_of[a] - it.pe_of[b] || a - b)));
      const onPes = (side, at, bins) => {
        const [first, last, count] = objectsOf(sides[side].objects, at, bins), [from, to] = [it.pe_of[first], it.pe_of[last]];
        return `${from === to ? peName(from) : `PEs ${from} to ${to}`} (${andFollowing(first, count)})`;
      };
      sides.forEach(({ lines }) => lines.forEach(([, kind]) => kinds.add(kind)));
      isComplete &&= sides.every((side) => side.isComplete);
      holder.append(matrixPicture(placed[k], `by placement${spoken(it, name)}`, sides, "Numbers: PEs.", low, high, onPes));
    });
    const only = inOrder.map(({ objects }, side) => objects.length === n ? ""
      : `${["Rows are only the objects that send", "Columns are only the objects that receive"][side]} (${objects.length} of ${n}). `).join("");
    const far = before().distances.filter(([distance]) => distance > 0).length > 1 ? ", which may be far apart on the machine" : "";
    const near = only ? "orange frames have the messages between objects on one PE"
      : kinds.has(0) ? `the squares on the diagonal are messages between objects on one PE; cells near them are between PEs whose numbers are close${far}`
        : `cells near the diagonal are messages between objects on one PE, or between PEs whose numbers are close${far}`;
    section.append(least === high ? make("p", { class: "note" }, `${about}${bytesText(high)} in each cell with bytes.`)
      : legend("viridis", about + bytesText(low), about + bytesText(high), "bytes, logarithmic"), holder);
    if (data.heaviest_edges.length) section.append(asText(`The ${countText(data.heaviest_edges.length, "heaviest edge")} as a table`, heaviestEdges));
    section.append(make("p", { class: "note" }, `${only}By placement, ${near}. Distances shows how far bytes travel.${linesNote(kinds, isComplete)}`));
    return sharesText();
  },
};
