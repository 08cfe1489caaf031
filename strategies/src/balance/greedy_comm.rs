//! `GreedyCommLB`: the heaviest object goes where it is done soonest, its messages included.
//!
//! Charm++'s strategy of that name (removed there in 2019). As in `GreedyLB` objects are placed heaviest
//! first, but time includes what messages that cross PEs cost (`MessageCost`), those with objects and PEs
//! that stay among them. An object goes where the time of the PE with it, and what its partners elsewhere
//! pay for its messages, is least: to a PE it talks to, if that saves more than the PE is behind the
//! lightest one. If messages cost nothing, this is `GreedyLB`.
//!
//! Charm++ counts messages only when both ends have their place. So the first objects seem light, and pay
//! when their partners come: where messages cost as much as work, PEs end with several times the average.
//! Here a message counts from the beginning, as one that crosses, and no more when both ends come together.
//! So work alone may be spread less evenly: with LeanMD on 512 PEs, where messages take four times as long as
//! work, its max/avg is 1.52 here and 1.31 in Charm++, and with messages no PE takes longer.
//! Charm++ also tries every PE for every object, and looks at no edge that ends at a PE; here only the PEs
//! of an object's partners and the lightest one can be best, which makes it O(n log n + E).

use std::cmp::Reverse;

use super::load::{Key, Pes, Work, order};
use super::traffic::{ALPHA, BETA, MessageCost, NOWHERE, PeVolumes, Traffic, Volume};
use crate::database::End;
use crate::registry::{Named, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `GreedyCommLB` for the registry.
pub const NAMED: Named = Named {
    name: "GreedyCommLB",
    aliases: &[],
    help: "GreedyLB where the time of a PE includes its messages to other PEs: nearly everything moves, what \
           talks much stays together. For a first step of a program with costly messages.",
    params: &[ALPHA, BETA],
    needs_communication: true,
    make: |params: &mut Params| Ok(Box::new(GreedyComm { cost: MessageCost::take(params)? })),
};

/// The strategy that gives the heaviest object to the PE that is done with it and its messages soonest.
#[derive(Clone, Copy, Debug)]
pub struct GreedyComm {
    /// What messages between PEs cost.
    pub cost: MessageCost,
}

impl Strategy for GreedyComm {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        Ok(Assignment::new(fill(database, &work, self.cost, best)))
    }
}

/// How the PE of an object is chosen: by the seconds at speed 1 that count where it talks to nobody.
type Choose = fn(&mut Pes, &PeVolumes, &Work, f64, MessageCost) -> Option<u32>;

/// Places every object that may move by `choose`, heaviest first, and gives the PE of each object.
fn fill(database: &Database, work: &Work, cost: MessageCost, choose: Choose) -> Vec<u32> {
    let traffic = Traffic::of(database);
    let mut totals = vec![Volume::default(); database.objects.len()];
    // Seconds of each PE without messages, and the messages, which all cross until both ends are together.
    let mut work_seconds = work.fixed_seconds.clone();
    let mut crossing = vec![Volume::default(); database.pes.len()];
    for (object, total) in (0..).zip(&mut totals) {
        for &(end, volume) in traffic.partners(object) {
            *total += volume;
            if let End::Pe(pe) = end {
                crossing[pe as usize] += volume;
            }
        }
    }
    let mut pes = work.pes();
    for (pe, volume) in (0..).zip(&crossing) {
        pes.delay(pe, cost.seconds(*volume) / work.speed(pe));
    }
    let mut put = |pes: &mut Pes, volumes: &PeVolumes, object: u32, pe: u32, seconds: f64| {
        let (at, spared) = (pe as usize, volumes.with(pe));
        work_seconds[at] += seconds;
        crossing[at] = crossing[at] + (totals[object as usize] - spared) - spared;
        let before = pes.seconds[at];
        pes.seconds[at] = work_seconds[at] + cost.seconds(crossing[at]) / work.speed(pe);
        // Partners that come together may spare the PE more than the object takes.
        if pes.seconds[at] < before && work.is_available(pe) {
            pes.open(pe);
        }
    };
    let mut placement = vec![NOWHERE; database.objects.len()];
    let mut volumes = PeVolumes::new(database.pes.len());
    for (object, record) in (0..).zip(&database.objects).filter(|(_, record)| !record.migratable) {
        volumes.fill(&traffic, object, &placement);
        put(&mut pes, &volumes, object, record.pe, 0.0);
        placement[object as usize] = record.pe;
    }
    let whole = |object: u32| work.load_seconds(object) + cost.seconds(totals[object as usize]);
    let mut objects = work.movable.clone();
    objects.sort_by_cached_key(|&object| (Reverse(order(whole(object))), object));
    for object in objects {
        volumes.fill(&traffic, object, &placement);
        let alone_seconds = whole(object) + cost.seconds(volumes.total);
        let pe = choose(&mut pes, &volumes, work, alone_seconds, cost).unwrap_or(work.home(object));
        // Its seconds are among those that come next; this counts it.
        pes.add(pe, 0.0);
        put(&mut pes, &volumes, object, pe, work.seconds(object, pe));
        placement[object as usize] = pe;
    }
    placement
}

/// The best PE for an object with that `volumes`.
fn best(
    pes: &mut Pes,
    volumes: &PeVolumes,
    work: &Work,
    alone_seconds: f64,
    cost: MessageCost,
) -> Option<u32> {
    // Of the PEs it does not talk to the lightest is best.
    let lightest = pes.soonest(alone_seconds);
    let partners = volumes.pes.iter().copied().filter(|&pe| work.is_available(pe));
    partners.chain(lightest).min_by_key(|&pe| rank(pes, volumes, pe, alone_seconds, cost))
}

