//! Trace-driven simulation: the times of a recorded run on another network or placement.
//!
//! An execution is ready when the message that caused it has arrived, the executions that it depends on have ended, and
//! the previous execution of the same object has ended. A PE runs one execution at a time, at its recorded speed. It
//! first continues the turn of its last execution; otherwise [`MessageScheduler`] chooses a kind, and of that kind the
//! message that has waited longest (ties: recorded order) is taken. The simulation ends with the execution that ended
//! the recorded run.
//!
//! With the recorded network and placement the result is the recorded run, with one exception: work that a PE enqueued
//! for itself runs here in the order of enqueueing, and in the recorded run array by array. With another network or
//! placement there are two approximations. An object still handles its messages in the recorded order, which a real run
//! need not do. Messages of the runtime (broadcasts, parts of reductions, migrating elements) travel between the
//! recorded PEs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Execution, MessageScheduler, Speeds, Step, Trace, Waiting};
use crate::models::{Arrival, Events, Message, Network};

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// The end of the execution that ended the run, or of the last execution if the recorded run has no such execution.
    pub seconds: f64,
    /// The number of messages that crossed the network.
    pub messages: u64,
    /// The mean latency of these messages, in seconds; 0 if there were none.
    pub mean_message_latency_seconds: f64,
    /// By PE: the seconds that it was busy until the end.
    pub busy_seconds: Vec<f64>,
    /// By execution: when it began, in seconds; infinite if the simulation ended before.
    pub begin_seconds: Vec<f64>,
}

/// An event outside the network.
enum Event {
    /// A message leaves its PE. If its receiver is on the same PE, it arrives at once.
    Leaves(u32),
    /// An execution ends.
    Ends(u32),
}

/// Simulates `trace`, which has passed [`Trace::check`], on `network`. Entry `i` of [`Trace::objects`] is on PE
/// `placement[i]`; without a placement each execution is on its recorded PE.
///
/// # Panics
/// If the placement and [`Trace::objects`] have different lengths.
pub fn simulate(trace: &Trace, network: &mut dyn Network, placement: Option<&[u32]>) -> Timing {
    assert!(placement.is_none_or(|it| it.len() == trace.objects.len()), "a placement has one PE per object");
    let mut simulation = Simulation::new(trace, network, placement);
    for execution in 0..trace.executions.len() as u32 {
        if simulation.states[execution as usize] == State::Waits(0) {
            simulation.ready(execution, 0.0);
        }
    }
    simulation.run();
    let Simulation { pes, last_seconds, messages, latency_seconds, begin_seconds, .. } = simulation;
    Timing {
        seconds: last_seconds,
        messages,
        mean_message_latency_seconds: if messages == 0 { 0.0 } else { latency_seconds / messages as f64 },
        // Executions still running at the end are truncated.
        busy_seconds: pes
            .iter()
            .map(|pe| pe.busy_seconds - (pe.until_seconds - last_seconds).max(0.0))
            .collect(),
        begin_seconds,
    }
}

/// One list per key, stored one after the other.
struct Lists {
    ends: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    /// Lists of the items of `pairs` (key, item), in the order of the pairs.
    fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut ends = vec![0; count + 1];
        for (key, _) in pairs.clone() {
            ends[key as usize + 1] += 1;
        }
        for at in 0..count {
            ends[at + 1] += ends[at];
        }
        let mut next = ends.clone();
        let mut all = vec![0; ends[count] as usize];
        for (key, item) in pairs {
            all[next[key as usize] as usize] = item;
            next[key as usize] += 1;
        }
        Lists { ends, all }
    }

    fn range(&self, key: u32) -> std::ops::Range<usize> {
        self.ends[key as usize] as usize..self.ends[key as usize + 1] as usize
    }
}

/// Ready executions: the time since when each waits, and its number. The bits of times that are not negative compare
/// like the times.
type Ready = BinaryHeap<Reverse<(u64, u32)>>;

