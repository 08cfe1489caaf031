//! Totals over several replayed steps: sums, and ratios of sums.

use equipoise_model::database::{Summary, Volumes};

use super::choice::mark_front;
use super::{Refusal, Replay, Row};
use crate::cost::{Communication, Metrics};

/// Combines all steps into one step with the number of the first.
///
/// The steps run one after the other. Therefore the largest loads of the steps are added, and so are the bytes
/// over the busiest link and the bounds. A strategy that gave no answer for one of the steps has no sum and is
/// among the refusals.
pub(super) fn total(steps: &[Replay]) -> Replay {
    let first = steps.first().map_or(&[][..], |step| step.strategies.as_slice());
    let of_strategy = |first: &Row| {
        let of_steps = steps.iter().map(|step| step.strategies.iter().find(|row| row.name == first.name));
        let rows: Vec<&Row> = of_steps.collect::<Option<_>>()?;
        let after = sum(rows.iter().map(|row| &row.after));
        Some(Row {
            name: first.name.clone(),
            seconds: rows.iter().map(|row| row.seconds).sum(),
            migrations: after.migrations,
            migrated_bytes: after.migrated_bytes,
            after,
            on_front: false,
            notes: Vec::new(),
            sentence: None,
            pe_of: Vec::new(),
            stranded: rows.iter().map(|row| row.stranded).sum(),
        })
    };
    let mut refusals: Vec<Refusal> = Vec::new();
    for step in steps {
        for Refusal { name, error } in &step.refusals {
            if !refusals.iter().any(|earlier| earlier.name == *name) {
                let error = format!("step {}: {error}", step.database.step);
                refusals.push(Refusal { name: name.clone(), error });
            }
        }
    }
    let mut strategies: Vec<Row> = first.iter().filter_map(of_strategy).collect();
    mark_front(&mut strategies);
    Replay {
        database: steps.iter().map(|step| step.database.clone()).reduce(add_records).unwrap_or_default(),
        recorded_pes: steps.iter().find_map(|step| step.recorded_pes),
        before: sum(steps.iter().map(|step| &step.before)),
        may_keep: steps.iter().all(|step| step.may_keep),
        broken_before: None,
        strategies,
        refusals,
    }
}

/// Combines two steps: adds times and volumes; takes the larger number of PEs, arrays, objects and edges.
fn add_records(a: Summary, b: Summary) -> Summary {
    Summary {
        step: a.step,
        pes: a.pes.max(b.pes),
        arrays: a.arrays.max(b.arrays),
        objects: a.objects.max(b.objects),
        migratable_objects: a.migratable_objects.max(b.migratable_objects),
        load_seconds: a.load_seconds + b.load_seconds,
        background_seconds: a.background_seconds + b.background_seconds,
        communication: both(a.communication, b.communication, |a, b| Volumes {
            edges: a.edges.max(b.edges),
            dangling_edges: a.dangling_edges.saturating_add(b.dangling_edges),
            messages: a.messages.saturating_add(b.messages),
            bytes: a.bytes.saturating_add(b.bytes),
        }),
    }
}

/// The sum of two values if both are known.
fn both<T>(a: Option<T>, b: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    a.zip(b).map(|(a, b)| add(a, b))
}

fn sum<'a>(all: impl Iterator<Item = &'a Metrics>) -> Metrics {
    let Some(mut sum) = all.map(Metrics::clone).reduce(add) else { return Metrics::default() };
    let ratio = |part: f64, whole: f64, otherwise| if whole > 0.0 { part / whole } else { otherwise };
    sum.imbalance = (ratio(sum.max_load_seconds, sum.average_load_seconds, 1.0) - 1.0).max(0.0);
    if let Some(sum) = &mut sum.communication {
        sum.hops_per_byte = ratio(sum.hop_bytes as f64, sum.total_bytes as f64, 0.0);
        sum.hops_per_remote_byte = ratio(sum.hop_bytes as f64, sum.remote_bytes as f64, 0.0);
    }
    sum
}

