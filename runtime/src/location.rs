//! The location of elements.
//!
//! Where PEs share memory, a dense table holds `PE << 32 | slot` per rank. Only the PE that has (or will receive) the
//! element writes its entry; every sender reads it. After a stale read the message reaches a PE that the
//! element has left; that PE reads the table again and forwards the message.
//!
//! Where PEs do not share memory, or the array is sparse, every PE has a [`Directory`]. Each element
//! has a *home*, the PE where it was (or would have been) created. Every migration of an element increments
//! its *epoch*. A directory entry is a pair (PE, epoch): the n-th migration of the element was to this PE. An
//! entry may be outdated, but is never false. Two rules ensure that no message is lost or forwarded forever:
//!
//! 1. A message carries the epoch that its sender used, and is forwarded only with a higher epoch. So a message is
//!    forwarded at most as often as its element migrates.
//! 2. A PE keeps a message for an element that it does not have if it has no entry with a higher epoch: then
//!    the element is migrating to this PE, or this is its home and the element does not exist yet.
//!
//! When an element leaves, its PE stores the next PE. When it arrives, the new PE notifies the home. When a PE
//! forwards a message, it notifies the sender.

use equipoise_model::random::splitmix;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// The slot number of an element that is migrating to the PE.
pub(crate) const IN_TRANSIT: u32 = u32::MAX;

/// The slot number of an element that does not exist; the PE is the home of the element.
pub(crate) const NO_ELEMENT: u32 = u32::MAX - 1;

/// In the slot field of a message: the message resumes an element that called `at_sync` without a load balancer.
pub(crate) const AFTER_SYNC: u32 = u32::MAX - 2;

/// In the slot field of a message: the message is dropped, because it was [`AFTER_SYNC`] and its element has ended.
pub(crate) const DROPPED: u32 = u32::MAX - 3;

/// Whether an element is in a slot.
#[inline(always)]
pub(crate) fn is_taken(slot: u32) -> bool {
    slot < DROPPED
}

/// A place: PE and slot in one word.
#[inline(always)]
pub(crate) fn place(pe: u32, slot: u32) -> u64 {
    u64::from(pe) << 32 | u64::from(slot)
}

/// The PE of a place.
#[inline(always)]
pub(crate) fn pe_of(place: u64) -> u32 {
    (place >> 32) as u32
}

/// The PE on which each element is created, by rank; also its home.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Placement {
    /// Contiguous blocks of equal size, in rank order.
    Blocks,
    /// Ranks modulo the number of PEs.
    RoundRobin,
    /// A hash of the rank and this seed.
    Random(u64),
    /// The PE of each rank: rank r takes entry r modulo the length of the list.
    Listed(std::sync::Arc<[u32]>),
    /// Rank r is on PE r times this number.
    Every(u32),
}

impl Placement {
    /// The PE of `rank` among `count` ranks.
    #[inline]
    pub(crate) fn pe(&self, rank: u32, count: u32, pes: u32) -> u32 {
        match self {
            Placement::Blocks => (u64::from(rank) * u64::from(pes) / u64::from(count.max(1))) as u32,
            Placement::RoundRobin => rank % pes,
            Placement::Random(seed) => (splitmix(seed ^ u64::from(rank)) % u64::from(pes)) as u32,
            Placement::Listed(list) => list[rank as usize % list.len()],
            Placement::Every(pes) => rank * pes,
        }
    }

    /// Calls `make` for the ranks of one PE, in order. Where the ranks do not follow from the PE, the ranks of all
    /// PEs are computed once; otherwise thousands of simulated PEs would each scan all ranks.
    pub(crate) fn each(
        &self,
        pe: u32,
        count: u32,
        pes: u32,
        residents: &OnceLock<Residents>,
        mut make: impl FnMut(u32),
    ) {
        match self {
            Placement::Blocks => {
                let first = |pe: u32| (u64::from(pe) * u64::from(count)).div_ceil(u64::from(pes)) as u32;
                (first(pe)..first(pe + 1)).for_each(make);
            }
            Placement::RoundRobin => (pe..count).step_by(pes as usize).for_each(make),
            Placement::Every(pes) if pe % pes == 0 && pe / pes < count => make(pe / pes),
            Placement::Every(_) => {}
            Placement::Random(_) | Placement::Listed(_) => {
                residents
                    .get_or_init(|| Residents::of(self, count, pes))
                    .on(pe)
                    .iter()
                    .copied()
                    .for_each(make);
            }
        }
    }
}

