// Panel 1: what the report says, the table of strategies, and that of the steps of a run.
/** The steps of a run: what was predicted, and what was measured. */
function runSteps() {
  const several = data.run_steps.some((it) => it.sync_points > 1);
  const change = ({ hop_bytes: hops }) => hops && hops[1] - hops[0];
  const columns = [
    ["step", (it) => it.step],
    ["strategy", (it) => it.strategy || "none"],
    several && ["sync points before", (it) => it.sync_points],
    ["migrations", (it) => it.migrations],
    ["average load before", (it) => it.average_load_seconds, secondsText],
    ["max/avg before", (it) => it.max_over_avg[0], ratioText],
    ["max/avg after", (it) => it.max_over_avg[1], ratioText],
    ["change of hop-bytes", change, (_, it) => changeText(...it.hop_bytes)],
    ["time before, measured", (it) => it.period_seconds, secondsText],
    ["time after, predicted", (it) => it.predicted_seconds, secondsText],
    ["time after with the step, measured", (it) => it.next_seconds, secondsText],
    ["time of the decision", (it) => it.decision_seconds, secondsText],
  ];
  const left = ` Of ${data.steps.steps} steps, the table has the first and the last ones.`;
  const whole = table("steps of the run", columns, data.run_steps);
  return [heading("Steps of the run"), make("div", { class: "heads" }, whole),
    note(words("steps") + (data.run_steps.length < data.steps.steps ? left : ""))];
}
/** The time of the slowest PE, with phases of all of them. */
const slowest = (metrics) => metrics.phases_seconds ?? metrics.max_load_seconds;
/** After how many periods a strategy has saved the time that it takes, if that is more than one. */
function paysAfter() {
  const { name, strategy_seconds: takes, metrics, top_links: [link] } = after();
  const saved = slowest(before().metrics) - slowest(metrics);
  // Where links take longer than work, less work does not make periods as much shorter.
  if (!(saved > 0 && takes > saved) || link?.[2] > slowest(metrics)) return false;
  const pays = `that pays after ${countText(Math.ceil(takes / saved), "period")}, without the time of migrations`;
  return `${name} takes ${secondsText(takes)} and saves the slowest PE ${secondsText(saved)} in a period as long as ` +
    `the recorded one: ${pays}.`;
}
/** The table of placements. `isSum` is whether they have sums over several steps. */
function placementsTable(isSum) {
  const hasOthers = data.placements.length > 1, hasLoads = loads.exists();
  const shown = (it) => hasOthers && it === before() ? nameBefore() : it.name;
  const choice = (text, it) => {
    const i = data.placements.indexOf(it), onclick = () => choose(i);
    return make("span", {}, make("button", { onclick, "aria-label": `Show ${text} in all panels` }, text),
      i === data.recommended && make("span", { class: "mark" }, ` ★ ${data.recommendation_title.toLowerCase()}`));
  };
  const cost = (name) => (it) => ((isSum ? it.totals : it.metrics) || {})[name];
  const ofMoves = (name) => (it) => it === before() ? null : cost(name)(it);
  const columns = [
    [hasOthers ? "strategy" : "placement", shown, hasOthers ? choice : String],
    hasLoads && ["largest load", cost("max_load_seconds"), loadText],
    ["slowest PE, all phases", cost("phases_seconds"), loadText],
    hasLoads && ["max/avg", cost("imbalance"), (x) => ratioText(x + 1)],
    [isSum ? "predicted time" : "predicted period", cost("step_seconds"), secondsText],
    ["hops per byte", cost("hops_per_byte"), ratioText],
    ["bytes between PEs", cost("remote_bytes"), bytesText],
    ["busiest link", cost("max_link_bytes"), bytesText],
    ["migrations", ofMoves("migrations")],
    ["time of migrations, predicted", ofMoves("migration_seconds"), secondsText],
    ["strategy time", (it) => isSum ? it.total_strategy_seconds : it.strategy_seconds, secondsText],
  ];
  const row = (it) => ({ "aria-current": it === after() && "true" });
  return make("div", { class: "heads whole" }, table("placements", columns, data.placements, { row }));
}
/** The strategies that the rule of thumb leaves out. */
function notCompared(isSum) {
  const load = (it) => slowest(isSum ? it.totals : it.metrics);
  const answers = data.placements.slice(1).filter((it) => it.totals || !isSum), least = Math.min(...answers.map(load));
  const out = answers.filter((it) => load(it) > 1.05 * least).map((it) => it.name).join(", ");
  return out && ` It leaves out what has more than 5 % more load than the least: ${out}.`;
}
/** What the page says of the placement after, besides the lead, which has what it says of the recommended one. */
function sentencesOfAfter(hasTime) {
  const { name, sentences } = after(), fixed = data.fixed_senders_part;
  const isInLead = (sentence) => state.after === data.recommended && data.sentences[0].includes(sentence);
  return [
    ...sentences.filter((sentence) => !isInLead(sentence)).map((sentence) => `${name}: ${sentence}`),
    !hasTime && paysAfter(),
    fixed >= 0.5 && `${percentText(fixed)} of the bytes between objects are sent by objects that cannot move. ` +
      "A strategy can only bring their receivers nearer.",
  ];
}
const summary = {
  id: "summary", title: "Overview",
  // The lead of the page has the first sentence.
  exists: () => data.placements.length > 0 || data.sentences.length > 1 || !data.timeline,
  draw() {
    const hasPlacements = data.placements.length > 0, hasSteps = data.run_steps.length > 1;
    const isSum = data.placements.some((it) => it.totals), { step_seconds, hop_bytes } = before()?.metrics || {};
    const isTimed = isKnown(step_seconds), ofAfter = hasPlacements ? sentencesOfAfter(isTimed || isSum) : [];
    const notes = data.refusals.map(([name, reason]) => `No answer from ${name}: ${reason}.`);
    if (data.recommended !== null) notes.push(isTimed ? `${data.recommendation_title}: the smallest sum of predicted ` +
      `${isSum ? "time" : "period"} (times --horizon), time of migrations and strategy time.`
      : words("thumb") + notCompared(isSum));
    if (isKnown(hop_bytes)) notes.push(words("hops"));
    return [
      "",
      isSum ? heading(`Sums over ${countText(data.steps.steps, "step")}`)
        : hasSteps && data.step !== null && heading(`Step ${data.step}`),
      hasPlacements && placementsTable(isSum),
      ...[...data.sentences.slice(1), ...ofAfter].map((sentence) => sentence && make("p", {}, sentence)),
      ...(hasSteps ? runSteps() : []),
      ...notes.map(note),
      data.placements.length > 1 && make("p", { class: "note hint" }, words("choose")),
    ];
  },
};
