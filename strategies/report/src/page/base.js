// What all panels share: the state, numbers with units, colours, elements, and canvases that are labelled and can be hovered.
let data = null;
const state = { after: 0, panel: "summary", theme: "" };
const before = () => data.placements[0];
const after = () => data.placements[state.after];
/** The placement before, with what it is. */
const nameBefore = () => before().name === "before" ? "before" : `before (${before().name})`;
const pair = () => state.after ? [[before(), "before"], [after(), after().name]] : [[before(), data.placements.length > 1 ? nameBefore() : ""]];
/** A head about a placement; the name is empty if there is only one. */
const headed = (name, text) => name ? `${name}: ${text}` : text;
/** A placement within a sentence: " before", or " with PoiseLB"; nothing if there is only one. */
const spoken = (it, name) => it !== before() ? ` with ${name}` : state.after ? " before" : "";

/** Decodes the document of the page. */
async function decoded() {
  const text = atob(document.getElementById("data").textContent.trim());
  const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

const digits = (x) => x === 0 ? "0" : Math.abs(x) >= 100 ? x.toFixed(0) : x.toPrecision(3);
function withUnit(x, units, step) {
  let at = 0;
  while (at + 1 < units.length && Math.abs(x) >= 0.9995 * step) { x /= step; at++; }
  return `${at === 0 && Number.isInteger(x) ? x : digits(x)} ${units[at]}`;
}
const bytesText = (x) => withUnit(x, ["B", "kB", "MB", "GB", "TB", "PB"], 1000);
const secondsText = (x) => Math.abs(x) >= 1 || x === 0 ? `${digits(x)} s` : withUnit(x * 1e9, ["ns", "us", "ms", "s"], 1000);
/** A load: seconds, or a weight of a task graph without a unit. */
const loadText = (x) => data.weights ? String(Number(x.toPrecision(4))) : secondsText(x);
/** Parts that are almost nothing or almost all have a decimal. */
const percentText = (x) => `${(100 * x).toFixed(x < 0.1 || (x > 0.99 && x < 1) ? 1 : 0)} %`;
const countText = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;
const signed = (part) => {
  const text = percentText(Math.abs(part));
  return `${/[1-9]/.test(text) ? part < 0 ? "−" : "+" : "±"}${text}`;
};
const changeText = (then, now) => then === now ? "unchanged" : then === 0 ? "none before" : signed(now / then - 1);
/** A load of a placement relative to the average load of its PEs, such as "+45 %"; nothing if that is 0. */
const againstAverage = (it, load) => it.metrics.average_load_seconds ? signed(load / it.metrics.average_load_seconds - 1) : "";
const peName = (pe) => data.pes.names[pe] ? `PE ${pe} (${data.pes.names[pe]})` : `PE ${pe}`;
/** The id in its array of an object of a dump of Charm++, as in the function `id_in_array` that reads them. */
const numberIn = (array, id) => array === `array ${BigInt(id) >> 48n}` ? String(BigInt(id) % (1n << 48n)) : id;
function objectName(i) {
  const { arrays, array, index, dimensions, ids } = data.objects;
  const name = arrays[array[i]] || (arrays.length ? `array ${array[i]}` : ""), n = dimensions[i] ?? index.length;
  if (n) return `${name}[${index.slice(0, n).map((column) => column[i]).join(", ")}]`;
  return name ? `${name}#${numberIn(name, ids[i] ?? i)}` : `object ${ids[i] ?? i}`;
}
const largest = (list) => list.reduce((most, x) => x > most ? x : most, 0);

/** Colour maps for readers with any sight: viridis for amounts, cividis for loads; the values are anchors of the published maps. */
const maps = {
  viridis: ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6dcd59", "b4de2c", "fde725"],
  cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"],
};
const tables = Object.fromEntries(Object.entries(maps).map(([name, anchors]) => {
  const rgb = anchors.map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const at = (i) => {
    const x = i / 255 * (rgb.length - 1), low = Math.min(rgb.length - 2, Math.floor(x));
    return rgb[low].map((c, k) => Math.round(c + (x - low) * (rgb[low + 1][k] - c)));
  };
  return [name, Array.from({ length: 256 }, (_, i) => at(i))];
}));
/** Where colour maps begin: their darkest colours could not be told from a dark page. */
let darkest = 0;
const colour = (map, amount) => {
  const part = darkest + (1 - darkest) * amount;
  return tables[map][Math.max(0, Math.min(255, Math.round(255 * part)))];
};
const css = (map, part) => `rgb(${colour(map, part).join(",")})`;
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** An element; text is never read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}
const safe = (text) => String(text).replace(/[<>&"']/g, (c) => `&#${c.charCodeAt(0)};`);
/** A picture in SVG; `inside` is its markup, whose texts are made safe by `safe`. */
function svg(width, height, label, inside) {
  const holder = make("div");
  holder.innerHTML = `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${safe(label)}">${inside}</svg>`;
  return holder;
}

function tip(event, text = "") {
  const box = document.getElementById("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
}

/**
 * A canvas of `width` x `height` that is drawn by `draw(context, width, height)`, at least two pixels wide for each of them, for sharp
 * prints. `at(x, y)` says what is there. Arrow keys move a frame from cell to cell; `cells` has the left and upper border of the first
 * cell, the width and height of each, and the height of what is below the last one.
 */
function picture(width, height, label, draw, at, cells = [0, 0, 2, 2]) {
  const sharp = Math.max(2, Math.ceil(devicePixelRatio || 1));
  const canvas = make("canvas", { width: width * sharp, height: height * sharp, role: "img", "aria-label": label, tabindex: 0, style: `width: ${width}px` });
  const context = canvas.getContext("2d"), [left, above, wide, high, below = 0] = cells;
  const ends = [(width - left) / wide, (height - above - below) / high].map((n) => Math.max(0, Math.ceil(n - 0.01) - 1));
  let cursor = null;
  canvas.paint = () => {
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    context.clearRect(0, 0, width, height);
    context.save();
    draw(context, width, height);
    context.restore();
    if (!cursor) return;
    context.strokeStyle = variable("--frame");
    context.lineWidth = 2;
    context.setLineDash([]);
    context.strokeRect(left + cursor[0] * wide, above + cursor[1] * high, Math.max(wide, 2), Math.max(2, Math.min(high, height - above)));
  };
  canvas.paint();
  if (!at) return canvas;
  const leave = () => {
    tip();
    if (cursor) { cursor = null; canvas.paint(); }
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), scale = width / box.width;
    tip(event, at((event.clientX - box.left) * scale, (event.clientY - box.top) * scale));
  });
  canvas.addEventListener("pointerleave", () => tip());
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    // The first key shows the frame in the middle.
    const by = cursor ? event.shiftKey ? 10 : 1 : 0, from = cursor || ends.map((end) => Math.floor(end / 2));
    cursor = from.map((place, k) => Math.max(0, Math.min(ends[k], place + by * step[k])));
    canvas.paint();
    const box = canvas.getBoundingClientRect(), [x, y] = [left + (cursor[0] + 0.5) * wide, above + (cursor[1] + 0.5) * high];
    tip({ clientX: box.left + x * box.width / width, clientY: box.top + y * box.height / height }, at(x, y));
  });
  return canvas;
}

