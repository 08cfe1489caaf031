//! What messages and migrations cost in a run: as its simulated machine has it, or measured on this computer.
//!
//! The measurement runs small programs of one and two PEs before a run whose load-balancing steps need it; it takes less
//! than 10 ms in an optimised build. Elements send each other messages, on one PE and on two, and migrate together. Each time is
//! the shortest of many, of one PE that does not wait for the other meanwhile. So it is the same while other programs use the cores, even
//! if both PEs share a core. What a message costs between processes is not measured: a process cannot ask another one for
//! it during a step. It counts as a message between PEs, plus [`PROCESS_SECONDS`] at both ends and the measured time to
//! encode or decode its bytes.

use crate::codec;
use crate::options::{Idle, Settings, Simulation};
use crate::prelude::*;
use crate::setup::Setup;
use cpu_time::ThreadTime;
use equipoise_model::costs::{Costs, EndCosts};
use std::time::{Duration, Instant, SystemTime};

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

/// The messages that an element sends at once, and those of them that are timed together.
const VOLLEY: u32 = 64;
const TIMED: u32 = 16;

/// The number of elements that migrate together.
const MIGRANTS: i32 = 1024;

/// The most repetitions, the fewest, and the time after which no more than these follow.
const MOST: u32 = 64;
const FEWEST: u32 = 3;
const LONGEST: Duration = Duration::from_millis(2);

/// Bytes that are encoded and decoded.
const ENCODED_BYTES: usize = 1 << 14;

/// What each end of a message between processes needs in addition: about half of what a message in a batch takes with
/// MPI on one computer.
const PROCESS_SECONDS: f64 = 3e-8;

/// The costs on this computer. An entry sends within its measured load, so all of a message on one PE is the receiver's.
fn measured(settings: &Settings, run: impl Fn(Config, Program) -> Option<f64>) -> Option<Costs> {
    let config = |pes| Config { bind: settings.bind.is_some(), ..Config::threads(pes) };
    // Idle PEs take no CPU time.
    let same_pe = run(config(1), messages)?;
    let between_pes = run(config(2), messages)?.max(same_pe);
    let migration = run(Config { idle: Idle::Park, ..config(2) }, migrations)?;
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
        // Between threads an element is handed over unchanged.
        migration: if settings.processes() > 1 { with_bytes(migration) } else { migration },
        ..Costs::default()
    })
}

/// An element that sends a volley of messages to the other element whenever it has received one.
#[derive(Serialize, Deserialize)]
struct Player {
    began: SystemTime,
    volleys: u32,
    received: u32,
    /// When the element received the first message of those that are timed.
    since: SystemTime,
    /// The shortest time to send a message, and to receive one.
    shortest: [f64; 2],
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Player {
    #[entry]
    fn volley(&mut self, cx: &Cx<Self>) {
        let [number] = cx.index();
        for _ in 0..VOLLEY / TIMED {
            let since = SystemTime::now();
            (0..TIMED).for_each(|_| cx.peer([1 - number]).ball());
            self.shortest[0] = self.shortest[0].min(seconds_since(since) / f64::from(TIMED));
        }
    }

    #[entry]
    fn ball(&mut self, cx: &Cx<Self>) {
        self.received += 1;
        match self.received % TIMED {
            1 => self.since = SystemTime::now(),
            0 => {
                let seconds = seconds_since(self.since) / f64::from(TIMED - 1);
                self.shortest[1] = self.shortest[1].min(seconds);
            }
            _ => {}
        }
        if self.received == VOLLEY {
            self.received = 0;
            self.volleys += 1;
            if cx.index() != [0] || !is_over(self.volleys, self.began) {
                return self.volley(cx);
            }
            cx.peers().stop();
        }
    }

    #[entry]
    fn stop(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().stopped(self.shortest);
    }

    #[entry(reduce = shorter)]
    fn stopped(&mut self, cx: &Cx<Self>, shortest: [f64; 2]) {
        self.done.exit(cx, shortest.iter().sum());
    }
}

/// The shorter times of each kind.
fn shorter(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0].min(b[0]), a[1].min(b[1])]
}

