//! Every mistake of a program ends its run with an error that names the place, and no run hangs.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{RunError, Transport, try_run};

/// The mistake of a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Mistake {
    Panics,
    PanicsWithNothing,
    Guard,
    Outside,
    Inserts,
    SyncsAgain,
    SyncsTwice,
    Migrates,
    MigratesNowhere,
}

#[derive(Serialize, Deserialize)]
struct Clumsy {
    mistake: Mistake,
    victim: [i32; 2],
    done: Exit<u32>,
}

fn careful(mistake: Mistake, left: u32) -> bool {
    assert!(mistake != Mistake::Guard || left > 0, "the guard trips");
    true
}

#[chare(index = [i32; 2], sync)]
impl Clumsy {
    /// A walk over random elements; the last step makes the mistake.
    #[entry(when = careful(self.mistake, left))]
    fn stumble(&mut self, cx: &Cx<Self>, left: u32) {
        if left > 0 {
            let next = if left == 1 { self.victim } else { [left as i32 % 3, left as i32 % 2] };
            return cx.peer(next).stumble(left - 1);
        }
        match self.mistake {
            Mistake::Panics => panic!("over its own feet"),
            Mistake::PanicsWithNothing => std::panic::panic_any(7u8),
            Mistake::Guard => unreachable!("its guard panics"),
            Mistake::Outside => cx.peer([3, 0]).stumble(1),
            Mistake::Inserts => {
                let again = Clumsy { mistake: self.mistake, victim: self.victim, done: self.done };
                cx.array().insert(cx, [0, 1], again);
            }
            Mistake::SyncsAgain => {
                cx.at_sync().stumble(1);
                cx.peer(cx.index()).stumble(0);
            }
            Mistake::SyncsTwice => {
                cx.at_sync().stumble(1);
                cx.at_sync().stumble(2);
            }
            Mistake::Migrates => cx.migrate(Pe(99)),
            Mistake::MigratesNowhere => cx.migrate(Pe(u32::MAX)),
        }
    }
}

fn failure(config: Config, mistake: Mistake) -> String {
    let error = try_run(config, |pe, done: Exit<u32>| {
        let clumsy = pe.array([3, 2], |_| Clumsy { mistake, victim: [2, 1], done });
        pe.main(move |pe| clumsy.at(pe, [0, 0]).stumble(9));
    });
    error.map(|report| report.result).expect_err("the run fails").to_string()
}

#[test]
fn a_panic_names_the_element_the_entry_and_the_pe() {
    everywhere(14, 8, |config| {
        let last = config.pes.unwrap_or(1) - 1;
        let config = Config { initial: "blocks".into(), balancer: vec!["DummyLB".into()], ..config };
        let here = format!(
            "Clumsy[2, 1] in entry `stumble` on PE {} panicked: ",
            if last > 5 { 5 * (last + 1) / 6 } else { last }
        );
        let sentence = |mistake| failure(config.clone(), mistake);
        let again = match config.transport {
            Transport::Threads | Transport::Mpi => String::new(),
            Transport::Simulated => format!(" (simulated: seed {} repeats it)", config.seed),
        };
        let exactly = |mistake, message: &str, code: &str| {
            let place = place_of(code, file!(), include_str!("failures.rs"));
            let (sentence, begin) = (sentence(mistake), format!("{here}{message} {place}"));
            assert!(sentence.starts_with(&begin) && sentence.ends_with(&format!("){again}")), "{sentence}");
        };
        exactly(Mistake::Panics, "over its own feet", "Mistake::Panics =>");
        exactly(Mistake::PanicsWithNothing, "a panic without a message", "Mistake::PanicsWithNothing =>");
        exactly(Mistake::Guard, "the guard trips", "assert!(mistake != Mistake::Guard");
        let outside = "Clumsy[3, 0] is outside the array, whose shape is [3, 2]";
        assert!(sentence(Mistake::Outside).starts_with(&format!("{here}{outside}")));
        let syncs = "Clumsy[2, 1] called `at_sync` again before it received the message of its previous `at_sync`; call \
                     it in the entry that receives this message, or later";
        assert!(sentence(Mistake::SyncsAgain).starts_with(&format!("{here}{syncs}")));
        assert!(sentence(Mistake::SyncsTwice).starts_with(&format!("{here}Clumsy[2, 1] called `at_sync`")));
        let nowhere = format!("{here}there is no PE 99; PEs are 0 to {last} (");
        assert!(sentence(Mistake::Migrates).starts_with(&nowhere));
        assert!(sentence(Mistake::MigratesNowhere).starts_with(&here));
        let home = 3 * (last + 1) / 6;
        let inserted =
            format!("cannot insert Clumsy[0, 1]: it exists already, on PE {home}; destroy it first, or");
        assert!(sentence(Mistake::Inserts).starts_with(&inserted));
    });
}

