//! Shorter ways of messages under constraints, from a placement that may break them: simulated annealing with penalties.
//!
//! S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", 1983. A step moves an item to the PE of one of its
//! partners, or an item that breaks a constraint to any PE, alone or in exchange for another item. What is broken costs hop-bytes, more and
//! more of them while the temperature falls. So from an answer of a strategy that breaks constraints, the search goes to a placement near it
//! that keeps them.
//!
//! The search begins with the items that break a constraint; items that it moves and their partners join. No other item moves, and an item
//! that stays where it was before the step leaves only for one that breaks a constraint, so few migrations are added.

use equipoise_model::random::{below, generator};
use equipoise_model::rules::Rules;
use rand_core::RngCore;

use super::contracted::Items;
use super::nearer::Near;
use crate::room::Room;

/// The steps for each item, and the largest number of all steps, about two seconds.
const STEPS: u64 = 400;
const MOST_STEPS: u64 = 1 << 22;

/// How often a search is tried until it finds a placement, if all tries together have no more than [`MOST_STEPS`].
const TRIES: u64 = 3;

/// Of how many tries the best is taken, if they together have no more than these steps. Where an item goes first is chance, and few
/// items follow.
const BEST_OF: u64 = 16;
const STEPS_OF_BEST: u64 = 1 << 17;

/// The first temperature, in hop-bytes of a mean item. It is lower if there are fewer than [`ENOUGH_STEPS`] steps for each item, because they
/// could not cool the placement down.
const TEMPERATURE: f64 = 0.1;
const ENOUGH_STEPS: f64 = 200.0;

/// What it costs that one item is too much on a PE, or where it may not be, at the begin and at the end, in hop-bytes of a mean item.
const PENALTY: [f64; 2] = [2.0, 200.0];

/// What it costs in addition that a PE is too full by however little, in items.
const TOO_FULL: f64 = 0.05;

/// Seconds of a PE above its limit that are rounding, in mean items.
const ROUNDING: f64 = 1e-9;

/// The steps of a search for this number of items that can move.
fn steps(items: usize) -> u64 {
    STEPS.saturating_mul(items as u64).min(MOST_STEPS)
}

/// Of how many tries the best is taken for this number of items that can move, and how many there are if these find no placement.
pub(super) fn tries(items: usize) -> (u64, u64) {
    let within = |all: u64, most: u64| (all / steps(items).max(1)).clamp(1, most);
    let enough = within(STEPS_OF_BEST, BEST_OF);
    (enough, within(MOST_STEPS, TRIES).max(enough))
}

/// A placement in which items move.
pub(super) struct Search<'a> {
    near: &'a Near<'a>,
    items: &'a Items,
    room: Room<'a>,
    pe_of: Vec<u32>,
    /// The movable items of each PE, and the position of each item there.
    on: Vec<Vec<u32>>,
    position: Vec<u32>,
    /// The seconds of each PE in each phase.
    seconds: Vec<Vec<f64>>,
    /// The most seconds of a PE in each phase.
    limit_seconds: Vec<f64>,
    /// The bytes and the seconds of a mean item.
    mean_bytes: f64,
    mean_seconds: f64,
}

