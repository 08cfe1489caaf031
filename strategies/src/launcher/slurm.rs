//! Slurm's hostfile (`SLURM_HOSTFILE=FILE srun --distribution=arbitrary`): the host of every rank, one per line.
//!
//! Hosts may also stand between commas, as hostlists (`n[1-3]`), and with a number of ranks (`n1*3`). Empty
//! lines and lines that begin with `#` do not count.

use super::{Fault, Format, Job, MAX_RANKS, Place, Said, Slots};
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
            let (host, ranks) = host.split_once('*').unwrap_or((&host, "1"));
            let node = hosts.get(host).ok_or_else(|| {
                (line, format!("the machine has no host {host}; is it another machine's file?"))
            })?;
            let ranks: usize = ranks.parse().ok().filter(|&ranks| ranks > 0).ok_or_else(|| {
                (line, format!("expected a number of ranks from 1 on after the `*`, found `{ranks}`"))
            })?;
            if ranks as u64 > MAX_RANKS - said.len() as u64 {
                return Err((line, format!("there are more than {MAX_RANKS} ranks")));
            }
            said.extend(std::iter::repeat_n((Place::Node(*node), line), ranks));
        }
    }
    Ok(said)
}
