//! Slurm's hostfile (`SLURM_HOSTFILE=FILE srun --distribution=arbitrary`): the host of every rank, one per line.
//!
//! Hosts may also stand between commas, and as hostlists (`n[1-3]`). Empty lines and lines that begin with `#` do
//! not count.

use super::{Fault, Format, Job, Place, Said, Slots};
use crate::hostlist;

/// `slurm` for the table of formats.
pub const FORMAT: Format = Format {
    name: "slurm",
    help: "A hostfile for SLURM_HOSTFILE and srun --distribution=arbitrary: the host of every rank, one per line. Says \
           hosts, which the machine must name.",
    write,
    read,
    has_slots: false,
};

fn write(job: &Job) -> Result<String, String> {
    job.slots.hosts()?;
    job.nodes().map(|node| Ok(format!("{}\n", job.slots.host(node)?))).collect()
}

fn read(text: &str, slots: &Slots) -> Result<Said, Fault> {
    let hosts = slots.hosts().map_err(|reason| (1, reason))?;
    let mut said = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        for host in hostlist::expand(text).map_err(|reason| (line, reason))? {
            let node = hosts.get(host.as_str()).ok_or_else(|| {
                (line, format!("the machine has no host {host}; is it another machine's file?"))
            })?;
            said.push((Place::Node(*node), line));
        }
    }
    Ok(said)
}
