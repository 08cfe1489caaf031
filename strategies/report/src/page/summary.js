// Panel 1: what the report says, and the table of strategies.
const summary = {
  id: "summary", title: "Overview",
  // The lead of the page has the first sentence.
  exists: () => data.placements.length > 0 || data.sentences.length > 1 || !data.timeline,
  draw(section) {
    data.sentences.slice(1).forEach((sentence) => section.append(make("p", {}, sentence)));
    if (!data.placements.length) return "";
    after().sentences.forEach((sentence) => section.append(make("p", {}, `${after().name}: ${sentence}`)));
    const cost = (value, text) => value === undefined || value === null ? { value: -1, text: "–" } : { value, text: text(value) };
    const plain = (x) => x.toLocaleString("en");
    const rows = data.placements.map((it, i) => {
      const name = make("span", {}, make("button", { onclick: () => choose(i), "aria-label": `Show ${it.name} in all panels` }, it.name),
        i === data.recommended ? make("span", { class: "mark" }, " ★ recommended") : "");
      const m = it.metrics;
      const hasLoads = loads.exists();
      return [name, cost(hasLoads ? m.max_load_seconds : null, loadText), cost(hasLoads ? m.imbalance : null, (x) => (x + 1).toFixed(3)),
        cost(m.step_seconds, secondsText), cost(m.hops_per_byte, (x) => x.toFixed(3)), cost(m.remote_bytes, bytesText),
        cost(m.max_link_bytes, bytesText), cost(i ? m.migrations : null, plain), cost(it.strategy_seconds, secondsText)];
    });
    const heads = [data.placements.length > 1 ? "strategy" : "placement", "largest load", "max/avg", "predicted period", "hops per byte", "bytes between PEs", "busiest link", "migrations", "strategy time"];
    const kept = heads.map((_, at) => at === 0 || rows.some((row) => row[at].value !== -1));
    const only = (row) => row.filter((_, at) => kept[at]);
    section.append(table(only(heads), rows.map(only), 200, (i) => (i === state.after ? { "aria-current": "true" } : {})));
    if (data.placements.length > 1) section.append(make("p", { class: "note" }, "Choose a strategy to compare it with the placement before in all panels. The head of a column sorts by it. Arrow keys move between strategies."));
    data.refusals.forEach(([name, reason]) => section.append(make("p", { class: "note" }, `No answer from ${name}: ${reason}.`)));
    return "";
  },
};
