//! Flows that ask others and wait for the answer, `ask!`: they migrate and are saved while they wait.

use crate::checkpoints::{restarts_on, saves};
use crate::common::*;
use equipoise::checkpoint::Checkpoint;
use equipoise::prelude::*;
use equipoise::{Callback, Report, try_run};

const PUPILS: usize = 6;
const TEACHERS: usize = 4;
const QUESTIONS: u32 = 9;

/// Asks teachers, and builds on their answers.
#[derive(Serialize, Deserialize)]
struct Pupil {
    knows: u64,
    asked: Vec<String>,
    questions: u32,
    teachers: Array<Teacher>,
    done: Exit<u64>,
}

impl Pupil {
    fn new(at: i32, teachers: Array<Teacher>, done: Exit<u64>) -> Self {
        Pupil { knows: mixed(at as u64), asked: Vec::new(), questions: 0, teachers, done }
    }
}

#[chare(index = [i32; 1], sync)]
impl Pupil {
    #[flow]
    fn learns(&mut self, cx: &Cx<Self>) {
        for question in 0u32..QUESTIONS {
            let teacher: [i32; 1] = teacher(self.knows);
            if question % 2 == 0 {
                let answer: u64 =
                    ask!(cx, |answer| self.teachers.at(cx, teacher).answers(self.knows, answer));
                self.knows = mixed(answer ^ u64::from(question));
            } else {
                let answer: String = "moved before the next question".into();
                self.asked.push(answer);
                let _: u64 = ask!(cx, |answer| {
                    self.questions += 1;
                    match self.knows % 2 {
                        0 => self.teachers.at(cx, teacher).answers(self.knows, answer.clone()),
                        _ => answer.send(cx, 3),
                    }
                });
                assert_eq!(self.asked.len() as u32, self.questions);
                ask!(cx, |noted| self.teachers.at(cx, teacher).notes(self.knows, noted));
                self.knows = mixed(self.knows);
            }
            match question % 3 {
                0 => at_sync!(cx),
                1 => cx.migrate(Pe((question + cx.index()[0] as u32) % cx.pes() as u32)),
                _ => {}
            }
        }
        let all: u64 = reduce!(cx, u64::wrapping_add, self.knows);
        self.done.exit(cx, all);
    }
}

fn teacher(knows: u64) -> [i32; 1] {
    [(knows % TEACHERS as u64) as i32]
}

/// Answers.
#[derive(Serialize, Deserialize)]
struct Teacher {
    words: u64,
}

#[chare(index = [i32; 1])]
impl Teacher {
    #[entry]
    fn answers(&mut self, cx: &Cx<Self>, question: u64, answer: Callback<u64>) {
        if question % 3 == 0 {
            // Another element may answer.
            return cx.peer(teacher(question / 3)).answers(question + 1, answer);
        }
        answer.send(cx, mixed(question));
    }

    #[entry]
    fn notes(&mut self, cx: &Cx<Self>, word: u64, noted: Callback<()>) {
        self.words = self.words.wrapping_add(word);
        noted.send(cx, ());
    }
}

fn run(config: Config) -> Report<u64> {
    equipoise::run(config, |pe, done| {
        let teachers = pe.array([TEACHERS as i32], |_| Teacher { words: 0 });
        let pupils = pe.array([PUPILS as i32], |[at]| Pupil::new(at, teachers, done));
        pe.main(move |pe| pupils.all(pe).learns());
    })
}

/// The same without messages.
fn expected() -> u64 {
    let answer = |question: u64| mixed(if question % 3 == 0 { question + 1 } else { question });
    let learns = |at: u64| {
        (0..QUESTIONS).fold(mixed(at), |knows, question| match question % 2 {
            0 => mixed(answer(knows) ^ u64::from(question)),
            _ => mixed(knows),
        })
    };
    (0..PUPILS as u64).map(learns).fold(0, u64::wrapping_add)
}

fn rotating(config: Config) -> Config {
    Config { balancer: vec!["RotateLB".into()], ..config }
}

#[test]
fn flows_have_the_result_of_the_same_program_without_questions() {
    everywhere(60, 24, |config| {
        assert_eq!(run(config.clone()).result, expected());
        assert_eq!(run(rotating(config)).result, expected());
    });
}

#[test]
fn a_flow_continues_from_a_checkpoint_before_its_next_question() {
    everywhere(20, 8, |config| {
        let dir = tempfile::tempdir().expect("a folder");
        let config = saves(rotating(config), dir.path(), Some(1));
        let report = run(config.clone());
        assert_eq!((report.result, report.checkpoint_error), (expected(), None));
        for folder in Checkpoint::all(dir.path()).expect("checkpoints") {
            assert_eq!(run(restarts_on(config.clone(), &folder)).result, expected());
        }
    });
}

#[test]
fn a_run_that_comes_to_rest_says_who_waits_for_an_answer() {
    let error = try_run(Config::simulated(3, 1), |pe, done| {
        let teachers = pe.sparse([TEACHERS as i32]);
        let pupils = pe.array([3], |[at]| Pupil::new(at, teachers, done));
        pe.main(move |pe| pupils.at(pe, [1]).learns());
    });
    let error = error.expect_err("there are no teachers").to_string();
    assert!(error.contains("Pupil[1] waits for the answer to `ask!`"), "{error}");
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        flows_have_the_result_of_the_same_program_without_questions,
        a_flow_continues_from_a_checkpoint_before_its_next_question,
    ]);
}
