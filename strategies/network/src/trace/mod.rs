//! Recorded runs: the work of every object, the messages they sent, and the order that the run enforced.
//!
//! A trace holds the part of a run that is independent of the network: the executions with their work and their sends,
//! in the order in which they began, and the messages and executions that each of them depends on. So a trace can be
//! [simulated](simulate()) on another network, machine or placement, which gives the same executions other times.
//! This is the method of Agarwal et al. (2006, section 5.3) and of BigNetSim.
//!
//! The crate does not depend on chares: an object is anything that executes. The first objects are the PEs
//! themselves, which execute the work of the runtime; the other objects can be placed elsewhere.

use equipoise_model::params::are_seconds;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

mod details;
mod file;
mod message_scheduler;
mod part;
mod recording;
mod sections;
mod simulate;
mod speeds;

pub use details::{Call, Details, LbStep, Memory, Migration, Wait};
pub use file::TraceError;
pub use message_scheduler::{MessageScheduler, Waiting};
pub use part::Part;
pub use recording::TraceWriter;
pub use simulate::{Timing, simulate};
pub use speeds::Speeds;

/// A recorded run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The spec of the machine of the recorded run.
    pub topology: String,
    /// The spec of the network of the recorded run.
    pub network: String,
    /// The seed of the run.
    pub seed: u64,
    /// The number of PEs.
    pub pes: u32,
    /// When the run ended, in seconds.
    pub seconds: f64,
    /// The execution that ended the run; work after that is ignored. `None` if the run failed.
    #[serde(default)]
    pub exit: Option<u32>,
    /// The speeds of each PE; empty if all speeds were 1 throughout.
    #[serde(default)]
    pub speeds: Vec<Speeds>,
    /// The names of the arrays.
    pub arrays: Vec<String>,
    /// The objects that are not PEs, in the order of a mapping file; the first one has number `pes`.
    pub objects: Vec<TraceObject>,
    /// The messages, in the order in which they were sent.
    pub messages: Vec<TraceMessage>,
    /// The executions; each one comes after those that it depends on. Executions on a PE are in the order in which
    /// they began, except that work of the PE itself comes after that of its elements in the same turn. (In a turn, a
    /// PE handles one message.)
    pub executions: Vec<Execution>,
    /// What only timelines show.
    #[serde(default)]
    pub details: Details,
    /// What the reader ignored, as clauses that follow the name of the file, such as `was cut after 7 executions (..)`.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// An object that can be placed on any PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceObject {
    /// The array of the object: an index into [`Trace::arrays`].
    pub array: u32,
    /// The rank of the object in its array.
    pub rank: u32,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMessage {
    /// The object that receives the message.
    pub to: u32,
    /// The PE that the message was sent to.
    pub pe: u32,
    /// The encoded size.
    pub bytes: u64,
}

/// Uninterrupted work of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// The number of the object; a PE if below [`Trace::pes`].
    pub object: u32,
    /// The PE that executed it.
    pub pe: u32,
    /// When the execution began in the recorded run, in seconds.
    pub begin_seconds: f64,
    /// Whether it belongs to the same turn as the previous execution on this PE, so that no other execution can run
    /// between the two.
    #[serde(default)]
    pub same_turn: bool,
    /// Whether its message was for an expedited array, whose messages are taken first.
    #[serde(default)]
    pub expedited: bool,
    /// The message that caused the execution.
    pub cause: Option<u32>,
    /// The execution that enqueued this one on its own PE: for work without a message, and for messages that had to
    /// wait for their element.
    #[serde(default)]
    pub left_by: Option<u32>,
    /// Executions that had to end first, in addition to `left_by` and the previous execution of the same object.
    pub after: Vec<u32>,
    /// Its work and its sends, in order.
    pub steps: Vec<Step>,
}

/// A part of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// Work, in seconds at speed 1.
    Work(f64),
    /// The number of the message that is sent.
    Send(u32),
}

