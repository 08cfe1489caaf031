//! `McfLB`: groups on random PEs change places in pairs until the busiest link is as little busy as can be.
//!
//! What D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing, 2014, section 4,
//! leaves for later: a mapping technique that uses his cost, the time of the busiest link under the machine's
//! routes ([`crate::cost::mcf`]). A search that only accepts a smaller maximum stands still soon, because most swaps
//! do not touch the busiest link, or there are two. So each restart of [`SwapLB`](super::swap_lb) has three phases here:
//!
//! 1. swaps that make bytes times round-trip times smaller, as in `SwapLB`: they are the fastest to try, and bring near
//!    each other who exchanges much (left out on machines whose distances are not kept);
//! 2. swaps that make the sum of t^p over all links smaller, t being a link's time (p = `norm`); the larger p is, the more
//!    do busy links count;
//! 3. swaps of a task that sends over the busiest link, or is sent to, and, where none is left that helps, of all that is
//!    at two switches (`switches`), that make this link's time smaller or, as long as it stays the same, the sum.
//!
//! A phase ends when no swap is left that is better, or, where there are more pairs than `tries`, when so many in a row,
//! drawn at random, were in vain. The best end, by the busiest link, then by the sum, is kept.

use super::swap_lb::{
    Board, Dice, Effort, Ending, Plan, Problem, RESTARTS, START, TRIES, swap_until_none_is_better,
};
use crate::cost::mcf::{self, Aim, McfSwaps};
use crate::cost::qap::{Distances, Metric, QapSwaps};
use crate::cost::routes::Routes;
use crate::cost::swaps::SwapCost as _;
use crate::partition::groups::{self, Grouping};
use crate::random::{below, shuffle};
use crate::registry::{Named, Param, Params};
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

mod switches;

/// `McfLB` for the registry.
pub const NAMED: Named = Named {
    name: "McfLB",
    aliases: &[],
    help: "Groups change places in pairs until the busiest link takes as little time as can be, given the links' \
           bandwidths and the machine's routes, from many starts. For large messages on machines whose links differ \
           or are shared unevenly: trees, clusters, wide-area systems.",
    params: &[
        Param {
            key: "norm",
            default: "4",
            help: "p in the sum of p-th powers of the times of links, which decides before the busiest link does",
        },
        RESTARTS,
        TRIES,
        START,
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let text: String = params.take("norm")?;
        let norm = text.parse().ok().filter(|norm| (1..=MAX_NORM).contains(norm));
        let norm = norm.ok_or_else(|| {
            params.bad("norm", &text, format!("expected a power, a whole number from 1 to {MAX_NORM}"))
        })?;
        let (effort, grouping) = (Effort::take(params)?, Grouping::take(params)?);
        Ok(Box::new(McfLb { norm, effort, grouping }))
    },
};

/// The highest power: of a higher one a number does not hold the sum.
const MAX_NORM: i32 = 64;

/// The strategy that relieves the busiest link.
#[derive(Clone, Copy, Debug)]
pub struct McfLb {
    /// The power of the times of links in the sum of the second phase, at least 1.
    pub norm: i32,
    /// How long is searched; tries are those of each phase.
    pub effort: Effort,
    /// How objects are grouped.
    pub grouping: Grouping,
}

impl Strategy for McfLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let problem = Problem::of(database, topology, self.grouping, seed)?;
        let best = Ending::best(self.search(&problem, topology, self.effort.plan(seed, true)));
        let cost = |places: &[u32]| Ok(mcf::cost(database, topology, places));
        let mut answer = problem.answer(database, self.grouping, self.effort.start, &best.places, cost)?;
        let busiest_seconds = mcf::cost(database, topology, &answer.pe_of);
        answer.notes.push(("busiest_link_seconds".into(), busiest_seconds));
        Ok(answer)
    }
}

