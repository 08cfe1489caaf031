// Pictures on canvases that are labelled, and can be read with the mouse and with keys.
/** Shows a text next to a place of the window; none hides it. */
function tip(place, text = "") {
  const box = document.getElementById("tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.min(place.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(place.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
}

/**
 * A canvas of `width` x `height` pixels that `draw(context)` draws, with at least two pixels for each for sharp prints.
 * The last argument has the left and upper border of the first cell, the width and height of a cell, and the numbers of
 * columns and rows. `at(column, row)` is the text of a cell. Arrow keys move a frame to cells with a text.
 */
function picture(width, height, label, draw, at, [left, above, wide, high, columns, rows]) {
  const sharp = Math.max(2, Math.ceil(devicePixelRatio || 1));
  const canvas = make("canvas", { width: width * sharp, height: height * sharp, style: `width: ${width}px`, tabindex: 0,
    role: "application", "aria-roledescription": "picture",
    "aria-label": `${label}. Arrow keys move from cell to cell.` });
  const context = canvas.getContext("2d");
  const said = (column, row) => column >= 0 && row >= 0 && column < columns && row < rows ? at(column, row) : "";
  let cursor = null;
  canvas.paint = () => {
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    context.clearRect(0, 0, width, height);
    context.save();
    draw(context);
    context.restore();
    if (!cursor) return;
    context.strokeStyle = variable("--frame");
    context.lineWidth = 2;
    context.strokeRect(left + cursor[0] * wide, above + cursor[1] * high, Math.max(wide, 2), Math.max(2, high));
  };
  canvas.paint();
  const leave = () => {
    tip();
    if (cursor) { cursor = null; canvas.paint(); }
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), scale = width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    tip(event, said(Math.floor((x - left) / wide), Math.floor((y - above) / high)));
  });
  canvas.addEventListener("pointerleave", () => tip());
  canvas.addEventListener("blur", leave);
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    // The first key shows the frame in the middle.
    const by = cursor ? event.shiftKey ? 10 : 1 : 0, ends = [columns - 1, rows - 1];
    const moved = (from, by) => from.map((place, k) => Math.max(0, Math.min(ends[k], place + by * step[k])));
    let next = moved(cursor || ends.map((end) => Math.floor(end / 2)), by);
    while (!said(...next) && String(moved(next, 1)) !== String(next)) next = moved(next, 1);
    if (said(...next) || !cursor) cursor = next;
    canvas.paint();
    const box = canvas.getBoundingClientRect(), scale = box.width / width, text = said(...cursor);
    const x = left + (cursor[0] + 0.5) * wide, y = above + (cursor[1] + 0.5) * high;
    tip({ clientX: box.left + x * scale, clientY: box.top + y * scale }, text);
    // The text follows the mouse in silence, but keys have it read aloud.
    document.getElementById("said").textContent = text;
  });
  return canvas;
}

/** The space of the labels to the left of a picture, and above a matrix. */
const margin = 44;
/** The space of the labels above a picture of PEs. */
const head = 20;
/** A picture of `wide` x `high` pixels, where `draw(context)` begins, with labels to the left of it and `above` it. */
function plot(label, [above, wide, high], [columns, rows], [columnLabels, rowLabels], draw, at) {
  const whole = (context) => {
    labelAxes(context, [margin, above, wide, high], columnLabels, rowLabels);
    context.translate(margin, above);
    draw(context);
  };
  const cells = [margin, above, wide / columns, high / rows, columns, rows];
  return picture(margin + wide, above + high, label, whole, at, cells);
}
/** Lines over pictures that are light or dark. */
const faint = "rgba(128,128,128,0.45)";
/**
 * A square of values by row and column. `part` is where a value is on the colour map; zeros have no colour. `lines` are
 * places, as parts of the size, and colours.
 */
