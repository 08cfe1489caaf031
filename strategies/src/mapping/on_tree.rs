//! What strategies share that place groups of objects on the leaves of a machine's tree.

use equipoise_model::{Assignment, Database, Topology};

use super::{answer, hosts};
use crate::StrategyError;
use crate::partition::groups::{Grouping, Groups};
use crate::strategy::check;

mod affinity;
pub(super) mod tree;

pub use affinity::Affinity;

use tree::Machine;

/// The maximum of `restarts` and `trials`; values above are rejected.
pub(super) const MAX_TRIES: usize = 100_000;

/// The assignment in which `place` returns the leaf of every group. `place` receives the tree of the machine, the groups,
/// and the leaf of each anchor.
pub(super) fn assign(
    database: &Database,
    topology: &dyn Topology,
    grouping: Grouping,
    affinity: Affinity,
    seed: u64,
    place: impl FnOnce(&Machine, &Groups, &[u32]) -> Vec<u32>,
) -> Result<Assignment, StrategyError> {
    let available = check(database, topology)?;
    let groups = Groups::of(&affinity.of(database), &available, grouping, seed)?;
    let mut machine = Machine::of(topology, database);
    machine.restrict_to(&hosts(database, &available, groups.count, grouping.by));
    let leaves = place(&machine, &groups, &machine.leaves_of(&groups.anchors));
    Ok(answer(database, topology, &groups, grouping, available, &machine.pes_of(&leaves)))
}
