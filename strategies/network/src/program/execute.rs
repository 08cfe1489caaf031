//! The execution of a program on a machine, with times in cycles.
//!
//! The machine is that of De Petris and Perego (section 3.1). A PE runs one of its processes at a time, until the
//! process waits or stops; ready processes run in the order in which they became ready. An `INT_OP` takes its number of
//! cycles. A send or a receive takes a constant number of cycles, independent of the message. A message leaves when its
//! send ends. If the message of a receive has not arrived, the process is idle until the whole message has arrived.
//! Messages travel by wormhole routing with flits of 1 byte. A PE uses all of its links at once, because in the paper
//! messages wait only for links. Messages between processes on one PE take no time. A channel keeps the order of its
//! sends: if a short message overtakes a long one in the network, it is still received after the long one.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use equipoise_model::Topology;

use super::Program;
use super::code::{Code, Cursor, Op};
use crate::models::{Arrival, Events, Message, Model, Network, NetworkError, Wormhole};

/// The costs of sends and receives on a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Cycles per send.
    pub send_cycles: u32,
    /// Cycles per receive, after the message has arrived.
    pub receive_cycles: u32,
}

impl Default for Costs {
    /// 10 cycles each. The paper states that the costs are constant, but not their values.
    fn default() -> Self {
        Costs { send_cycles: 10, receive_cycles: 10 }
    }
}

/// The result of an execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Execution {
    /// The cycle in which the last process stopped.
    pub cycles: u64,
    /// By process: the cycle in which it stopped.
    pub stopped_cycles: Vec<u64>,
    /// By process: the cycles of computing, sending and receiving.
    pub busy_cycles: Vec<u64>,
    /// The messages, in the order of their sends.
    pub deliveries: Vec<Delivery>,
}

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// The length of the message.
    pub flits: u64,
    /// The cycle in which the message left. Times are rounded to cycles if the network does not count in cycles.
    pub sent_cycle: u64,
    /// The cycle in which the whole message had arrived.
    pub arrived_cycle: u64,
    /// The cycles that the receiver waited for the message.
    pub waited_cycles: u64,
}

/// Executes a program that has passed [`Program::check`] with process `i` on PE `placement[i]` of `machine`, whose
/// links are those of the paper: a header crosses a link in one cycle, and a flit follows in each cycle after that.
///
/// # Errors
/// When the machine cannot be simulated.
///
/// # Panics
/// As [`execute`].
pub fn execute_on(
    program: &Program,
    machine: &Arc<dyn Topology>,
    placement: &[u32],
    costs: Costs,
) -> Result<Execution, NetworkError> {
    Ok(execute(program, &mut *PAPER_LINKS.on(machine)?, placement, costs))
}

/// The links of the paper.
pub(super) const PAPER_LINKS: Wormhole = Wormhole {
    flit_bytes: 1,
    cycles_per_hop: 1,
    buffer_flits: 1,
    handoff_cycles: 0,
    cycle_seconds: 1.0,
    has_ports: false,
};

/// Executes a program that has passed [`Program::check`] on an empty network, with process `i` on PE `placement[i]`. A
/// flit is a byte. A cycle is the cycle of the network, or 1 ns if the network has no cycles.
///
/// # Panics
/// When the placement does not have one entry per process, a PE does not exist, or the program does not terminate.
pub fn execute(program: &Program, network: &mut dyn Network, placement: &[u32], costs: Costs) -> Execution {
    assert_eq!(placement.len(), program.tasks(), "a placement has one PE per process");
    let mut run = Run::new(program, network, placement, costs);
    for process in 0..program.tasks() as u32 {
        run.ready(0.0, process);
    }
    run.run_to_end();
    assert_eq!(run.stopped, program.tasks(), "a program that passed its check terminates");
    run.execution.cycles = run.execution.stopped_cycles.iter().copied().max().unwrap_or(0);
    run.execution
}

