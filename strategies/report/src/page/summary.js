// Panel 1: what the report says, the table of strategies, and that of the steps of a run.
/** The table of the steps of a run: what was predicted, and what was measured. */
function runSteps() {
  const balance = (x) => cell(x, (x) => x.toFixed(3)), hasHops = data.run_steps.some((it) => it.hop_bytes), several = data.run_steps.some((it) => it.sync_points > 1);
  const rows = data.run_steps.map((it) => [it.step, it.strategy || "none", it.sync_points, it.migrations,
    cell(it.average_load_seconds, secondsText), ...it.max_over_avg.map(balance), cell(it.hop_bytes && it.hop_bytes[1] - it.hop_bytes[0], () => changeText(...it.hop_bytes)),
    ...[it.period_seconds, it.predicted_seconds, it.next_seconds, it.decision_seconds].map((time) => cell(time, secondsText))]);
  const heads = ["step", "strategy", several && "sync points before", "migrations", "average load before", "max/avg before", "max/avg after",
    hasHops && "change of hop-bytes", "time before, measured", "time after, predicted", "time after with the step, measured",
    "time of the decision"];
  return [make("h3", {}, "Steps of the run"), make("div", { class: "heads" }, table("steps of the run", heads, rows)),
    note([
      "Times are from one sync point to the next. What is predicted, max/avg and hop-bytes after a step hold for what was measured before it.",
      "A time that was measured after a step includes the step. A decision takes from the last call of at_sync until all PEs know the new placement.",
      ...(data.run_steps.length < data.steps.steps ? [`Of ${data.steps.steps} steps, the table has the first and the last ones.`] : []),
    ].join(" "))];
}
/** The time of the slowest PE, with phases of all of them. */
const slowest = (metrics) => metrics.phases_seconds ?? metrics.max_load_seconds;
/** After how many periods a strategy has saved the time that it takes, if that is more than one. */
function paysAfter() {
  const saved = slowest(before().metrics) - slowest(after().metrics), takes = after().strategy_seconds;
  // Where links take longer than work, less work does not make periods as much shorter.
  if (!(saved > 0 && takes > saved) || after().top_links[0]?.[2] > slowest(after().metrics)) return "";
  return `${after().name} takes ${secondsText(takes)} and saves the slowest PE ${secondsText(saved)} in a period as long as the recorded one: that pays after ${countText(Math.ceil(takes / saved), "period")}, without the time of migrations.`;
}
/** The table of placements. `isSum` is whether they have sums over several steps. */
function placementsTable(isSum) {
  const hasOthers = data.placements.length > 1, hasLoads = loads.exists();
  const rows = data.placements.map((it, i) => {
    const shown = i ? it.name : nameBefore();
    const name = !hasOthers ? it.name : make("span", {}, make("button", { onclick: () => choose(i), "aria-label": `Show ${shown} in all panels` }, shown),
      i === data.recommended ? make("span", { class: "mark" }, " ★ recommended") : "");
    const m = (isSum ? it.totals : it.metrics) || {}, time = isSum ? it.total_strategy_seconds : it.strategy_seconds;
    return [name, cell(hasLoads ? m.max_load_seconds : null, loadText), cell(m.phases_seconds, loadText), cell(hasLoads ? m.imbalance : null, (x) => (x + 1).toFixed(3)),
      cell(m.step_seconds, secondsText), cell(m.hops_per_byte, (x) => x.toFixed(3)), cell(m.remote_bytes, bytesText),
      cell(m.max_link_bytes, bytesText), cell(i ? m.migrations : null, String), cell(i ? m.migration_seconds : null, secondsText), cell(time, secondsText)];
  });
  const heads = [hasOthers ? "strategy" : "placement", "largest load", "slowest PE, all phases", "max/avg", isSum ? "predicted time" : "predicted period", "hops per byte", "bytes between PEs", "busiest link", "migrations", "time of migrations, predicted", "strategy time"];
  const known = heads.map((head, at) => (at === 0 || rows.some((row) => row[at].value !== -Infinity)) && head);
  return make("div", { class: "heads whole" }, table("placements", known, rows, 200, (i) => ({ "aria-current": i === state.after && "true" })));
}
/** The strategies that the rule of thumb leaves out. */
function notCompared(isSum) {
  const answers = data.placements.slice(1).filter((it) => it.totals || !isSum), load = (it) => slowest(isSum ? it.totals : it.metrics);
  const least = Math.min(...answers.map(load)), out = answers.filter((it) => load(it) > 1.05 * least);
  return out.length ? ` It leaves out what has more than 5 % more load than the least: ${out.map((it) => it.name).join(", ")}.` : "";
}
/** What the page says of the placement after, besides the lead, which has what it says of the recommended one. */
function sentencesOfAfter(hasTime) {
  const isInLead = (sentence) => state.after === data.recommended && data.sentences[0].includes(sentence);
  return [
    ...after().sentences.filter((sentence) => !isInLead(sentence)).map((sentence) => `${after().name}: ${sentence}`),
    hasTime ? "" : paysAfter(),
    data.fixed_senders_part >= 0.5 ? `${percentText(data.fixed_senders_part)} of the bytes between objects are sent by objects that cannot move. A strategy can only bring their receivers nearer.` : "",
  ].filter(Boolean);
}
const summary = {
  id: "summary", title: "Overview",
  // The lead of the page has the first sentence.
  exists: () => data.placements.length > 0 || data.sentences.length > 1 || !data.timeline,
  draw(section) {
    const hasPlacements = data.placements.length > 0, isSum = data.placements.some((it) => it.totals);
    const isTimed = hasPlacements && (before().metrics.step_seconds ?? null) !== null;
    if (isSum) section.append(make("h3", {}, `Sums over ${countText(data.steps.steps, "step")}`));
    else if (data.run_steps.length > 1 && data.step !== null) section.append(make("h3", {}, `Step ${data.step}`));
    if (hasPlacements) section.append(placementsTable(isSum));
    section.append(...[...data.sentences.slice(1), ...(hasPlacements ? sentencesOfAfter(isTimed || isSum) : [])].map((sentence) => make("p", {}, sentence)));
    if (data.run_steps.length > 1) section.append(...runSteps());
    const notes = data.refusals.map(([name, reason]) => `No answer from ${name}: ${reason}.`);
    if (data.recommended !== null) notes.push(isTimed
      ? `Recommended: the smallest sum of predicted ${isSum ? "time" : "period"} (times --horizon), time of migrations and strategy time.`
      : `Recommended by a rule of thumb, because no costs of messages were recorded: the least product of hop-bytes and the tenth power of the load, where one of at most 1 % above the least counts as the least, and moving all objects as 1 % of load. So 1 % of load weighs as much as 10 % of hop-bytes. The time of strategies does not count.${notCompared(isSum)}`);
    if (hasPlacements && (before().metrics.hop_bytes ?? null) !== null) notes.push("Hop-bytes: bytes times the distance that they travel. Hops per byte: the mean distance of a byte, 0 for one that stays on its PE. max/avg: the largest load over the average.");
    section.append(...notes.map(note));
    if (data.placements.length > 1) section.append(make("p", { class: "note hint" }, "Choose a strategy to compare it with the placement before in all panels. The head of a column sorts by it. Arrow keys move between strategies."));
    return "";
  },
};
