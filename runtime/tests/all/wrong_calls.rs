//! The error of a wrong call names the file, line and column of the call in the program.

#![allow(missing_docs)]

use crate::common::place_of;
use equipoise::prelude::*;
use equipoise::try_run;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Call {
    Peer,
    At,
    Insert,
    Migrate,
    MigratePinned,
    Charge,
    SetLoad,
    Destroy,
    TwoSyncs,
    SyncAndQuiescence,
    ContributeLater,
    ContributeAllLater,
    OtherRun,
}

#[derive(Serialize, Deserialize)]
struct Caller {
    /// An array that no run has.
    stranger: Array<Pinned>,
    pinned: Array<Pinned>,
}

#[chare(index = [i32; 2], sync)]
impl Caller {
    #[entry]
    fn call(&mut self, cx: &Cx<Self>, call: Call) {
        match call {
            Call::Peer => cx.peer([3, 0]).call(call),
            Call::At => cx.array().at(cx, [0, -1]).call(call),
            Call::Insert => cx.array().insert(cx, [0, 2], Caller { ..*self }),
            Call::Migrate => cx.migrate(Pe(2)),
            Call::MigratePinned | Call::Destroy => self.pinned.at(cx, cx.here()).call(call),
            Call::Charge => cx.charge(-1.0),
            Call::SetLoad => cx.set_load(f64::NAN),
            Call::TwoSyncs => {
                cx.at_sync().call(call);
                cx.at_sync().call(Call::TwoSyncs)
            }
            Call::SyncAndQuiescence => cx.at_sync().at_quiescence().call(call),
            Call::ContributeLater => cx.at_sync().contribute().sum(1),
            Call::ContributeAllLater => cx.peers().at_quiescence().contribute().sum(1),
            Call::OtherRun => self.stranger.all(cx).call(call),
        }
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn sum(&mut self, _cx: &Cx<Self>, _sum: u32) {}
}

#[derive(Serialize, Deserialize)]
struct Pinned;

#[chare(index = Pe)]
impl Pinned {
    #[entry]
    fn call(&mut self, cx: &Cx<Self>, call: Call) {
        match call {
            Call::Destroy => cx.destroy(),
            _ => cx.migrate(Pe(0)), // of a chare that cannot migrate
        }
    }
}

fn contribute(callers: Array<Caller>, pe: &PeCx) {
    callers.all(pe).contribute().sum(2);
}

fn send_outside(callers: Array<Caller>, pe: &PeCx) {
    callers.at(pe, [7, 7]).sum(1);
}

/// Runs the setup and checks that the error has this sentence, and the place of the line with `code`.
#[track_caller]
fn check(sentence: &str, code: &str, setup: impl Fn(&Setup, Exit<u32>) + Sync) {
    for config in [Config::threads(2), Config::simulated(2, 3)] {
        let error = try_run(config, &setup).map(|report| report.result).expect_err("the run fails");
        let (error, place) = (error.to_string(), place_of(code, file!(), include_str!("wrong_calls.rs")));
        let end = error.find(sentence).map(|at| &error[at + sentence.len()..]).unwrap_or_default();
        assert!(end.contains(&place), "{error}\nis not: {sentence} .. {place}");
    }
}

/// An array of a run that is over, whose program has more arrays.
fn stranger() -> Array<Pinned> {
    let run = try_run(Config::threads(1), |pe, done| {
        let arrays = [(); 3].map(|()| pe.array(Pe(1), |_| Pinned));
        pe.main(move |pe| done.exit(pe, arrays[2]));
    });
    run.expect("the program exits").result
}

#[test]
fn an_error_names_the_line_of_the_wrong_call() {
    let stranger = stranger();
    let fails = |call: Call, sentence: &str, code: &str| {
        check(sentence, code, move |pe, _| {
            let pinned = pe.array(Pe(2), |_| Pinned);
            let callers = pe.array([3, 2], |_| Caller { stranger, pinned });
            pe.main(move |pe| callers.at(pe, [0, 0]).call(call));
        });
    };
    let outside = "is outside the array, whose shape is [3, 2]; indices are [0, 0] to [2, 1]";
    fails(Call::Peer, &format!("Caller[3, 0] {outside}"), "Call::Peer =>");
    fails(Call::At, &format!("Caller[0, -1] {outside}"), "Call::At =>");
    fails(Call::Insert, &format!("Caller[0, 2] {outside}"), "Call::Insert =>");
    fails(Call::Migrate, "there is no PE 2; PEs are 0 to 1", "Call::Migrate =>");
    fails(Call::MigratePinned, "Pinned cannot migrate", "cx.migrate(Pe(0))");
    fails(Call::Destroy, "cannot be destroyed", "cx.destroy()");
    fails(Call::Charge, "cannot charge -1.0 seconds", "Call::Charge =>");
    fails(Call::SetLoad, "cannot set a load of NaN seconds", "Call::SetLoad =>");
    fails(
        Call::TwoSyncs,
        "called `at_sync` twice in one entry method; call it once",
        "at_sync().call(Call::TwoSyncs)",
    );
    fails(
        Call::SyncAndQuiescence,
        "cannot wait for two things; call `at_sync`, `at_quiescence`, `at_checkpoint` or `after`, once",
        "Call::SyncAndQuiescence =>",
    );
    fails(Call::ContributeLater, "cannot be postponed", "Call::ContributeLater =>");
    fails(Call::ContributeAllLater, "cannot be postponed", "Call::ContributeAllLater =>");
    fails(Call::OtherRun, "only in the run that created the array", "Call::OtherRun =>");
}

#[test]
fn an_error_outside_the_elements_names_the_line_of_the_wrong_call() {
    let stranger = stranger();
    let fails = |main: fn(Array<Caller>, &PeCx), sentence: &str, code: &str| {
        check(sentence, code, move |pe, _| {
            let pinned = pe.array(Pe(2), |_| Pinned);
            let callers = pe.array([3, 2], |_| Caller { stranger, pinned });
            pe.main(move |pe| main(callers, pe));
        });
    };
    fails(contribute, "only elements contribute to a reduction", "callers.all(pe)");
    fails(send_outside, "Caller[7, 7] is outside the array", "callers.at(pe, [7, 7])");
}

/// A setup with a wrong call.
fn set_up(pe: &Setup, wrong: &str, stranger: Array<Pinned>, shared: Shared<i32>) {
    let make = move |_: [i32; 2]| Caller { stranger, pinned: stranger };
    match wrong {
        "shape" => drop(pe.array([-1, 2], make)),
        "per PE" => drop(pe.array(Pe(9), |_| Pinned)),
        "placed" => drop(pe.array_placed([2, 2], |_| Pe(7), make)),
        "sparse" => drop(pe.sparse::<Pe, Pinned>(Pe(2))),
        "sparse placed" => drop(pe.sparse_placed::<_, Caller>([2, 2], |_| Pe(8))),
        "read" => drop(pe.read(shared)),
        "different" => drop(pe.array([3, 2 + pe.here().0 as i32], make)),
        _ => {
            pe.main(|_| ());
            pe.main(|_| ()); // again
        }
    }
}

#[test]
fn an_error_in_the_setup_names_the_line_of_the_wrong_call() {
    let stranger = stranger();
    let run = try_run(Config::threads(1), |pe, done| {
        let shared = pe.shared(|| 7);
        pe.main(move |pe| done.exit(pe, shared));
    });
    let shared: Shared<i32> = run.expect("the program exits").result;
    for (wrong, sentence, code) in [
        ("shape", "the shape [-1, 2] of Caller is negative", "pe.array([-1, 2]"),
        ("per PE", "has one element on every PE; give it the shape Pe(2)", "pe.array(Pe(9)"),
        ("placed", "is placed on PE 7, but PEs are 0 to 1", "pe.array_placed([2, 2]"),
        ("sparse", "Pinned has one element on every PE; use `array`", "pe.sparse::<Pe"),
        ("sparse placed", "is placed on PE 8, but PEs are 0 to 1", "pe.sparse_placed::<_"),
        ("read", "only in the run that created the value", "pe.read(shared)"),
        ("different", "array 1 of the setup is Caller of shape [3, ", "pe.array([3, 2 + pe.here()"),
        ("main", "call `Setup::main` once", "pe.main(|_| ()); // again"),
    ] {
        check(sentence, code, |pe, _| set_up(pe, wrong, stranger, shared));
    }
}

#[test]
fn an_error_about_different_setups_names_both_pes_and_arrays() {
    let stranger = stranger();
    let make = move |_: [i32; 2]| Caller { stranger, pinned: stranger };
    let in_processes = |seed| Config { pes_per_process: Some(2), ..Config::simulated(4, seed) };
    for config in [Config::threads(2), Config::simulated(2, 3)].into_iter().chain((0..8).map(in_processes)) {
        let run = try_run(config, |pe, _: Exit<u32>| {
            pe.array([3, 2], make);
            // So all processes have made the same arrays.
            if pe.here().0 % 2 == 1 {
                pe.array([4, 2], make);
            }
        });
        let error = run.map(|report| report.result).expect_err("PE 0 made less").to_string();
        let sentence = |less: u32, more: u32| {
            format!(
                "PE {less} made 1 array, but PE {more} also made Caller of shape [4, 2]; make the same arrays on every PE"
            )
        };
        // Any process may be the first that finds the difference.
        let is_named = [sentence(0, 1), sentence(2, 3)].iter().any(|it| error.starts_with(it));
        assert!(is_named, "{error}");
    }
}
