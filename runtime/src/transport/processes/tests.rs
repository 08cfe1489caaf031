//! Simulated processes: quiescence, lost batches, flow control.

use super::super::engine::flow::WINDOW_BYTES;
use super::super::engine::waves::{MISTAKE, Mistake};
use super::*;
use crate::batches::{Post, orders};
use crate::desk::CONGESTED_BYTES;
use crate::node::Failure;
use crate::options::Job;
use crate::order::PeOrder;
use crate::prelude::*;
use equipoise_model::testing::{at_full_size, is_full_size, seeds};
use std::marker::PhantomData;

/// A process whose PE passes tokens on to others until they have no hops left.
struct Toy {
    node: Arc<Node>,
    engine: Engine,
    post: Post,
    /// The hops of the tokens that are here.
    tokens: Vec<u32>,
    rests: bool,
}

impl Toy {
    fn new(settings: &Arc<Settings>, process: u32) -> Self {
        let node = Arc::new(Node::new(Arc::clone(settings), process));
        let desk = Arc::new(Desk::new(settings.processes()));
        let mut engine = Engine::new(Arc::clone(&node), Arc::clone(&desk), process);
        engine.is_set_up(vec!["a toy".into()]);
        let post = Post::new(desk, vec![false; settings.pes].into(), 1, false);
        Toy { node, engine, post, tokens: Vec::new(), rests: false }
    }

    /// Passes a token on, or rests if none is here. A hasty PE sometimes rests long before it sends its batch.
    fn step(&mut self, network: &Network, alive: &Cell<u32>, is_hasty: bool) {
        if self.rests && !self.tokens.is_empty() {
            self.node.quiescence.resume(0);
            self.rests = false;
        }
        let Some(hops) = self.tokens.pop() else {
            if !is_hasty || network.sample(500) == 0 {
                self.post.dispatch();
            }
            if !std::mem::replace(&mut self.rests, true) {
                self.node.quiescence.rest(0);
            }
            return;
        };
        if hops == 0 {
            return alive.set(alive.get() - 1);
        }
        let others = network.processes as usize - 1;
        let to = (self.node.first + 1 + network.sample(others) as u32) % network.processes;
        self.post.add(to, None, &(hops - 1), None).expect("a number can be encoded");
        if is_hasty && self.tokens.is_empty() && network.sample(4) == 0 {
            self.rests = true;
            return self.node.quiescence.rest(0);
        }
        self.post.dispatch();
    }
}

/// How a run of toys ends.
#[derive(Debug, PartialEq)]
enum End {
    /// Quiescence was found while this number of tokens had hops left.
    Quiet(u32),
    Failed(String),
}

/// Sends tokens between processes until one waits for quiescence and it is found.
fn run(seed: u64, loses: Option<u64>, is_hasty: bool) -> End {
    let processes = 2 + seed as usize % 7;
    let config = Config { pes_per_process: Some(1), ..Config::simulated(processes, seed) };
    let settings = Arc::new(config.resolve(&Job::default()).expect("the flags are valid"));
    let network = Network::new(settings.processes(), seed, loses);
    let mut toys: Vec<Toy> = (0..settings.processes()).map(|at| Toy::new(&settings, at)).collect();
    let alive = Cell::new(4);
    toys[seed as usize % processes].tokens = (0..4).map(|_| 1 + network.sample(30) as u32).collect();
    toys[0].node.quiescence.wait();
    loop {
        let at = network.sample(processes);
        let Toy { node, engine, post, tokens, .. } = &mut toys[at];
        if let Some(Failure::Program(sentence)) = &node.outcome.lock().failure {
            return End::Failed(sentence.clone());
        }
        let mut quiet = false;
        let mut give = |_: u32, order: PeOrder| match order {
            PeOrder::Batch { from_process, bytes } => {
                let hops = orders(&bytes).map(|order| {
                    crate::codec::decode::<u32>(order.expect("a whole batch").1).expect("a token")
                });
                tokens.extend(hops);
                post.desk().executed(from_process, bytes);
            }
            _ => quiet = true,
        };
        engine.turn(&mut Port { network: &network, me: at as u32 }, &mut give);
        if quiet {
            return End::Quiet(alive.get());
        }
        if engine.phase() == Phase::Running {
            toys[at].step(&network, &alive, is_hasty);
        }
    }
}

#[test]
fn quiescence_is_found_when_no_message_is_in_flight() {
    for seed in seeds(300) {
        assert_eq!(run(seed, None, false), End::Quiet(0), "seed {seed}");
    }
}

