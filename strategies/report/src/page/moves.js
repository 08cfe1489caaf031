// Panel 6: which objects migrate, from where to where, and what improves.
/** What the search looks for. */
let wanted = "";
/** The number of objects that the table lists and sorts, the heaviest ones. */
const mostRows = 2000;

/** The objects that two placements place differently. */
function movedObjects(was, is) {
  const moved = [];
  is.pe_of.forEach((pe, i) => { if (pe !== was.pe_of[i]) moved.push(i); });
  return moved;
}
/** The migrations from node to node: a picture, and the same as a table. */
function migrationMatrix(moved, was, is) {
  const nodes = [...new Set(data.pes.nodes)].sort((a, b) => a - b), n = nodes.length, bins = Math.min(n, 128);
  const binOf = new Map(nodes.map((node, at) => [node, Math.floor(at * bins / n)])), counts = new Float64Array(bins * bins);
  const bin = (it, i) => binOf.get(data.pes.nodes[it.pe_of[i]]);
  moved.forEach((i) => { counts[bin(was, i) * bins + bin(is, i)]++; });
  const top = largest(counts), size = 320, kind = n === peCount() ? "PE" : "node";
  const span = (bin) => [bin, bin + 1].map((bin) => Math.ceil(bin * n / bins));
  const name = (bin) => {
    const [first, end] = span(bin);
    return end - first > 1 ? `${kind}s ${nodes[first]} to ${nodes[end - 1]}` : `${kind} ${nodes[first]}`;
  };
  const labels = middles(bins, (bin) => nodes[span(bin)[0]]), amount = (count) => top === 1 ? 1 : (count - 1) / (top - 1);
  const draw = (context) => {
    labelAxes(context, [margin, margin, size, size], labels, labels);
    context.translate(margin, margin);
    paintCells(context, size, size, bins, bins, (c, r) => counts[r * bins + c] ? colour("viridis", amount(counts[r * bins + c])) : null);
    context.fillStyle = faint;
    for (let bin = 1; bin < bins && bins <= 16; bin++) {
      context.fillRect(bin / bins * size, 0, 1, size);
      context.fillRect(0, bin / bins * size, size, 1);
    }
  };
  const at = (to, from) => `${name(from)} to ${name(to)}: ${countText(counts[from * bins + to], "object")}`;
  const pairs = () => table("migrations", ["from", "to", "objects"], [...counts.keys()].filter((at) => counts[at]).sort((a, b) => counts[b] - counts[a] || a - b)
    .map((at) => [name(Math.floor(at / bins)), name(at % bins), cell(counts[at], String)]));
  return make("div", {}, make("h3", {}, `from (row) to (column), by ${kind}`),
    picture(margin + size, margin + size, `Migrations of ${moved.length} objects`, draw, at, [margin, margin, size / bins, size / bins, bins, bins]),
    top === 1 ? make("p", { class: "note" }, "A coloured cell is 1 migration.") : legend("viridis", "1 object", countText(top, "object"), "migrations; blank: none"),
    asText("Migrations as a table", pairs));
}

/** What the loads say for or against the move of an object. A strategy does not say why it moves one. */
function loadReason(i, was, is, moved) {
  const load = data.objects.load_seconds[i], [from, to] = [was, is].map((it) => it.pe_of[i]);
  const [left, reached] = [from, to].map((pe) => `PE ${pe} ${againstAverage(was, was.load_seconds[pe])} before and ${againstAverage(is, is.load_seconds[pe])} after`);
  const stayed = is.load_seconds[from] + load / (data.pes.speeds[from] || 1), busiest = Math.max(is.load_seconds[from], is.load_seconds[to]);
  // Room is needed only if this PE would be the heaviest of all.
  const arrival = stayed > 1.002 * is.metrics.max_load_seconds ? moved.find((other) => is.pe_of[other] === from) : undefined;
  let verdict = "as far as loads go, it could stay";
  if (stayed > 1.002 * busiest && was.load_seconds[from] >= was.metrics.average_load_seconds) verdict = "with all moves both PEs stay below that: its load is a reason for this move";
  else if (stayed > 1.002 * busiest && arrival !== undefined) verdict = `no PE has so much; the move makes room for objects that arrive, such as ${objectName(arrival)} (${loadText(data.objects.load_seconds[arrival])})`;
  return `Loads against the average: ${left}, ${reached}. If this object alone stayed, PE ${from} would have ${againstAverage(is, stayed)}: ${verdict}.`;
}
/** What the numbers say for or against the move of an object. */
function reasonFor(i, was, is, moved) {
  const text = [`${objectName(i)} (${loadText(data.objects.load_seconds[i])}) moves from ${peName(was.pe_of[i])} to ${peName(is.pe_of[i])}.`];
  if (was.metrics.average_load_seconds) text.push(loadReason(i, was, is, moved));
  const added = is.hop_bytes_added[i];
  if (added < 0) text.push(`Its hop-bytes fall by ${bytesText(-added)}, which speaks for this move.`);
  else if (added > 0) text.push(`Its hop-bytes rise by ${bytesText(added)}, which speaks against it.`);
  else if (added === 0) text.push("Its hop-bytes do not change.");
  return text.join(" ");
}

