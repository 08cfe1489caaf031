// Panel 7: how far bytes travel.
/** Bars of the values of each label for every placement. */
function bars(labels, series) {
  const top = Math.max(...series.map(({ values }) => largest(values)), 1), line = 18, group = line * series.length + 10;
  const inside = labels.map((label, i) => `<text x="150" y="${i * group + group / 2}" text-anchor="end">${safe(label)}</text>` +
    series.map(({ values, ink }, k) => `<rect x="160" y="${i * group + k * line}" width="${Math.max(values[i] ? 1 : 0, 440 * values[i] / top)}" height="${line - 3}" fill="var(${ink})"/>` +
      `<text x="${166 + 440 * values[i] / top}" y="${i * group + k * line + 12}">${bytesText(values[i])}</text>`).join("")).join("");
  return svg(720, labels.length * group, "Bytes of each group", inside);
}
const distances = {
  id: "distances", title: "Distances",
  exists: () => data.placements.length > 0 && before().distances.length > 0,
  draw(section) {
    const inks = ["--before", "--after"];
    const all = [...new Set(pair().flatMap(([it]) => it.distances.map(([d]) => d)))].sort((a, b) => a - b);
    // A machine with very many distances shows ranges of them.
    const size = Math.ceil(all.length / 24), starts = all.filter((_, i) => i % size === 0);
    const names = starts.map((d, i) => {
      const last = all[Math.min(all.length, (i + 1) * size) - 1];
      return d === 0 && size === 1 ? "inside a PE" : d === last ? `distance ${d}` : `distance ${d} to ${last}`;
    });
    const series = pair().map(([it, name], k) => {
      const values = starts.map(() => 0);
      it.distances.forEach(([d, bytes]) => { values[Math.floor(all.indexOf(d) / size)] += bytes; });
      return { values, ink: inks[k], name };
    });
    if (state.after) section.append(make("p", { class: "note" }, `Grey: before. Blue: ${after().name}.`));
    section.append(bars(names, series), asText("Distances as a table", () => table(["distance", ...series.map(({ name }) => `bytes ${name}`)],
      names.map((label, i) => [{ value: i, text: label }, ...series.map(({ values }) => ({ value: values[i], text: bytesText(values[i]) }))]))));
    if (before().levels.length) {
      section.append(make("h3", {}, "by level of the machine"));
      section.append(bars(before().levels.map(([name]) => name), pair().map(([it], k) => ({ values: it.levels.map(([, bytes]) => bytes), ink: inks[k] }))));
    }
    return `A byte crosses ${pair().map(([it, name]) => `${it.metrics.hops_per_byte.toFixed(2)} hops${spoken(it, name)}`).join(", ")} on average.`;
  },
};