function matrixPlot(label, size, values, [columns, rows], labels, part, lines, say) {
  const value = (column, row) => values[row * columns + column];
  const draw = (context) => {
    const paint = (column, row) => value(column, row) && colour("viridis", part(value(column, row)));
    paintCells(context, size, size, columns, rows, paint);
    for (const [place, ink] of lines) {
      // On whole pixels, so that equal lines look equal.
      fill(context, ink, [Math.round(place * size), 0, 1, size]);
      fill(context, ink, [0, Math.round(place * size), size, 1]);
    }
  };
  const at = (column, row) => say(row, column, value(column, row));
  return plot(label, [margin, size, size], [columns, rows], labels, draw, at);
}
function writeIn(context, ink, pixels) {
  context.fillStyle = variable(ink);
  context.font = `${pixels}px system-ui, sans-serif`;
}
function fill(context, ink, box) {
  context.fillStyle = ink;
  context.fillRect(...box);
}
const half = (x) => Math.floor(2 * x) / 2;
/**
 * The bars of items in a picture of `whole` pixels. `place(item, at)` is where a bar begins, and its width; else all
 * are equally wide. Narrow bars begin and end at halves of pixels, so that they make no stripes. Of bars that are
 * narrower than that, only the largest is drawn.
 */
function visibleBars(items, whole, value, place = (_, at) => [at * (whole / items.length), whole / items.length]) {
  const bars = new Map();
  items.forEach((item, at) => {
    const [begin, wide] = place(item, at), x = wide > 4 ? begin : half(begin);
    const width = wide > 4 ? wide - 1 : Math.max(0.5, half(begin + wide) - x);
    const key = wide < 0.5 ? x : `item ${at}`;
    if (!bars.has(key) || value(item) > value(bars.get(key).item)) bars.set(key, { item, x, width });
  });
  return [...bars.values()];
}
/** The smallest of 1, 2, 5, 10, 20, 50, .. that is at least so much; also of fractions. */
function roundStep(least) {
  const size = 10 ** Math.floor(Math.log10(least));
  return size * [1, 2, 5, 10].find((it) => it * size >= least);
}
/** The middles of `n` rows or columns, with the names of their values. */
const middles = (n, name) => Array.from({ length: n }, (_, i) => [(i + 0.5) / n, String(name(i))]);
/** The first and the last of `n` that are in a bin. */
const spanOf = (n, bin, bins) => [Math.ceil(bin * n / bins), Math.ceil((bin + 1) * n / bins) - 1];
/** Of marks with equal gaps smaller than `space`, every second, fifth, tenth, .. one. Other marks are all kept. */
function sparse(marks, space) {
  const gaps = marks.slice(1).map(([part], i) => part - marks[i][0]);
  const least = gaps.reduce((a, b) => Math.min(a, b), 1), step = Math.max(1, roundStep(space / least));
  return largest(gaps) > 1.001 * least ? marks : marks.filter((_, i) => i % step === 0);
}
/** Labels of columns and rows: places, as parts of the width or height, and texts. Those without space are left out. */
function labelAxes(context, [left, above, wide, high], columns, rows) {
  writeIn(context, "--dim", 11);
  const width = (text) => context.measureText(text).width;
  const widest = width(columns.reduce((longest, [, text]) => text.length > longest.length ? text : longest, ""));
  let right = 0, below = 0;
  for (const [part, text] of sparse(columns, (widest + 8) / wide)) {
    // Texts are measured only where there may be space, because there may be thousands.
    if (left + part * wide < right) continue;
    const x = Math.min(left + part * wide - width(text) / 2, left + wide - width(text));
    if (x < right) continue;
    context.fillText(text, x, above - 6);
    right = x + width(text) + 8;
  }
  for (const [part, text] of sparse(rows, 14 / Math.max(high, 1))) {
    const y = Math.min(above + part * high + 4, above + high);
    if (y < below) continue;
    // Texts that are too wide are narrowed.
    context.fillText(text, Math.max(0, left - 6 - width(text)), y, left - 6);
    below = y + 14;
  }
}

/** Draws a matrix of `columns` x `rows` cells, whose colours `paint(column, row)` returns. */
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

/** The scale of a colour map: a bar with its ends. */
function legend(map, low, high, title) {
  const stops = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((i) => css(map, i / 8)).join();
  const bar = make("div", { style: `background: linear-gradient(90deg, ${stops})` });
  return make("div", { class: "legend", role: "img", "aria-label": `Colours: ${title}, from ${low} to ${high}` },
    make("span", {}, title), bar, make("span", {}, low), make("span", {}, high));
}
