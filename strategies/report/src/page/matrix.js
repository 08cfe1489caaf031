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
    bytes[Math.floor(Math.floor(at / columns) * high / rows) * wide + Math.floor(at % columns * wide / columns)] += 2 ** (levels[i] / 4);
  });
  return { high, wide, bytes, isExact: high === rows && wide === columns, ends };
}
/** The most lines of a kind that leave the cells between them visible. */
const mostLines = 64;
/** What begins at lines of each kind. */
const partNames = () => ["PEs", "nodes", data.machine?.layout === "groups" ? "groups" : data.pes.largest_parts];
/** Of objects in the order of PEs: the lines where PEs (0), nodes (1) and the largest parts (2) begin, without kinds with too many, and the labels. */
function linesOf(it, objects) {
  const count = new Array(data.pes.nodes.length).fill(0), lines = [], labels = [], spans = new Map();
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
  return { objects, lines: upTo(kind), labels, spans };
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
      context.fillStyle = ["rgba(128,128,128,0.45)", "rgba(255,43,214,0.4)", "rgba(255,43,214,0.9)"][kind];
      // On whole pixels, so that equal lines look equal.
      context.fillRect(...(side ? [Math.round(at * size), 0, 1, size] : [0, Math.round(at * size), size, 1]));
    }));
    if (sides[0] === sides[1]) return;
    context.strokeStyle = variable("--frame");
    for (const [pe, [top, tall]] of sides[0].spans || []) {
      const [from, broad] = sides[1].spans.get(pe) || [];
      if (broad) context.strokeRect(from * size, top * size, broad * size, tall * size);
    }
  };
  const at = (x, y) => {
    if (x < margin || y < margin) return "";
    const [from, to] = [[y, m.high], [x, m.wide]].map(([v, bins]) => Math.min(bins - 1, Math.floor((v - margin) / size * bins)));
    const bytes = m.bytes[from * m.wide + to];
    return `${what(0, from, m.high)} to ${what(1, to, m.wide)}: ${bytes ? `about ${bytesText(bytes)}` : "nothing"}`;
  };
  const whole = margin + size, joined = sides.map(({ objects }, side) => countText(Math.ceil(objects.length / [m.high, m.wide][side]), ["sender", "receiver"][side]));
  return make("div", {}, make("h3", {}, title), picture(whole, whole, `Bytes between objects, ${title}`, draw, at, [margin, margin, size / m.wide, size / m.high]),
    make("div", { class: "axis" }, `Row: sender; column: receiver. ${axis}${joined.join() === "1 sender,1 receiver" ? "" : ` A cell joins ${joined.join(" and ")}.`}`));
}
/** The edges with most bytes, and where their objects are. */
function heaviestEdges() {
  const places = ([from, to]) => pair().map(([it]) => it.pe_of[from] === it.pe_of[to] ? `PE ${it.pe_of[from]}` : `PEs ${it.pe_of[from]} and ${it.pe_of[to]}`);
  return table("heaviest edges", ["sender", "receiver", "bytes", ...pair().map(([it, name]) => `place${spoken(it, name)}`)], data.heaviest_edges.map(([from, to, bytes]) =>
    [objectName(from), objectName(to), { value: bytes, text: bytesText(bytes) }, ...places([from, to])]));
}
const matrix = {
  id: "matrix", title: "Communication",
  exists: () => data.placements.length > 0 && Boolean(data.matrix?.gaps.length),
  draw(section) {
    const all = [data.matrix, ...pair().map(([it]) => it.matrix)].map(cellsOf), [tasks, ...placed] = all;
    // Cells hold bytes as levels; their ends are exact unless cells were joined.
    const isExact = all.every((m) => m.isExact), about = isExact ? "" : "about ";
    const high = Math.max(...all.map((m) => isExact ? m.ends[1] : largest(m.bytes)));
    // Cells of one size are all of the largest colour; empty cells are blank.
    const least = Math.min(...all.map((m) => isExact ? m.ends[0] : m.bytes.reduce((least, x) => x && x < least ? x : least, high))), low = Math.min(high / 4, least);
    const n = data.objects.array.length, everyone = data.objects.array.map((_, i) => i);
    /** What `make` makes of the objects of the rows and of the columns, which are the same if all objects send and receive. */
    const ofSides = (make) => {
      const first = make(data.senders.length ? data.senders : everyone);
      return [first, data.senders.length || data.receivers.length ? make(data.receivers.length ? data.receivers : everyone) : first];
    };
    /** The first of the objects of a bin, with how many follow. */
    const firstOf = (objects, bin, bins) => {
      const [first, end] = [bin, bin + 1].map((bin) => Math.ceil(bin * objects.length / bins)), i = objects[Math.min(objects.length - 1, first)];
      return [i, `${objectName(i)}${end - first > 1 ? ` and ${end - first - 1} following` : ""}`];
    };
    const inOrder = ofSides((objects) => {
      const step = Math.max(1, roundStep(objects.length / 8)), count = Math.ceil(objects.length / step);
      return { objects, lines: [], labels: Array.from({ length: count }, (_, k) => [(k * step + 0.5) / objects.length, objects[k * step].toLocaleString("en")]) };
    });
    const holder = make("div", { class: "pair triple" }, matrixPicture(tasks, "in the order of objects", inOrder, "Numbers: positions of objects.", low, high,
      (side, bin, bins) => firstOf(inOrder[side].objects, bin, bins)[1]));
    const kinds = new Set();
    pair().forEach(([it, name], k) => {
      const sides = ofSides((objects) => linesOf(it, objects.slice().sort((a, b) => it.pe_of[a] - it.pe_of[b] || a - b)));
      const object = (side, bin, bins) => {
        const [i, text] = firstOf(sides[side].objects, bin, bins);
        return `${peName(it.pe_of[i])} (${text})`;
      };
      sides.forEach(({ lines }) => lines.forEach(([, kind]) => kinds.add(kind)));
      holder.append(matrixPicture(placed[k], `by placement${spoken(it, name)}`, sides, "Numbers: PEs.", low, high, object));
    });
    const shown = ["Rows are only the objects that send", "Columns are only the objects that receive"];
    const only = inOrder.map(({ objects }, side) => objects.length < n ? `${shown[side]} (${objects.length.toLocaleString("en")} of ${n.toLocaleString("en")}). ` : "").join("");
    const far = before().distances.filter(([distance]) => distance > 0).length > 1 ? ", which may be far apart on the machine" : "";
    const near = only ? "frames have the messages between objects on one PE"
      : kinds.has(0) ? `the squares on the diagonal are messages between objects on one PE; cells near them are between PEs whose numbers are close${far}`
        : `cells near the diagonal are messages between objects on one PE, or between PEs whose numbers are close${far}`;
    const looks = ["Grey", kinds.has(2) ? "Faint pink" : "Pink", kinds.has(1) ? "Strong pink" : "Pink"];
    const borders = [0, 1, 2].filter((kind) => kinds.has(kind)).map((kind) => ` ${looks[kind]} lines: borders of ${partNames()[kind]}.`).join("");
    const [lowest, highest] = [low, high].map((bytes) => `${about}${bytesText(bytes)}`);
    section.append(least === high ? make("p", { class: "note" }, `${highest} in each cell with bytes.`) : legend("viridis", lowest, highest, "bytes, logarithmic"), holder,
      ...(data.heaviest_edges.length ? [asText(`The ${countText(data.heaviest_edges.length, "heaviest edge")} as a table`, heaviestEdges)] : []),
      make("p", { class: "note" }, `${only}By placement, ${near}. Distances shows how far bytes travel.${borders}`));
    const part = (it, bytes) => percentText(bytes / Math.max(1, it.metrics.total_bytes)), share = (it) => part(it, it.metrics.remote_bytes);
    const levels = before().levels.map(([name], k) => `${name}: ${pair().map(([it]) => part(it, it.levels[k][1])).join(", ")}`);
    const of = data.senders.length ? `the ${countText(data.senders.length, "object")} that send${data.senders.length === 1 ? "s" : ""}` : countText(n, "object");
    const senders = data.half_senders ? ` Half of the bytes between objects are sent by ${data.half_senders.toLocaleString("en")} of ${of}.` : "";
    return `Share of bytes between PEs: ${pair().map(([it, name]) => `${share(it)}${spoken(it, name)}`).join(", ")}.${senders}${levels.length > 2 ? ` By level of the machine${pair().length > 1 ? ", before and after" : ""}: ${levels.join("; ")}.` : ""}`;
  },
};
