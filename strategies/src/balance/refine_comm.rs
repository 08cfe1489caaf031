//! `RefineCommLB`: as `RefineLB`, where the time of a PE includes its messages to other PEs.
//!
//! Charm++'s strategy of that name (removed there in 2019). The heaviest PE above the limit gives away the
//! object that relieves it most, messages included: an object that talks to its own PE makes messages when
//! it leaves. It goes to the PE, among those that remain within the limit, that it talks to most, else to
//! the one with the most room. The limit is the allowed imbalance over the level that the work and the
//! messages there are before the first move reach when they are poured over what is fixed on each PE: its
//! background, its objects that stay, and the messages of those and of its runtime. So more messages do not
//! make more room, and one PE that nothing can relieve (in LeanMD that of the main chare, whose messages take
//! 60 times as long as the work of a PE) does not keep the others from it. Where the limit cannot be kept, the
//! lowest one that can is sought (`limit.rs`).
//!
//! Charm++'s code stops everything when the heaviest PE finds no object to give, and does nothing on many
//! recorded programs; here such a PE stays as it is and the next one is relieved. It also tries every
//! object on every PE for every move; here a move is weighed again only when a partner has moved.

use super::limit::lowest;
use super::load::{Pes, Work, order};
use super::traffic::{ALPHA, BETA, MessageCost, PeVolumes, Rule, Traffic, Volume, give_away};
use crate::cost::{LoadBound, pour};
use crate::database::End;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `RefineCommLB` for the registry.
pub const NAMED: Named = Named {
    name: "RefineCommLB",
    aliases: &[],
    help: "RefineLB where the time of a PE includes its messages to other PEs: few migrations. For later \
           steps of a program with costly messages.",
    params: &[Param::imbalance("0.05"), ALPHA, BETA],
    needs_communication: true,
    make: |params: &mut Params| {
        let (imbalance, cost) = (params.take_imbalance()?, MessageCost::take(params)?);
        Ok(Box::new(RefineComm { imbalance, cost }))
    },
};

/// The strategy that relieves the PEs above the limit of load and messages.
#[derive(Clone, Copy, Debug)]
pub struct RefineComm {
    /// How far above the average the time of a PE may be: max/avg - 1.
    pub imbalance: f64,
    /// What messages between PEs cost.
    pub cost: MessageCost,
}

impl Strategy for RefineComm {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        Ok(Assignment::new(relieve(database, &work, self.imbalance, self.cost)))
    }
}

/// Moves objects off the PEs above the limit, and gives the PE of each object. O((n + E) log n) for each
/// limit that is tried.
fn relieve(database: &Database, work: &Work, imbalance: f64, cost: MessageCost) -> Vec<u32> {
    let traffic = Traffic::of(database);
    let (placement, work_seconds) = work.settle();
    let (crossing, lasting) = crossing(database, &traffic, &placement);
    let with = |seconds: &[f64], volumes: &[Volume]| -> Vec<f64> {
        let one = |pe: usize| seconds[pe] + cost.seconds(volumes[pe]) / database.pes[pe].speed;
        (0..database.pes.len()).map(one).collect()
    };
    let seconds = with(&work_seconds, &crossing);
    let fixed_seconds = with(&work.fixed_seconds, &lasting);
    let mut fixed: Vec<(f64, f64)> =
        work.available.iter().map(|&pe| (fixed_seconds[pe as usize], work.speed(pe))).collect();
    let movable = work
        .available
        .iter()
        .map(|&pe| (seconds[pe as usize] - fixed_seconds[pe as usize]).max(0.0) * work.speed(pe));
    let level_seconds = pour(movable.sum(), &mut fixed);
    let bound = LoadBound::of(database);
    let most_fixed = fixed.iter().map(|&(seconds, _)| seconds).fold(bound.bound_seconds, f64::max);
    let bound = LoadBound { bound_seconds: most_fixed, ..bound };
    lowest((1.0 + imbalance) * level_seconds, bound, |limit_seconds| {
        let (heavy, light): (Vec<u32>, Vec<u32>) =
            work.available.iter().partition(|&&pe| seconds[pe as usize] > limit_seconds);
        let mut state = State {
            work,
            traffic: &traffic,
            cost,
            limit_seconds,
            placement: placement.clone(),
            work_seconds: work_seconds.clone(),
            crossing: crossing.clone(),
            pes: Pes::new(database, seconds.clone(), &light),
            volumes: PeVolumes::new(database.pes.len()),
        };
        give_away(&mut state, &traffic, &heavy, &work.movable, limit_seconds);
        let max_seconds = state.pes.max_seconds(&work.available);
        (state.placement, max_seconds)
    })
}

