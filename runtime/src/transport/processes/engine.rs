//! The connection of a process to the other processes of its run. It sends the batches of the PEs, gives them those that
//! arrive, and takes part in what all processes do together: they start, find quiescence, stop and gather the report.
//!
//! # Start
//! Every process describes its program and its setup; processes compare the descriptions with those of their children in
//! the tree of processes. When all are the same, process 0 tells all to start.
//!
//! # Quiescence
//! Process 0 sends waves down the tree. A process answers when its PEs rest and its children have answered, with the
//! number of batches that its PEs have sent and received. If two waves in a row have the same sums, and as many batches
//! received as sent, then no message is in flight (F. Mattern, Algorithms for distributed termination detection, 1987,
//! four counters). Then a third wave tells every process the number of the round before any PE sends what has waited:
//! a message must not reach a process that has not heard of the round, else what is asked for later there would be
//! counted to this round. If waves repeat the same sums, but fewer batches were received than sent, messages are lost, and
//! the run fails.
//!
//! # Flow control
//! A process has at most [`WINDOW_BYTES`] (and one batch) under way to another one that were not yet executed; further
//! batches wait at the sender. A process whose batches wait for too long a time does not run messages of its PEs to
//! themselves ([`Post::is_congested`](crate::batches::Post::is_congested)), which would send more. This cannot deadlock: PEs always execute what arrives, so what
//! was sent is executed, the receiver says so after every [`EXECUTED_BYTES`] at the latest, which are less than the window,
//! and a window that is not full lets a batch pass.
//!
//! # End
//! A process whose run is over tells process 0. The first ending counts; process 0 tells it to all. When the PEs of a process
//! have stopped, the process adds what is left of it to what its children report: counts, what elements wait for, and how
//! many messages it has sent to each process. Process 0 sends the sums back, so that each process knows how many messages
//! are still under way to it, and receives them: no message is left in the network. If a run has failed and a process
//! does not stop within [`GRACE`], because it is in the middle of an entry method, all processes are aborted.

use super::Wire;
use super::words::{Counts, Ending, Gathered, Totals, Word};
use crate::batches::{self, Desk, Kind};
use crate::codec;
use crate::node::{Failure, Node};
use crate::order::PeOrder;
use crate::process;
use crate::tree::Tree;
use equipoise_model::table::count;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most bytes under way to one process that were not yet executed there, apart from the last batch.
const WINDOW_BYTES: u64 = 8 << 20;
/// After this many executed bytes, the sender is told.
const EXECUTED_BYTES: u64 = 1 << 20;
/// The most messages that are received before PEs run again.
const RECEIVED: u32 = 64;
/// The time between waves: at first, and at most. It doubles from wave to wave while nothing changes.
const PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// After so many waves with the same sums and fewer batches received than sent, these batches are lost.
const LOST_AFTER: u32 = 400;
/// The time that processes have to stop after a failure.
const GRACE: Duration = Duration::from_millis(800);
/// The time they have after the time limit: the watcher of a stuck process ends it earlier, with a better sentence.
const LONG_GRACE: Duration = Duration::from_secs(4);

/// Where a process is in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The setup runs, or setups are compared.
    SettingUp,
    Running,
    /// The run is over; PEs stop.
    Stopping,
    /// The process has reported what is left, and receives what is under way to it.
    Finishing,
    Over,
}

/// The connection of one process.
pub(super) struct Engine {
    node: Arc<Node>,
    desk: Arc<Desk>,
    me: u32,
    tree: Tree,
    phase: Phase,
    peers: Vec<Peer>,
    /// An empty list, to take from the desk.
    outgoing: Vec<(u32, Vec<u8>)>,
    /// The bytes that have left since the desk was told.
    left_bytes: u64,
    /// The processes from which more than [`EXECUTED_BYTES`] arrived since they were last told.
    owed: Vec<u32>,
    /// The description of the setup, once it is over; the children that are ready, with theirs.
    setup: Option<Vec<String>>,
    ready: Vec<(u32, Vec<String>)>,
    /// Batches that PEs have received, and words that count as such.
    received: u64,
    /// Words that count as sent batches.
    sent: u64,
    waves: Waves,
    /// When the end of the run was noticed here.
    ended: Option<Instant>,
    pes_have_stopped: bool,
    /// What the children have reported.
    reports: Vec<Gathered>,
    totals: Option<Totals>,
}

