//! What the contention-aware estimate knows of a program: its tasks, channels and phases.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::phases::phases;
use super::{Costs, Isomorphic, Program, Trial, execute_on};
use crate::Topology;
use crate::database::{Database, Edge, End, Object, ObjectIndex, PeRecord};
use crate::network::NetworkError;

/// A program as the Synchronous Phases Model sees it (De Petris, Perego 1994, section 3.2).
///
/// All times are in ticks, of which a cycle has [`Model::TICKS`], so that sums are exact and ties are ties.
#[derive(Clone, Debug)]
pub struct Model {
    /// The tasks, T of them: the processes of a program or the objects of a database, and after these the PEs that
    /// are ends of its edges.
    pub tasks: Vec<Task>,
    /// The channels, a of them, ascending by sender, then by receiver.
    pub channels: Vec<Channel>,
    /// The channels in use in each of the P phases (p^h_ij), ascending.
    pub phases: Vec<Vec<u32>>,
    /// Seconds of a cycle.
    pub cycle_seconds: f64,
    /// What becomes of the waits of several tasks on a PE.
    pub waits: Waits,
    /// The program itself and the machine that it is mapped to, if a mapper may try it.
    pub trial: Option<Trial>,
}

/// How the waits of several tasks on a PE go together in the estimate of [`crate::cost::contention`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// One after the other: equation (3) of the paper, to the letter.
    Added,
    /// While one waits, another works.
    #[default]
    Overlapped,
}

/// A task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// w_i: what it computes, with what its sends and receives cost, in ticks.
    pub work_ticks: i64,
    /// q_i: how long it waits for messages on the isomorphic machine, in ticks.
    pub wait_ticks: i64,
    /// The bytes it needs on its PE, if anybody said.
    pub memory_bytes: Option<u64>,
    /// The PE it stays on, if it may not be moved.
    pub stays_on: Option<u32>,
    /// Whether it is no task, but that PE itself as the end of an edge.
    pub is_pe: bool,
}

/// A channel between two different tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The task i that sends.
    pub from: u32,
    /// The task j that receives.
    pub to: u32,
    /// m_ij: how many messages it carries.
    pub messages: u64,
    /// l_ij: their average length in flits, as the ticks that a link moves them in.
    pub flit_ticks: i64,
    /// How long j waits for messages of i on the isomorphic machine, in ticks. (The paper's list of symbols calls this
    /// q_ji, its equation 5 and figure 2 q_ij.)
    pub wait_ticks: i64,
}

/// The most cycles that the tasks of a database work and send: ticks then fit, with the contention that is added.
const MAX_CYCLES: f64 = (1u64 << 48) as f64;

/// The most cycles that all processes of a program work and wait together. What is sent is at most 2^50 flits (see
/// [`Program::check`]), by which contention is bounded, and hops add 2^46: the ticks of all PEs together fit.
const MAX_PROCESS_CYCLES: u128 = 1 << 51;

impl Model {
    /// Ticks of a cycle: averages that are no whole cycles are rounded to these once, when the model is made.
    pub const TICKS: i64 = 1 << 10;

    /// The model of a program that has passed [`Program::check`]: what it does on a PE per process and a link per
    /// channel, with nothing in the way. Messages that overlap for the fraction `overlap` share a phase.
    ///
    /// # Errors
    /// When it has too many processes to be simulated, or they work and wait for so long that the estimate, which counts in
    /// parts of a cycle, could not hold it.
    pub fn of(program: &Program, costs: Costs, overlap: f64) -> Result<Model, NetworkError> {
        let machine = Isomorphic::of(program);
        let pairs = machine.channels().to_vec();
        let machine: Arc<dyn Topology> = Arc::new(machine);
        let placement: Vec<u32> = (0..program.tasks() as u32).collect();
        let run = execute_on(program, &machine, &placement, costs)?;
        let busy = run.busy_cycles.iter().map(|&cycles| u128::from(cycles)).sum::<u128>();
        let waited = run.deliveries.iter().map(|it| u128::from(it.waited_cycles)).sum::<u128>();
        if busy + waited > MAX_PROCESS_CYCLES {
            return Err(NetworkError(format!(
                "the processes of the program work {busy} cycles and wait {waited} for messages, more than 2^51 together; \
                 divide cycles and flits by a number"
            )));
        }
        let mut sums = vec![(0u64, 0u64, 0u64); pairs.len()];
        for it in &run.deliveries {
            let at = pairs.binary_search(&(it.from, it.to)).expect("a message has a channel");
            let (messages, flits, waited) = &mut sums[at];
            *messages += 1;
            *flits += it.flits;
            *waited += it.waited_cycles;
        }
        let ticks = |cycles: u64| cycles as i64 * Self::TICKS;
        let task = |(process, &busy): (&super::Process, &u64)| Task {
            work_ticks: ticks(busy),
            memory_bytes: process.memory_bytes,
            ..Task::default()
        };
        let mut tasks: Vec<Task> = program.processes.iter().zip(&run.busy_cycles).map(task).collect();
        let mut channels = Vec::with_capacity(pairs.len());
        for (&(from, to), (messages, flits, waited)) in pairs.iter().zip(sums) {
            tasks[to as usize].wait_ticks += ticks(waited);
            let flit_ticks = ticks(flits) / messages.max(1) as i64;
            channels.push(Channel { from, to, messages, flit_ticks, wait_ticks: ticks(waited) });
        }
        let phases = phases(&run.deliveries, &pairs, overlap);
        Ok(Model { tasks, channels, phases, cycle_seconds: 1e-9, waits: Waits::Overlapped, trial: None })
    }

