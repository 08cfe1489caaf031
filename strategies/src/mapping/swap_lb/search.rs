//! The search: restarts from mappings, and swaps that decrease a cost.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use equipoise_model::random::{below, generator, shuffle};
use equipoise_model::{Assignment, Database, Topology};

use super::super::{answer, hosts};
use crate::StrategyError;
use crate::cost::commodities::Commodities;
use crate::cost::swaps::{SwapCost, Worth};
use crate::partition::groups::{Grouping, Groups};
use crate::strategy::check;

/// The random number generator of a search.
pub(crate) type Rng = ChaCha8Rng;

/// Groups, the bytes between them, and the PEs on which they may be placed.
pub(crate) struct Problem {
    /// The groups to place.
    pub(crate) groups: Groups,
    /// The available PEs.
    available: Vec<u32>,
    /// The PEs on which groups are placed.
    pub(crate) hosts: Vec<u32>,
    /// The bytes that groups send to each other and to anchors.
    pub(crate) commodities: Commodities,
    /// The present PE of every group; `None` if a group has objects on several PEs, or two groups share a PE.
    present: Option<Vec<u32>>,
}

/// The number of searches and their starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) restarts: usize,
    pub(crate) start: Start,
    pub(crate) seed: u64,
    /// Whether only the best result is returned.
    pub(crate) only_best: bool,
}

/// The start of the first search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The present placement if it has one group per PE, so that the result costs no more; else random.
    Given,
    /// Random, like the other searches.
    Random,
}

impl FromStr for Start {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "given" => Ok(Start::Given),
            "random" => Ok(Start::Random),
            _ => Err("expected `given` or `random`"),
        }
    }
}

/// The number of restarts whose results are stored before the best is chosen.
const BATCH: usize = 1 << 8;

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The cost, and a second cost that breaks ties.
    pub worth: Worth,
    /// The PE of every group, or of every migratable object if there are at most as many objects as PEs.
    pub places: Vec<u32>,
    /// The two PEs of every swap that was made, in order.
    pub trail: Vec<[u32; 2]>,
    /// The number of swaps that were tried.
    pub tried: u64,
}

impl Ending {
    /// The best result; ties go to the first.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn best(endings: Vec<Ending>) -> Ending {
        let better = |best: Ending, next: Ending| if next.worth.is_better(best.worth) { next } else { best };
        endings.into_iter().reduce(better).expect("a search has a restart")
    }

    /// The places of all mappings of the search: the start, then the mapping after each swap.
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
    /// If the database is not for this machine, or METIS fails.
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
        let present = present(database, &groups, &hosts);
        Ok(Problem { groups, available, hosts, commodities, present })
    }

    /// The assignment with the groups on `places`, or the present placement if the search began there and the present
    /// placement costs less. That is possible because balancing moves objects after a search, and because a phase may
    /// minimise another cost.
    pub(crate) fn answer(
        self,
        database: &Database,
        topology: &dyn Topology,
        grouping: Grouping,
        start: Start,
        places: &[u32],
        cost: impl Fn(&[u32]) -> Result<f64, StrategyError>,
    ) -> Result<Assignment, StrategyError> {
        let Problem { groups, available, present, .. } = self;
        let found = answer(database, topology, &groups, grouping, available.clone(), places);
        let Some(present) = present.filter(|_| start == Start::Given) else { return Ok(found) };
        let present = answer(database, topology, &groups, grouping, available, &present);
        Ok(if cost(&present.pe_of)? < cost(&found.pe_of)? { present } else { found })
    }

    /// The results of all restarts in order, or only the best of them. `make` makes the cost of a mapping, once per thread.
    /// `descend` improves the mapping of a restart.
    pub(crate) fn search<C: SwapCost>(
        &self,
        plan: Plan,
        make: impl Fn(&[u32]) -> C + Sync,
        descend: impl Fn(&mut C, &mut Board, &mut Rng) + Sync,
    ) -> Vec<Ending> {
        let begin = || make(&self.hosts[..self.groups.count]);
        let run = |cost: &mut C, restart: usize| {
            let mut rng = generator(plan.seed, restart as u64);
            let present = self.present.as_ref().filter(|_| plan.start == Start::Given && restart == 0);
            let mut board = Board::shuffled(self.groups.count, &self.hosts, &mut rng);
            if let Some(present) = present {
                board = Board::on(present, &self.hosts);
            }
            cost.restart(&board.places);
            descend(cost, &mut board, &mut rng);
            let Board { places, trail, tried, .. } = board;
            Ending { worth: cost.worth(), places, trail, tried }
        };
        let mut endings = Vec::new();
        for first in (0..plan.restarts).step_by(BATCH) {
            let batch = first..plan.restarts.min(first + BATCH);
            endings.par_extend(batch.into_par_iter().map_init(begin, run));
            if plan.only_best {
                // Compared in order, because with rounding the best depends on the order of comparisons.
                endings = vec![Ending::best(endings)];
            }
        }
        endings
    }
}

