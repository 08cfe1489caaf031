//! The file of `--report`: what PE 0 keeps of load-balancing steps for it.

use crate::lb_history::{LbHistory, LbStep};
use crate::options::{Settings, StrategySeconds, program};
use crate::report::{MachineReport, RunError};
use equipoise_model::Database;
use equipoise_model::table::{count, seconds};
use equipoise_network::trace::Trace;
use equipoise_report::data::{RunStep, VERSION};
use equipoise_report::{Builder, Heat, ReportData, ReportFile, timeline};
use equipoise_strategies::cost::Metrics;

/// What a run without a load-balancing step lacks for the panels of placements.
const NO_STEP: &str = "no load-balancing step, so its report shows no placement. A step needs elements that call at_sync in a run of \
                       more than one period (more iterations, or a smaller --lb-every), without --lb-off; with --balancer NAME it moves them";

/// What the report needs of the steps so far: the loads of all, and the database of the step that it shows.
#[derive(Default)]
pub(crate) struct RunReport {
    before: Heat,
    after: Heat,
    /// Of the steps before the last one, that which gained most: what the next period took is known.
    followed: Option<Shown>,
    /// The last step, if it gained more.
    last: Option<Shown>,
}

/// A step that may be shown. Steps without migrations gain nothing, so one of them is shown only if there is no other.
struct Shown {
    database: Database,
    pe_of: Vec<u32>,
    step: LbStep,
}

impl RunReport {
    /// Adds a step, which puts object `i` of `database` on PE `pe_of[i]`.
    pub(crate) fn add(&mut self, step: &LbStep, database: &Database, pe_of: &[u32]) {
        let number = step.step as f64;
        let ratio = |costs: &Metrics| Some(1.0 + costs.imbalance);
        self.before.push(number, &database.pe_loads(&database.placement()), ratio(&step.before));
        self.after.push(number, &database.pe_loads(pe_of), ratio(&step.after));
        let rank = |step: &LbStep| (step.after.migrations > 0, step.before.gain_seconds(&step.after));
        self.followed = self.last.take().or(self.followed.take());
        if self.followed.as_ref().is_none_or(|shown| rank(step) > rank(&shown.step)) {
            self.last = Some(Shown { database: database.clone(), pe_of: pe_of.to_vec(), step: step.clone() });
        }
    }

    /// The step to show, and whether what the period after it took is known.
    fn shown(&mut self) -> Option<(Shown, bool)> {
        let gains = |shown: &Shown| {
            shown.step.after.migrations > 0 && shown.step.before.gain_seconds(&shown.step.after) > 0.0
        };
        let is_last = self.last.as_ref().is_some_and(|last| {
            self.followed.as_ref().is_none_or(|followed| gains(last) && !gains(followed))
        });
        let shown = if is_last { self.last.take() } else { self.followed.take() };
        shown.map(|shown| (shown, !is_last))
    }

    /// A warning if there is no step to show.
    pub(crate) fn warning(&self) -> Option<String> {
        let has_none = self.followed.is_none() && self.last.is_none();
        has_none.then(|| format!("the run had {NO_STEP}"))
    }

    /// Writes the report of a run that took a time, in words, and may have failed; returns why it could not be written. `trace` is what
    /// was recorded of it, and `dropped` says what is missing there.
    pub(crate) fn write(
        self,
        file: &ReportFile,
        settings: &Settings,
        history: &LbHistory,
        (took, error): (String, Option<&RunError>),
        (trace, dropped): (Option<&Trace>, Option<&str>),
    ) -> Option<String> {
        let mut data = self.data(settings, &took, run_steps(history), trace.is_some());
        if let Some(error) = error {
            // Further lines list what the run waits for; the command prints them.
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_end_matches([':', '.']);
            let outcome =
                if matches!(error, RunError::Interrupted { .. }) { "did not end" } else { "failed" };
            data.sentences.insert(0, format!("The run {outcome}: {first}."));
        }
        data.sentences.extend(dropped.map(|dropped| format!("The recording is partial: {dropped}.")));
        data.timeline = trace.and_then(timeline::timeline);
        data.timeline_steps = trace.map(timeline::steps).unwrap_or_default();
        file.write(&data).err().map(|error| error.to_string())
    }

