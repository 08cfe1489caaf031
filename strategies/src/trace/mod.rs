//! What happened in a run: who worked for how long, who told whom what, and what had to wait for what.
//!
//! A trace holds what does not depend on the network: the executions with their work and their sends, in
//! the order in which they began, and what each of them needed before it could begin. So it can be
//! [replayed](replay()) on another network, another machine or another placement, and the same execution is
//! timed anew: the method of the papers of Agarwal et al. (2006, section 5.3) and of BigNetSim.
//!
//! The crate knows nothing of chares: an object is whatever executes. The first objects are the PEs
//! themselves, which execute what the runtime does; the others can be placed elsewhere.

use crate::params::are_seconds;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

mod file;
pub mod replay;
mod speeds;
mod turns;

pub use file::TraceError;
pub(crate) use file::recognises;
pub use replay::{Replay, replay};
pub use speeds::Speeds;
pub use turns::{Turns, Waiting};

/// What happened in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The spec of the machine it was recorded on.
    pub topology: String,
    /// The spec of the network it was recorded on.
    pub network: String,
    /// The seed of the run.
    pub seed: u64,
    /// How many PEs there were.
    pub pes: u32,
    /// When it was over, in seconds.
    pub seconds: f64,
    /// The execution that ended it; what others still did does not count. None if it failed.
    #[serde(default)]
    pub exit: Option<u32>,
    /// How fast the PEs were, by PE; empty if their speeds were 1 throughout.
    #[serde(default)]
    pub speeds: Vec<Speeds>,
    /// The names of the arrays.
    pub arrays: Vec<String>,
    /// The objects beside the PEs, in the order of a mapping file: object number `pes` is the first.
    pub objects: Vec<TraceObject>,
    /// The messages, in the order in which they were sent.
    pub messages: Vec<TraceMessage>,
    /// The executions; whatever one needs stands before it. Those of a PE are in the order in which they began,
    /// but that what a PE itself did in a turn, while it took one message, stands after those of its elements.
    pub executions: Vec<Execution>,
}

/// Something that executes and can be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceObject {
    /// Its array, an index of [`Trace::arrays`].
    pub array: u32,
    /// Its number there.
    pub rank: u32,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceMessage {
    /// The object it is for.
    pub to: u32,
    /// The PE it was sent to.
    pub pe: u32,
    /// Its encoded size.
    pub bytes: u64,
}

/// An object did something without interruption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// Who: a PE below [`Trace::pes`], or an object.
    pub object: u32,
    /// Where.
    pub pe: u32,
    /// When it began in the recorded run, in seconds.
    pub begin_seconds: f64,
    /// Whether it went on with what the PE did before it, and nothing else could have come between them.
    #[serde(default)]
    pub same_turn: bool,
    /// Whether it came by a message of an expedited array, which goes before others.
    #[serde(default)]
    pub expedited: bool,
    /// The message it was the answer to.
    pub cause: Option<u32>,
    /// The execution that left this in its PE's own queue: what answers no message, and what waited for its element.
    #[serde(default)]
    pub left_by: Option<u32>,
    /// Executions that had to be over, beside that and the one before it of the same object.
    pub after: Vec<u32>,
    /// What it did.
    pub steps: Vec<Step>,
}

/// A part of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// It worked for so many seconds at speed 1.
    Work(f64),
    /// It sent the message of that number.
    Send(u32),
}

