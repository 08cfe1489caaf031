// Panel 6: which objects migrate, from where to where, and what improves.
let wanted = "";
/** The heaviest objects that the table lists and sorts. */
const most = 2000;
const moves = {
  id: "moves", title: "Migrations",
  exists: () => data.placements.some((it) => it.metrics.migrations > 0),
  lacks: "No placement moves an object.",
  draw(section) {
    const [was, is] = [before(), after()], load = data.objects.load_seconds;
    const moved = [];
    is.pe_of.forEach((pe, i) => { if (pe !== was.pe_of[i]) moved.push(i); });
    if (!moved.length) return `${is === was ? "This placement" : is.name} moves no object.`;
    const nodes = [...new Set(data.pes.nodes)].sort((a, b) => a - b), n = nodes.length, bins = Math.min(n, 128);
    const row = new Map(nodes.map((node, at) => [node, Math.floor(at * bins / n)]));
    const counts = new Float64Array(bins * bins);
    moved.forEach((i) => { counts[row.get(data.pes.nodes[was.pe_of[i]]) * bins + row.get(data.pes.nodes[is.pe_of[i]])]++; });
    const top = largest(counts), size = 320;
    const kind = n === data.pes.nodes.length ? "PE" : "node";
    const name = (bin) => `${kind} ${nodes[Math.ceil(bin * n / bins)]}${n > bins ? " and following" : ""}`;
    const labels = Array.from({ length: bins }, (_, bin) => [(bin + 0.5) / bins, String(nodes[Math.ceil(bin * n / bins)])]);
    const part = (count) => top === 1 ? 1 : (count - 1) / (top - 1);
    const draw = (context) => {
      labelAxes(context, [margin, margin, size, size], labels, labels);
      context.translate(margin, margin);
      paintCells(context, size, size, bins, bins, (c, r) => counts[r * bins + c] ? colour("viridis", part(counts[r * bins + c])) : null);
      context.fillStyle = "rgba(128,128,128,0.45)";
      for (let bin = 1; bin < bins && bins <= 16; bin++) {
        context.fillRect(bin / bins * size, 0, 1, size);
        context.fillRect(0, bin / bins * size, size, 1);
      }
    };
    const at = (x, y) => {
      if (x < margin || y < margin) return "";
      const [to, from] = [x, y].map((v) => Math.min(bins - 1, Math.floor((v - margin) / size * bins)));
      return `${name(from)} to ${name(to)}: ${countText(counts[from * bins + to], "object")}`;
    };
    const pairs = () => table("migrations", ["from", "to", "objects"], [...counts.keys()].filter((cell) => counts[cell]).sort((a, b) => counts[b] - counts[a] || a - b)
      .map((cell) => [name(Math.floor(cell / bins)), name(cell % bins), { value: counts[cell], text: counts[cell].toLocaleString("en") }]));
    const hops = (bytes) => (bytes > 0 ? "+" : "") + bytesText(bytes).replace("-", "−");
    // Facts only: a strategy does not say why it moves an object.
    const busier = (i) => {
      const [then, now] = [was, is].map((it) => Math.max(it.load_seconds[was.pe_of[i]], it.load_seconds[is.pe_of[i]]));
      return { value: now - then, text: changeText(then, now) };
    };
    const hasHops = is.hop_bytes_added.length > 0, heads = ["object", "from PE", "to PE", "load", "change of the busier PE", ...(hasHops ? ["change of hop-bytes"] : [])];
    const rows = (list) => table("objects that move", heads, list.slice(0, most).map((i) => [{ value: i, text: objectName(i) }, was.pe_of[i], is.pe_of[i],
      { value: load[i], text: loadText(load[i]) }, busier(i), ...(hasHops ? [{ value: is.hop_bytes_added[i], text: hops(is.hop_bytes_added[i]) }] : [])]));
    moved.sort((a, b) => load[b] - load[a]);
    // An object with the id that was typed, or whose name ends in this number, comes first.
    const isExact = (i) => {
      const name = objectName(i);
      return name === wanted || /^\d+$/.test(wanted) && [data.objects.ids[i], name.match(/\d+(?=\]?$)/)?.[0]].includes(wanted);
    };
    const found = () => {
      if (!wanted) return moved;
      const [exact, others] = [[], []];
      for (const i of moved) {
        if (isExact(i)) exact.push(i);
        else if (objectName(i).includes(wanted)) others.push(i);
      }
      return [...exact, ...others];
    };
    /** A sentence about the object that was searched and does not move. */
    const staying = () => {
      const all = is.pe_of.map((_, i) => i), named = all.find((i) => objectName(i) === wanted) ?? all.find(isExact);
      return named === undefined ? `No object has the name ${wanted}.` : `${objectName(named)} stays on ${peName(is.pe_of[named])}.`;
    };
    const listed = () => {
      const list = found();
      const isMoving = !wanted || list.some(isExact);
      return [...(isMoving || list.length && !/^\d+$/.test(wanted) ? [] : [make("p", {}, staying())]), ...(list.length ? [rows(list)] : [])];
    };
    // A table of all objects of a large run would take longer than a glance; the search finds each of them.
    const list = make("div", { class: "moving" }, ...listed());
    const search = make("input", { type: "search", placeholder: "Find an object", value: wanted, "aria-label": "Find an object by name",
      oninput: (event) => { wanted = event.target.value; orders.delete("objects that move"); list.replaceChildren(...listed()); } });
    section.append(make("div", { class: "pair wide" }, make("div", {}, make("h3", {}, `from (row) to (column), by ${kind}`),
      picture(margin + size, margin + size, `Migrations of ${moved.length} objects`, draw, at, [margin, margin, size / bins, size / bins]), legend("viridis", "1 object", countText(top, "object"), "migrations; blank: none"), asText("Migrations as a table", pairs)),
    make("div", {}, make("h3", {}, "objects that move, heaviest first"), search, list,
      moved.length > most ? make("p", { class: "note" }, `The table has the ${most.toLocaleString("en")} heaviest objects; the search finds the others.`) : undefined)));
    const bytes = is.metrics.migrated_bytes;
    section.append(make("p", { class: "note" }, `The last columns say what changes by all migrations together: the larger load of the two PEs${hasHops ? ", and the hop-bytes of the object" : ""}. An object for which nothing improves may make room for another one, or follow one.`));
    if (is.between.length > 1) section.append(fewerMigrations(is));
    return `${is.name} moves ${moved.length.toLocaleString("en")} of ${countText(is.pe_of.length, "object")}${bytes ? ` (${bytesText(bytes)})` : ""}.`;
  },
};
