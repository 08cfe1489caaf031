//! Load-balancing steps, and those that a report keeps: the first and the last ones, and a summary of all.

use equipoise_model::assignment::Note;
use equipoise_model::table;
use equipoise_strategies::cost::{Metrics, sentence};
use serde::Serialize;
use std::collections::VecDeque;

/// The number of steps kept from the begin of the run, and from its end. A step takes about 600 bytes.
const KEPT: usize = 500;

/// The report of a load-balancing step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LbStep {
    /// The number of the step, from 0.
    pub step: u64,
    /// The spec of the strategy; none if the step only wrote the database.
    pub strategy: Option<String>,
    /// Seconds since the previous step, or the start.
    pub period_seconds: f64,
    /// The number of sync points since then, this one included.
    pub sync_points: u32,
    /// Seconds the strategy took.
    pub strategy_seconds: f64,
    /// Seconds from the arrival of the last element to the decision.
    pub decision_seconds: f64,
    /// The costs of the placement before the step.
    pub before: Metrics,
    /// The costs of the placement after the step, for the same loads.
    pub after: Metrics,
    /// The notes of the strategy.
    pub notes: Vec<Note>,
    /// What the strategy says about its assignment, if it says something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// What predicted the loads that the strategy has seen, as in `trend=4`; none if they are those of the last period. The costs
    /// above are those of the last period in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predictor: Option<String>,
    /// Why the assignment of the strategy did not pay, if `--lb-gate` kept the placement or applied only a part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// Why the assignment of the strategy was not applied, if it could not be.
    pub error: Option<String>,
}

/// An assignment that did not pay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// The predicted time that the assignment would have saved until the next step.
    pub gain_seconds: f64,
    /// The predicted time of its migrations.
    pub migration_seconds: f64,
    /// The objects that it would have moved.
    pub migrations: u64,
    /// The objects that moved nevertheless, because moving only these pays.
    pub applied_migrations: u64,
    /// Whether the assignment was not applied because it is not known whether loads last: then the next step shows what it would
    /// have gained.
    pub is_trial: bool,
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let moving = format!(
            "moving {} costs {}",
            table::count(self.migrations, "object"),
            table::seconds(self.migration_seconds)
        );
        match self.applied_migrations {
            _ if self.is_trial => write!(f, "kept until it is known whether loads last: would save ")?,
            0 => write!(f, "kept: would save ")?,
            part => write!(f, "moved only {}, which pays: all would save ", table::count(part, "object"))?,
        }
        match self.gain_seconds {
            gain if gain > 0.0 => write!(f, "{}, {moving}", table::seconds(gain)),
            _ => write!(f, "nothing, {moving}"),
        }
    }
}

impl LbStep {
    /// One sentence: what the step gains, and what ideal balance would gain beyond it.
    pub fn sentence(&self) -> String {
        sentence(&self.before, &self.after)
    }
}

impl std::fmt::Display for LbStep {
    /// A block of lines.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (before, after) = (&self.before, &self.after);
        writeln!(
            f,
            "LB step {}: {} in {:.3} ms, {} of {} objects move{}",
            self.step,
            self.strategy.as_deref().unwrap_or("no strategy"),
            self.strategy_seconds * 1e3,
            after.migrations,
            after.objects,
            after.migrated_bytes.map_or(String::new(), |bytes| format!(" ({})", table::bytes(bytes))),
        )?;
        writeln!(
            f,
            "  largest load {:.3} -> {:.3} ms, at best {:.3} ms: max/avg {:.3} -> {:.3}",
            before.max_load_seconds * 1e3,
            after.max_load_seconds * 1e3,
            before.lower_bound_seconds * 1e3,
            before.imbalance + 1.0,
            after.imbalance + 1.0,
        )?;
        if let (Some(before), Some(after)) = (before.communication, after.communication)
            && before.total_bytes > 0
        {
            writeln!(
                f,
                "  hops per byte {:.3} -> {:.3}, bytes between PEs {} -> {}",
                before.hops_per_byte, after.hops_per_byte, before.remote_bytes, after.remote_bytes,
            )?;
        }
        if let (Some(before), Some(after)) = (before.step_seconds, after.step_seconds) {
            writeln!(f, "  predicted time of the period {:.3} -> {:.3} ms", before * 1e3, after * 1e3)?;
        }
        if let Some(predictor) = &self.predictor {
            writeln!(f, "  loads of the coming period predicted by {predictor}")?;
        }
        if let Some(kept) = self.kept {
            writeln!(f, "  {kept}")?;
        }
        for Note { name, value } in &self.notes {
            writeln!(f, "  {name}: {value}")?;
        }
        if let Some(remark) = &self.remark {
            writeln!(f, "  {remark}")?;
        }
        write!(f, "  {}", self.sentence())
    }
}

