// In the panel Migrations: the placements between the one before and the one after.

/** The costs of these placements that are known: key, name, colour and unit. */
const costsBetween = [
  ["hop_bytes", "hop-bytes", "--after", bytesText],
  ["max_over_avg", "max/avg", "--mark", (x) => x.toFixed(3)],
];

/** Round numbers of migrations with space between them, and their largest number, on an axis of square roots that shows the first ones well. */
function migrationMarks(most, wide) {
  const x = (n) => wide * Math.sqrt(n / most), marks = [0];
  for (let n = 1; n < most; n = roundStep(1.01 * n)) if (x(n) - x(marks.at(-1)) >= 36 && wide - x(n) >= 36) marks.push(n);
  return [...marks, most];
}
/** How few migrations already give the load of all, if half of them do. */
function enoughMigrations(points, text) {
  const last = points.at(-1), first = points.find((point) => point.max_over_avg <= 1.01 * last.max_over_avg);
  if (!first.migrations || 2 * first.migrations > last.migrations) return "";
  const rest = first.hop_bytes > last.hop_bytes ? `; the others lower hop-bytes from ${text(first.hop_bytes)} to ${text(last.hop_bytes)}` : "";
  return `With ${first.migrations} of ${countText(last.migrations, "migration")}, max/avg is already ${first.max_over_avg.toFixed(3)}${rest}.`;
}
/** Curves of hop-bytes and max/avg by migrations, each as a part of its value before. */
function fewerMigrations(it) {
  const was = before().metrics;
  const points = [{ migrations: 0, max_over_avg: was.imbalance + 1, hop_bytes: was.hop_bytes }, ...it.between];
  const costs = costsBetween.filter(([key]) => points[0][key] > 0), names = costs.map(([, name]) => name);
  const part = (point, key) => point[key] / points[0][key];
  const top = Math.max(1, ...costs.flatMap(([key]) => points.map((point) => part(point, key))));
  const last = points.at(-1), [left, above, wide, high] = [44, 12, 420, 180];
  const x = (migrations) => left + wide * Math.sqrt(migrations / last.migrations), y = (value) => above + high * (1 - value / top);
  const step = top <= 2 ? 0.5 : Math.ceil(top / 5), ticks = Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
  const grid = ticks.map((value) =>
    `<line x1="${left}" x2="${left + wide}" y1="${y(value)}" y2="${y(value)}" stroke="var(--line)"/>` +
    `<text x="${left - 6}" y="${y(value) + 4}" text-anchor="end">${100 * value} %</text>`);
  const marks = migrationMarks(last.migrations, wide).map((n) => `<line x1="${x(n)}" x2="${x(n)}" y1="${above + high}" y2="${above + high + 5}" stroke="var(--dim)"/>` +
    `<text x="${x(n)}" y="${above + high + 18}" text-anchor="middle">${n}</text>`).join("") +
    `<text x="${left + wide / 2}" y="${above + high + 36}" text-anchor="middle">migrations (axis of square roots)</text>`;
  // Names of curves that end close to each other are one line apart.
  const ends = costs.map(([key]) => y(part(last, key)));
  if (ends.length > 1 && Math.abs(ends[0] - ends[1]) < 15) ends[ends[0] < ends[1] ? 1 : 0] = Math.min(...ends) + 15;
  const curves = costs.map(([key, name, ink, text], k) => {
    const places = points.map((point) => [x(point.migrations), y(part(point, key))]);
    const dots = places.map(([across, down], i) => `<circle cx="${across}" cy="${down}" r="4" fill="var(${ink})">` +
      `<title>${countText(points[i].migrations, "migration")}: ${name} ${safe(text(points[i][key]))}</title></circle>`);
    return `<polyline fill="none" stroke="var(${ink})" stroke-width="2" points="${places.join(" ")}"/>` + dots.join("") +
      `<text x="${left + wide + 10}" y="${ends[k] + 4}">${name} ${safe(text(last[key]))} (${percentText(part(last, key))})</text>`;
  });
  const picture = svg(left + wide + 190, above + high + 42, `${names.join(" and ")} of placements with fewer migrations`,
    grid.join("") + marks + curves.join(""));
  const rows = () => points.map((point) => [point.migrations, ...costs.map(([key, , , text]) => cell(point[key], text))]);
  const enough = enoughMigrations(points, bytesText);
  return make("div", {}, make("h3", {}, "with fewer migrations"), enough !== "" && make("p", {}, enough), picture,
    note([
      `Each point is a placement on the way from the placement before to that of ${it.name}, with the least load that the search of ${it.name} found for this number of migrations.`,
      "Hop-bytes may first rise: an object that moves for its load is away from those it exchanges messages with, until they follow.",
      "Other strategies may find better placements with as few. --max-moves chooses among them. 100 % is the cost of the placement before.",
    ].join(" ")),
    asText("Placements with fewer migrations as a table", () => table("fewer migrations", ["migrations", ...names], rows())));
}
