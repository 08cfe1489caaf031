//! What messages, migrations and strategies cost, as lines of a table.

use equipoise_model::costs::{Costs, EndCosts};
use equipoise_model::quote::quoted;
use equipoise_model::table::seconds;

/// The lines of the costs of a step.
pub(super) fn lines(costs: &Costs) -> Vec<(&'static str, String)> {
    let ends = |ends: &EndCosts| {
        let end = |name: &str, once: f64, per_byte: f64| match per_byte {
            0.0 => format!("{name} {}", seconds(once)),
            _ => format!("{name} {} and {} per byte", seconds(once), seconds(per_byte)),
        };
        let [send, receive] = [
            end("sender", ends.send_seconds, ends.send_seconds_per_byte),
            end("receiver", ends.receive_seconds, ends.receive_seconds_per_byte),
        ];
        format!("{send}, {receive}")
    };
    let mut lines = vec![
        ("message on a PE", ends(&costs.same_pe)),
        ("in a process", ends(&costs.same_process)),
        ("between processes", ends(&costs.other_process)),
        ("migration", ends(&costs.migration)),
    ];
    if let Some(limits) = costs.links {
        let rate = |rate: Option<f64>, none: &str| match rate {
            Some(rate) => format!("{rate:.3e} B/s"),
            None => none.to_string(),
        };
        lines.push((
            "links",
            format!(
                "{}; a PE sends {} and receives {}",
                rate(limits.bandwidth, "as the machine has them"),
                rate(limits.injection, "without limit"),
                rate(limits.ejection, "without limit")
            ),
        ));
    }
    let times = costs.strategies.iter().map(|(name, &took)| format!("{} {}", quoted(name), seconds(took)));
    let times: Vec<String> = times.collect();
    if !times.is_empty() {
        lines.push(("last thinking", times.join(", ")));
    }
    lines
}
