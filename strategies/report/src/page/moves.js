// Panel 6: which objects migrate, from where to where, and what improves.
/** What the search looks for. */
let wanted = "";
/** The number of objects that the table lists and sorts, the heaviest ones. */
const mostRows = 2000;
const isMoved = (i) => after().pe_of[i] !== before().pe_of[i];
/** The objects that move, the heaviest first. They are sorted once for all strategies. */
function movedObjects() {
  data.objects.by_load ??= [...data.objects.load_seconds.keys()].sort((a, b) => loadOf(b) - loadOf(a));
  return data.objects.by_load.filter(isMoved);
}
/** The migrations from node to node: a picture, and the same as a table. */
function migrationMatrix(moved) {
  const nodes = [...new Set(data.pes.nodes)].sort((a, b) => a - b), n = nodes.length, bins = Math.min(n, 128);
  const binOf = new Map(nodes.map((node, at) => [node, Math.floor(at * bins / n)]));
  const counts = new Float64Array(bins * bins);
  const bin = (it, i) => binOf.get(data.pes.nodes[it.pe_of[i]]);
  moved.forEach((i) => { counts[bin(before(), i) * bins + bin(after(), i)]++; });
  const top = largest(counts), kind = n === peCount() ? "PE" : "node";
  const name = (bin) => {
    const [first, last] = spanOf(n, bin, bins);
    return last > first ? `${kind}s ${nodes[first]} to ${nodes[last]}` : `${kind} ${nodes[first]}`;
  };
  const labels = middles(bins, (bin) => nodes[spanOf(n, bin, bins)[0]]);
  const part = (count) => top === 1 ? 1 : (count - 1) / (top - 1);
  const lines = bins > 16 ? [] : Array.from({ length: bins - 1 }, (_, bin) => [(bin + 1) / bins, faint]);
  const say = (from, to, count) => `${name(from)} to ${name(to)}: ${countText(count, "object")}`;
  const pairs = () => table("migrations", [
    ["from", (at) => name(Math.floor(at / bins))],
    ["to", (at) => name(at % bins)],
    ["objects", (at) => counts[at]],
  ], [...counts.keys()].filter((at) => counts[at]).sort((a, b) => counts[b] - counts[a]));
  return captioned(`from (row) to (column), by ${kind}`,
    matrixPlot(`Migrations of ${moved.length} objects`, 320, counts, [bins, bins], [labels, labels], part, lines, say),
    top === 1 ? note("A coloured cell is 1 migration.")
      : legend("viridis", "1 object", countText(top, "object"), "migrations; blank: none"),
    asText("Migrations as a table", pairs));
}

/** The load of the PE that an object left, if it alone had stayed. */
function loadIfStayed(i) {
  const from = before().pe_of[i];
  return after().load_seconds[from] + loadOf(i) / (data.pes.speeds[from] || 1);
}
/** Whether a load is more than any PE has after, by more than the rounding of loads. */
const isAbove = (load) => load > 1.001 * (after().most ??= largest(after().load_seconds));
const isUnavailable = (pe) => (data.pes.closed ??= new Set(data.pes.unavailable)).has(pe);
/** What the numbers say for the move of an object: its PE, its load, room for others, its distance. */
function reasonsOf(i) {
  const from = before().pe_of[i], wasAbove = isAbove(before().load_seconds[from]), reasons = [];
  if (isUnavailable(from)) reasons.push("its PE is not available");
  else if (isAbove(loadIfStayed(i))) reasons.push(wasAbove ? "load" : "room");
  if (after().hop_bytes_by_move[i] < 0) reasons.push("distance");
  return reasons.length ? reasons : [wasAbove ? "load with others" : "unclear"];
}
const hopsText = (bytes) => (bytes > 0 ? "+" : "") + bytesText(bytes).replace("-", "−");
const hasAverage = () => before().metrics.average_load_seconds > 0;
/** What the numbers say for or against the move of an object. */
function moveText(i) {
  const was = before(), is = after(), hops = is.hop_bytes_by_move[i], stayed = loadIfStayed(i), otherwise = [];
  const loaded = (pe) => peName(pe) + (hasAverage()
    ? ` (${againstAverage(was, was.load_seconds[pe])} before, ${againstAverage(is, is.load_seconds[pe])} after)` : "");
  if (hasAverage()) {
    const most = isAbove(stayed) ? ", more than any PE has after all migrations" : "";
    otherwise.push(`PE ${was.pe_of[i]} would have ${againstAverage(is, stayed)}${most}`);
  }
  if (hops !== undefined) {
    const less = hops === 0 ? "the same" : `${hops < 0 ? "higher" : "lower"} by ${bytesText(Math.abs(hops))}`;
    otherwise.push(`hop-bytes would be ${less}`);
  }
  const stay = ` If it alone had stayed, ${otherwise.join(", and ")}. Reason: ${reasonsOf(i).join(" and ")}.`;
  const moves = `moves from ${loaded(was.pe_of[i])} to ${loaded(is.pe_of[i])}.`;
  return `${objectName(i)} (${loadText(loadOf(i))}) ${moves}${otherwise.length ? stay : ""}`;
}
/** How many objects move for each reason. */
function reasonsText(moved) {
  const counts = { "its PE is not available": 0, load: 0, "load with others": 0, room: 0, distance: 0, unclear: 0 };
  for (const reason of moved.flatMap(reasonsOf)) counts[reason]++;
  const named = Object.entries(counts).filter(([, count]) => count)
    .map(([reason, count]) => `${reason === "room" ? "room for others" : reason}: ${count}`);
  const twice = sum(Object.values(counts)) > moved.length ? " (some have two)" : "";
  return `Reasons${twice}: ${named.join("; ")}.${counts.distance ? ` ${words("distance")}` : ""}`;
}