/// A summary of all load-balancing steps of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LbSummary {
    /// The number of steps.
    pub steps: u64,
    /// Steps whose assignment was not applied, because the strategy failed.
    pub failed: u64,
    /// Objects that moved, summed over the steps.
    pub migrations: u64,
    /// Sum of [`LbStep::period_seconds`].
    pub period_seconds: f64,
    /// Sum of [`LbStep::strategy_seconds`].
    pub strategy_seconds: f64,
    /// The largest [`LbStep::strategy_seconds`].
    pub max_strategy_seconds: f64,
    /// Sum of [`LbStep::decision_seconds`].
    pub decision_seconds: f64,
    /// The mean imbalance before the steps; see [`Metrics::imbalance`].
    pub mean_imbalance_before: f64,
    /// The mean imbalance after the steps.
    pub mean_imbalance_after: f64,
    /// The largest imbalance after a step.
    pub max_imbalance_after: f64,
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct LbHistory {
    first: Vec<LbStep>,
    last: VecDeque<LbStep>,
    pub(crate) summary: LbSummary,
}

impl LbHistory {
    /// Adds a step.
    pub(crate) fn add(&mut self, step: LbStep) {
        self.summary.add(&step);
        if self.first.len() < KEPT {
            return self.first.push(step);
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(step);
    }

    /// The steps that were kept, in order.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &LbStep> {
        self.first.iter().chain(&self.last)
    }

    /// As [`LbHistory::steps`].
    pub(crate) fn into_steps(mut self) -> Vec<LbStep> {
        self.first.extend(self.last);
        self.first
    }
}

impl LbSummary {
    fn add(&mut self, step: &LbStep) {
        self.steps += 1;
        self.failed += u64::from(step.error.is_some());
        self.migrations += step.after.migrations;
        self.period_seconds += step.period_seconds;
        self.strategy_seconds += step.strategy_seconds;
        self.max_strategy_seconds = self.max_strategy_seconds.max(step.strategy_seconds);
        self.decision_seconds += step.decision_seconds;
        let toward = |mean: f64, value: f64| mean + (value - mean) / self.steps as f64;
        self.mean_imbalance_before = toward(self.mean_imbalance_before, step.before.imbalance);
        self.mean_imbalance_after = toward(self.mean_imbalance_after, step.after.imbalance);
        self.max_imbalance_after = self.max_imbalance_after.max(step.after.imbalance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u64) -> LbStep {
        let metrics = |imbalance| Metrics { imbalance, migrations: 2, ..Metrics::default() };
        LbStep {
            step: number,
            strategy: None,
            period_seconds: 1.0,
            sync_points: 1,
            strategy_seconds: number as f64,
            decision_seconds: 0.5,
            before: metrics(number as f64),
            after: metrics(0.25),
            notes: Vec::new(),
            remark: None,
            predictor: None,
            kept: None,
            error: (number % 2 == 0).then(|| "no".into()),
        }
    }

    #[test]
    fn keeps_the_first_and_the_last_steps_and_a_summary() {
        let mut history = LbHistory::default();
        let all = 3 * KEPT as u64;
        (0..all).for_each(|number| history.add(step(number)));
        let summary = history.summary;
        assert_eq!((summary.steps, summary.failed, summary.migrations), (all, all / 2, 2 * all));
        assert_eq!((summary.max_strategy_seconds, summary.max_imbalance_after), ((all - 1) as f64, 0.25));
        assert_eq!((summary.period_seconds, summary.decision_seconds), (all as f64, 0.5 * all as f64));
        assert!((summary.mean_imbalance_before - (all - 1) as f64 / 2.0).abs() < 1e-9);
        assert_eq!(summary.mean_imbalance_after, 0.25);
        let kept: Vec<u64> = history.into_steps().iter().map(|step| step.step).collect();
        let expected: Vec<u64> = (0..KEPT as u64).chain(all - KEPT as u64..all).collect();
        assert_eq!(kept, expected);
    }
}
