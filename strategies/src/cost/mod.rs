//! What an answer costs: the metrics of a placement on a machine, and the sentence for a person.
//!
//! - [`Metrics`]: every number; [`Metrics::of`] is cheap enough for every load-balancing step, and
//!   [`Metrics::full`] adds what walks over routes; what the [`Communication`] costs is among them where it
//!   was recorded;
//! - [`LoadBound`] and [`hop_bytes_bound`]: what no placement can be better than;
//! - [`link_loads`]: the bytes over every link;
//! - [`qap`], [`mcf`], [`mcf_optimal`], [`cuts`]: bytes times distances, the time of the busiest link on given
//!   routes and on the best ones, and what it cannot go below; the first two follow swaps ([`swaps`]);
//! - [`criterion`]: those of them that searches make smaller, by name;
//! - [`named`]: every cost by name, for documents and tables;
//! - [`sentence()`]: the gist for a person.

use serde::Serialize;

use crate::{Database, Topology};

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
pub mod named;
pub mod qap;
pub mod routes;
mod sentence;
pub mod swaps;
#[cfg(test)]
mod tests;

pub use hops::{MAX_BOUND_EDGES, MAX_BOUND_PES, hop_bytes_bound};
pub use links::link_loads;
pub use load::LoadBound;
pub(crate) use load::pour;
pub use sentence::sentence;

/// What a placement costs on a machine.
///
/// Loads include background, are divided by the PE's speed, and are those of the period of the record.
/// Edges are directed, and every byte between two PEs counts their distance; an edge end that is a PE
/// stays where it is. Volumes are exact integers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// PEs of the machine.
    pub pes: usize,
    /// Objects placed.
    pub objects: usize,
    /// The load of the most loaded PE, which everybody waits for.
    pub max_load_seconds: f64,
    /// The load every available PE would have if the work that may move could be divided at will; see
    /// [`LoadBound::average_seconds`].
    pub average_load_seconds: f64,
    /// The largest load over the average, less one; 0 is perfect.
    pub imbalance: f64,
    /// The largest load that no placement of these objects can go below.
    pub lower_bound_seconds: f64,
    /// The part of the bound that the heaviest object makes: its load on the PE where it ends first.
    pub heaviest_object_seconds: f64,
    /// What the communication costs; `None`, and left out of documents, where it was not recorded.
    #[serde(flatten)]
    pub communication: Option<Communication>,
    /// Objects that are not where the record has them.
    pub migrations: u64,
    /// Their encoded sizes in all; `None` when one of them was never measured.
    pub migrated_bytes: Option<u64>,
}

/// What it costs that objects on different PEs talk to each other.
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
    /// Hop-bytes over all bytes, those that stay on their PE counting zero hops.
    pub hops_per_byte: f64,
    /// Hop-bytes over the bytes that leave their PE.
    pub hops_per_remote_byte: f64,
    /// The longest distance any edge spans.
    pub max_dilation: u32,
    /// The bytes over the busiest link; only in [`Metrics::full`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_link_bytes: Option<u64>,
    /// The bytes over a link, on average over all links of the machine; only in [`Metrics::full`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_link_bytes: Option<f64>,
    /// Hop-bytes that no placement with as many objects on the fullest PE can go below; only in
    /// [`Metrics::full`], up to [`MAX_BOUND_PES`] PEs and [`MAX_BOUND_EDGES`] edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_bytes_lower_bound: Option<u128>,
}

impl Metrics {
    /// What it costs to have object `i` of `database` on PE `placement[i]`.
    ///
    /// Takes time in the number of objects, edges and PEs; no table of all pairs of PEs is made.
    ///
    /// # Panics
    /// When `placement` has another length than the objects, or the database and the topology have
    /// different numbers of PEs, or a PE is unknown.
    pub fn of(database: &Database, topology: &dyn Topology, placement: &[u32]) -> Metrics {
        assert_eq!(placement.len(), database.objects.len(), "a placement gives every object one PE");
        assert_eq!(topology.pes(), database.pes.len(), "the machine has the PEs of the database");
        let load = LoadBound::of(database);
        let max_load_seconds = load::max_load(database, placement);
        let moved = database.objects.iter().zip(placement).filter(|&(o, &pe)| o.pe != pe);
        let (migrations, migrated_bytes) = moved.fold((0, Some(0u64)), |(count, sum), (o, _)| {
            (count + 1, sum.zip(o.bytes).map(|(sum, bytes)| sum.saturating_add(bytes)))
        });
        Metrics {
            pes: topology.pes(),
            objects: placement.len(),
            max_load_seconds,
            average_load_seconds: load.average_seconds,
            imbalance: (ratio(max_load_seconds, load.average_seconds, 1.0) - 1.0).max(0.0),
            lower_bound_seconds: load.bound_seconds,
            heaviest_object_seconds: load.heaviest_object_seconds,
            communication: database
                .communication_recorded
                .then(|| hops::travel(database, topology, placement)),
            migrations,
            migrated_bytes,
        }
    }

    /// [`Metrics::of`], and the loads of the links and the bound on hop-bytes.
    ///
    /// Takes the time of a route for every pair of PEs that communicates, and of the distances between
    /// all pairs of PEs.
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
            communication.mean_link_bytes = Some(ratio(sum as f64, loads.len() as f64, 0.0));
            communication.hop_bytes_lower_bound = hop_bytes_bound(database, topology, fullest);
        }
        metrics
    }
}

/// `part / whole`, or `otherwise` if there is no whole.
fn ratio(part: f64, whole: f64, otherwise: f64) -> f64 {
    if whole > 0.0 { part / whole } else { otherwise }
}