/// What each PE exchanges with others when object `i` is on `placement[i]`, and what of it is the PE's own or
/// that of objects that stay.
fn crossing(database: &Database, traffic: &Traffic, placement: &[u32]) -> (Vec<Volume>, Vec<Volume>) {
    let mut crossing = vec![Volume::default(); database.pes.len()];
    let mut lasting = vec![Volume::default(); database.pes.len()];
    for ((object, &pe), record) in (0..).zip(placement).zip(&database.objects) {
        for &(end, volume) in traffic.partners(object) {
            let other = end.pe(placement);
            if other != pe {
                crossing[pe as usize] += volume;
                if !record.migratable {
                    lasting[pe as usize] += volume;
                }
                // A partner that is an object finds this in its own row.
                if matches!(end, End::Pe(_)) {
                    crossing[other as usize] += volume;
                    lasting[other as usize] += volume;
                }
            }
        }
    }
    (crossing, lasting)
}

struct State<'a> {
    work: &'a Work<'a>,
    traffic: &'a Traffic,
    cost: MessageCost,
    limit_seconds: f64,
    placement: Vec<u32>,
    /// Seconds of each PE without its messages.
    work_seconds: Vec<f64>,
    /// What each PE exchanges with others.
    crossing: Vec<Volume>,
    /// Seconds of each PE in all; those below the limit are open.
    pes: Pes<'a>,
    volumes: PeVolumes,
}

impl State<'_> {
    /// Seconds of `pe` with those of its work, and what it exchanges with others.
    fn total(&self, pe: u32, work_seconds: f64, crossing: Volume) -> f64 {
        work_seconds + self.cost.seconds(crossing) / self.work.speed(pe)
    }

    /// Seconds of `pe` after it took `object`, to which [`Self::volumes`] belongs.
    fn with(&self, pe: u32, object: u32) -> f64 {
        let crossing = self.crossing[pe as usize] - self.volumes.with(pe) + self.volumes.crossing(pe);
        self.total(pe, self.work_seconds[pe as usize] + self.work.seconds(object, pe), crossing)
    }
}

