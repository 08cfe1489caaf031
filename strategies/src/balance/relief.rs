//! PEs above the limit give objects to the PEs that these objects communicate with.
//!
//! This is `CommAwareRefineLB`, and the last step of strategies that treat unequal PEs as equal. The heaviest PE above
//! the limit gives an object to the PE that exchanges most bytes with the object among the PEs that remain within the
//! limit, otherwise to the PE with the most room. Objects with the largest gain move first: bytes exchanged with the
//! receiver minus bytes exchanged with the donor, the heaviest object among equals. If the limit cannot be kept, the
//! lowest limit that can is used (`limit.rs`).

use std::cmp::Reverse;

use equipoise_model::Database;

use super::limit::{at_lowest_limit, first_limit_seconds};
use super::load::{Pes, Work, order};
use super::traffic::{PeVolumes, Rule, Traffic, give_away};

/// Moves objects off the PEs above the limit, starting with object `i` on PE `placement[i]`. Returns the PE of each
/// object. O((n + E) log n) for each limit tried.
pub(crate) fn relieve(database: &Database, work: &Work, placement: Vec<u32>, imbalance: f64) -> Vec<u32> {
    let first = first_limit_seconds(work, imbalance);
    let seconds = work.seconds_at(&placement);
    let max_seconds = work.max_seconds(&seconds);
    if max_seconds <= first {
        return placement;
    }
    let traffic = Traffic::of(database);
    at_lowest_limit((placement.clone(), max_seconds), first, first, |limit_seconds| {
        let is_heavy = |&&pe: &&u32| seconds[pe as usize] > limit_seconds;
        let (heavy, light): (Vec<u32>, Vec<u32>) = work.available.iter().partition(is_heavy);
        let mut state = State {
            work,
            traffic: &traffic,
            limit_seconds,
            placement: placement.clone(),
            pes: Pes::new(database, seconds.clone(), &light),
            volumes: PeVolumes::new(database.pes.len()),
        };
        give_away(&mut state, &traffic, &heavy, &work.movable, limit_seconds);
        let max_seconds = work.max_seconds(&state.pes.seconds);
        (state.placement, max_seconds)
    })
    .0
}

struct State<'a> {
    work: &'a Work<'a>,
    traffic: &'a Traffic,
    limit_seconds: f64,
    placement: Vec<u32>,
    /// Seconds of each PE; PEs within the limit are open.
    pes: Pes<'a>,
    volumes: PeVolumes,
}

impl<'a> Rule<'a> for State<'a> {
    /// Bytes gained, then the load.
    type Score = (i128, u64);

    fn best(&mut self, object: u32) -> Option<(Self::Score, u32)> {
        // Moving an object without load does not relieve the donor.
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

    fn placement(&self) -> &[u32] {
        &self.placement
    }

    fn pes(&mut self) -> &mut Pes<'a> {
        &mut self.pes
    }
}
