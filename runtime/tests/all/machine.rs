//! The simulated machine: virtual time follows charges, messages and the speeds of PEs, and the
//! result of the program is the same on every machine.

#![allow(missing_docs)]

use crate::common::workers::{about, machine, workers};
use crate::common::*;
use equipoise::prelude::*;
use equipoise::{Machine, MachineReport, Report, StrategySeconds, Uncharged};

/// Two elements that throw a ball to and fro.
#[derive(Serialize, Deserialize)]
struct Player {
    /// Seconds it works before it throws, and after.
    work: (f64, f64),
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Player {
    /// Throws the ball back until `left` is 0.
    #[entry]
    fn catch(&mut self, cx: &Cx<Self>, left: u32, ball: Vec<u8>) {
        cx.charge(self.work.0);
        if left == 0 {
            return self.done.exit(cx, left);
        }
        cx.peer([1 - cx.index()[0]]).catch(left - 1, ball);
        cx.charge(self.work.1);
    }
}

/// The report of a ball of `bytes` thrown `throws` times between the PEs of `mesh:2`.
fn play(machine: Machine, throws: u32, bytes: usize, work: (f64, f64)) -> MachineReport {
    let config = Config { machine, ..Config::on_machine("mesh:2", "ideal") };
    let report = equipoise::run(config, move |pe, done| {
        let players = pe.array([2], |_| Player { work, done });
        pe.main(move |pe| players.at(pe, [0]).catch(throws, vec![7; bytes]));
    });
    report.machine.expect("a machine was simulated")
}

#[test]
fn time_includes_latencies_and_charges_before_sends() {
    let report = play(machine("ideal:latency=1,hop=0.5,bandwidth=1e30"), 10, 0, (0.25, 0.125));
    // The last catch works before it exits.
    about(report.seconds, 10.0 * (0.25 + 1.5) + 0.25);
    assert_eq!(report.messages, 10);
    about(report.mean_latency_seconds, 1.5);
    about(report.pes[0].busy_seconds + report.pes[1].busy_seconds, 11.0 * 0.25 + 10.0 * 0.125);
    for pe in &report.pes {
        about(pe.busy_seconds + pe.overhead_seconds + pe.idle_seconds, report.seconds);
    }
}

#[test]
fn time_includes_bandwidth_and_overheads() {
    let short = play(machine("ideal:hop=1,bandwidth=1000"), 4, 100, (0.0, 0.0));
    let long = play(machine("ideal:hop=1,bandwidth=1000"), 4, 600, (0.0, 0.0));
    assert!(short.seconds > 4.0 * 1.1 && short.seconds < 4.0 * 1.2, "{}", short.seconds);
    // The encodings of both lengths have the same size, so only the ball makes a difference.
    about(long.seconds - short.seconds, 4.0 * 0.5);
    assert_eq!(long.link_bytes.iter().sum::<u64>() - short.link_bytes.iter().sum::<u64>(), 2000);
    assert_eq!(long.busiest_link.as_ref().map(|(name, _)| name.as_str()), Some("0 -> 1"));

    let costly = Machine { overhead: 0.125, delivery: 0.25, ..machine("ideal:hop=1") };
    let report = play(costly, 4, 0, (0.0, 0.0));
    let (waits, sends_and_receives) = (4.0, 4.0 * 2.0 * 0.125);
    about(
        report.seconds - waits - sends_and_receives,
        5.0 * 0.25 + 4.0 * (report.mean_latency_seconds - 1.0),
    );
    about(report.pes.iter().map(|pe| pe.overhead_seconds).sum(), sends_and_receives + 5.0 * 0.25);
}

#[test]
fn speeds_apply_from_their_time_on() {
    let slow = |speed: &[&str]| {
        let speed = speed.iter().map(|spec| spec.to_string()).collect();
        play(Machine { speed, ..machine("ideal:hop=1") }, 4, 0, (1.0, 0.0)).seconds
    };
    let alone = slow(&[]);
    about(slow(&["0=0.5"]) - alone, 3.0);
    about(slow(&["all=0.5"]) - alone, 5.0);
    // If no PE is slow, PE 0 works from 0 to 1 s, from 4 to 5 s and from 8 to 9 s (a ball of 0 bytes).
    about(slow(&["0@6=0.25"]) - alone, 3.0);
    about(slow(&["1@1000=0.25"]), alone);
}

#[test]
fn a_balancer_reacts_to_a_pe_that_becomes_slow() {
    let run = |balancer: &str| {
        let machine = Machine { speed: vec!["2@0.1=0.25".into()], ..machine("ideal") };
        let balancer = vec![balancer.into()];
        workers(Config { machine, balancer, ..Config::on_machine("torus:4x2", "ideal") })
    };
    let (still, moving) = (run("DummyLB"), run("GreedyRefineLB"));
    let seconds = |report: &Report<u32>| report.machine.as_ref().expect("a machine").seconds;
    // The first twelve iterations take 8 ms. Without migrations, the others take 32 ms. After the balancer has measured
    // the new speed, the 64 ms of work are shared by PEs of total speed 7.25, and an iteration takes 9 or 10 ms.
    assert!((0.95..1.0).contains(&seconds(&still)), "{}", seconds(&still));
    assert!((0.5..0.6).contains(&seconds(&moving)), "{}", seconds(&moving));
    let steps = &moving.lb_steps;
    assert!(steps[0].before.imbalance < 0.01 && steps[1].before.imbalance > 1.0, "{steps:?}");
    assert!(steps[2].before.imbalance < 0.2, "{steps:?}");
}

#[test]
fn a_strategy_takes_the_time_of_strategy_seconds() {
    let run = |strategy_seconds| {
        let machine = Machine { strategy_seconds, ..machine("ideal:latency=1e-9,hop=1e-9") };
        let config =
            Config { machine, balancer: vec!["DummyLB".into()], ..Config::on_machine("mesh:8", "ideal") };
        workers(config)
    };
    let (free, slow) = (run(None), run(Some(StrategySeconds::Charged(0.5))));
    let seconds = |report: &Report<u32>| report.machine.as_ref().expect("a machine").seconds;
    about(seconds(&slow) - seconds(&free), 1.5);
    assert!(slow.lb_steps.iter().all(|step| step.strategy_seconds == 0.5), "{:?}", slow.lb_steps);
    let first = &slow.machine.as_ref().expect("a machine").pes[0];
    about(first.overhead_seconds, 1.5);
    let measured = run(Some(StrategySeconds::Measured));
    let measured_seconds: f64 = measured.lb_steps.iter().map(|step| step.strategy_seconds).sum();
    assert!(measured_seconds > 0.0);
    about(seconds(&measured) - seconds(&free), measured_seconds);
}

/// Machines of 16 PEs, and networks that serve them all.
const MACHINES: [&str; 4] = ["flat:16", "torus:4x4", "fattree:4:4", "dragonfly:groups=4,routers=2,hosts=2"];
const NETWORKS: [&str; 7] = [
    "ideal",
    "ideal:latency=0,hop=0.001,bandwidth=1e5",
    "flow:latency=1e-6,injection=1e9",
    "flow:sharing=latency",
    "packet",
    "packet:routing=adaptive",
    "wormhole:flit=16",
];

#[test]
fn the_same_seed_gives_the_same_run_and_every_network_the_same_answer() {
    let all = MACHINES.iter().flat_map(|machine| NETWORKS.map(|network| (machine, network)));
    for (machine, network) in all.step_by(if is_full_size() { 1 } else { 4 }) {
        let run = |seed| {
            let config = Config {
                balancer: vec!["RandomLB".into()],
                initial: "random".into(),
                seed,
                ..Config::on_machine(machine, network)
            };
            workers(config)
        };
        for seed in 0..2 {
            let (first, second) = (run(seed), run(seed));
            assert_eq!(first.machine, second.machine, "{machine}, {network}, seed {seed}");
            assert_eq!(first.lb_steps, second.lb_steps, "{machine}, {network}, seed {seed}");
            assert_eq!((first.result, first.migrations), (40, second.migrations));
        }
    }
}

#[test]
fn uncharged_work_takes_its_measured_time_if_asked_for() {
    /// Counts without charging.
    #[derive(Serialize, Deserialize)]
    struct Counter {
        done: Exit<u64>,
    }

    #[chare(index = ())]
    impl Counter {
        #[entry]
        fn count(&mut self, cx: &Cx<Self>) {
            let begin = std::time::Instant::now();
            while begin.elapsed().as_micros() < 2000 {
                std::hint::spin_loop();
            }
            self.done.exit(cx, 0);
        }
    }

    let run = |uncharged| {
        let machine = Machine { uncharged, speed: vec!["0=0.5".into()], ..machine("ideal") };
        let config = Config { machine, ..Config::on_machine("mesh:1", "ideal") };
        let report = equipoise::run(config, |pe, done| {
            let counter = pe.array((), |_| Counter { done });
            pe.main(move |pe| counter.at(pe, ()).count());
        });
        report.machine.expect("a machine").seconds
    };
    assert_eq!(run(Uncharged::Free), 0.0);
    assert!(run(Uncharged::Measured) >= 4e-3, "2 ms at half speed");
}

#[test]
fn time_advances_while_an_element_sends_only_to_itself() {
    /// One element sends to itself until another one exits.
    #[derive(Serialize, Deserialize)]
    struct Talker {
        done: Exit<()>,
    }

    #[chare(index = [i32; 1])]
    impl Talker {
        #[entry]
        fn talk(&mut self, cx: &Cx<Self>) {
            cx.peer(cx.index()).talk();
        }

        #[entry]
        fn wait(&mut self, cx: &Cx<Self>, left: u32) {
            if left == 0 {
                return self.done.exit(cx, ());
            }
            cx.peer([left as i32 % 2]).wait(left - 1);
        }
    }

    let report = watched("a talker".into(), || {
        equipoise::run(Config::on_machine("mesh:2", "ideal"), |pe, done| {
            let talkers = pe.array([2], |_| Talker { done });
            pe.main(move |pe| {
                talkers.at(pe, [0]).talk();
                talkers.at(pe, [1]).wait(20);
            });
        })
    });
    let machine = report.machine.expect("a machine");
    assert!((1.9e-5..3e-5).contains(&machine.seconds), "{}", machine.seconds);
}

#[test]
fn measured_time_of_one_pe_does_not_count_for_others() {
    /// Works for 10 ms without charging.
    #[derive(Serialize, Deserialize)]
    struct Busy {
        done: Exit<u32>,
    }

    #[chare(index = [i32; 1])]
    impl Busy {
        #[entry]
        fn work(&mut self, cx: &Cx<Self>) {
            let begin = std::time::Instant::now();
            while begin.elapsed().as_millis() < 10 {
                std::hint::spin_loop();
            }
            cx.peers().contribute().all_worked(1);
        }

        #[entry(reduce = u32::wrapping_add)]
        fn all_worked(&mut self, cx: &Cx<Self>, count: u32) {
            self.done.exit(cx, count);
        }
    }

    let machine = Machine { uncharged: Uncharged::Measured, ..machine("ideal") };
    let config = Config { machine, ..Config::on_machine("mesh:8", "ideal") };
    let report = equipoise::run(config, |pe, done| {
        let all = pe.array([8], |_| Busy { done });
        pe.main(move |pe| all.all(pe).work());
    });
    let machine = report.machine.expect("a machine");
    // If the work of a PE were added to the time of every PE, the run would take eight times as long. The upper limit is
    // high, because other processes may use the computer.
    assert!((0.01..0.05).contains(&machine.seconds), "{}", machine.seconds);
    assert!(machine.pes.iter().all(|pe| pe.busy_seconds >= 0.009), "{machine:?}");
}

#[test]
fn executions_running_at_the_end_are_truncated() {
    /// Works for as many seconds as its index, and the first then exits.
    #[derive(Serialize, Deserialize)]
    struct Long {
        done: Exit<()>,
    }

    #[chare(index = [i32; 1])]
    impl Long {
        #[entry]
        fn work(&mut self, cx: &Cx<Self>) {
            let [me] = cx.index();
            cx.charge(1.0 + 9.0 * f64::from(me));
            if me == 0 {
                self.done.exit(cx, ());
            }
        }
    }

    let machine = Machine { overhead: 0.125, ..machine("ideal:latency=0.5,hop=0") };
    let config = Config { machine, ..Config::on_machine("mesh:4", "ideal") };
    let report = equipoise::run(config, |pe, done| {
        let all = pe.array([4], |_| Long { done });
        pe.main(move |pe| all.all(pe).work());
    });
    let machine = report.machine.expect("a machine");
    for pe in &machine.pes {
        about(pe.busy_seconds + pe.overhead_seconds + pe.idle_seconds, machine.seconds);
        assert!(pe.busy_seconds > 0.0 && pe.overhead_seconds > 0.0, "{machine:?}");
    }
}

#[test]
fn refuses_flags_of_a_machine_without_a_network() {
    let machine = Machine { network: None, speed: vec!["all=2".into()], ..Machine::default() };
    let refused = equipoise::try_run(Config { machine, ..Config::threads(1) }, |_, _: Exit<()>| ());
    let sentence = refused.expect_err("there is no machine").to_string();
    assert!(sentence.contains("add --network"), "{sentence}");
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[the_same_seed_gives_the_same_run_and_every_network_the_same_answer]);
}