/// A PE: its running process and its ready processes.
#[derive(Default)]
struct Pe {
    running: Option<u32>,
    ready: VecDeque<u32>,
}

/// The messages of a channel that have not been received, as indices of deliveries in the order of their sends.
type Channel = VecDeque<u32>;

/// Rounds a time to a whole cycle.
fn whole_cycle(now: f64) -> u64 {
    now.round() as u64
}

/// The end of an operation of a process.
#[derive(Clone, Copy)]
enum Event {
    /// A computation or a receive ends.
    Done(u32),
    /// A send ends, and the message leaves.
    Sent(u32),
}

struct Run<'a> {
    network: &'a mut dyn Network,
    cycle_seconds: f64,
    placement: &'a [u32],
    costs: Costs,
    codes: Vec<Code>,
    cursors: Vec<Cursor>,
    pes: Vec<Pe>,
    /// By process: the sender that it waits for, and since which cycle.
    waits: Vec<Option<(u32, f64)>>,
    channels: FxHashMap<(u32, u32), Channel>,
    /// By delivery: whether it has arrived.
    has_arrived: Vec<bool>,
    /// The ends of operations; times are in cycles.
    events: Events<Event>,
    stopped: usize,
    execution: Execution,
}

impl<'a> Run<'a> {
    fn new(program: &Program, network: &'a mut dyn Network, placement: &'a [u32], costs: Costs) -> Self {
        let pes = network.wires().machine().pes();
        Run {
            cycle_seconds: network.cycle_seconds().unwrap_or(1e-9),
            network,
            placement,
            costs,
            codes: Code::of(program),
            cursors: vec![Cursor::default(); program.tasks()],
            pes: (0..pes).map(|_| Pe::default()).collect(),
            waits: vec![None; program.tasks()],
            channels: FxHashMap::default(),
            has_arrived: Vec::new(),
            events: Events::new(),
            stopped: 0,
            execution: Execution {
                stopped_cycles: vec![0; program.tasks()],
                busy_cycles: vec![0; program.tasks()],
                ..Execution::default()
            },
        }
    }

    fn run_to_end(&mut self) {
        let mut arrivals = Vec::new();
        loop {
            let own = self.events.next();
            match self.network.next_event() {
                Some(seconds) if own.is_none_or(|own| seconds <= own * self.cycle_seconds) => {
                    self.network.advance(seconds, &mut arrivals);
                    for arrival in arrivals.drain(..) {
                        self.arrive(arrival);
                    }
                }
                _ => match self.events.pop(f64::INFINITY) {
                    Some((now, event)) => self.finish_operation(now, event),
                    None => return,
                },
            }
        }
    }

    /// A process is ready: it runs now, or when its PE becomes idle.
    fn ready(&mut self, now: f64, process: u32) {
        let pe = &mut self.pes[self.placement[process as usize] as usize];
        if pe.running.is_some() {
            pe.ready.push_back(process);
        } else {
            pe.running = Some(process);
            self.run_process(now, process);
        }
    }

    /// Starts the next operation of a process. If the process waits or has stopped, its PE runs the next ready process.
    fn run_process(&mut self, now: f64, process: u32) {
        let mut next = Some(process);
        while let Some(process) = next.filter(|&process| !self.starts_operation(now, process)) {
            let pe = &mut self.pes[self.placement[process as usize] as usize];
            pe.running = pe.ready.pop_front();
            next = pe.running;
        }
    }

