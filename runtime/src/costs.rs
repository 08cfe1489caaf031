//! What messages and migrations cost in a run: as its simulated machine has it, or measured on this computer.
//!
//! The measurement runs small programs of one and two PEs before a run whose load-balancing steps need it; it takes a few
//! milliseconds. Elements send each other messages, on one PE and on two, and migrate together. What a message costs
//! between processes is not measured: a process cannot ask another one for it during a step. It counts as a message
//! between PEs, plus [`PROCESS_SECONDS`] at both ends and the measured time to encode or decode its bytes.

use crate::codec;
use crate::options::{Settings, Simulation};
use crate::prelude::*;
use crate::setup::Setup;
use equipoise_model::costs::{Costs, EndCosts};
use std::time::{Instant, SystemTime};

/// A program that measures itself, and ends with seconds.
pub(crate) type Program = fn(&Setup, Exit<f64>);

/// The costs of a run; `run` runs a program. None where there is no time, and where the measurement failed.
pub(crate) fn of_run(settings: &Settings, run: impl Fn(Config, Program) -> Option<f64>) -> Option<Costs> {
    let costs = match &settings.simulation {
        Some(simulation) => of_machine(simulation),
        None if settings.is_simulated() => return None,
        None => measured(settings, run)?,
    };
    Some(Costs { pes_per_process: settings.local_pes(), ..costs })
}

/// The costs on a simulated machine. A PE sends its migrating element, and receives the news that it landed.
fn of_machine(simulation: &Simulation) -> Costs {
    let (overhead, delivery) = (simulation.overhead, simulation.delivery);
    let ends =
        |send_seconds, receive_seconds| EndCosts { send_seconds, receive_seconds, ..EndCosts::default() };
    let remote = ends(overhead, overhead + delivery);
    let both_ways = 2.0 * overhead + delivery;
    Costs {
        same_pe: ends(0.0, delivery),
        same_process: remote,
        other_process: remote,
        migration: ends(both_ways, both_ways),
        links: simulation.limits,
        ..Costs::default()
    }
}

/// The number of messages that the measurement sends in each direction, and of those in flight.
const MESSAGES: u32 = 2000;
const IN_FLIGHT: u32 = 32;

/// The number of elements that migrate together.
const MIGRANTS: i32 = 64;

/// Bytes that are encoded and decoded.
const ENCODED_BYTES: usize = 1 << 16;

/// What each end of a message between processes needs in addition: about half of what a message in a batch takes with
/// MPI on one computer.
const PROCESS_SECONDS: f64 = 3e-8;

/// The costs on this computer. An entry sends within its measured load, so all of a message on one PE is the receiver's.
fn measured(settings: &Settings, run: impl Fn(Config, Program) -> Option<f64>) -> Option<Costs> {
    let config = |pes| Config { bind: settings.bind.is_some(), ..Config::threads(pes) };
    // Both elements are on the PE: it handles the messages of both.
    let same_pe = run(config(1), messages)? / 2.0;
    let between_pes = run(config(2), messages)?.max(same_pe);
    let migration = run(config(2), migrations)?;
    let [encode, decode] = seconds_per_byte();
    let of_pe = EndCosts { receive_seconds: same_pe, ..EndCosts::default() };
    let more = (between_pes - same_pe) / 2.0;
    let same_process =
        EndCosts { send_seconds: more, receive_seconds: same_pe + more, ..EndCosts::default() };
    let with_bytes = |ends: EndCosts| EndCosts {
        send_seconds: ends.send_seconds + PROCESS_SECONDS,
        send_seconds_per_byte: encode,
        receive_seconds: ends.receive_seconds + PROCESS_SECONDS,
        receive_seconds_per_byte: decode,
    };
    let half = migration / 2.0;
    let migration = EndCosts { send_seconds: half, receive_seconds: half, ..EndCosts::default() };
    Some(Costs {
        same_pe: of_pe,
        same_process,
        other_process: with_bytes(same_process),
        // Between threads an element is handed over as it is.
        migration: if settings.processes() > 1 { with_bytes(migration) } else { migration },
        ..Costs::default()
    })
}

/// An element that answers every message with a message. The first one begins, and counts.
#[derive(Serialize, Deserialize)]
struct Player {
    left: u32,
    since: SystemTime,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Player {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        self.since = SystemTime::now();
        (0..IN_FLIGHT).for_each(|_| cx.peer([1 - cx.index()[0]]).ball());
    }

