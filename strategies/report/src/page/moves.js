// Panel 6: which objects migrate, from where to where, and what improves.
/** What the search looks for. */
let wanted = "";
/** The number of objects that the table lists and sorts, the heaviest ones. */
const mostRows = 2000;

/** The objects that two placements place differently, the heaviest first. They are sorted once for all strategies. */
const movedObjects = (was, is) => {
  const load = data.objects.load_seconds;
  return (data.objects.by_load ??= [...load.keys()].sort((a, b) => load[b] - load[a])).filter((i) => is.pe_of[i] !== was.pe_of[i]);
};
/** The migrations from node to node: a picture, and the same as a table. */
function migrationMatrix(moved, was, is) {
  const nodes = [...new Set(data.pes.nodes)].sort((a, b) => a - b), n = nodes.length, bins = Math.min(n, 128);
  const binOf = new Map(nodes.map((node, at) => [node, Math.floor(at * bins / n)])), counts = new Float64Array(bins * bins);
  const bin = (it, i) => binOf.get(data.pes.nodes[it.pe_of[i]]);
  moved.forEach((i) => { counts[bin(was, i) * bins + bin(is, i)]++; });
  const top = largest(counts), kind = n === peCount() ? "PE" : "node";
  const name = (bin) => {
    const [first, last] = spanOf(n, bin, bins);
    return last > first ? `${kind}s ${nodes[first]} to ${nodes[last]}` : `${kind} ${nodes[first]}`;
  };
  const labels = middles(bins, (bin) => nodes[spanOf(n, bin, bins)[0]]), part = (count) => top === 1 ? 1 : (count - 1) / (top - 1);
  const lines = bins > 16 ? [] : Array.from({ length: bins - 1 }, (_, bin) => [(bin + 1) / bins, faint]);
  const say = (from, to, count) => `${name(from)} to ${name(to)}: ${countText(count, "object")}`;
  const pairs = () => table("migrations", ["from", "to", "objects"], [...counts.keys()].filter((at) => counts[at]).sort((a, b) => counts[b] - counts[a] || a - b)
    .map((at) => [name(Math.floor(at / bins)), name(at % bins), cell(counts[at], String)]));
  return make("div", {}, make("h3", {}, `from (row) to (column), by ${kind}`),
    matrixPlot(`Migrations of ${moved.length} objects`, 320, counts, [bins, bins], [labels, labels], part, lines, say),
    top === 1 ? note("A coloured cell is 1 migration.") : legend("viridis", "1 object", countText(top, "object"), "migrations; blank: none"),
    asText("Migrations as a table", pairs));
}

