//! The costs of placements as a table: a line per cost, a column per placement.

use equipoise_model::Database;
use equipoise_model::table::{aligned, plain, seconds};
use equipoise_strategies::cost::catalogue::{self, Amount, Entry, Placed, Subject};

use crate::input;

/// The unit of loads in text. Documents always name seconds, because the fields of all inputs are the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoadUnit {
    /// Measured or modelled loads.
    Seconds,
    /// The weights of a task graph are numbers without a unit; a graph without weights has the load 1 for every task.
    None,
}

impl LoadUnit {
    /// The unit of the loads of `database`, which was loaded from `spec`.
    ///
    /// Weights in files are integers. A task graph has other loads if its generator models times, or if its file names
    /// a unit below one second.
    pub(crate) fn of(spec: &str, database: &Database) -> LoadUnit {
        let is_whole = || database.objects.iter().all(|object| object.load_seconds.fract() == 0.0);
        if input::is_task_graph(spec) && is_whole() { LoadUnit::None } else { LoadUnit::Seconds }
    }

    /// A load as text.
    pub(crate) fn show(self, load: f64) -> String {
        match self {
            LoadUnit::Seconds => seconds(load),
            LoadUnit::None => plain(load),
        }
    }
}

/// The table of the usual costs of placements of `database`, without uninformative costs. Costs of loads are
/// uninformative if all loads are 1 (the default of a graph) and every PE has at most one task; costs of sizes are
/// uninformative if no size is known.
pub(crate) fn informative_costs(
    database: &Database,
    unit: LoadUnit,
    columns: &[(&str, &Placed<'_>)],
) -> String {
    let loads = database.objects.iter().any(|object| object.load_seconds != 1.0)
        || columns.iter().any(|(_, placed)| placed.metrics.max_load_seconds != 1.0);
    let sizes = database.objects.iter().any(|object| object.bytes.is_some());
    let costs = columns.iter().any(|(_, placed)| placed.metrics.step_seconds.is_some());
    let phases = !database.constraints.phases.is_empty();
    let subject = Subject { loads, sizes, costs, phases, ..Subject::WHOLE };
    let bandwidths = columns.iter().any(|(_, placed)| placed.busiest_link_seconds().is_some());
    let subject = Subject { bandwidths, ..subject };
    table(catalogue::usual().filter(|cost| cost.applies_to(subject)), unit, columns)
}

/// The table of the given costs; each column has a name and a placement.
pub(crate) fn table<'a>(
    costs: impl IntoIterator<Item = &'a Entry>,
    unit: LoadUnit,
    columns: &[(&str, &Placed<'_>)],
) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    if columns.iter().any(|(name, _)| !name.is_empty()) {
        let names = columns.iter().map(|(name, _)| (*name).to_string());
        rows.push([String::new()].into_iter().chain(names).collect());
    }
    for cost in costs {
        let show = |(_, placed): &(&str, &Placed<'_>)| match cost.of(placed) {
            Amount::Seconds(load) if cost.is_load() => unit.show(load),
            amount => amount.to_string(),
        };
        rows.push([cost.title.to_string()].into_iter().chain(columns.iter().map(show)).collect());
    }
    aligned(&rows)
}

#[cfg(test)]
mod tests {
    use equipoise_strategies::workloads;

    use super::*;

    #[test]
    fn only_loads_that_are_times_have_a_unit() {
        let check = |spec: &str, expected: LoadUnit| {
            let database = workloads::load(spec).expect(spec);
            assert_eq!(LoadUnit::of(spec, &database), expected, "{spec}");
        };
        check("mesh:4x4", LoadUnit::None);
        check("leanmd:4x4x4", LoadUnit::Seconds);
        let database = workloads::load("mesh:4x4").expect("a mesh");
        assert_eq!(LoadUnit::of("a.db", &database), LoadUnit::Seconds);
        assert_eq!((LoadUnit::None.show(1.5), LoadUnit::Seconds.show(1.5)), ("1.5".into(), "1.50 s".into()));
    }
}
