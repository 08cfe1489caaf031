//! The model of a program for the contention-aware estimate: tasks, channels and phases.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use equipoise_model::Topology;
use equipoise_model::database::{Database, Edge, End, Object, ObjectIndex, PeRecord};

use super::phases::phases;
use super::{Costs, Isomorphic, Program, ProgramSimulation, execute_on};
use crate::models::NetworkError;

/// A program in the Synchronous Phases Model (De Petris, Perego 1994, section 3.2).
///
/// All times are in ticks ([`Model::TICKS`] per cycle), so that sums are exact and equal times compare equal.
#[derive(Clone, Debug)]
pub struct Model {
    /// The T tasks: the processes of a program, or the objects of a database followed by the PEs that are ends of its
    /// edges.
    pub tasks: Vec<Task>,
    /// The a channels, sorted by sender, then by receiver.
    pub channels: Vec<Channel>,
    /// By phase (P phases): the indices of the channels in use (p^h_ij), ascending.
    pub phases: Vec<Vec<u32>>,
    /// The length of a cycle in seconds.
    pub cycle_seconds: f64,
    /// How the waits of several tasks on a PE combine.
    pub waits: Waits,
    /// The program and its machine, if a mapper may simulate placements.
    pub simulation: Option<ProgramSimulation>,
}

/// How the estimate (`cost::contention` of equipoise-strategies) combines the waits of several tasks on a PE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// The waits are added: equation (3) of the paper.
    Added,
    /// While one task waits, another task works.
    #[default]
    Overlapped,
}

/// A task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// w_i: the ticks of its computation, sends and receives.
    pub work_ticks: i64,
    /// q_i: the ticks that it waits for messages on the isomorphic machine.
    pub wait_ticks: i64,
    /// The bytes that the task needs on its PE, if stated.
    pub memory_bytes: Option<u64>,
    /// The PE of a task that must not move.
    pub stays_on: Option<u32>,
    /// Whether this is not a task but the PE `stays_on`, as an end of an edge.
    pub is_pe: bool,
}

/// A channel between two different tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The task i that sends.
    pub from: u32,
    /// The task j that receives.
    pub to: u32,
    /// m_ij: the number of messages.
    pub messages: u64,
    /// l_ij: the average length of the messages, as the number of ticks in which a link transfers one of them.
    pub flit_ticks: i64,
    /// The ticks that j waits for messages from i on the isomorphic machine. (The paper's list of symbols has q_ji for
    /// this, its equation 5 and figure 2 have q_ij.)
    pub wait_ticks: i64,
}

/// The maximum sum of cycles of work and sends in a database, so that ticks fit `i64` when contention is added.
const MAX_CYCLES: f64 = (1u64 << 48) as f64;

/// The maximum sum of the cycles that all processes of a program work and wait. At most 2^50 flits are sent (see
/// [`Program::check`]), which bounds the contention, and hops add at most 2^46. So the ticks of all PEs together fit
/// `i64`.
const MAX_PROCESS_CYCLES: u128 = 1 << 51;

impl Model {
    /// Ticks per cycle. Averages that are not whole cycles are rounded to ticks once, when the model is made.
    pub const TICKS: i64 = 1 << 10;

