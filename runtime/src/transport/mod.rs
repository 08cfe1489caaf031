//! Transports run the PEs and carry messages between them. What carries messages depends on threads, channels and networks
//! only here and in the mailboxes ([`inbox`](crate::inbox)).
//!
//! A transport
//! 1. makes a `PeCx` for each of its PEs, with the carrier of its messages, and calls
//!    [`build`](crate::scheduler::build) to run the setup; all PEs must make the same arrays;
//! 2. calls `begin` on each PE, which starts `main` on PE 0;
//! 3. schedules the PEs in turns, or gives each a thread. A PE runs its own messages and orders
//!    ([`run_queued`](crate::scheduler::run_queued)) and those of other PEs (`Manager::mail` or `Manager::packet` for
//!    arrays, [`execute`](crate::scheduler::execute) for the run). An idle PE sends what it has collected
//!    ([`flush`](crate::scheduler::flush)), a PE that is never idle does so from time to time, and a PE that holds
//!    something to forward (`Collectives::forwards`) as soon as no packet waits for it;
//! 4. asks [`Quiescence`](crate::quiescence::Quiescence) for the next round when no message is in flight. If
//!    there is none the run fails, else every PE sends the messages that wait for quiescence (`PeCx::found_quiet`);
//! 5. stops when `Node::stopped` is true, and calls `finish` on each PE.
//!
//! A transport whose PEs share no memory carries [`Packet`](crate::pe::Packet)s, and implements
//! [`PacketCarrier`](crate::pe::PacketCarrier). A carrier between processes implements [`Link`] and [`processes::Wire`];
//! [`processes`] does all of the above for it.

mod exporter;
mod idle;
mod machine;
#[cfg(feature = "mpi")]
mod mpi;
mod processes;
mod refusal;
mod replayed;
mod simulated;
mod threads;
mod watcher;
mod worker;

#[cfg(feature = "mpi")]
pub(crate) use mpi::Mpi;
pub(crate) use processes::Link;
pub(crate) use refusal::refuse;

use crate::interleaving::Interleaving;
use crate::node::{Failure, Node, Outcome};
use crate::options::{Config, Settings, Transport};
use crate::pe::PeCx;
use crate::process;
use crate::recorded;
use crate::scheduler::Built;
use exporter::Exporter;
use std::sync::Arc;
use std::time::Instant;
use watcher::Watcher;

/// Connects this process to the other processes of the run, if the transport has several.
///
/// # Errors
/// A sentence, if the transport is not there.
pub(crate) fn connect(config: &Config) -> Result<Option<Box<dyn Link>>, String> {
    match config.transport {
        Transport::Threads | Transport::Simulated => Ok(None),
        #[cfg(feature = "mpi")]
        Transport::Mpi => {
            let link = mpi::connect()?;
            let together = process::launched_together();
            if config.program && link.job().hosts.len() == 1 && together > 1 {
                return Err(format!(
                    "--transport mpi: the launcher has started {together} processes, and MPI connects none of them; start \
                     the program with the mpirun of the MPI library that it was built with"
                ));
            }
            Ok(Some(Box::new(link)))
        }
        #[cfg(not(feature = "mpi"))]
        Transport::Mpi => {
            Err("--transport mpi: this program was built without MPI; enable the feature `mpi` of the crate \
                               `equipoise` and build it again"
                .into())
        }
    }
}

/// Lets a signal end the run of a program early, if a file is written at its end; until what is returned is dropped.
fn stop_on_signals(node: &Arc<Node>) -> Option<Arc<process::Stop>> {
    let settings = &node.settings;
    let stops = settings.program && settings.writes_at_end();
    let node = Arc::downgrade(node);
    let end =
        move |signal| node.upgrade().into_iter().for_each(|node| node.fail(Failure::Interrupted { signal }));
    stops.then(|| process::stops_on_signals(end))
}

/// Runs the PEs of this process until the run is over; `link` connects the process to others, if there are others. The
/// watcher is there while they run. While what is returned with the outcome exists, a signal does not end the process.
pub(crate) fn run(
    settings: &Arc<Settings>,
    setup: &(dyn Fn(PeCx) -> Built + Sync),
    link: Option<&dyn Link>,
) -> (Outcome, Option<Arc<process::Stop>>) {
    if link.is_none() && settings.is_distributed {
        return (processes::simulated::run(settings, setup), None);
    }
    let start = Instant::now();
    let process = link.map_or(0, |link| link.job().process);
    let node = Arc::new(Node::new(Arc::clone(settings), process));
    let stop = stop_on_signals(&node);
    {
        let _watcher = Watcher::start(&node);
        let _exporter = Exporter::start(&node);
        match (&settings.interleaving, link) {
            (_, Some(link)) => processes::run(&node, setup, link),
            (Some(Interleaving::Replay(replay)), _) => replayed::run(&node, setup, replay),
            _ if settings.is_simulated() => simulated::run(&node, setup),
            _ => threads::run(&node, setup),
        }
    }
    stop.iter().for_each(|stop| stop.ended());
    node.finish_checkpoints();
    let mut outcome = std::mem::take(&mut *node.outcome.lock());
    outcome.seconds = start.elapsed().as_secs_f64();
    recorded::complete(&node, &mut outcome);
    (outcome, stop)
}
