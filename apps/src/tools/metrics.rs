//! The metrics of placements as a table: a line per metric, a column per placement.

use equipoise_strategies::cost::Metrics;
use equipoise_strategies::table::{aligned, bytes, seconds};

/// A line of the table: what it is called and what it says.
type Line = (&'static str, fn(&Metrics) -> String);

const LINES: &[Line] = &[
    ("largest load", |m| seconds(m.max_load_seconds)),
    ("average load", |m| seconds(m.average_load_seconds)),
    ("lower bound of the largest", |m| seconds(m.lower_bound_seconds)),
    ("max/avg load", |m| format!("{:.3}", m.imbalance + 1.0)),
    ("messages", |m| m.total_messages.to_string()),
    ("messages between PEs", |m| m.remote_messages.to_string()),
    ("bytes", |m| bytes(m.total_bytes)),
    ("bytes between PEs", |m| bytes(m.remote_bytes)),
    ("hop-bytes", |m| m.hop_bytes.to_string()),
    ("lower bound of hop-bytes", |m| or_dash(m.hop_bytes_lower_bound.map(|bound| bound.to_string()))),
    ("hops per byte", |m| format!("{:.3}", m.hops_per_byte)),
    ("hops per byte between PEs", |m| format!("{:.3}", m.hops_per_remote_byte)),
    ("longest dilation", |m| m.max_dilation.to_string()),
    ("bytes over the busiest link", |m| or_dash(m.max_link_bytes.map(bytes))),
    ("bytes over a link on average", |m| or_dash(m.mean_link_bytes.map(|mean| bytes(mean.round() as u64)))),
    ("objects moved", |m| m.migrations.to_string()),
    ("bytes moved", |m| m.migrated_bytes.map_or_else(|| "unknown".into(), bytes)),
];

/// The table of placements under their names.
pub(super) fn table(columns: &[(&str, &Metrics)]) -> String {
    let mut rows = Vec::with_capacity(LINES.len() + 1);
    if columns.iter().any(|(name, _)| !name.is_empty()) {
        let names = columns.iter().map(|(name, _)| (*name).to_string());
        rows.push([String::new()].into_iter().chain(names).collect());
    }
    for (name, value) in LINES {
        let values = columns.iter().map(|(_, metrics)| value(metrics));
        rows.push([(*name).to_string()].into_iter().chain(values).collect::<Vec<_>>());
    }
    aligned(&rows)
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}
