//! The cost of an assignment: the metrics of a placement on a machine, and a one-sentence summary.
//!
//! - [`Metrics`]: all metrics. [`Metrics::of`] is cheap enough for every load-balancing step; [`Metrics::full`] adds
//!   the metrics that follow routes. [`Communication`] is present if communication was recorded;
//! - [`LoadBound`] and [`hop_bytes_bound`]: lower bounds over all placements;
//! - [`link_loads`]: the bytes over every link;
//! - [`qap`], [`mcf`], [`mcf_optimal`], [`cuts`]: bytes times distances; the time of the busiest link with the machine's
//!   routes; the same time with the best routes; and its lower bound. [`qap`] and [`mcf`] are updated by [`swaps`];
//! - [`spans`]: within which node, or at which switch, the ranks of groups are;
//! - [`criterion`]: the costs that searches can minimise, by name;
//! - [`catalogue`]: every cost by name, for documents and tables;
//! - [`step_seconds()`], [`migration_seconds`]: the predicted time of a period and of the migrations before it, where the
//!   costs of messages are known;
//! - [`sentence()`]: the one-sentence summary.

use serde::Serialize;

use equipoise_model::{Database, Topology};

pub mod catalogue;
pub mod commodities;
pub mod contention;
pub mod criterion;
pub mod cuts;
pub mod explain;
mod hops;
mod links;
mod load;
pub mod mcf;
pub mod mcf_optimal;
pub mod qap;
pub mod routes;
mod sentence;
pub mod spans;
mod step_seconds;
pub mod swaps;
#[cfg(test)]
mod tests;
pub mod unsolved;
pub(crate) mod wiring;

pub use hops::{MAX_BOUND_EDGES, MAX_BOUND_PES, hop_bytes_bound};
pub(crate) use hops::{hop_bytes, travel};
pub use links::link_loads;
pub use load::LoadBound;
pub(crate) use load::{ROUNDING, is_lighter, max_load, pour, stranded};
pub use sentence::sentence;
pub(crate) use step_seconds::{CLOSE, FOUND, Period, hop_byte_seconds};
pub use step_seconds::{migration_seconds, step_seconds};

/// The metrics of a placement on a machine.
///
/// Loads include background, are divided by the PE's speed, and cover the period of the record. Edges are directed.
/// Hop-bytes count each byte with the distance between its two PEs. Ends of edges that are PEs do not move. Volumes are
/// exact integers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// PEs of the machine.
    pub pes: usize,
    /// Objects placed.
    pub objects: usize,
    /// The load of the most loaded PE, for which all other PEs wait.
    pub max_load_seconds: f64,
    /// The sum over phases of the time of the slowest PE; `None`, and omitted from documents, if the database has no
    /// [phases](equipoise_model::constraints::Constraints::phases).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases_seconds: Option<f64>,
    /// The load of every available PE if the movable work could be divided arbitrarily; see
    /// [`LoadBound::average_seconds`].
    pub average_load_seconds: f64,
    /// The largest load over the average, minus 1; 0 is perfect.
    pub imbalance: f64,
    /// Lower bound of the largest load over all placements of these objects.
    pub lower_bound_seconds: f64,
    /// The lower bound by the heaviest object alone: the load of the PE where this object finishes first.
    pub heaviest_object_seconds: f64,
    /// The cost of communication; `None`, and omitted from documents, if communication was not recorded.
    #[serde(flatten)]
    pub communication: Option<Communication>,
    /// Objects that are on another PE than in the record.
    pub migrations: u64,
    /// Sum of the encoded sizes of these objects; `None` if one of them was never measured.
    pub migrated_bytes: Option<u64>,
    /// The predicted time of the period ([`step_seconds()`]); `None`, and omitted from documents, if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_seconds: Option<f64>,
    /// The predicted time of these migrations ([`migration_seconds`]); `None`, and omitted from documents, if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_seconds: Option<f64>,
}

/// The cost of communication between objects on different PEs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Communication {
    /// Messages of all edges.
    pub total_messages: u64,
    /// Messages that leave their PE.
    pub remote_messages: u64,
    /// Bytes of all edges.
    pub total_bytes: u64,
    /// Bytes that leave their PE.
    pub remote_bytes: u64,
    /// Bytes times the distance they travel.
    pub hop_bytes: u128,
    /// Hop-bytes over all bytes; bytes that stay on their PE count 0 hops.
    pub hops_per_byte: f64,
    /// Hop-bytes over the bytes that leave their PE.
    pub hops_per_remote_byte: f64,
    /// The longest distance of an edge.
    pub max_dilation: u32,
    /// The bytes over the busiest link; only in [`Metrics::full`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_link_bytes: Option<u64>,
    /// The time of the busiest link, bytes over bandwidth; only in [`Metrics::full`]. Links without a bandwidth in the spec of the
    /// machine have [`DEFAULT_BANDWIDTH`](equipoise_model::topology::DEFAULT_BANDWIDTH). In documents it is the cost `mcf` of `evaluate`.
    #[serde(skip)]
    pub max_link_seconds: Option<f64>,
    /// The mean bytes over a link, over all links of the machine; only in [`Metrics::full`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_link_bytes: Option<f64>,
    /// Lower bound of hop-bytes over all placements that have no more objects on any PE than the fullest PE has here;
    /// only in [`Metrics::full`], up to [`MAX_BOUND_PES`] PEs and [`MAX_BOUND_EDGES`] edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_bytes_lower_bound: Option<u128>,
}

