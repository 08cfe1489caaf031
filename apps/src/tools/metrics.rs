//! What placements cost as a table: a line per cost, a column per placement.

use equipoise_strategies::cost::named::{Named, Placed};
use equipoise_strategies::table::aligned;

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