    fn data(
        mut self,
        settings: &Settings,
        took: &str,
        run_steps: Vec<RunStep>,
        is_recorded: bool,
    ) -> ReportData {
        let topology = &*settings.topology;
        let command = program();
        // Without its flags, the command is short enough for a title; a program of the command `equipoise run` is named alone.
        let words = command.split(" --").next().unwrap_or_default();
        let words = match words.split(' ').collect::<Vec<_>>()[..] {
            ["equipoise", "run", program] => program,
            _ => words,
        };
        let title = format!("Run of {words} on {}", topology.spec());
        let steps = self.before.steps();
        let length = format!("The run took {took} on {}", count(settings.pes as u64, "PE"));
        let command = format!("Command: {command}");
        let Some((Shown { database, pe_of, step }, is_followed)) = self.shown() else {
            return ReportData {
                version: VERSION,
                title,
                topology: topology.spec(),
                sentences: vec![format!("{length} and had {NO_STEP}."), command],
                ..ReportData::default()
            };
        };
        let placement = database.placement();
        let mut builder = Builder::new(title, &database, topology, placement, step.before.clone());
        builder.data.placements.iter_mut().for_each(|it| it.name = "before".into());
        let simulation = settings.simulation.as_ref();
        let is_charged = simulation.is_none_or(|it| it.strategy_seconds != StrategySeconds::Charged(0.0));
        let mut of_step = match &step.strategy {
            Some(strategy) => {
                let placed = builder.place(strategy.clone(), &pe_of, step.after.clone());
                placed.strategy_seconds = is_charged.then_some(step.strategy_seconds);
                placed.sentences = step.remark.clone().into_iter().collect();
                placed.steps = (steps > 1).then(|| self.after.finished());
                let still = if step.after.migrations == 0 { "no element moved; " } else { "" };
                let sentence = lower(&step.sentence());
                format!("Step {}, {strategy}, by the loads before it: {still}{sentence}", step.step)
            }
            // Nothing was asked to move, so there is one placement.
            None => "No load balancer was given, so no element moved; --balancer NAME names one.".into(),
        };
        let mut data = builder.data;
        let chosen = why_shown(&step, is_followed);
        data.step = (steps > 1).then_some(step.step);
        let shown = run_steps.iter().position(|it| it.step == step.step && it.strategy.is_some());
        if let Some(at) = shown {
            // A prediction does not stand alone.
            let but = if grew(&run_steps[at]) { "But" } else { "Measured:" };
            of_step += &format!(" {but} {}", lower(&delivered(&run_steps[at], run_steps.get(at + 1))));
        }
        let first = [overall(&run_steps), worst(&run_steps, step.step), Some(of_step)];
        data.sentences = first.into_iter().flatten().collect();
        data.sentences.extend([
            match steps {
                1 => format!("{length}, with 1 load-balancing step."),
                _ => format!(
                    "{length}, with {}. All panels but {} show step {}{chosen}.",
                    count(steps as u64, "load-balancing step"),
                    if is_recorded { "Steps and Timeline" } else { "Steps" },
                    step.step
                ),
            },
            command,
        ]);
        if !is_charged && step.strategy.is_some() {
            let free = "The virtual time has the messages of a decision, but not what the strategy computes, unless --strategy-seconds gives it.";
            data.sentences.push(free.into());
        }
        data.run_steps = run_steps;
        data.steps = (steps > 1).then(|| self.before.finished());
        data
    }
}

/// How long a run took, in virtual time if it was simulated on `machine`. The real time of a simulation is left out, so that equal
/// simulated runs have equal reports.
pub(crate) fn took(run_seconds: f64, machine: Option<&MachineReport>) -> String {
    match machine {
        Some(machine) => format!("{} of virtual time", seconds(machine.seconds)),
        None => seconds(run_seconds),
    }
}

