//! `RefineCommLB`: `RefineLB` where the time of a PE includes its messages to other PEs.
//!
//! Charm++'s strategy of that name (removed there in 2019). The heaviest PE above the limit gives away the object
//! that reduces its time most, messages included: an object that communicates with its own PE causes messages between
//! PEs when it leaves. The receiver is the PE that exchanges most with the object among the PEs that remain within
//! the limit, otherwise the PE with the most room.
//!
//! The limit is the allowed imbalance times a level: the time of all PEs if the movable work and the present messages
//! could be divided without remainder over the fixed time of each PE. The fixed time is the background, the objects
//! that stay, and the messages of these objects and of the PE itself. So additional messages do not raise the limit. A
//! PE that cannot be relieved does not stop the others. (In LeanMD this is the PE of the main chare, whose messages
//! take 60 times as long as the work of a PE.) If the limit cannot be kept, the lowest limit that can is used
//! (`limit.rs`).
//!
//! Charm++'s code stops when the heaviest PE has no object to give, and does nothing on many recorded programs. Here
//! such a PE is skipped. Charm++ also tries every object on every PE for every move; here a move is evaluated again
//! only when a partner has moved.

use equipoise_model::database::End;
use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::limit::at_lowest_limit;
use super::load::{Pes, Work, order};
use super::traffic::{
    ALPHA, BETA, MessageCost, MessageCostParams, PeVolumes, Rule, Traffic, Volume, give_away,
};
use crate::cost::{LoadBound, pour};
use crate::descriptor::Recipe;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `RefineCommLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "RefineCommLB",
    form: "",
    help: "RefineLB where the time of a PE includes its messages to other PEs: few migrations. For later \
           steps of a program with costly messages.",
    params: &[Param::imbalance("0.05"), ALPHA, BETA],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            let (imbalance, cost) = (params.take_imbalance()?, MessageCostParams::take(params)?);
            Ok(Box::new(RefineComm { imbalance, cost }))
        },
    },
};

/// The strategy that relieves the PEs above the limit of load and messages.
#[derive(Clone, Copy, Debug)]
pub struct RefineComm {
    /// How far above the average the time of a PE may be: max/avg - 1.
    pub imbalance: f64,
    /// The cost of messages between PEs.
    pub cost: MessageCostParams,
}

impl Strategy for RefineComm {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        Ok(Assignment::new(relieve(database, &work, self.imbalance, self.cost.of(database))))
    }
}

/// Moves objects off the PEs above the limit; returns the PE of each object. O((n + E) log n) for each
/// limit tried.
fn relieve(database: &Database, work: &Work, imbalance: f64, cost: MessageCost) -> Vec<u32> {
    let traffic = Traffic::of(database);
    let (placement, work_seconds) = work.placement();
    let (crossing, fixed_volumes) = crossing(database, &traffic, &placement);
    let with = |seconds: &[f64], volumes: &[Volume]| -> Vec<f64> {
        let one = |pe: usize| seconds[pe] + cost.seconds(volumes[pe]) / database.pes[pe].speed;
        (0..database.pes.len()).map(one).collect()
    };
    let seconds = with(&work_seconds, &crossing);
    let fixed_seconds = with(&work.fixed_seconds, &fixed_volumes);
    let mut fixed: Vec<(f64, f64)> =
        work.available.iter().map(|&pe| (fixed_seconds[pe as usize], work.speed(pe))).collect();
    let movable = work
        .available
        .iter()
        .map(|&pe| (seconds[pe as usize] - fixed_seconds[pe as usize]).max(0.0) * work.speed(pe));
    let level_seconds = pour(movable.sum(), &mut fixed);
    let bound = LoadBound::of(database);
    let most_fixed = fixed.iter().map(|&(seconds, _)| seconds).fold(bound.bound_seconds, f64::max);
    // Any attempt is better than the present placement, because some PE above the limit may be impossible to relieve.
    let present = (placement.clone(), f64::INFINITY);
    at_lowest_limit(present, (1.0 + imbalance) * level_seconds, most_fixed, |limit_seconds| {
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
        let max_seconds = work.max_seconds(&state.pes.seconds);
        (state.placement, max_seconds)
    })
    .0
}

/// The volume that each PE exchanges with other PEs if object `i` is on `placement[i]`, and the fixed part of it: that of
/// the PE itself and of objects that stay.
fn crossing(database: &Database, traffic: &Traffic, placement: &[u32]) -> (Vec<Volume>, Vec<Volume>) {
    let mut crossing = vec![Volume::default(); database.pes.len()];
    let mut fixed_volumes = vec![Volume::default(); database.pes.len()];
    for ((object, &pe), record) in (0..).zip(placement).zip(&database.objects) {
        for &(end, volume) in traffic.partners(object) {
            let other = end.pe(placement);
            if other != pe {
                crossing[pe as usize] += volume;
                if !record.migratable {
                    fixed_volumes[pe as usize] += volume;
                }
                // If the partner is an object, the loop counts the other end in the row of that object.
                if matches!(end, End::Pe(_)) {
                    crossing[other as usize] += volume;
                    fixed_volumes[other as usize] += volume;
                }
            }
        }
    }
    (crossing, fixed_volumes)
}

struct State<'a> {
    work: &'a Work<'a>,
    traffic: &'a Traffic,
    cost: MessageCost,
    limit_seconds: f64,
    placement: Vec<u32>,
    /// Seconds of each PE without its messages.
    work_seconds: Vec<f64>,
    /// The volume that each PE exchanges with other PEs.
    crossing: Vec<Volume>,
    /// Total seconds of each PE; PEs within the limit are open.
    pes: Pes<'a>,
    volumes: PeVolumes,
}

impl State<'_> {
    /// Seconds of `pe` with this work and this volume to other PEs.
    fn total(&self, pe: u32, work_seconds: f64, crossing: Volume) -> f64 {
        work_seconds + self.cost.seconds(crossing) / self.work.speed(pe)
    }

    /// Seconds of `pe` after it receives `object`; [`Self::volumes`] must be those of `object`.
    fn with(&self, pe: u32, object: u32) -> f64 {
        let crossing = self.crossing[pe as usize] - self.volumes.with(pe) + self.volumes.crossing(pe);
        self.total(pe, self.work_seconds[pe as usize] + self.work.seconds(object, pe), crossing)
    }
}

impl<'a> Rule<'a> for State<'a> {
    /// Seconds saved by the donor, then seconds of messages saved by the receiver.
    type Score = (u64, u64);

    fn best(&mut self, object: u32) -> Option<(Self::Score, u32)> {
        self.volumes.fill(self.traffic, object, &self.placement);
        let donor = self.placement[object as usize];
        let added_seconds = self.cost.seconds(self.volumes.with(donor));
        let saved_seconds = self.cost.seconds(self.volumes.crossing(donor));
        let relief =
            (self.work.load_seconds(object) + saved_seconds - added_seconds) / self.work.speed(donor);
        // The difference of two infinite times is NaN.
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
        let saved_by = |pe: u32| order(self.cost.seconds(self.volumes.with(pe)));
        let rank = |&pe: &u32| (std::cmp::Reverse(saved_by(pe)), order(self.with(pe, object)), pe);
        let receiver = self.volumes.pes.iter().copied().chain(roomiest).filter(takes).min_by_key(rank)?;
        Some(((order(relief), saved_by(receiver)), receiver))
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
        // A PE that receives an object it exchanges much with may become lighter.
        if self.pes.seconds[to] < before {
            self.pes.open(receiver);
        }
    }

    fn placement(&self) -> &[u32] {
        &self.placement
    }

    fn pes(&mut self) -> &mut Pes<'a> {
        &mut self.pes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::database::{Edge, arbitrary};

    use super::*;
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
    fn without_messages_the_placement_is_that_of_refine() {
        check("alpha_seconds=1", 2, &[(4.0, 0), (3.0, 0), (2.0, 0), (1.0, 0)], &[], &[1, 0, 0, 1]);
        check("alpha_seconds=1", 2, &[(3.0, 0), (3.0, 0), (3.0, 1), (3.0, 1)], &[], &[0, 0, 1, 1]);
    }

    #[test]
    fn messages_count_as_load_of_a_pe() {
        // PE 0 has 2 seconds of work and 4 seconds of messages, PE 1 only the messages.
        let objects = [(1.0, 0), (1.0, 0), (0.0, 1)];
        check("alpha_seconds=0", 2, &objects, &[edge(0, 2, 4)], &[1, 0, 1]);
        check("alpha_seconds=1", 2, &objects, &[edge(0, 2, 4)], &[1, 0, 1]);
        // The objects of PE 0 communicate with each other: moving one would add more messages than it removes work.
        check("alpha_seconds=1", 2, &objects, &[edge(0, 1, 4)], &[0, 0, 1]);
    }

    #[test]
    fn an_object_moves_to_the_pe_with_room_that_it_exchanges_most_with() {
        let objects = [(1.0, 0), (1.0, 0), (1.0, 0), (0.0, 1), (0.0, 2), (1.0, 3)];
        check("alpha_seconds=0.01", 4, &objects, &[], &[1, 2, 0, 1, 2, 3]);
        check("alpha_seconds=0.01", 4, &objects, &[edge(0, 4, 1), edge(1, 3, 2)], &[2, 1, 0, 1, 2, 3]);
    }

    /// Seconds of the heaviest available PE by definition: load divided by speed, background, and the cost of both
    /// ends of every message between PEs.
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
