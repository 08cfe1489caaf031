//! Strategies that look at the machine: who communicates much is put close together.

use crate::balance::comm_aware_refine::relieve;
use crate::balance::load::Work;
use crate::database::Object;
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

/// The PEs that so many groups are placed on, ascending: of those `available`, the ones where no load stays and, only where there
/// are more groups, those where least does.
///
/// A group beside load that stays would be given away again by [`answer`], wherever there is room, and what it was
/// placed for would be lost. Groups that are kept may be where they are, beside what stays.
fn hosts(database: &Database, available: &[u32], groups: usize, by: By) -> Vec<u32> {
    let mut staying_seconds = vec![None; database.pes.len()];
    let stays = |object: &&Object| !object.migratable && object.load_seconds > 0.0;
    for object in database.objects.iter().filter(stays) {
        *staying_seconds[object.pe as usize].get_or_insert(0.0) += object.load_seconds;
    }
    let stays = |pe: u32| staying_seconds[pe as usize];
    let mut hosts = available.to_vec();
    if by == By::Keep {
        return hosts;
    }
    // Of those where as much stays, the lowest comes first.
    hosts.sort_by(|&a, &b| {
        let by_load = stays(a).unwrap_or(0.0).total_cmp(&stays(b).unwrap_or(0.0));
        stays(a).is_some().cmp(&stays(b).is_some()).then(by_load)
    });
    let free = hosts.iter().filter(|&&pe| stays(pe).is_none()).count();
    hosts.truncate(free.max(groups));
    hosts.sort_unstable();
    hosts
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph;
    use crate::testing::{self, assign_on};

    const MAPPERS: [&str; 9] = [
        "TopoLB",
        "TopoCentLB",
        "LeeAggarwalLB",
        "LibTopoMap",
        "TreeMatch",
        "TreeMatchConst",
        "HierTopoMap",
        "SwapLB:restarts=2,tries=30",
        "McfLB:restarts=2,tries=30",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn who_stays_has_a_pe_to_itself_where_there_is_one_for_everybody(
            machine in prop::sample::select(&["mesh:7", "torus:4x2", "tree:2:4", "torus:3x3", "platform:litvinov-grid"][..]),
            stays in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
            seed in 0..50u64,
        ) {
            let pes = crate::topology::parse(machine).expect("a machine").pes();
            let tasks = graph::load(&format!("random:n={pes},degree=2,bytes=100,seed={seed}"));
            let mut database = tasks.expect("a graph").remap(pes as u32);
            stays.iter().for_each(|index| database.objects[index.index(pes)].migratable = false);
            for spec in MAPPERS {
                let mut places = assign_on(spec, &database, machine).expect(spec).pe_of;
                places.sort_unstable();
                prop_assert_eq!(places, (0..pes as u32).collect::<Vec<_>>(), "{} on {}", spec, machine);
            }
        }
    }

    #[test]
    fn groups_are_put_where_least_stays() {
        let mut database = testing::database(4, &[(3.0, 0), (1.0, 1), (1.0, 3), (1.0, 1), (9.0, 2)]);
        database.objects[..4].iter_mut().for_each(|object| object.migratable = false);
        let check = |available: &[u32], groups, by, expected: &[u32]| {
            assert_eq!(hosts(&database, available, groups, by), expected, "{groups} of {available:?}");
        };
        check(&[0, 1, 2, 3], 0, By::Greedy, &[2]);
        check(&[0, 1, 2, 3], 1, By::Greedy, &[2]);
        check(&[0, 1, 2, 3], 2, By::Greedy, &[2, 3]);
        check(&[0, 1, 2, 3], 3, By::Greedy, &[1, 2, 3]);
        check(&[0, 1, 2, 3], 4, By::Greedy, &[0, 1, 2, 3]);
        check(&[0, 3], 1, By::Greedy, &[3]);
        check(&[0, 1, 2, 3], 1, By::Keep, &[0, 1, 2, 3]);
    }
}
