//! A program on a machine: when everything happens, in cycles.
//!
//! The machine is that of De Petris and Perego (section 3.1). A PE runs the processes it has one at a time, each until
//! it waits or stops, in the order in which they became ready. An `INT_OP` takes its cycles; a send and a receive
//! keep the process busy for a constant time, whatever the message; a message leaves when its send is over, and the
//! send waits for nothing else. A receive whose message is not there makes the process idle until it has arrived
//! as a whole. Messages travel by wormhole routing with flits of a byte, over all links of a PE at once, since in the
//! paper they wait for nothing but links; those between processes on one PE take no time. A channel keeps the order of its
//! sends: on networks where a short message overtakes a long one, it is received after that.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Program;
use super::code::{Code, Cursor, Op};
use crate::Topology;
use crate::network::{Arrival, Events, Message, Model, Network, NetworkError, Wormhole};

/// What sends and receives cost a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Cycles of a send.
    pub send_cycles: u32,
    /// Cycles of a receive, once the message is there.
    pub receive_cycles: u32,
}

impl Default for Costs {
    /// Ten cycles each: the paper says that they are constant, and not what they are.
    fn default() -> Self {
        Costs { send_cycles: 10, receive_cycles: 10 }
    }
}

/// When a program was over, and what happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Execution {
    /// When the last process stopped.
    pub cycles: u64,
    /// When each process stopped.
    pub stopped_cycles: Vec<u64>,
    /// How long each process was busy: computing, sending and receiving.
    pub busy_cycles: Vec<u64>,
    /// Every message, in the order of their sends.
    pub deliveries: Vec<Delivery>,
}

/// A message that was sent, arrived and was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The process that sent it.
    pub from: u32,
    /// The process it was for.
    pub to: u32,
    /// Its length.
    pub flits: u64,
    /// The cycle in which it left. This and other times are rounded where a network counts in parts of cycles.
    pub sent_cycle: u64,
    /// The cycle in which it had arrived.
    pub arrived_cycle: u64,
    /// How long its receiver was idle for it.
    pub waited_cycles: u64,
}

/// Executes a program that has passed [`Program::check`] with process `i` on PE `placement[i]` of `machine`, whose
/// links are those of the paper: a header crosses one in a cycle, and flits follow cycle by cycle.
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
    let wormhole = Wormhole {
        flit_bytes: 1,
        cycles_per_hop: 1,
        buffer_flits: 1,
        handoff_cycles: 0,
        cycle_seconds: 1.0,
        has_ports: false,
    };
    Ok(execute(program, &mut *wormhole.on(machine)?, placement, costs))
}

/// Executes a program that has passed [`Program::check`] on a new network, with process `i` on PE `placement[i]`, and
/// a byte per flit. A cycle is that of the network, or a nanosecond where it has none.
///
/// # Panics
/// When the placement has another length than the processes, a PE is unknown, or the program does not come to an end.
pub fn execute(program: &Program, network: &mut dyn Network, placement: &[u32], costs: Costs) -> Execution {
    assert_eq!(placement.len(), program.tasks(), "a PE for every process");
    let mut run = Run::new(program, network, placement, costs);
    for process in 0..program.tasks() as u32 {
        run.ready(0.0, process);
    }
    run.finish();
    assert_eq!(run.stopped, program.tasks(), "a program that was checked comes to an end");
    run.execution.cycles = run.execution.stopped_cycles.iter().copied().max().unwrap_or(0);
    run.execution
}

/// A PE: which process runs, and which would.
#[derive(Default)]
struct Pe {
    running: Option<u32>,
    ready: VecDeque<u32>,
}

/// Messages of a channel that were not received, as numbers of deliveries, in the order of their sends.
type Channel = VecDeque<u32>;

/// The cycle that it is.
fn whole(now: f64) -> u64 {
    now.round() as u64
}

/// What the operation was that a process is busy with.
#[derive(Clone, Copy)]
enum Event {
    /// Something inside the process is over.
    Busy(u32),
    /// A send is over: the message leaves.
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
    /// Whom a process waits for, and since which cycle.
    waits: Vec<Option<(u32, f64)>>,
    channels: FxHashMap<(u32, u32), Channel>,
    /// By delivery: whether it has arrived.
    has_arrived: Vec<bool>,
    /// In cycles.
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

