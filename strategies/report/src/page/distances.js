// Panel 7: how far bytes travel.
/** Bars of the values of each label for every placement. */
function bars(title, labels, series) {
  const top = Math.max(...series.map(({ values }) => largest(values)), 1), line = 18, group = line * series.length + 10;
  const left = Math.max(160, 7 * largest(labels.map((label) => label.length)));
  const bar = (value, ink, y) => svgBar([left, y, 440 * value / top, line - 3], `var(${ink})`, bytesText(value));
  const inside = labels.map((label, i) => svgText(left - 10, i * group + group / 2, label, "end") +
    series.map(({ values, ink }, k) => bar(values[i], ink, i * group + k * line)).join(""));
  return svg(left + 560, labels.length * group, title, inside.join(""));
}
/** Bars, and what they show as a table, whose first column is `what`. */
function barsAndTable(what, title, labels, series) {
  const columns = series.map(({ values, name }) => [`bytes ${name}`, (i) => values[i], bytesText]);
  return [bars(`Bytes by ${what}`, labels, series),
    asText(title, () => table(title, [[what, (i) => i, (i) => labels[i]], ...columns], [...labels.keys()]))];
}
const distances = {
  id: "distances", title: "Distances",
  exists: () => data.placements.length > 0 && before().distances.length > 0,
  draw() {
    const all = [...new Set(pair().flatMap(([it]) => it.distances.map(([d]) => d)))].sort((a, b) => a - b);
    // A machine with very many distances shows ranges of them.
    const far = all.filter((d) => d > 0), size = Math.ceil(far.length / 24), rows = all.includes(0) ? [[0]] : [];
    for (let i = 0; i < far.length; i += size) rows.push(far.slice(i, i + size));
    const names = rows.map(([first, ...others]) =>
      first === 0 ? "inside a PE" : `distance ${first}${others.length ? ` to ${others.at(-1)}` : ""}`);
    const series = pair().map(([it, name], k) => {
      const bytes = new Map(it.distances), values = rows.map((row) => sum(row.map((d) => bytes.get(d) || 0)));
      return { values, ink: ["--before", "--after"][k], name };
    });
    const byLevel = series.map((it, k) => ({ ...it, values: pair()[k][0].levels.map(([, bytes]) => bytes) }));
    const some = ({ values }) => values.filter(Boolean).join();
    // Where each level is a distance, it says nothing new.
    const hasLevels = before().levels.length > 0 && byLevel.some((it, k) => some(it) !== some(series[k]));
    const levels = before().levels.map(([name]) => name);
    return [
      `A byte crosses ${compared((it) => `${ratioText(it.metrics.hops_per_byte)} hops`)} on average.`,
      state.after > 0 && note(`Grey: before. Blue: ${after().name}.`),
      ...barsAndTable("distance", "Distances as a table", names, series),
      hasLevels && heading("by level of the machine"),
      ...(hasLevels ? barsAndTable("level", "Levels as a table", levels, byLevel) : []),
    ];
  },
};
