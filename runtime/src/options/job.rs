//! The processes of a run.

/// The processes that were started together, and which of them this is.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) process: u32,
    /// The name of the computer of each process.
    pub(crate) hosts: Vec<String>,
    /// The number of cores on which the processes of this computer may run, together.
    pub(crate) cores: usize,
}

impl Job {
    /// Whether every busy thread of the processes on this computer has its own core; a process has `threads`.
    pub(crate) fn has_own_cores(&self, threads: usize) -> bool {
        self.neighbours() * threads <= self.cores
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
        Job { process: 0, hosts: vec!["localhost".into()], cores: cores() }
    }
}

/// The number of cores on which this process may run.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
