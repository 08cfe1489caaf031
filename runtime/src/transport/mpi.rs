//! The connection of processes by MPI, through the crate `mpi`.
//!
//! One thread calls MPI. Whatever arrives is received with a matched probe, as its length is not known before.
//!
//! # Sends without `unsafe`
//! A request of the crate `mpi` borrows its buffer for the lifetime of a scope. Therefore the time is divided into *epochs*:
//! around each is a [`scope`](request::scope), and outside of it are [`SLOTS`] buffers. A message is swapped with the content of a
//! slot, which costs no copy. When all slots are in use, or many bytes were sent, further messages wait until all sends of the
//! epoch have completed (messages are received meanwhile). An epoch ends as soon as nothing is under way.

use super::processes::{Link, Wire};
use crate::desk::{Desk, KEPT_BYTES};
use crate::options::Job;
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::environment::{self, Universe};
use mpi::point_to_point::Status;
use mpi::request::{self, LocalScope, Request};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Source};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

/// The most messages of an epoch.
const SLOTS: usize = 1024;

/// An epoch that has sent more bytes takes no further message, so that the next epoch begins soon, with buffers that are still
/// in the cache. Exception: if no send completes, a receiver may be in a long entry method, and messages to other processes
/// must not wait for it. Epochs need a limit because, where processes answer each other without a pause, a send is always under
/// way, and an epoch does not end before it is full.
const EPOCH_BYTES: usize = if cfg!(test) { 20 * PART_BYTES } else { 4 << 20 };

/// After this number of looks without a completed send, only the number of slots limits an epoch.
const STALLED: u32 = 64;

/// A longer message is sent in parts, because MPI counts bytes with a C `int`. Smaller in tests.
const PART_BYTES: usize = if cfg!(test) { 1000 } else { 1 << 30 };
/// How long the processes of a failed job wait for their end. One of them, mostly process 0, writes its files, prints the error and then
/// aborts all; if it dies before, the launcher ends them.
const END: Duration = Duration::from_secs(600);

/// How long a launcher has to read the last sentence before an abort.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The tag of a message, or of its last part.
const LAST: i32 = 0;
/// The tag of the other parts.
const PART: i32 = 1;

thread_local! {
    /// MPI, if this thread has initialised it. MPI is finalised when the thread ends, so that a program can run chares
    /// several times.
    static UNIVERSE: RefCell<Option<Universe>> = const { RefCell::new(None) };
}

/// This process among those that MPI has started together. Initialises MPI if the program has not.
///
/// # Errors
/// If MPI has ended.
pub(super) fn connect() -> Result<Mpi, String> {
    if environment::is_finalized() {
        return Err("MPI has ended, and can be initialised only once; run all chares before".into());
    }
    UNIVERSE.with_borrow_mut(|universe| {
        if universe.is_none() && !environment::is_initialized() {
            *universe = environment::initialize_with_threading(Threading::Funneled).map(|(it, _)| it);
        }
    });
    Ok(Mpi::new(&SimpleCommunicator::world()))
}

/// The connection of this process.
pub(crate) struct Mpi {
    world: SimpleCommunicator,
    job: Job,
}

impl Mpi {
    /// The processes of a communicator, which all call this. Their messages are apart from those of the program.
    pub(crate) fn new(communicator: &impl Communicator) -> Self {
        let world = communicator.duplicate();
        let name = environment::processor_name().unwrap_or_default().into_bytes();
        let host = |name: &Vec<u8>| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        let hosts: Vec<String> = gathered(&world, name).iter().map(host).collect();
        let job = with_cores(&world, hosts);
        Mpi { world, job }
    }
}

/// The bytes of every process, all of the same length: zeros follow those of the shorter ones.
fn gathered(world: &SimpleCommunicator, mut mine: Vec<u8>) -> Vec<Vec<u8>> {
    let (length, mut longest) = (mine.len() as u32, 0u32);
    world.all_reduce_into(&length, &mut longest, SystemOperation::max());
    // A chunk has at least one byte.
    let longest = longest.max(1) as usize;
    mine.resize(longest, 0);
    let mut all = vec![0; longest * world.size() as usize];
    world.all_gather_into(&mine[..], &mut all[..]);
    all.chunks(longest).map(<[u8]>::to_vec).collect()
}