#[test]
fn a_lost_batch_is_noticed() {
    for seed in seeds(60) {
        let End::Failed(sentence) = run(seed, Some(seed % 4), false) else { panic!("seed {seed}") };
        assert!(sentence.starts_with("1 batch of messages between processes was lost"), "{sentence}");
    }
}

#[test]
fn a_pe_that_rests_with_a_message_in_hand_shows_as_false_quiescence() {
    assert!((0..100).any(|seed| matches!(run(seed, None, true), End::Quiet(1..))));
}

/// Whether a run of a seed below 300 finds quiescence while tokens are on the way, if the waves have this mistake.
fn is_noticed(mistake: Mistake) -> bool {
    MISTAKE.set(Some(mistake));
    (0..300).any(|seed| matches!(run(seed, None, false), End::Quiet(1..)))
}

#[test]
fn one_wave_instead_of_two_shows_as_false_quiescence() {
    assert!(is_noticed(Mistake::OneWave));
}

#[test]
fn waves_that_do_not_compare_sent_and_received_batches_show_as_false_quiescence() {
    assert!(is_noticed(Mistake::CountsMayDiffer));
}

/// An element that passes a number around.
#[derive(Serialize, Deserialize)]
struct Runner {
    done: Exit<i32>,
}

#[chare(index = [i32; 1])]
impl Runner {
    #[entry]
    fn run(&mut self, cx: &Cx<Self>, hops: i32) {
        if hops == 0 {
            return self.done.exit(cx, hops);
        }
        cx.peer([(cx.index()[0] + 1) % cx.shape()[0]]).run(hops - 1);
    }
}

#[test]
fn a_lost_batch_of_a_program_ends_the_run() {
    for seed in seeds(48) {
        let (processes, local) = (2 + seed as usize % 3, 1 + seed as usize % 2);
        let config = Config { pes_per_process: Some(local), ..Config::simulated(processes * local, seed) };
        let settings = Arc::new(config.resolve(&Job::default()).expect("the flags are valid"));
        let setup = |pe: PeCx| {
            Setup::run(pe, |pe| {
                let done = Exit(PhantomData);
                let runners = pe.array([pe.pes() as i32], |_| Runner { done });
                pe.main(move |pe| runners.at(pe, [0]).run(40));
            })
        };
        let network = |loses| Network::new(settings.processes(), seed, loses);
        let outcome = run_on(&settings, &setup, &network(None));
        assert!(outcome.failure.is_none(), "seed {seed}: {:?}", outcome.failure);
        let outcome = run_on(&settings, &setup, &network(Some(seed % 7)));
        let Some(Failure::Program(sentence)) = outcome.failure else { panic!("seed {seed}") };
        assert!(sentence.starts_with("1 batch of messages between processes was lost"), "{sentence}");
    }
}

/// A process that passes on what it receives, or is slow to receive.
struct Station {
    engine: Engine,
    post: Post,
    /// Batches that have arrived, with their senders.
    arrived: VecDeque<(u32, Vec<u8>)>,
    steps: usize,
}

/// What stations do with tokens, each of which has a number of hops left and some bytes.
#[derive(Clone, Copy, Debug)]
enum Flood {
    /// The first station sends tokens as long as it may, the second sends four copies of each to the third, which is slow.
    Pipeline,
    /// Every station sends many tokens at once, and passes on what arrives.
    Circle,
    /// The first station sends tokens as long as none of them waits, and is slow with the answers of the second.
    Echo,
}

const TOKENS: usize = 400;
type Token = (u32, Vec<u8>);

impl Station {
    /// The PE of station `me` executes a batch, or sends; returns the number of tokens that end here.
    fn step(&mut self, flood: Flood, me: u32, left: &mut usize) -> usize {
        let token = |hops: u32| -> Token { (hops, vec![7; 500]) };
        let send =
            |to: u32, hops| self.post.add(to, None, &token(hops), None).expect("a token can be encoded");
        let mut ended = 0;
        let is_echo = matches!(flood, Flood::Echo);
        let waits = if is_echo { self.post.desk().unsent_bytes() > 0 } else { self.post.is_congested() };
        let may_send = *left > 0 && !waits;
        self.steps += 1;
        let is_busy = is_echo && me == 0 && self.steps % 8 != 0;
        let arrived = if is_busy { None } else { self.arrived.pop_front() };
        let has_executed = arrived.is_some();
        if let Some((from, batch)) = arrived {
            for order in orders(&batch) {
                let (_, bytes) = order.expect("a whole batch");
                let (hops, _): Token = crate::codec::decode(bytes).expect("a token");
                match (hops, flood) {
                    (0, _) => ended += 1,
                    (_, Flood::Pipeline) => (0..4).for_each(|_| send(2, hops - 1)),
                    (_, Flood::Circle) => send((me + 1) % 3, hops - 1),
                    (_, Flood::Echo) => send(0, hops - 1),
                }
            }
            self.post.desk().executed(from, batch);
        }
        if may_send && (is_echo || !has_executed) {
            match flood {
                Flood::Pipeline | Flood::Echo => {
                    *left -= 1;
                    send(1, 1);
                }
                // Like an entry method, which nothing stops.
                Flood::Circle => (0..std::mem::take(left)).for_each(|_| send((me + 1) % 3, 10)),
            }
        }
        self.post.dispatch();
        ended
    }
}

