//! Strategies that look at the machine: who communicates much is put close together.

use crate::balance::comm_aware_refine::relieve;
use crate::balance::load::Work;
use crate::graph::Graph;
use crate::partition::groups::{By, Grouping, Groups};
use crate::registry::{ParamError, Params};
use crate::{Assignment, Database, Topology};

pub mod contention_lb;
pub mod hier_topo_map;
pub mod lee_aggarwal;
pub mod libtopomap;
pub mod mcf_lb;
pub mod refine_topolb;
pub mod swap_lb;
pub mod tmlb_min_weight;
pub mod tmlb_tree_based;
pub mod topocentlb;
pub mod topolb;
pub mod treematch;
pub mod treematch_const;
mod volumes;

/// Hop-bytes when the vertices of `graph` are on `places` and, those after them, on `anchors`.
pub(crate) fn hop_bytes(graph: &Graph, anchors: &[u32], places: &[u32], topology: &dyn Topology) -> u128 {
    let place = |vertex: usize| places.get(vertex).copied().unwrap_or_else(|| anchors[vertex - places.len()]);
    let pes = topology.pes();
    let (mut row, mut others) = (vec![0; pes], Vec::new());
    let mut sum = 0;
    for vertex in 0..graph.vertices() {
        let higher = || graph.neighbors(vertex).filter(|&(other, _)| other > vertex);
        let add =
            |sum, ((_, bytes), distance): ((usize, u64), u32)| sum + u128::from(bytes) * u128::from(distance);
        // A whole row is worth its while for who has many neighbors.
        if graph.degree(vertex) * ROW_SHARE < pes {
            others.clear();
            others.extend(higher().map(|(other, _)| place(other)));
            topology.distances_to(place(vertex) as usize, &others, &mut row[..others.len()]);
            sum = higher().zip(row.iter().copied()).fold(sum, add);
        } else {
            topology.distances_from(place(vertex) as usize, &mut row);
            sum = higher().map(|(other, bytes)| ((other, bytes), row[place(other) as usize])).fold(sum, add);
        }
    }
    sum
}

/// How many entries of a row of distances take about as long as one distance asked for alone.
const ROW_SHARE: usize = 8;

/// Rounding by which seconds added up in another order may differ, as a part.
const ROUNDING: f64 = 1e-9;

/// The answer when group `i` is on `places[i]`.
///
/// Groups are balanced as if all PEs were alike. Where speeds, background or objects that stay take a PE above
/// the allowed imbalance, and above that of the groups where no better ones were found, it gives objects to
/// PEs these talk to, as in `CommAwareRefineLB`. Groups that are kept, or whose sizes are given, remain as they
/// are.
fn answer(
    database: &Database,
    groups: &Groups,
    grouping: Grouping,
    available: Vec<u32>,
    places: &[u32],
) -> Assignment {
    let mut pe_of = groups.placement(database, places);
    if grouping.by != By::Keep && !grouping.equal {
        let loads_seconds = groups.loads_seconds(database);
        let average_seconds = loads_seconds.iter().sum::<f64>() / available.len() as f64;
        let heaviest_seconds = loads_seconds.into_iter().fold(0.0, f64::max);
        // All is balanced where there is no load.
        let of_groups = (heaviest_seconds / average_seconds).max(1.0) * (1.0 + ROUNDING) - 1.0;
        let imbalance = grouping.imbalance.max(of_groups);
        pe_of = relieve(database, &Work::new(database, available), pe_of, imbalance);
    }
    Assignment { pe_of, notes: vec![("groups".into(), groups.count as f64)] }
}

/// The value of `key`, which says how often something is tried: 1 to `most` times.
fn take_count(params: &mut Params, key: &str, most: usize) -> Result<usize, ParamError> {
    match params.take(key)? {
        number if (1..=most).contains(&number) => Ok(number),
        number => Err(params.bad(
            key,
            &number.to_string(),
            format!("it is tried at least once and at most {most} times"),
        )),
    }
}