/// Orders PEs, best first. Each message of the object to this PE costs neither end, and was counted thrice:
/// for the object, for its partner on this PE, and in what partners elsewhere pay.
fn rank(pes: &Pes, volumes: &PeVolumes, pe: u32, alone_seconds: f64, cost: MessageCost) -> (u64, Key) {
    pes.rank(pe, alone_seconds - 3.0 * cost.seconds(volumes.with(pe)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::database::{Edge, arbitrary};
    use crate::testing::{assign, database};

    fn edge(from: End, to: End, messages: u64, bytes: u64) -> Edge {
        Edge { from, to, messages, bytes }
    }

    #[track_caller]
    fn check(spec: &str, change: impl FnOnce(&mut Database), expected: &[u32]) {
        let mut database = database(2, &[(4.0, 0), (3.0, 0), (2.0, 1), (1.0, 1)]);
        let (a, d) = (End::Object(0), End::Object(3));
        database.edges = vec![edge(a, d, 2, 100), edge(d, a, 1, 0)];
        change(&mut database);
        assert_eq!(assign(spec, &database).map(|answer| answer.pe_of), Ok(expected.to_vec()), "{spec}");
    }

    #[test]
    fn an_object_joins_its_partner_when_messages_cost_more_than_waiting() {
        check("GreedyCommLB:alpha_seconds=0,beta_seconds_per_byte=0", |_| (), &[0, 1, 1, 0]);
        // On the other PE the messages of object 3 would take either PE 3 seconds.
        check("GreedyCommLB:alpha_seconds=1", |d| d.objects[2].load_seconds = 0.5, &[0, 1, 1, 0]);
        check("GreedyCommLB:alpha_seconds=0.1", |d| d.objects[2].load_seconds = 0.5, &[0, 1, 0, 1]);
        check("GreedyCommLB:beta_seconds_per_byte=0.1", |d| d.objects[2].load_seconds = 0.5, &[0, 1, 1, 0]);
    }

    #[test]
    fn what_stays_attracts_its_partners() {
        let pin = |d: &mut Database| {
            (d.objects[0].migratable, d.objects[0].load_seconds) = (false, 0.0);
            (d.objects[0].pe, d.objects[1].load_seconds) = (1, 0.0);
        };
        // PE 1 is busy, but object 0 is there.
        check(
            "GreedyCommLB:alpha_seconds=10",
            |d| {
                pin(d);
                d.pes[1].background_seconds = 9.0
            },
            &[1, 0, 0, 1],
        );
        check(
            "GreedyCommLB:alpha_seconds=0",
            |d| {
                pin(d);
                d.pes[1].background_seconds = 9.0
            },
            &[1, 0, 0, 0],
        );
        // A PE attracts those that talk to it.
        let to_pe = |d: &mut Database| d.edges = vec![edge(End::Object(0), End::Pe(1), 1, 0)];
        check("GreedyCommLB:alpha_seconds=1", to_pe, &[1, 0, 0, 1]);
    }

    #[test]
    fn a_cost_that_is_no_time_is_refused() {
        for spec in ["alpha_seconds=-1", "beta_seconds_per_byte=inf"] {
            let error =
                crate::registry::parse(&format!("GreedyCommLB:{spec}"), &[]).expect_err(spec).to_string();
            assert!(error.contains("a time in seconds is finite and not negative"), "{error}");
        }
    }

    /// The rule as it is told: every available PE is tried.
    fn slow(pes: &mut Pes, volumes: &PeVolumes, work: &Work, load: f64, cost: MessageCost) -> Option<u32> {
        work.available.iter().copied().min_by_key(|&pe| rank(pes, volumes, pe, load, cost))
    }

    proptest! {
        #[test]
        fn no_pe_is_better_than_the_one_it_finds(
            mut database in arbitrary::database(6, 1 << 40, false),
            alpha_seconds in prop::sample::select(vec![0.0, 1e-12, 1.0]),
        ) {
            database.pes[0].available = true;
            // PEs of about the same speed are one class, where the lightest is taken for the best.
            database.pes.iter_mut().for_each(|pe| pe.speed = if pe.speed > 2.0 { 2.0 } else { 1.0 });
            database.edges.iter_mut().for_each(|edge| edge.messages %= 8);
            let cost = MessageCost { alpha_seconds, beta_seconds_per_byte: 1e-12 };
            let available = (0..database.pes.len() as u32).filter(|&pe| database.pes[pe as usize].available);
            let work = Work::new(&database, available.collect());
            prop_assert_eq!(fill(&database, &work, cost, best), fill(&database, &work, cost, slow));
        }

        #[test]
        fn when_messages_cost_nothing_it_is_greedy(mut database in arbitrary::database(6, 1 << 40, true)) {
            database.pes[0].available = true;
            // Of PEs of about the same speed GreedyLB looks at the lightest only.
            database.pes.iter_mut().for_each(|pe| pe.speed = if pe.speed > 2.0 { 2.0 } else { 1.0 });
            let free = assign("GreedyCommLB:alpha_seconds=0,beta_seconds_per_byte=0", &database);
            prop_assert_eq!(free.map(|a| a.pe_of), assign("GreedyLB", &database).map(|a| a.pe_of));
        }
    }
}