    #[entry]
    fn ball(&mut self, cx: &Cx<Self>) {
        let [number] = cx.index();
        if number == 0 {
            // Messages that are still in flight arrive after the last one that counts.
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            if left == 0 {
                return self.done.exit(cx, seconds_since(self.since) / f64::from(MESSAGES));
            }
        }
        cx.peer([1 - number]).ball();
    }
}

/// Measures the seconds from the first message to the last of those that an element receives, per message.
fn messages(pe: &Setup, done: Exit<f64>) {
    let players = pe.array([2], |_| Player { left: MESSAGES, since: SystemTime::UNIX_EPOCH, done });
    pe.main(move |pe| players.at(pe, [0]).begin());
}

/// An element that migrates to the other PE.
#[derive(Serialize, Deserialize)]
struct Migrant {
    since: SystemTime,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Migrant {
    #[entry]
    fn leave(&mut self, cx: &Cx<Self>) {
        self.since = SystemTime::now();
        cx.migrate(Pe(1));
        cx.peer(cx.index()).landed();
    }

    #[entry]
    fn landed(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().all_landed(self.since);
    }

    #[entry(reduce = std::cmp::min)]
    fn all_landed(&mut self, cx: &Cx<Self>, first: SystemTime) {
        self.done.exit(cx, seconds_since(first) / f64::from(MIGRANTS));
    }
}

/// Measures the seconds per element until elements that migrate together have arrived.
fn migrations(pe: &Setup, done: Exit<f64>) {
    let migrant = |_| Migrant { since: SystemTime::UNIX_EPOCH, done };
    let migrants = pe.array_placed([MIGRANTS], |_| Pe(0), migrant);
    pe.main(move |pe| migrants.all(pe).leave());
}

fn seconds_since(since: SystemTime) -> f64 {
    since.elapsed().map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// The seconds to encode and to decode a byte of a list of numbers.
fn seconds_per_byte() -> [f64; 2] {
    let numbers = vec![1.5f64; ENCODED_BYTES / 8];
    let begin = Instant::now();
    let Ok(bytes) = codec::encode(&numbers) else { return [0.0; 2] };
    let encoded = begin.elapsed();
    let decoded = codec::decode::<Vec<f64>>(&bytes).map(|numbers| numbers.len());
    let both = begin.elapsed();
    std::hint::black_box(decoded.is_ok());
    [encoded, both.saturating_sub(encoded)].map(|time| time.as_secs_f64() / bytes.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Job;

    fn run(config: Config, program: Program) -> Option<f64> {
        crate::try_run(config, program).ok().map(|report| report.result)
    }

    #[test]
    fn the_measurement_takes_little_time_and_all_costs_are_plausible() {
        let settings = Config::threads(2).resolve(&Job::default()).expect("the configuration is right");
        let mut fastest = f64::INFINITY;
        for _ in 0..5 {
            let begin = Instant::now();
            let costs = of_run(&settings, run).expect("threads can be measured");
            fastest = fastest.min(begin.elapsed().as_secs_f64());
            assert_eq!((costs.pes_per_process, costs.links), (2, None));
            assert!(costs.same_pe.receive_seconds > 0.0, "{costs:?}");
            let both = |ends: EndCosts| ends.send_seconds + ends.receive_seconds;
            assert!(both(costs.same_pe) <= both(costs.same_process), "{costs:?}");
            assert!(both(costs.same_process) < both(costs.other_process), "{costs:?}");
            assert!(both(costs.same_process) < 1e-3, "{costs:?}");
            assert!((1e-9..1e-2).contains(&both(costs.migration)), "{costs:?}");
            costs.check().expect("all costs are times");
        }
        // Other tests run at the same time.
        assert!(fastest < 0.1, "the measurement takes {fastest} s");
    }

    #[test]
    fn a_simulated_machine_has_the_costs_of_its_flags() {
        let mut config = Config::on_machine("torus:4", "packet:injection=1e8");
        (config.machine.overhead, config.machine.delivery) = (1e-6, 1e-7);
        let settings = config.resolve(&Job::default()).expect("the configuration is right");
        let costs = of_run(&settings, run).expect("the machine has costs");
        assert_eq!((costs.same_pe.send_seconds, costs.same_pe.receive_seconds), (0.0, 1e-7));
        assert_eq!((costs.same_process.send_seconds, costs.same_process.receive_seconds), (1e-6, 1.1e-6));
        let links = costs.links.expect("packets share links");
        assert_eq!((links.bandwidth, links.injection, links.ejection), (None, Some(1e8), Some(1e8)));
        // Without a network there is no time.
        let settings = Config::simulated(2, 0).resolve(&Job::default()).expect("the configuration is right");
        assert_eq!(of_run(&settings, run), None);
    }
}
