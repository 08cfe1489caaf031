//! Benchmarks of element creation, of whole load-balancing steps, of stencils, and of a program that only communicates.

use equipoise::prelude::*;
use equipoise::{Checkpoints, Report, reduce};
use equipoise_apps::cells::Cells;
use equipoise_apps::stencil::{Extent, Rules};
use equipoise_apps::stencil3d;
use std::hint::black_box;
use std::time::Instant;

/// An element with little state.
#[derive(Serialize, Deserialize)]
pub struct Small {
    data: Vec<u8>,
    numbers: [u32; 4],
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Small {
    #[entry]
    fn stop(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, f64::from(self.numbers[0]) + self.data.len() as f64);
    }

    #[entry]
    fn count(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().counted(1.0);
    }

    #[entry(reduce = reduce::sum)]
    fn counted(&mut self, cx: &Cx<Self>, elements: f64) {
        self.done.exit(cx, elements);
    }
}

/// Creates elements, reaches all with a broadcast, and counts them with a reduction; returns the ns per element, with the start
/// and the end of the threads.
pub fn create_and_count(config: Config, elements: i32) -> f64 {
    let start = Instant::now();
    let report = equipoise::run(config, |pe, done| {
        let array = pe.array([elements], |[n]| Small { data: Vec::new(), numbers: [n as u32; 4], done });
        pe.main(move |pe| array.all(pe).count());
    });
    assert_eq!(report.result, f64::from(elements), "all elements take part");
    start.elapsed().as_nanos() as f64 / f64::from(elements)
}

/// The sides of the space of [`stencil`] in blocks, and of a block in cells.
const SIDES: [i32; 3] = [8; 3];

/// Jacobi's method on 64^3 cells in 512 blocks; returns the ms of an iteration.
pub fn stencil(config: Config, iterations: u32) -> f64 {
    let rules = Rules { iterations, lb_every: 0, ..Rules::default() };
    let options = stencil3d::Options { blocks: Extent(SIDES), cells: Extent(SIDES), rules };
    let start = Instant::now();
    black_box(stencil3d::solve(config, &options).result);
    start.elapsed().as_secs_f64() * 1e3 / f64::from(iterations)
}

/// The updates of cells in an iteration of [`stencil`] on one thread, without messages, in ms.
pub fn kernel(iterations: u32) -> f64 {
    let mut blocks: Vec<_> =
        (0..SIDES.iter().product()).map(|_| Cells::new(SIDES, |[x, ..]| x as f64)).collect();
    let start = Instant::now();
    for _ in 0..iterations {
        for block in &mut blocks {
            black_box(block.relax(1));
        }
    }
    start.elapsed().as_secs_f64() * 1e3 / f64::from(iterations)
}

/// Set for the process that [`start_to_exit`] starts.
const HELLO: &str = "EQUIPOISE_BENCH_HELLO";

/// In the process that [`start_to_exit`] starts: runs a program of one message on two threads, and ends the process.
pub fn hello_if_asked() {
    if std::env::var_os(HELLO).is_some() {
        equipoise::run(Config::threads(2), |pe, done| {
            let array = pe.array([2], |[n]| Small { data: Vec::new(), numbers: [n as u32; 4], done });
            pe.main(move |pe| array.at(pe, [1]).stop());
        });
        std::process::exit(0);
    }
}

/// The time from the start of a process to its exit, in ms: of a program of one message, or of `true` without one.
pub fn start_to_exit(is_ours: bool) -> f64 {
    let program = if is_ours { std::env::current_exe().expect("Linux knows it") } else { "true".into() };
    let start = Instant::now();
    let status = std::process::Command::new(program).env(HELLO, "1").status().expect("it can be started");
    assert!(status.success(), "{status}");
    start.elapsed().as_secs_f64() * 1e3
}

/// Creates elements on one PE; returns ns per element, and bytes per element without the element itself.
pub fn create(elements: i32) -> (f64, f64) {
    let before = resident_bytes();
    let mut taken = (0.0, 0.0);
    let cell = std::sync::Mutex::new(&mut taken);
    equipoise::run(Config::threads(1), |pe, done| {
        let start = Instant::now();
        let array = pe.array([elements], |[n]| Small { data: Vec::new(), numbers: [n as u32; 4], done });
        let nanoseconds = start.elapsed().as_nanos() as f64 / f64::from(elements);
        let bytes = (resident_bytes() - before) / f64::from(elements) - size_of::<Small>() as f64;
        **cell.lock().expect("one PE") = (nanoseconds, bytes);
        pe.main(move |pe| array.at(pe, [0]).stop());
    });
    taken
}

/// The resident memory of this process.
pub fn resident_bytes() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<f64>().ok());
    pages.unwrap_or(f64::NAN) * 4096.0
}

/// An element that only takes part in load balancing.
#[derive(Serialize, Deserialize)]
pub struct Balanced {
    steps: u32,
    epoch: Shared<Instant>,
    done: Exit<f64>,
}

#[chare(index = [i32; 1], sync)]
impl Balanced {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        let [me] = cx.index();
        if self.steps == 0 {
            if me == 0 {
                self.done.exit(cx, self.epoch.get(cx).elapsed().as_secs_f64());
            }
            return;
        }
        self.steps -= 1;
        // In each step, different elements are heavy, so that some elements always migrate.
        let heavy = (me + self.steps as i32 * 37) % 512 < 64;
        cx.charge(if heavy { 2e-5 } else { 1e-5 });
        cx.at_sync().step();
    }
}

