//! A trace on a network: when everything would have happened.
//!
//! An execution is ready when the message it answers has arrived, the executions it waited for are over,
//! and so is the one before it of the same object. A PE runs one at a time, as fast as it was when it was recorded:
//! first what was part of the same turn as what it has just done, then what [`Turns`] says, of each kind what has been
//! there for longest (of the same time, in the recorded order). It is over with the execution that ended the recorded
//! run.
//!
//! Where nothing is different from the recorded run it is that run again, but for one thing: what a PE has for itself
//! it takes here in the order in which it was left, and there array by array. Elsewhere an object still takes its
//! messages in the recorded order, which a real run need not do; and what the runtime itself sends (broadcasts, parts of
//! reductions, elements that migrate) goes between the recorded PEs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Execution, Speeds, Step, Trace, Turns, Waiting};
use crate::network::{Arrival, Events, Message, Network};

/// When a trace was over elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The end of the execution that ended the run; of the last one, if none did.
    pub seconds: f64,
    /// Messages that crossed the network.
    pub messages: u64,
    /// How long they took, in the mean, those that stayed on their PE not counted; 0 if there were none.
    pub mean_message_latency_seconds: f64,
    /// Seconds each PE was busy until then.
    pub busy_seconds: Vec<f64>,
}

/// What happens next, beside the network.
enum Event {
    /// A message leaves its PE, or is there at once if it stays.
    Leaves(u32),
    /// An execution is over.
    Over(u32),
}

/// Replays `trace`, which has passed [`Trace::check`], on `network`, with object `i` beside the PEs on PE
/// `placement[i]`; where each execution was recorded if there is no placement.
///
/// # Panics
/// If the placement has another length than [`Trace::objects`].
pub fn replay(trace: &Trace, network: &mut dyn Network, placement: Option<&[u32]>) -> Replay {
    assert!(placement.is_none_or(|it| it.len() == trace.objects.len()), "a PE for every object");
    let mut player = Player::new(trace, network, placement);
    for execution in 0..trace.executions.len() as u32 {
        if player.states[execution as usize] == State::Waits(0) {
            player.ready(execution, 0.0);
        }
    }
    player.run();
    let Player { pes, last_seconds, messages, latency_seconds, .. } = player;
    Replay {
        seconds: last_seconds,
        messages,
        mean_message_latency_seconds: if messages == 0 { 0.0 } else { latency_seconds / messages as f64 },
        // Who was busy at the end is cut there.
        busy_seconds: pes
            .iter()
            .map(|pe| pe.busy_seconds - (pe.until_seconds - last_seconds).max(0.0))
            .collect(),
    }
}

/// A list for each of many, one after the other.
struct Lists {
    ends: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    /// The lists of `pairs` (whose, what), in their order.
    fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut ends = vec![0; count + 1];
        for (whose, _) in pairs.clone() {
            ends[whose as usize + 1] += 1;
        }
        for at in 0..count {
            ends[at + 1] += ends[at];
        }
        let mut next = ends.clone();
        let mut all = vec![0; ends[count] as usize];
        for (whose, what) in pairs {
            all[next[whose as usize] as usize] = what;
            next[whose as usize] += 1;
        }
        Lists { ends, all }
    }

    fn range(&self, whose: u32) -> std::ops::Range<usize> {
        self.ends[whose as usize] as usize..self.ends[whose as usize + 1] as usize
    }
}

/// Executions: since when what they answer is there (its bits, which for times compare as these do), and their numbers.
type Ready = BinaryHeap<Reverse<(u64, u32)>>;

#[derive(Default)]
struct Pe {
    /// What is ready and answers messages of other PEs, and what this one left itself, by class of messages.
    others: [Ready; 2],
    own: [Ready; 2],
    turns: Turns,
    /// What comes next in the turn in progress, if it is ready then.
    goes_on: Option<u32>,
    busy: bool,
    /// Whether it has to be looked at before time goes on.
    is_touched: bool,
    busy_seconds: f64,
    /// When what it does last is over.
    until_seconds: f64,
}

impl Pe {
    fn ready(&mut self, kind: Waiting) -> &mut Ready {
        let all = if kind.is_own { &mut self.own } else { &mut self.others };
        &mut all[kind.class]
    }

    /// The execution that begins next, where `states` say which are ready and have not begun.
    fn next(&mut self, states: &[State]) -> Option<u32> {
        if let Some(next) = self.goes_on.take().filter(|&next| states[next as usize] == State::Ready) {
            return Some(next);
        }
        // What went on with a turn is still there.
        for ready in self.own.iter_mut().chain(&mut self.others) {
            while ready.peek().is_some_and(|Reverse((_, next))| states[*next as usize] == State::Begun) {
                ready.pop();
            }
        }
        let [own, others] = [&self.own, &self.others].map(|all| [0, 1].map(|class| !all[class].is_empty()));
        let kind = self.turns.next(own, others)?;
        self.ready(kind).pop().map(|Reverse((_, next))| next)
    }
}

/// What became of an execution.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits for so many things.
    Waits(u32),
    Ready,
    Begun,
}

