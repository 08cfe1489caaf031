// Panel 5: who sends to whom.
/** The bytes of a matrix by cell. Bins of a sparse matrix are joined until its cells can be seen. */
function cellsOf({ bins, gaps, levels, ends }) {
  const divisors = Array.from({ length: bins }, (_, i) => i + 1).filter((n) => bins % n === 0 && n > 60 && n <= 190);
  const size = bins > 190 && gaps.length < 0.1 * bins * bins && divisors.length ? divisors.at(-1) : bins;
  const bytes = new Float64Array(size * size), by = bins / size;
  let at = 0;
  gaps.forEach((gap, i) => {
    at += gap;
    bytes[Math.floor(Math.floor(at / bins) / by) * size + Math.floor(at % bins / by)] += 2 ** (levels[i] / 4);
  });
  return { bins: size, bytes, isExact: size === bins, ends };
}
/** The most lines of a kind that leave the cells between them visible. */
const mostLines = 64;
/** What begins at lines of each kind. */
const partNames = () => ["PEs", "nodes", data.machine?.layout === "tree" ? "switches" : data.machine?.layout === "groups" ? "groups" : "the largest parts of the machine"];
/** Of the matrix in the order of PEs: the lines where PEs (0), nodes (1) and switches (2) begin, without kinds with too many, and the labels. */
function linesOf(it) {
  const count = new Array(data.pes.nodes.length).fill(0), lines = [], labels = [];
  it.pe_of.forEach((pe) => count[pe]++);
  let sum = 0;
  count.forEach((n, pe) => {
    const at = sum / it.pe_of.length, kind = data.pes.borders[pe];
    if (sum) lines.push([at, kind]);
    if (n) labels.push([at + n / 2 / it.pe_of.length, String(pe)]);
    sum += n;
  });
  const upTo = (kind) => lines.filter(([, it]) => it >= kind);
  const kind = [0, 1, 2].find((kind) => upTo(kind).length <= mostLines) ?? 3;
  return { lines: upTo(kind), labels, axis: "Numbers: PEs." };
}
function matrixPicture(m, title, { lines, labels, axis }, low, high, what) {
  const size = 380;
  const draw = (context) => {
    labelAxes(context, [margin, margin, size, size], labels, labels);
    context.translate(margin, margin);
    paintCells(context, size, size, m.bins, m.bins, (c, r) => {
      const bytes = m.bytes[r * m.bins + c];
      return bytes ? colour("viridis", Math.log(bytes / low) / Math.log(high / low)) : null;
    });
    for (const [at, kind] of lines) {
      context.fillStyle = ["rgba(128,128,128,0.45)", "rgba(255,43,214,0.4)", "rgba(255,43,214,0.9)"][kind];
      // On whole pixels, so that equal lines look equal.
      context.fillRect(Math.round(at * size), 0, 1, size);
      context.fillRect(0, Math.round(at * size), size, 1);
    }
  };
  const at = (x, y) => {
    if (x < margin || y < margin) return "";
    const [to, from] = [x, y].map((v) => Math.min(m.bins - 1, Math.floor((v - margin) / size * m.bins)));
    const bytes = m.bytes[from * m.bins + to];
    return `${what(from, m.bins)} to ${what(to, m.bins)}: ${bytes ? `about ${bytesText(bytes)}` : "nothing"}`;
  };
  const whole = margin + size, cell = size / m.bins, joined = Math.ceil(data.objects.array.length / m.bins);
  return make("div", {}, make("h3", {}, title), picture(whole, whole, `Bytes between objects, ${title}`, draw, at, [margin, margin, cell, cell]),
    make("div", { class: "axis" }, `Row: sender; column: receiver. ${axis}${joined > 1 ? ` A cell joins ${joined} senders and ${joined} receivers.` : ""}`));
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
    const n = data.objects.array.length;
    const object = (bin, bins) => {
      const [first, end] = [Math.ceil(bin * n / bins), Math.ceil((bin + 1) * n / bins)];
      return end - first === 1 ? objectName(first) : `${objectName(first)} and ${end - first - 1} following`;
    };
    const step = Math.max(1, roundStep(n / 8)), positions = Array.from({ length: Math.ceil(n / step) }, (_, k) => [(k * step + 0.5) / n, (k * step).toLocaleString("en")]);
    const holder = make("div", { class: "pair triple" }, matrixPicture(tasks, "in the order of objects", { lines: [], labels: positions, axis: "Numbers: positions of objects." }, low, high, object));
    const kinds = new Set();
    pair().forEach(([it, name], k) => {
      const order = it.pe_of.map((_, i) => i).sort((a, b) => it.pe_of[a] - it.pe_of[b] || a - b);
      const object = (bin, bins) => {
        const [first, end] = [Math.ceil(bin * n / bins), Math.ceil((bin + 1) * n / bins)], i = order[Math.min(n - 1, first)];
        return `${peName(it.pe_of[i])} (${objectName(i)}${end - first > 1 ? ` and ${end - first - 1} following` : ""})`;
      };
      const drawn = linesOf(it);
      drawn.lines.forEach(([, kind]) => kinds.add(kind));
      holder.append(matrixPicture(placed[k], `by placement${spoken(it, name)}`, drawn, low, high, object));
    });
    const looks = ["Grey", kinds.has(2) ? "Faint pink" : "Pink", kinds.has(1) ? "Strong pink" : "Pink"];
    const borders = [0, 1, 2].filter((kind) => kinds.has(kind)).map((kind) => ` ${looks[kind]} lines: borders of ${partNames()[kind]}.`).join("");
    const [lowest, highest] = [low, high].map((bytes) => `${about}${bytesText(bytes)}`);
    section.append(least === high ? make("p", { class: "note" }, `${highest} in each cell with bytes.`) : legend("viridis", lowest, highest, "bytes, logarithmic"), holder,
      ...(data.heaviest_edges.length ? [asText(`The ${countText(data.heaviest_edges.length, "heaviest edge")} as a table`, heaviestEdges)] : []),
      make("p", { class: "note" }, `By placement, ${kinds.has(0) ? "the squares on the diagonal are messages between objects on one PE; cells near them are" : "cells near the diagonal are messages between objects on one PE, or"} between PEs whose numbers are close, which may be far apart on the machine. Distances shows how far bytes travel.${borders}`));
    const part = (it, bytes) => percentText(bytes / Math.max(1, it.metrics.total_bytes)), share = (it) => part(it, it.metrics.remote_bytes);
    const levels = before().levels.map(([name], k) => `${name} ${pair().map(([it]) => part(it, it.levels[k][1])).join(", ")}`);
    const senders = data.half_senders ? ` Half of the bytes between objects are sent by ${data.half_senders.toLocaleString("en")} of ${countText(n, "object")}.` : "";
    return `Share of bytes between PEs: ${pair().map(([it, name]) => `${share(it)}${spoken(it, name)}`).join(", ")}.${senders}${levels.length > 2 ? ` By level of the machine${pair().length > 1 ? ", before and after" : ""}: ${levels.join("; ")}.` : ""}`;
  },
};