impl Rule for State<'_> {
    /// Seconds by which the donor gets lighter, then seconds of messages the receiver is spared.
    type Score = (u64, u64);

    fn best(&mut self, object: u32) -> Option<(Self::Score, u32)> {
        self.volumes.fill(self.traffic, object, &self.placement);
        let donor = self.placement[object as usize];
        let made = self.cost.seconds(self.volumes.with(donor));
        let spared = self.cost.seconds(self.volumes.crossing(donor));
        let relief = (self.work.load_seconds(object) + spared - made) / self.work.speed(donor);
        // The difference of two infinite times is no relief.
        if relief.is_nan() || relief <= 0.0 {
            return None;
        }
        let roomiest = self.pes.roomiest(self.limit_seconds);
        let takes = |&pe: &u32| {
            let is_light = self.pes.seconds[pe as usize] <= self.limit_seconds;
            pe != donor
                && is_light
                && self.work.is_available(pe)
                && self.with(pe, object) <= self.limit_seconds
        };
        let spared_by = |pe: u32| order(self.cost.seconds(self.volumes.with(pe)));
        let rank = |&pe: &u32| (std::cmp::Reverse(spared_by(pe)), order(self.with(pe, object)), pe);
        let receiver = self.volumes.pes.iter().copied().chain(roomiest).filter(takes).min_by_key(rank)?;
        Some(((order(relief), spared_by(receiver)), receiver))
    }

    fn apply(&mut self, object: u32, receiver: u32) {
        let donor = self.placement[object as usize];
        self.volumes.fill(self.traffic, object, &self.placement);
        let volumes = &self.volumes;
        let (from, to) = (donor as usize, receiver as usize);
        self.crossing[from] = self.crossing[from] + volumes.with(donor) - volumes.crossing(donor);
        self.crossing[to] = self.crossing[to] - volumes.with(receiver) + volumes.crossing(receiver);
        self.work_seconds[from] = (self.work_seconds[from] - self.work.seconds(object, donor)).max(0.0);
        self.work_seconds[to] += self.work.seconds(object, receiver);
        self.placement[object as usize] = receiver;
        let before = self.pes.seconds[to];
        for pe in [donor, receiver] {
            let (work_seconds, crossing) = (self.work_seconds[pe as usize], self.crossing[pe as usize]);
            self.pes.seconds[pe as usize] = self.total(pe, work_seconds, crossing);
        }
        // A PE that takes an object it talks to much may become lighter.
        if self.pes.seconds[to] < before {
            self.pes.open(receiver);
        }
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
    use proptest::prelude::*;

    use super::*;
    use crate::database::{Edge, arbitrary};
    use crate::testing::{assign, database};

    fn edge(from: u32, to: u32, messages: u64) -> Edge {
        Edge { from: End::Object(from), to: End::Object(to), messages, bytes: 0 }
    }

    #[track_caller]
    fn check(spec: &str, pes: usize, objects: &[(f64, u32)], edges: &[Edge], expected: &[u32]) {
        let mut database = database(pes, objects);
        database.edges = edges.to_vec();
        let spec = format!("RefineCommLB:imbalance=0.1,{spec}");
        assert_eq!(assign(&spec, &database).map(|answer| answer.pe_of), Ok(expected.to_vec()), "{spec}");
    }

    #[test]
    fn without_messages_it_is_refine() {
        check("alpha_seconds=1", 2, &[(4.0, 0), (3.0, 0), (2.0, 0), (1.0, 0)], &[], &[1, 0, 0, 1]);
        check("alpha_seconds=1", 2, &[(3.0, 0), (3.0, 0), (3.0, 1), (3.0, 1)], &[], &[0, 0, 1, 1]);
    }

    #[test]
    fn a_pe_is_relieved_of_messages_too() {
        // PE 0 has 2 seconds and 4 of messages, PE 1 the same messages and no load.
        let objects = [(1.0, 0), (1.0, 0), (0.0, 1)];
        check("alpha_seconds=0", 2, &objects, &[edge(0, 2, 4)], &[1, 0, 1]);
        check("alpha_seconds=1", 2, &objects, &[edge(0, 2, 4)], &[1, 0, 1]);
        // Both objects of PE 0 talk to each other: one that leaves costs more than it takes away.
        check("alpha_seconds=1", 2, &objects, &[edge(0, 1, 4)], &[0, 0, 1]);
    }

    #[test]
    fn of_pes_with_room_the_one_it_talks_to_gets_the_object() {
        let objects = [(1.0, 0), (1.0, 0), (1.0, 0), (0.0, 1), (0.0, 2), (1.0, 3)];
        check("alpha_seconds=0.01", 4, &objects, &[], &[1, 2, 0, 1, 2, 3]);
        check("alpha_seconds=0.01", 4, &objects, &[edge(0, 4, 1), edge(1, 3, 2)], &[2, 1, 0, 1, 2, 3]);
    }

    /// Seconds of the heaviest available PE by the definition: load over speed, background, and both ends
    /// of every message that crosses PEs.
    fn max_seconds(database: &Database, placement: &[u32], cost: MessageCost) -> f64 {
        let mut seconds = database.pe_loads(placement);
        for edge in &database.edges {
            let (from, to) = (edge.from.pe(placement), edge.to.pe(placement));
            let between_pes = matches!((edge.from, edge.to), (End::Pe(_), End::Pe(_)));
            if from != to && !between_pes {
                for pe in [from, to] {
                    let volume = Volume { messages: edge.messages, bytes: edge.bytes };
                    seconds[pe as usize] += cost.seconds(volume) / database.pes[pe as usize].speed;
                }
            }
        }
        let available = seconds.into_iter().zip(&database.pes).filter(|(_, pe)| pe.available);
        available.map(|(seconds, _)| seconds).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn the_heaviest_pe_with_its_messages_never_gets_heavier(
            mut database in arbitrary::database(6, 1 << 40, false),
            alpha_seconds in prop::sample::select(vec![0.0, 0.01, 1.0]),
            beta_seconds_per_byte in prop::sample::select(vec![0.0, 1e-12]),
            imbalance in 0.0..0.3f64,
        ) {
            database.pes.iter_mut().for_each(|pe| pe.available = true);
            database.edges.iter_mut().for_each(|edge| edge.messages %= 100);
            let cost = MessageCost { alpha_seconds, beta_seconds_per_byte };
            let work = Work::new(&database, (0..database.pes.len() as u32).collect());
            let after = relieve(&database, &work, imbalance, cost);
            let [before, after] = [database.placement(), after].map(|pe_of| max_seconds(&database, &pe_of, cost));
            prop_assert!(after <= before * (1.0 + 1e-9), "{} became {}", before, after);
        }
    }
}
