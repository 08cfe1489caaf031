//! `CommAwareRefineLB`: PEs above the limit give objects to PEs these talk to.
//!
//! Charm++'s strategy of that name (H. Menon; removed there in 2019). The heaviest PE above the limit gives
//! an object to the PE, among those that remain within the limit, that it exchanges most bytes with, else
//! to the one with the most room. Charm++ draws the object at random; here it is the one that gains most:
//! bytes exchanged with the PE it goes to less bytes exchanged with the one it leaves, the heaviest among
//! equals. So the objects on the border of what a PE has go first, and there is nothing to draw. Where the
//! limit cannot be kept, the lowest one that can is sought (`limit.rs`).

use std::cmp::Reverse;

use super::limit::lowest;
use super::load::{Pes, Work, order};
use super::traffic::{PeVolumes, Rule, Traffic, give_away};
use crate::cost::LoadBound;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `CommAwareRefineLB` for the registry.
pub const NAMED: Named = Named {
    name: "CommAwareRefineLB",
    aliases: &[],
    help: "Moves objects from PEs above the limit to the PEs they exchange most bytes with, where these \
           remain below it: keeps what talks together better than RefineLB, with more migrations.",
    params: &[Param::imbalance("0.02")],
    needs_communication: true,
    make: |params: &mut Params| Ok(Box::new(CommAwareRefine { imbalance: params.take_imbalance()? })),
};

/// The strategy that relieves the PEs above the limit of the objects that talk to others.
#[derive(Clone, Copy, Debug)]
pub struct CommAwareRefine {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for CommAwareRefine {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        let (placement, _) = work.settle();
        Ok(Assignment::new(relieve(database, &work, placement, self.imbalance)))
    }
}

/// Moves objects off the PEs that are above the limit when object `i` is on `placement[i]`, and gives the
/// PE of each object. O((n + E) log n) for each limit that is tried.
pub(crate) fn relieve(database: &Database, work: &Work, placement: Vec<u32>, imbalance: f64) -> Vec<u32> {
    let limit_seconds = (1.0 + imbalance) * work.average_seconds();
    let seconds = work.seconds_at(&placement);
    let is_heavy = |limit_seconds: f64| {
        let seconds = &seconds;
        move |&&pe: &&u32| seconds[pe as usize] > limit_seconds
    };
    if !work.available.iter().any(|pe| is_heavy(limit_seconds)(&pe)) {
        return placement;
    }
    let traffic = Traffic::of(database);
    lowest(limit_seconds, LoadBound::of(database), |limit_seconds| {
        let (heavy, light): (Vec<u32>, Vec<u32>) = work.available.iter().partition(is_heavy(limit_seconds));
        let mut state = State {
            work,
            traffic: &traffic,
            limit_seconds,
            placement: placement.clone(),
            pes: Pes::new(database, seconds.clone(), &light),
            volumes: PeVolumes::new(database.pes.len()),
        };
        give_away(&mut state, &traffic, &heavy, &work.movable, limit_seconds);
        (state.placement, state.pes.max_seconds(&work.available))
    })
}

struct State<'a> {
    work: &'a Work<'a>,
    traffic: &'a Traffic,
    limit_seconds: f64,
    placement: Vec<u32>,
    /// Seconds of each PE; those below the limit are open.
    pes: Pes<'a>,
    volumes: PeVolumes,
}

impl Rule for State<'_> {
    /// Bytes gained, then the load.
    type Score = (i128, u64);

    fn best(&mut self, object: u32) -> Option<(Self::Score, u32)> {
        // An object without load is no relief.
        let load = order(self.work.load_seconds(object));
        if load == 0 {
            return None;
        }
        self.volumes.fill(self.traffic, object, &self.placement);
        let donor = self.placement[object as usize];
        let roomiest = self.pes.roomiest(self.limit_seconds);
        let with = |pe: u32| self.pes.seconds[pe as usize] + self.work.seconds(object, pe);
        let takes = |&pe: &u32| pe != donor && self.work.is_available(pe) && with(pe) <= self.limit_seconds;
        let bytes = |pe: u32| self.volumes.with(pe).bytes;
        let rank = |&pe: &u32| (Reverse(bytes(pe)), order(with(pe)), pe);
        let receiver = self.volumes.pes.iter().copied().chain(roomiest).filter(takes).min_by_key(rank)?;
        Some(((i128::from(bytes(receiver)) - i128::from(bytes(donor)), load), receiver))
    }

    fn apply(&mut self, object: u32, receiver: u32) {
        let donor = self.placement[object as usize];
        let left = self.pes.seconds[donor as usize] - self.work.seconds(object, donor);
        self.pes.seconds[donor as usize] = left.max(0.0);
        self.pes.add(receiver, self.work.seconds(object, receiver));
        self.placement[object as usize] = receiver;
    }

    fn seconds(&self, pe: u32) -> f64 {
        self.pes.seconds[pe as usize]
    }

    fn placement(&self) -> &[u32] {
        &self.placement
    }

    fn open(&mut self, pe: u32) {
        self.pes.open(pe);
    }
}

#[cfg(test)]
mod tests {
    use crate::database::{Database, Edge, End};
    use crate::testing::{assign, database};

    #[track_caller]
    fn check(
        pes: usize,
        objects: &[(f64, u32)],
        edges: &[(u32, u32, u64)],
        change: impl FnOnce(&mut Database),
        expected: &[u32],
    ) {
        let mut database = database(pes, objects);
        let edge = |&(a, b, bytes)| Edge { from: End::Object(a), to: End::Object(b), messages: 1, bytes };
        database.edges = edges.iter().map(edge).collect();
        change(&mut database);
        let answer = assign("CommAwareRefineLB:imbalance=0.1", &database).map(|answer| answer.pe_of);
        assert_eq!(answer, Ok(expected.to_vec()), "{objects:?} {edges:?}");
    }

    const SIX: [(f64, u32); 6] = [(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 1), (1.0, 2)];

    #[test]
    fn an_object_goes_to_the_pe_it_talks_to() {
        check(3, &SIX, &[(0, 5, 9), (1, 4, 8)], |_| (), &[2, 1, 0, 0, 1, 2]);
        // Volumes beyond 32 bits count in full.
        check(3, &SIX, &[(0, 5, (1 << 32) + 1), (0, 4, 1 << 32), (1, 4, 2)], |_| (), &[2, 1, 0, 0, 1, 2]);
    }

    #[test]
    fn what_talks_to_its_own_pe_stays() {
        check(3, &SIX, &[(0, 1, 9), (0, 2, 9), (1, 5, 5), (3, 2, 1)], |_| (), &[0, 2, 0, 1, 1, 2]);
    }

    #[test]
    fn a_pe_that_is_full_takes_nothing() {
        let full = [(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (2.0, 1), (0.0, 2)];
        check(3, &full, &[(0, 4, 9), (1, 4, 9)], |_| (), &[2, 2, 0, 0, 1, 2]);
    }

    #[test]
    fn what_cannot_move_attracts_and_stays() {
        let pin = |d: &mut Database| d.objects[0].migratable = false;
        check(3, &SIX, &[(0, 5, 9), (3, 4, 8), (2, 4, 7)], pin, &[0, 2, 0, 1, 1, 2]);
        let lose = |d: &mut Database| d.pes[2].available = false;
        check(3, &SIX, &[(0, 5, 9)], lose, &[1, 0, 0, 0, 1, 1]);
    }
}