impl McfLb {
    /// What comes of every restart, in their order.
    ///
    /// # Errors
    /// As [`Strategy::assign`].
    pub fn endings(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Vec<Ending>, StrategyError> {
        let problem = Problem::of(database, topology, self.grouping, seed)?;
        Ok(self.search(&problem, topology, self.effort.plan(seed, false)))
    }

    fn search(&self, problem: &Problem, topology: &dyn Topology, plan: Plan) -> Vec<Ending> {
        let Problem { commodities, groups, .. } = problem;
        let tries = self.effort.tries(groups.count);
        let routes = Routes::of(topology);
        let seconds = routes.seconds_per_byte();
        // Where there are too many PEs for it, searches go without the first phase.
        let distances = Distances::of(&routes, Metric::Rtt).ok();
        let switches = switches::of(topology, &problem.hosts);
        let all = Aim::PowerThenBusiest(self.norm);
        let make = |places: &[u32]| McfSwaps::new(commodities, &routes, &seconds, all, places);
        problem.search(plan, make, |cost, board, dice| {
            if let Some(distances) = &distances {
                let mut cost = QapSwaps::new(commodities, distances, &board.places);
                swap_until_none_is_better(&mut cost, board, dice, tries);
            }
            cost.restart(&board.places);
            cost.aim(all);
            swap_until_none_is_better(cost, board, dice, tries);
            cost.aim(Aim::BusiestThenPower(self.norm));
            relieve_busiest(cost, board, dice, tries);
            while switches::swap(cost, board, dice, &switches) {
                relieve_busiest(cost, board, dice, tries);
            }
        })
    }
}

/// Swaps tasks that use the busiest link with others while that is better, until none is, or, where there are more such
/// swaps than `tries`, so many in a row were not.
fn relieve_busiest(cost: &mut McfSwaps, board: &mut Board, dice: &mut Dice, tries: usize) {
    let (mut users, mut swaps) = (Vec::new(), Vec::new());
    let mut vain = 0;
    cost.users(cost.busiest_link(), &mut users);
    while !users.is_empty() && vain < tries {
        // Where there are few, each is tried once.
        let is_few = users.len() * board.positions() <= tries;
        if is_few && vain == 0 {
            swaps.clear();
            swaps.extend(users.iter().flat_map(|&task| board.others(task).map(move |at| (task, at))));
            shuffle(dice, &mut swaps);
        }
        let (task, position) = if is_few {
            let Some(swap) = swaps.pop() else { return };
            swap
        } else {
            let task = users[below(dice, users.len() as u64) as usize];
            let Some(position) = board.elsewhere(task, dice) else { return };
            (task, position)
        };
        if board.swap_if_better(cost, task, position) {
            vain = 0;
            cost.users(cost.busiest_link(), &mut users);
        } else {
            vain += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::swap_lb::Start;
    use super::super::swap_lb::tests::orders;
    use super::*;
    use crate::testing::{assign_on, reference};
    use crate::{graph, topology};

    fn grouping() -> Grouping {
        Grouping { by: groups::By::Greedy, equal: false, imbalance: 0.05 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn an_ending_costs_what_it_says_and_nobody_is_lost(
            machine in prop::sample::select(&["torus:4x3", "platform:litvinov-grid", "fattree:2:2:3/4e9:2e9:1e9"][..]),
            spec in prop::sample::select(&["ring:9,bytes=1000", "random:n=12,degree=4,bytes=77", "mesh:3x2"][..]),
            seed in 0..100u64,
        ) {
            let machine = topology::parse(machine).expect("a machine");
            let database = graph::load(spec).expect("a graph").remap(machine.pes() as u32);
            let effort = Effort { restarts: 3, tries: Some(60), start: Start::Random };
            let strategy = McfLb { norm: 6, effort, grouping: grouping() };
            for ending in strategy.endings(&database, &*machine, seed).expect("it answers") {
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
    fn the_answer_is_the_same_on_any_number_of_threads() {
        let database = graph::load("npb-mz:benchmark=SP,class=C,processes=16").expect("SP-MZ").remap(16);
        let answer = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| assign_on("McfLB:restarts=20,tries=50", &database, "platform:litvinov-grid"))
        };
        assert_eq!(answer(1), answer(3));
    }

    #[test]
    fn it_finds_what_brute_force_does() {
        let database = graph::load("random:n=6,degree=3,bytes=1000,seed=4").expect("a graph").remap(6);
        let machine = topology::parse("mesh:3x2").expect("a mesh");
        let costs = orders(6).into_iter().map(|places| mcf::cost(&database, &*machine, &places));
        let least = costs.fold(f64::INFINITY, f64::min);
        let answer = assign_on("McfLB:restarts=30,tries=100", &database, "mesh:3x2").expect("it answers");
        assert_eq!(mcf::cost(&database, &*machine, &answer.pe_of), least);
    }

    #[test]
    fn a_ring_on_a_ring_is_relieved_wholly() {
        let database = graph::load("ring:8,bytes=1000").expect("a ring").remap(8);
        let answer = assign_on("McfLB:restarts=20", &database, "torus:8").expect("it answers");
        let machine = topology::parse("torus:8").expect("a ring");
        // A link carries one message, at the default of 1e9 bytes per second.
        assert_eq!(mcf::cost(&database, &*machine, &answer.pe_of), 1e-6);
        let note = answer.notes.iter().find(|(name, _)| name == "busiest_link_seconds").map(|note| note.1);
        assert!(note.is_some_and(|seconds| (seconds / 1e-6 - 1.0).abs() < 1e-12), "{note:?}");
    }

    #[test]
    fn it_is_as_good_as_the_best_of_the_reference_on_the_tree() {
        let Some(text) = reference("simgrid/spmz_D16_tree.csv") else { return };
        let of = |line: &str| line.split(',').nth(4).and_then(|cost| cost.parse::<f64>().ok());
        let best = text.lines().skip(1).filter_map(of).fold(f64::INFINITY, f64::min);
        let database = graph::load("npb-mz:benchmark=SP,class=D,processes=16").expect("SP-MZ").remap(16);
        let answer = assign_on("McfLB:restarts=50", &database, "platform:litvinov-tree").expect("it answers");
        let machine = topology::parse("platform:litvinov-tree").expect("a platform");
        let cost = mcf::cost(&database, &*machine, &answer.pe_of);
        assert!(cost <= best * (1.0 + 1e-9), "{cost} {best}");
    }
}