    /// Starts the next operation of a process; returns `false` if the process waits or has stopped.
    fn starts_operation(&mut self, now: f64, process: u32) -> bool {
        let id = process as usize;
        let (op, _) = self.cursors[id].op(&self.codes[id]);
        let (cycles, event) = match op {
            Op::Compute(cycles) => (cycles, Event::Done(process)),
            Op::Send { .. } => (u64::from(self.costs.send_cycles), Event::Sent(process)),
            Op::Receive { from, .. } => {
                let channel = self.channels.entry((from, process)).or_default();
                if channel.front().is_none_or(|&first| !self.has_arrived[first as usize]) {
                    self.waits[id].get_or_insert((from, now));
                    return false;
                }
                if let (Some(delivery), Some((_, since))) = (channel.pop_front(), self.waits[id].take()) {
                    // The wait for the message ends with its arrival; after that the process waits for its PE.
                    let delivery = &mut self.execution.deliveries[delivery as usize];
                    delivery.waited_cycles = delivery.arrived_cycle.saturating_sub(whole_cycle(since));
                }
                (u64::from(self.costs.receive_cycles), Event::Done(process))
            }
            Op::Stop | Op::Begin { .. } | Op::End { .. } => {
                self.stopped += 1;
                self.execution.stopped_cycles[id] = whole_cycle(now);
                return false;
            }
        };
        self.execution.busy_cycles[id] += cycles;
        self.events.add(now + cycles as f64, event);
        true
    }

    /// An operation of a process ends.
    fn finish_operation(&mut self, now: f64, event: Event) {
        let (Event::Done(process) | Event::Sent(process)) = event;
        let id = process as usize;
        if let (Event::Sent(_), (Op::Send { to, flits }, _)) = (event, self.cursors[id].op(&self.codes[id])) {
            let number = self.execution.deliveries.len() as u32;
            self.execution.deliveries.push(Delivery {
                from: process,
                to,
                flits,
                sent_cycle: whole_cycle(now),
                arrived_cycle: 0,
                waited_cycles: 0,
            });
            self.has_arrived.push(false);
            self.channels.entry((process, to)).or_default().push_back(number);
            let (from, to) = (self.placement[id], self.placement[to as usize]);
            let message = Message { token: u64::from(number), from, to, bytes: flits };
            self.network.send(now * self.cycle_seconds, message);
        }
        self.cursors[id].advance();
        self.run_process(now, process);
    }

