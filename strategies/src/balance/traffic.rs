//! Shared by the balancers that consider messages: the communication graph, the cost of a message, and the loop in
//! which PEs above the limit give objects away if the best move depends on communication.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Add, AddAssign, Sub};

use rustc_hash::FxHashMap;

use equipoise_model::Database;
use equipoise_model::costs::{Costs, EndCosts};
use equipoise_model::database::End;
use equipoise_model::params::{Param, ParamError, Params};

use super::load::{Pes, order};

/// Messages and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Add for Volume {
    type Output = Volume;

    fn add(self, other: Volume) -> Volume {
        Volume { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }
}

impl AddAssign for Volume {
    fn add_assign(&mut self, other: Volume) {
        *self = *self + other;
    }
}

impl Sub for Volume {
    type Output = Volume;

    fn sub(self, other: Volume) -> Volume {
        Volume { messages: self.messages - other.messages, bytes: self.bytes - other.bytes }
    }
}

/// The cost of a message between PEs at speed 1, charged to both the sending and the receiving PE.
///
/// Charm++'s GreedyCommLB charges both PEs, its RefineCommLB only the sender. A message takes time on both
/// sides, and the same rule for both strategies makes their placements comparable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageCost {
    /// Seconds per message.
    pub alpha_seconds: f64,
    /// Seconds per byte.
    pub beta_seconds_per_byte: f64,
}

/// [`MessageCost::alpha_seconds`] for the registry.
pub(super) const ALPHA: Param = Param {
    key: "alpha_seconds",
    default: MEASURED,
    help: "cost per message between PEs, in seconds, charged to sender and receiver; `measured`: that of the database, \
           or without one 35e-6 as in Charm++",
};

/// [`MessageCost::beta_seconds_per_byte`] for the registry.
pub(super) const BETA: Param = Param {
    key: "beta_seconds_per_byte",
    default: MEASURED,
    help: "cost per byte of a message between PEs, in seconds, charged to sender and receiver; `measured`: that of the \
           database, or without one 8.5e-9 as in Charm++",
};

/// The value of [`ALPHA`] and [`BETA`] that stands for the costs of the database.
const MEASURED: &str = "measured";

/// The costs of Charm++, measured around 2006: they stand for those of databases without costs.
const OF_CHARM: MessageCost = MessageCost { alpha_seconds: 35e-6, beta_seconds_per_byte: 8.5e-9 };

/// The largest cost of a message or a byte, in seconds.
const MAX_SECONDS: f64 = 1e9;

/// The cost of a message as parameters give it; none stands for the cost in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageCostParams {
    /// [`MessageCost::alpha_seconds`].
    pub alpha_seconds: Option<f64>,
    /// [`MessageCost::beta_seconds_per_byte`].
    pub beta_seconds_per_byte: Option<f64>,
}

impl MessageCostParams {
    /// The values of [`ALPHA`] and [`BETA`].
    pub(super) fn take(params: &mut Params) -> Result<MessageCostParams, ParamError> {
        let mut take = |param: Param| {
            let value: String = params.take(param.key)?;
            if value == MEASURED {
                return Ok(None);
            }
            match value.parse() {
                Ok(seconds) if (0.0..=MAX_SECONDS).contains(&seconds) => Ok(Some(seconds)),
                _ => {
                    let expected =
                        format!("expected seconds, a number from 0 to {MAX_SECONDS}, or `{MEASURED}`");
                    Err(params.bad(param.key, &value, expected))
                }
            }
        };
        Ok(MessageCostParams { alpha_seconds: take(ALPHA)?, beta_seconds_per_byte: take(BETA)? })
    }

    /// The cost of a message in the run of `database`.
    pub(super) fn of(self, database: &Database) -> MessageCost {
        let measured = database.costs.as_ref().map_or(OF_CHARM, |costs| MessageCost::of(costs, database));
        MessageCost {
            alpha_seconds: self.alpha_seconds.unwrap_or(measured.alpha_seconds),
            beta_seconds_per_byte: self.beta_seconds_per_byte.unwrap_or(measured.beta_seconds_per_byte),
        }
    }
}

