//! Life cycles from top to bottom, `#[flow]`: their elements migrate and are saved where they wait.

#![allow(missing_docs)]

mod asking;
mod generic;
mod nested;

use crate::checkpoints::{restarts_on, saves};
use crate::common::*;
use equipoise::checkpoint::Checkpoint;
use equipoise::prelude::*;
use equipoise::{Report, RunError, try_run};

const MEMBERS: usize = 7;
const ROUNDS: u32 = 16;

/// Exchanges words with its neighbors, adds up all states, balances, migrates and is saved.
#[derive(Serialize, Deserialize)]
struct Member {
    state: u64,
    panics_at: Shared<u32>,
    done: Exit<u64>,
}

#[chare(index = [i32; 1], sync)]
impl Member {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>, rounds: u32) {
        for round in 0u32..rounds {
            assert!(round != *self.panics_at.get(cx) || cx.index() != [3], "as asked");
            self.tell(cx, round);
            let mut words: Vec<u64> = Vec::new();
            for _ in 0u32..2 {
                when!(hear(of, word) if of == round => words.push(mixed(word)));
            }
            let sum: u64 = reduce!(cx, u64::wrapping_add, self.state);
            self.state = next(self.state, &words, sum);
            match round % 4 {
                0 => at_sync!(cx),
                1 => cx.migrate(Pe((round + cx.index()[0] as u32) % cx.pes() as u32)),
                2 => {
                    cx.peer(cx.index()).at_checkpoint().saved();
                    when!(saved() => {});
                }
                _ => {}
            }
        }
        let sum: u64 = reduce!(cx, u64::wrapping_add, self.state);
        self.done.exit(cx, sum);
    }

    #[entry]
    fn hear(round: u32, word: u64);

    #[entry]
    fn saved();
}

impl Member {
    fn tell(&self, cx: &Cx<Self>, round: u32) {
        for step in [1, MEMBERS as i32 - 1] {
            cx.peer([(cx.index()[0] + step) % MEMBERS as i32]).hear(round, self.state);
        }
    }
}

fn next(state: u64, words: &[u64], sum: u64) -> u64 {
    mixed(state ^ sum ^ words.iter().fold(0, |all, &word| word.wrapping_add(all)))
}

fn run(config: Config, panics_at: u32) -> Result<Report<u64>, RunError> {
    try_run(config, move |pe, done| {
        let panics_at = pe.shared(|| panics_at);
        let members = pe.array([MEMBERS as i32], |[at]| Member { state: mixed(at as u64), panics_at, done });
        pe.main(move |pe| members.all(pe).life(ROUNDS));
    })
}

/// The result of the same program without messages.
fn expected() -> u64 {
    let mut states: Vec<u64> = (0..MEMBERS as u64).map(mixed).collect();
    for _ in 0..ROUNDS {
        let sum = states.iter().fold(0, |all: u64, &state| all.wrapping_add(state));
        let words = |at: usize| [1, MEMBERS - 1].map(|step| mixed(states[(at + step) % MEMBERS]));
        states = (0..MEMBERS).map(|at| next(states[at], &words(at), sum)).collect();
    }
    states.iter().fold(0, |all: u64, &state| all.wrapping_add(state))
}

fn rotating(config: Config) -> Config {
    Config { balancer: vec!["RotateLB".into()], ..config }
}

#[test]
fn a_flow_has_the_result_of_the_same_program_without_messages() {
    everywhere(160, 32, |config| {
        let report = run(rotating(config), u32::MAX).expect("the run exits");
        assert_eq!(report.result, expected());
    });
}

#[test]
fn a_flow_without_a_balancer_has_the_same_result() {
    everywhere(32, 8, |config| {
        assert_eq!(run(config, u32::MAX).expect("the run exits").result, expected());
    });
}

#[test]
fn a_flow_continues_from_a_checkpoint_at_the_wait_where_it_was_saved() {
    everywhere(48, 12, |config| {
        let seed = config.seed;
        let dir = tempfile::tempdir().expect("a folder");
        let config = saves(rotating(config), dir.path(), Some(1));
        let step = 3 + (mixed(seed) >> 20) as u32 % (ROUNDS - 3);
        run(config.clone(), step).expect_err("the program panics");
        Checkpoint::newest(dir.path()).expect("it has saved itself");
        let other = if seed % 3 == 0 { threads(mixed(seed) >> 8) } else { simulated(mixed(seed) >> 8) };
        let other = restarts_on(Config { seed, ..rotating(other) }, dir.path());
        let report =
            run(other.clone(), u32::MAX).unwrap_or_else(|error| panic!("{}: {error}", describe(&other)));
        assert_eq!(report.result, expected(), "{}", describe(&other));
    });
}

/// Receives messages in any order, in several ways.
#[derive(Serialize, Deserialize)]
struct Clerk {
    letters: u32,
    sums: [u64; 5],
    done: Exit<[u64; 5]>,
}