    /// The model of a program that has passed [`Program::check`]: its execution without contention, on a machine with
    /// one PE per process and one link per channel. Messages that overlap for the fraction `overlap` share a phase.
    ///
    /// # Errors
    /// When there are too many processes to simulate, or the sum of their work and waits exceeds the range of the
    /// estimate.
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
                "the processes work for {busy} cycles and wait for {waited} cycles in all, together more than 2^51; \
                 divide all cycles and flits by a number"
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
        Ok(Model { tasks, channels, phases, cycle_seconds: 1e-9, waits: Waits::Overlapped, simulation: None })
    }

    /// The same model with a simulation, so that mappers can compare placements on the machine.
    pub fn with_simulation(self, simulation: ProgramSimulation) -> Model {
        Model { simulation: Some(simulation), ..self }
    }

    /// The model of a recorded database or a task graph: loads are work, and all edges form one phase. A flit is a byte.
    /// A cycle is the time in which the first link of `topology` transfers one byte; for large databases it is longer, so
    /// that all numbers fit.
    ///
    /// A database does not record waits. The model assumes that a receiver waits for each message during its transfer:
    /// q_ij = m_ij l_ij. This is the border between cases 1 and 2 of figure 2; by equation 5, two tasks on one PE save
    /// the whole wait. So a PE is charged for every byte from other PEs. The waits are added ([`Waits::Added`]), because
    /// the links into a PE transfer these bytes one after the other.
    ///
    /// A PE that is an end of an edge becomes a task without work that cannot move.
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
            // If a cycle transfers several bytes, one more hop costs only a part of a cycle.
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
        Model { tasks, channels, phases, cycle_seconds, waits: Waits::Added, simulation: None }
    }

    /// The tasks as a database of one step on a machine of `pes` PEs, placed in blocks, for other strategies. Loads are
    /// the work; a cycle takes [`Model::cycle_seconds`], and a flit is a byte.
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

    /// Converts ticks to cycles.
    pub fn cycles(ticks: i64) -> f64 {
        ticks as f64 / Self::TICKS as f64
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::testing;
    use equipoise_model::topology;

    use super::super::{OVERLAP, parse};
    use super::*;

    #[test]
    fn a_program_is_modelled_by_its_execution_without_contention() {
        let text = "PROCESS 0 MEMORY 5\nREPEAT 2\nINT_OP 100\nSEND 1 10\nSEND 1 21\nRECEIVE 1 4\nEND\nSTOP\n\
                    PROCESS 1\nREPEAT 2\nRECEIVE 0 10\nRECEIVE 0 21\nSEND 0 4\nEND\nSTOP";
        let program = parse(text).expect("a program");
        let costs = Costs { send_cycles: 0, receive_cycles: 1 };
        let model = Model::of(&program, costs, OVERLAP).expect("it can be simulated");
        let t = Model::TICKS;
        // The messages arrive in cycles 110 and 131, and the reply in 136. The second round is 137 cycles later.
        assert_eq!(
            model.tasks[0],
            Task { work_ticks: 202 * t, wait_ticks: 2 * 36 * t, memory_bytes: Some(5), ..Task::default() }
        );
        let expected = [
            Channel { from: 0, to: 1, messages: 4, flit_ticks: 15 * t + t / 2, wait_ticks: 267 * t },
            Channel { from: 1, to: 0, messages: 2, flit_ticks: 4 * t, wait_ticks: 2 * 36 * t },
        ];
        assert_eq!(model.channels[1], expected[1]);
        // Process 1 waits 110 and 20 cycles, then 115 (from 132 to 247) and 20 (from 248 to 268).
        assert_eq!(model.channels[0], Channel { wait_ticks: 265 * t, ..expected[0] });
        assert_eq!(model.phases, [[0], [1]]);
        let database = model.database(2);
        assert_eq!((database.edges[0].bytes, database.edges[0].messages), (62, 4));
        assert_eq!(database.objects[0].bytes, Some(5));
    }

    #[test]
    fn refuses_waits_beyond_the_range_of_the_estimate() {
        // Each receiver waits for almost the maximum work of a program.
        let mut text = String::from("PROCESS 0\nREPEAT 1000\nINT_OP 1099511627776\nEND\n");
        (1..4).for_each(|to| text += &format!("SEND {to} 1\n"));
        (1..4).for_each(|to| text += &format!("STOP\nPROCESS {to}\nRECEIVE 0 1\n"));
        let program = parse(&(text + "STOP\n")).expect("a text of the language");
        assert_eq!(program.check(), Ok(()));
        let error = Model::of(&program, Costs::default(), OVERLAP).expect_err("too long").to_string();
        assert!(error.contains("divide all cycles and flits by a number"), "{error}");
    }

    #[test]
    fn a_database_has_one_phase_and_its_pes_cannot_move() {
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