/// The steps that were kept, with what the next one measured.
fn run_steps(history: &LbHistory) -> Vec<RunStep> {
    let steps: Vec<&LbStep> = history.steps().collect();
    let each = |step: &LbStep, seconds: f64| seconds / f64::from(step.sync_points.max(1));
    let next = |at: usize| steps.get(at + 1).filter(|next| next.step == steps[at].step + 1);
    (0..)
        .zip(&steps)
        .map(|(at, step)| RunStep {
            step: step.step,
            strategy: step.strategy.clone(),
            sync_points: step.sync_points,
            migrations: step.after.migrations,
            average_load_seconds: each(step, step.before.average_load_seconds),
            max_load_seconds: [&step.before, &step.after].map(|cost| each(step, cost.max_load_seconds)),
            max_over_avg: [&step.before, &step.after].map(|cost| 1.0 + cost.imbalance),
            hop_bytes: (step.before.communication.zip(step.after.communication))
                .map(|(before, after)| [before.hop_bytes, after.hop_bytes]),
            period_seconds: each(step, step.period_seconds),
            predicted_seconds: step.after.step_seconds.map(|it| each(step, it)),
            next_seconds: next(at).map(|next| each(next, next.period_seconds)),
            decision_seconds: step.decision_seconds,
        })
        .collect()
}

/// Why a step is shown, as the end of a sentence.
fn why_shown(step: &LbStep, is_followed: bool) -> &'static str {
    let gain = step.before.gain_seconds(&step.after);
    match step.after.migrations {
        0 => "; no step moved an element",
        _ if gain > 0.0 && is_followed => {
            ". Of the steps after which a period was measured, it has the largest predicted gain"
        }
        _ if gain > 0.0 => ", with the largest predicted gain",
        _ => "; no step gained time",
    }
}

/// The part by which the work of a period must change from the first to the last step to be named: it was no merit, or fault, of the steps.
const WORK: f64 = 0.02;

/// What all steps of a run delivered together, if there are several.
fn overall(steps: &[RunStep]) -> Option<String> {
    let [first, .., last] = steps else { return None };
    first.strategy.as_ref()?;
    let mut text = format!(
        "The time between sync points was {} before the first load-balancing step, and {} before the last one ({}).",
        seconds(first.period_seconds),
        seconds(last.period_seconds),
        // With the minus sign of the pages.
        format!("{:+.0} %", 100.0 * (last.period_seconds / first.period_seconds - 1.0))
            .replace('-', "\u{2212}")
    );
    let change = last.average_load_seconds / first.average_load_seconds - 1.0;
    if change.is_finite() && change.abs() >= WORK {
        let how = if change > 0.0 { "grew" } else { "fell" };
        text += &format!(" The work itself {how} by {:.0} %.", 100.0 * change.abs());
    }
    Some(text)
}

/// The part of the time between sync points from which on the time of a decision is named.
const DECISION: f64 = 0.01;

/// The part by which the largest load after a step must differ from the one that was computed for it, to be named.
const LOADS: f64 = 0.01;

/// The part of the time between sync points by which it must be longer after a step to be named first: times of threads vary.
const LONGER: f64 = 0.05;

/// Whether the time between sync points is longer after a step, by more than times vary.
fn grew(step: &RunStep) -> bool {
    step.next_seconds.is_some_and(|next| next > step.period_seconds * (1.0 + LONGER))
}

/// The step after which periods grew most, if they grew, of those that are not the shown one.
fn worst(steps: &[RunStep], shown: u64) -> Option<String> {
    let growth = |step: &RunStep| step.next_seconds.unwrap_or(0.0) / step.period_seconds;
    let others = steps.iter().filter(|step| step.step != shown && step.strategy.is_some() && grew(step));
    let step = others.max_by(|a, b| growth(a).total_cmp(&growth(b)))?;
    let predicted = step.predicted_seconds.map(|it| format!(", where {} were predicted", seconds(it)));
    Some(format!(
        "After step {} the time between sync points was longer: {} before it, and {} with the step itself{}.",
        step.step,
        seconds(step.period_seconds),
        seconds(step.next_seconds?),
        predicted.unwrap_or_default(),
    ))
}

