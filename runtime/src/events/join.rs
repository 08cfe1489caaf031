//! Makes the trace of a run from the logs of its PEs.

use super::causal_order::InOrder;
use super::work::{Element, Event, Kept, Key, What, Work, works};
use super::{Alignment, PeEvents};
use equipoise_network::trace::{
    Call, Details, Execution, LbStep, Memory, Migration, Step, Trace, TraceMessage, TraceObject, Wait,
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The logs of the PEs of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessEvents {
    pub(crate) process: u32,
    pub(crate) alignment: Alignment,
    pub(crate) pes: Vec<PeEvents>,
}

/// What a trace has of the arrays of a run.
pub(crate) struct Names<'a> {
    pub(crate) arrays: Vec<String>,
    pub(crate) expedited: Vec<bool>,
    pub(crate) entries: Vec<Vec<String>>,
    /// The name of an element, as in `Block[3]`.
    pub(crate) element: &'a dyn Fn(Element) -> String,
}

/// A message that is kept: its number in the trace, its entry, and since when it waits.
#[derive(Clone, Copy, Default)]
struct Waiting {
    message: Option<u32>,
    entry: Option<u16>,
    since: Option<u64>,
    pe: u32,
}

/// The executions of a PE so far.
#[derive(Clone, Default)]
struct Done {
    last: Option<u32>,
    /// By object: the last execution since the last own execution.
    since_own: BTreeMap<u32, u32>,
    own: Option<u32>,
}

struct Join<'a> {
    trace: Trace,
    names: &'a Names<'a>,
    /// The time that becomes 0, in nanoseconds.
    begin: u64,
    objects: FxHashMap<Element, u32>,
    /// The numbers of the messages that are sent.
    numbers: FxHashMap<Key, u32>,
    /// By message: the PE that sent it, and when the work began that sent it, in nanoseconds.
    sent: Vec<(u32, u64)>,
    /// When work began that each message caused, in nanoseconds.
    received: FxHashMap<Key, u64>,
    /// By PE: its process.
    process_of: Vec<u32>,
    /// By how much a message from another process was received before it was sent, at most, in nanoseconds.
    skew: u64,
    kept: FxHashMap<(Kept, Element), VecDeque<Waiting>>,
    done: Vec<Done>,
    /// The time of the exit, which may be one of several, and its execution.
    exit: Option<(u64, u32)>,
}

/// The trace of a run of which `head` has what is known without the logs. The records of the logs are taken, to save memory.
pub(crate) fn join(head: Trace, names: &Names, processes: &mut [ProcessEvents]) -> Trace {
    let mut all: Vec<Vec<Work>> = (0..head.pes).map(|_| Vec::new()).collect();
    let mut details = Details { entries: names.entries.clone(), ..Details::default() };
    // After this time no log lacks anything.
    let mut begin = 0;
    let (mut steps, mut memory) = (Vec::new(), Vec::new());
    let mut process_of = vec![0; head.pes as usize];
    for ProcessEvents { process, alignment, pes } in processes {
        let aligned = |time| alignment.aligned(time);
        let error = alignment.error() as f64 * 1e-9;
        details.clock_error_seconds = details.clock_error_seconds.max(error);
        for log in pes {
            let (works, lacks_nothing) = works(log, *process, aligned);
            details.dropped_events += log.dropped;
            if log.dropped > 0 {
                begin = begin.max(lacks_nothing.unwrap_or(0));
            }
            if let Some(of_pe) = all.get_mut(log.pe as usize) {
                *of_pe = works;
                process_of[log.pe as usize] = *process;
            }
            steps.extend(log.steps.iter().map(|step| (step.ticks.map(aligned), &step.step)));
            memory.extend(log.memory.iter().map(|&(time, bytes)| (aligned(time), log.pe, bytes)));
        }
    }
    let next: Vec<_> = all.iter().map(|works| works.partition_point(|work| work.begin < begin)).collect();
    let received = received(&all, &next);
    let order = InOrder::new(&all, next);
    details.begins_seconds = begin as f64 * 1e-9;
    let pes = head.pes as usize;
    let mut join = Join {
        trace: Trace { arrays: names.arrays.clone(), details, ..head },
        names,
        begin,
        objects: FxHashMap::default(),
        numbers: FxHashMap::default(),
        sent: Vec::new(),
        received,
        process_of,
        skew: 0,
        kept: FxHashMap::default(),
        done: vec![Done::default(); pes],
        exit: None,
    };
    order.for_each(|(pe, work)| join.add(pe as u32, work));
    join.finish(steps, memory)
}

