//! The processes of a run.

/// The processes that were started together, and which of them this is.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) process: u32,
    /// The name of the computer of each process.
    pub(crate) hosts: Vec<String>,
    /// The number of cores on which the processes of this computer may run, together.
    pub(crate) cores: usize,
    /// The cores on which this process may run.
    pub(crate) own_cores: Vec<usize>,
    /// The number of earlier processes on this computer that may run on the same cores.
    pub(crate) before: usize,
}

impl Job {
    /// Whether every busy thread of the processes on this computer has its own core; a process has `threads`.
    pub(crate) fn has_own_cores(&self, threads: usize) -> bool {
        self.neighbours() * threads <= self.cores
    }

    /// The cores of the PEs of this process, of which there are `local_pes`: they share none with other processes. Fewer if there
    /// are too few.
    pub(crate) fn cores_of_pes(&self, local_pes: usize) -> &[usize] {
        let cores = self.own_cores.chunks(local_pes.max(1)).nth(self.before);
        cores.unwrap_or_default()
    }

    /// The number of processes on the computer of this process.
    fn neighbours(&self) -> usize {
        let here = &self.hosts[self.process as usize];
        self.hosts.iter().filter(|host| *host == here).count()
    }
}

impl Default for Job {
    /// One process.
    fn default() -> Self {
        Job { process: 0, hosts: vec!["localhost".into()], cores: cores(), own_cores: own_cores(), before: 0 }
    }
}

/// The number of cores on which this process may run, or of which it may use the time.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The numbers of the cores on which this process may run.
pub(crate) fn own_cores() -> Vec<usize> {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    cores.into_iter().map(|core| core.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_are_bound_to_cores_that_their_process_may_use() {
        let job = |before, own_cores: &[usize]| Job { before, own_cores: own_cores.into(), ..Job::default() };
        // Launchers and containers give a process some cores of the computer.
        assert_eq!(job(0, &[16, 17, 18, 19]).cores_of_pes(2), [16, 17]);
        assert_eq!(job(1, &[16, 17, 18, 19]).cores_of_pes(2), [18, 19]);
        assert_eq!(job(2, &[16, 17, 18, 19]).cores_of_pes(2), [0; 0]);
        assert_eq!(job(1, &[3, 5, 6]).cores_of_pes(2), [6]);
    }
}