    /// The same with the program itself, for mappers that may try it on the machine that they map it to.
    pub fn with_trial(self, trial: Trial) -> Model {
        Model { trial: Some(trial), ..self }
    }

    /// The model of a recorded database, or of a task graph: loads are work, and all edges are one phase. A flit is a
    /// byte, and a cycle the time in which the first link of `topology` moves one, or so many more that numbers fit.
    ///
    /// Nothing is known of who waits. A message is taken to be waited for while it is moved: q_ij = m_ij l_ij, which is where
    /// cases 1 and 2 of figure 2 meet, and all of which is saved on one PE (equation 5). So a PE is charged for every byte
    /// that comes from elsewhere, and sharing a PE is worth as much. No work goes on beneath, as the links into a PE
    /// move these bytes one after the other: they are added ([`Waits::Added`]).
    ///
    /// A PE that is an end of an edge is a task without work that stays there.
    pub fn of_database(database: &Database, topology: &dyn Topology) -> Model {
        let objects = database.objects.len() as u32;
        let mut tasks = Vec::with_capacity(database.objects.len());
        let loads = database.objects.iter().map(|object| object.load_seconds).sum::<f64>();
        let background = database.pes.iter().map(|pe| pe.background_seconds.max(0.0)).sum::<f64>();
        let slowest = database.pes.iter().map(|pe| pe.speed).fold(1.0, f64::min);
        let bandwidth = if topology.links() > 0 { topology.link(0).bandwidth } else { 1e9 };
        let bytes = database.edges.iter().map(|edge| edge.bytes as f64 + edge.messages as f64).sum::<f64>();
        let hops = f64::from(topology.diameter()) + 2.0;
        let cycles = (loads + background) / slowest * bandwidth + bytes * hops;
        let scale = (cycles / MAX_CYCLES).max(1.0);
        let cycle_seconds = scale / bandwidth;
        let ticks = |seconds: f64| (seconds / cycle_seconds * Self::TICKS as f64).round() as i64;
        for object in &database.objects {
            tasks.push(Task {
                work_ticks: ticks(object.load_seconds),
                wait_ticks: 0,
                memory_bytes: object.bytes,
                stays_on: (!object.migratable).then_some(object.pe),
                is_pe: false,
            });
        }
        let mut task_of_pe: FxHashMap<u32, u32> = FxHashMap::default();
        let mut task = |end: End| match end {
            End::Object(object) => object,
            End::Pe(pe) => *task_of_pe.entry(pe).or_insert_with(|| {
                tasks.push(Task { stays_on: Some(pe), is_pe: true, ..Task::default() });
                tasks.len() as u32 - 1
            }),
        };
        let mut sums: Vec<(u32, u32, u64, u64)> = Vec::with_capacity(database.edges.len());
        for edge in database.edges.iter().filter(|edge| edge.messages > 0 || edge.bytes > 0) {
            let (from, to) = (task(edge.from), task(edge.to));
            if from != to && (from < objects || to < objects) {
                sums.push((from, to, edge.messages, edge.bytes));
            }
        }
        sums.sort_unstable();
        sums.dedup_by(|later, first| {
            let same = (later.0, later.1) == (first.0, first.1);
            if same {
                first.2 = first.2.saturating_add(later.2);
                first.3 = first.3.saturating_add(later.3);
            }
            same
        });
        let channel = |(from, to, messages, bytes): (u32, u32, u64, u64)| {
            // Where a cycle moves several bytes, a hop more costs a part of one.
            let messages = (messages.max(1) as f64 / scale).ceil();
            let flits = bytes as f64 / scale / messages;
            let flit_ticks = (flits * Self::TICKS as f64).round() as i64;
            Channel {
                from,
                to,
                messages: messages as u64,
                flit_ticks,
                wait_ticks: messages as i64 * flit_ticks,
            }
        };
        let channels: Vec<Channel> = sums.into_iter().map(channel).collect();
        for channel in &channels {
            tasks[channel.to as usize].wait_ticks += channel.wait_ticks;
        }
        let phases = vec![(0..channels.len() as u32).collect()];
        Model { tasks, channels, phases, cycle_seconds, waits: Waits::Added, trial: None }
    }