#[chare(index = [i32; 1])]
impl Clerk {
    #[flow]
    fn works(&mut self, cx: &Cx<Self>, mut letters: u32) {
        let mut is_open: bool = true;
        while is_open {
            select! {
                letter(of) if of % 2 == 0 => self.sums[0] += u64::from(of),
                letter(of) => {
                    // The answer is awaited before other letters.
                    cx.peer(cx.index()).answer(of);
                    when!(answer(to) if to == of => self.sums[1] += u64::from(to));
                    cx.migrate(Pe(of % cx.pes() as u32));
                }
                closes() if letters == 0 => { is_open = false; continue }
            }
            letters -= 1;
            self.letters += 1;
        }
        overlap! {
            parcel(weight) if weight < 10 => self.sums[2] = weight,
            parcel(weight) if weight >= 10 => { self.sums[3] = weight },
            key() => self.sums[4] += 1,
        }
        self.sums[4] += u64::from(self.letters);
        self.done.exit(cx, self.sums);
    }

    #[entry]
    fn letter(number: u32);

    #[entry]
    fn answer(number: u32);

    #[entry]
    fn closes();

    #[entry]
    fn parcel(weight: u64);

    #[entry]
    fn key();
}

#[test]
fn a_flow_waits_for_one_or_all_of_several_messages() {
    everywhere(80, 16, |config| {
        let seed = config.seed;
        let report = equipoise::run(config, move |pe, done| {
            let clerks = pe.array([1], |_| Clerk { letters: 0, sums: [0; 5], done });
            pe.main(move |pe| {
                let clerk = || clerks.at(pe, [0]);
                clerk().closes();
                for number in 0..11 {
                    clerk().letter(number);
                    match (number + seed as u32) % 11 {
                        2 => clerk().works(11),
                        4 => clerk().parcel(33),
                        7 => clerk().key(),
                        9 => clerk().parcel(3),
                        _ => {}
                    }
                }
            });
        });
        assert_eq!(report.result, [30, 25, 3, 33, 12]);
    });
}

/// Runs its flow several times.
#[derive(Serialize, Deserialize)]
struct Reader {
    books: Vec<u32>,
    done: Exit<Vec<u32>>,
}

#[chare(index = ())]
impl Reader {
    #[flow]
    fn reads(&mut self, cx: &Cx<Self>, book: u32, last: bool) {
        for page in 0u8..3 {
            cx.peer(()).turned();
            when!(turned() => self.books.push(book + u32::from(page)));
        }
        if last {
            self.done.exit(cx, std::mem::take(&mut self.books));
        }
    }

    #[entry]
    fn turned();
}

#[test]
fn a_message_that_starts_a_flow_again_waits_until_the_flow_has_ended() {
    everywhere(16, 8, |config| {
        let report = equipoise::run(config, |pe, done| {
            let reader = pe.array((), |()| Reader { books: Vec::new(), done });
            pe.main(move |pe| {
                reader.at(pe, ()).reads(10, false);
                reader.at(pe, ()).reads(20, false);
                reader.at(pe, ()).at_quiescence().reads(30, true);
            });
        });
        let (first, last) = report.result.split_at(6);
        assert!(first == [10, 11, 12, 20, 21, 22] || first == [20, 21, 22, 10, 11, 12], "{first:?}");
        assert_eq!(last, [30, 31, 32]);
    });
}

#[test]
fn a_run_that_comes_to_rest_says_for_which_messages_flows_wait() {
    for config in [
        Config::simulated(3, 1),
        Config { pes_per_process: Some(2), ..Config::simulated(4, 2) },
        Config::threads(2),
    ] {
        let error = try_run(config, |pe, done: Exit<[u64; 5]>| {
            let clerks = pe.array([6], |_| Clerk { letters: 0, sums: [0; 5], done });
            pe.main(move |pe| {
                clerks.only(pe, |[at]| at < 4).works(1);
                clerks.at(pe, [5]).works(0);
                clerks.at(pe, [5]).closes();
            });
        });
        let error = error.expect_err("no element exits").to_string();
        let lines = [
            "Clerk[0], Clerk[1], Clerk[2] and 1 more wait for `letter` or `closes`",
            "Clerk[5] waits for `parcel` or `key`",
        ];
        for line in lines {
            assert!(error.contains(line), "{error}");
        }
    }
}

#[test]
fn a_run_that_comes_to_rest_names_flows_that_do_not_run() {
    for reads in [false, true] {
        let error = try_run(Config::simulated(2, 1), |pe, done| {
            let reader = pe.array((), |()| Reader { books: Vec::new(), done });
            pe.main(move |pe| {
                if reads {
                    reader.at(pe, ()).reads(10, false);
                }
                reader.at(pe, ()).at_quiescence().turned();
                reader.at(pe, ()).at_quiescence().turned();
            });
        });
        let error = error.expect_err("no element exits").to_string();
        let line = "Reader has 2 messages for `turned`, but its flow `reads` does not run: it was not started, or has ended";
        assert!(error.contains(line), "{error}");
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        a_flow_has_the_result_of_the_same_program_without_messages,
        a_flow_without_a_balancer_has_the_same_result,
        a_flow_continues_from_a_checkpoint_at_the_wait_where_it_was_saved,
        a_flow_waits_for_one_or_all_of_several_messages,
        a_message_that_starts_a_flow_again_waits_until_the_flow_has_ended,
    ]);
}