impl<'a> Search<'a> {
    /// The placement `pe_of`, whose PEs should not take more than `limit_seconds` in each phase.
    pub(super) fn new(
        near: &'a Near<'a>,
        items: &'a Items,
        rules: &'a Rules,
        pe_of: &[u32],
        limit_seconds: Vec<f64>,
    ) -> Search<'a> {
        let (number, pes) = (items.weight.len(), items.database.pes.len());
        let movable = items.is_fixed.iter().filter(|&&is| !is).count().max(1) as f64;
        let all_seconds: f64 = items.phases.iter().flatten().sum();
        let mut search = Search {
            near,
            items,
            room: items.room(rules),
            pe_of: pe_of.to_vec(),
            on: vec![Vec::new(); pes],
            position: vec![0; number],
            seconds: items.background_seconds(),
            limit_seconds,
            mean_bytes: (items.bytes.iter().map(|&bytes| bytes as f64).sum::<f64>() / movable).max(1.0),
            mean_seconds: (all_seconds / movable).max(f64::MIN_POSITIVE),
        };
        for item in 0..number as u32 {
            search.add(item, pe_of[item as usize], 1);
        }
        search
    }

    /// Adds an item to a PE (`sign` 1), or takes it from there (-1).
    fn add(&mut self, item: u32, pe: u32, sign: i64) {
        let (at, to) = (item as usize, pe as usize);
        if sign > 0 {
            self.pe_of[at] = pe;
            if !self.items.is_fixed[at] {
                self.position[at] = self.on[to].len() as u32;
                self.on[to].push(item);
            }
            self.room.put(item, pe);
        } else {
            let place = self.position[at] as usize;
            self.on[to].swap_remove(place);
            if let Some(&last) = self.on[to].get(place) {
                self.position[last as usize] = place as u32;
            }
            self.room.take(item, pe);
        }
        for phase in 0..self.seconds.len() {
            self.seconds[phase][to] += sign as f64 * self.items.seconds(item, pe, phase);
        }
    }

    /// By how much a PE is too full, in mean items, with these objects, bytes and seconds by phase in addition.
    fn excess(&self, pe: u32, objects: i64, bytes: i128, seconds: impl Fn(usize) -> f64) -> f64 {
        let to = pe as usize;
        let of_phase = |phase: usize| {
            (self.seconds[phase][to] + seconds(phase) - self.limit_seconds[phase]) / self.mean_seconds
        };
        let (objects, bytes) = self.room.excess(pe, objects, bytes);
        // Only seconds are rounded: an object or a byte too much is too much.
        let counted = [objects, bytes / self.mean_bytes].into_iter().filter(|&part| part > 0.0);
        let measured = (0..self.seconds.len()).map(of_phase).filter(|&part| part > ROUNDING);
        counted.chain(measured).map(|part| part + TOO_FULL).sum()
    }

    /// Whether an item is on a PE where it may not be, or in the way of another one.
    fn breaks(&self, item: u32) -> bool {
        let pe = self.pe_of[item as usize];
        !self.room.may_be(item, pe)
            || !self.items.database.pes[pe as usize].available
            || self.room.apart(item).iter().any(|&group| self.room.members(group, pe) > 1)
            || self.excess(pe, 0, 0, |_| 0.0) > 0.0
    }

    /// What a move of `item` to `to`, in exchange for `other`, adds to what is broken, in mean items.
    fn added(&self, item: u32, to: u32, other: Option<u32>) -> f64 {
        let (items, room) = (self.items, &self.room);
        let from = self.pe_of[item as usize];
        let wrong = |item: u32, pe: u32| if self.room.may_be(item, pe) { 0.0 } else { 1.0 };
        let mut sum = wrong(item, to) - wrong(item, from);
        sum += other.map_or(0.0, |other| wrong(other, from) - wrong(other, to));
        let of = |values: &[u64], item: Option<u32>| item.map_or(0, |item| i128::from(values[item as usize]));
        // Numbers of objects are below 2^32.
        let more = (of(&items.weight, Some(item)) - of(&items.weight, other)) as i64;
        let bytes = of(&items.bytes, Some(item)) - of(&items.bytes, other);
        let seconds = |pe: u32, phase: usize| {
            let of_other = other.map_or(0.0, |other| self.items.seconds(other, pe, phase));
            self.items.seconds(item, pe, phase) - of_other
        };
        sum += self.excess(to, more, bytes, |phase| seconds(to, phase)) - self.excess(to, 0, 0, |_| 0.0);
        sum += self.excess(from, -more, -bytes, |phase| -seconds(from, phase))
            - self.excess(from, 0, 0, |_| 0.0);
        // How many items of a group share a part with another one before them.
        let mut crowd = |moved: u32, from: u32, to: u32, leaves: Option<u32>| {
            for &group in room.apart(moved) {
                let is_near = room.part(group, from) == room.part(group, to);
                if is_near || leaves.is_some_and(|leaves| room.apart(leaves).contains(&group)) {
                    continue;
                }
                sum += f64::from(u8::from(room.members(group, to) > 0));
                sum -= f64::from(u8::from(room.members(group, from) > 1));
            }
        };
        crowd(item, from, to, other);
        if let Some(other) = other {
            crowd(other, to, from, Some(item));
        }
        sum
    }

    /// What a move of `item` to `to`, in exchange for `other`, adds to the hop-bytes. The distance between the two stays.
    fn lengthens(&self, item: u32, to: u32, other: Option<u32>) -> f64 {
        let from = self.pe_of[item as usize];
        let longer =
            |item, from, to, except| self.hop_bytes(item, to, except) - self.hop_bytes(item, from, except);
        longer(item, from, to, other) + other.map_or(0.0, |other| longer(other, to, from, Some(item)))
    }

    /// Searches from the items that break a constraint, and those of `active`. Returns the placement if it keeps all constraints.
    pub(super) fn run(mut self, active: impl Iterator<Item = u32>, seed: u64) -> Option<Vec<u32>> {
        let before = |item: u32| self.items.database.objects[item as usize].pe;
        let mut may_move: Vec<bool> =
            (0..).zip(&self.pe_of).map(|(item, &pe)| self.can_move(item) && pe != before(item)).collect();
        let all = || (0..self.pe_of.len() as u32).filter(|&item| self.can_move(item));
        let mut pool = Pool::new(self.pe_of.len());
        all().filter(|&item| self.breaks(item)).chain(active).for_each(|item| pool.add(item));
        let sum: f64 = all().map(|item| self.hop_bytes(item, self.pe_of[item as usize], None)).sum();
        let unit = (sum / all().count().max(1) as f64).max(1.0);
        let steps = steps(all().count());
        let begin = TEMPERATURE * unit * (steps as f64 / all().count().max(1) as f64 / ENOUGH_STEPS).min(1.0);
        let mut random = generator(seed, 0);
        for step in 0..steps {
            let Some(item) = pool.any(&mut random) else { break };
            let breaks = self.breaks(item);
            if !may_move[item as usize] && !breaks {
                continue;
            }
            let Some((to, other)) = self.step(item, breaks, &may_move, &mut random) else { continue };
            let past = step as f64 / steps as f64;
            let temperature = begin * (1.0 - past) * (1.0 - past);
            let penalty = unit * PENALTY[0] * (PENALTY[1] / PENALTY[0]).powf(past);
            let change = self.lengthens(item, to, other) + penalty * self.added(item, to, other);
            let part = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            // Steps between equal placements lead on to shorter ways; without messages they are needless.
            if change == 0.0 && sum == 0.0 || change > 0.0 && part >= (-change / temperature).exp() {
                continue;
            }
            let from = self.pe_of[item as usize];
            self.add(item, from, -1);
            if let Some(other) = other {
                self.add(other, to, -1);
                self.add(other, from, 1);
            }
            self.add(item, to, 1);
            for item in [Some(item), other].into_iter().flatten() {
                may_move[item as usize] = true;
                let partners = self.near.traffic.partners(item as usize).iter().map(|partner| partner.vertex);
                let items =
                    partners.filter(|&vertex| (vertex as usize) < self.pe_of.len() && self.can_move(vertex));
                items.chain([item]).for_each(|item| pool.add(item));
            }
        }
        let keeps = (0..self.pe_of.len() as u32).all(|item| !self.can_move(item) || !self.breaks(item));
        keeps.then_some(self.pe_of)
    }

    /// Another PE for an item, and the item of that PE to exchange it for; none if there is no such step.
    fn step(
        &self,
        item: u32,
        breaks: bool,
        may_move: &[bool],
        random: &mut impl RngCore,
    ) -> Option<(u32, Option<u32>)> {
        let pes = &self.items.database.pes;
        let mut any = |of: usize| below(random, of as u64) as usize;
        let (from, partners) = (self.pe_of[item as usize], self.near.traffic.partners(item as usize));
        let to = match &self.items.allowed[item as usize] {
            _ if !(partners.is_empty() || breaks && any(2) == 0) => {
                self.near.place(&self.pe_of, partners[any(partners.len())].vertex)
            }
            Some(set) => set[any(set.len())],
            None => any(pes.len()) as u32,
        };
        if to == from || !pes[to as usize].available {
            return None;
        }
        let there = &self.on[to as usize];
        let other = there.get(any(there.len() + 1)).copied();
        let fits = |other: u32| (may_move[other as usize] || breaks) && pes[from as usize].available;
        other.is_none_or(fits).then_some((to, other))
    }

    fn can_move(&self, item: u32) -> bool {
        !self.items.is_fixed[item as usize]
    }

    /// The bytes of an item on `pe` times their hops, without those of `except`.
    fn hop_bytes(&self, item: u32, pe: u32, except: Option<u32>) -> f64 {
        self.near.hop_bytes(&self.pe_of, item, pe, except) as f64
    }
}

/// The items that steps are tried for.
struct Pool {
    items: Vec<u32>,
    is_in: Vec<bool>,
}

impl Pool {
    fn new(items: usize) -> Pool {
        Pool { items: Vec::new(), is_in: vec![false; items] }
    }

    fn add(&mut self, item: u32) {
        if !std::mem::replace(&mut self.is_in[item as usize], true) {
            self.items.push(item);
        }
    }

    fn any(&self, random: &mut impl RngCore) -> Option<u32> {
        let count = self.items.len();
        (count > 0).then(|| self.items[below(random, count as u64) as usize])
    }
}
