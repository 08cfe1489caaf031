// Tables that can be sorted, and texts that can be opened.
/** A cell of a number: `text` of it is shown, the number sorts. An unknown one is a dash. */
const cell = (value, text) => (value ?? null) === null ? { value: -Infinity, text: "–" } : { value, text: () => text(value) };
/** By title of a table: the column and the direction of its order, so that it stays when the panel is drawn again. */
const orders = new Map();
/** Has a key move the focus to an element, if there is one. */
function focusNext(event, element) {
  if (!element) return;
  event.preventDefault();
  element.focus();
}
/**
 * A table of `rows`, of which the first `limit` are shown. Heads are buttons that sort; the first click on a column of numbers sorts its
 * largest value first. A column whose head is false is left out. Arrow keys move between the buttons of rows. `row(i)` has the attributes
 * of row `i`. The text of a cell may be a function, which is called if the row is shown.
 */
function table(title, allHeads, allRows, limit = 200, row = () => ({})) {
  const [heads, ...rows] = [allHeads, ...allRows].map((list) => list.filter((_, at) => allHeads[at] !== false));
  const body = make("tbody"), order = rows.map((_, i) => i);
  const text = (cell) => cell instanceof Node ? cell : typeof cell.text === "function" ? cell.text() : String(cell.text ?? cell);
  const value = (cell) => cell instanceof Node ? cell.textContent : cell.value ?? cell;
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
    focusNext(event, step && all[all.indexOf(document.activeElement) + step]);
  });
  if (orders.get(title)?.at < heads.length) sort(orders.get(title));
  fill();
  const more = rows.length > limit && make("p", { class: "note more" }, `The first ${limit} of ${rows.length} rows; sort to see others.`);
  return make("div", { class: rows.length > 40 ? "long" : undefined }, make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Table: ${title}` }, whole), more);
}

/** The titles of the texts that are open, so that they stay open when a panel is drawn again. */
const opened = new Set();
/** What pictures show, as a text that can be opened. `content` makes it when it is. */
function asText(title, content) {
  const details = make("details", {}, make("summary", {}, title));
  const fill = () => {
    if (details.open && details.childElementCount === 1) details.append(content());
  };
  details.addEventListener("toggle", () => {
    fill();
    opened[details.open ? "add" : "delete"](title);
  });
  details.open = opened.has(title);
  fill();
  return details;
}