/// Whether a measurement with this number of repetitions is over.
fn is_over(repetitions: u32, began: SystemTime) -> bool {
    repetitions >= MOST || repetitions >= FEWEST && seconds_since(began) > LONGEST.as_secs_f64()
}

/// Measures the seconds to send and to receive a message.
fn messages(pe: &Setup, done: Exit<f64>) {
    let began = SystemTime::now();
    let player =
        |_| Player { began, volleys: 0, received: 0, since: began, shortest: [f64::INFINITY; 2], done };
    let players = pe.array([2], player);
    pe.main(move |pe| players.all(pe).volley());
}

/// An element that migrates to the other PE, again and again.
#[derive(Serialize, Deserialize)]
struct Migrant {
    began: SystemTime,
    /// The CPU time of the PE that the element left.
    left: Duration,
    rounds: u32,
    /// The least CPU time of a PE when elements left in the last round.
    first: Duration,
    shortest: f64,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Migrant {
    #[entry]
    fn leave(&mut self, cx: &Cx<Self>) {
        if is_timed(cx.index()) {
            self.left = cpu_time();
        }
        cx.migrate(Pe(1 - cx.here().0));
        cx.peer(cx.index()).landed();
    }

    #[entry]
    fn landed(&mut self, cx: &Cx<Self>) {
        let times =
            if is_timed(cx.index()) { [self.left, cpu_time()] } else { [Duration::MAX, Duration::ZERO] };
        cx.peer([0]).contribute().all_landed(times);
    }

    /// The elements have landed on the PE that they left in the round before.
    #[entry(reduce = first_and_last)]
    fn all_landed(&mut self, cx: &Cx<Self>, times: [Duration; 2]) {
        let [first, last] = times;
        if self.rounds > 0 {
            let both_ends = last.saturating_sub(self.first).as_secs_f64() / f64::from(MIGRANTS);
            self.shortest = self.shortest.min(both_ends);
        }
        self.first = first;
        self.rounds += 1;
        if is_over(self.rounds, self.began) {
            return self.done.exit(cx, self.shortest);
        }
        cx.peers().leave();
    }
}

/// Whether an element reads the CPU time, which takes as long as a migration.
fn is_timed([number]: [i32; 1]) -> bool {
    number % 32 == 0
}

/// The CPU time of this PE.
fn cpu_time() -> Duration {
    ThreadTime::now().as_duration()
}

fn first_and_last(a: [Duration; 2], b: [Duration; 2]) -> [Duration; 2] {
    [a[0].min(b[0]), a[1].max(b[1])]
}

/// Measures the CPU time per element that leaves a PE, and of one that arrives there.
fn migrations(pe: &Setup, done: Exit<f64>) {
    let began = SystemTime::now();
    let none = Duration::ZERO;
    let migrant = |_| Migrant { began, left: none, rounds: 0, first: none, shortest: f64::INFINITY, done };
    let migrants = pe.array_placed([MIGRANTS], |_| Pe(0), migrant);
    pe.main(move |pe| migrants.all(pe).leave());
}

/// The seconds since a time; infinite if the clock was set back meanwhile, so that they are not the shortest.
fn seconds_since(since: SystemTime) -> f64 {
    since.elapsed().map_or(f64::INFINITY, |elapsed| elapsed.as_secs_f64())
}

/// The seconds to encode and to decode a byte of a list of numbers.
fn seconds_per_byte() -> [f64; 2] {
    let numbers = vec![1.5f64; ENCODED_BYTES / 8];
    // As batches do, which encode into buffers that were used before.
    let mut bytes = Vec::new();
    let times = (0..MOST / 4).map(|_| {
        bytes.clear();
        let begin = Instant::now();
        if codec::encode_into(&numbers, &mut bytes).is_err() {
            return [0.0; 2];
        }
        let encoded = begin.elapsed();
        let decoded = codec::decode::<Vec<f64>>(&bytes).map(|numbers| numbers.len());
        let both = begin.elapsed();
        std::hint::black_box(decoded.is_ok());
        [encoded, both.saturating_sub(encoded)].map(|time| time.as_secs_f64() / bytes.len() as f64)
    });
    times.fold([f64::INFINITY; 2], shorter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Job;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// The longest measurement, in sorts.
    const MOST_SORTS: f64 = 10.0;

    fn run(config: Config, program: Program) -> Option<f64> {
        crate::try_run(config, program).ok().map(|report| report.result)
    }

    /// Measures the costs of messages on one PE and between PEs, and of migrations, 20 times while four other threads and the other tests
    /// use the cores. Returns those of each kind, from the lowest.
    fn measured_on_a_busy_machine() -> [Vec<f64>; 3] {
        let settings = Config::threads(2).resolve(&Job::default()).expect("the configuration is right");
        let is_over = AtomicBool::new(false);
        let both = |ends: EndCosts| ends.send_seconds + ends.receive_seconds;
        let mut times = Vec::new();
        std::thread::scope(|scope| {
            let spin = || {
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            };
            (0..4).for_each(|_| _ = scope.spawn(spin));
            for _ in 0..20 {
                let costs = of_run(&settings, run).expect("threads can be measured");
                times.push([costs.same_pe, costs.same_process, costs.migration].map(both));
                assert_eq!((costs.pes_per_process, costs.links), (2, None));
                assert!(both(costs.same_pe) > 0.0, "{costs:?}");
                assert!(both(costs.same_pe) <= both(costs.same_process), "{costs:?}");
                assert!(both(costs.same_process) < both(costs.other_process), "{costs:?}");
                costs.check().expect("all costs are times");
            }
            is_over.store(true, Relaxed);
        });
        [0, 1, 2].map(|kind| {
            let mut of_kind: Vec<f64> = times.iter().map(|times| times[kind]).collect();
            of_kind.sort_by(f64::total_cmp);
            of_kind
        })
    }

    /// Costs are the same within a factor of 2 in 18 of 20 measurements, and within a factor of 4 in all. Ten attempts of a
    /// second, because a virtual computer may become twice as slow for some seconds.
    #[test]
    fn all_costs_are_plausible_and_stable_on_a_busy_machine() {
        let is_stable = |times: &Vec<f64>| {
            println!("{times:?} s");
            times[18] < 2.0 * times[1] && times[19] < 4.0 * times[0] && times[19] < 1e-4
        };
        assert!((0..10).any(|_| measured_on_a_busy_machine().iter().all(is_stable)));
    }

    /// Seconds to sort numbers, which a computer that is slow or shared takes longer for, too.
    fn seconds_of_a_sort() -> f64 {
        let mut numbers: Vec<u64> = (0..300_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let begin = Instant::now();
        numbers.sort_unstable();
        let seconds = begin.elapsed().as_secs_f64();
        std::hint::black_box(numbers);
        seconds
    }

    /// Prints the times: on free cores the measurement takes less than 10 ms in an optimised build. The limit counts sorts.
    #[test]
    fn the_measurement_takes_little_time() {
        let settings = Config::threads(2).resolve(&Job::default()).expect("the configuration is right");
        let pairs = (0..20).map(|_| {
            let unit = seconds_of_a_sort();
            let begin = Instant::now();
            of_run(&settings, run).expect("threads can be measured");
            [begin.elapsed().as_secs_f64(), unit]
        });
        let mut pairs: Vec<[f64; 2]> = pairs.collect();
        pairs.sort_by(|a, b| (a[0] / a[1]).total_cmp(&(b[0] / b[1])));
        println!("a measurement and a sort take {pairs:?} s");
        let [seconds, unit] = pairs[10];
        assert!(seconds <= MOST_SORTS * unit, "{seconds} s, a sort {unit} s");
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