impl Trace {
    /// Whether it can be replayed: numbers name what there is, no message is sent twice, and nothing waits for
    /// what comes later.
    ///
    /// # Errors
    /// What is wrong, as a sentence about "it".
    pub fn check(&self) -> Result<(), String> {
        let all = u64::from(self.pes) + self.objects.len() as u64;
        let object = |number: u32, of: &str| match u64::from(number) < all {
            true => Ok(()),
            false => Err(format!("{of} names object {number}, and there are {all}")),
        };
        let on = |pe: u32, of: &str| match pe < self.pes {
            true => Ok(()),
            false => Err(format!("{of} is on PE {pe}, and there are {}", self.pes)),
        };
        if self.pes == 0 {
            return Err("it has no PE".into());
        }
        if !(self.speeds.is_empty() || self.speeds.len() == self.pes as usize) {
            return Err(format!("it has speeds of {} PEs, and there are {}", self.speeds.len(), self.pes));
        }
        if let Some(pe) = self.speeds.iter().position(|speeds| !speeds.are_sane()) {
            return Err(format!("the speeds of PE {pe} are not above 0 or not in the order of time"));
        }
        for (number, object) in self.objects.iter().enumerate() {
            if object.array as usize >= self.arrays.len() {
                return Err(format!("object {number} is of array {}, which has no name", object.array));
            }
        }
        if !are_seconds(self.seconds) {
            return Err(format!("it was over at {:?} seconds", self.seconds));
        }
        let mut objects = FxHashSet::default();
        if let Some(twice) = self.objects.iter().find(|it| !objects.insert((it.array, it.rank))) {
            return Err(format!("element {} of array {} is an object twice", twice.rank, twice.array));
        }
        if self.exit.is_some_and(|exit| exit as usize >= self.executions.len()) {
            return Err("the execution that ended it does not exist".into());
        }
        for (number, message) in self.messages.iter().enumerate() {
            let name = format!("message {number}");
            object(message.to, &name)?;
            on(message.pe, &name)?;
        }
        let mut sent = vec![false; self.messages.len()];
        let mut turns = vec![false; self.pes as usize];
        for (number, execution) in self.executions.iter().enumerate() {
            let name = format!("execution {number}");
            object(execution.object, &name)?;
            on(execution.pe, &name)?;
            if execution.object < self.pes && execution.object != execution.pe {
                return Err(format!("{name} is of PE {} and on PE {}", execution.object, execution.pe));
            }
            if !are_seconds(execution.begin_seconds) {
                return Err(format!("{name} began at {:?} seconds", execution.begin_seconds));
            }
            if execution.same_turn && !turns[execution.pe as usize] {
                return Err(format!(
                    "{name} goes on with what PE {} did before, and that is nothing",
                    execution.pe
                ));
            }
            turns[execution.pe as usize] = true;
            if execution.cause.is_some_and(|cause| sent.get(cause as usize) != Some(&true)) {
                return Err(format!("{name} answers a message that was not sent before"));
            }
            if execution.after.iter().chain(&execution.left_by).any(|&before| before as usize >= number) {
                return Err(format!("{name} waits for one that is not before it"));
            }
            for step in &execution.steps {
                match *step {
                    Step::Work(seconds) if are_seconds(seconds) => {}
                    Step::Work(seconds) => return Err(format!("{name} works for {seconds:?} seconds")),
                    Step::Send(message) => match sent.get_mut(message as usize) {
                        Some(sent) if !*sent => *sent = true,
                        Some(_) => return Err(format!("message {message} is sent twice")),
                        None => return Err(format!("{name} sends message {message}, which does not exist")),
                    },
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Object 4 on PE 0 works 1 s, sends 100 bytes to object 5 on PE 1, and works 1 s more; object 5 works
    /// 2 s and answers with 50 bytes, for which PE 0 itself waits for object 4's execution.
    pub(crate) fn exchange() -> Trace {
        let execution = |object, pe, begin_seconds, cause, after: &[u32], steps: &[Step]| Execution {
            object,
            pe,
            begin_seconds,
            same_turn: false,
            expedited: false,
            cause,
            left_by: None,
            after: after.to_vec(),
            steps: steps.to_vec(),
        };
        Trace {
            topology: "mesh:4".into(),
            network: "ideal:hop=0.5,bandwidth=100".into(),
            seed: 7,
            pes: 4,
            seconds: 6.0,
            exit: None,
            speeds: Vec::new(),
            arrays: vec!["Some".into()],
            objects: vec![TraceObject { array: 0, rank: 0 }, TraceObject { array: 0, rank: 9 }],
            messages: vec![
                TraceMessage { to: 5, pe: 1, bytes: 100 },
                TraceMessage { to: 0, pe: 0, bytes: 50 },
            ],
            executions: vec![
                execution(4, 0, 0.0, None, &[], &[Step::Work(1.0), Step::Send(0), Step::Work(1.0)]),
                execution(5, 1, 2.5, Some(0), &[], &[Step::Work(2.0), Step::Send(1)]),
                execution(0, 0, 5.5, Some(1), &[0], &[Step::Work(0.5)]),
            ],
        }
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Trace), sentence: &str) {
        let mut trace = exchange();
        assert_eq!(trace.check(), Ok(()));
        change(&mut trace);
        let error = trace.check().expect_err(sentence);
        assert!(error.contains(sentence), "`{error}` does not say `{sentence}`");
    }

    #[test]
    fn what_is_inconsistent_is_refused() {
        refused(|it| it.pes = 0, "no PE");
        refused(|it| it.speeds = vec![Speeds::default()], "speeds of 1 PEs");
        refused(|it| it.speeds = vec![Speeds(vec![(0.0, -1.0)]); 4], "the speeds of PE 0");
        refused(|it| it.objects[1].array = 1, "has no name");
        refused(|it| it.messages[0].to = 6, "message 0 names object 6");
        refused(|it| it.messages[1].pe = 4, "message 1 is on PE 4");
        refused(|it| it.executions[2].object = 6, "execution 2 names object 6");
        refused(|it| it.executions[1].same_turn = true, "goes on with what PE 1 did before");
        refused(|it| it.executions[0].cause = Some(0), "execution 0 answers a message that was not sent");
        refused(|it| it.executions[1].left_by = Some(1), "execution 1 waits for one that is not before it");
        refused(|it| it.executions[1].after = vec![1], "execution 1 waits for one that is not before it");
        refused(|it| it.executions[1].steps.push(Step::Send(0)), "message 0 is sent twice");
        refused(|it| it.executions[1].steps.push(Step::Send(2)), "message 2, which does not exist");
        refused(|it| it.executions[1].steps.push(Step::Work(-1.0)), "works for -1.0 seconds");
        refused(|it| it.objects[1] = it.objects[0], "element 0 of array 0 is an object twice");
        refused(|it| it.executions[2].object = 1, "execution 2 is of PE 1 and on PE 0");
        refused(|it| it.executions[2].begin_seconds = -0.5, "execution 2 began at -0.5 seconds");
        refused(|it| it.seconds = f64::NAN, "it was over at NaN seconds");
    }
}
