// Panel 6: which objects migrate, from where to where, and why.
let wanted = "";
/** The heaviest objects that the table lists and sorts. */
const most = 2000;
const moves = {
  id: "moves", title: "Migrations",
  exists: () => data.placements.some((it) => it.metrics.migrations > 0),
  draw(section) {
    const [was, is] = [before(), after()], load = data.objects.load_seconds, average = was.metrics.average_load_seconds || 1e-300;
    const moved = [];
    is.pe_of.forEach((pe, i) => { if (pe !== was.pe_of[i]) moved.push(i); });
    if (!moved.length) return `${is === was ? "This placement" : is.name} moves no object.`;
    const nodes = [...new Set(data.pes.nodes)].sort((a, b) => a - b), n = nodes.length, bins = Math.min(n, 128);
    const row = new Map(nodes.map((node, at) => [node, Math.floor(at * bins / n)]));
    const counts = new Float64Array(bins * bins);
    moved.forEach((i) => { counts[row.get(data.pes.nodes[was.pe_of[i]]) * bins + row.get(data.pes.nodes[is.pe_of[i]])]++; });
    const top = largest(counts), size = 360;
    const name = (bin) => `${n === data.pes.nodes.length ? "PE" : "node"} ${nodes[Math.ceil(bin * n / bins)]}${n > bins ? " and following" : ""}`;
    const draw = (context) => paintCells(context, size, size, bins, bins, (c, r) => counts[r * bins + c] ? colour("viridis", counts[r * bins + c] / top) : null);
    const at = (x, y) => {
      const [to, from] = [x, y].map((v) => Math.min(bins - 1, Math.floor(v / size * bins)));
      return `${name(from)} to ${name(to)}: ${countText(counts[from * bins + to], "object")}`;
    };
    const pairs = () => table(["from", "to", "objects"], [...counts.keys()].filter((cell) => counts[cell]).sort((a, b) => counts[b] - counts[a] || a - b)
      .map((cell) => [name(Math.floor(cell / bins)), name(cell % bins), { value: counts[cell], text: counts[cell].toLocaleString("en") }]));
    const part = (it, pe) => percentText(it.load_seconds[pe] / average);
    const why = (i) => {
      const [from, to, added] = [was.pe_of[i], is.pe_of[i], is.hop_bytes_added[i]];
      const reasons = [];
      if (was.load_seconds[from] > 1.02 * average) reasons.push(`PE ${from} had ${part(was, from)} of the average load`);
      if (added < 0) reasons.push("nearer to its partners");
      if (!reasons.length) reasons.push(`makes PE ${from} free for others`);
      return reasons.join("; ");
    };
    const rows = (list) => table(["object", "from PE", "to PE", "load", "added hop-bytes", "why"], list.slice(0, most).map((i) => [{ value: i, text: objectName(i) }, was.pe_of[i], is.pe_of[i],
      { value: -load[i], text: loadText(load[i]) }, { value: is.hop_bytes_added[i] ?? 0, text: is.hop_bytes_added.length ? withUnit(is.hop_bytes_added[i], ["B", "kB", "MB", "GB", "TB"], 1000) : "–" }, why(i)]));
    const found = () => (wanted ? moved.filter((i) => objectName(i).includes(wanted)) : moved.slice()).sort((a, b) => load[b] - load[a]);
    // A table of all objects of a large run would take longer than a glance; the search finds each of them.
    const list = make("div", { class: "words" }, rows(found()));
    const search = make("input", { type: "search", placeholder: "Find an object", value: wanted, "aria-label": "Find an object by name",
      oninput: (event) => { wanted = event.target.value; list.replaceChildren(rows(found())); } });
    section.append(make("div", { class: "pair wide" }, make("div", {}, make("h3", {}, `from (row) to (column), by ${n === data.pes.nodes.length ? "PE" : "node"}`),
      picture(size, size, `Migrations of ${moved.length} objects`, draw, at), legend("viridis", "0 objects", countText(top, "object"), "migrations"), asText("Migrations as a table", pairs)),
    make("div", {}, make("h3", {}, "objects that move, heaviest first"), search, list,
      moved.length > most ? make("p", { class: "note" }, `The table has the ${most.toLocaleString("en")} heaviest objects; the search finds the others.`) : undefined)));
    const bytes = is.metrics.migrated_bytes;
    return `${is.name} moves ${moved.length.toLocaleString("en")} of ${countText(is.pe_of.length, "object")}${bytes ? ` (${bytesText(bytes)})` : ""}.`;
  },
};