/** The space of the labels to the left of a picture, and above a matrix. */
const margin = 44;
/** The space of the labels above a picture of PEs. */
const head = 20;
/** The smallest of 1, 2, 5, 10, 20, 50, .. that is at least so much; also of fractions. */
function roundStep(least) {
  const size = 10 ** Math.floor(Math.log10(least));
  return size * [1, 2, 5, 10].find((it) => it * size >= least);
}
/** The middles of `n` rows or columns, with the names of their values. */
const middles = (n, name) => Array.from({ length: n }, (_, i) => [(i + 0.5) / n, String(name(i))]);
/** Of marks that are equally far apart, if they are closer together than `space`: every second, fifth, tenth, .. one. */
function sparse(marks, space) {
  const gaps = marks.slice(1).map(([part], i) => part - marks[i][0]);
  const least = gaps.reduce((a, b) => Math.min(a, b), 1), step = Math.max(1, roundStep(space / least));
  return largest(gaps) > 1.001 * least ? marks : marks.filter((_, i) => i % step === 0);
}
/**
 * Labels of the columns and rows of a picture that is `wide` and `high` pixels, whose left and upper border is at `left` and `above`. Marks
 * are places, as parts of its width or height, and texts. Those without space are left out.
 */
function labelAxes(context, [left, above, wide, high], columns, rows) {
  context.fillStyle = variable("--dim");
  context.font = "11px system-ui, sans-serif";
  const width = (text) => context.measureText(text).width;
  const widest = width(columns.reduce((longest, [, text]) => text.length > longest.length ? text : longest, ""));
  let right = 0, below = 0;
  for (const [part, text] of sparse(columns, (widest + 8) / wide)) {
    const x = Math.min(left + part * wide - width(text) / 2, left + wide - width(text));
    if (x >= right) { context.fillText(text, x, above - 6); right = x + width(text) + 8; }
  }
  for (const [part, text] of sparse(rows, 14 / Math.max(high, 1))) {
    const y = Math.min(above + part * high + 4, above + high);
    if (y >= below) { context.fillText(text, Math.max(0, left - 6 - width(text)), y); below = y + 14; }
  }
}