/// The present PE of every group, if all its objects are there, no other group is, and it is one of `hosts`.
fn present(database: &Database, groups: &Groups, hosts: &[u32]) -> Option<Vec<u32>> {
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

/// Moves tasks on either PE to the other.
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
    /// By position: the PE.
    pes: Vec<u32>,
    /// By position: the task.
    task_at: Vec<Option<u32>>,
    /// By task: its position.
    position_of: Vec<u32>,
    /// The two PEs of every swap that was made, in order.
    trail: Vec<[u32; 2]>,
    /// The number of swaps that were tried.
    tried: u64,
}

impl Board {
    /// A board with `tasks` tasks on random PEs.
    fn shuffled(tasks: usize, pes: &[u32], rng: &mut Rng) -> Self {
        let mut pes = pes.to_vec();
        shuffle(rng, &mut pes);
        Board::of(tasks, pes)
    }

    /// A board of `pes` with the tasks on `places`.
    fn on(places: &[u32], pes: &[u32]) -> Self {
        let mut taken = places.to_vec();
        taken.sort_unstable();
        let free = pes.iter().filter(|pe| taken.binary_search(pe).is_err());
        Board::of(places.len(), places.iter().chain(free).copied().collect())
    }

    /// A board with `tasks` tasks on the first PEs.
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

    /// The number of positions.
    pub(crate) fn positions(&self) -> usize {
        self.pes.len()
    }

    /// All positions but that of `task`.
    pub(crate) fn others(&self, task: usize) -> impl Iterator<Item = usize> + use<> {
        let here = self.position_of[task] as usize;
        (0..self.positions()).filter(move |&at| at != here)
    }

    /// A random position other than that of `task`; `None` if there is no other.
    pub(crate) fn elsewhere(&self, task: usize, rng: &mut Rng) -> Option<usize> {
        let others = self.positions() as u64 - 1;
        let sample = (others > 0).then(|| below(rng, others) as usize)?;
        Some(sample + usize::from(sample >= self.position_of[task] as usize))
    }

    /// The places of all tasks after swaps of these pairs of PEs in turn. Counts each pair as a swap that is tried.
    pub(crate) fn swapped(&mut self, pairs: &[[u32; 2]]) -> Vec<u32> {
        self.tried += pairs.len() as u64;
        let mut places = self.places.clone();
        for &pair in pairs {
            swap_places(&mut places, pair);
        }
        places
    }

    /// Swaps the tasks on each of these pairs of PEs in turn.
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

    /// Swaps `task` with the task at a position, or moves `task` to a free position, if that is an improvement; returns
    /// whether it is.
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

/// Swaps tasks until no swap of two tasks is an improvement: tries all pairs of positions in a random order,
/// repeatedly. If there are more than `tries` pairs, works like [`swap_at_random`].
pub(crate) fn swap_to_local_minimum(
    cost: &mut impl SwapCost,
    board: &mut Board,
    rng: &mut Rng,
    tries: usize,
) {
    let positions = board.positions();
    if positions * positions.saturating_sub(1) / 2 > tries {
        return swap_at_random(cost, board, rng, tries);
    }
    let pairs = (0..positions).flat_map(|a| (0..a).map(move |b| [a, b]));
    let mut pairs: Vec<[usize; 2]> = pairs.collect();
    shuffle(rng, &mut pairs);
    let mut failures = 0;
    for [a, b] in pairs.iter().copied().cycle() {
        if failures == pairs.len() {
            return;
        }
        let task = |at: usize| board.task_at[at].map(|task| task as usize);
        let swap = task(a).map(|task| (task, b)).or_else(|| task(b).map(|task| (task, a)));
        let is_better = swap.is_some_and(|(task, position)| board.swap_if_better(cost, task, position));
        failures = if is_better { 0 } else { failures + 1 };
    }
}

/// Swaps random tasks if that is an improvement. Ends after `tries` swaps in a row without improvement.
pub(crate) fn swap_at_random(cost: &mut impl SwapCost, board: &mut Board, rng: &mut Rng, tries: usize) {
    let tasks = board.places.len() as u64;
    let mut failures = 0;
    while tasks > 0 && failures < tries {
        let task = below(rng, tasks) as usize;
        let Some(position) = board.elsewhere(task, rng) else { return };
        failures = if board.swap_if_better(cost, task, position) { 0 } else { failures + 1 };
    }
}