/// The processes of a communicator, which run on these computers, with the cores that they may use. Launchers often bind each
/// process to cores of its own.
fn with_cores(world: &SimpleCommunicator, hosts: Vec<String>) -> Job {
    let one = Job::default();
    let mut mine = Vec::new();
    for &core in &one.own_cores {
        mine.resize(mine.len().max(core + 1), 0u8);
        mine[core] = 1;
    }
    let me = world.rank() as usize;
    let all = gathered(world, mine);
    let is_here = |&process: &usize| hosts[process] == hosts[me];
    let may_run = |&core: &usize| (0..all.len()).filter(is_here).any(|process| all[process][core] == 1);
    let cores = if one.cores < one.own_cores.len() {
        // The processor time of all processes is limited.
        one.cores
    } else {
        (0..all[0].len()).filter(may_run).count().max(1)
    };
    let before = (0..me).filter(is_here).filter(|&process| all[process] == all[me]).count();
    Job { process: me as u32, hosts, cores, before, ..one }
}

impl Link for Mpi {
    fn job(&self) -> &Job {
        &self.job
    }

    fn drive(&self, turn: &mut dyn FnMut(&mut dyn Wire) -> ControlFlow<()>) {
        let mut slots = vec![Vec::new(); SLOTS];
        let mut parts = vec![Vec::new(); self.job.hosts.len()];
        let mut waiting = VecDeque::new();
        let (mut is_over, mut used) = (false, 0);
        while !is_over {
            let used_now = request::scope(|scope| {
                let (free, sending) = (slots.iter_mut(), VecDeque::new());
                let mut epoch = Epoch {
                    world: &self.world,
                    scope,
                    free,
                    sent_bytes: 0,
                    stalled: 0,
                    sending,
                    waiting: &mut waiting,
                    unneeded: Vec::new(),
                    parts: &mut parts,
                };
                epoch.send_waiting();
                while !is_over && !epoch.may_end() {
                    is_over = turn(&mut epoch).is_break();
                }
                // Messages that still wait when the run is over begin another epoch.
                is_over &= epoch.waiting.is_empty();
                while !epoch.sending.is_empty() {
                    epoch.complete();
                    // The receiver may need this core.
                    std::thread::yield_now();
                }
                SLOTS - epoch.free.len()
            });
            // The slots hold what was sent, which may have been large.
            used = used_now.max(used);
            let mut kept_bytes = 0;
            for slot in &mut slots[..used] {
                if kept_bytes + slot.capacity() > KEPT_BYTES {
                    *slot = Vec::new();
                }
                kept_bytes += slot.capacity();
            }
        }
    }

    fn end(self: Box<Self>, exit_code: i32, aborts: bool) {
        // A run that has saved itself ends in all processes, and MPI like after a run that has succeeded.
        if exit_code == 0 {
            drop(self);
            return drop(UNIVERSE.take());
        }
        if aborts {
            abort(exit_code);
        }
        // The launcher ends this process. If that takes longer, the process ends without MPI: to free the communicator or to
        // finalise MPI would wait for the process that has aborted.
        std::thread::sleep(END);
        std::mem::forget(self);
        forget_universe();
    }

    fn first_with(&self, is_true: bool) -> Option<u32> {
        let (none, mut first) = (self.world.size(), self.world.size());
        let mine = if is_true { self.world.rank() } else { none };
        self.world.all_reduce_into(&mine, &mut first, SystemOperation::min());
        (first < none).then_some(first as u32)
    }
}

/// Ends all processes that were started together. With a duplicate of the world communicator, MPICH ends only the process
/// that calls.
fn abort(exit_code: i32) -> ! {
    // At an abort, the launcher of MPICH loses output that it has not yet read.
    std::thread::sleep(LAST_WORDS);
    // MPICH ends this process with `exit`, which would finalise MPI while it aborts.
    forget_universe();
    SimpleCommunicator::world().abort(exit_code)
}

/// Keeps the end of this thread from finalising MPI.
fn forget_universe() {
    UNIVERSE.with(|universe| std::mem::forget(universe.take()));
}

/// An epoch.
struct Epoch<'a, 's, 'w> {
    world: &'w SimpleCommunicator,
    scope: &'s LocalScope<'a>,
    free: std::slice::IterMut<'a, Vec<u8>>,
    sent_bytes: usize,
    /// How often in a row no send had completed.
    stalled: u32,
    /// In the order of the sends.
    sending: VecDeque<Request<'a, [u8], &'s LocalScope<'a>>>,
    /// Messages without a slot, with their receivers.
    waiting: &'w mut VecDeque<(u32, Vec<u8>)>,
    /// The old content of slots that messages took which had waited.
    unneeded: Vec<Vec<u8>>,
    /// The parts of unfinished messages, by sender.
    parts: &'w mut [Vec<u8>],
}