impl MessageCost {
    /// What a message between PEs costs each of them beyond a message on one PE: between processes if there are several.
    fn of(costs: &Costs, database: &Database) -> MessageCost {
        let one_process = database.pes.len() <= costs.pes_per_process as usize;
        let remote = if one_process { &costs.same_process } else { &costs.other_process };
        // Both ends together, for a message or a byte.
        let both = |ends: &EndCosts, messages, bytes| {
            ends.sender_seconds(messages, bytes) + ends.receiver_seconds(messages, bytes)
        };
        let more = |messages, bytes| {
            let seconds = both(remote, messages, bytes) - both(&costs.same_pe, messages, bytes);
            (seconds / 2.0).clamp(0.0, MAX_SECONDS)
        };
        MessageCost { alpha_seconds: more(1, 0), beta_seconds_per_byte: more(0, 1) }
    }

    /// Seconds at speed 1 that this volume costs each of the two PEs.
    pub(super) fn seconds(&self, volume: Volume) -> f64 {
        self.alpha_seconds * volume.messages as f64 + self.beta_seconds_per_byte * volume.bytes as f64
    }
}

/// The volumes that each object exchanges with other objects and with PEs, both directions added.
pub(super) struct Traffic {
    /// The partners of object `o` are `partners[offsets[o]..offsets[o + 1]]`.
    offsets: Vec<usize>,
    partners: Vec<(End, Volume)>,
}

impl Traffic {
    /// The traffic of a checked database, without messages between PEs or from an object to itself.
    pub(super) fn of(database: &Database) -> Traffic {
        let directed = || {
            let both = database.edges.iter().flat_map(|edge| {
                let volume = Volume { messages: edge.messages, bytes: edge.bytes };
                [(edge.from, edge.to, volume), (edge.to, edge.from, volume)]
            });
            both.filter_map(|(from, to, volume)| match from {
                End::Object(object) if from != to && volume != Volume::default() => {
                    Some((object as usize, to, volume))
                }
                _ => None,
            })
        };
        let mut starts = vec![0usize; database.objects.len() + 1];
        directed().for_each(|(object, ..)| starts[object + 1] += 1);
        for object in 0..database.objects.len() {
            starts[object + 1] += starts[object];
        }
        let mut next = starts.clone();
        let mut all = vec![(End::Pe(0), Volume::default()); starts[database.objects.len()]];
        for (object, end, volume) in directed() {
            all[next[object]] = (end, volume);
            next[object] += 1;
        }
        let mut traffic = Traffic { offsets: vec![0], partners: Vec::with_capacity(all.len()) };
        for object in 0..database.objects.len() {
            let row = &mut all[starts[object]..starts[object + 1]];
            row.sort_unstable_by_key(|&(end, _)| end);
            for same in row.chunk_by(|a, b| a.0 == b.0) {
                let volume = same.iter().fold(Volume::default(), |sum, &(_, volume)| sum + volume);
                traffic.partners.push((same[0].0, volume));
            }
            traffic.offsets.push(traffic.partners.len());
        }
        traffic
    }

    /// The partners of `object`, each once, and the volumes exchanged with them.
    pub(super) fn partners(&self, object: u32) -> &[(End, Volume)] {
        &self.partners[self.offsets[object as usize]..self.offsets[object as usize + 1]]
    }
}

/// The PE of an object that is not placed yet.
pub(super) const UNPLACED: u32 = u32::MAX;

/// The volumes that one object exchanges with each PE; reused for one object after another.
pub(super) struct PeVolumes {
    volume_of: Vec<Volume>,
    /// The PEs with a volume, in no particular order.
    pub(super) pes: Vec<u32>,
    /// The sum of the volumes.
    pub(super) total: Volume,
}

