// Tables that can be sorted, and texts that can be opened.
/** By title of a table: the column and the direction of its order, so that it stays when the panel is drawn again. */
const orders = new Map();
/** Has a key move the focus to an element, if there is one. */
function focusNext(event, element) {
  if (!element) return;
  event.preventDefault();
  element.focus();
}
const isKnown = (value) => (value ?? null) !== null;
/**
 * A table with a row for each item, of which the first `limit` are shown. A column has a head, the value of an item, by
 * which it sorts, and the text of a value, if it is another one. Unknown values are dashes. Columns that are false or
 * know no value are left out. The first click on a head sorts numbers by the largest. Arrow keys move between buttons
 * of rows.
 */
function table(title, allColumns, items, { limit = 200, row = () => ({}) } = {}) {
  const columns = allColumns.filter((it) => it && (!items.length || items.some((item) => isKnown(it[1](item)))));
  const isText = columns.map(([, value]) => items.length > 0 && typeof value(items[0]) === "string");
  const shown = (item, [, value, text = String]) => isKnown(value(item)) ? text(value(item), item) : "–";
  const body = make("tbody");
  const fill = () => {
    const { at, up } = orders.get(title) || {}, value = columns[at]?.[1], sign = up ? 1 : -1;
    const keyed = items.map((item) => [value ? value(item) ?? -Infinity : 0, item]);
    const order = keyed.sort(([a], [b]) => a < b ? -sign : a > b ? sign : 0).slice(0, limit);
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== at ? "none" : up ? "ascending" : "descending"));
    body.replaceChildren(...order.map(([, item]) => make("tr", row(item),
      ...columns.map((column, i) => make("td", { class: isText[i] && "text" }, shown(item, column))))));
  };
  const heads = columns.map(([head], at) => {
    const onclick = () => {
      const last = orders.get(title);
      orders.set(title, { at, up: last?.at === at ? !last.up : isText[at] || !items.length });
      fill();
    };
    return make("th", { scope: "col", class: isText[at] && "text" }, make("button", { onclick }, head));
  });
  body.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key], all = [...body.querySelectorAll("button")];
    focusNext(event, step && all[all.indexOf(document.activeElement) + step]);
  });
  fill();
  const whole = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body);
  const scroll = make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Table: ${title}` }, whole);
  const more = `The first ${limit} of ${items.length} rows; sort to see others.`;
  return make("div", { class: items.length > 40 && "long" }, scroll,
    items.length > limit && make("p", { class: "note more" }, more));
}

/** The titles of the texts that are open, so that they stay open when a panel is drawn again. */
const opened = new Set();
/** What pictures show, as a text that can be opened. `content` makes it when it is. */
function asText(title, content) {
  const fill = () => {
    if (details.open && details.childElementCount === 1) details.append(content());
  };
  const ontoggle = () => {
    fill();
    opened[details.open ? "add" : "delete"](title);
  };
  const details = make("details", { open: opened.has(title), ontoggle }, make("summary", {}, title));
  fill();
  return details;
}
