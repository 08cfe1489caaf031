//! The search itself: restarts from mappings, and swaps that make something better.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::super::{answer, hosts};
use crate::cost::commodities::Commodities;
use crate::cost::swaps::{SwapCost, Worth};
use crate::partition::groups::{Grouping, Groups};
use crate::random::{below, generator, shuffle};
use crate::strategy::check;
use crate::{Assignment, Database, StrategyError, Topology};

/// What is random in a search.
pub(crate) type Dice = ChaCha8Rng;

/// Groups, what they send each other, and the PEs they may be on.
pub(crate) struct Problem {
    /// What is placed.
    pub(crate) groups: Groups,
    /// The PEs that take objects.
    available: Vec<u32>,
    /// Those that groups are placed on.
    pub(crate) hosts: Vec<u32>,
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
            swap_places(&mut before, [p, q]);
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
        let hosts = hosts(database, &available, groups.count, grouping.by);
        let given = given(database, &groups, &hosts);
        Ok(Problem { groups, available, hosts, commodities, given })
    }

    /// The answer with the groups on `places`, or on those that were given, if the search began there and that costs less:
    /// because balance moves objects after a search, or what the search made smaller at first is not the cost.
    pub(crate) fn answer(
        self,
        database: &Database,
        grouping: Grouping,
        start: Start,
        places: &[u32],
        cost: impl Fn(&[u32]) -> Result<f64, StrategyError>,
    ) -> Result<Assignment, StrategyError> {
        let Problem { groups, available, given, .. } = self;
        let found = answer(database, &groups, grouping, available.clone(), places);
        let Some(given) = given.filter(|_| start == Start::Given) else { return Ok(found) };
        let given = answer(database, &groups, grouping, available, &given);
        Ok(if cost(&given.pe_of)? < cost(&found.pe_of)? { given } else { found })
    }

    /// What comes of restarts, in their order, or of the best of them: each has a cost of its thread, which `make` makes of a
    /// mapping, and begins with a mapping that `descend` improves.
    pub(crate) fn search<C: SwapCost>(
        &self,
        plan: Plan,
        make: impl Fn(&[u32]) -> C + Sync,
        descend: impl Fn(&mut C, &mut Board, &mut Dice) + Sync,
    ) -> Vec<Ending> {
        let begin = || make(&self.hosts[..self.groups.count]);
        let one = |cost: &mut C, restart: usize| {
            let mut dice = generator(plan.seed, restart as u64);
            let given = self.given.as_ref().filter(|_| plan.start == Start::Given && restart == 0);
            let mut board = Board::shuffled(self.groups.count, &self.hosts, &mut dice);
            if let Some(given) = given {
                board = Board::on(given, &self.hosts);
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

/// The PE of every group, if all its objects are there, no other group is, and it is one of `hosts`.
fn given(database: &Database, groups: &Groups, hosts: &[u32]) -> Option<Vec<u32>> {
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
    let are_hosts = sorted.iter().all(|pe| hosts.binary_search(pe).is_ok());
    (is_one_on_a_pe && are_hosts).then_some(places)
}

/// Puts what is on the one PE on the other.
fn swap_places(places: &mut [u32], [p, q]: [u32; 2]) {
    for place in places {
        *place = if *place == p {
            q
        } else if *place == q {
            p
        } else {
            *place
        };
    }
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

    /// All positions but that of `task`.
    pub(crate) fn others(&self, task: usize) -> impl Iterator<Item = usize> + use<> {
        let here = self.position_of[task] as usize;
        (0..self.positions()).filter(move |&at| at != here)
    }

    /// A position other than that of `task`, every one equally likely; none if there is none.
    pub(crate) fn elsewhere(&self, task: usize, dice: &mut Dice) -> Option<usize> {
        let others = self.positions() as u64 - 1;
        let drawn = (others > 0).then(|| below(dice, others) as usize)?;
        Some(drawn + usize::from(drawn >= self.position_of[task] as usize))
    }

    /// The places of all tasks if what is on each of these pairs of PEs, in turn, changed places. That counts as as many
    /// swaps that are tried.
    pub(crate) fn swapped(&mut self, pairs: &[[u32; 2]]) -> Vec<u32> {
        self.tried += pairs.len() as u64;
        let mut places = self.places.clone();
        for &pair in pairs {
            swap_places(&mut places, pair);
        }
        places
    }

    /// Makes what is on each of these pairs of PEs, in turn, change places.
    pub(crate) fn swap(&mut self, pairs: &[[u32; 2]]) {
        for &[p, q] in pairs {
            let at = |pe: u32| self.pes.iter().position(|&other| other == pe);
            let (Some(here), Some(there)) = (at(p), at(q)) else { continue };
            self.task_at.swap(here, there);
            for (at, pe) in [(here, p), (there, q)] {
                if let Some(task) = self.task_at[at] {
                    (self.position_of[task as usize], self.places[task as usize]) = (at as u32, pe);
                }
            }
            self.trail.push([p, q]);
        }
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

/// Swaps tasks while that is better, until no two are left for which it is: all pairs of positions are gone through in a
/// random order, again and again. Where there are more than `tries` of them, tasks are drawn at random, as
/// [`swap_at_random`] does.
pub(crate) fn swap_until_none_is_better(
    cost: &mut impl SwapCost,
    board: &mut Board,
    dice: &mut Dice,
    tries: usize,
) {
    let positions = board.positions();
    if positions * positions.saturating_sub(1) / 2 > tries {
        return swap_at_random(cost, board, dice, tries);
    }
    let pairs = (0..positions).flat_map(|a| (0..a).map(move |b| [a, b]));
    let mut pairs: Vec<[usize; 2]> = pairs.collect();
    shuffle(dice, &mut pairs);
    let mut vain = 0;
    for [a, b] in pairs.iter().copied().cycle() {
        if vain == pairs.len() {
            return;
        }
        let task = |at: usize| board.task_at[at].map(|task| task as usize);
        let swap = task(a).map(|task| (task, b)).or_else(|| task(b).map(|task| (task, a)));
        let is_better = swap.is_some_and(|(task, position)| board.swap_if_better(cost, task, position));
        vain = if is_better { 0 } else { vain + 1 };
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