/// The ranks of every PE, in order.
#[derive(Debug)]
pub(crate) struct Residents {
    /// By PE: the index of its first rank; then the number of ranks.
    starts: Vec<u32>,
    ranks: Vec<u32>,
}

impl Residents {
    fn of(placement: &Placement, count: u32, pes: u32) -> Self {
        let mut starts = vec![0; pes as usize + 1];
        for rank in 0..count {
            starts[placement.pe(rank, count, pes) as usize + 1] += 1;
        }
        for pe in 0..pes as usize {
            starts[pe + 1] += starts[pe];
        }
        let (mut next, mut ranks) = (starts.clone(), vec![0; count as usize]);
        for rank in 0..count {
            let next = &mut next[placement.pe(rank, count, pes) as usize];
            ranks[*next as usize] = rank;
            *next += 1;
        }
        Residents { starts, ranks }
    }

    fn on(&self, pe: u32) -> &[u32] {
        &self.ranks[self.starts[pe as usize] as usize..self.starts[pe as usize + 1] as usize]
    }
}

/// The directory entry of an element that is not on this PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// The PE to which the element migrated.
    pub pe: u32,
    /// The epoch of that migration.
    pub epoch: u32,
    /// Whether the element ended instead of migrating; then `pe` is its home.
    pub gone: bool,
}

/// The next hop of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The element is here, in this slot.
    Here(u32),
    /// To that PE.
    There(Known),
    /// Keep the message: the element will arrive here.
    Hold,
}

/// The directory of one PE for one array.
#[derive(Debug)]
pub(crate) struct Directory {
    me: u32,
    here: Here,
    known: FxHashMap<u32, Known>,
}

/// The elements on a PE, by rank: slot and epoch.
#[derive(Debug)]
enum Here {
    /// For arrays with few elements on many PEs.
    Sparse(FxHashMap<u32, (u32, u32)>),
    /// A table with an entry per rank, which is faster.
    Dense(Box<[(u32, u32)]>),
}

impl Here {
    #[inline]
    fn get(&self, rank: u32) -> Option<(u32, u32)> {
        match self {
            Here::Sparse(map) => map.get(&rank).copied(),
            Here::Dense(table) => table.get(rank as usize).copied().filter(|&(slot, _)| is_taken(slot)),
        }
    }

    fn insert(&mut self, rank: u32, at: (u32, u32)) {
        match self {
            Here::Sparse(map) => {
                map.insert(rank, at);
            }
            Here::Dense(table) => table[rank as usize] = at,
        }
    }

    fn remove(&mut self, rank: u32) -> Option<(u32, u32)> {
        let at = self.get(rank);
        match self {
            Here::Sparse(map) => {
                map.remove(&rank);
            }
            Here::Dense(table) => table[rank as usize] = (NO_ELEMENT, 0),
        }
        at
    }
}

impl Directory {
    /// The empty directory of PE `me` for an array with `count` ranks. With `dense`, it has 8 bytes for every rank.
    pub(crate) fn new(me: u32, count: u32, dense: bool) -> Self {
        let here = match dense {
            true => Here::Dense(vec![(NO_ELEMENT, 0); count as usize].into()),
            false => Here::Sparse(FxHashMap::default()),
        };
        Directory { me, here, known: FxHashMap::default() }
    }

    /// Where to send a new message; `home` is the element's home.
    #[inline]
    pub(crate) fn find(&self, rank: u32, home: impl FnOnce() -> u32) -> Route {
        if let Some((slot, _)) = self.here.get(rank) {
            return Route::Here(slot);
        }
        match self.known.get(&rank).copied().unwrap_or_else(|| Known { pe: home(), epoch: 0, gone: false }) {
            known if known.pe == self.me => Route::Hold,
            known => Route::There(known),
        }
    }

    /// The next hop of a message that was sent here with `epoch`.
    pub(crate) fn route_received(&self, rank: u32, epoch: u32) -> Route {
        if let Some((slot, _)) = self.here.get(rank) {
            return Route::Here(slot);
        }
        match self.known.get(&rank) {
            Some(&known) if known.epoch > epoch && known.pe != self.me => Route::There(known),
            _ => Route::Hold,
        }
    }

    /// The element arrived in this slot with its `epoch`-th migration; 0 if it was created here.
    pub(crate) fn arrived(&mut self, rank: u32, slot: u32, epoch: u32) {
        self.known.remove(&rank);
        self.here.insert(rank, (slot, epoch));
    }

