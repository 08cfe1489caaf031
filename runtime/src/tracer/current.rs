//! What a tracer knows of the turn in progress, and of messages and orders that wait in queues of its PE.

use super::own::OwnExecutions;
use equipoise_network::trace::Step;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The turn in progress, and the state that persists between turns.
#[derive(Default)]
pub(super) struct Current {
    pub(super) begin_seconds: f64,
    /// The message that the turn takes.
    pub(super) cause: Option<u32>,
    /// The executing element, and the start of its execution in seconds.
    pub(super) element: Option<(u32, f64)>,
    /// The entry that it executes.
    pub(super) entry: Option<u16>,
    /// The index of the own execution that queued the message that the turn takes, if one did.
    pub(super) left_by: Option<usize>,
    /// Whether the message is for an expedited array.
    pub(super) expedited: bool,
    /// The kept message that is delivered now, instead of the message that the turn takes.
    pub(super) released: Option<Option<u32>>,
    pub(super) steps: Vec<Step>,
    /// The steps of the own execution.
    pub(super) own: Vec<Step>,
    /// Whether an execution or a message depends on the own execution.
    pub(super) needed: bool,
    /// Whether an element executed in this turn, and whether the turn has an execution of any kind.
    pub(super) executed: bool,
    pub(super) has_begun: bool,
    /// Recorded messages that are not yet in a queue or a packet.
    pub(super) recorded: VecDeque<u32>,
    /// The executions of elements on this PE since its last own execution, each with its object.
    pub(super) since: Vec<(u32, u32)>,
    pub(super) own_executions: OwnExecutions,
    /// The PE's own queues, by array.
    pub(super) queues: FxHashMap<u16, Queue>,
    /// By array (`None` for orders about the run): the own executions that queued orders to this PE.
    pub(super) orders: FxHashMap<Option<u16>, VecDeque<usize>>,
}

/// The PE's own queue of an array: how many messages left the port and were taken, and the origin of messages by
/// their position among all messages ever queued.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) left_port: u64,
    pub(super) taken: u64,
    pub(super) known: VecDeque<Queued>,
}

pub(super) struct Queued {
    pub(super) position: u64,
    /// The number of the message in the trace; none if the runtime queued the message.
    pub(super) number: Option<u32>,
    /// The own execution that queued the message; none if an element sent it.
    pub(super) left_by: Option<usize>,
}

impl Current {
    /// Adds a step to the executing element, or to the own execution.
    pub(super) fn does(&mut self, step: Step) {
        let steps = if self.element.is_some() { &mut self.steps } else { &mut self.own };
        // Work is not summed: another order of summation changes the last digits, and with them the order of events.
        steps.push(step);
    }

    /// The own execution queues a message or an order on this PE; returns the index of the own execution.
    pub(super) fn leaves(&mut self) -> usize {
        self.needed = true;
        self.own_executions.next_index()
    }

    /// Releases memory: of the executions of an object only the last is needed, because it depends on the others.
    pub(super) fn forget(&mut self) {
        let mut last: FxHashMap<u32, u32> = FxHashMap::default();
        last.extend(self.since.iter().map(|&(execution, object)| (object, execution)));
        self.since.retain(|(execution, object)| last[object] == *execution);
        let queued = self.queues.values().flat_map(|queue| &queue.known).filter_map(|queued| queued.left_by);
        let ordered = self.orders.values().flatten().copied();
        let oldest = queued.chain(ordered).min().unwrap_or(usize::MAX);
        self.own_executions.forget_before(oldest);
    }

    /// A message enters the own queue of an array, of which `waiting` messages are still in the port.
    pub(super) fn queue(&mut self, array: u16, waiting: usize, number: Option<u32>, left_by: Option<usize>) {
        let queue = self.queues.entry(array).or_default();
        let position = queue.left_port + waiting as u64;
        queue.known.push_back(Queued { position, number, left_by });
    }
}