#[derive(Default)]
struct Pe {
    /// By class of messages: executions for messages of other PEs, and those for messages of this PE.
    others: [Ready; 2],
    own: [Ready; 2],
    scheduler: MessageScheduler,
    /// The next execution of the turn in progress; it runs next if it is ready by then.
    next_in_turn: Option<u32>,
    is_busy: bool,
    /// Whether the PE is in `Simulation::touched`.
    is_touched: bool,
    busy_seconds: f64,
    /// When its last execution ends.
    until_seconds: f64,
}

impl Pe {
    fn ready(&mut self, kind: Waiting) -> &mut Ready {
        let all = if kind.is_own { &mut self.own } else { &mut self.others };
        &mut all[kind.class]
    }

    /// Removes and returns the execution that begins next.
    fn next(&mut self, states: &[State]) -> Option<u32> {
        if let Some(next) = self.next_in_turn.take().filter(|&next| states[next as usize] == State::Ready) {
            return Some(next);
        }
        // Executions that began as the next of a turn are still in the heaps.
        for ready in self.own.iter_mut().chain(&mut self.others) {
            while ready.peek().is_some_and(|Reverse((_, next))| states[*next as usize] == State::Begun) {
                ready.pop();
            }
        }
        let [own, others] = [&self.own, &self.others].map(|all| [0, 1].map(|class| !all[class].is_empty()));
        let kind = self.scheduler.next(own, others)?;
        self.ready(kind).pop().map(|Reverse((_, next))| next)
    }
}

/// The state of an execution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The number of messages and executions that it still waits for.
    Waits(u32),
    Ready,
    Begun,
}

struct Simulation<'a> {
    trace: &'a Trace,
    network: &'a mut dyn Network,
    placement: Option<&'a [u32]>,
    /// By execution.
    states: Vec<State>,
    /// By execution: the next execution of its turn.
    next_in_turn: Vec<Option<u32>>,
    /// The executions that depend on each execution, and those that each message causes.
    dependents: Lists,
    caused: Lists,
    pes: Vec<Pe>,
    /// PEs that may be able to begin an execution at the present time.
    touched: Vec<u32>,
    /// The speeds of PEs without speeds in the trace.
    normal: Speeds,
    events: Events<Event>,
    /// By message: the PE that sent it, and when it left, in seconds.
    from: Vec<u32>,
    left_seconds: Vec<f64>,
    /// When each message arrived and each execution ended, in seconds.
    arrived_seconds: Vec<f64>,
    ended_seconds: Vec<f64>,
    /// By execution: see [`Timing::begin_seconds`].
    begin_seconds: Vec<f64>,
    last_seconds: f64,
    has_ended: bool,
    messages: u64,
    latency_seconds: f64,
}

impl<'a> Simulation<'a> {
    fn new(trace: &'a Trace, network: &'a mut dyn Network, placement: Option<&'a [u32]>) -> Self {
        let executions = &trace.executions;
        let mut last = vec![None; trace.pes as usize + trace.objects.len()];
        let mut before = Vec::with_capacity(executions.len());
        for (number, execution) in (0u32..).zip(executions) {
            before.push(last[execution.object as usize].replace(number));
        }
        let pairs = (0u32..).zip(executions).flat_map(|(number, execution)| {
            let before = before[number as usize];
            // A previous execution of the same object that is also named counts once.
            let named = execution.after.iter().copied().chain(execution.left_by);
            named.filter(move |&it| Some(it) != before).chain(before).map(move |it| (it, number))
        });
        let dependents = Lists::new(executions.len(), pairs.clone());
        let causes = (0u32..).zip(executions).filter_map(|(number, it)| Some((it.cause?, number)));
        let caused = Lists::new(trace.messages.len(), causes.clone());
        let mut missing = vec![0; executions.len()];
        for (_, number) in pairs.chain(causes) {
            missing[number as usize] += 1;
        }
        let mut next_in_turn = vec![None; executions.len()];
        let mut last: Vec<Option<u32>> = vec![None; trace.pes as usize];
        for (number, execution) in (0u32..).zip(executions) {
            let before = last[execution.pe as usize].replace(number);
            if let Some(before) = before.filter(|_| execution.same_turn) {
                next_in_turn[before as usize] = Some(number);
            }
        }
        Simulation {
            trace,
            states: missing.into_iter().map(State::Waits).collect(),
            next_in_turn,
            dependents,
            caused,
            pes: (0..network.wires().machine().pes()).map(|_| Pe::default()).collect(),
            touched: Vec::new(),
            normal: Speeds::default(),
            events: Events::new(),
            from: vec![0; trace.messages.len()],
            left_seconds: vec![0.0; trace.messages.len()],
            arrived_seconds: vec![0.0; trace.messages.len()],
            ended_seconds: vec![0.0; executions.len()],
            begin_seconds: vec![f64::INFINITY; executions.len()],
            last_seconds: 0.0,
            has_ended: false,
            messages: 0,
            latency_seconds: 0.0,
            network,
            placement,
        }
    }