impl Metrics {
    /// The metrics of the placement of object `i` of `database` on PE `placement[i]`.
    ///
    /// Takes time linear in the number of objects, edges and PEs; needs no table of all pairs of PEs. Where the limits of
    /// links are known, follows one route for every pair of PEs that communicates.
    ///
    /// # Panics
    /// When the length of `placement` is not the number of objects, when the database and the topology have
    /// different numbers of PEs, or when a PE is unknown.
    pub fn of(database: &Database, topology: &dyn Topology, placement: &[u32]) -> Metrics {
        assert_eq!(placement.len(), database.objects.len(), "a placement gives every object one PE");
        assert_eq!(topology.pes(), database.pes.len(), "the machine has the PEs of the database");
        let load = LoadBound::of(database);
        let max_load_seconds = max_load(database, placement);
        let moved = database.objects.iter().zip(placement).filter(|&(o, &pe)| o.pe != pe);
        let (migrations, migrated_bytes) = moved.fold((0, Some(0u64)), |(count, sum), (o, _)| {
            (count + 1, sum.zip(o.bytes).map(|(sum, bytes)| sum.saturating_add(bytes)))
        });
        Metrics {
            pes: topology.pes(),
            objects: placement.len(),
            max_load_seconds,
            phases_seconds: load::phases_seconds(database, placement),
            average_load_seconds: load.average_seconds,
            imbalance: (ratio(max_load_seconds, load.average_seconds, 1.0) - 1.0).max(0.0),
            lower_bound_seconds: load.bound_seconds,
            heaviest_object_seconds: load.heaviest_object_seconds,
            communication: database.communication_recorded.then(|| travel(database, topology, placement)),
            migrations,
            migrated_bytes,
            step_seconds: step_seconds(database, topology, placement),
            migration_seconds: migration_seconds(database, topology, placement),
        }
    }

    /// [`Metrics::of`], plus the loads of the links and the bound on hop-bytes.
    ///
    /// Follows one route for every pair of PEs that communicates, and computes the distances between all pairs of PEs.
    ///
    /// # Panics
    /// As [`Metrics::of`].
    pub fn full(database: &Database, topology: &dyn Topology, placement: &[u32]) -> Metrics {
        let mut metrics = Metrics::of(database, topology, placement);
        if let Some(communication) = &mut metrics.communication {
            let loads = link_loads(database, topology, placement);
            let sum: u128 = loads.iter().map(|&bytes| u128::from(bytes)).sum();
            let mut objects_on = vec![0; topology.pes()];
            placement.iter().for_each(|&pe| objects_on[pe as usize] += 1);
            let fullest = objects_on.into_iter().max().unwrap_or(0);
            communication.max_link_bytes = Some(loads.iter().copied().max().unwrap_or(0));
            communication.max_link_seconds = Some(mcf::seconds_of(topology, &loads).fold(0.0, f64::max));
            communication.mean_link_bytes = Some(ratio(sum as f64, loads.len() as f64, 0.0));
            communication.hop_bytes_lower_bound = hop_bytes_bound(database, topology, fullest);
        }
        metrics
    }
}

impl Metrics {
    /// The time for which all PEs wait for the slowest: that of all phases, or the largest load.
    pub fn slowest_seconds(&self) -> f64 {
        self.phases_seconds.unwrap_or(self.max_load_seconds)
    }

    /// How far the largest load is above the average at best, as a part of the average.
    pub fn least_imbalance(&self) -> f64 {
        ratio(self.lower_bound_seconds, self.average_load_seconds, 1.0) - 1.0
    }

    /// The predicted time of a period that `after` saves, in seconds; negative if `after` is slower. Where a time is unknown, the
    /// difference of [`Self::slowest_seconds`].
    pub fn gain_seconds(&self, after: &Metrics) -> f64 {
        match (self.step_seconds, after.step_seconds) {
            (Some(before), Some(after)) => before - after,
            _ => self.slowest_seconds() - after.slowest_seconds(),
        }
    }
}

/// `part / whole`, or `otherwise` if `whole` is 0.
fn ratio(part: f64, whole: f64, otherwise: f64) -> f64 {
    if whole > 0.0 { part / whole } else { otherwise }
}
