//! Corners in which the runtime once went wrong: one small program each.
#![allow(missing_docs)]
mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::{RunError, try_run};

// two arrays that share a bit of `queued`
#[derive(Serialize, Deserialize)]
struct Ball {
    to: Option<Array<Ball>>,
    done: Exit<u32>,
}

#[chare(index = ())]
impl Ball {
    #[entry]
    fn start(&mut self, cx: &Cx<Self>, to: Array<Ball>) {
        self.to = Some(to);
        to.at(cx, ()).catch(cx.array(), 0);
    }
    #[entry]
    fn catch(&mut self, cx: &Cx<Self>, from: Array<Ball>, n: u32) {
        if n == 100 {
            return self.done.exit(cx, n);
        }
        from.at(cx, ()).catch(cx.array(), n + 1);
    }
}

#[test]
fn arrays_63_apart_reach_each_other() {
    everywhere(20, 8, |config| {
        let report = equipoise::run(config, |pe, done| {
            let balls: Vec<Array<Ball>> =
                (0..64).map(|_| pe.array((), |_| Ball { to: None, done })).collect();
            let (a, b) = (balls[0], balls[63]);
            pe.main(move |pe| a.at(pe, ()).start(b));
        });
        assert_eq!(report.result, 100);
    });
}

// false quiescence
#[derive(Serialize, Deserialize)]
struct Chain {
    left: u32,
    pes: u32,
    done: Exit<u32>,
    fired: u32,
}

#[chare(index = Pe)]
impl Chain {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        // The first quiescence is over: start at the last PE a chain that is long, and wait there for its end.
        cx.peer(Pe(self.pes - 1)).wait();
    }
    #[entry]
    fn wait(&mut self, cx: &Cx<Self>) {
        self.left = 200;
        cx.peer(cx.index()).at_quiescence().over();
        cx.peer(Pe(0)).ping(200, cx.index());
    }
    #[entry]
    fn ping(&mut self, cx: &Cx<Self>, left: u32, back: Pe) {
        if left == 0 {
            cx.peer(back).ended();
        } else {
            cx.peer(Pe((cx.index().0 + 1) % self.pes)).ping(left - 1, back);
        }
    }
    #[entry]
    fn ended(&mut self, _cx: &Cx<Self>) {
        self.left = 0;
    }
    #[entry]
    fn over(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.left);
    }
}

#[test]
fn quiescence_asked_for_while_another_is_being_told_is_a_new_one() {
    for round in 0..300 {
        let pes = [3, 8, 32, 64][round % 4];
        watched(format!("round {round} on {pes}"), move || {
            let report = equipoise::run(Config::threads(pes), |pe, done| {
                let n = pe.pes() as u32;
                let chain = pe.array(Pe(n), |_| Chain { left: 0, pes: n, done, fired: 0 });
                pe.main(move |pe| chain.at(pe, Pe(0)).at_quiescence().begin());
            });
            assert_eq!(report.result, 0, "it fired with links of the chain in flight");
        });
    }
}