/// Runs `steps` load-balancing steps; the result is the seconds of all steps, from arrival to resumption.
pub fn balance(config: Config, elements: i32, steps: u32) -> Report<f64> {
    equipoise::run(config, |pe, done| {
        let epoch = pe.shared(Instant::now);
        let array = pe.array([elements], |_| Balanced { steps, epoch, done });
        pe.main(move |pe| array.all(pe).step());
    })
}

/// An element that exchanges one message with each of its neighbors per round.
#[derive(Serialize, Deserialize)]
pub struct Communicator {
    received: u32,
    rounds_left: u32,
    done: Exit<u32>,
}

/// The number of neighbors on either side.
const NEIGHBORS_PER_SIDE: i32 = 5;

#[chare(index = [i32; 1])]
impl Communicator {
    #[entry]
    fn begin_round(&mut self, cx: &Cx<Self>) {
        let ([me], [all]) = (cx.index(), cx.shape());
        for by in (1..=NEIGHBORS_PER_SIDE).flat_map(|by| [by, -by]) {
            // The large odd stride puts neighbors on distant PEs.
            cx.peer([(me + by * 257).rem_euclid(all)]).receive([0; 16]);
        }
    }

    #[entry]
    fn receive(&mut self, cx: &Cx<Self>, _words: [u64; 16]) {
        self.received += 1;
        if self.received == 2 * NEIGHBORS_PER_SIDE as u32 {
            (self.received, self.rounds_left) = (0, self.rounds_left - 1);
            match self.rounds_left {
                0 => cx.peers().contribute().finished(1),
                _ => self.begin_round(cx),
            }
        }
    }

    #[entry(reduce = u32::wrapping_add)]
    fn finished(&mut self, cx: &Cx<Self>, count: u32) {
        self.done.exit(cx, count);
    }
}

/// Runs one element per PE of a simulated machine, with about `messages` messages in all. Returns the wall-clock seconds
/// per message, and the report.
pub fn communicate(config: Config, pes: i32, messages: usize) -> (f64, Report<u32>) {
    let rounds = (messages / (pes as usize * 2 * NEIGHBORS_PER_SIDE as usize)).max(1) as u32;
    let start = Instant::now();
    let report = equipoise::run(config, |pe, done| {
        let array = pe.array([pes], |_| Communicator { received: 0, rounds_left: rounds, done });
        pe.main(move |pe| array.all(pe).begin_round());
    });
    let messages = f64::from(rounds) * f64::from(pes) * f64::from(2 * NEIGHBORS_PER_SIDE);
    (start.elapsed().as_secs_f64() / messages, report)
}

/// What [`collectives`] repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Collective {
    /// A message from PE 0 to the PE that is farthest away on a torus, and one back; counts as two.
    Message,
    /// A broadcast, to the last PE.
    Broadcast,
    /// A reduction whose result is broadcast.
    Reduction,
    /// A sync point without load balancing, from arrival to resumption.
    SyncPoint,
    /// A load-balancing step, from arrival to resumption, that migrates every element.
    Step,
}

/// An element that takes part in collectives.
#[derive(Serialize, Deserialize)]
pub struct Member {
    collective: Collective,
    left: u32,
    farthest: i32,
    done: Exit<()>,
}

#[chare(index = [i32; 1], sync)]
impl Member {
    #[entry]
    fn next(&mut self, cx: &Cx<Self>) {
        let [me] = cx.index();
        if self.left == 0 {
            if me == 0 {
                self.done.exit(cx, ());
            }
            return;
        }
        self.left -= 1;
        match self.collective {
            Collective::Message if me == 0 => cx.peer([self.farthest]).reply(),
            Collective::Broadcast if me == 0 => cx.peers().at_quiescence().next(),
            Collective::Message | Collective::Broadcast => {}
            Collective::Reduction => cx.peers().contribute().combined(1),
            Collective::SyncPoint | Collective::Step => cx.at_sync().next(),
        }
    }

    #[entry]
    fn reply(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).next();
    }

    #[entry(reduce = u32::wrapping_add)]
    fn combined(&mut self, cx: &Cx<Self>, _elements: u32) {
        self.next(cx);
    }
}

/// The virtual seconds of a run with `times` collectives of one element per PE of a torus with these sides.
pub fn collectives(config: Config, [x, y, z]: [i32; 3], collective: Collective, times: u32) -> f64 {
    let balancer = if collective == Collective::Step { vec!["RotateLB".to_owned()] } else { Vec::new() };
    // Elements wait at sync points for checkpoints, too; none is saved.
    let folder = (collective == Collective::SyncPoint).then(|| tempfile::tempdir().expect("a folder"));
    let checkpoint = folder.as_ref().map(|folder| folder.path().into());
    let checkpoints = Checkpoints { checkpoint, ..Checkpoints::default() };
    let report = equipoise::run(Config { balancer, checkpoints, ..config }, |pe, done| {
        // The first dimension varies fastest.
        let farthest = x / 2 + x * (y / 2 + y * (z / 2));
        let left = if collective == Collective::Message { times / 2 } else { times };
        let array = pe.array([x * y * z], |_| Member { collective, left, farthest, done });
        pe.main(move |pe| array.all(pe).next());
    });
    report.machine.map_or(f64::NAN, |machine| machine.seconds)
}
