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
    // A strategy does not say why it moves an object; these are the numbers that speak for or against it.
    const busier = (i) => {
      const [then, now] = [was, is].map((it) => Math.max(it.load_seconds[was.pe_of[i]], it.load_seconds[is.pe_of[i]]));
      return { value: now - then, text: changeText(then, now) };
    };
    const hasHops = is.hop_bytes_added.length > 0, heads = ["object", "from PE (load)", "to PE (load)", "load", "change of the busier PE", ...(hasHops ? ["change of hop-bytes"] : [])];
    /** A PE and its load before, relative to the average. */
    const loaded = (pe) => {
      const part = againstAverage(was, was.load_seconds[pe]);
      return { value: pe, text: part ? `${pe} (${part})` : pe };
    };
    const found = make("p", { class: "note" }), sentence = make("p");
    let explained;
    /** Says what the numbers say of the move of an object, and marks its row. */
    const explain = (i) => {
      explained = i;
      sentence.textContent = reason(i);
      const name = objectName(i);
      list.querySelectorAll("tbody tr").forEach((row) => row.setAttribute("aria-current", row.cells[0].textContent === name));
    };
    const rows = (list) => table("objects that move", heads, list.slice(0, most).map((i) => [{ value: i, text: () => make("button", { onclick: () => explain(i) }, objectName(i)) },
      loaded(was.pe_of[i]), loaded(is.pe_of[i]), { value: load[i], text: loadText(load[i]) }, busier(i), ...(hasHops ? [{ value: is.hop_bytes_added[i], text: hops(is.hop_bytes_added[i]) }] : [])]),
    200, (at) => ({ "aria-current": list[at] === explained }));
    /** What the loads and hop-bytes say for or against the move of an object. */
    const reason = (i) => {
      const [from, to] = [was, is].map((it) => it.pe_of[i]), text = [`${objectName(i)} (${loadText(load[i])}) moves from ${peName(from)} to ${peName(to)}.`];
      if (was.metrics.average_load_seconds) {
        const [left, reached] = [from, to].map((pe) => `PE ${pe} ${againstAverage(was, was.load_seconds[pe])} before and ${againstAverage(is, is.load_seconds[pe])} after`);
        const stayed = is.load_seconds[from] + load[i] / (data.pes.speeds[from] || 1), busiest = Math.max(is.load_seconds[from], is.load_seconds[to]);
        const isLight = was.load_seconds[from] < was.metrics.average_load_seconds;
        // Room is needed only if this PE would be the heaviest of all.
        const arrival = stayed > 1.0005 * is.metrics.max_load_seconds ? moved.find((other) => is.pe_of[other] === from) : undefined;
        let verdict = "the loads do not speak for this move";
        if (stayed > 1.0005 * busiest && !isLight) verdict = "more than both PEs have after all moves, so the loads speak for this move";
        else if (stayed > 1.0005 * busiest && arrival !== undefined) verdict = `more than any PE has after all moves; it makes room for objects that arrive, such as ${objectName(arrival)} (${loadText(load[arrival])})`;
        text.push(`Loads against the average: ${left}, ${reached}.`, `If this object alone stayed, PE ${from} would have ${againstAverage(is, stayed)}: ${verdict}.`);
      }
      const added = is.hop_bytes_added[i];
      if (hasHops) text.push(!added ? "Its hop-bytes do not change." : added < 0 ? `Its hop-bytes fall by ${bytesText(-added)}, which speaks for this move.` : `Its hop-bytes rise by ${bytesText(added)}, which speaks against it.`);
      return text.join(" ");
    };
    moved.sort((a, b) => load[b] - load[a]);
    /** A name without what people write in different ways. */
    const plain = (name) => name.toLowerCase().replace(/\s+/g, "");
    /** How well an object fits what was typed: 3 is its name, 2 its id or a name that ends in this number, 1 a part of its name. */
    const fits = (i) => {
      const name = plain(objectName(i)), text = plain(wanted).replace(/^#/, "");
      return name === text ? 3 : [data.objects.ids[i], /^\d+$/.test(text) && name.match(/\d+(?=\]?$)/)?.[0]].includes(text) ? 2 : name.includes(text) ? 1 : 0;
    };
    const fill = () => {
      const ranks = wanted ? is.pe_of.map((_, i) => fits(i)) : [], best = largest(ranks);
      explained = undefined;
      const these = wanted ? moved.filter((i) => ranks[i]).sort((a, b) => ranks[b] - ranks[a]) : moved;
      list.replaceChildren(...(these.length ? [rows(these)] : []));
      const fitting = best ? ranks.flatMap((rank, i) => rank === best ? [i] : []) : [], moving = fitting.filter((i) => is.pe_of[i] !== was.pe_of[i]);
      found.textContent = fitting.length > 1 ? `${countText(fitting.length, "object")} fit ${wanted}; ${moving.length.toLocaleString("en")} of them move.` : "";
      if (!wanted || moving.length) return explain(these[0]);
      sentence.textContent = best ? fitting.slice(0, 8).map((i) => `${objectName(i)} stays on ${peName(is.pe_of[i])}.`).join(" ") : `No object has the name ${wanted}.`;
    };
    // A table of all objects of a large run would take longer than a glance; the search finds each of them.
    const list = make("div", { class: "moving heads" });
    const search = make("input", { type: "search", placeholder: "Find an object", value: wanted, "aria-label": "Find an object by name",
      oninput: (event) => { wanted = event.target.value; orders.delete("objects that move"); fill(); } });
    fill();
    section.append(make("div", { class: "pair wide" }, make("div", {}, make("h3", {}, `from (row) to (column), by ${kind}`),
      picture(margin + size, margin + size, `Migrations of ${moved.length} objects`, draw, at, [margin, margin, size / bins, size / bins]), top === 1 ? make("p", { class: "note" }, "A coloured cell is 1 migration.") : legend("viridis", "1 object", countText(top, "object"), "migrations; blank: none"), asText("Migrations as a table", pairs)),
    make("div", {}, make("h3", {}, "objects that move"), search, found, sentence, list,
      moved.length > most ? make("p", { class: "note" }, `The table has the ${most.toLocaleString("en")} heaviest objects; the search finds the others.`) : undefined)));
    const bytes = is.metrics.migrated_bytes;
    section.append(make("p", { class: "note" }, `Choose an object to read what its numbers say for or against its move. In parentheses: the load of a PE before, against the average. The last columns say what changes by all migrations together: the larger load of the two PEs${hasHops ? ", and the hop-bytes of the object" : ""}. An object for which nothing improves may make room for another one, or follow one.`));
    if (is.between.length > 1) section.append(fewerMigrations(is));
    return `${is.name} moves ${moved.length.toLocaleString("en")} of ${countText(is.pe_of.length, "object")}${bytes ? ` (${bytesText(bytes)})` : ""}.`;
  },
};
