//! The number of PEs and processes of a run, and the machine they are on.

use super::job::{Job, cores};
use super::{Config, ConfigError, Transport, flag, wrong};
use crate::inbox::Mail;
use crate::order::PeOrder;
use equipoise_model::memory;
use equipoise_model::table::count;
use equipoise_model::{Topology, topology};
use std::sync::Arc;

/// The most PEs as threads. Every pair of threads has its own mailboxes, so their memory is quadratic.
const MOST_THREADS: usize = 512;
/// The most simulated PEs.
const MOST_PES: usize = 1 << 20;
/// Bytes of memory of a simulated PE. (Measured: 10,000, with an element.)
const BYTES_PER_SIMULATED_PE: u64 = 12_000;

impl Config {
    /// The number of PEs, and of those in each process.
    pub(super) fn pes_and_local_pes(
        &self,
        job: &Job,
        recorded: Option<usize>,
    ) -> Result<(usize, usize), ConfigError> {
        let (pes, local_pes) = if self.transport.has_launcher() {
            self.pes_of_job(job, self.pes_per_process.unwrap_or(1))?
        } else {
            let pes = match (self.pes.or(recorded), self.parsed_topology()?) {
                (Some(pes), _) => pes,
                (None, Some(topology)) => topology.pes(),
                (None, None) => cores(),
            };
            (pes, self.pes_per_process.unwrap_or(pes))
        };
        if self.pes_per_process.is_some() {
            self.check_processes(pes, local_pes)?;
        }
        if !(1..=MOST_PES).contains(&pes) && self.pes_per_process.is_some_and(|local| local > 0) {
            return Err(flag(format!("--pes is {pes}; give a number from 1 to {MOST_PES}")));
        }
        let most = if self.has_mailboxes() { MOST_THREADS } else { MOST_PES };
        if !(1..=most).contains(&local_pes) || pes > MOST_PES {
            let name = if self.pes_per_process.is_some() { "--pes-per-process" } else { "--pes" };
            let more = if self.transport == Transport::Threads {
                ", or more with --transport simulated"
            } else {
                ""
            };
            return Err(flag(format!("{name} is {local_pes}; give a number from 1 to {most}{more}")));
        }
        let (bytes, what) = (self.bytes(pes, local_pes), format!("--pes: a run on {pes} PEs"));
        memory::check(bytes, &what, "use fewer PEs").map_err(flag)?;
        Ok((pes, local_pes))
    }

    /// The number of PEs of a job that a launcher has started, with `local` PEs in each process.
    fn pes_of_job(&self, job: &Job, local: usize) -> Result<(usize, usize), ConfigError> {
        let processes = job.hosts.len();
        let pes = processes.saturating_mul(local);
        match self.pes.filter(|&given| given != pes) {
            None => Ok((pes, local)),
            Some(given) => Err(flag(format!(
                "--pes is {given}, and the job has {} with {} each; leave out --pes, or start another number of \
                 processes",
                count(processes as u64, "process"),
                count(local as u64, "PE"),
            ))),
        }
    }

    /// Checks `--pes-per-process`.
    fn check_processes(&self, pes: usize, local: usize) -> Result<(), ConfigError> {
        let refused = match self.transport {
            Transport::Threads => {
                "--pes-per-process with --transport threads: all threads are PEs of one process; give their number with \
                 --pes, or add --transport mpi"
                    .into()
            }
            Transport::Simulated if self.machine.network.is_some() => {
                "--pes-per-process with --network: the PEs of a simulated machine share no memory; leave out \
                 --pes-per-process"
                    .into()
            }
            Transport::Simulated if pes > 0 && (local == 0 || pes % local != 0) => format!(
                "--pes-per-process is {local}, and {} cannot be divided into processes of that size; give a divisor of \
                 the number of PEs",
                count(pes as u64, "PE")
            ),
            _ => return Ok(()),
        };
        Err(flag(refused))
    }

    /// Whether PEs are in processes that exchange batches of encoded orders.
    pub(super) fn is_distributed(&self) -> bool {
        self.transport.has_launcher() || self.pes_per_process.is_some()
    }

    /// Whether the PEs of a process exchange values through mailboxes.
    fn has_mailboxes(&self) -> bool {
        self.transport == Transport::Threads || self.is_distributed()
    }

    /// The bytes of memory that the PEs of this process need at least, in a program with one array.
    fn bytes(&self, pes: usize, local_pes: usize) -> u64 {
        // The mailboxes of the run, and those of the array, which are as large or larger.
        let mailboxes = |threads| 2 * Mail::<(), PeOrder>::bytes(threads as u32);
        let simulated = BYTES_PER_SIMULATED_PE * pes as u64;
        match self.transport {
            Transport::Threads => mailboxes(pes),
            Transport::Simulated if self.is_distributed() => {
                simulated + (pes / local_pes) as u64 * mailboxes(local_pes + 1)
            }
            Transport::Simulated => simulated,
            _ => mailboxes(local_pes + 1),
        }
    }

    fn parsed_topology(&self) -> Result<Option<Arc<dyn Topology>>, ConfigError> {
        let topology = self.topology.as_deref().map(topology::parse).transpose();
        topology.map_err(|error| wrong("--topology", &error))
    }

    /// The machine that load balancers assume.
    pub(super) fn topology(
        &self,
        pes: usize,
        local_pes: usize,
        job: &Job,
        is_replay: bool,
    ) -> Result<Arc<dyn Topology>, ConfigError> {
        if self.transport.has_launcher() {
            return self.topology_of_job(pes, local_pes, job);
        }
        let topology = match self.parsed_topology()? {
            Some(topology) => topology,
            None if self.transport != Transport::Threads || is_replay => topology::flat(pes),
            None => topology::this_machine(pes),
        };
        if topology.pes() != pes {
            return Err(flag(format!(
                "--topology {} has {} and --pes is {pes}; make them equal",
                topology.spec(),
                count(topology.pes() as u64, "PE")
            )));
        }
        Ok(topology)
    }

    /// The machine on which a launcher has started the processes.
    fn topology_of_job(
        &self,
        pes: usize,
        local_pes: usize,
        job: &Job,
    ) -> Result<Arc<dyn Topology>, ConfigError> {
        let spec = self.topology.as_deref().unwrap_or("job");
        let topology = topology::job(spec, &job.hosts, local_pes);
        let topology = topology.map_err(|error| wrong("--topology", &error))?;
        if topology.pes() != pes {
            return Err(flag(format!(
                "--topology {} has {} and the job has {pes}; write `job`, or a machine with as many PEs",
                topology.spec(),
                count(topology.pes() as u64, "PE"),
            )));
        }
        Ok(topology)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_pes_counts_the_mailboxes_of_every_pair() {
        // A mailbox begins a pair of cache lines.
        assert_eq!(Config::threads(512).bytes(512, 512), 2 * 512 * 512 * 128);
        assert_eq!(Config::simulated(1 << 20, 0).bytes(1 << 20, 1 << 20), 12_000 << 20);
    }
}