struct Player<'a> {
    trace: &'a Trace,
    network: &'a mut dyn Network,
    placement: Option<&'a [u32]>,
    /// What became of each execution so far.
    states: Vec<State>,
    /// By execution: the one that goes on with its turn.
    turn_goes_on: Vec<Option<u32>>,
    /// The executions that wait for each execution, and those that answer each message.
    followers: Lists,
    answers: Lists,
    pes: Vec<Pe>,
    /// PEs that may have something to begin.
    touched: Vec<u32>,
    /// The speeds of PEs that the trace says nothing of.
    normal: Speeds,
    events: Events<Event>,
    /// The PE each message left, and when, in seconds.
    from: Vec<u32>,
    left_seconds: Vec<f64>,
    /// When each message arrived and each execution was over, in seconds.
    arrived_seconds: Vec<f64>,
    over_seconds: Vec<f64>,
    last_seconds: f64,
    has_ended: bool,
    messages: u64,
    latency_seconds: f64,
}

impl<'a> Player<'a> {
    fn new(trace: &'a Trace, network: &'a mut dyn Network, placement: Option<&'a [u32]>) -> Self {
        let executions = &trace.executions;
        let mut last = vec![None; trace.pes as usize + trace.objects.len()];
        let mut before = Vec::with_capacity(executions.len());
        for (number, execution) in (0u32..).zip(executions) {
            before.push(last[execution.object as usize].replace(number));
        }
        let pairs = (0u32..).zip(executions).flat_map(|(number, execution)| {
            let before = before[number as usize];
            // One that is named and also stands before is waited for once.
            let named = execution.after.iter().copied().chain(execution.left_by);
            named.filter(move |&it| Some(it) != before).chain(before).map(move |it| (it, number))
        });
        let followers = Lists::new(executions.len(), pairs.clone());
        let causes = (0u32..).zip(executions).filter_map(|(number, it)| Some((it.cause?, number)));
        let answers = Lists::new(trace.messages.len(), causes.clone());
        let mut things = vec![0; executions.len()];
        for (_, number) in pairs.chain(causes) {
            things[number as usize] += 1;
        }
        let mut turn_goes_on = vec![None; executions.len()];
        let mut last: Vec<Option<u32>> = vec![None; trace.pes as usize];
        for (number, execution) in (0u32..).zip(executions) {
            let before = last[execution.pe as usize].replace(number);
            if let Some(before) = before.filter(|_| execution.same_turn) {
                turn_goes_on[before as usize] = Some(number);
            }
        }
        Player {
            trace,
            states: things.into_iter().map(State::Waits).collect(),
            turn_goes_on,
            followers,
            answers,
            pes: (0..network.wires().machine().pes()).map(|_| Pe::default()).collect(),
            touched: Vec::new(),
            normal: Speeds::default(),
            events: Events::new(),
            from: vec![0; trace.messages.len()],
            left_seconds: vec![0.0; trace.messages.len()],
            arrived_seconds: vec![0.0; trace.messages.len()],
            over_seconds: vec![0.0; executions.len()],
            last_seconds: 0.0,
            has_ended: false,
            messages: 0,
            latency_seconds: 0.0,
            network,
            placement,
        }
    }