#[test]
fn at_sync_is_refused_again_without_a_load_balancer_too() {
    everywhere(14, 8, |config| {
        for config in [Config { lb_off: true, balancer: vec!["DummyLB".into()], ..config.clone() }, config] {
            for (mistake, sentence) in [
                (
                    Mistake::SyncsAgain,
                    "Clumsy[2, 1] called `at_sync` again before it received the message of its previous `at_sync`; \
                     call it",
                ),
                (Mistake::SyncsTwice, "Clumsy[2, 1] called `at_sync` twice in one entry method"),
            ] {
                let error = failure(config.clone(), mistake);
                assert!(error.contains(sentence), "{error}");
            }
        }
    });
}

/// The error of a run of this setup, on any machine.
#[track_caller]
fn check(expected: &'static str, setup: fn(&Setup, Exit<u32>)) {
    everywhere(7, 8, move |config| {
        // Some mistakes need several PEs.
        let config = with_pes(&config, config.pes.unwrap_or(1) + 2);
        let error = try_run(config, setup).map(|report| report.result).expect_err("the run fails");
        assert!(error.to_string().contains(expected), "{error}\nis not: {expected}");
        assert!(!matches!(error, RunError::Quiet { .. }));
    });
}

fn clumsy(done: Exit<u32>) -> impl Fn([i32; 2]) -> Clumsy {
    move |_| Clumsy { mistake: Mistake::Panics, victim: [0, 0], done }
}

#[test]
fn a_panic_outside_the_elements_names_its_place() {
    check("`main` on PE 0 panicked: in main", |pe, _| pe.main(|_| panic!("in main")));
    check("the setup of PE 2 panicked: in setup", |pe, _| {
        assert!(pe.here() != Pe(2), "in setup");
    });
    check("the setup of PE 1 panicked: making [2, 1]", |pe, done| {
        let two = |rank: i32| Pe(u32::from(rank == 5));
        let make = clumsy(done);
        pe.array_placed(
            [3, 2],
            |[x, y]| two(x + 3 * y),
            |at| {
                assert!(at != [2, 1], "making {at:?}");
                make(at)
            },
        );
    });
    check("a parked closure on PE 0 panicked: in a parked closure", |pe, _| {
        pe.main(|pe| pe.reply(|_, ()| panic!("in a parked closure")).send(pe, ()));
    });
    check("the setup of PE 0 panicked: `main` is already set; call `Setup::main` once", |pe, _| {
        pe.main(|_| ());
        pe.main(|_| ());
    });
    check("`main` on PE 0 panicked: Clumsy[0, 2] is outside the array", |pe, done| {
        let all = pe.array([3, 2], clumsy(done));
        pe.main(move |pe| all.at(pe, [0, 2]).stumble(0));
    });
}

#[test]
fn refuses_a_setup_that_differs_between_pes() {
    check("make the same arrays ", |pe, done| {
        let shape = if pe.here() == Pe(1) { [3, 3] } else { [3, 2] };
        pe.array(shape, clumsy(done));
    });
    check("make the same arrays ", |pe, done| {
        if pe.here() == Pe(1) {
            pe.array((), |()| Lonely);
        }
        pe.array([3, 2], clumsy(done));
    });
    check("make the same arrays ", |pe, done| {
        pe.array([3, 2], clumsy(done));
        if pe.here() != Pe(2) {
            pe.array([3, 2], clumsy(done));
        }
    });
}

#[derive(Serialize, Deserialize)]
struct Lonely;

#[chare(index = ())]
impl Lonely {
    #[entry]
    fn nothing(&mut self, _cx: &Cx<Self>) {}
}

#[test]
fn refuses_impossible_shapes_and_placements() {
    check("the shape [-1, 2] of Clumsy is negative or has more than 2^32 - 1 indices", |pe, done| {
        pe.array([-1, 2], clumsy(done));
    });
    check("the shape [65536, 65536] of Clumsy", |pe, _| {
        pe.sparse::<_, Clumsy>([1 << 16, 1 << 16]);
    });
    check("is placed on PE 77, but PEs are 0 to", |pe, done| {
        pe.array_placed([3, 2], |_| Pe(77), clumsy(done));
    });
}

#[test]
fn refuses_an_invalid_configuration_before_the_run() {
    let refused = |config: Config, expected: &str| {
        let run = try_run(config, |_, _: Exit<u32>| panic!("nothing runs"));
        match run.map(|report| report.result) {
            Err(RunError::Config(sentence)) => assert!(sentence.contains(expected), "{sentence}"),
            other => panic!("{other:?}"),
        }
    };
    refused(Config::threads(0), "give a number from 1 to");
    refused(Config { balancer: vec!["GredyLB".into()], ..Config::threads(2) }, "GreedyLB");
    refused(Config { initial: "/nowhere/at/all".into(), ..Config::simulated(2, 0) }, "cannot read");
}