/** A name without what people write in different ways. */
const plain = (name) => name.toLowerCase().replace(/\s+/g, "");
/** How well an object fits a text: 3 is its name, 2 its id or a name that ends in this number, 1 a part of its name, 0 not at all. */
function fit(i, text) {
  const name = plain(objectName(i));
  if (name === text) return 3;
  return [data.objects.ids[i], /^\d+$/.test(text) && name.match(/\d+(?=\]?$)/)?.[0]].includes(text) ? 2 : name.includes(text) ? 1 : 0;
}
/** The table of objects that move, with the loads of their PEs before, and what changes by all migrations together. */
function movedTable(list, isExplained, explain, was, is) {
  const load = data.objects.load_seconds, hasHops = is.hop_bytes_added.length > 0;
  const loaded = (pe) => cell(pe, () => was.metrics.average_load_seconds ? `${pe} (${againstAverage(was, was.load_seconds[pe])})` : String(pe));
  const busier = (i) => {
    const [then, now] = [was, is].map((it) => Math.max(it.load_seconds[was.pe_of[i]], it.load_seconds[is.pe_of[i]]));
    return cell(now - then, () => changeText(then, now));
  };
  const hops = (bytes) => (bytes > 0 ? "+" : "") + bytesText(bytes).replace("-", "−");
  const rows = list.slice(0, mostRows).map((i) => [{ value: i, text: () => make("button", { onclick: () => explain(i) }, objectName(i)) },
    loaded(was.pe_of[i]), loaded(is.pe_of[i]), cell(load[i], loadText), busier(i), ...(hasHops ? [cell(is.hop_bytes_added[i], hops)] : [])]);
  const heads = ["object", "from PE (load)", "to PE (load)", "load", "larger load of the two PEs, by all moves", ...(hasHops ? ["hop-bytes, by all moves"] : [])];
  return table("objects that move", heads, rows, 200, (at) => ({ "data-object": list[at], "aria-current": isExplained(list[at]) }));
}
/** The search, what it found and why it moves, and the table. */
function movedList(moved, was, is) {
  const found = make("p", { class: "note", role: "status" }), sentence = make("p", { role: "status" }), list = make("div", { class: "moving heads" });
  let explained;
  /** Says what the numbers say of the move of an object, and marks its row. */
  const explain = (i) => {
    explained = i;
    sentence.textContent = reasonFor(i, was, is, moved);
    list.querySelectorAll("tbody tr").forEach((row) => row.setAttribute("aria-current", Number(row.dataset.object) === i));
  };
  const fill = () => {
    const text = plain(wanted).replace(/^#/, ""), ranks = text ? is.pe_of.map((_, i) => fit(i, text)) : [], best = largest(ranks);
    const these = text ? moved.filter((i) => ranks[i]).sort((a, b) => ranks[b] - ranks[a]) : moved;
    const fitting = best ? ranks.flatMap((rank, i) => rank === best ? [i] : []) : [], moving = fitting.filter((i) => is.pe_of[i] !== was.pe_of[i]);
    explained = undefined;
    list.replaceChildren(...(these.length ? [movedTable(these, (i) => i === explained, explain, was, is)] : []));
    found.textContent = fitting.length > 1 ? `${countText(fitting.length, "object")} fit ${wanted}; ${moving.length} of them move.` : "";
    if (!text || moving.length) return explain(these[0]);
    sentence.textContent = best ? fitting.slice(0, 8).map((i) => `${objectName(i)} stays on ${peName(is.pe_of[i])}.`).join(" ") : `No object has the name ${wanted}.`;
  };
  const search = make("input", { type: "search", placeholder: "Find an object", value: wanted, "aria-label": "Find an object by name",
    oninput: (event) => { wanted = event.target.value; orders.delete("objects that move"); fill(); } });
  fill();
  // A table of all objects of a large run would take longer than a glance; the search finds each of them.
  const rest = moved.length > mostRows ? make("p", { class: "note" }, `The table has the ${mostRows} heaviest objects; the search finds the others.`) : undefined;
  return make("div", {}, make("h3", {}, `${countText(moved.length, "object")} that move${moved.length === 1 ? "s" : ""}`), search, found, sentence, list, rest);
}

const moves = {
  id: "moves", title: "Migrations",
  exists: () => data.placements.some((it) => it.metrics.migrations > 0),
  lacks: "No placement moves an object.",
  draw(section) {
    const [was, is] = [before(), after()], moved = movedObjects(was, is), load = data.objects.load_seconds;
    if (!moved.length) return `${is === was ? "This placement" : is.name} moves no object.`;
    moved.sort((a, b) => load[b] - load[a]);
    section.append(make("div", { class: "pair wide" }, migrationMatrix(moved, was, is), movedList(moved, was, is)));
    section.append(make("p", { class: "note" }, [
      "Choose an object to read what speaks for or against its move.",
      "In parentheses: the load of a PE before, against the average.",
      `The last columns: how all migrations together change the larger load of the two PEs${is.hop_bytes_added.length ? ", and the hop-bytes of the object" : ""}.`,
      "Where nothing improves, an object may make room for another one, or follow one.",
    ].join(" ")));
    if (is.between.length > 1) section.append(fewerMigrations(is));
    else if (data.recommended !== null && state.after !== data.recommended && after().strategy_seconds !== null) section.append(make("p", { class: "note" },
      `What fewer migrations would give was computed for ${data.placements[data.recommended].name} only, which is recommended.`));
    const bytes = is.metrics.migrated_bytes;
    return `${is.name} moves ${moved.length} of ${countText(is.pe_of.length, "object")}${bytes ? ` (${bytesText(bytes)})` : ""}.`;
  },
};
