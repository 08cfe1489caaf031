//! Of the messages that wait on a PE, those with smaller priorities go first.

#![allow(missing_docs)]

use crate::common::workers::machine;
use crate::common::*;
use equipoise::prelude::*;
use equipoise::{PeCx, Shared, reduce};
use std::sync::Mutex;

/// What was delivered on a PE, in order: the array and the priority.
type Log = Shared<Mutex<Vec<(char, i64)>>>;

/// An element whose messages have priorities.
#[derive(Serialize, Deserialize)]
struct Urgent {
    name: char,
    log: Log,
    done: Exit<Vec<(char, i64)>>,
}

#[chare(index = [i32; 1])]
impl Urgent {
    #[entry(priority = rank)]
    fn ranked(&mut self, cx: &Cx<Self>, rank: i64, _text: String) {
        cx.charge(1.0);
        self.log.get(cx).lock().unwrap().push((self.name, rank));
    }

    /// Without a priority: 0.
    #[entry]
    fn plain(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        self.log.get(cx).lock().unwrap().push((self.name, 0));
    }

    /// Sends a message to itself, and a more urgent one to an element of another array.
    #[entry]
    fn send(&mut self, cx: &Cx<Self>, other: Array<Urgent>) {
        cx.peer(cx.index()).ranked(5, "text".into());
        other.at(cx, [0]).ranked(1, "text".into());
    }

    /// After all others.
    #[entry(priority = i64::MAX)]
    fn last(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.log.get(cx).lock().unwrap().clone());
    }
}

/// An element whose messages have no priorities.
#[derive(Serialize, Deserialize)]
struct Ordinary {
    log: Log,
}

#[chare(index = [i32; 1])]
impl Ordinary {
    #[entry]
    fn plain(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        self.log.get(cx).lock().unwrap().push(('o', 0));
    }
}

const RANKS: [i64; 7] = [5, -3, 0, 7, -3, i64::MIN, 2];

/// What the last PE delivers, if PE 0 sends it messages in order of decreasing urgency.
fn delivered(config: Config) -> Vec<(char, i64)> {
    let report = equipoise::run(config, move |pe, done| {
        let last = Pe(pe.pes() as u32 - 1);
        let log = pe.shared(|| Mutex::new(Vec::new()));
        let a = pe.array_placed([2], move |_| last, move |_| Urgent { name: 'a', log, done });
        let ordinary = pe.array_placed([1], move |_| last, move |_| Ordinary { log });
        let b = pe.array_placed([1], move |_| last, move |_| Urgent { name: 'b', log, done });
        pe.main(move |pe| {
            b.at(pe, [0]).last();
            for (at, rank) in RANKS.into_iter().enumerate() {
                a.at(pe, [at as i32 % 2]).ranked(rank, "text".into());
                b.at(pe, [0]).ranked(rank + 1 - i64::from(rank > 0), "text".into());
            }
            ordinary.at(pe, [0]).plain();
            a.at(pe, [1]).plain();
        });
    });
    report.result
}

/// Checks that all messages from number `from` on are in the order of their priorities.
fn check(mut delivered: Vec<(char, i64)>, from: usize) {
    assert_eq!(delivered.len(), 16, "{delivered:?}");
    let ranks: Vec<i64> = delivered[from..].iter().map(|(_, rank)| *rank).collect();
    assert!(ranks.is_sorted(), "{delivered:?}");
    delivered.sort_unstable();
    let mut a = RANKS.to_vec();
    a.push(0);
    a.sort_unstable();
    assert_eq!(delivered[..8].iter().map(|(_, rank)| *rank).collect::<Vec<_>>(), a);
    assert_eq!(delivered[15], ('o', 0));
}

#[test]
fn on_one_thread_all_messages_wait_before_the_first_is_delivered() {
    let delivered = delivered(Config::threads(1));
    // Messages of the same priority keep their order.
    let lowest: Vec<char> = delivered.iter().filter(|(_, rank)| *rank == -3).map(|(name, _)| *name).collect();
    assert_eq!(lowest, ['a', 'a']);
    check(delivered, 0);
}

#[test]
fn on_a_simulated_machine_messages_overtake_those_that_have_arrived() {
    for pes in ["mesh:1", "mesh:2", "mesh:4"] {
        let config = Config { machine: machine("ideal"), ..Config::on_machine(pes, "ideal") };
        let delivered = delivered(config);
        // The first message from another PE is delivered when it arrives.
        check(delivered, usize::from(pes != "mesh:1"));
    }
}

/// What one PE delivers of the arrays `a` and `b`, which have priorities, and of one without.
fn delivered_here(
    config: Config,
    send: impl Fn(&PeCx, Array<Urgent>, Array<Urgent>, Array<Ordinary>) + Copy + Sync + 'static,
) -> Vec<(char, i64)> {
    let report = equipoise::run(config, move |pe, done| {
        let log = pe.shared(|| Mutex::new(Vec::new()));
        let a = pe.array([1], move |_| Urgent { name: 'a', log, done });
        let b = pe.array([1], move |_| Urgent { name: 'b', log, done });
        let ordinary = pe.array([1], move |_| Ordinary { log });
        pe.main(move |pe| {
            b.at(pe, [0]).last();
            send(pe, a, b, ordinary);
        });
    });
    report.result
}