    fn arrive(&mut self, Arrival { token, seconds }: Arrival) {
        let now = seconds / self.cycle_seconds;
        let delivery = &mut self.execution.deliveries[token as usize];
        // Rounding may put the arrival before the send if both are within one cycle.
        delivery.arrived_cycle = whole_cycle(now).max(delivery.sent_cycle);
        self.has_arrived[token as usize] = true;
        let (from, to) = (delivery.from, delivery.to);
        // The receiver waits for the first message of its channel.
        let is_first = self.channels[&(from, to)].front() == Some(&(token as u32));
        if is_first && self.waits[to as usize].is_some_and(|(sender, _)| sender == from) {
            self.ready(now, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::super::parse;
    use super::*;

    const FREE: Costs = Costs { send_cycles: 0, receive_cycles: 0 };

    fn run(text: &str, machine: &str, placement: &[u32], costs: Costs) -> Execution {
        let program = parse(text).expect("a program");
        program.check().expect("it terminates");
        let machine = topology::parse(machine).expect("a machine");
        execute_on(&program, &machine, placement, costs).expect("it can be simulated")
    }

    #[test]
    fn a_message_takes_its_flits_and_a_cycle_for_every_further_hop() {
        let text = "PROCESS 0\nINT_OP 100\nSEND 1 64\nSTOP\nPROCESS 1\nRECEIVE 0 64\nINT_OP 7\nSTOP";
        for (placement, cycles) in [([0, 1], 100 + 64 + 7), ([0, 4], 100 + 64 + 3 + 7), ([2, 2], 100 + 7)] {
            assert_eq!(run(text, "mesh:5", &placement, FREE).cycles, cycles, "{placement:?}");
        }
        let costs = Costs { send_cycles: 3, receive_cycles: 20 };
        let execution = run(text, "mesh:5", &[0, 1], costs);
        assert_eq!((execution.cycles, execution.stopped_cycles[0]), (100 + 3 + 64 + 20 + 7, 103));
        assert_eq!(execution.busy_cycles, [103, 27]);
        assert_eq!((execution.deliveries[0].sent_cycle, execution.deliveries[0].waited_cycles), (103, 167));
    }

    #[test]
    fn a_message_waits_for_another_with_a_disjoint_route() {
        // Figure 1 of the paper: 1 to 3 waits for 2 to 4, which waits for 3 to 4.
        let text = "PROCESS 0\nINT_OP 0\nSEND 3 10\nSTOP\nPROCESS 1\nSEND 4 10\nSTOP\nPROCESS 2\nSEND 5 10\nSTOP\n\
                    PROCESS 3\nRECEIVE 0 10\nSTOP\nPROCESS 4\nRECEIVE 1 10\nSTOP\nPROCESS 5\nRECEIVE 2 10\nSTOP";
        // Processes 3 to 5 are on PEs 4, 4 and 3; the sends of 0, 1 and 2 leave PEs 3, 2 and 1.
        let execution = run(text, "mesh:5", &[3, 2, 1, 4, 4, 3], FREE);
        assert_eq!(execution.stopped_cycles[3..], [10, 20, 29]);
    }

    #[test]
    fn a_pe_runs_one_process_until_it_waits_or_stops() {
        let text = "PROCESS 0\nINT_OP 10\nRECEIVE 2 1\nINT_OP 10\nSTOP\nPROCESS 1\nINT_OP 100\nSTOP\n\
                    PROCESS 2\nINT_OP 20\nSEND 0 1\nSTOP";
        let execution = run(text, "mesh:2", &[0, 0, 1], FREE);
        // The message arrives in cycle 21, and process 1 occupies the PE until cycle 110.
        assert_eq!(execution.stopped_cycles, [120, 110, 20]);
        assert_eq!(execution.deliveries[0].waited_cycles, 11);
    }

    #[test]
    fn a_channel_keeps_its_order_if_messages_overtake_in_the_network() {
        let text = "PROCESS 0\nSEND 1 1000\nSEND 1 1\nSTOP\n\
                    PROCESS 1\nRECEIVE 0 1000\nINT_OP 5\nRECEIVE 0 1\nSTOP";
        let program = parse(text).expect("a program");
        let machine = topology::parse("mesh:2").expect("a machine");
        let network = crate::models::parse("ideal:hop=0,bandwidth=1e9").expect("a network");
        let mut network = network.on(&machine).expect("it can be simulated");
        let execution = execute(&program, &mut *network, &[0, 1], FREE);
        let arrived: Vec<u64> = execution.deliveries.iter().map(|it| it.arrived_cycle).collect();
        assert_eq!((arrived, execution.cycles), (vec![1000, 1], 1005));
    }

    #[test]
    fn thousands_of_processes_take_turns_on_a_pe() {
        let text: String = (0..4000).map(|id| format!("PROCESS {id}\nSTOP\n")).collect();
        assert_eq!(run(&text, "mesh:2", &[0; 4000], FREE).stopped_cycles, [0; 4000]);
    }

    #[test]
    fn repetitions_are_executed_the_stated_number_of_times() {
        let text = "PROCESS 0\nREPEAT 3\nINT_OP 5\nREPEAT 2\nSEND 1 4\nEND\nEND\nSTOP\n\
                    PROCESS 1\nREPEAT 6\nRECEIVE 0 4\nEND\nSTOP";
        let execution = run(text, "mesh:2", &[0, 1], FREE);
        assert_eq!((execution.deliveries.len(), execution.stopped_cycles[0]), (6, 15));
        // The second message of each pair queues behind the first.
        let arrived: Vec<u64> = execution.deliveries.iter().map(|it| it.arrived_cycle).collect();
        assert_eq!(arrived, [9, 13, 17, 21, 25, 29]);
    }
}