/// What a step delivered, as far as that was measured, and the largest load after it if it is another one than was computed.
fn delivered(step: &RunStep, next: Option<&RunStep>) -> String {
    let Some(next_seconds) = step.next_seconds else {
        return format!(
            "The time between sync points was {} before this step; the time after it is not known.",
            seconds(step.period_seconds)
        );
    };
    let predicted =
        step.predicted_seconds.map(|it| format!(" Predicted from the loads before it were {}.", seconds(it)));
    let expected = step.max_load_seconds[1];
    let became = next.map_or(expected, |next| next.max_load_seconds[0]);
    let changed = ((became / expected - 1.0).abs() >= LOADS).then(|| {
        let [expected, became] = [expected, became].map(seconds);
        format!(" The largest load after it is {became}; the loads before it gave {expected}.")
    });
    // Of several sync points, it would be a part of the first.
    let is_one = next.is_some_and(|next| next.sync_points == 1);
    let decision = match is_one && step.decision_seconds >= DECISION * next_seconds {
        true => format!(", of which the decision took {}", seconds(step.decision_seconds)),
        false => String::new(),
    };
    let did = if grew(step) { "grew: it was" } else { "was" };
    format!(
        "The time between sync points {did} {} before this step, and {} after it, with the step itself{decision}.{}{}",
        seconds(step.period_seconds),
        seconds(next_seconds),
        predicted.unwrap_or_default(),
        changed.unwrap_or_default(),
    )
}

/// A sentence that follows a colon.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_work_itself_is_named() {
        let step = |average_load_seconds| RunStep {
            strategy: Some("GreedyLB".into()),
            period_seconds: 2.0,
            average_load_seconds,
            ..RunStep::default()
        };
        let text = |last| overall(&[step(1.0), step(last)]).unwrap_or_default();
        assert!(text(1.01).ends_with(" and 2.00 s before the last one (+0 %)."));
        assert!(text(0.9).ends_with(" The work itself fell by 10 %."), "{}", text(0.9));
        assert!(text(1.2).ends_with(" The work itself grew by 20 %."));
        assert_eq!(overall(&[step(1.0)]), None);
    }

    #[test]
    fn a_step_after_which_periods_are_longer_says_so() {
        let step = |next_seconds| RunStep {
            period_seconds: 1.0,
            predicted_seconds: Some(0.5),
            next_seconds,
            ..RunStep::default()
        };
        assert!(
            !grew(&step(None)) && delivered(&step(None), None).ends_with("the time after it is not known.")
        );
        let within = step(Some(1.04));
        assert!(
            !grew(&within)
                && delivered(&within, None).starts_with("The time between sync points was 1.00 s before")
        );
        let longer = step(Some(1.06));
        assert!(grew(&longer));
        assert_eq!(
            delivered(&longer, None),
            "The time between sync points grew: it was 1.00 s before this step, and 1.06 s after it, with the step itself. Predicted from \
             the loads before it were 500 ms."
        );
        let loads = |max_load_seconds| RunStep { max_load_seconds, ..longer.clone() };
        let text = |next| delivered(&loads([0.8, 0.4]), Some(&loads([next, 0.4])));
        let expected = " The largest load after it is 500 ms; the loads before it gave 400 ms.";
        assert!(text(0.5).ends_with(expected), "{}", text(0.5));
        assert_eq!(text(0.402), delivered(&longer, None));
        let slow = RunStep { decision_seconds: 0.02, ..longer.clone() };
        let after = |sync_points| delivered(&slow, Some(&RunStep { sync_points, ..RunStep::default() }));
        assert!(
            after(1).contains("with the step itself, of which the decision took 20.0 ms."),
            "{}",
            after(1)
        );
        assert!(after(2).contains("with the step itself."), "{}", after(2));
        let other = RunStep { step: 3, strategy: Some("GreedyLB".into()), ..longer };
        assert_eq!(worst(std::slice::from_ref(&other), 3), None, "another sentence names the shown step");
        assert_eq!(
            worst(&[other], 0).as_deref(),
            Some(
                "After step 3 the time between sync points was longer: 1.00 s before it, and 1.06 s with the step itself, \
                 where 500 ms were predicted."
            )
        );
    }
}
