//! Recordings of simulated processes: nothing is lost between processes, and their clocks are aligned.

use crate::options::{Config, Job, Settings};
use crate::prelude::*;
use crate::setup::Setup;
use equipoise_network::trace::{Step, Trace};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WALKERS: i32 = 12;
const ROUNDS: u32 = 6;

/// Sends to its neighbors in every round, then moves on to the next PE.
#[derive(Serialize, Deserialize)]
struct Walker {
    round: u32,
    missing: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Walker {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        self.missing = 2;
        let [at] = cx.index();
        for to in [at + 1, at + WALKERS - 1] {
            cx.peer([to % WALKERS]).edge(self.round, vec![1; 10]);
        }
    }

    #[entry(when = round == self.round && self.missing > 0)]
    fn edge(&mut self, cx: &Cx<Self>, round: u32, bytes: Vec<u8>) {
        assert_eq!(bytes.len(), 10);
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        self.round = round + 1;
        if self.round == ROUNDS {
            return cx.peers().contribute().finished(1);
        }
        cx.migrate(Pe((cx.here().0 + 1) % cx.pes() as u32));
        cx.peer(cx.index()).begin();
    }

    #[entry(reduce = u32::wrapping_add)]
    fn finished(&mut self, cx: &Cx<Self>, walkers: u32) {
        if cx.index() == [0] {
            self.done.exit(cx, walkers);
        }
    }
}

/// The trace of a run of this many processes, which begin one after the other, its number of executions, and the time it took in seconds.
fn trace(processes: usize, local: usize, seed: u64) -> (Trace, u64, f64) {
    let pes = processes * local;
    let config = Config { pes_per_process: Some(local), ..Config::simulated(pes, seed) };
    let mut settings: Settings = config.resolve(&Job::default()).expect("the flags are valid");
    // Without a network there is no time of a simulated machine, so these processes record in real time.
    settings.records.record = Some("not written".into());
    let setup = |pe| {
        Setup::run(pe, |pe| {
            std::thread::sleep(Duration::from_millis(5));
            let walkers = pe.array([WALKERS], |_| Walker { round: 0, missing: 0, done: Exit(PhantomData) });
            pe.main(move |pe| walkers.all(pe).begin());
        })
    };
    let begin = Instant::now();
    let (mut outcome, _) = crate::transport::run(&Arc::new(settings), &setup, None);
    let seconds = begin.elapsed().as_secs_f64();
    assert!(outcome.failure.is_none() && outcome.result.is_some());
    (outcome.trace.take().expect("process 0 has the trace"), outcome.executions, seconds)
}

#[test]
fn recordings_of_processes_come_together_and_their_clocks_are_aligned() {
    for seed in 0..12 {
        let (processes, local) = (1 + seed as usize % 4, 1 + seed as usize / 4);
        let (trace, executions, seconds) = trace(processes, local, seed);
        assert_eq!(trace.check(), Ok(()));
        let elements = trace.executions.iter().filter(|it| it.object >= trace.pes).count();
        assert_eq!(elements as u64, executions, "seed {seed}: every execution is in the trace once");
        let rounds = WALKERS as usize * (ROUNDS as usize - 1);
        assert_eq!(trace.details.migrations.len(), if trace.pes > 1 { rounds } else { 0 }, "seed {seed}");
        // Where each message was sent, and when.
        let mut sent = vec![None; trace.messages.len()];
        for execution in &trace.executions {
            for step in &execution.steps {
                if let Step::Send(message) = step {
                    sent[*message as usize] = Some((execution.pe, execution.begin_seconds));
                }
            }
        }
        let error = trace.details.clock_error_seconds;
        // Clocks that are not aligned are off by the time between the begins of processes, which is at least half of the run on a quiet
        // computer. A busy one makes both the run and its messages longer.
        assert!(
            processes == 1 || error > 0.0 && error < seconds / 4.0,
            "seed {seed}: {error} of {seconds} s"
        );
        let received = trace.receives(|at| Some(trace.executions[at as usize].begin_seconds));
        let mut between = 0;
        for (from, execution) in sent.iter().zip(&received) {
            let (from, sent) = from.expect("every message is sent");
            let Some(execution) = execution.map(|at| &trace.executions[at as usize]) else { continue };
            between += usize::from(from / local as u32 != execution.pe / local as u32);
            let early = sent - execution.begin_seconds;
            assert!(early <= 2.0 * error + 1e-9, "seed {seed}: received {early} s before it is sent");
        }
        assert!(processes == 1 || between > rounds, "seed {seed}: {between} messages between processes");
        let unreceived = received.iter().filter(|execution| execution.is_none()).count();
        // The last messages of the runtime need no execution.
        assert!(unreceived * 20 <= received.len(), "seed {seed}: {unreceived} of {}", received.len());
    }
}