/// Adds two metrics; [`sum`] computes the ratios.
fn add(a: Metrics, b: Metrics) -> Metrics {
    Metrics {
        pes: a.pes.max(b.pes),
        objects: a.objects.max(b.objects),
        max_load_seconds: a.max_load_seconds + b.max_load_seconds,
        phases_seconds: both(a.phases_seconds, b.phases_seconds, |a, b| a + b),
        average_load_seconds: a.average_load_seconds + b.average_load_seconds,
        lower_bound_seconds: a.lower_bound_seconds + b.lower_bound_seconds,
        heaviest_object_seconds: a.heaviest_object_seconds + b.heaviest_object_seconds,
        communication: both(a.communication, b.communication, add_communication),
        migrations: a.migrations + b.migrations,
        migrated_bytes: both(a.migrated_bytes, b.migrated_bytes, u64::saturating_add),
        step_seconds: both(a.step_seconds, b.step_seconds, |a, b| a + b),
        migration_seconds: both(a.migration_seconds, b.migration_seconds, |a, b| a + b),
        imbalance: a.imbalance,
    }
}

fn add_communication(a: Communication, b: Communication) -> Communication {
    Communication {
        total_messages: a.total_messages.saturating_add(b.total_messages),
        remote_messages: a.remote_messages.saturating_add(b.remote_messages),
        total_bytes: a.total_bytes.saturating_add(b.total_bytes),
        remote_bytes: a.remote_bytes.saturating_add(b.remote_bytes),
        hop_bytes: a.hop_bytes.saturating_add(b.hop_bytes),
        max_dilation: a.max_dilation.max(b.max_dilation),
        max_link_bytes: both(a.max_link_bytes, b.max_link_bytes, u64::saturating_add),
        max_link_seconds: both(a.max_link_seconds, b.max_link_seconds, |a, b| a + b),
        mean_link_bytes: both(a.mean_link_bytes, b.mean_link_bytes, |a, b| a + b),
        hop_bytes_lower_bound: both(a.hop_bytes_lower_bound, b.hop_bytes_lower_bound, u128::saturating_add),
        hops_per_byte: a.hops_per_byte,
        hops_per_remote_byte: a.hops_per_remote_byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_computed_from_sums() {
        let near = Communication {
            total_bytes: 10,
            hop_bytes: 10,
            remote_bytes: 5,
            max_dilation: 4,
            max_link_bytes: Some(5),
            ..Communication::default()
        };
        let one = Metrics {
            max_load_seconds: 3.0,
            average_load_seconds: 1.0,
            communication: Some(near),
            migrations: 2,
            migrated_bytes: Some(7),
            ..Metrics::default()
        };
        let far = Communication { hop_bytes: 30, max_dilation: 3, ..near };
        let other = Metrics { max_load_seconds: 1.0, communication: Some(far), ..one.clone() };
        let both = sum([&one, &other].into_iter());
        assert_eq!((both.max_load_seconds, both.imbalance), (4.0, 1.0));
        assert_eq!((both.migrations, both.migrated_bytes), (4, Some(14)));
        let both = both.communication.expect("both have communication");
        assert_eq!((both.hops_per_byte, both.hops_per_remote_byte, both.max_dilation), (2.0, 4.0, 4));
        assert_eq!(both.max_link_bytes, Some(10));
        let silent = Metrics { communication: None, ..one.clone() };
        assert_eq!(sum([&one, &silent].into_iter()).communication, None);
        let unmeasured = Metrics { migrated_bytes: None, ..one.clone() };
        assert_eq!(sum([&one, &unmeasured].into_iter()).migrated_bytes, None);
        assert_eq!(sum([].into_iter()), Metrics::default());
    }

    #[test]
    fn times_and_volumes_are_added_and_objects_are_counted_once() {
        let one = Summary {
            step: 3,
            pes: 4,
            arrays: 1,
            objects: 9,
            migratable_objects: 8,
            load_seconds: 1.5,
            background_seconds: 0.25,
            communication: Some(Volumes { edges: 20, dangling_edges: 1, messages: 30, bytes: 400 }),
        };
        let other = Summary {
            step: 4,
            objects: 10,
            load_seconds: 2.0,
            communication: Some(Volumes { edges: 15, dangling_edges: 1, messages: 30, bytes: 100 }),
            ..one.clone()
        };
        let expected = Summary {
            objects: 10,
            load_seconds: 3.5,
            background_seconds: 0.5,
            communication: Some(Volumes { edges: 20, dangling_edges: 2, messages: 60, bytes: 500 }),
            ..one.clone()
        };
        assert_eq!(add_records(one.clone(), other), expected);
        let silent = Summary { communication: None, ..one.clone() };
        assert_eq!(add_records(one, silent).communication, None);
        assert_eq!(total(&[]).database, Summary::default());
    }
}