    /// An element with this `epoch` is created on PE `to`, and this PE is its home. Returns its epoch on that PE.
    pub(crate) fn begins_on(&mut self, rank: u32, to: u32, epoch: u32) -> u32 {
        self.known.insert(rank, Known { pe: to, epoch: epoch + 1, gone: false });
        epoch + 1
    }

    /// The element on this PE moved to another slot.
    pub(crate) fn shifted(&mut self, rank: u32, slot: u32) {
        if let Some((_, epoch)) = self.here.get(rank) {
            self.here.insert(rank, (slot, epoch));
        }
    }

    /// The element migrates to PE `to`. With `gone`, the element ends, and `to` is its home. Returns the new epoch.
    pub(crate) fn left(&mut self, rank: u32, to: u32, gone: bool) -> u32 {
        let (_, epoch) = self.here.remove(rank).expect("the element that leaves is on this PE");
        self.known.insert(rank, Known { pe: to, epoch: epoch + 1, gone });
        epoch + 1
    }

    /// Updates the entry of an element with news from another PE; older news is ignored.
    pub(crate) fn located(&mut self, rank: u32, news: Known) {
        if self.here.get(rank).is_some() {
            return;
        }
        let known = self.known.entry(rank).or_insert(news);
        if news.epoch > known.epoch {
            *known = news;
        }
    }