#[test]
fn a_message_does_not_overtake_because_orders_of_its_array_wait() {
    for config in [Config::threads(1), Config::on_machine("mesh:1", "ideal")] {
        let delivered = delivered_here(config, |pe, a, b, _| {
            // Two orders, one after the other.
            a.all(pe).plain();
            a.at(pe, [0]).ranked(5, "text".into());
            b.at(pe, [0]).ranked(1, "text".into());
        });
        assert_eq!(delivered, [('a', 0), ('b', 1), ('a', 5)]);
    }
}

#[test]
fn a_message_does_not_overtake_because_its_array_was_queued_earlier() {
    for config in [Config::threads(1), Config::on_machine("mesh:1", "ideal")] {
        let report = equipoise::run(config, |pe, done| {
            let log = pe.shared(|| Mutex::new(Vec::new()));
            let [a, b] = ['a', 'b'].map(|name| pe.array([1], move |_| Urgent { name, log, done }));
            pe.main(move |pe| {
                a.at(pe, [0]).last();
                a.at(pe, [0]).send(b);
            });
        });
        assert_eq!(report.result, [('b', 1), ('a', 5)]);
    }
}

#[test]
fn a_message_does_not_overtake_because_equally_urgent_ones_with_and_without_a_priority_wait() {
    for config in [Config::threads(1), Config::on_machine("mesh:1", "ideal")] {
        let delivered = delivered_here(config, |pe, a, b, ordinary| {
            for _ in 0..3 {
                a.at(pe, [0]).ranked(0, "text".into());
                b.at(pe, [0]).ranked(7, "text".into());
                ordinary.at(pe, [0]).plain();
            }
        });
        assert!(delivered.is_sorted_by_key(|(_, rank)| *rank), "{delivered:?}");
    }
}

#[test]
fn a_trace_of_messages_with_priorities_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut config = Config::on_machine("mesh:1", "ideal");
    config.records.record = Some(path.clone());
    check(delivered(config), 0);
    let trace = equipoise::network::trace::Trace::read(&path).unwrap();
    // Every message is executed by its receiver.
    let mut caused = 0;
    for execution in &trace.executions {
        let Some(cause) = execution.cause else { continue };
        assert_eq!(trace.messages[cause as usize].to, execution.object);
        caused += 1;
    }
    assert_eq!(caused, 17);
}

/// Work with priorities, whose result does not depend on the order.
#[derive(Serialize, Deserialize)]
struct Worker {
    rng: Rng,
    sum: u64,
    missing: u32,
    done: Exit<u64>,
}

#[chare(index = [i32; 1], sync)]
impl Worker {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        self.missing = 30;
        for number in 0..30 {
            let to = (cx.index()[0] + number) % cx.shape()[0];
            cx.peer([to]).work(i64::from(self.rng.sample(7) as u32) - 3, number as u64, 3);
        }
    }

    #[entry(priority = rank, when = self.missing > 0)]
    fn work(&mut self, cx: &Cx<Self>, rank: i64, number: u64, hops: u32) {
        if self.rng.once_in(5) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        if hops > 0 {
            let next = self.rng.sample(cx.shape()[0] as usize) as i32;
            return cx.peer([next]).work(-rank, number, hops - 1);
        }
        cx.peer([number as i32 % cx.shape()[0]]).landed(number);
    }

    #[entry(priority = -10)]
    fn landed(&mut self, cx: &Cx<Self>, number: u64) {
        self.sum += number;
        if number == 0 {
            cx.peer([8]).over();
        }
    }

    #[entry(priority = 1_u8)]
    fn over(&mut self, cx: &Cx<Self>) {
        cx.peers().at_quiescence().sync();
    }

    #[entry]
    fn sync(&mut self, cx: &Cx<Self>) {
        if self.missing == 30 {
            self.missing = 1;
            cx.at_sync().synced();
        }
    }

    #[entry(priority = 3)]
    fn synced(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().total(self.sum);
    }

    #[entry(reduce = reduce::sum, priority = -1)]
    fn total(&mut self, cx: &Cx<Self>, sum: u64) {
        self.done.exit(cx, sum);
    }
}

#[test]
fn no_message_with_a_priority_is_lost_whatever_migrates() {
    everywhere(60, 24, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let rng = move |[i]: [i32; 1]| Rng::new(seed, i as u64);
            let workers = pe.array([9], |i| Worker { rng: rng(i), sum: 0, missing: 0, done });
            pe.main(move |pe| workers.all(pe).begin());
        });
        assert_eq!(report.result, 9 * (0..30).sum::<u64>());
    });
}

