//! The search itself: restarts from mappings, and swaps that make something better.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::cost::commodities::Commodities;
use crate::cost::swaps::{SwapCost, Worth};
use crate::partition::groups::{Grouping, Groups};
use crate::random::{below, generator, shuffle};
use crate::strategy::check;
use crate::{Database, StrategyError, Topology};

/// What is random in a search.
pub(crate) type Dice = ChaCha8Rng;

/// Groups, what they send each other, and the PEs they may be on.
pub(crate) struct Problem {
    /// What is placed.
    pub(crate) groups: Groups,
    /// The PEs that take groups.
    pub(crate) available: Vec<u32>,
    /// What groups send each other and what stays.
    pub(crate) commodities: Commodities,
    /// The PE of every group as the database has it; none if a group has objects on several, or two are on one.
    given: Option<Vec<u32>>,
}

/// How often a search is begun, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) restarts: usize,
    pub(crate) start: Start,
    pub(crate) seed: u64,
    /// Whether only the best end is wanted.
    pub(crate) only_best: bool,
}

/// Where the first search begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Where groups are, if they are one on a PE, so that no answer costs more; at random otherwise.
    Given,
    /// At random, like the others.
    Random,
}

impl FromStr for Start {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "given" => Ok(Start::Given),
            "random" => Ok(Start::Random),
            _ => Err("the first search begins at `given` or at `random`"),
        }
    }
}

/// Restarts of which all ends are kept before the best is chosen.
const BATCH: usize = 1 << 8;

/// Where a search ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// What was made smaller, and what decides between equals.
    pub worth: Worth,
    /// The PE of every group, or, where there are no more objects than PEs, of every movable object.
    pub places: Vec<u32>,
    /// The PEs whose tasks changed places, of every swap that was made, from the start on.
    pub trail: Vec<[u32; 2]>,
    /// Swaps that were tried.
    pub tried: u64,
}

impl Ending {
    /// The best, of equals the first.
    ///
    /// # Panics
    /// Without any.
    pub(crate) fn best(endings: Vec<Ending>) -> Ending {
        let better = |best: Ending, next: Ending| if next.worth.is_better(best.worth) { next } else { best };
        endings.into_iter().reduce(better).expect("a search has a restart")
    }

    /// The places of all mappings of the search, its start first, as the swaps made them.
    pub fn mappings(&self) -> Vec<Vec<u32>> {
        let mut mappings = vec![self.places.clone()];
        for &[p, q] in self.trail.iter().rev() {
            let mut before = mappings[mappings.len() - 1].clone();
            for place in &mut before {
                *place = if *place == p {
                    q
                } else if *place == q {
                    p
                } else {
                    *place
                };
            }
            mappings.push(before);
        }
        mappings.reverse();
        mappings
    }
}

impl Problem {
    /// The groups of a database for the PEs of a machine.
    ///
    /// # Errors
    /// When the two do not belong together, or METIS fails.
    pub(crate) fn of(
        database: &Database,
        topology: &dyn Topology,
        grouping: Grouping,
        seed: u64,
    ) -> Result<Self, StrategyError> {
        let available = check(database, topology)?;
        let groups = Groups::of(database, &available, grouping, seed)?;
        let commodities = Commodities::of_groups(database, &groups);
        let given = given(database, &groups, &available);
        Ok(Problem { groups, available, commodities, given })
    }

    /// What comes of restarts, in their order, or of the best of them: each has a cost of its thread, which `make` makes of a
    /// mapping, and begins with a mapping that `descend` improves.
    pub(crate) fn search<C: SwapCost>(
        &self,
        plan: Plan,
        make: impl Fn(&[u32]) -> C + Sync,
        descend: impl Fn(&mut C, &mut Board, &mut Dice) + Sync,
    ) -> Vec<Ending> {
        let begin = || make(&self.available[..self.groups.count]);
        let one = |cost: &mut C, restart: usize| {
            let mut dice = generator(plan.seed, restart as u64);
            let given = self.given.as_ref().filter(|_| plan.start == Start::Given && restart == 0);
            let mut board = Board::shuffled(self.groups.count, &self.available, &mut dice);
            if let Some(given) = given {
                board = Board::on(given, &self.available);
            }
            cost.restart(&board.places);
            descend(cost, &mut board, &mut dice);
            let Board { places, trail, tried, .. } = board;
            Ending { worth: cost.worth(), places, trail, tried }
        };
        let mut endings = Vec::new();
        for first in (0..plan.restarts).step_by(BATCH) {
            let batch = first..plan.restarts.min(first + BATCH);
            endings.par_extend(batch.into_par_iter().map_init(begin, one));
            if plan.only_best {
                // In order, as rounding makes it matter who is compared with whom first.
                endings = vec![Ending::best(endings)];
            }
        }
        endings
    }
}