    /// The PE of an object; `otherwise` if the object is itself a PE or there is no placement.
    fn pe(&self, object: u32, otherwise: u32) -> u32 {
        match (self.placement, object.checked_sub(self.trace.pes)) {
            (Some(placement), Some(object)) => placement[object as usize],
            _ => otherwise,
        }
    }

    fn run(&mut self) {
        let mut arrivals: Vec<Arrival> = Vec::new();
        self.begin(0.0);
        while let Some(first) = self.events.next_with(self.network) {
            self.network.advance(first, &mut arrivals);
            for Arrival { token, seconds } in arrivals.drain(..) {
                self.messages += 1;
                self.latency_seconds += seconds - self.left_seconds[token as usize];
                self.arrives(token as u32, seconds);
            }
            // All events of one time are handled before executions begin and before the network advances again, so
            // that the network handles the messages sent at that time together.
            while let Some((seconds, event)) = self.events.pop(first) {
                match event {
                    Event::Leaves(message) => self.leaves(message, seconds),
                    Event::Ends(execution) => self.ends(execution, seconds),
                }
            }
            if self.has_ended {
                return;
            }
            self.begin(first);
        }
    }

    fn leaves(&mut self, number: u32, seconds: f64) {
        let message = self.trace.messages[number as usize];
        let to = self.pe(message.to, message.pe);
        let from = self.from[number as usize];
        if from == to {
            return self.arrives(number, seconds);
        }
        self.left_seconds[number as usize] = seconds;
        self.network.send(seconds, Message { token: u64::from(number), from, to, bytes: message.bytes });
    }

    fn arrives(&mut self, message: u32, seconds: f64) {
        self.arrived_seconds[message as usize] = seconds;
        for at in self.caused.range(message) {
            self.complete_one(self.caused.all[at], seconds);
        }
    }

    fn ends(&mut self, number: u32, seconds: f64) {
        self.last_seconds = self.last_seconds.max(seconds);
        self.ended_seconds[number as usize] = seconds;
        self.has_ended |= self.trace.exit == Some(number);
        let execution = &self.trace.executions[number as usize];
        let pe = self.pe(execution.object, execution.pe);
        self.pes[pe as usize].is_busy = false;
        for at in self.dependents.range(number) {
            self.complete_one(self.dependents.all[at], seconds);
        }
        let next = self.next_in_turn[number as usize];
        self.pes[pe as usize].next_in_turn = next.filter(|&next| {
            let next = &self.trace.executions[next as usize];
            self.pe(next.object, next.pe) == pe
        });
        self.touch(pe);
    }

    /// One message or execution that an execution waits for is complete.
    fn complete_one(&mut self, execution: u32, seconds: f64) {
        match self.states[execution as usize] {
            State::Waits(1) => self.ready(execution, seconds),
            State::Waits(missing) => self.states[execution as usize] = State::Waits(missing - 1),
            State::Ready | State::Begun => unreachable!("it still waited"),
        }
    }

