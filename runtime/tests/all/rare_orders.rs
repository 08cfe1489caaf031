//! Orders of events that are rare in programs: contributions of a PE that rests while another one is busy, ends and migrations of
//! elements that wait for `at_sync`, insertions that wait while the element before travels, arrays with equal priorities.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::try_run;

/// How often an element sends itself a message before the test fails.
const PATIENCE: u32 = 100_000;

/// Waits for others while it sends itself messages: its PE is never idle.
#[derive(Serialize, Deserialize)]
struct Poller {
    polls: u32,
    has_result: bool,
    done: Exit<bool>,
}

#[chare(index = [i32; 1], sync)]
impl Poller {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>, how: u8) {
        match how {
            0 => cx.peers().contribute().finish(1),
            1 => cx.peers().contribute_in(&cx.array().section(cx, |_| true)).finish(1),
            _ => cx.at_sync().synced(),
        }
    }

    #[entry]
    fn leave(&mut self, cx: &Cx<Self>, to: u32, how: u8) {
        cx.migrate(Pe(to));
        cx.peer(cx.index()).begin(how);
    }

    #[entry]
    fn poll(&mut self, cx: &Cx<Self>, how: u8) {
        // In virtual time, messages need longer than some polls.
        cx.charge(1e-6);
        if self.polls == 0 {
            self.begin(cx, how);
        }
        self.polls += 1;
        if self.polls > PATIENCE {
            self.done.exit(cx, false);
        } else if !self.has_result {
            cx.peer(cx.index()).poll(how);
        }
    }

    #[entry(reduce = u32::wrapping_add)]
    fn finish(&mut self, cx: &Cx<Self>, _sum: u32) {
        self.synced(cx);
    }

    #[entry]
    fn synced(&mut self, cx: &Cx<Self>) {
        self.has_result = true;
        if cx.index() == [2] {
            self.done.exit(cx, true);
        }
    }
}

#[test]
fn what_a_resting_pe_has_collected_arrives_while_another_is_busy() {
    everywhere(60, 12, |config| {
        let config = Config { balancer: vec!["DummyLB".into()], ..with_pes(&config, 2) };
        for (how, at) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
            let report = try_run(config.clone(), move |pe, done| {
                let place = move |[index]: [i32; 1]| Pe(if index < 2 { at } else { 1 - at });
                let poller = move |_| Poller { polls: 0, has_result: false, done };
                let pollers = pe.array_placed([3], place, poller);
                pe.main(move |pe| {
                    pollers.at(pe, [0]).begin(how);
                    pollers.at(pe, [1]).leave(1 - at, how);
                    pollers.at(pe, [2]).poll(how);
                });
            });
            assert!(report.expect("the run exits").result, "{how}, {at}: {}", describe(&config));
        }
    });
}

/// Ends while it waits for the message of its `at_sync`; its successor has the same index.
#[derive(Serialize, Deserialize)]
struct Heir {
    life: u32,
    /// The lives whose messages it has received.
    received: Vec<u32>,
    done: Exit<(u32, Vec<u32>)>,
}

#[chare(index = [i32; 1], sync)]
impl Heir {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.peer(cx.index()).end();
        cx.at_sync().step(self.life);
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        cx.array().insert(
            cx,
            cx.index(),
            Heir { life: self.life + 1, received: Vec::new(), done: self.done },
        );
        cx.destroy();
    }

    #[entry]
    fn step(&mut self, _cx: &Cx<Self>, life: u32) {
        self.received.push(life);
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, (self.life, std::mem::take(&mut self.received)));
    }
}

#[test]
fn the_message_of_at_sync_does_not_reach_the_successor_of_an_element() {
    everywhere(24, 6, |config| {
        let config = Config { balancer: Vec::new(), ..config };
        let report = try_run(config.clone(), |pe, done| {
            let heirs = pe.array([1], |_| Heir { life: 0, received: Vec::new(), done });
            pe.main(move |pe| {
                heirs.at(pe, [0]).work();
                heirs.at(pe, [0]).at_quiescence().report();
            });
        });
        assert_eq!(report.expect("the run exits").result, (1, vec![]), "{}", describe(&config));
    });
}

/// Like [`Heir`], but calls `at_sync` in its second life, too. The message of the second life is more urgent.
#[derive(Serialize, Deserialize)]
struct UrgentHeir {
    life: u32,
    received: Vec<u32>,
    done: Exit<Vec<u32>>,
}

#[chare(index = [i32; 1], sync)]
impl UrgentHeir {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        if self.life == 0 {
            cx.peer(cx.index()).end();
        }
        cx.at_sync().step(self.life);
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        let heir = UrgentHeir { life: self.life + 1, received: Vec::new(), done: self.done };
        cx.array().insert(cx, cx.index(), heir);
        cx.peer(cx.index()).work();
        cx.destroy();
    }

    #[entry(priority = 10 - i64::from(life))]
    fn step(&mut self, _cx: &Cx<Self>, life: u32) {
        self.received.push(life);
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, std::mem::take(&mut self.received));
    }
}

#[test]
fn the_message_of_at_sync_of_an_ended_element_is_dropped_also_if_that_of_the_next_one_is_more_urgent() {
    everywhere(24, 6, |config| {
        let config = Config { balancer: Vec::new(), ..with_pes(&config, 1) };
        let report = try_run(config.clone(), |pe, done| {
            let heirs = pe.array([1], |_| UrgentHeir { life: 0, received: Vec::new(), done });
            pe.main(move |pe| {
                heirs.at(pe, [0]).work();
                heirs.at(pe, [0]).at_quiescence().report();
            });
        });
        assert_eq!(report.expect("the run exits").result, [1], "{}", describe(&config));
    });
}