impl PeVolumes {
    pub(super) fn new(pes: usize) -> PeVolumes {
        PeVolumes { volume_of: vec![Volume::default(); pes], pes: Vec::new(), total: Volume::default() }
    }

    /// Computes the volumes of `object` if object `i` is on `placement[i]`. Partners that are [`UNPLACED`] do not count.
    pub(super) fn fill(&mut self, traffic: &Traffic, object: u32, placement: &[u32]) {
        for pe in self.pes.drain(..) {
            self.volume_of[pe as usize] = Volume::default();
        }
        self.total = Volume::default();
        for &(end, volume) in traffic.partners(object) {
            let pe = end.pe(placement);
            if pe == UNPLACED {
                continue;
            }
            let sum = &mut self.volume_of[pe as usize];
            if *sum == Volume::default() {
                self.pes.push(pe);
            }
            *sum += volume;
            self.total += volume;
        }
    }

    /// The volume exchanged with `pe`.
    pub(super) fn with(&self, pe: u32) -> Volume {
        self.volume_of[pe as usize]
    }

    /// The volume between PEs if the object is on `pe`.
    pub(super) fn crossing(&self, pe: u32) -> Volume {
        self.total - self.with(pe)
    }
}

/// How a balancer evaluates and applies moves.
pub(super) trait Rule<'a> {
    /// The quality of a move; the move with the largest score is applied first.
    type Score: Ord + Copy;

    /// The best move of `object` off its PE: score and receiving PE. `None` if no PE can receive it.
    fn best(&mut self, object: u32) -> Option<(Self::Score, u32)>;

    /// Applies the move.
    fn apply(&mut self, object: u32, receiver: u32);

    /// The present PE of each object.
    fn placement(&self) -> &[u32];

    /// The present seconds of PEs, and the PEs that receive objects.
    fn pes(&mut self) -> &mut Pes<'a>;
}