#[test]
fn a_recorded_order_repeats_messages_with_priorities() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("order");
    let run = |config| {
        let report = equipoise::run(config, |pe, done| {
            let workers =
                pe.array([9], |[i]| Worker { rng: Rng::new(1, i as u64), sum: 0, missing: 0, done });
            pe.main(move |pe| workers.all(pe).begin());
        });
        (report.result, report.executions, report.migrations)
    };
    for pes in 1..5 {
        let balancer = vec!["RotateLB".into()];
        let config = Config { balancer, ..Config::threads(pes) };
        let recorded = run(Config { record_order: Some(path.clone()), ..config.clone() });
        assert_eq!(run(Config { replay_order: Some(path.clone()), ..config }), recorded, "{pes} PEs");
    }
}

/// Sends itself messages forever.
#[derive(Serialize, Deserialize)]
struct Endless {
    left: u32,
    done: Exit<()>,
}

#[chare(index = ())]
impl Endless {
    #[entry(priority = rank)]
    fn again(&mut self, cx: &Cx<Self>, rank: i64) {
        cx.charge(1e-6);
        cx.peer(()).again(rank);
    }

    #[entry]
    fn count(&mut self, cx: &Cx<Self>) {
        cx.charge(1e-6);
        self.left -= 1;
        match self.left {
            0 => self.done.exit(cx, ()),
            _ => cx.peer(()).count(),
        }
    }
}

/// Like [`Endless`], without priorities.
#[derive(Serialize, Deserialize)]
struct Plain {
    left: Option<u32>,
    done: Exit<()>,
}

#[chare(index = ())]
impl Plain {
    #[entry]
    fn again(&mut self, cx: &Cx<Self>) {
        cx.charge(1e-6);
        match &mut self.left {
            Some(0) => return self.done.exit(cx, ()),
            Some(left) => *left -= 1,
            None => {}
        }
        cx.peer(()).again();
    }
}

#[test]
fn endless_messages_of_priority_0_or_later_do_not_starve_others() {
    let configs = [
        Config::threads(1),
        Config::threads(2),
        Config::simulated(1, 7),
        Config { machine: machine("ideal"), ..Config::on_machine("mesh:1", "ideal") },
    ];
    for config in configs {
        for rank in [0, 1] {
            equipoise::run(config.clone(), move |pe, done| {
                let endless = pe.array((), |()| Endless { left: 0, done });
                let plain = pe.array((), |()| Plain { left: Some(1000), done });
                pe.main(move |pe| {
                    endless.at(pe, ()).again(rank);
                    plain.at(pe, ()).again();
                });
            });
        }
        // A message of priority 0 is not behind those of arrays without priorities.
        equipoise::run(config, |pe, done| {
            let endless = pe.array((), |()| Endless { left: 1000, done });
            let plain = pe.array((), |()| Plain { left: None, done });
            pe.main(move |pe| {
                plain.at(pe, ()).again();
                endless.at(pe, ()).count();
            });
        });
    }
}

#[test]
fn endless_messages_of_later_priorities_do_not_starve_any_of_many_arrays() {
    for config in [Config::threads(1), Config::on_machine("mesh:1", "ideal")] {
        // One of 64 arrays shares the bit of the first one, which says whether they are queued.
        for at in 0..64 {
            equipoise::run(config.clone(), move |pe, done| {
                let endless = pe.array((), |()| Endless { left: 0, done });
                let others: Vec<_> =
                    (0..64).map(|_| pe.array((), |()| Plain { left: Some(10), done })).collect();
                pe.main(move |pe| {
                    endless.at(pe, ()).again(1);
                    others[at].at(pe, ()).again();
                });
            });
        }
    }
}

/// Executes messages of priority 1. The first one asks another array, whose answer ends the run with the number of executed ones.
#[derive(Serialize, Deserialize)]
struct Late {
    executed: u32,
    done: Exit<u32>,
}

#[chare(index = ())]
impl Late {
    #[entry(priority = 1)]
    fn work(&mut self, cx: &Cx<Self>, prompt: Array<Prompt>) {
        self.executed += 1;
        if self.executed == 1 {
            prompt.at(cx, ()).ask(cx.array());
        }
    }

    #[entry(priority = -1)]
    fn answer(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.executed);
    }
}

/// Answers, without priorities.
#[derive(Serialize, Deserialize)]
struct Prompt;

#[chare(index = ())]
impl Prompt {
    #[entry]
    fn ask(&mut self, cx: &Cx<Self>, late: Array<Late>) {
        late.at(cx, ()).answer();
    }
}

#[test]
fn messages_without_a_priority_precede_later_ones_of_any_array() {
    for config in [Config::threads(1), Config::on_machine("mesh:1", "ideal")] {
        // The 63rd of the others shares the bit of the first array, which says whether they are queued.
        for others in [1, 63] {
            let executed = equipoise::run(config.clone(), move |pe, done| {
                let late = pe.array((), |()| Late { executed: 0, done });
                let prompts: Vec<_> = (0..others).map(|_| pe.array((), |()| Prompt)).collect();
                let prompt = prompts[others - 1];
                pe.main(move |pe| (0..3).for_each(|_| late.at(pe, ()).work(prompt)));
            });
            assert_eq!(executed.result, 1, "{others} other arrays");
        }
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[no_message_with_a_priority_is_lost_whatever_migrates]);
}