// re-insertion races on threads
#[derive(Serialize, Deserialize)]
struct Phoenix {
    lives: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Phoenix {
    #[entry]
    fn die(&mut self, cx: &Cx<Self>) {
        if self.lives == 0 {
            return self.done.exit(cx, 7);
        }
        if cx.here() == Pe(0) && cx.pes() > 1 {
            // Away from home, then die there.
            cx.migrate(Pe(cx.pes() as u32 - 1));
            cx.peer(cx.index()).die();
            return;
        }
        cx.array().insert(cx, cx.index(), Phoenix { lives: self.lives - 1, done: self.done });
        cx.destroy();
        cx.peer(cx.index()).die();
    }
}

#[test]
fn an_element_may_put_another_in_its_place() {
    everywhere(20, 40, |config| {
        let config = Config { initial: "blocks".into(), ..config };
        let report = equipoise::run(config, |pe, done| {
            let birds = pe.array([1], |_| Phoenix { lives: 2000, done });
            pe.main(move |pe| birds.at(pe, [0]).die());
        });
        assert_eq!(report.result, 7);
    });
}

#[derive(Serialize, Deserialize)]
struct Mortal {
    home: Array<Nurse>,
}

#[chare(index = [i32; 1])]
impl Mortal {
    #[entry]
    fn go(&mut self, cx: &Cx<Self>, to: u32) {
        cx.migrate(Pe(to));
        cx.peer(cx.index()).die();
    }
    #[entry]
    fn die(&mut self, cx: &Cx<Self>) {
        cx.destroy();
        self.home.at(cx, ()).gone();
    }
}

#[derive(Serialize, Deserialize)]
struct Nurse {
    mortals: Array<Mortal>,
    births: u32,
    done: Exit<u32>,
}

#[chare(index = ())]
impl Nurse {
    #[entry]
    fn gone(&mut self, cx: &Cx<Self>) {
        self.births += 1;
        if self.births == 2000 {
            return self.done.exit(cx, 7);
        }
        self.mortals.insert(cx, [0], Mortal { home: cx.array() });
        self.mortals.at(cx, [0]).go(cx.pes() as u32 - 1);
    }
}

#[test]
fn an_element_that_said_it_ends_may_be_inserted_again() {
    everywhere(20, 40, |config| {
        let config = Config { initial: "blocks".into(), ..config };
        let report = equipoise::run(config, |pe, done| {
            let mortals = pe.sparse([1]);
            let nurse = pe.array((), |_| Nurse { mortals, births: 0, done });
            pe.main(move |pe| nurse.at(pe, ()).gone());
        });
        assert_eq!(report.result, 7);
    });
}

// a reduction on a PE that is never idle
#[derive(Serialize, Deserialize)]
struct Busy {
    stop: bool,
    spun: u64,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Busy {
    #[entry]
    fn spin(&mut self, cx: &Cx<Self>) {
        self.spun += 1;
        assert!(self.spun < 20_000_000, "nobody told it to stop");
        if !self.stop {
            cx.peer(cx.index()).spin();
        }
    }
    #[entry]
    fn leave(&mut self, cx: &Cx<Self>, last: bool) {
        cx.peers().contribute().told(1);
        if !last {
            cx.migrate(Pe(1 % cx.pes() as u32));
            cx.peer([1]).leave(true);
        }
        cx.peer(cx.index()).spin();
    }
    #[entry(reduce = equipoise::reduce::sum)]
    fn told(&mut self, cx: &Cx<Self>, sum: u32) {
        self.stop = true;
        if cx.index() == [0] {
            self.done.exit(cx, sum);
        }
    }
}

#[test]
fn a_reduction_completes_though_no_pe_is_ever_idle() {
    for config in [Config::threads(2), Config::simulated(2, 1)] {
        watched(told(&config), move || {
            let report = equipoise::run(config, |pe, done| {
                let all = pe.array_placed([2], |_| Pe(0), |_| Busy { stop: false, spun: 0, done });
                pe.main(move |pe| all.at(pe, [0]).leave(false));
            });
            assert_eq!(report.result, 2);
        });
    }
}

// two at_sync in one entry
#[derive(Serialize, Deserialize)]
struct Twice {
    got: Vec<u8>,
    done: Exit<u32>,
}

#[chare(index = [i32; 1], sync)]
impl Twice {
    #[entry]
    fn go(&mut self, cx: &Cx<Self>) {
        cx.at_sync().a();
        cx.at_sync().b();
    }
    #[entry]
    fn a(&mut self, _cx: &Cx<Self>) {
        self.got.push(1);
    }
    #[entry]
    fn b(&mut self, cx: &Cx<Self>) {
        self.got.push(2);
        self.done.exit(cx, self.got.len() as u32);
    }
}

#[test]
fn two_at_syncs_in_one_entry_are_an_error_not_a_lost_message() {
    for balancer in [vec![], vec!["RotateLB".to_owned()]] {
        let config = Config { balancer, ..Config::simulated(2, 0) };
        let result = watched(told(&config), move || {
            try_run(config, |pe, done| {
                let all = pe.array([1], |_| Twice { got: vec![], done });
                pe.main(move |pe| all.all(pe).go());
            })
            .map(|r| r.result)
            .map_err(|e| e.to_string())
        });
        eprintln!("{result:?}");
        assert!(!matches!(result, Ok(1)), "a was lost");
    }
}

// a PE whose setup makes fewer arrays
#[test]
fn a_pe_with_fewer_arrays_is_an_error() {
    for config in [Config::threads(3), Config::simulated(3, 1)] {
        let result = watched(told(&config), move || {
            try_run(config, |pe, done: Exit<u32>| {
                let all = pe.array([3], |_| Twice { got: vec![], done });
                if pe.here() != Pe(2) {
                    let more = pe.array([3], |_| Twice { got: vec![], done });
                    pe.main(move |pe| {
                        all.all(pe).a();
                        more.at(pe, [2]).b();
                    });
                }
            })
            .map(|r| r.result)
            .map_err(|e| e.to_string())
        });
        eprintln!("{result:?}");
        assert!(result.unwrap_err().contains("setup"));
    }
}

// guards that panic
#[derive(Serialize, Deserialize)]
struct Guarded {
    done: Exit<u32>,
}

fn bad(n: u32) -> bool {
    assert!(n < 3, "bad guard");
    true
}

#[chare(index = [i32; 1])]
impl Guarded {
    #[entry(when = bad(n))]
    fn take(&mut self, cx: &Cx<Self>, n: u32) {
        cx.peer([1]).take(n + 1);
    }
    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, 1);
    }
}