/// The PEs `heavy`, above the limit, give away objects of `movable` until they are within the limit or no PE accepts
/// an object. The heaviest PE makes its best move, repeatedly. A move is evaluated again at most once per move of a
/// partner: O((n + E) log n).
pub(super) fn give_away<'a, R: Rule<'a>>(
    rule: &mut R,
    traffic: &Traffic,
    heavy: &[u32],
    movable: &[u32],
    limit_seconds: f64,
) {
    let mut donors: BinaryHeap<(u64, Reverse<u32>)> =
        heavy.iter().map(|&pe| (order(rule.pes().seconds[pe as usize]), Reverse(pe))).collect();
    // The moves of each donor. An entry may be out of date. A move that became worse is evaluated again when its entry
    // is popped. A move that may have become better gets a new entry.
    type Moves<S> = BinaryHeap<(S, Reverse<u32>)>;
    let mut moves: FxHashMap<u32, Moves<R::Score>> =
        heavy.iter().map(|&pe| (pe, BinaryHeap::new())).collect();
    let push_move = |rule: &mut R, moves: &mut FxHashMap<u32, Moves<R::Score>>, object: u32| {
        if let Some(own) = moves.get_mut(&rule.placement()[object as usize]) {
            own.extend(rule.best(object).map(|(score, _)| (score, Reverse(object))));
        }
    };
    let mut may_move = vec![false; rule.placement().len()];
    for &object in movable {
        may_move[object as usize] = true;
        push_move(rule, &mut moves, object);
    }
    while let Some((_, Reverse(donor))) = donors.pop() {
        let Some(own) = moves.get_mut(&donor) else { continue };
        let next = loop {
            let Some((score, Reverse(object))) = own.pop() else { break None };
            if rule.placement()[object as usize] != donor {
                continue;
            }
            match rule.best(object) {
                Some((now, _)) if now < score => own.push((now, Reverse(object))),
                Some((_, receiver)) => break Some((object, receiver)),
                None => {}
            }
        };
        // No PE accepts an object: the donor is skipped, because the next one may have smaller objects.
        let Some((object, receiver)) = next else { continue };
        rule.apply(object, receiver);
        for &(partner, _) in traffic.partners(object) {
            if let End::Object(partner) = partner
                && may_move[partner as usize]
            {
                push_move(rule, &mut moves, partner);
            }
        }
        let seconds = rule.pes().seconds[donor as usize];
        if seconds > limit_seconds {
            donors.push((order(seconds), Reverse(donor)));
        } else {
            moves.remove(&donor);
            // The donor is now within the limit.
            rule.pes().open(donor);
        }
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::Edge;

    use super::*;
    use crate::testing::database;

    fn edge(from: End, to: End, messages: u64, bytes: u64) -> Edge {
        Edge { from, to, messages, bytes }
    }

    #[test]
    fn a_message_costs_what_it_costs_more_than_one_on_a_pe() {
        let mut database = database(4, &[(1.0, 0)]);
        let of = |database: &Database, alpha_seconds| {
            MessageCostParams { alpha_seconds, ..MessageCostParams::default() }.of(database)
        };
        assert_eq!(of(&database, None), OF_CHARM);
        assert_eq!(of(&database, Some(0.5)), MessageCost { alpha_seconds: 0.5, ..OF_CHARM });
        let ends = |send_seconds, receive_seconds_per_byte| EndCosts {
            send_seconds,
            receive_seconds_per_byte,
            ..EndCosts::default()
        };
        let costs = Costs {
            same_pe: ends(1.0, 0.0),
            same_process: ends(5.0, 0.5),
            other_process: ends(9.0, 0.25),
            pes_per_process: 4,
            ..Costs::default()
        };
        let several = Costs { pes_per_process: 2, ..costs.clone() };
        let cost =
            |alpha_seconds, beta_seconds_per_byte| MessageCost { alpha_seconds, beta_seconds_per_byte };
        database.costs = Some(costs);
        assert_eq!(of(&database, None), cost(2.0, 0.25));
        database.costs = Some(several);
        assert_eq!(of(&database, None), cost(4.0, 0.125));
        assert_eq!(of(&database, Some(0.5)), cost(0.5, 0.125));
        database.costs = Some(Costs { same_pe: ends(10.0, 1.0), ..Costs::default() });
        assert_eq!(of(&database, None), cost(0.0, 0.0));
    }

    #[test]
    fn traffic_adds_both_directions_and_skips_self_messages() {
        let mut database = database(3, &[(1.0, 0), (1.0, 1), (1.0, 2)]);
        let (a, b, c) = (End::Object(0), End::Object(1), End::Object(2));
        database.edges = vec![
            edge(a, b, 1, 5 << 40),
            edge(b, a, 2, 7),
            edge(c, c, 9, 9),
            edge(End::Pe(1), a, 1, 0),
            edge(End::Pe(0), End::Pe(1), 4, 4),
            edge(b, c, 0, 0),
        ];
        let traffic = Traffic::of(&database);
        let volume = |messages, bytes| Volume { messages, bytes };
        assert_eq!(traffic.partners(0), [(b, volume(3, (5 << 40) + 7)), (End::Pe(1), volume(1, 0))]);
        assert_eq!(traffic.partners(1), [(a, volume(3, (5 << 40) + 7))]);
        assert_eq!(traffic.partners(2), []);

        let mut volumes = PeVolumes::new(3);
        volumes.fill(&traffic, 0, &[0, 2, UNPLACED]);
        assert_eq!((volumes.with(2), volumes.with(1)), (volume(3, (5 << 40) + 7), volume(1, 0)));
        assert_eq!(volumes.crossing(2), volume(1, 0));
        volumes.fill(&traffic, 1, &[UNPLACED, 2, 0]);
        assert_eq!((volumes.total, volumes.pes.len(), volumes.with(2)), (volume(0, 0), 0, volume(0, 0)));
    }
}