/// The PE of every group, if all its objects are there, no other group is, and it is available.
fn given(database: &Database, groups: &Groups, available: &[u32]) -> Option<Vec<u32>> {
    let mut pe_of = vec![None; groups.count];
    for (group, object) in groups.group_of.iter().zip(&database.objects) {
        let Some(group) = group else { continue };
        if *pe_of[*group as usize].get_or_insert(object.pe) != object.pe {
            return None;
        }
    }
    let places: Vec<u32> = pe_of.into_iter().collect::<Option<_>>()?;
    let mut sorted = places.clone();
    sorted.sort_unstable();
    let is_one_on_a_pe = sorted.windows(2).all(|pair| pair[0] < pair[1]);
    let are_available = sorted.iter().all(|pe| available.binary_search(pe).is_ok());
    (is_one_on_a_pe && are_available).then_some(places)
}

/// Tasks on PEs, at most one on each.
pub(crate) struct Board {
    /// The PE of every task.
    pub(crate) places: Vec<u32>,
    /// The PEs, in the order of their positions.
    pes: Vec<u32>,
    /// The task at every position.
    task_at: Vec<Option<u32>>,
    /// The position of every task.
    position_of: Vec<u32>,
    /// The PEs whose tasks changed places, in turn.
    trail: Vec<[u32; 2]>,
    tried: u64,
}

impl Board {
    /// So many tasks on PEs drawn at random.
    fn shuffled(tasks: usize, pes: &[u32], dice: &mut Dice) -> Self {
        let mut pes = pes.to_vec();
        shuffle(dice, &mut pes);
        Board::of(tasks, pes)
    }

    /// Tasks on those PEs, of all these.
    fn on(places: &[u32], pes: &[u32]) -> Self {
        let mut taken = places.to_vec();
        taken.sort_unstable();
        let free = pes.iter().filter(|pe| taken.binary_search(pe).is_err());
        Board::of(places.len(), places.iter().chain(free).copied().collect())
    }

    /// So many tasks on the first PEs.
    fn of(tasks: usize, pes: Vec<u32>) -> Self {
        Board {
            places: pes[..tasks].to_vec(),
            task_at: (0..pes.len() as u32).map(|at| Some(at).filter(|&at| (at as usize) < tasks)).collect(),
            position_of: (0..tasks as u32).collect(),
            pes,
            trail: Vec::new(),
            tried: 0,
        }
    }

    /// How many positions there are.
    pub(crate) fn positions(&self) -> usize {
        self.pes.len()
    }

    /// A position other than that of `task`, every one equally likely; none if there is none.
    pub(crate) fn elsewhere(&self, task: usize, dice: &mut Dice) -> Option<usize> {
        let others = self.positions() as u64 - 1;
        let drawn = (others > 0).then(|| below(dice, others) as usize)?;
        Some(drawn + usize::from(drawn >= self.position_of[task] as usize))
    }

    /// Makes `task` and what is at a position change places if that is better, and says whether it is.
    pub(crate) fn swap_if_better(&mut self, cost: &mut impl SwapCost, task: usize, position: usize) -> bool {
        self.tried += 1;
        let here = self.position_of[task] as usize;
        let tasks = [Some(task), self.task_at[position].map(|other| other as usize)];
        let pes = [self.pes[here], self.pes[position]];
        let Some(then) = cost.try_swap(tasks, pes) else { return false };
        cost.keep(tasks, pes, then);
        self.task_at.swap(here, position);
        for (task, (at, pe)) in tasks.into_iter().zip([(position, pes[1]), (here, pes[0])]) {
            if let Some(task) = task {
                (self.position_of[task], self.places[task]) = (at as u32, pe);
            }
        }
        self.trail.push(pes);
        true
    }
}

/// Swaps tasks drawn at random while that is better, until so many `tries` in a row were not.
pub(crate) fn swap_at_random(cost: &mut impl SwapCost, board: &mut Board, dice: &mut Dice, tries: usize) {
    let tasks = board.places.len() as u64;
    let mut vain = 0;
    while tasks > 0 && vain < tries {
        let task = below(dice, tasks) as usize;
        let Some(position) = board.elsewhere(task, dice) else { return };
        vain = if board.swap_if_better(cost, task, position) { 0 } else { vain + 1 };
    }
}
