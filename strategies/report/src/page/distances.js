// Panel 7: how far bytes travel.
/** Bars of the values of each label for every placement. */
function bars(title, labels, series) {
  const top = Math.max(...series.map(({ values }) => largest(values)), 1), line = 18, group = line * series.length + 10;
  const left = Math.max(160, 7 * largest(labels.map((label) => label.length)));
  const inside = labels.map((label, i) => `<text x="${left - 10}" y="${i * group + group / 2}" text-anchor="end">${safe(label)}</text>` +
    series.map(({ values, ink }, k) => `<rect x="${left}" y="${i * group + k * line}" width="${Math.max(values[i] ? 1 : 0, 440 * values[i] / top)}" height="${line - 3}" fill="var(${ink})"/>` +
      `<text x="${left + 6 + 440 * values[i] / top}" y="${i * group + k * line + 12}">${bytesText(values[i])}</text>`).join("")).join("");
  return svg(left + 560, labels.length * group, title, inside);
}
/** Bars, and what they show as a table, whose first column is `what`. */
function barsAndTable(what, title, labels, series) {
  const rows = () => labels.map((label, i) => [cell(i, () => label), ...series.map(({ values }) => cell(values[i], bytesText))]);
  return [bars(`Bytes by ${what}`, labels, series), asText(title, () => table(title, [what, ...series.map(({ name }) => `bytes ${name}`)], rows()))];
}
const distances = {
  id: "distances", title: "Distances",
  exists: () => data.placements.length > 0 && before().distances.length > 0,
  draw(section) {
    const inks = ["--before", "--after"];
    const all = [...new Set(pair().flatMap(([it]) => it.distances.map(([d]) => d)))].sort((a, b) => a - b);
    // A machine with very many distances shows ranges of them.
    const far = all.filter((d) => d > 0), size = Math.ceil(far.length / 24);
    const rows = [...all.slice(0, all.length - far.length).map((d) => [d]), ...far.filter((_, i) => i % size === 0).map((_, i) => far.slice(i * size, (i + 1) * size))];
    const names = rows.map((row) => row[0] === 0 ? "inside a PE" : row.length === 1 ? `distance ${row[0]}` : `distance ${row[0]} to ${row.at(-1)}`);
    const series = pair().map(([it, name], k) => {
      const bytes = new Map(it.distances), values = rows.map((row) => sum(row.map((d) => bytes.get(d) || 0)));
      return { values, ink: inks[k], name };
    });
    if (state.after) section.append(note(`Grey: before. Blue: ${after().name}.`));
    section.append(...barsAndTable("distance", "Distances as a table", names, series));
    const levels = pair().map(([it]) => it.levels.map(([, bytes]) => bytes));
    // Where each level is a distance, it says nothing new.
    if (before().levels.length && levels.some((values, k) => values.filter(Boolean).join() !== series[k].values.filter(Boolean).join())) {
      section.append(make("h3", {}, "by level of the machine"),
        ...barsAndTable("level", "Levels as a table", before().levels.map(([name]) => name), series.map((it, k) => ({ ...it, values: levels[k] }))));
    }
    return `A byte crosses ${compared((it) => `${it.metrics.hops_per_byte.toFixed(3)} hops`)} on average.`;
  },
};
