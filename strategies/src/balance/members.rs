//! What the strategies without a centre share: the objects of a PE during the protocol, and all members in one place.

use std::sync::Arc;

use rayon::prelude::*;

use equipoise_model::assignment::Note;

use super::load::{Work, order};
use crate::decentral::{Decentral, Item, Letter, Letters, Member, Own, Sends, Totals};

/// The objects that a PE has at a moment of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Pile {
    pub(super) rank: u32,
    pub(super) speed: f64,
    fixed_seconds: f64,
    /// Lightest first, lowest key first among equals.
    pub(super) items: Vec<Item>,
    pub(super) seconds: f64,
}

impl Pile {
    /// The objects of a PE at the begin. Objects without load stay.
    pub(super) fn new(own: &Own) -> Pile {
        let items = own.objects.iter().copied().filter(|item| item.load_seconds > 0.0).collect();
        let Own { rank, speed, fixed_seconds, .. } = *own;
        let mut pile = Pile { rank, speed, fixed_seconds, items, seconds: 0.0 };
        pile.sum_up();
        pile
    }

    /// The seconds that an object takes here.
    pub(super) fn seconds_of(&self, item: &Item) -> f64 {
        item.load_seconds / self.speed
    }

    /// Sorts the objects and computes their seconds anew, which removes accumulated rounding errors.
    pub(super) fn sum_up(&mut self) {
        self.items.sort_unstable_by_key(|item| (order(item.load_seconds), item.key));
        let sum: f64 = self.items.iter().map(|item| self.seconds_of(item)).sum();
        self.seconds = self.fixed_seconds + sum;
    }

    /// Removes objects.
    pub(super) fn remove(&mut self, mut keys: Vec<u64>) {
        keys.sort_unstable();
        self.items.retain(|item| keys.binary_search(&item.key).is_err());
    }

    /// Tells the PEs that have objects of this pile in memory. Returns the number of these objects, and their bytes.
    pub(super) fn take(&self, sends: &mut Sends) -> (u32, u64) {
        let foreign = self.items.iter().filter(|item| item.home != self.rank);
        let bytes = foreign.clone().map(|item| item.bytes).sum();
        let mut taken: Vec<(u32, u64)> = foreign.map(|item| (item.home, item.key)).collect();
        taken.sort_unstable();
        for from_one in taken.chunk_by(|a, b| a.0 == b.0) {
            let keys = from_one.iter().map(|of| of.1).collect();
            sends.push((vec![from_one[0].0], Arc::new(Letter::Taken(keys))));
        }
        (taken.len() as u32, bytes)
    }
}

/// The objects that other PEs have taken, and their ranks.
pub(super) fn taken(received: &[(u32, Arc<Letter>)]) -> Vec<(u64, u32)> {
    let from_one = |(sender, letter): &(u32, Arc<Letter>)| match &**letter {
        Letter::Taken(keys) => keys.iter().map(|&key| (key, *sender)).collect(),
        _ => Vec::new(),
    };
    received.iter().flat_map(from_one).collect()
}

/// The placement that all available PEs of `work` decide together from `placement`, and notes.
pub(super) fn decide(
    strategy: &dyn Decentral,
    work: &Work,
    mut placement: Vec<u32>,
    seed: u64,
) -> (Vec<u32>, Vec<Note>) {
    let ranks = work.available.len();
    let mut rank_of = rustc_hash::FxHashMap::default();
    rank_of.extend(work.available.iter().copied().zip(0u32..));
    let mut objects = vec![Vec::new(); ranks];
    for &object in &work.movable {
        if let Some(&home) = rank_of.get(&placement[object as usize]) {
            let id = work.database().objects[object as usize].id;
            let load_seconds = work.load_seconds(object);
            // Bytes are for the cost of migrations, which this place does not compute.
            objects[home as usize].push(Item { key: object.into(), id, home, load_seconds, bytes: 0 });
        }
    }
    let step = work.database().step;
    let own = |(rank, (objects, &pe)): (usize, (Vec<Item>, &u32))| Own {
        rank: rank as u32,
        ranks: ranks as u32,
        seed,
        step,
        speed: work.speed(pe),
        fixed_seconds: work.fixed_seconds[pe as usize],
        objects,
    };
    let all = objects.into_par_iter().zip(&work.available).enumerate();
    let mut members: Vec<Box<dyn Member>> = all.map(|of| strategy.member(own(of))).collect();
    let mut inboxes = vec![Letters::new(); ranks];
    let mut totals = Totals::default();
    loop {
        let round = |(member, received): (&mut Box<dyn Member>, &mut Letters)| {
            let mut sends = Sends::new();
            let added = member.round(&totals, received, &mut sends);
            received.clear();
            (added, sends)
        };
        let done: Vec<(Option<Totals>, Sends)> =
            members.par_iter_mut().zip(&mut inboxes).map(round).collect();
        totals = Totals::default();
        let mut is_over = true;
        for (sender, (added, sends)) in (0..).zip(done) {
            is_over &= added.is_none();
            added.iter().for_each(|added| totals.add(added));
            for (receivers, letter) in sends {
                receivers.iter().for_each(|&to| inboxes[to as usize].push((sender, Arc::clone(&letter))));
            }
        }
        if is_over {
            break;
        }
    }
    let mut notes = Vec::new();
    for member in &mut members {
        let outcome = member.outcome();
        for (key, rank) in outcome.leaving {
            placement[key as usize] = work.available[rank as usize];
        }
        notes = outcome.notes;
    }
    (placement, notes)
}