impl Trace {
    /// Whether the run was a real one, on threads or across processes, and not on a simulated network.
    pub fn is_of_real_run(&self) -> bool {
        matches!(self.network.as_str(), "threads" | "mpi")
    }

    /// Checks that the trace can be simulated: all numbers refer to existing entries, no message is sent twice, and
    /// no execution depends on a later one.
    ///
    /// # Errors
    /// The first violation, as a clause that follows the name of the file and a colon.
    pub fn check(&self) -> Result<(), String> {
        let all = u64::from(self.pes) + self.objects.len() as u64;
        let object = |number: u32, of: &str| match u64::from(number) < all {
            true => Ok(()),
            false => Err(format!("{of} names object {number}, but the last object is {}", all - 1)),
        };
        let on = |pe: u32, of: &str| match pe < self.pes {
            true => Ok(()),
            false => Err(format!("{of} is on PE {pe}, but the last PE is {}", self.pes - 1)),
        };
        if self.pes == 0 {
            return Err("the number of PEs is 0".into());
        }
        if !(self.speeds.is_empty() || self.speeds.len() == self.pes as usize) {
            return Err(format!(
                "`speeds` has length {}, expected {} (one per PE)",
                self.speeds.len(),
                self.pes
            ));
        }
        if let Some(pe) = self.speeds.iter().position(|speeds| !speeds.are_sane()) {
            return Err(format!("the speeds of PE {pe} are not all above 0 and sorted by time"));
        }
        for (number, object) in self.objects.iter().enumerate() {
            if object.array as usize >= self.arrays.len() {
                return Err(format!("object {number} belongs to array {}, which has no name", object.array));
            }
        }
        if !are_seconds(self.seconds) {
            return Err(format!("the run ends at {:?} seconds, expected at least 0", self.seconds));
        }
        let mut objects = FxHashSet::default();
        if let Some(twice) = self.objects.iter().find(|it| !objects.insert((it.array, it.rank))) {
            return Err(format!("element {} of array {} occurs twice", twice.rank, twice.array));
        }
        if self.exit.is_some_and(|exit| exit as usize >= self.executions.len()) {
            return Err("the execution that ended the run does not exist".into());
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
                return Err(format!(
                    "{name} is work of PE {} itself, but is on PE {}",
                    execution.object, execution.pe
                ));
            }
            if !are_seconds(execution.begin_seconds) {
                return Err(format!(
                    "{name} begins at {:?} seconds, expected at least 0",
                    execution.begin_seconds
                ));
            }
            if execution.same_turn && !turns[execution.pe as usize] {
                return Err(format!(
                    "{name} continues a turn of PE {}, which has no earlier execution",
                    execution.pe
                ));
            }
            turns[execution.pe as usize] = true;
            if execution.cause.is_some_and(|cause| sent.get(cause as usize) != Some(&true)) {
                return Err(format!("{name} is caused by a message that was not sent before"));
            }
            if execution.after.iter().chain(&execution.left_by).any(|&before| before as usize >= number) {
                return Err(format!("{name} depends on an execution that is not before it"));
            }
            execution.check_steps(&name, &mut sent)?;
        }
        self.details.check(self.pes, self.objects.len(), self.executions.len())
    }

    /// By message: the execution that receives it. Of the executions that a message causes, this is the one that begins first,
    /// and of those that begin together, the one with the lowest number. `begin_seconds` says when an execution of this number
    /// begins; none if the execution does not count.
    pub fn receives(&self, begin_seconds: impl Fn(u32) -> Option<f64>) -> Vec<Option<u32>> {
        let mut first: Vec<Option<(f64, u32)>> = vec![None; self.messages.len()];
        for (number, execution) in (0u32..).zip(&self.executions) {
            let Some(cause) = execution.cause else { continue };
            let first = &mut first[cause as usize];
            if let Some(begin) = begin_seconds(number).filter(|begin| first.is_none_or(|it| *begin < it.0)) {
                *first = Some((begin, number));
            }
        }
        first.into_iter().map(|first| first.map(|(_, number)| number)).collect()
    }
}