    /// The tasks as a database of one step on a machine of `pes` PEs, in blocks: what other strategies see of a
    /// program. Loads are the work, a cycle being [`Model::cycle_seconds`] and a flit a byte.
    pub fn database(&self, pes: u32) -> Database {
        let object = |(id, task): (usize, &Task)| Object {
            id: id as u64,
            array: 0,
            index: ObjectIndex::new(&[id as i32]),
            load_seconds: task.work_ticks as f64 / Self::TICKS as f64 * self.cycle_seconds,
            bytes: task.memory_bytes,
            pe: 0,
            migratable: task.stays_on.is_none(),
        };
        let edge = |channel: &Channel| Edge {
            from: End::Object(channel.from),
            to: End::Object(channel.to),
            messages: channel.messages,
            bytes: (channel.messages as f64 * channel.flit_ticks as f64 / Self::TICKS as f64).round() as u64,
        };
        let database = Database {
            arrays: vec!["process".into()],
            pes: vec![PeRecord::default()],
            objects: self.tasks.iter().enumerate().map(object).collect(),
            edges: self.channels.iter().map(edge).collect(),
            ..Database::default()
        };
        database.remap(pes)
    }

    /// Cycles, of ticks.
    pub fn cycles(ticks: i64) -> f64 {
        ticks as f64 / Self::TICKS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OVERLAP, parse};
    use super::*;
    use crate::{testing, topology};

    #[test]
    fn a_program_is_modelled_by_what_it_does_when_nothing_is_in_its_way() {
        let text = "PROCESS 0 MEMORY 5\nREPEAT 2\nINT_OP 100\nSEND 1 10\nSEND 1 21\nRECEIVE 1 4\nEND\nSTOP\n\
                    PROCESS 1\nREPEAT 2\nRECEIVE 0 10\nRECEIVE 0 21\nSEND 0 4\nEND\nSTOP";
        let program = parse(text).expect("a program");
        let costs = Costs { send_cycles: 0, receive_cycles: 1 };
        let model = Model::of(&program, costs, OVERLAP).expect("it can be simulated");
        let t = Model::TICKS;
        // Messages arrive at 110 and 131, the answer at 136; the second round is 137 cycles later.
        assert_eq!(
            model.tasks[0],
            Task { work_ticks: 202 * t, wait_ticks: 2 * 36 * t, memory_bytes: Some(5), ..Task::default() }
        );
        let expected = [
            Channel { from: 0, to: 1, messages: 4, flit_ticks: 15 * t + t / 2, wait_ticks: 267 * t },
            Channel { from: 1, to: 0, messages: 2, flit_ticks: 4 * t, wait_ticks: 2 * 36 * t },
        ];
        assert_eq!(model.channels[1], expected[1]);
        // Process 1 waits 110 and 20 cycles, then, from 132 to 247 and 248 to 268, 115 and 20.
        assert_eq!(model.channels[0], Channel { wait_ticks: 265 * t, ..expected[0] });
        assert_eq!(model.phases, [[0], [1]]);
        let database = model.database(2);
        assert_eq!((database.edges[0].bytes, database.edges[0].messages), (62, 4));
        assert_eq!(database.objects[0].bytes, Some(5));
    }

    #[test]
    fn waits_that_no_estimate_could_hold_are_refused() {
        // Each of many waits for most of the longest time that may be computed.
        let mut text = String::from("PROCESS 0\nREPEAT 1000\nINT_OP 1099511627776\nEND\n");
        (1..4).for_each(|to| text += &format!("SEND {to} 1\n"));
        (1..4).for_each(|to| text += &format!("STOP\nPROCESS {to}\nRECEIVE 0 1\n"));
        let program = parse(&(text + "STOP\n")).expect("a text of the language");
        assert_eq!(program.check(), Ok(()));
        let error = Model::of(&program, Costs::default(), OVERLAP).expect_err("too long").to_string();
        assert!(error.contains("divide cycles and flits by a number"), "{error}");
    }

    #[test]
    fn a_database_is_one_phase_and_its_pes_stay() {
        let mut database = testing::database(2, &[(1.0, 0), (2.0, 1)]);
        let edge = |from, to, messages, bytes| Edge { from, to, messages, bytes };
        database.edges = vec![
            edge(End::Object(0), End::Object(1), 2, 30),
            edge(End::Object(0), End::Object(1), 1, 0),
            edge(End::Object(1), End::Pe(1), 1, 7),
            edge(End::Pe(0), End::Pe(1), 1, 7),
            edge(End::Object(1), End::Object(1), 1, 7),
        ];
        let model = Model::of_database(&database, &*topology::parse("mesh:2").expect("a mesh"));
        assert_eq!(model.cycle_seconds, 1e-9);
        let t = Model::TICKS;
        assert_eq!(model.tasks[1].work_ticks, 2_000_000_000 * t);
        assert_eq!(model.waits, Waits::Added);
        assert_eq!([0, 1, 2].map(|task| model.tasks[task].wait_ticks), [0, 30 * t, 7 * t]);
        assert_eq!((model.tasks[2].stays_on, model.tasks[2].is_pe), (Some(1), true));
        let channel = |from, to, messages: u64, flits| Channel {
            from,
            to,
            messages,
            flit_ticks: flits * t,
            wait_ticks: messages as i64 * flits * t,
        };
        assert_eq!(model.channels, [channel(0, 1, 3, 10), channel(1, 2, 1, 7)]);
        assert_eq!(model.phases, [[0, 1]]);
    }
}