/** The load of the PE that an object left, if it alone had stayed. */
const loadIfStayed = (i, was, is) => is.load_seconds[was.pe_of[i]] + data.objects.load_seconds[i] / (data.pes.speeds[was.pe_of[i]] || 1);
/** Whether a load is more than any PE has with a placement, by more than the rounding of loads. */
const isAbove = (load, it) => load > 1.001 * (it.most ??= largest(it.load_seconds));
const isUnavailable = (pe) => (data.pes.closed ??= new Set(data.pes.unavailable)).has(pe);
/** What the numbers say for the move of an object: its PE, its load, room for others, its distance. */
function reasonsOf(i, was, is) {
  const from = was.pe_of[i];
  const wasAbove = isAbove(was.load_seconds[from], is);
  const ofPe = isUnavailable(from) ? ["its PE is not available"] : isAbove(loadIfStayed(i, was, is), is) ? [wasAbove ? "load" : "room"] : [];
  const reasons = [...ofPe, ...(is.hop_bytes_by_move[i] < 0 ? ["distance"] : [])];
  return reasons.length ? reasons : [wasAbove ? "load with others" : "unclear"];
}
const hopsText = (bytes) => (bytes > 0 ? "+" : "") + bytesText(bytes).replace("-", "−");
/** What the numbers say for or against the move of an object. */
function moveText(i, was, is) {
  const [from, to] = [was, is].map((it) => it.pe_of[i]), hasAverage = was.metrics.average_load_seconds > 0;
  const loaded = (pe) => hasAverage ? `${peName(pe)} (${againstAverage(was, was.load_seconds[pe])} before, ${againstAverage(is, is.load_seconds[pe])} after)` : peName(pe);
  const stayed = loadIfStayed(i, was, is), most = isAbove(stayed, is) ? ", more than any PE has after all migrations" : "";
  const hops = is.hop_bytes_by_move[i], less = hops === 0 ? "the same" : `${hops < 0 ? "higher" : "lower"} by ${bytesText(Math.abs(hops))}`;
  const otherwise = [...(hasAverage ? [`PE ${from} would have ${againstAverage(is, stayed)}${most}`] : []), ...(hops === undefined ? [] : [`hop-bytes would be ${less}`])];
  const stay = otherwise.length ? ` If it alone had stayed, ${otherwise.join(", and ")}. Reason: ${reasonsOf(i, was, is).join(" and ")}.` : "";
  return `${objectName(i)} (${loadText(data.objects.load_seconds[i])}) moves from ${loaded(from)} to ${loaded(to)}.${stay}`;
}
/** How many objects move for each reason. */
function reasonsText(moved, was, is) {
  const counts = {};
  for (const i of moved) for (const reason of reasonsOf(i, was, is)) counts[reason] = (counts[reason] || 0) + 1;
  const names = ["its PE is not available", "load", "load with others", "room", "distance", "unclear"].filter((name) => counts[name]);
  const twice = sum(Object.values(counts)) > moved.length ? " (some have two)" : "";
  const nearer = counts.distance ? " Distance: hop-bytes would be higher if it alone had stayed, as those with which it exchanges messages may have moved." : "";
  return `Reasons${twice}: ${names.map((name) => `${name === "room" ? "room for others" : name}: ${counts[name]}`).join("; ")}.${nearer}`;
}