impl Execution {
    /// An execution that depends on its message only, and has a turn of its own.
    pub fn new(object: u32, pe: u32, begin_seconds: f64, cause: Option<u32>, steps: Vec<Step>) -> Self {
        Execution { object, pe, begin_seconds, cause, steps, ..Execution::default() }
    }

    /// Checks the steps; `name` names the execution in errors, and `sent` has the messages sent so far.
    fn check_steps(&self, name: &str, sent: &mut [bool]) -> Result<(), String> {
        for step in &self.steps {
            match *step {
                Step::Work(seconds) if are_seconds(seconds) => {}
                Step::Work(seconds) => {
                    return Err(format!("{name} works for {seconds:?} seconds, expected at least 0"));
                }
                Step::Send(message) => match sent.get_mut(message as usize) {
                    Some(sent) if !*sent => *sent = true,
                    Some(_) => return Err(format!("message {message} is sent twice")),
                    None => return Err(format!("{name} sends message {message}, which does not exist")),
                },
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Object 4 on PE 0 works 1 s, sends 100 bytes to object 5 on PE 1, and works 1 s more. Object 5 works 2 s and
    /// replies with 50 bytes to PE 0 itself, which handles the reply after the execution of object 4.
    pub(crate) fn exchange() -> Trace {
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
                Execution::new(4, 0, 0.0, None, vec![Step::Work(1.0), Step::Send(0), Step::Work(1.0)]),
                Execution::new(5, 1, 2.5, Some(0), vec![Step::Work(2.0), Step::Send(1)]),
                Execution { after: vec![0], ..Execution::new(0, 0, 5.5, Some(1), vec![Step::Work(0.5)]) },
            ],
            details: Details::default(),
            warnings: Vec::new(),
        }
    }

    #[track_caller]
    fn check_refused(change: impl FnOnce(&mut Trace), sentence: &str) {
        let mut trace = exchange();
        assert_eq!(trace.check(), Ok(()));
        change(&mut trace);
        let error = trace.check().expect_err(sentence);
        assert!(error.contains(sentence), "`{error}` does not contain `{sentence}`");
    }

    #[test]
    fn refuses_inconsistent_traces() {
        check_refused(|it| it.pes = 0, "the number of PEs is 0");
        check_refused(|it| it.speeds = vec![Speeds::default()], "`speeds` has length 1, expected 4");
        check_refused(|it| it.speeds = vec![Speeds(vec![(0.0, -1.0)]); 4], "the speeds of PE 0");
        check_refused(|it| it.objects[1].array = 1, "has no name");
        check_refused(|it| it.messages[0].to = 6, "message 0 names object 6, but the last object is 5");
        check_refused(|it| it.messages[1].pe = 4, "message 1 is on PE 4, but the last PE is 3");
        check_refused(|it| it.executions[2].object = 6, "execution 2 names object 6");
        check_refused(|it| it.executions[1].same_turn = true, "continues a turn of PE 1");
        check_refused(
            |it| it.executions[0].cause = Some(0),
            "execution 0 is caused by a message that was not sent",
        );
        check_refused(
            |it| it.executions[1].left_by = Some(1),
            "execution 1 depends on an execution that is not",
        );
        check_refused(
            |it| it.executions[1].after = vec![1],
            "execution 1 depends on an execution that is not",
        );
        check_refused(|it| it.executions[1].steps.push(Step::Send(0)), "message 0 is sent twice");
        check_refused(|it| it.executions[1].steps.push(Step::Send(2)), "message 2, which does not exist");
        check_refused(|it| it.executions[1].steps.push(Step::Work(-1.0)), "works for -1.0 seconds");
        check_refused(|it| it.objects[1] = it.objects[0], "element 0 of array 0 occurs twice");
        check_refused(|it| it.executions[2].object = 1, "execution 2 is work of PE 1 itself, but is on PE 0");
        check_refused(|it| it.executions[2].begin_seconds = -0.5, "execution 2 begins at -0.5 seconds");
        check_refused(|it| it.seconds = f64::NAN, "the run ends at NaN seconds");
    }
}
