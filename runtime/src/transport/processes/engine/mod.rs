//! The connection of a process to the other processes of its run. It sends the batches of the PEs, gives them those that
//! arrive, as far as flow control permits ([`flow`]), and takes part in what all processes do together: they start, find
//! quiescence ([`waves`]), stop and gather the report ([`ending`]).
//!
//! # Start
//! Every process describes its program and its setup; processes compare the descriptions with those of their children in
//! the tree of processes. When all are the same, process 0 tells all to start. If the run is recorded, processes compare their
//! clocks ([`clocks`]).

mod clocks;
mod ending;
pub(super) mod flow;
pub(super) mod waves;

use super::Wire;
use super::control::{Control, Counts, Ending, Gathered, Totals};
use crate::batches::{self, Kind};
use crate::checkpoint::Saver;
use crate::codec;
use crate::desk::Desk;
use crate::node::{Failure, Node};
use crate::order::PeOrder;
use crate::process;
use crate::tree::Tree;
use clocks::Clocks;
use equipoise_model::table::count;
use flow::{BackPressure, EXECUTED_BYTES};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use waves::Waves;

/// The most messages that are received before PEs run again.
const RECEIVED: u32 = 64;

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
    /// The bytes that have left, and that the desk does not know of.
    left_bytes: u64,
    /// The processes from which more than [`EXECUTED_BYTES`] arrived since the last report to them.
    unreported: Vec<u32>,
    pressure: BackPressure,
    /// The description of the setup, once it is over; the children that are ready, with theirs.
    setup: Option<Vec<String>>,
    ready: Vec<(u32, Vec<String>)>,
    /// Batches that PEs have received, and control messages that count as such.
    received: u64,
    /// Control messages that count as sent batches.
    sent: u64,
    waves: Waves,
    clocks: Clocks,
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
    /// Bytes that it has reported as executed, since this process withholds its reports, and that this process has not
    /// reported to it in return.
    credit_bytes: u64,
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
            unreported: Vec::new(),
            pressure: BackPressure::default(),
            setup: None,
            ready: Vec::new(),
            received: 0,
            sent: 0,
            waves: Waves::default(),
            clocks: Clocks::default(),
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
        if !self.unreported.is_empty() || self.pressure.is_raised() {
            self.report_executed(wire);
        }
        if self.desk.has_printed() && self.phase == Phase::Running {
            self.print(wire);
        }
        worked | self.advance(wire, give)
    }

    /// Reports to process 0 that this process wants a checkpoint. The report counts as a message, so that no quiescence is
    /// found before it arrives, and leaves before the messages of an entry during which a signal came.
    fn report_checkpoint(&mut self, wire: &mut dyn Wire) {
        if self.me == 0 || self.phase != Phase::Running {
            return;
        }
        if let Some(reason) = self.node.saver.as_ref().and_then(Saver::take_reason) {
            self.send_control(wire, 0, &Control::Checkpoint(reason));
        }
    }

    /// Sends what PEs have handed over; returns whether there was anything.
    fn send(&mut self, wire: &mut dyn Wire) -> bool {
        self.report_checkpoint(wire);
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
                let is_listed = peer.received_bytes - peer.reported_bytes >= EXECUTED_BYTES;
                peer.received_bytes += batch.len() as u64;
                if !is_listed && peer.received_bytes - peer.reported_bytes >= EXECUTED_BYTES {
                    self.unreported.push(from);
                }
                // Counted before the PE can execute it and rest.
                self.received += 1;
                give(to, PeOrder::Batch { from_process: from, bytes: batch });
            }
            Some(Kind::Control) => {
                match codec::decode(batches::control_bytes(&batch)) {
                    Ok(message) => self.receive_control(wire, give, from, message),
                    Err(error) => {
                        self.peers[from as usize].received += 1;
                        self.fail(format!("cannot decode a control message of process {from}: {error}"));
                    }
                }
                self.desk.return_received(batch);
            }
            _ => {
                peer.received += 1;
                let length = count(batch.len() as u64, "byte");
                self.fail(format!("process {from} sent {length} that are no batch"));
            }
        }
    }

    fn send_control(&mut self, wire: &mut dyn Wire, to: u32, message: &Control) {
        match batches::control(&self.desk, message) {
            Ok(bytes) => {
                self.sent += u64::from(message.counts_for_quiescence());
                self.peers[to as usize].sent += u64::from(message.counts_for_end());
                self.desk.return_buffer(wire.send(to, bytes));
            }
            Err(error) => self.fail(format!("cannot encode a control message to process {to}: {error}")),
        }
    }

    fn send_control_to_children(&mut self, wire: &mut dyn Wire, message: &Control) {
        for child in self.tree.children(self.me) {
            self.send_control(wire, child, message);
        }
    }

    fn fail(&self, sentence: String) {
        self.node.fail(Failure::Program(sentence));
    }

    fn receive_control(
        &mut self,
        wire: &mut dyn Wire,
        give: &mut dyn FnMut(u32, PeOrder),
        from: u32,
        message: Control,
    ) {
        self.received += u64::from(message.counts_for_quiescence());
        self.peers[from as usize].received += u64::from(message.counts_for_end());
        let is_running = self.phase <= Phase::Running;
        match message {
            // Process 0 has decided how the run ends; no process waits for an answer.
            Control::Over(_) | Control::Count { .. } | Control::Quiet(_) | Control::Checkpoint(_)
                if !is_running => {}
            Control::Ready { setup } => self.ready.push((from, setup)),
            Control::Start => self.start(wire),
            Control::Over(ending) | Control::Stop(ending) => self.stop(wire, ending),
            Control::Count { wave, round } => {
                self.node.quiescence.reached(round);
                self.waves = Waves { wave, asked: true, ..Waves::default() };
                self.send_control_to_children(wire, &Control::Count { wave, round });
            }
            Control::Counted { wave, counts } => {
                if wave == self.waves.wave {
                    self.waves.answers += 1;
                    self.waves.sum.add(counts);
                }
            }
            Control::Quiet(quiet) => self.found_quiet(wire, give, quiet),
            Control::Checkpoint(reason) => {
                if let Some(saver) = &self.node.saver {
                    saver.want(reason);
                }
            }
            Control::Executed { bytes } => {
                let peer = &mut self.peers[from as usize];
                peer.executed_bytes += bytes;
                peer.credit_bytes += bytes;
                self.send_waiting(wire, from);
            }
            Control::Print(lines) => process::print_lines(&lines),
            Control::AsksTime { asked } => self.tell_time(wire, from, asked),
            Control::Time { asked, now } => self.learns_time(wire, asked, now),
            Control::Gathered(left) => self.reports.push(*left),
            Control::Finish(totals) => {
                self.send_control_to_children(wire, &Control::Finish(totals.clone()));
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
            Phase::Finishing => self.finish(wire),
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
            self.send_control(wire, self.tree.parent(self.me), &Control::Ready { setup: mine });
        }
        true
    }

    fn start(&mut self, wire: &mut dyn Wire) {
        self.send_control_to_children(wire, &Control::Start);
        self.phase = Phase::Running;
        self.compare_clocks(wire, false);
    }

    /// Sends what PEs have printed to process 0, which prints it.
    fn print(&mut self, wire: &mut dyn Wire) {
        let lines = self.desk.take_printed();
        if lines.is_empty() {
        } else if self.me == 0 {
            process::print_lines(&lines);
        } else {
            self.send_control(wire, 0, &Control::Print(lines));
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
         program with the same flags and files in all processes, and make the same arrays and shared values in every setup",
        mine.unwrap_or(&end),
        theirs.unwrap_or(&end)
    ))
}