/** A name without what people write in different ways. */
const plain = (name) => name.toLowerCase().replace(/\s+/g, "");
/** How well an object fits a text: 3 is its name, 2 its id or a number of its index, 1 a part of its name, 0 not at all. */
function fit(i, text) {
  const name = plain(objectName(i));
  if (name === text) return 3;
  return [data.objects.ids[i], ...(name.match(/[[#].*/)?.[0].match(/\d+/g) || [])].includes(text) ? 2 : name.includes(text) ? 1 : 0;
}
/** The table of objects that move, and why. */
function movedTable(list, isExplained, explain, was, is) {
  const load = data.objects.load_seconds, hasHops = is.hop_bytes_by_move.length > 0, hasAverage = was.metrics.average_load_seconds > 0;
  const loaded = (it, i) => cell(it.pe_of[i], (pe) => hasAverage ? `${pe} (${againstAverage(it, it.load_seconds[pe])})` : String(pe));
  const rows = list.slice(0, mostRows).map((i) => [{ value: i, text: () => make("button", { onclick: () => explain(i) }, objectName(i)) },
    loaded(was, i), loaded(is, i), cell(load[i], loadText), cell(loadIfStayed(i, was, is), (x) => againstAverage(is, x)),
    cell(is.hop_bytes_by_move[i], hopsText), reasonsOf(i, was, is).join(" and ")]);
  const heads = ["object", "from PE (load before)", "to PE (load after)", "load", hasAverage && "load of its PE if it alone had stayed",
    hasHops && "change of hop-bytes by it alone", "reason"];
  return table("objects that move", heads, rows, 200, (at) => ({ "data-object": list[at], "aria-current": isExplained(list[at]) }));
}
/** The search, what it found and why it moves, and the table. */
function movedList(moved, was, is) {
  const found = make("p", { class: "note", role: "status" }), sentence = make("p", { role: "status" }), list = make("div", { class: "moving heads" });
  let explained;
  /** Says what the numbers say of the move of an object, and marks its row. */
  const explain = (i) => {
    explained = i;
    sentence.textContent = moveText(i, was, is);
    list.querySelectorAll("tbody tr").forEach((row) => row.setAttribute("aria-current", Number(row.dataset.object) === i));
  };
  const fill = () => {
    const text = plain(wanted).replace(/^#/, ""), ranks = text ? is.pe_of.map((_, i) => fit(i, text)) : [], best = largest(ranks);
    const fitting = best ? ranks.flatMap((rank, i) => rank === best ? [i] : []) : [], moving = fitting.filter((i) => is.pe_of[i] !== was.pe_of[i]);
    const these = text ? moved.filter((i) => best && ranks[i] === best) : moved;
    explained = undefined;
    list.replaceChildren(...(these.length ? [movedTable(these, (i) => i === explained, explain, was, is)] : []));
    found.textContent = fitting.length > 1 ? `${countText(fitting.length, "object")} fit ${wanted}; ${moving.length} of them move.` : "";
    if (!text || moving.length) return explain(these[0]);
    sentence.textContent = best ? fitting.slice(0, 8).map((i) => `${objectName(i)} stays on ${peName(is.pe_of[i])}.`).join(" ") : `No object has the name ${wanted}.`;
  };
  const search = make("input", { type: "search", placeholder: "Find a name or number", value: wanted, "aria-label": "Find an object by name",
    oninput: (event) => { wanted = event.target.value; orders.delete("objects that move"); fill(); }, onchange: writeAddress });
  fill();
  // A table of all objects of a large run would take longer than a glance; the search finds each of them.
  const rest = moved.length > mostRows && note(`The table has the ${mostRows} heaviest objects; the search finds the others.`);
  return make("div", {}, make("h3", {}, `${countText(moved.length, "object")} that move${moved.length === 1 ? "s" : ""}`), search, found, sentence, list, rest);
}

const moves = {
  id: "moves", title: "Migrations",
  exists: () => data.placements.some((it) => it.metrics.migrations > 0),
  lacks: "No placement moves an object.",
  draw(section) {
    const [was, is] = [before(), after()], moved = movedObjects(was, is);
    if (!moved.length) return `${is === was ? "This placement" : is.name} moves no object.`;
    section.append(make("div", { class: "pair wide" }, migrationMatrix(moved, was, is), movedList(moved, was, is)), note([
      "Loads are against the average.",
      "“If it alone had stayed” and the change of hop-bytes: with all other migrations done.",
      "A strategy does not say why it moves an object. Reasons are what these numbers say. Load: had it stayed, its PE would have more than any PE has after. Room: the same, but its PE had no more than that before, so others need the room. Distance: hop-bytes fall by its migration alone. Load with others: its PE had too much, but one of the objects that left could have stayed.",
    ].join(" ")));
    if (is.between.length > 1) section.append(fewerMigrations(is));
    else if (data.recommended !== null && state.after !== data.recommended && after().strategy_seconds !== null) section.append(note(
      `What fewer migrations would give was computed for ${data.placements[data.recommended].name} only, which is recommended.`));
    const bytes = is.metrics.migrated_bytes;
    const hops = [was, is].map((it) => it.metrics.hop_bytes), [from, to] = hops.map((x) => bytesText(x ?? 0));
    const change = from === to ? `stay at ${from}` : `${hops[0] < hops[1] ? "rise all the same, from" : "fall from"} ${from} to ${to}`, inAll = hops.every((x) => (x ?? null) !== null) ? ` Hop-bytes of all messages ${change}.` : "";
    return `${is.name} moves ${moved.length} of ${countText(is.pe_of.length, "object")}${bytes ? ` (${bytesText(bytes)})` : ""}. ${reasonsText(moved, was, is)}${inAll}`;
  },
};