    /// The epoch with which an element can be created here, its home; `None` until the previous element of this
    /// rank is known to have ended.
    pub(crate) fn vacant(&self, rank: u32) -> Option<u32> {
        if self.here.get(rank).is_some() {
            return None;
        }
        match self.known.get(&rank) {
            None => Some(0),
            Some(known) => known.gone.then_some(known.epoch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::{RngCore, SeedableRng};

    /// Directories, successive elements with one index, and messages in any order.
    struct World {
        pes: Vec<Directory>,
        held: Vec<Vec<u32>>,
        flying: Vec<Parcel>,
        /// Whether an element exists, and its PE unless it is migrating.
        exists: bool,
        at: Option<u32>,
        /// Whether an element waits at home to be created.
        blocked_create: bool,
        delivered: Vec<u32>,
        home: u32,
        /// The PE on which the next element begins.
        on: u32,
    }

    enum Parcel {
        Message { id: u32, to: u32, epoch: u32, origin: u32 },
        Element { to: u32, epoch: u32 },
        News { to: u32, news: Known },
        Create,
    }

    impl World {
        fn send(&mut self, id: u32, from: u32) {
            match self.pes[from as usize].find(0, || self.home) {
                Route::Here(_) => self.delivered.push(id),
                Route::There(Known { pe, epoch, .. }) => {
                    self.flying.push(Parcel::Message { id, to: pe, epoch, origin: from })
                }
                Route::Hold => self.held[from as usize].push(id),
            }
        }

        fn place(&mut self, pe: u32, epoch: u32) {
            self.pes[pe as usize].arrived(0, 0, epoch);
            self.at = Some(pe);
            let held = std::mem::take(&mut self.held[pe as usize]);
            self.delivered.extend(held);
        }

        fn create(&mut self) {
            let home = &self.pes[self.home as usize];
            match home.vacant(0) {
                // The runtime ends the run with an error.
                None if matches!(home.find(0, || self.home), Route::Here(_)) => {}
                None => self.blocked_create = true,
                Some(epoch) => {
                    assert!(!self.exists, "two elements have the same index");
                    (self.exists, self.blocked_create) = (true, false);
                    if self.on == self.home {
                        return self.place(self.home, epoch);
                    }
                    let home = self.home as usize;
                    let epoch = self.pes[home].begins_on(0, self.on, epoch);
                    self.flying.push(Parcel::Element { to: self.on, epoch });
                    for id in std::mem::take(&mut self.held[home]) {
                        self.send(id, self.home);
                    }
                }
            }
        }

        fn ends(&mut self, pe: u32) {
            let home = self.home;
            let epoch = self.pes[pe as usize].left(0, home, true);
            (self.exists, self.at) = (false, None);
            self.flying.push(Parcel::News { to: home, news: Known { pe: home, epoch, gone: true } });
        }

        fn step(&mut self, parcel: Parcel) {
            match parcel {
                Parcel::Message { id, to, epoch, origin } => {
                    match self.pes[to as usize].route_received(0, epoch) {
                        Route::Here(_) => self.delivered.push(id),
                        Route::Hold => self.held[to as usize].push(id),
                        Route::There(known) => {
                            assert!(known.epoch > epoch, "each hop has a higher epoch");
                            self.flying.push(Parcel::News { to: origin, news: known });
                            let Known { pe, epoch, .. } = known;
                            self.flying.push(Parcel::Message { id, to: pe, epoch, origin });
                        }
                    }
                }
                Parcel::Element { to, epoch } => {
                    self.place(to, epoch);
                    let news = Known { pe: to, epoch, gone: false };
                    self.flying.push(Parcel::News { to: self.home, news });
                }
                Parcel::News { to, news } => {
                    self.pes[to as usize].located(0, news);
                    if to == self.home && self.blocked_create {
                        self.create();
                    }
                }
                Parcel::Create => self.create(),
            }
        }
    }

    #[test]
    fn delivers_every_message_once_while_elements_migrate_end_and_are_created() {
        for seed in 0..2000 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut sample = |n: usize| (rng.next_u64() % n as u64) as usize;
            let count = 2 + sample(6);
            let home = sample(count) as u32;
            let mut world = World {
                pes: (0..count).map(|pe| Directory::new(pe as u32, 1, pe % 2 == 0)).collect(),
                held: vec![Vec::new(); count],
                flying: Vec::new(),
                exists: false,
                at: None,
                blocked_create: false,
                delivered: Vec::new(),
                home,
                on: home,
            };
            let (mut sent, mut moves) = (0, 0);
            while sent < 60 || moves < 40 || !world.flying.is_empty() || !world.exists {
                match (sample(4), world.at) {
                    (0, _) if sent < 60 => {
                        world.send(sent, sample(count) as u32);
                        sent += 1;
                    }
                    (1, Some(at)) if moves < 40 => {
                        let to = sample(count) as u32;
                        moves += 1;
                        if to == at {
                            world.ends(at);
                        } else {
                            world.at = None;
                            let epoch = world.pes[at as usize].left(0, to, false);
                            world.flying.push(Parcel::Element { to, epoch });
                        }
                    }
                    // `Create` while the element exists must have no effect; the number is limited, so that the loop ends.
                    (2, _) if !world.exists && !world.blocked_create || sample(16) == 0 && moves < 40 => {
                        world.flying.push(Parcel::Create);
                        world.on = sample(count) as u32;
                    }
                    _ if !world.flying.is_empty() => {
                        let next = sample(world.flying.len());
                        let parcel = world.flying.swap_remove(next);
                        world.step(parcel);
                    }
                    _ => {}
                }
            }
            world.delivered.sort_unstable();
            assert_eq!(world.delivered, (0..sent).collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn blocks_are_contiguous_and_even() {
        let pes: Vec<u32> = (0..10).map(|rank| Placement::Blocks.pe(rank, 10, 4)).collect();
        assert_eq!(pes, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn creates_every_rank_on_the_pe_of_its_placement() {
        let listed = Placement::Listed([2, 0, 1].into());
        for placement in [Placement::Blocks, Placement::RoundRobin, Placement::Random(3), listed] {
            for (count, pes) in [(0, 3), (1, 3), (10, 4), (64, 3), (7, 7), (5, 9)] {
                let (mut made, residents) = (Vec::new(), OnceLock::new());
                for pe in 0..pes {
                    placement.each(pe, count, pes, &residents, |rank| made.push((rank, pe)));
                }
                made.sort_unstable();
                let expected: Vec<_> =
                    (0..count).map(|rank| (rank, placement.pe(rank, count, pes))).collect();
                assert_eq!(made, expected, "{placement:?} {count} {pes}");
            }
        }
    }

    #[test]
    fn a_destroyed_element_can_be_created_again_only_after_its_home_is_notified() {
        let mut home = Directory::new(0, 8, true);
        home.arrived(7, 0, 0);
        assert_eq!(home.vacant(7), None);
        let epoch = home.left(7, 1, false);
        assert_eq!(home.vacant(7), None, "the element migrates to PE 1");
        home.located(7, Known { pe: 0, epoch: epoch + 1, gone: false });
        assert_eq!(home.vacant(7), None, "the element migrates back");
        home.located(7, Known { pe: 0, epoch: epoch + 2, gone: true });
        assert_eq!(home.vacant(7), Some(epoch + 2), "another PE reported the end of the element");
        home.arrived(7, 0, epoch + 2);
        home.left(7, 0, true);
        assert_eq!(home.vacant(7), Some(epoch + 3), "the element ended at home");
    }
}