#[test]
fn refuses_a_placement_file_of_another_length() {
    let path = std::env::temp_dir().join(format!("placement-{}", std::process::id()));
    std::fs::write(&path, "0\n1\n0\n").unwrap();
    let config = Config { initial: path.display().to_string(), ..Config::threads(2) };
    let run = move || {
        let run = try_run(config, |pe, done: Exit<u32>| {
            pe.array([3, 2], clumsy(done));
        });
        run.map(|report| report.result)
    };
    let error = watched("a placement file".into(), run);
    std::fs::remove_file(path).unwrap();
    let error = error.expect_err("no array has 3 elements").to_string();
    let remedy = "write a line for each element of one array, in index order";
    let sizes = format!("no array has 3 elements (Clumsy has 6); {remedy}");
    assert_eq!(error, format!("--initial lists 3 PEs, and {sizes}"));
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        a_panic_names_the_element_the_entry_and_the_pe,
        at_sync_is_refused_again_without_a_load_balancer_too,
        a_panic_outside_the_elements_names_its_place,
        refuses_a_setup_that_differs_between_pes,
        refuses_impossible_shapes_and_placements,
        a_destructor_that_panics_after_the_exit_fails_the_run,
    ]);
}

/// Its destructor panics, if it has begun.
#[derive(Serialize, Deserialize)]
struct Fragile {
    has_begun: bool,
    done: Exit<u32>,
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.has_begun, "it broke");
    }
}

#[chare(index = [i32; 1])]
impl Fragile {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        self.has_begun = true;
        cx.peer([0]).contribute().end(1);
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn end(&mut self, cx: &Cx<Self>, sum: u32) {
        self.done.exit(cx, sum);
    }
}

#[test]
fn a_destructor_that_panics_after_the_exit_fails_the_run() {
    everywhere(20, 8, |config| {
        for parks in [false, true] {
            let failed = try_run(config.clone(), |pe, done| {
                let fragile = pe.array([9], |_| Fragile { has_begun: false, done });
                pe.main(move |pe| {
                    if parks {
                        let parked = Fragile { has_begun: true, done };
                        pe.reply(move |_, ()| drop(parked));
                    } else {
                        fragile.all(pe).begin();
                    }
                    fragile.all(pe).at_quiescence().end(0);
                });
            });
            let error = failed.map(|report| report.result).expect_err("it breaks").to_string();
            let begin = "a destructor at the end of PE ";
            assert!(error.starts_with(begin) && error.contains(" panicked: it broke ("), "{error}");
        }
    });
}

/// Its bytes do not say which variant it is.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Nameless {
    Number(u32),
    Text(String),
}

/// The name of its variant is a field.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Number { value: u32 },
}

/// Refuses odd numbers when it is decoded.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "u32")]
struct Even(u32);

impl TryFrom<u32> for Even {
    type Error = String;

    fn try_from(number: u32) -> Result<Even, String> {
        if number % 2 == 0 { Ok(Even(number)) } else { Err(format!("{number} is odd")) }
    }
}

#[derive(Serialize, Deserialize)]
struct Reader {
    done: Exit<u32>,
}

#[chare(index = Pe)]
impl Reader {
    #[entry]
    fn read(&mut self, cx: &Cx<Self>, value: Nameless) {
        let number = match value {
            Nameless::Number(number) => number,
            Nameless::Text(text) => text.len() as u32,
        };
        self.done.exit(cx, number);
    }

    #[entry]
    fn tagged(&mut self, cx: &Cx<Self>, value: Tagged) {
        let Tagged::Number { value } = value;
        self.done.exit(cx, value);
    }

    #[entry]
    fn even(&mut self, cx: &Cx<Self>, number: Even) {
        self.done.exit(cx, number.0);
    }
}

#[test]
fn a_message_that_cannot_be_decoded_names_the_array_the_reason_and_the_remedy() {
    let send = |which: usize, seed: u64| {
        let failed = try_run(Config::simulated(2, seed), move |pe, done| {
            let readers = pe.array(Pe(2), |_| Reader { done });
            pe.main(move |pe| match which {
                0 => readers.at(pe, Pe(1)).read(Nameless::Number(7)),
                1 => readers.at(pe, Pe(1)).tagged(Tagged::Number { value: 7 }),
                _ => readers.at(pe, Pe(1)).even(Even(7)),
            });
        });
        failed.map(|report| report.result).expect_err("it cannot be decoded").to_string()
    };
    for seed in 0..10 {
        for (which, words) in [
            (0, "(serde's `deserialize_any`); where"),
            (1, "(serde's `deserialize_any`); where"),
            (2, ": 7 is odd; where"),
        ] {
            let error = send(which, seed);
            assert!(error.starts_with("cannot decode a message to Reader or an element of it"), "{error}");
            assert!(error.contains(words), "{error}");
            assert!(error.contains("`untagged`") && error.contains("leave them out"), "{error}");
        }
    }
}