/** A name without what people write in different ways. */
const plain = (name) => name.toLowerCase().replace(/\s+/g, "");
/**
 * How well an object fits a text: 3 is its name, 2 its id or a number in it, 1 a part of its name, 0 nothing. Where
 * objects have an index, #N is the one with N before it.
 */
function fit(i, text) {
  const name = plain(objectName(i));
  if (name === text || (text === `#${i}` && data.objects.index.length)) return 3;
  text = text.replace(/^#/, "");
  const numbers = [data.objects.ids[i], ...(name.match(/[[#].*/)?.[0].match(/\d+/g) || [])];
  return numbers.includes(text) ? 2 : name.includes(text) ? 1 : 0;
}
function movedTable(list, isExplained, explain) {
  const against = (it, pe) => hasAverage() ? ` (${againstAverage(it, it.load_seconds[pe])})` : "";
  const loaded = (it) => [(i) => it.pe_of[i], (pe) => pe + against(it, pe)];
  return table("objects that move", [
    ["object", (i) => i, (i) => make("button", { onclick: () => explain(i) }, objectName(i))],
    ["from PE (load before)", ...loaded(before())],
    ["to PE (load after)", ...loaded(after())],
    ["load", loadOf, loadText],
    hasAverage() && ["load of its PE if it alone had stayed", loadIfStayed, (load) => againstAverage(after(), load)],
    ["change of hop-bytes by it alone", (i) => after().hop_bytes_by_move[i], hopsText],
    ["reason", (i) => reasonsOf(i).join(" and ")],
  ], list.slice(0, mostRows), { row: (i) => ({ "data-object": i, "aria-current": isExplained(i) }) });
}
/** The search, what it found and why it moves, and the table. */
function movedList(moved) {
  const found = make("p", { class: "note", role: "status" }), sentence = make("p", { role: "status" });
  const list = make("div", { class: "moving heads" });
  let explained;
  /** Says what the numbers say of the move of an object, and marks its row. */
  const explain = (i) => {
    explained = i;
    sentence.textContent = moveText(i);
    const mark = (row) => row.setAttribute("aria-current", Number(row.dataset.object) === i);
    list.querySelectorAll("tbody tr").forEach(mark);
  };
  const fill = () => {
    const text = plain(wanted), ranks = text ? data.objects.array.map((_, i) => fit(i, text)) : [];
    const best = largest(ranks), fitting = best ? [...ranks.keys()].filter((i) => ranks[i] === best) : [];
    const these = text ? moved.filter((i) => best && ranks[i] === best) : moved;
    explained = undefined;
    list.replaceChildren(...(these.length ? [movedTable(these, (i) => i === explained, explain)] : []));
    const several = `${countText(fitting.length, "object")} fit ${wanted}; ${these.length} of them move.`;
    found.textContent = fitting.length > 1 ? several : "";
    if (these.length) return explain(these[0]);
    const stays = fitting.slice(0, 8).map((i) => `${objectName(i)} stays on ${peName(after().pe_of[i])}.`);
    sentence.textContent = best ? stays.join(" ") : `No object has the name ${wanted}.`;
  };
  const oninput = (event) => {
    wanted = event.target.value;
    orders.delete("objects that move");
    fill();
  };
  const search = make("input", { type: "search", placeholder: "Find a name or number", value: wanted,
    "aria-label": "Find an object by name", oninput, onchange: writeAddress });
  fill();
  // A table of all objects of a large run would take longer than a glance; the search finds each of them.
  const rest = `The table has the ${mostRows} heaviest objects; the search finds the others.`;
  return captioned(`${countText(moved.length, "object")} that move${moved.length === 1 ? "s" : ""}`,
    search, found, sentence, list, moved.length > mostRows && note(rest));
}

const moves = {
  id: "moves", title: "Migrations",
  exists: () => data.placements.some((it) => it.metrics.migrations > 0),
  lacks: "No placement moves an object.",
  draw() {
    const { name, pe_of, between, metrics, strategy_seconds } = after(), moved = movedObjects();
    if (!moved.length) return [`${state.after ? name : "This placement"} moves no object.`];
    const best = data.placements[data.recommended];
    const isOther = Boolean(best) && best !== after() && strategy_seconds !== null;
    const onlyBest = `What fewer migrations would give was computed for ${best?.name} only, which has a star in the overview.`;
    const hops = [before(), after()].map((it) => it.metrics.hop_bytes), [from, to] = hops.map((x) => bytesText(x ?? 0));
    const change = from === to ? `stay at ${from}`
      : `${hops[0] < hops[1] ? "rise all the same, from" : "fall from"} ${from} to ${to}`;
    const inAll = hops.every(isKnown) ? ` Hop-bytes of all messages ${change}.` : "";
    const bytes = metrics.migrated_bytes ? ` (${bytesText(metrics.migrated_bytes)})` : "";
    const objects = countText(pe_of.length, "object");
    return [
      `${name} moves ${moved.length} of ${objects}${bytes}. ${reasonsText(moved)}${inAll}`,
      make("div", { class: "pair wide" }, migrationMatrix(moved), movedList(moved)),
      note(words("reasons")),
      between.length > 1 ? fewerMigrations() : isOther && note(onlyBest),
    ];
  },
};