    /// An execution can begin from `seconds` on. Its message may have arrived earlier, while its object was busy.
    fn ready(&mut self, number: u32, seconds: f64) {
        let execution = &self.trace.executions[number as usize];
        let pe = self.pe(execution.object, execution.pe);
        let kind = self.kind(execution, pe);
        let since_seconds = match (execution.left_by, execution.cause) {
            (Some(before), _) => self.ended_seconds[before as usize],
            (None, Some(message)) => self.arrived_seconds[message as usize],
            (None, None) => seconds,
        };
        self.states[number as usize] = State::Ready;
        self.pes[pe as usize].ready(kind).push(Reverse((since_seconds.to_bits(), number)));
        self.touch(pe);
    }

    /// The kind of message that an execution on PE `pe` waits as. Without a message, the PE itself enqueued it.
    fn kind(&self, execution: &Execution, pe: u32) -> Waiting {
        let is_own =
            execution.left_by.is_some() || execution.cause.is_none_or(|it| self.from[it as usize] == pe);
        Waiting { class: usize::from(!execution.expedited), is_own }
    }

    fn touch(&mut self, pe: u32) {
        if !std::mem::replace(&mut self.pes[pe as usize].is_touched, true) {
            self.touched.push(pe);
        }
    }

    /// Begins all executions that can begin at `seconds`.
    fn begin(&mut self, seconds: f64) {
        while let Some(pe) = self.touched.pop() {
            self.pes[pe as usize].is_touched = false;
            self.begin_on(pe, seconds);
        }
    }

    /// Begins the next ready execution of a PE if the PE is idle.
    fn begin_on(&mut self, pe: u32, seconds: f64) {
        let place = &mut self.pes[pe as usize];
        if place.is_busy {
            return;
        }
        let Some(number) = place.next(&self.states) else { return };
        self.states[number as usize] = State::Begun;
        place.is_busy = true;
        self.begin_seconds[number as usize] = seconds;
        let speeds = self.trace.speeds.get(pe as usize).unwrap_or(&self.normal);
        let mut now = seconds;
        for step in &self.trace.executions[number as usize].steps {
            match *step {
                Step::Work(work) => now = speeds.finish(now, work),
                Step::Send(message) => {
                    self.from[message as usize] = pe;
                    self.events.add(now, Event::Leaves(message));
                }
            }
        }
        place.busy_seconds += now - seconds;
        place.until_seconds = now;
        self.events.add(now, Event::Ends(number));
    }
}

#[cfg(test)]
mod tests {
    use crate::models;
    use equipoise_model::topology;

    use super::super::tests::exchange;
    use super::*;

    fn on(spec: &str, placement: Option<&[u32]>) -> Timing {
        let machine = topology::parse("mesh:4").expect("a machine");
        let mut network =
            models::parse(spec).expect("a network").on(&machine).expect("the model supports this machine");
        simulate(&exchange(), &mut *network, placement)
    }

    #[test]
    fn the_recorded_network_gives_the_recorded_times() {
        let timing = on("ideal:hop=0.5,bandwidth=100", None);
        assert_eq!(timing.seconds, 1.0 + 1.5 + 2.0 + 1.0 + 0.5);
        assert_eq!((timing.messages, timing.mean_message_latency_seconds), (2, 1.25));
        assert_eq!(timing.busy_seconds, [2.5, 2.0, 0.0, 0.0]);
    }

    #[test]
    fn recorded_speeds_apply() {
        let machine = topology::parse("mesh:4").expect("a machine");
        let model = models::parse("ideal:hop=0.5,bandwidth=100").expect("a network");
        let mut trace = exchange();
        // The second half of the work of PE 1 runs at half speed.
        trace.speeds =
            vec![Speeds::default(), Speeds(vec![(3.5, 0.5)]), Speeds::default(), Speeds::default()];
        let timing =
            simulate(&trace, &mut *model.on(&machine).expect("the model supports this machine"), None);
        assert_eq!(timing.seconds, 1.0 + 1.5 + 3.0 + 1.0 + 0.5);
    }

