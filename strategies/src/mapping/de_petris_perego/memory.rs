//! Necessary conditions for the tasks to fit into the memory of the PEs.

use std::collections::BTreeMap;

use equipoise_network::program::{Model, Task};

use crate::StrategyError;
use equipoise_model::table::count;

/// Checks necessary conditions for the tasks to fit into `memory_bytes` on each PE.
///
/// # Errors
/// If the fixed tasks of a PE, all tasks together, or the largest task need more memory than there is.
pub(super) fn check(
    model: &Model,
    available: &[u32],
    memory_bytes: Option<u64>,
) -> Result<(), StrategyError> {
    let Some(bytes) = memory_bytes else { return Ok(()) };
    let needs = |task: &Task| u128::from(task.memory_bytes.unwrap_or(0));
    let (mut all, mut fixed) = (0, BTreeMap::<u32, u128>::new());
    for task in &model.tasks {
        match task.stays_on {
            Some(pe) => *fixed.entry(pe).or_default() += needs(task),
            None => all += needs(task),
        }
    }
    if let Some((pe, needed)) = fixed.iter().find(|(_, needed)| **needed > u128::from(bytes)) {
        return Err(StrategyError::Request(format!(
            "the fixed tasks on PE {pe} need {}, and a PE has {bytes}; allow more memory, or fix fewer tasks there",
            count(*needed, "byte")
        )));
    }
    let taken: u128 = available.iter().filter_map(|pe| fixed.get(pe)).sum();
    let room = u128::from(bytes) * available.len() as u128 - taken;
    if all > room {
        let left = if taken > 0 { format!(", of which fixed tasks take {taken}") } else { String::new() };
        return Err(StrategyError::Request(format!(
            "the tasks need {}, and the memory of {} is {}{left}; allow more memory",
            count(all, "byte"),
            count(available.len() as u64, "PE"),
            count(room + taken, "byte")
        )));
    }
    let largest = model
        .tasks
        .iter()
        .enumerate()
        .filter(|it| it.1.stays_on.is_none())
        .rev()
        .max_by_key(|(_, task)| needs(task));
    match largest.map(|(number, task)| (number, needs(task))) {
        Some((number, needed)) if needed > u128::from(bytes) => Err(StrategyError::Request(format!(
            "task {number} needs {}, and a PE has {bytes}; allow more memory",
            count(needed, "byte")
        ))),
        _ => Ok(()),
    }
}
