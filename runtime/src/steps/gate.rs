//! Whether an assignment is applied (`--lb-gate`): all of it, a part that pays, or nothing.

use crate::lb_history::Kept;
use crate::options::{LbWhen, Settings};
use crate::pe::PeCx;
use equipoise_model::Assignment;
use equipoise_model::database::{Database, Object};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::max_moves::paying_part;

/// Notes what an assignment is predicted to gain, where later decisions depend on it, and replaces it if it does not pay.
pub(super) fn review(
    pe: &PeCx,
    database: &Database,
    choice: &Choice,
    answer: &mut Assignment,
) -> Option<Kept> {
    let settings = pe.settings();
    let learns = settings.gates() || settings.lb_when == LbWhen::Auto || !answer.attempts.is_empty();
    let present = database.placement();
    if !learns || answer.pe_of == present {
        return None;
    }
    let [before, after] =
        [&present, &answer.pe_of].map(|placement| Metrics::of(database, &*settings.topology, placement));
    let chosen = answer.attempts.iter().find(|attempt| attempt.is_chosen);
    let spec = chosen.map_or(&choice.spec, |attempt| &attempt.spec);
    let mut experience = pe.collectives.steps.experience.borrow_mut();
    let delivered = experience.proposed(spec, before.gain_seconds(&after), database, answer);
    let is_trial = settings.lb_when == LbWhen::Auto && !experience.trusts(database);
    gate(settings, database, answer, [&before, &after], delivered, is_trial)
}

/// Replaces an assignment that does not pay, if `--lb-gate` asks for that: by a part of it that pays, else by the present placement. An
/// object on a PE that is not available has to move in any case. Of the predicted gains, the part `delivered` counts.
fn gate(
    settings: &Settings,
    database: &Database,
    answer: &mut Assignment,
    [before, after]: [&Metrics; 2],
    delivered: f64,
    is_trial: bool,
) -> Option<Kept> {
    let must_move = |object: &Object| object.migratable && !database.pes[object.pe as usize].available;
    if !settings.gates() || database.objects.iter().any(must_move) || breaks_a_constraint(settings, database)
    {
        return None;
    }
    if is_trial && after.migrations > 0 {
        answer.pe_of = database.placement();
        return Some(Kept { is_trial, ..decision(before, after, delivered) });
    }
    let mut kept = kept(settings, before, after, delivered)?;
    answer.pe_of = paying_part(database, &*settings.topology, &answer.pe_of, delivered)
        .map_or_else(|| database.placement(), |(placement, _)| placement);
    let moved = database.objects.iter().zip(&answer.pe_of).filter(|(object, pe)| object.pe != **pe);
    kept.applied_migrations = moved.count() as u64;
    Some(kept)
}

/// Whether the present placement breaks a constraint, so that a step has to move objects.
fn breaks_a_constraint(settings: &Settings, database: &Database) -> bool {
    if database.constraints.is_empty() {
        return false;
    }
    let rules = database.constraints.rules(database, &*settings.topology);
    rules.is_ok_and(|rules| rules.check(database, &database.placement()).is_err())
}

/// Why a decision does not pay, if it does not, and `--lb-gate` asks for that. Of the predicted gain, the part `delivered` counts.
pub(super) fn kept(settings: &Settings, before: &Metrics, after: &Metrics, delivered: f64) -> Option<Kept> {
    after.migration_seconds.filter(|_| settings.gates() && after.migrations > 0)?;
    let kept = decision(before, after, delivered);
    (kept.gain_seconds <= kept.migration_seconds).then_some(kept)
}

/// What is known of an assignment that is not applied. Of the predicted gain, the part `delivered` counts.
fn decision(before: &Metrics, after: &Metrics, delivered: f64) -> Kept {
    Kept {
        gain_seconds: delivered * before.gain_seconds(after),
        migration_seconds: after.migration_seconds.unwrap_or(0.0),
        migrations: after.migrations,
        applied_migrations: 0,
        is_trial: false,
    }
}