    #[test]
    fn executions_ready_at_the_same_time_run_in_the_recorded_order() {
        // Object 4 sends to 7 and object 5 to 6. Objects 6 and 7 are both ready at 1 s on PE 2; 6 was recorded first.
        let execution =
            |object, pe, cause, steps: &[Step]| Execution::new(object, pe, 0.0, cause, steps.to_vec());
        let message = |to| crate::trace::TraceMessage { to, pe: 2, bytes: 0 };
        let trace = Trace {
            pes: 4,
            objects: vec![crate::trace::TraceObject { array: 0, rank: 0 }; 4],
            messages: vec![message(7), message(6), message(0)],
            executions: vec![
                execution(4, 1, None, &[Step::Send(0)]),
                execution(5, 3, None, &[Step::Send(1)]),
                execution(6, 2, Some(1), &[Step::Work(1.0), Step::Send(2)]),
                execution(7, 2, Some(0), &[Step::Work(10.0)]),
                execution(0, 0, Some(2), &[]),
            ],
            ..exchange()
        };
        let machine = topology::parse("mesh:4").expect("a machine");
        let model = models::parse("ideal:hop=1,bandwidth=100").expect("a network");
        let timing =
            simulate(&trace, &mut *model.on(&machine).expect("the model supports this machine"), None);
        assert_eq!((timing.seconds, timing.mean_message_latency_seconds), (12.0, 1.0));
    }

    #[test]
    fn executions_of_expedited_arrays_come_first() {
        // PE 0 works 1 s and sends to three elements on PE 1; the array of the last one is expedited.
        let execution = |object, pe, cause, steps: &[Step]| Execution {
            expedited: object == 6,
            ..Execution::new(object, pe, 0.0, cause, steps.to_vec())
        };
        let of = |array, rank| crate::trace::TraceObject { array, rank };
        let message = |to, pe| crate::trace::TraceMessage { to, pe, bytes: 0 };
        let mut trace = Trace {
            arrays: vec!["Ordinary".into(), "Urgent".into()],
            objects: vec![of(0, 0), of(0, 1), of(1, 0)],
            messages: vec![message(4, 1), message(5, 1), message(6, 1), message(2, 2)],
            executions: vec![
                execution(0, 0, None, &[Step::Work(1.0), Step::Send(0), Step::Send(1), Step::Send(2)]),
                execution(4, 1, Some(0), &[Step::Work(10.0)]),
                execution(5, 1, Some(1), &[Step::Work(10.0)]),
                execution(6, 1, Some(2), &[Step::Work(1.0), Step::Send(3)]),
                execution(2, 2, Some(3), &[Step::Work(30.0)]),
            ],
            ..exchange()
        };
        let machine = topology::parse("mesh:4").expect("a machine");
        let mut seconds = |expedited: bool| {
            trace.executions[3].expedited = expedited;
            let model = models::parse("ideal:hop=0.5,bandwidth=100").expect("a network");
            simulate(&trace, &mut *model.on(&machine).expect("the model supports this machine"), None).seconds
        };
        assert_eq!(seconds(true), 1.0 + 0.5 + 1.0 + 0.5 + 30.0);
        assert_eq!(seconds(false), 1.0 + 0.5 + 10.0 + 10.0 + 1.0 + 0.5 + 30.0);
    }

    #[test]
    fn network_and_placement_change_the_times() {
        assert_eq!(on("ideal:hop=0.5,bandwidth=10", None).seconds, 1.0 + 10.5 + 2.0 + 5.5 + 0.5);
        let far = on("ideal:hop=0.5,bandwidth=100", Some(&[0, 3]));
        assert_eq!(far.seconds, 1.0 + 2.5 + 2.0 + 2.0 + 0.5);
        // On one PE the second object waits for the end of the first.
        let together = on("ideal:hop=0.5,bandwidth=100", Some(&[0, 0]));
        assert_eq!((together.seconds, together.messages), (4.5, 0));
    }
}
