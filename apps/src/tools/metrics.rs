//! What placements cost as a table: a line per cost, a column per placement.

use equipoise_strategies::Database;
use equipoise_strategies::cost::named::{self, Named, Placed};
use equipoise_strategies::table::aligned;

/// The table of the usual costs of placements of `database`, but for those that say nothing: of loads where
/// nobody gave any (a graph's tasks then have a second each) and every task has a PE of its own, and of sizes
/// where none is known.
pub(super) fn telling(database: &Database, columns: &[(&str, &Placed<'_>)]) -> String {
    let has_loads = database.objects.iter().any(|object| object.load_seconds != 1.0)
        || columns.iter().any(|(_, placed)| placed.metrics.max_load_seconds != 1.0);
    let has_sizes = database.objects.iter().any(|object| object.bytes.is_some());
    let tells =
        |cost: &&Named| (has_loads || !OF_LOADS.contains(&cost.name)) && (has_sizes || cost.name != OF_SIZES);
    table(named::usual().filter(tells), columns)
}

/// The costs that are of loads alone.
const OF_LOADS: [&str; 5] = [
    "max_load_seconds",
    "average_load_seconds",
    "lower_bound_seconds",
    "heaviest_object_seconds",
    "imbalance",
];

/// The cost that is of sizes of tasks.
const OF_SIZES: &str = "migrated_bytes";

/// The table of these costs of placements under their names.
pub(super) fn table<'a>(
    costs: impl IntoIterator<Item = &'a Named>,
    columns: &[(&str, &Placed<'_>)],
) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    if columns.iter().any(|(name, _)| !name.is_empty()) {
        let names = columns.iter().map(|(name, _)| (*name).to_string());
        rows.push([String::new()].into_iter().chain(names).collect());
    }
    for cost in costs {
        let amounts = columns.iter().map(|(_, placed)| (cost.of)(placed).to_string());
        rows.push([cost.title.to_string()].into_iter().chain(amounts).collect());
    }
    aligned(&rows)
}
