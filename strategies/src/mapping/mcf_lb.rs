//! `McfLB`: swaps groups to minimise the time of the busiest link.
//!
//! D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing, 2014, section 4, leaves a
//! mapping technique for his cost as future work: the time of the busiest link under the machine's routes
//! ([`crate::cost::mcf`]). This is the search of [`SwapLB`](super::swap_lb) with that goal; each restart has three phases
//! (`swap_lb/busiest_link.rs`).

use equipoise_model::params::{Param, Params};

use super::swap_lb::{Effort, Goal, RESTARTS, START, SwapLb, TRIES};
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::groups::{self, Grouping};
use equipoise_model::descriptor::Descriptor;

/// `McfLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "McfLB",
    form: "",
    help: "Swaps groups to minimise the time of the busiest link, with the links' bandwidths and the machine's routes, \
           from many starts. For large messages on machines whose links differ or are shared unevenly: trees, \
           clusters, wide-area systems.",
    params: &[
        Param {
            key: "norm",
            default: "4",
            help: "the power p, 1 to 64: the sum of the p-th powers of the links' times is minimised before the time of \
                   the busiest link",
        },
        RESTARTS,
        TRIES,
        START,
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
    ],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            let text: String = params.take("norm")?;
            let norm = text.parse().ok().filter(|norm| (1..=MAX_NORM).contains(norm));
            let norm = norm.ok_or_else(|| {
                params.bad("norm", &text, format!("expected a whole number from 1 to {MAX_NORM}"))
            })?;
            let (effort, grouping) = (Effort::take(params)?, Grouping::take(params)?);
            Ok(Box::new(OnPart(SwapLb { goal: Goal::BusiestLink { norm }, effort, grouping })))
        },
    },
};

/// The highest power; above it, the sum may overflow.
const MAX_NORM: i32 = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::{graph, topology};

    use super::super::swap_lb::Start;
    use super::super::swap_lb::tests::orders;
    use super::*;
    use crate::cost::mcf;
    use crate::testing::{assign_on, reference};

    fn grouping() -> Grouping {
        Grouping { by: groups::By::Greedy, equal: false, imbalance: 0.05 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn endings_report_their_cost_and_place_every_group_once(
            machine in prop::sample::select(&["torus:4x3", "platform:litvinov-grid", "fattree:2:2:3/4e9:2e9:1e9"][..]),
            spec in prop::sample::select(&["ring:9,bytes=1000", "random:n=12,degree=4,bytes=77", "mesh:3x2"][..]),
            seed in 0..100u64,
        ) {
            let machine = topology::parse(machine).expect("a machine");
            let database = graph::load(spec).expect("a graph").remap(machine.pes() as u32);
            let effort = Effort { restarts: 3, tries: Some(60), start: Start::Random };
            let strategy = SwapLb { goal: Goal::BusiestLink { norm: 6 }, effort, grouping: grouping() };
            for ending in strategy.endings(&database, &*machine, seed).expect("an assignment") {
                let expected = mcf::cost(&database, &*machine, &ending.places);
                prop_assert!((ending.worth.cost - expected).abs() <= 1e-12 * expected);
                let mut places = ending.places.clone();
                places.sort_unstable();
                places.dedup();
                prop_assert_eq!(places.len(), database.objects.len());
            }
        }
    }

    #[test]
    fn the_assignment_does_not_depend_on_the_number_of_threads() {
        let database = graph::load("npb-mz:benchmark=SP,class=C,processes=16").expect("SP-MZ").remap(16);
        let answer = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| assign_on("McfLB:restarts=20,tries=50", &database, "platform:litvinov-grid"))
        };
        assert_eq!(answer(1), answer(3));
    }

    #[test]
    fn many_restarts_find_the_least_cost_of_all_placements() {
        let database = graph::load("random:n=6,degree=3,bytes=1000,seed=4").expect("a graph").remap(6);
        let machine = topology::parse("mesh:3x2").expect("a mesh");
        let costs = orders(6).into_iter().map(|places| mcf::cost(&database, &*machine, &places));
        let least = costs.fold(f64::INFINITY, f64::min);
        let answer = assign_on("McfLB:restarts=30,tries=100", &database, "mesh:3x2").expect("an assignment");
        assert_eq!(mcf::cost(&database, &*machine, &answer.pe_of), least);
    }

    #[test]
    fn a_ring_on_a_ring_has_one_message_per_link() {
        let database = graph::load("ring:8,bytes=1000").expect("a ring").remap(8);
        let answer = assign_on("McfLB:restarts=20", &database, "torus:8").expect("an assignment");
        let machine = topology::parse("torus:8").expect("a ring");
        // A link carries one message of 1000 bytes at the default of 1e9 bytes per second.
        assert_eq!(mcf::cost(&database, &*machine, &answer.pe_of), 1e-6);
        let note =
            answer.notes.iter().find(|note| note.name == "busiest_link_seconds").map(|note| note.value);
        assert!(note.is_some_and(|seconds| (seconds / 1e-6 - 1.0).abs() < 1e-12), "{note:?}");
    }

    #[test]
    fn the_cost_on_a_tree_is_at_most_the_best_of_the_reference() {
        let Some(text) = reference("simgrid/spmz_D16_tree.csv") else { return };
        let of = |line: &str| line.split(',').nth(4).and_then(|cost| cost.parse::<f64>().ok());
        let best = text.lines().skip(1).filter_map(of).fold(f64::INFINITY, f64::min);
        let database = graph::load("npb-mz:benchmark=SP,class=D,processes=16").expect("SP-MZ").remap(16);
        let answer =
            assign_on("McfLB:restarts=50", &database, "platform:litvinov-tree").expect("an assignment");
        let machine = topology::parse("platform:litvinov-tree").expect("a platform");
        let cost = mcf::cost(&database, &*machine, &answer.pe_of);
        assert!(cost <= best * (1.0 + 1e-9), "{cost} {best}");
    }
}
