// In the panel Migrations: the placements between the one before and the one after.

/** The costs of these placements that are known: key, name, colour and unit. */
const costsBetween = [
  ["hop_bytes", "hop-bytes", "--after", bytesText],
  ["max_over_avg", "max/avg", "--mark", ratioText],
];
/** Round numbers of migrations with space between them, on an axis of square roots, which shows the first ones well. */
function migrationMarks(most, wide) {
  const x = (n) => wide * Math.sqrt(n / most), marks = [0];
  for (let n = 1; n < most; n = roundStep(1.01 * n)) {
    if (x(n) - x(marks.at(-1)) >= 36 && wide - x(n) >= 36) marks.push(n);
  }
  return [...marks, most];
}
/** How few migrations already give the load of all, if half of them do. */
function enoughMigrations(points, text) {
  const last = points.at(-1), first = points.find((point) => point.max_over_avg <= 1.01 * last.max_over_avg);
  if (!first.migrations || 2 * first.migrations > last.migrations) return "";
  const rest = first.hop_bytes > last.hop_bytes
    ? `; the others lower hop-bytes from ${text(first.hop_bytes)} to ${text(last.hop_bytes)}` : "";
  const few = `With ${first.migrations} of ${countText(last.migrations, "migration")}`;
  return `${few}, max/avg is already ${ratioText(first.max_over_avg)}${rest}.`;
}
/** Curves of hop-bytes and max/avg by migrations, each as a part of its value before. */
function fewerMigrations() {
  const { imbalance, hop_bytes } = before().metrics, { name: strategy, between } = after();
  const points = [{ migrations: 0, max_over_avg: imbalance + 1, hop_bytes }, ...between], last = points.at(-1);
  const costs = costsBetween.filter(([key]) => points[0][key] > 0), names = costs.map(([, name]) => name);
  const part = (point, key) => point[key] / points[0][key];
  const top = Math.max(1, ...costs.flatMap(([key]) => points.map((point) => part(point, key))));
  const [left, above, wide, high] = [44, 12, 420, 180], right = left + wide, below = above + high;
  const x = (migrations) => left + wide * Math.sqrt(migrations / last.migrations);
  const y = (value) => below - high * value / top;
  const line = (x1, y1, x2, y2, ink) => `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="var(${ink})"/>`;
  const horizontal = (value) => line(left, y(value), right, y(value), "--line");
  const vertical = (n) => line(x(n), below, x(n), below + 5, "--dim");
  const step = top <= 2 ? 0.5 : Math.ceil(top / 5);
  const ticks = Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step);
  const marks = [
    ...ticks.map((value) => horizontal(value) + svgText(left - 6, y(value) + 4, `${100 * value} %`, "end")),
    ...migrationMarks(last.migrations, wide).map((n) => vertical(n) + svgText(x(n), below + 18, n, "middle")),
    svgText(left + wide / 2, below + 36, "migrations (axis of square roots)", "middle"),
  ];
  // Names of curves that end close to each other are one line apart.
  const ends = costs.map(([key]) => y(part(last, key)));
  if (ends.length > 1 && Math.abs(ends[0] - ends[1]) < 15) ends[ends[0] < ends[1] ? 1 : 0] = Math.min(...ends) + 15;
  const curves = costs.map(([key, name, ink, unit], k) => {
    const places = points.map((point) => [x(point.migrations), y(part(point, key))]);
    const said = (point) => `${countText(point.migrations, "migration")}: ${name} ${unit(point[key])}`;
    const dots = places.map(([x, y], i) =>
      `<circle cx="${x}" cy="${y}" r="4" fill="var(${ink})"><title>${said(points[i])}</title></circle>`);
    const end = svgText(right + 10, ends[k] + 4, `${name} ${unit(last[key])} (${percentText(part(last, key))})`);
    const curve = `<polyline fill="none" stroke="var(${ink})" stroke-width="2" points="${places.join(" ")}"/>`;
    return curve + dots.join("") + end;
  });
  const label = `${names.join(" and ")} of placements with fewer migrations`;
  const columns = costs.map(([key, name, , unit]) => [name, (point) => point[key], unit]);
  const enough = enoughMigrations(points, bytesText);
  return captioned("with fewer migrations", enough !== "" && make("p", {}, enough),
    svg(right + 190, below + 42, label, marks.join("") + curves.join("")),
    note(words("between").replaceAll("STRATEGY", () => strategy)),
    asText("Placements with fewer migrations as a table",
      () => table("fewer migrations", [["migrations", (point) => point.migrations], ...columns], points)));
}
