//! The processes of a run.

/// The processes that were started together, and which of them this is.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) process: u32,
    /// The name of the computer of each process.
    pub(crate) hosts: Vec<String>,
}

impl Job {
    /// The number of processes on the computer of this process.
    pub(crate) fn neighbours(&self) -> usize {
        let here = &self.hosts[self.process as usize];
        self.hosts.iter().filter(|host| *host == here).count()
    }
}

impl Default for Job {
    /// One process.
    fn default() -> Self {
        Job { process: 0, hosts: vec!["localhost".into()] }
    }
}