/// Migrates while it waits for the message of its `at_sync`.
#[derive(Serialize, Deserialize)]
struct Mover {
    /// The PEs on which it has received the message.
    on: Vec<Pe>,
    done: Exit<Vec<Pe>>,
}

#[chare(index = [i32; 1], sync)]
impl Mover {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.at_sync().step();
        cx.migrate(Pe(1));
    }

    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.on.push(cx.here());
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, std::mem::take(&mut self.on));
    }
}

#[test]
fn the_message_of_at_sync_migrates_with_the_element_without_a_load_balancer() {
    everywhere(24, 6, |config| {
        let config = Config { balancer: Vec::new(), ..with_pes(&config, 2) };
        let report = try_run(config.clone(), |pe, done| {
            let movers = pe.array_placed([1], |_| Pe(0), |_| Mover { on: Vec::new(), done });
            pe.main(move |pe| {
                movers.at(pe, [0]).work();
                movers.at(pe, [0]).at_quiescence().report();
            });
        });
        assert_eq!(report.expect("the run exits").result, [Pe(1)], "{}", describe(&config));
    });
}

/// Travels, has a successor inserted on its way, and ends at home.
#[derive(Serialize, Deserialize)]
struct Traveller {
    path: Vec<u32>,
    is_second: bool,
    clerk: Array<Clerk>,
    done: Exit<bool>,
}

#[chare(index = [i32; 1])]
impl Traveller {
    #[entry]
    fn arrive(&mut self, cx: &Cx<Self>) {
        match self.path.len() {
            2 => self.clerk.at(cx, ()).insert(cx.array(), self.clerk, self.done),
            _ => self.go_on(cx),
        }
    }

    #[entry]
    fn go_on(&mut self, cx: &Cx<Self>) {
        match self.path.pop() {
            Some(to) => {
                cx.migrate(Pe(to));
                cx.peer(cx.index()).arrive();
            }
            None => {
                cx.peer(cx.index()).meet();
                cx.destroy();
            }
        }
    }

    #[entry]
    fn meet(&mut self, cx: &Cx<Self>) {
        match self.is_second {
            true => self.done.exit(cx, true),
            false => cx.peer(cx.index()).meet(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Clerk;

#[chare(index = ())]
impl Clerk {
    #[entry]
    fn insert(&mut self, cx: &Cx<Self>, all: Array<Traveller>, clerk: Array<Clerk>, done: Exit<bool>) {
        all.insert(cx, [0], Traveller { path: Vec::new(), is_second: true, clerk, done });
        all.at(cx, [0]).at_quiescence().go_on();
    }
}

#[test]
fn an_insertion_waits_while_the_element_before_comes_home_and_ends() {
    everywhere(60, 12, |config| {
        let config = Config { balancer: Vec::new(), ..with_pes(&config, 3) };
        let report = try_run(config.clone(), |pe, done| {
            let clerk = pe.array((), |_| Clerk);
            let path = vec![0, 2, 1];
            let new = |_| Traveller { path: path.clone(), is_second: false, clerk, done };
            // PE 0 is the home: an element that is at home when another one is inserted ends the run.
            let all = pe.array_placed([1], |_| Pe(0), new);
            pe.main(move |pe| all.at(pe, [0]).go_on());
        });
        assert!(report.expect("the run exits").result, "{}", describe(&config));
    });
}

/// Sends itself messages until `other` has said to stop.
#[derive(Serialize, Deserialize)]
struct Busy {
    polls: u32,
    stops: bool,
    done: Exit<u32>,
}

#[chare(index = ())]
impl Busy {
    #[entry(priority = 0)]
    fn poll(&mut self, cx: &Cx<Self>) {
        cx.charge(1e-6);
        self.polls += 1;
        match self.stops || self.polls > PATIENCE {
            true => self.done.exit(cx, self.polls),
            false => cx.peer(()).poll(),
        }
    }

    #[entry]
    fn stop(&mut self, _cx: &Cx<Self>) {
        self.stops = true;
    }
}

#[derive(Serialize, Deserialize)]
struct Other {
    busy: Array<Busy>,
}

#[chare(index = ())]
impl Other {
    #[entry(priority = 0)]
    fn message(&mut self, cx: &Cx<Self>) {
        self.busy.at(cx, ()).stop();
    }

    #[entry]
    fn broadcast(&mut self, cx: &Cx<Self>) {
        self.busy.at(cx, ()).stop();
    }
}

#[test]
fn an_array_with_endless_messages_does_not_keep_another_one_waiting() {
    for config in [Config::threads(1), Config::on_machine("torus:1", "ideal")] {
        for broadcasts in [false, true] {
            let report = try_run(config.clone(), move |pe, done| {
                let busy = pe.array((), |_| Busy { polls: 0, stops: false, done });
                let other = pe.array((), |_| Other { busy });
                pe.main(move |pe| {
                    match broadcasts {
                        true => other.all(pe).broadcast(),
                        false => other.at(pe, ()).message(),
                    }
                    busy.at(pe, ()).poll();
                });
            });
            let polls = report.expect("the run exits").result;
            assert!(polls < 10_000, "{polls} polls: {}", describe(&config));
        }
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        what_a_resting_pe_has_collected_arrives_while_another_is_busy,
        the_message_of_at_sync_does_not_reach_the_successor_of_an_element,
        the_message_of_at_sync_of_an_ended_element_is_dropped_also_if_that_of_the_next_one_is_more_urgent,
        the_message_of_at_sync_migrates_with_the_element_without_a_load_balancer,
        an_insertion_waits_while_the_element_before_comes_home_and_ends,
    ]);
}