    fn finish(&mut self) {
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
                    Some((now, event)) => self.over(now, event),
                    None => return,
                },
            }
        }
    }

    /// A process may run, now or when its PE has time.
    fn ready(&mut self, now: f64, process: u32) {
        let pe = &mut self.pes[self.placement[process as usize] as usize];
        if pe.running.is_some() {
            pe.ready.push_back(process);
        } else {
            pe.running = Some(process);
            self.go_on(now, process);
        }
    }

    /// A process runs until it is busy; when it waits or stops, its PE runs the next.
    fn go_on(&mut self, now: f64, process: u32) {
        let mut next = Some(process);
        while let Some(process) = next.filter(|&process| !self.is_busy_now(now, process)) {
            let pe = &mut self.pes[self.placement[process as usize] as usize];
            pe.running = pe.ready.pop_front();
            next = pe.running;
        }
    }

    /// Does the next operation of a process: whether that keeps it busy, or it waits or has stopped.
    fn is_busy_now(&mut self, now: f64, process: u32) -> bool {
        let id = process as usize;
        let (op, _) = self.cursors[id].op(&self.codes[id]);
        let (cycles, event) = match op {
            Op::Compute(cycles) => (cycles, Event::Busy(process)),
            Op::Send { .. } => (u64::from(self.costs.send_cycles), Event::Sent(process)),
            Op::Receive { from, .. } => {
                let channel = self.channels.entry((from, process)).or_default();
                if channel.front().is_none_or(|&first| !self.has_arrived[first as usize]) {
                    self.waits[id].get_or_insert((from, now));
                    return false;
                }
                if let (Some(delivery), Some((_, since))) = (channel.pop_front(), self.waits[id].take()) {
                    // It waited until the message was there; after that, for its turn on the PE.
                    let delivery = &mut self.execution.deliveries[delivery as usize];
                    delivery.waited_cycles = delivery.arrived_cycle.saturating_sub(whole(since));
                }
                (u64::from(self.costs.receive_cycles), Event::Busy(process))
            }
            Op::Stop | Op::Begin { .. } | Op::End { .. } => {
                self.stopped += 1;
                self.execution.stopped_cycles[id] = whole(now);
                return false;
            }
        };
        self.execution.busy_cycles[id] += cycles;
        self.events.add(now + cycles as f64, event);
        true
    }

    /// What a process was busy with is over.
    fn over(&mut self, now: f64, event: Event) {
        let (Event::Busy(process) | Event::Sent(process)) = event;
        let id = process as usize;
        if let (Event::Sent(_), (Op::Send { to, flits }, _)) = (event, self.cursors[id].op(&self.codes[id])) {
            let number = self.execution.deliveries.len() as u32;
            self.execution.deliveries.push(Delivery {
                from: process,
                to,
                flits,
                sent_cycle: whole(now),
                arrived_cycle: 0,
                waited_cycles: 0,
            });
            self.has_arrived.push(false);
            self.channels.entry((process, to)).or_default().push_back(number);
            let (from, to) = (self.placement[id], self.placement[to as usize]);
            let message = Message { token: u64::from(number), from, to, bytes: flits };
            self.network.send(now * self.cycle_seconds, message);
        }
        self.cursors[id].go_on();
        self.go_on(now, process);
    }

    fn arrive(&mut self, Arrival { token, seconds }: Arrival) {
        let now = seconds / self.cycle_seconds;
        let delivery = &mut self.execution.deliveries[token as usize];
        // What ends in the middle of a cycle may be rounded down, and what began then up.
        delivery.arrived_cycle = whole(now).max(delivery.sent_cycle);
        self.has_arrived[token as usize] = true;
        let (from, to) = (delivery.from, delivery.to);
        // It is the one that the receiver waits for only if it is the first of its channel.
        let is_first = self.channels[&(from, to)].front() == Some(&(token as u32));
        if is_first && self.waits[to as usize].is_some_and(|(whom, _)| whom == from) {
            self.ready(now, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::topology;

    const FREE: Costs = Costs { send_cycles: 0, receive_cycles: 0 };

    fn run(text: &str, machine: &str, placement: &[u32], costs: Costs) -> Execution {
        let program = parse(text).expect("a program");
        program.check().expect("it comes to an end");
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
    fn a_packet_waits_for_another_whose_way_is_disjoint_from_its_own() {
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
        // Its message is there at 21, and process 1 has the PE until 110.
        assert_eq!(execution.stopped_cycles, [120, 110, 20]);
        assert_eq!(execution.deliveries[0].waited_cycles, 11);
    }

    #[test]
    fn a_channel_keeps_its_order_where_messages_overtake() {
        let text = "PROCESS 0\nSEND 1 1000\nSEND 1 1\nSTOP\n\
                    PROCESS 1\nRECEIVE 0 1000\nINT_OP 5\nRECEIVE 0 1\nSTOP";
        let program = parse(text).expect("a program");
        let machine = topology::parse("mesh:2").expect("a machine");
        let network = crate::network::parse("ideal:hop=0,bandwidth=1e9").expect("a network");
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
    fn repetitions_are_done_as_often_as_they_say() {
        let text = "PROCESS 0\nREPEAT 3\nINT_OP 5\nREPEAT 2\nSEND 1 4\nEND\nEND\nSTOP\n\
                    PROCESS 1\nREPEAT 6\nRECEIVE 0 4\nEND\nSTOP";
        let execution = run(text, "mesh:2", &[0, 1], FREE);
        assert_eq!((execution.deliveries.len(), execution.stopped_cycles[0]), (6, 15));
        // The second message of each pair queues behind the first.
        let arrived: Vec<u64> = execution.deliveries.iter().map(|it| it.arrived_cycle).collect();
        assert_eq!(arrived, [9, 13, 17, 21, 25, 29]);
    }
}