/** Draws a matrix of `columns` x `rows` pixels, whose colours `paint(column, row)` returns, to the whole of a canvas. */
function paintCells(context, width, height, columns, rows, paint) {
  const small = make("canvas", { width: columns, height: rows }).getContext("2d");
  const image = small.createImageData(columns, rows);
  for (let row = 0, at = 0; row < rows; row++) for (let column = 0; column < columns; column++, at += 4) {
    const rgb = paint(column, row);
    if (!rgb) continue;
    [image.data[at], image.data[at + 1], image.data[at + 2]] = rgb;
    image.data[at + 3] = 255;
  }
  small.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small.canvas, 0, 0, width, height);
}

let scales = 0;
/** The scale of a colour map: a bar with its ends. */
function legend(map, low, high, title) {
  const stops = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((i) => `<stop offset="${i / 8}" stop-color="${css(map, i / 8)}"/>`).join("");
  const id = `scale-${scales++}`;
  const bar = svg(300, 46, `Colours: ${title}, from ${low} to ${high}`,
    `<defs><linearGradient id="${id}">${stops}</linearGradient></defs><text x="0" y="11">${safe(title)}</text>` +
    `<rect y="16" width="220" height="12" fill="url(#${id})"/><text x="0" y="42">${safe(low)}</text><text x="220" y="42" text-anchor="end">${safe(high)}</text>`);
  bar.className = "legend";
  return bar;
}

/** By title of a table: the column and the direction of its order, so that it stays when the panel is drawn again. */
const orders = new Map();
/**
 * A table of `rows`, of which the first `limit` are shown. Heads are buttons that sort; the first click on a column of numbers sorts its
 * largest value first. Arrow keys move between the buttons of rows. `row(i)` has the attributes of row `i`. The text of a cell may be a
 * function, which is called if the row is shown.
 */
function table(title, heads, rows, limit = 200, row = () => ({})) {
  const body = make("tbody"), order = rows.map((_, i) => i);
  const text = (cell) => cell instanceof Node ? cell : typeof cell === "object" && cell ? typeof cell.text === "function" ? cell.text() : cell.text : String(cell);
  const value = (cell) => cell && typeof cell === "object" && "value" in cell ? cell.value
    : cell instanceof Node ? cell.textContent : cell;
  const isText = heads.map((_, at) => rows.length > 0 && typeof value(rows[0][at]) === "string");
  const fill = () => body.replaceChildren(...order.slice(0, limit).map((i) =>
    make("tr", row(i), ...rows[i].map((cell, at) => make("td", { class: isText[at] ? "text" : undefined }, text(cell))))));
  const sort = ({ at, up }) => {
    order.sort((a, b) => {
      const [x, y] = [value(rows[a][at]), value(rows[b][at])];
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1) || a - b;
    });
    buttons.forEach((button, i) => button.parentNode.setAttribute("aria-sort", i !== at ? "none" : up ? "ascending" : "descending"));
  };
  const buttons = heads.map((head, at) => make("button", { onclick() {
    const last = orders.get(title);
    orders.set(title, { at, up: last?.at === at ? !last.up : !rows.length || typeof value(rows[0][at]) === "string" });
    sort(orders.get(title));
    fill();
  } }, head));
  const cells = buttons.map((button, at) => make("th", { scope: "col", "aria-sort": "none", class: isText[at] ? "text" : undefined }, button));
  const whole = make("table", {}, make("thead", {}, make("tr", {}, ...cells)), body);
  body.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key], all = [...body.querySelectorAll("button")];
    const next = step && all[all.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  if (orders.get(title)?.at < heads.length) sort(orders.get(title));
  fill();
  const more = rows.length > limit ? make("p", { class: "note more" }, `The first ${limit} of ${rows.length.toLocaleString("en")} rows; sort to see others.`) : undefined;
  return make("div", { class: rows.length > 40 ? "long" : undefined }, make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Table: ${title}` }, whole), more);
}

/** The titles of the texts that are open, so that they stay open when a panel is drawn again. */
const opened = new Set();
/** What pictures show, as a text that can be opened. `content` makes it when it is. */
function asText(title, content, isOpen = opened.has(title)) {
  const details = make("details", {}, make("summary", {}, title));
  const fill = () => {
    if (details.childElementCount === 1) details.append(content());
  };
  details.addEventListener("toggle", () => {
    if (details.open) fill();
    opened[details.open ? "add" : "delete"](title);
  });
  if (isOpen) fill();
  details.open = isOpen;
  return details;
}
