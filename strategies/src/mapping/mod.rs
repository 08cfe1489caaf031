//! Topology-aware strategies: they place objects that exchange many bytes close together.

use crate::cost::hop_bytes;
use crate::placement::{answer, hosts};

pub mod contention_lb;
pub mod de_petris_perego;
pub mod hier_topo_map;
pub mod lee_aggarwal;
pub mod libtopomap;
pub mod mcf_lb;
pub mod on_tree;
pub mod refine_topolb;
pub mod swap_lb;
pub mod tmlb_min_weight;
pub mod tmlb_tree_based;
pub mod topocentlb;
pub mod topolb;
pub mod treematch;
pub mod treematch_const;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::graph;

    use crate::testing::assign_on;

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
        fn every_object_has_its_own_pe_also_next_to_fixed_ones(
            machine in prop::sample::select(&["mesh:7", "torus:4x2", "tree:2:4", "torus:3x3", "platform:litvinov-grid"][..]),
            fixed in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
            seed in 0..50u64,
        ) {
            let pes = equipoise_model::topology::parse(machine).expect("a machine").pes();
            let tasks = graph::load(&format!("random:n={pes},degree=2,bytes=100,seed={seed}"));
            let mut database = tasks.expect("a graph").remap(pes as u32);
            fixed.iter().for_each(|index| database.objects[index.index(pes)].migratable = false);
            for spec in MAPPERS {
                let mut places = assign_on(spec, &database, machine).expect(spec).pe_of;
                places.sort_unstable();
                prop_assert_eq!(places, (0..pes as u32).collect::<Vec<_>>(), "{} on {}", spec, machine);
            }
        }
    }
}