impl Epoch<'_, '_, '_> {
    /// Sends the messages that have waited since the last epoch.
    fn send_waiting(&mut self) {
        while let Some((to, message)) = self.waiting.pop_front() {
            match self.start(to, message) {
                Ok(old) => self.unneeded.push(old),
                Err(message) => return self.waiting.push_front((to, message)),
            }
        }
    }

    /// Whether the epoch takes no further message.
    fn is_full(&self) -> bool {
        self.free.len() == 0 || self.sent_bytes > EPOCH_BYTES && self.stalled < STALLED
    }

    /// Starts a send, and returns the old content of the slot; or returns the message, if the epoch is full.
    fn start(&mut self, to: u32, mut message: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
        let Some(slot) = (if self.is_full() { None } else { self.free.next() }) else { return Err(message) };
        self.sent_bytes += message.len();
        std::mem::swap(slot, &mut message);
        let receiver = self.world.process_at_rank(to as i32);
        let mut parts = slot.chunks(PART_BYTES).peekable();
        while let Some(part) = parts.next() {
            let tag = if parts.peek().is_none() { LAST } else { PART };
            self.sending.push_back(receiver.immediate_send_with_tag(self.scope, part, tag));
        }
        Ok(message)
    }

    /// Whether the next epoch may begin: nothing is under way, and slots are in use. As the next epoch begins with the same
    /// slots, their memory stays in the cache.
    fn may_end(&self) -> bool {
        self.sending.is_empty() && (!self.waiting.is_empty() || self.free.len() < SLOTS)
    }

    /// Forgets the oldest sends that have completed.
    fn complete(&mut self) {
        while let Some(request) = self.sending.pop_front() {
            if let Err(request) = request.test() {
                self.stalled = self.stalled.saturating_add(1);
                return self.sending.push_front(request);
            }
            self.stalled = 0;
        }
    }
}

impl Wire for Epoch<'_, '_, '_> {
    fn send(&mut self, to: u32, message: Vec<u8>) -> Vec<u8> {
        // Not before those that wait already.
        let started = if self.waiting.is_empty() { self.start(to, message) } else { Err(message) };
        started.unwrap_or_else(|message| {
            self.waiting.push_back((to, message));
            Vec::new()
        })
    }

    fn receive(&mut self, desk: &Desk) -> Option<(u32, Vec<u8>)> {
        self.unneeded.drain(..).for_each(|buffer| desk.return_buffer(buffer));
        if self.is_full() {
            // Messages that arrive without a pause must not keep the next epoch waiting.
            self.complete();
        }
        if self.stalled >= STALLED {
            self.send_waiting();
        }
        loop {
            let Some((arriving, status)) = self.world.any_process().immediate_matched_probe() else {
                // Not in the way of a message that has arrived.
                self.complete();
                return None;
            };
            let (from, length) = (status.source_rank(), length(&status));
            let parts = &mut self.parts[from as usize];
            if status.tag() == LAST && parts.is_empty() {
                let mut message = desk.buffer_of(length);
                arriving.matched_receive_into(&mut message[..]);
                return Some((from as u32, message));
            }
            let start = parts.len();
            parts.resize(start + length, 0);
            arriving.matched_receive_into(&mut parts[start..]);
            if status.tag() == LAST {
                return Some((from as u32, std::mem::take(parts)));
            }
        }
    }

    fn abort(&mut self, exit_code: i32) -> ! {
        abort(exit_code)
    }
}

/// The number of bytes of a message.
fn length(status: &Status) -> usize {
    status.count(u8::equivalent_datatype()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages from a process to itself: of all lengths around that of a part, and more than there are slots.
    #[test]
    fn messages_of_any_length_and_number_arrive_whole_and_in_order() {
        let link = connect().expect("MPI is there");
        assert_eq!(link.job().hosts.len(), 1, "run this test without mpirun");
        let lengths = [1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, 2 * PART_BYTES + 7];
        let messages: Vec<Vec<u8>> =
            (0..3 * SLOTS).map(|at| vec![at as u8; lengths[at % lengths.len()]]).collect();
        let desk = Desk::new(1);
        let (mut unsent, mut received) = (messages.iter(), Vec::new());
        link.drive(&mut |wire| {
            // More than one epoch holds, at the beginning; then some per turn.
            let burst = if received.is_empty() { 2 * SLOTS } else { 3 };
            for message in unsent.by_ref().take(burst) {
                let buffer = wire.send(0, message.clone());
                desk.return_buffer(buffer);
            }
            while let Some((from, message)) = wire.receive(&desk) {
                assert_eq!(from, 0);
                received.push(message);
            }
            if received.len() == messages.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(received == messages, "the messages are other ones, or in another order");
    }
}