/// When work began that each message caused; of the pieces of work of each PE from `next` on.
fn received(all: &[Vec<Work>], next: &[usize]) -> FxHashMap<Key, u64> {
    let mut received = FxHashMap::default();
    let mut at = |key: Key, time: u64| {
        let first = received.entry(key).or_insert(time);
        *first = time.min(*first);
    };
    let mut renamed = Vec::new();
    for work in all.iter().zip(next).flat_map(|(works, &from)| &works[from..]) {
        if let Some(key) = work.cause {
            at(key, work.begin);
        }
        for event in &work.events {
            match *event {
                Event::Keeps { cause: Some(key), time, .. } => at(key, time),
                Event::Renames { number, cause: Some(key) } => renamed.push((number, key)),
                _ => {}
            }
        }
    }
    for (number, key) in renamed {
        if let Some(&time) = received.get(&number) {
            let first = received.entry(key).or_insert(time);
            *first = time.min(*first);
        }
    }
    received
}

impl Join<'_> {
    fn seconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.begin) as f64 * 1e-9
    }

    fn object(&mut self, element: Element) -> u32 {
        let (trace, next) = (&mut self.trace, self.objects.len() as u32);
        *self.objects.entry(element).or_insert_with(|| {
            let (array, rank) = (u32::from(element.0), element.1);
            trace.objects.push(TraceObject { array, rank });
            let name = (self.names.element)(element);
            let index = name.find('[').map_or("", |at| &name[at..]);
            trace.details.indices.push(index.to_owned());
            trace.pes + next
        })
    }

    /// Adds a piece of work of a PE.
    fn add(&mut self, pe: u32, work: &Work) {
        let number = self.trace.executions.len() as u32;
        let (mut released, mut was_quiet) = (None, false);
        for event in &work.events {
            match *event {
                Event::Sends { .. } => {}
                Event::Releases { why: Kept::Pending, .. } => released = Some(self.releases(pe, event)),
                Event::WasQuiet => was_quiet = true,
                Event::Exits { time } => {
                    if self.exit.is_none_or(|(first, _)| time < first) {
                        self.exit = Some((time, number));
                    }
                }
                _ => self.happens(pe, event),
            }
        }
        // After the events, which may give its message another number.
        let cause = released.unwrap_or_else(|| self.numbers.get(&work.cause?).copied());
        let begin = cause.map_or(work.begin, |cause| self.receives(pe, cause, work.begin).min(work.end));
        let steps = self.steps(pe, work, begin);
        let (object, call) = match work.what {
            What::Own => (pe, Call::default()),
            What::Executes { element, entry, charged_seconds } => {
                (self.object(element), Call { entry: Some(entry), charged_seconds })
            }
        };
        let after = self.after(pe, object, cause, was_quiet);
        let array = object.checked_sub(self.trace.pes).map(|at| self.trace.objects[at as usize].array);
        let expedited = array.and_then(|array| self.names.expedited.get(array as usize).copied());
        let done = &mut self.done[pe as usize];
        let same_turn = work.same_turn && done.last.is_some();
        done.last = Some(number);
        if object == pe {
            (done.own, done.since_own) = (Some(number), BTreeMap::new());
        } else {
            done.since_own.insert(object, number);
        }
        self.trace.details.calls.push(call);
        self.trace.executions.push(Execution {
            object,
            pe,
            begin_seconds: self.seconds(begin),
            same_turn,
            expedited: expedited.unwrap_or(false),
            cause,
            left_by: None,
            after,
            steps,
        });
    }

    /// When a PE receives a message, if its clock says `time`. Work begins when the work before ended, which may be before the
    /// message was sent. PEs of a process share a clock, so the work that the message causes begins no earlier than that of the
    /// sender.
    fn receives(&mut self, pe: u32, message: u32, time: u64) -> u64 {
        let (from, sent) = self.sent[message as usize];
        if self.process_of[from as usize] == self.process_of[pe as usize] {
            return time.max(sent);
        }
        self.skew = self.skew.max(sent.saturating_sub(time));
        time
    }

    /// The sends of a piece of work that began at `begin`, and the work between them.
    fn steps(&mut self, pe: u32, work: &Work, begin: u64) -> Vec<Step> {
        let leave = self.leave_times(work, begin);
        let (mut steps, mut before, mut nth) = (Vec::new(), begin, 0);
        for event in &work.events {
            let Event::Sends { key, to, receiver, bytes } = *event else { continue };
            let message = self.send(key, to, receiver, bytes);
            self.sent.push((pe, begin));
            push_work(&mut steps, leave[nth] - before);
            steps.push(Step::Send(message));
            (before, nth) = (leave[nth], nth + 1);
        }
        push_work(&mut steps, work.end - before);
        steps.shrink_to_fit();
        steps
    }

    /// The executions that have to end before work of an object that `cause` causes.
    fn after(&self, pe: u32, object: u32, cause: Option<u32>, was_quiet: bool) -> Vec<u32> {
        let done = &self.done[pe as usize];
        let mut after: Vec<u32> = Vec::new();
        if was_quiet {
            let each = self.done.iter().flat_map(|done| done.since_own.values().copied().chain(done.own));
            after.extend(each);
        } else if object == pe {
            // Part of a reduction depends on all contributions.
            after.extend(done.since_own.values());
        } else if cause.is_none() {
            // What caused it was dropped, or this PE did.
            after.extend(done.last);
        }
        after
    }

    /// By send of a piece of work that began at `begin`: when it leaves. A send has no time of its own; it leaves at the end of the work, unless a
    /// receiver had it earlier.
    fn leave_times(&self, work: &Work, begin: u64) -> Vec<u64> {
        let keys = work.events.iter().filter_map(|event| match event {
            Event::Sends { key, .. } => Some(key),
            _ => None,
        });
        let mut times: Vec<u64> = keys
            .map(|key| self.received.get(key).map_or(work.end, |&at| at.clamp(begin, work.end)))
            .collect();
        let mut next = work.end;
        for time in times.iter_mut().rev() {
            next = next.min(*time);
            *time = next;
        }
        times
    }

    fn send(&mut self, key: Key, to: u32, receiver: Option<Element>, bytes: u64) -> u32 {
        let object = receiver.map_or(to, |element| self.object(element));
        let message = self.trace.messages.len() as u32;
        let pe = to.min(self.trace.pes - 1);
        self.trace.messages.push(TraceMessage { to: object, pe, bytes });
        self.numbers.insert(key, message);
        message
    }

    /// The messages of a kind that wait for an element, of which there are `kept`. Of those that were dropped from the log,
    /// nothing is known.
    fn waiting(&mut self, why: Kept, element: Element, kept: usize) -> &mut VecDeque<Waiting> {
        let all = self.kept.entry((why, element)).or_default();
        while all.len() < kept {
            all.push_front(Waiting::default());
        }
        while all.len() > kept {
            all.pop_front();
        }
        all
    }

    /// A kept message is delivered, or queued; returns its number if it is delivered.
    fn releases(&mut self, pe: u32, event: &Event) -> Option<u32> {
        let Event::Releases { why, element, nth, kept, number, time } = *event else { return None };
        let waiting = self.waiting(why, element, kept).remove(nth)?;
        if let Some(number) = number {
            if let Some(message) = waiting.message {
                self.numbers.insert(number, message);
            }
            return None;
        }
        if let (Some(since), Some(entry)) = (waiting.since, waiting.entry) {
            let object = self.object(element);
            let (begin_seconds, end_seconds) = (self.seconds(since), self.seconds(time.max(since)));
            self.trace.details.waits.push(Wait { object, entry, pe, begin_seconds, end_seconds });
        }
        waiting.message
    }

    /// What needs nothing of the work in which it happens.
    fn happens(&mut self, pe: u32, event: &Event) {
        match *event {
            Event::Keeps { why, element, entry, cause, kept, time } => {
                let message = cause.and_then(|key| self.numbers.get(&key).copied());
                if let Some(message) = message {
                    self.receives(pe, message, time);
                }
                let since = Some(time).filter(|_| why == Kept::Pending);
                let waiting = self.waiting(why, element, kept.saturating_sub(1));
                waiting.push_back(Waiting { message, entry: Some(entry), since, pe });
            }
            Event::Drops { element } => {
                self.kept.remove(&(Kept::Pending, element));
                self.kept.remove(&(Kept::Early { pe }, element));
            }
            Event::Renames { number, cause } => {
                if let Some(&message) = cause.and_then(|key| self.numbers.get(&key)) {
                    self.numbers.insert(number, message);
                }
            }
            Event::Leaves { element, to, time } => {
                // Messages that wait for a guard go with their element.
                let waiting = self.kept.get_mut(&(Kept::Pending, element));
                waiting.into_iter().flatten().for_each(|waiting| waiting.pe = to);
                let object = self.object(element);
                let migration = Migration { object, from: pe, to, seconds: self.seconds(time) };
                self.trace.details.migrations.push(migration);
            }
            Event::Releases { .. } => {
                self.releases(pe, event);
            }
            Event::Sends { .. } | Event::WasQuiet | Event::Exits { .. } => {}
        }
    }

    /// Completes the trace.
    fn finish(mut self, steps: Vec<([u64; 2], &LbStep)>, memory: Vec<(u64, u32, u64)>) -> Trace {
        for ([from, to], step) in steps.into_iter().filter(|(times, _)| times[0] >= self.begin) {
            let (begin_seconds, end_seconds) = (self.seconds(from), self.seconds(to.max(from)));
            self.trace.details.steps.push(LbStep { begin_seconds, end_seconds, ..step.clone() });
        }
        for (time, pe, bytes) in memory.into_iter().filter(|(time, ..)| *time >= self.begin) {
            let seconds = self.seconds(time);
            self.trace.details.memory.push(Memory { pe, seconds, bytes });
        }
        let details = &mut self.trace.details;
        details.memory.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then(a.pe.cmp(&b.pe)));
        details.migrations.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let end = |execution: &Execution| {
            let work = execution.steps.iter().map(|step| match step {
                Step::Work(seconds) => *seconds,
                Step::Send(_) => 0.0,
            });
            execution.begin_seconds + work.sum::<f64>()
        };
        details.clock_error_seconds = details.clock_error_seconds.max(self.skew as f64 * 1e-9);
        self.trace.exit = self.exit.map(|(_, exit)| exit);
        self.trace.seconds = match self.trace.exit {
            Some(exit) => end(&self.trace.executions[exit as usize]),
            None => self.trace.executions.iter().map(end).fold(0.0, f64::max),
        };
        self.add_waits_of_the_end();
        self.trace
    }

    /// Adds the waits of messages whose guards are still false at the end.
    fn add_waits_of_the_end(&mut self) {
        let pending = self.kept.drain().filter(|((why, _), _)| *why == Kept::Pending);
        let mut left: Vec<_> =
            pending.flat_map(|((_, element), all)| all.into_iter().map(move |it| (element, it))).collect();
        left.sort_by_key(|(element, waiting)| (*element, waiting.since));
        let end_seconds = self.trace.seconds;
        for (element, Waiting { entry, since, pe, .. }) in left {
            let (Some(entry), Some(since)) = (entry, since) else { continue };
            let begin_seconds = self.seconds(since);
            if begin_seconds < end_seconds {
                let object = self.object(element);
                self.trace.details.waits.push(Wait { object, entry, pe, begin_seconds, end_seconds });
            }
        }
    }
}

/// Adds work of this many nanoseconds.
fn push_work(steps: &mut Vec<Step>, nanoseconds: u64) {
    if nanoseconds > 0 {
        steps.push(Step::Work(nanoseconds as f64 * 1e-9));
    }
}