#[test]
fn a_panic_in_a_guard_names_its_element() {
    for config in [Config::threads(2), Config::simulated(2, 1)] {
        let error = watched(told(&config), move || {
            try_run(config, |pe, done: Exit<u32>| {
                let all = pe.array([2], |_| Guarded { done });
                pe.main(move |pe| all.at(pe, [0]).take(0));
            })
            .map(|r| r.result)
            .unwrap_err()
            .to_string()
        });
        eprintln!("{error}");
        assert!(error.contains("Guarded[1]") && error.contains("take") && error.contains("PE 1"), "{error}");
    }
}

// inserting an element that exists but is on its way home
#[test]
fn inserting_an_existing_element_is_an_error() {
    everywhere(14, 8, |config| {
        let error = try_run(config, |pe, done: Exit<u32>| {
            let all = pe.array([4], |_| Guarded { done });
            pe.main(move |pe| {
                all.insert(pe, [3], Guarded { done });
                all.at(pe, [3]).at_quiescence().end();
            });
        })
        .map(|r| r.result);
        match error {
            Err(RunError::Panic { place, message }) => {
                assert!(message.contains("Guarded[3] exists already"), "{message}");
                eprintln!("{place}");
            }
            Err(RunError::Program(s)) => assert!(s.contains("Guarded[3]"), "{s}"),
            other => panic!("{other:?}"),
        }
    });
}

// measure(false) in main
#[derive(Serialize, Deserialize)]
struct Charged {
    done: Exit<f64>,
}

#[chare(index = (), sync)]
impl Charged {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        cx.at_sync().end();
    }
    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, 1.0);
    }
}

#[test]
fn measuring_stops_with_the_next_delivery() {
    let config = Config { balancer: vec!["DummyLB".into()], ..Config::simulated(1, 0) };
    let report = equipoise::run(config, |pe, done| {
        let all = pe.array((), |_| Charged { done });
        pe.main(move |pe| {
            pe.measure(false);
            all.at(pe, ()).work();
        });
    });
    assert_eq!(report.lb_steps[0].before.max_load_seconds, 0.0);
}

// a child created in answer to a broadcast hears that very broadcast
#[derive(Serialize, Deserialize)]
struct Parent {
    parent: bool,
    heard: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Parent {
    #[entry]
    fn grow(&mut self, cx: &Cx<Self>) {
        self.heard += 1;
        if self.parent {
            let child = [cx.index()[0] + cx.shape()[0] / 2];
            cx.array().insert(cx, child, Parent { parent: false, heard: 0, done: self.done });
        }
    }
    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().all(self.heard);
    }
    #[entry(reduce = equipoise::reduce::sum)]
    fn all(&mut self, cx: &Cx<Self>, heard: u32) {
        self.done.exit(cx, heard);
    }
}

#[derive(Serialize, Deserialize)]
struct Starter {
    all: Array<Parent>,
    phase: u32,
}

#[chare(index = ())]
impl Starter {
    #[entry]
    fn next(&mut self, cx: &Cx<Self>) {
        self.phase += 1;
        match self.phase {
            1 => self.all.all(cx).grow(),
            _ => return self.all.all(cx).report(),
        }
        cx.peer(()).at_quiescence().next();
    }
}

#[test]
fn a_child_created_in_answer_to_a_broadcast_does_not_hear_that_broadcast() {
    everywhere(60, 40, |config| {
        let config = Config { initial: "roundrobin".into(), ..config };
        let report = equipoise::run(config, |pe, done| {
            let all = pe.sparse([17]);
            let starter = pe.array((), |()| Starter { all, phase: 0 });
            pe.main(move |pe| {
                for i in 0..8 {
                    all.insert(pe, [i], Parent { parent: true, heard: 0, done });
                }
                starter.at(pe, ()).at_quiescence().next();
            });
        });
        assert_eq!(report.result, 8);
    });
}

// what a guard held back is lost when the element ends
#[derive(Serialize, Deserialize)]
struct Heir {
    open: bool,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Heir {
    #[entry(when = self.open)]
    fn letter(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, 1);
    }
    #[entry]
    fn succeed(&mut self, cx: &Cx<Self>) {
        cx.array().insert(cx, cx.index(), Heir { open: true, done: self.done });
        cx.destroy();
    }
}

#[test]
fn a_message_behind_a_guard_waits_for_the_next_element_at_the_index() {
    let report = watched("m".into(), || {
        equipoise::run(Config::simulated(1, 0), |pe, done| {
            let all = pe.array([1], |_| Heir { open: false, done });
            pe.main(move |pe| {
                all.at(pe, [0]).letter();
                all.at(pe, [0]).succeed();
            });
        })
    });
    assert_eq!(report.result, 1);
}