/// Runs stations until all tokens have ended.
fn flood(seed: u64, flood: Flood) -> [Station; 3] {
    let config = Config { pes_per_process: Some(1), ..Config::simulated(3, seed) };
    let settings = Arc::new(config.resolve(&Job::default()).expect("the flags are valid"));
    let network = Network { is_slow: vec![false; 9], ..Network::new(3, seed, None) };
    let station = |me| {
        let desk = Arc::new(Desk::new(3));
        let node = Arc::new(Node::new(Arc::clone(&settings), me));
        let mut engine = Engine::new(node, Arc::clone(&desk), me);
        engine.is_set_up(vec!["a station".into()]);
        let post = Post::new(desk, [false; 3].into(), 1, false);
        Station { engine, post, arrived: VecDeque::new(), steps: 0 }
    };
    let mut stations = [0, 1, 2].map(station);
    let (mut left, mut under_way) = match flood {
        Flood::Pipeline => ([TOKENS, 0, 0], 4 * TOKENS),
        Flood::Circle => ([TOKENS; 3], 3 * TOKENS),
        Flood::Echo => ([4 * TOKENS, 0, 0], 4 * TOKENS),
    };
    let mut steps = 0;
    while under_way > 0 {
        steps += 1;
        assert!(steps < 2_000_000, "seed {seed}, {flood:?}: {under_way} tokens do not arrive");
        let at = network.sample(3);
        let Station { engine, arrived, .. } = &mut stations[at];
        if network.sample(2) == 0 {
            engine.turn(&mut Port { network: &network, me: at as u32 }, &mut |_, order| {
                if let PeOrder::Batch { from_process, bytes } = order {
                    arrived.push_back((from_process, bytes));
                }
            });
        } else if engine.phase() == Phase::Running && (at != 2 || network.sample(8) == 0) {
            under_way -= stations[at].step(flood, at as u32, &mut left[at]);
        }
    }
    stations
}

/// The most bytes that waited in each station.
fn peaks(stations: &[Station; 3]) -> [u64; 3] {
    stations.each_ref().map(|station| station.post.desk().peak_unsent_bytes())
}

#[test]
fn what_waits_for_a_slow_process_is_bounded() {
    for seed in seeds(32) {
        let peaks = peaks(&flood(seed, Flood::Pipeline));
        // Four bytes wait for each byte that arrives.
        let most = CONGESTED_BYTES + 5 * WINDOW_BYTES;
        assert!(peaks[1] < most, "seed {seed}: {peaks:?}, {most}");
        assert!(peaks[1] > CONGESTED_BYTES, "seed {seed}: the third station is not slow: {peaks:?}");
    }
}

#[test]
fn what_waits_for_a_process_that_sends_more_than_it_executes_is_bounded() {
    for seed in seeds(32) {
        let peaks = peaks(&flood(seed, Flood::Echo));
        let most = CONGESTED_BYTES + 3 * WINDOW_BYTES;
        assert!(peaks[1] < most, "seed {seed}: {peaks:?}, {most}");
        assert!(peaks[1] > CONGESTED_BYTES, "seed {seed}: the first station is not slow: {peaks:?}");
    }
}

#[test]
fn processes_that_wait_for_each_other_in_a_circle_continue() {
    for seed in seeds(25) {
        // A deadlock would reach the limit of steps.
        let peaks = peaks(&flood(seed, Flood::Circle));
        assert!(peaks.iter().all(|&peak| peak > 2 * CONGESTED_BYTES), "seed {seed}: {peaks:?}");
    }
}

#[test]
fn the_limit_of_what_may_wait_falls_when_little_waits() {
    let (mut were_raised, seeds) = (0, if is_full_size() { 4 } else { 2 });
    for seed in 0..u64::from(seeds) {
        for (me, Station { mut engine, .. }) in (0..).zip(flood(seed, Flood::Circle)) {
            // Nothing arrives any more.
            let network = Network::new(3, seed, None);
            let (limit, mut turns) = (engine.limit_bytes(), 0);
            were_raised += u32::from(limit > CONGESTED_BYTES);
            while engine.limit_bytes() > CONGESTED_BYTES {
                turns += 1;
                engine.turn(&mut Port { network: &network, me }, &mut |_, _| ());
            }
            // A step takes 1000 turns, and the first one may have begun earlier.
            let steps = (limit as f64 / CONGESTED_BYTES as f64).log(1.5).ceil() as u32;
            assert!(
                turns <= 1000 * steps + 1 && turns + 1000 >= 1000 * steps,
                "seed {seed}: {steps}, {turns}"
            );
        }
    }
    assert!(were_raised > seeds / 2, "{were_raised}");
}