/// Another process, from the view of this one.
#[derive(Default)]
struct Peer {
    /// Batches that wait, because too much is under way.
    waiting: VecDeque<Vec<u8>>,
    /// Bytes sent, and of those executed.
    sent_bytes: u64,
    executed_bytes: u64,
    /// Messages sent and received.
    sent: u64,
    received: u64,
    /// Bytes received, and of those reported as executed.
    received_bytes: u64,
    reported_bytes: u64,
}

/// Waves, in the view of one process.
#[derive(Default)]
struct Waves {
    /// The number of the current wave; on process 0 waves begin.
    wave: u64,
    /// Whether this process has to answer, and the sum and number of the answers of its children.
    asked: bool,
    answers: usize,
    sum: Counts,
    /// On process 0: the sums of the previous wave, and how often they were the same.
    before: Option<Counts>,
    same: u32,
    /// On process 0: whether quiescence was found, and the wave tells the number of the round.
    found: bool,
    /// On process 0: the end of the last wave, and the pause after it.
    last: Option<(Instant, Duration)>,
}

impl Engine {
    /// The connection of process `me`.
    pub(super) fn new(node: Arc<Node>, desk: Arc<Desk>, me: u32) -> Self {
        let processes = node.settings.processes();
        Engine {
            me,
            tree: Tree::new(processes, 1),
            phase: Phase::SettingUp,
            peers: (0..processes).map(|_| Peer::default()).collect(),
            outgoing: Vec::new(),
            left_bytes: 0,
            owed: Vec::new(),
            setup: None,
            ready: Vec::new(),
            received: 0,
            sent: 0,
            waves: Waves::default(),
            ended: None,
            pes_have_stopped: false,
            reports: Vec::new(),
            totals: None,
            node,
            desk,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// The setup of this process is over. `setup` describes the program and what it has made.
    pub(super) fn is_set_up(&mut self, setup: Vec<String>) {
        self.setup = Some(setup);
    }

    /// The PEs of this process have stopped, and the outcome of the process has what is left of them.
    pub(super) fn pes_have_stopped(&mut self) {
        self.pes_have_stopped = true;
    }

    /// Sends and receives what there is; returns whether there was anything. `give` receives the orders for PEs of this
    /// process.
    pub(super) fn turn(&mut self, wire: &mut dyn Wire, give: &mut dyn FnMut(u32, PeOrder)) -> bool {
        let mut worked = self.send(wire);
        for _ in 0..RECEIVED {
            let Some((from, batch)) = wire.receive(&self.desk) else { break };
            worked = true;
            self.receive(wire, give, from, batch);
            // A PE that has executed the batch may have answered.
            self.send(wire);
        }
        if !self.owed.is_empty() {
            self.report_executed(wire);
        }
        if self.desk.has_printed() && self.phase == Phase::Running {
            self.print(wire);
        }
        worked | self.advance(wire, give)
    }

    /// Sends what PEs have handed over; returns whether there was anything.
    fn send(&mut self, wire: &mut dyn Wire) -> bool {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        self.desk.take_outgoing(&mut outgoing, &mut self.left_bytes);
        let worked = !outgoing.is_empty();
        for (to, batch) in outgoing.drain(..) {
            let to = to / self.node.settings.local_pes();
            self.peers[to as usize].waiting.push_back(batch);
            self.send_waiting(wire, to);
        }
        self.outgoing = outgoing;
        worked
    }

    /// Sends the batches for a process that its window lets pass.
    fn send_waiting(&mut self, wire: &mut dyn Wire, to: u32) {
        // What is not sent when the run is over is not needed.
        while self.phase <= Phase::Running {
            let peer = &mut self.peers[to as usize];
            if peer.sent_bytes - peer.executed_bytes >= WINDOW_BYTES {
                return;
            }
            let Some(batch) = peer.waiting.pop_front() else { return };
            peer.sent_bytes += batch.len() as u64;
            peer.sent += 1;
            self.left_bytes += batch.len() as u64;
            self.desk.return_buffer(wire.send(to, batch));
        }
    }

    /// Tells processes how much of what they sent has been executed.
    fn report_executed(&mut self, wire: &mut dyn Wire) {
        for from in std::mem::take(&mut self.owed) {
            let (executed, peer) = (self.desk.executed_bytes(from), &mut self.peers[from as usize]);
            let bytes = executed - peer.reported_bytes;
            if bytes >= EXECUTED_BYTES && self.phase <= Phase::Running {
                peer.reported_bytes = executed;
                self.say(wire, from, &Word::Executed { bytes });
            }
            let peer = &self.peers[from as usize];
            if peer.received_bytes - peer.reported_bytes >= EXECUTED_BYTES {
                self.owed.push(from);
            }
        }
    }

    fn receive(
        &mut self,
        wire: &mut dyn Wire,
        give: &mut dyn FnMut(u32, PeOrder),
        from: u32,
        batch: Vec<u8>,
    ) {
        let peer = &mut self.peers[from as usize];
        match batches::kind(&batch) {
            Some(Kind::Orders(to)) if self.node.local_pes().contains(&to) => {
                peer.received += 1;
                let owed = peer.received_bytes - peer.reported_bytes >= EXECUTED_BYTES;
                peer.received_bytes += batch.len() as u64;
                if !owed && peer.received_bytes - peer.reported_bytes >= EXECUTED_BYTES {
                    self.owed.push(from);
                }
                // Counted before it is there: the PE that has received it may rest at once.
                self.received += 1;
                give(to, PeOrder::Batch { from_process: from, bytes: batch });
            }
            Some(Kind::Word) => {
                match codec::decode(batches::word_bytes(&batch)) {
                    Ok(word) => self.hear(wire, give, from, word),
                    Err(error) => self.fail(format!("cannot decode a word of process {from}: {error}")),
                }
                self.desk.return_buffer(batch);
            }
            _ => self
                .fail(format!("process {from} sent {} that are no batch", count(batch.len() as u64, "byte"))),
        }
    }

    fn say(&mut self, wire: &mut dyn Wire, to: u32, word: &Word) {
        match batches::word(word) {
            Ok(bytes) => {
                if !matches!(word, Word::Gathered(_) | Word::Finish(_)) {
                    self.peers[to as usize].sent += 1;
                }
                self.desk.return_buffer(wire.send(to, bytes));
            }
            Err(error) => self.fail(format!("cannot encode a word to process {to}: {error}")),
        }
    }

    fn say_to_children(&mut self, wire: &mut dyn Wire, word: &Word) {
        for child in self.tree.children(self.me) {
            self.say(wire, child, word);
        }
    }

    fn fail(&self, sentence: String) {
        self.node.fail(Failure::Program(sentence));
    }

    fn hear(&mut self, wire: &mut dyn Wire, give: &mut dyn FnMut(u32, PeOrder), from: u32, word: Word) {
        if !matches!(word, Word::Gathered(_) | Word::Finish(_)) {
            self.peers[from as usize].received += 1;
        }
        let is_running = self.phase <= Phase::Running;
        match word {
            // Process 0 has decided how the run ends; nobody waits for an answer.
            Word::Over(_) | Word::Count { .. } | Word::Quiet { .. } if !is_running => {}
            Word::Ready { setup } => self.ready.push((from, setup)),
            Word::Start => self.start(wire),
            Word::Over(ending) | Word::Stop(ending) => self.stop(wire, ending),
            Word::Count { wave, round } => {
                self.node.quiescence.reached(round);
                self.waves = Waves { wave, asked: true, ..Waves::default() };
                self.say_to_children(wire, &Word::Count { wave, round });
            }
            Word::Counted { wave, counts } => {
                if wave == self.waves.wave {
                    self.waves.answers += 1;
                    self.waves.sum.add(counts);
                }
            }
            Word::Quiet { round } => {
                self.received += 1;
                self.found_quiet(wire, give, round);
            }
            Word::Executed { bytes } => {
                self.peers[from as usize].executed_bytes += bytes;
                self.send_waiting(wire, from);
            }
            Word::Print(lines) => process::print_lines(&lines),
            Word::Gathered(left) => self.reports.push(left),
            Word::Finish(totals) => {
                self.say_to_children(wire, &Word::Finish(totals.clone()));
                self.totals = Some(totals);
            }
        }
    }

    /// Takes part in what all processes do together; returns whether there was anything to do.
    fn advance(&mut self, wire: &mut dyn Wire, give: &mut dyn FnMut(u32, PeOrder)) -> bool {
        if self.phase <= Phase::Running && self.node.stopped() {
            return self.over(wire);
        }
        match self.phase {
            Phase::SettingUp => self.compare_setups(wire),
            Phase::Running => self.take_part_in_waves(wire, give),
            Phase::Stopping => self.report(wire),
            Phase::Finishing => self.finish(),
            Phase::Over => false,
        }
    }

    /// Compares the setups of the children with that of this process, once all are over.
    fn compare_setups(&mut self, wire: &mut dyn Wire) -> bool {
        if self.setup.is_none() || self.ready.len() < self.tree.children(self.me).count() {
            return false;
        }
        let mine = self.setup.take().unwrap_or_default();
        for (child, theirs) in std::mem::take(&mut self.ready) {
            if let Some(sentence) = difference((self.me, &mine), (child, &theirs)) {
                self.fail(sentence);
                return true;
            }
        }
        if self.me == 0 {
            self.start(wire);
        } else {
            self.say(wire, self.tree.parent(self.me), &Word::Ready { setup: mine });
        }
        true
    }

    fn start(&mut self, wire: &mut dyn Wire) {
        self.say_to_children(wire, &Word::Start);
        self.phase = Phase::Running;
    }

    /// Starts waves, on process 0, and answers them.
    fn take_part_in_waves(&mut self, wire: &mut dyn Wire, give: &mut dyn FnMut(u32, PeOrder)) -> bool {
        if self.me == 0 && !self.waves.asked {
            let is_due = self.waves.last.is_none_or(|(end, pause)| end.elapsed() >= pause);
            if !is_due || self.node.quiescence.at_rest(&self.node.bells).is_none() {
                return false;
            }
            self.waves.wave += 1;
            (self.waves.asked, self.waves.answers, self.waves.sum) = (true, 0, Counts::default());
            let (wave, round) = (self.waves.wave, self.node.quiescence.rounds());
            self.say_to_children(wire, &Word::Count { wave, round });
        }
        if !self.waves.asked || self.waves.answers < self.tree.children(self.me).count() {
            return false;
        }
        let Some(mine) = self.counts() else { return false };
        self.waves.asked = false;
        self.waves.sum.add(mine);
        if self.me == 0 {
            self.wave_is_over(wire, give);
        } else {
            let (wave, counts) = (self.waves.wave, self.waves.sum);
            self.say(wire, self.tree.parent(self.me), &Word::Counted { wave, counts });
        }
        true
    }

    /// The counts of this process, if its PEs rest.
    fn counts(&self) -> Option<Counts> {
        let (quiescence, bells) = (&self.node.quiescence, &self.node.bells);
        let before = quiescence.at_rest(bells)?;
        let counts = Counts {
            sent: self.desk.sent() + self.sent,
            received: self.received,
            waiting: quiescence.waiting(),
        };
        // A PE that continued meanwhile may have sent a batch.
        (quiescence.at_rest(bells) == Some(before)).then_some(counts)
    }

    /// All processes have answered a wave, on process 0.
    fn wave_is_over(&mut self, wire: &mut dyn Wire, give: &mut dyn FnMut(u32, PeOrder)) {
        let sum = self.waves.sum;
        let is_same = self.waves.before == Some(sum);
        self.waves.before = Some(sum);
        let pause = match self.waves.last {
            Some((_, pause)) if is_same => (pause * 2).min(LONGEST_PAUSE),
            _ => PAUSE,
        };
        let pause = if self.node.settings.is_simulated() { Duration::ZERO } else { pause };
        self.waves.last = Some((Instant::now(), pause));
        if !is_same {
            (self.waves.same, self.waves.found) = (0, false);
        } else if sum.sent != sum.received {
            self.waves.same += 1;
            if self.waves.same == LOST_AFTER {
                let lost = sum.sent.wrapping_sub(sum.received);
                let what = if lost == 1 {
                    "1 batch of messages between processes was".into()
                } else {
                    format!("{lost} batches of messages between processes were")
                };
                self.fail(format!("{what} lost; the network or the transport is at fault"));
            }
        } else if sum.waiting == 0 {
            self.node.fail(Failure::Quiet);
        } else if !self.waves.found {
            // The next wave tells every process the number of the round.
            self.node.quiescence.reached(self.node.quiescence.rounds() + 1);
            self.waves.found = true;
            self.waves.last = None;
        } else {
            (self.waves.found, self.waves.before, self.waves.last) = (false, None, None);
            self.found_quiet(wire, give, self.node.quiescence.rounds());
        }
    }

    /// Tells the children and the PEs of this process that they may send what waits for quiescence.
    fn found_quiet(&mut self, wire: &mut dyn Wire, give: &mut dyn FnMut(u32, PeOrder), round: u64) {
        // No wave may miss PEs that have not heard of it.
        self.sent += self.tree.children(self.me).count() as u64;
        self.say_to_children(wire, &Word::Quiet { round });
        for pe in self.node.local_pes() {
            give(pe, PeOrder::Quiet { round });
        }
    }

    /// The run is over in this process: tells process 0, once.
    fn over(&mut self, wire: &mut dyn Wire) -> bool {
        if self.ended.is_some() {
            return self.abort_if_late(wire);
        }
        self.ended = Some(Instant::now());
        let ending = Ending::of(&self.node.outcome.lock());
        if self.me == 0 {
            self.stop(wire, ending);
        } else {
            self.say(wire, 0, &Word::Over(ending));
        }
        true
    }

    /// The run is over in all processes.
    fn stop(&mut self, wire: &mut dyn Wire, ending: Ending) {
        self.print(wire);
        self.say_to_children(wire, &Word::Stop(ending.clone()));
        self.node.end_as(ending.into());
        self.ended.get_or_insert_with(Instant::now);
        self.phase = Phase::Stopping;
    }

    /// Reports what is left of this process and its children, once all are there.
    fn report(&mut self, wire: &mut dyn Wire) -> bool {
        if !self.pes_have_stopped || self.reports.len() < self.tree.children(self.me).count() {
            return self.abort_if_late(wire);
        }
        self.print(wire);
        let sent_to = self.peers.iter().map(|peer| peer.sent).collect();
        let mut left = Gathered::take(&mut self.node.outcome.lock(), &self.desk, sent_to);
        std::mem::take(&mut self.reports).into_iter().for_each(|report| left.add(report));
        if self.me == 0 {
            self.totals = Some(left.give(&mut self.node.outcome.lock()));
        } else {
            self.say(wire, self.tree.parent(self.me), &Word::Gathered(left));
        }
        self.phase = Phase::Finishing;
        if let Some(totals) = &self.totals {
            let word = Word::Finish(totals.clone());
            self.say_to_children(wire, &word);
        }
        true
    }

    /// Ends when all messages to this process have arrived.
    fn finish(&mut self) -> bool {
        let Some(totals) = &self.totals else { return false };
        let received: u64 = self.peers.iter().map(|peer| peer.received).sum();
        let expected = totals.sent_to.get(self.me as usize).copied().unwrap_or_default();
        if received < expected {
            return false;
        }
        totals.counts.give(&mut self.node.outcome.lock());
        self.phase = Phase::Over;
        true
    }

    /// Aborts all processes if the run has failed and some process does not stop.
    fn abort_if_late(&mut self, wire: &mut dyn Wire) -> bool {
        let Some(ended) = self.ended.filter(|_| !self.node.settings.is_simulated()) else { return false };
        let mut outcome = self.node.outcome.lock();
        let grace = match &outcome.failure {
            None => return false,
            Some(Failure::TimeLimit) => LONG_GRACE,
            Some(_) => GRACE,
        };
        // Process 0 knows the failure that counts, so it comes first.
        if ended.elapsed() < if self.me == 0 { grace } else { grace + grace / 2 } {
            return false;
        }
        if let Some(error) = outcome.error(&self.node.settings) {
            process::print_last_error(error.to_string());
            wire.abort(error.exit_code())
        }
        false
    }

    /// Sends what PEs have printed to process 0, which prints it.
    fn print(&mut self, wire: &mut dyn Wire) {
        let lines = self.desk.take_printed();
        if lines.is_empty() {
        } else if self.me == 0 {
            process::print_lines(&lines);
        } else {
            self.say(wire, 0, &Word::Print(lines));
        }
    }
}

/// The sentence about two processes whose programs or setups differ; none if they are the same.
fn difference((me, mine): (u32, &[String]), (child, theirs): (u32, &[String])) -> Option<String> {
    let end = "nothing more".to_owned();
    let both = (0..mine.len().max(theirs.len())).map(|at| (mine.get(at), theirs.get(at)));
    let (mine, theirs) = both.into_iter().find(|(mine, theirs)| mine != theirs)?;
    Some(format!(
        "processes do not run the same program: process {me} has {} and process {child} has {}; start the same \
         program with the same flags in all processes, and make the same arrays in every setup",
        mine.unwrap_or(&end),
        theirs.unwrap_or(&end)
    ))
}
