// What all panels share: the state, numbers with units, names, colours and elements.
let data = null;
const state = { after: 0, panel: "summary", theme: "" };
const before = () => data.placements[0];
const after = () => data.placements[state.after];
/** The placement before, with what it is. */
const nameBefore = () => before().name === "before" ? "before" : `before (${before().name})`;
/** The placements that panels show, with their names; a single one needs no name. */
function pair() {
  if (state.after) return [[before(), "before"], [after(), after().name]];
  return [[before(), data.placements.length > 1 ? nameBefore() : ""]];
}
/** A placement within a sentence: " before", or " with PoiseLB"; nothing if there is only one. */
const spoken = (it) => it !== before() ? ` with ${it.name}` : state.after ? " before" : "";
/** What `text` says of each placement that panels show, within a sentence. */
const compared = (text) => pair().map(([it], k) => text(it, k) + spoken(it)).join(", ");
/** The placements that panels show, next to each other: what `text` says as a heading, then what `parts` makes. */
const sideBySide = (text, parts) => make("div", { class: "pair" }, ...pair().map(([it, name]) =>
  captioned(name ? `${name}: ${text(it)}` : text(it), ...parts(it, name))));

/** The document of the page. */
async function decoded() {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent.trim()), (c) => c.charCodeAt(0));
  return new Response(new Response(bytes).body.pipeThrough(new DecompressionStream("deflate-raw"))).json();
}

const digits = (x) => x === 0 ? "0" : Math.abs(x) >= 100 ? x.toFixed(0) : x.toPrecision(3);
/** A number with one of these units, of which each is 1000 times the one before it. */
function withUnit(x, units) {
  const at = units.findLastIndex((_, at) => at === 0 || Math.abs(x) >= 999.5 * 1000 ** (at - 1));
  return `${at === 0 && Number.isInteger(x) ? x : digits(x / 1000 ** at)} ${units[at]}`;
}
const bytesText = (x) => withUnit(x, ["B", "kB", "MB", "GB", "TB", "PB"]);
const secondsText = (x) =>
  Math.abs(x) >= 1 || x === 0 ? `${digits(x)} s` : withUnit(x * 1e9, ["ns", "us", "ms", "s"]);
/** A load: seconds, or a weight of a task graph without a unit. */
const loadText = (x) => data.weights ? String(Number(x.toPrecision(4))) : secondsText(x);
/** Parts that are almost nothing or almost all have a decimal. */
const percentText = (x) => `${(100 * x).toFixed(x < 0.1 || (x > 0.99 && x < 0.9995) ? 1 : 0)} %`;
const ratioText = (x) => x.toFixed(3);
const countText = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;
const signed = (part) => {
  const text = percentText(Math.abs(part));
  return `${/[1-9]/.test(text) ? part < 0 ? "−" : "+" : "±"}${text}`;
};
function changeText(then, now) {
  if (then === now) return "unchanged";
  return then === 0 ? "none before" : now < 10 * then ? signed(now / then - 1) : `${digits(now / then)} times`;
}
/** A load of a placement relative to the average load of its PEs, such as "+45 %". */
const againstAverage = (it, load) => signed(load / it.metrics.average_load_seconds - 1);
const peCount = () => data.pes.nodes.length;
const peName = (pe) => data.pes.names[pe] ? `PE ${pe} (${data.pes.names[pe]})` : `PE ${pe}`;
const pesName = (first, last) => first === last ? peName(first) : `PEs ${first} to ${last}`;
/** The id in its array of an object of a dump of Charm++, as in the function `id_in_array` that reads them. */
const numberIn = (array, id) => array === `array ${BigInt(id) >> 48n}` ? String(BigInt(id) % (1n << 48n)) : id;
function objectName(i) {
  const { arrays, array, index, dimensions, ids } = data.objects;
  const name = arrays[array[i]] || (arrays.length ? `array ${array[i]}` : ""), n = dimensions[i] ?? index.length;
  if (n) return `${name}[${index.slice(0, n).map((column) => column[i]).join(", ")}]`;
  return name ? `${name}#${numberIn(name, ids[i] ?? i)}` : `object ${ids[i] ?? i}`;
}
/** The name of the largest value, and how many others are as large. */
function heaviestOf(values, name) {
  const most = largest(values), others = values.filter((value) => value === most).length - 1;
  if (others > 0 && others + 1 === values.length) return "all";
  return name(values.indexOf(most)) + (others > 0 ? ` and ${countText(others, "other")}` : "");
}
/** Such as "a, b and c". */
const listText = (names) => names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join();
const largest = (list) => list.reduce((most, x) => x > most ? x : most, 0);
const sum = (list) => list.reduce((sum, x) => sum + x, 0);

/** The red, green and blue of 256 amounts on a colour map, which are mixed from its anchors. */
function mixed(anchors) {
  const ends = anchors.split(" ").map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, step) => {
    const x = step / 255 * (ends.length - 1), low = Math.min(ends.length - 2, Math.floor(x));
    return ends[low].map((c, k) => Math.round(c + (x - low) * (ends[low + 1][k] - c)));
  });
}
/** For readers with any sight: viridis for amounts, cividis for loads; the values are anchors of the published maps. */
const maps = {
  viridis: mixed("440154 482878 3e4a89 31688e 26828e 1f9e89 35b779 6dcd59 b4de2c fde725"),
  cividis: mixed("00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838"),
};
/** Where colour maps begin: their darkest colours could not be told from a dark page. */
let darkest = 0;
const colour = (map, part) => maps[map][Math.round(255 * Math.max(0, Math.min(1, darkest + (1 - darkest) * part)))];
const css = (map, part) => `rgb(${colour(map, part).join(",")})`;
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** An element without the attributes and children that are false; text is never read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== false));
  return element;
}
/** A choice among texts, of which the n-th is chosen; `choose` gets the position of another one. */
function select(label, texts, chosen, choose) {
  const options = texts.map((text, i) => make("option", { value: i, selected: i === chosen }, text));
  return make("select", { "aria-label": label, onchange: (event) => choose(Number(event.target.value)) }, ...options);
}
const heading = (text) => make("h3", {}, text);
const captioned = (text, ...parts) => make("div", {}, heading(text), ...parts);
const note = (text) => make("p", { class: "note" }, text);
/** A text of the page that has no numbers, without the ends of its lines. */
const words = (name) => document.getElementById(`words-${name}`).content.textContent.trim().replaceAll("\n", " ");
/** What is across and down in a picture. */
const axis = (text) => make("div", { class: "axis" }, text);
const safe = (text) => String(text).replace(/[<>&"']/g, (c) => `&#${c.charCodeAt(0)};`);
/** A picture in SVG; `inside` is its markup, whose texts are made safe by `safe`. */
function svg(width, height, label, inside) {
  const holder = make("div");
  holder.innerHTML = `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${safe(label)}">${inside}</svg>`;
  return holder;
}
const svgText = (x, y, text, anchor = "start") =>
  `<text x="${x}" y="${y}" text-anchor="${anchor}">${safe(text)}</text>`;
/** A bar with a text at its end; bars of small values can be seen. */
function svgBar([x, y, wide, high], ink, text) {
  const size = `width="${wide ? Math.max(1, wide) : 0}" height="${high}"`;
  return `<rect x="${x}" y="${y}" ${size} fill="${ink}"/>` + svgText(x + 6 + wide, y + 12, text);
}