/// The description of a process whose elements begin on the PEs that `initial` says, and of this setup.
fn described(initial: &str, setup: impl Fn(&Setup) + Sync) -> Vec<String> {
    let config = Config { pes_per_process: Some(1), initial: initial.into(), ..Config::simulated(2, 0) };
    let settings = Arc::new(config.resolve(&Job::default()).expect("the flags are valid"));
    let (node, desk) = (Arc::new(Node::new(settings, 0)), Arc::new(Desk::new(2)));
    let single = Single::new(&node, &desk, 0, Limits { flush: 1, rest: 2 }, &|pe| Setup::run(pe, &setup));
    assert!(single.built.is_some());
    description(&node)
}

#[test]
fn the_description_of_a_setup_has_what_processes_must_have_in_common() {
    let folder = tempfile::tempdir().expect("a folder");
    let initial = |name: &str, pes: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, pes).expect("a file can be written");
        path.display().to_string()
    };
    let (one, other) = (initial("one", "0\n1\n1\n0\n"), initial("other", "0\n1\n1\n1\n"));
    let runner = |_: [i32; 1]| Runner { done: Exit(PhantomData) };
    let plain = |pe: &Setup| _ = pe.array([4], runner);
    let placed = |first: u32| {
        move |pe: &Setup| _ = pe.array_placed([4], |[i]| Pe(if i == 0 { first } else { 0 }), runner)
    };
    let bound_to = |at: usize| {
        move |pe: &Setup| {
            let leaders = [pe.array([4], runner), pe.array([4], runner)];
            pe.array_bound(&leaders[at], runner);
        }
    };
    let shared = |values: u32| {
        move |pe: &Setup| {
            (0..values).for_each(|value| _ = pe.shared(|| value));
            plain(pe);
        }
    };
    assert_eq!(described(&one, plain), described(&one, plain));
    let all = [
        described("blocks", plain),
        described(&one, plain),
        described(&other, plain),
        described("blocks", placed(0)),
        described("blocks", placed(1)),
        described("blocks", bound_to(0)),
        described("blocks", bound_to(1)),
        described("blocks", shared(1)),
        described("blocks", shared(2)),
    ];
    for (at, lines) in all.iter().enumerate() {
        assert!(!all[..at].contains(lines), "another setup has the same description: {lines:?}");
    }
    assert!(all[6].ends_with(&[
        "array 3 of the setup, Runner of shape [4] with the entries run, bound to array 2".into()
    ]));
    assert_eq!(all[8][all[8].len() - 2], "2 shared values in the setup");
}

/// A process may receive the start and a batch in the same turn of its connection.
#[test]
fn a_pe_begins_before_it_executes_what_arrives() {
    let config = Config { pes_per_process: Some(1), ..Config::simulated(2, 0) };
    let settings = Arc::new(config.resolve(&Job::default()).expect("the flags are valid"));
    let (node, desk) = (Arc::new(Node::new(settings, 0)), Arc::new(Desk::new(2)));
    let setup = |pe: PeCx| {
        Setup::run(pe, |pe| {
            let done = Exit(PhantomData);
            let runners = pe.array([1], |_| Runner { done });
            // A later step of the PE delivers this message.
            pe.main(move |pe| runners.at(pe, [0]).run(0));
        })
    };
    let mut single = Single::new(&node, &desk, 0, Limits { flush: 1, rest: 2 }, &setup);
    let empty = PeOrder::Batch { from_process: 1, bytes: vec![0; 4] };
    single.receive(&node, empty);
    let queued = single.built.as_ref().map(|built| built.pe.out.queued.get());
    assert!(queued.is_some_and(|queued| queued != 0), "`main` has sent a message");
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        quiescence_is_found_when_no_message_is_in_flight,
        a_lost_batch_is_noticed,
        a_lost_batch_of_a_program_ends_the_run,
        what_waits_for_a_slow_process_is_bounded,
        what_waits_for_a_process_that_sends_more_than_it_executes_is_bounded,
        processes_that_wait_for_each_other_in_a_circle_continue,
        the_limit_of_what_may_wait_falls_when_little_waits,
    ]);
}