    /// The PE of an object; `otherwise` for one that is a PE, and where there is no placement.
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
            // All that happens at one time, before anything begins and before the network is asked again: what
            // is sent then is part of what it looks at together.
            while let Some((seconds, event)) = self.events.pop(first) {
                match event {
                    Event::Leaves(message) => self.leaves(message, seconds),
                    Event::Over(execution) => self.over(execution, seconds),
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
        for at in self.answers.range(message) {
            self.satisfied(self.answers.all[at], seconds);
        }
    }

    fn over(&mut self, number: u32, seconds: f64) {
        self.last_seconds = self.last_seconds.max(seconds);
        self.over_seconds[number as usize] = seconds;
        self.has_ended |= self.trace.exit == Some(number);
        let execution = &self.trace.executions[number as usize];
        let pe = self.pe(execution.object, execution.pe);
        self.pes[pe as usize].busy = false;
        for at in self.followers.range(number) {
            self.satisfied(self.followers.all[at], seconds);
        }
        let next = self.turn_goes_on[number as usize];
        self.pes[pe as usize].goes_on = next.filter(|&next| {
            let next = &self.trace.executions[next as usize];
            self.pe(next.object, next.pe) == pe
        });
        self.touch(pe);
    }

    /// One thing less to wait for.
    fn satisfied(&mut self, execution: u32, seconds: f64) {
        match self.states[execution as usize] {
            State::Waits(1) => self.ready(execution, seconds),
            State::Waits(things) => self.states[execution as usize] = State::Waits(things - 1),
            State::Ready | State::Begun => unreachable!("it waited for what happens only now"),
        }
    }

    /// An execution can begin from `seconds` on. What it answers may have been there before, while its object was busy.
    fn ready(&mut self, number: u32, seconds: f64) {
        let execution = &self.trace.executions[number as usize];
        let pe = self.pe(execution.object, execution.pe);
        let kind = self.kind(execution, pe);
        let since_seconds = match (execution.left_by, execution.cause) {
            (Some(before), _) => self.over_seconds[before as usize],
            (None, Some(message)) => self.arrived_seconds[message as usize],
            (None, None) => seconds,
        };
        self.states[number as usize] = State::Ready;
        self.pes[pe as usize].ready(kind).push(Reverse((since_seconds.to_bits(), number)));
        self.touch(pe);
    }

    /// Among which messages waits what an execution on PE `pe` answers. What answers none was left by the PE itself.
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

    /// Begins what can begin at `seconds`.
    fn begin(&mut self, seconds: f64) {
        while let Some(pe) = self.touched.pop() {
            self.pes[pe as usize].is_touched = false;
            self.begin_on(pe, seconds);
        }
    }

    /// Begins the next execution of a PE, if it is free and there is one.
    fn begin_on(&mut self, pe: u32, seconds: f64) {
        let place = &mut self.pes[pe as usize];
        if place.busy {
            return;
        }
        let Some(number) = place.next(&self.states) else { return };
        self.states[number as usize] = State::Begun;
        place.busy = true;
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
        self.events.add(now, Event::Over(number));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::exchange;
    use super::*;
    use crate::{network, topology};

    fn on(spec: &str, placement: Option<&[u32]>) -> Replay {
        let machine = topology::parse("mesh:4").expect("a machine");
        let mut network = network::parse(spec).expect("a network").on(&machine).expect("it serves a mesh");
        replay(&exchange(), &mut *network, placement)
    }

    #[test]
    fn what_was_recorded_happens_again() {
        let replay = on("ideal:hop=0.5,bandwidth=100", None);
        assert_eq!(replay.seconds, 1.0 + 1.5 + 2.0 + 1.0 + 0.5);
        assert_eq!((replay.messages, replay.mean_message_latency_seconds), (2, 1.25));
        assert_eq!(replay.busy_seconds, [2.5, 2.0, 0.0, 0.0]);
    }

    #[test]
    fn a_slow_pe_takes_as_long_as_when_it_was_recorded() {
        let machine = topology::parse("mesh:4").expect("a machine");
        let model = network::parse("ideal:hop=0.5,bandwidth=100").expect("a network");
        let mut trace = exchange();
        // Of the two seconds of PE 1, the second takes twice as long.
        trace.speeds =
            vec![Speeds::default(), Speeds(vec![(3.5, 0.5)]), Speeds::default(), Speeds::default()];
        let replay = replay(&trace, &mut *model.on(&machine).expect("it serves a mesh"), None);
        assert_eq!(replay.seconds, 1.0 + 1.5 + 3.0 + 1.0 + 0.5);
    }

    #[test]
    fn what_is_ready_at_the_same_time_runs_in_the_recorded_order() {
        // Object 4 leads to 7 and object 5 to 6, which was first; both are ready at 1 s on PE 2.
        let execution = |object, pe, cause, steps: &[Step]| Execution {
            object,
            pe,
            begin_seconds: 0.0,
            same_turn: false,
            expedited: false,
            cause,
            left_by: None,
            after: Vec::new(),
            steps: steps.to_vec(),
        };
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
        let model = network::parse("ideal:hop=1,bandwidth=100").expect("a network");
        let replay = replay(&trace, &mut *model.on(&machine).expect("it serves a mesh"), None);
        assert_eq!((replay.seconds, replay.mean_message_latency_seconds), (12.0, 1.0));
    }

    #[test]
    fn what_is_ready_of_expedited_arrays_comes_first() {
        // PE 0 works a second and sends to three elements of PE 1, of which the last is expedited.
        let execution = |object, pe, cause, steps: &[Step]| Execution {
            object,
            pe,
            begin_seconds: 0.0,
            same_turn: false,
            expedited: object == 6,
            cause,
            left_by: None,
            after: Vec::new(),
            steps: steps.to_vec(),
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
            let model = network::parse("ideal:hop=0.5,bandwidth=100").expect("a network");
            replay(&trace, &mut *model.on(&machine).expect("it serves a mesh"), None).seconds
        };
        assert_eq!(seconds(true), 1.0 + 0.5 + 1.0 + 0.5 + 30.0);
        assert_eq!(seconds(false), 1.0 + 0.5 + 10.0 + 10.0 + 1.0 + 0.5 + 30.0);
    }

    #[test]
    fn another_network_and_another_placement_change_when() {
        assert_eq!(on("ideal:hop=0.5,bandwidth=10", None).seconds, 1.0 + 10.5 + 2.0 + 5.5 + 0.5);
        let far = on("ideal:hop=0.5,bandwidth=100", Some(&[0, 3]));
        assert_eq!(far.seconds, 1.0 + 2.5 + 2.0 + 2.0 + 0.5);
        // On one PE the second waits until the first is over.
        let together = on("ideal:hop=0.5,bandwidth=100", Some(&[0, 0]));
        assert_eq!((together.seconds, together.messages), (4.5, 0));
    }
}
