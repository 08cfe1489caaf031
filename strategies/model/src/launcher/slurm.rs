//! Hostfile of Slurm (`SLURM_HOSTFILE=FILE srun --distribution=arbitrary`): the host of every rank, one per line.
//!
//! Also accepted are several hosts separated by commas, hostlists (`n[1-3]`), and numbers of ranks (`n1*3`). Empty
//! lines and lines that begin with `#` are ignored.

use super::{Entries, Format, Job, Place, RankFile, Slots};
use crate::files::AtLine;
use crate::hostlist;

/// The entry of `slurm` in the list of formats.
pub const FORMAT: Format = Format {
    name: "slurm",
    form: "",
    help: "A hostfile for SLURM_HOSTFILE and srun --distribution=arbitrary: the host of every rank, one per \
           line. Contains hosts, but no slots; the machine must have host names.",
    params: &[],
    item: RankFile { write, read, has_slots: false },
};

fn write(job: &Job) -> Result<String, String> {
    job.slots.hosts()?;
    job.nodes().map(|node| Ok(format!("{}\n", job.slots.host(node)?))).collect()
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let hosts = slots.hosts().map_err(|reason| (1, reason))?;
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        for host in hostlist::expand(text).map_err(|reason| (line, reason))? {
            let (host, ranks) = host.split_once('*').unwrap_or((&host, "1"));
            let node = hosts.get(host).ok_or_else(|| {
                (line, format!("the machine has no host {host}; check that the file is for this machine"))
            })?;
            let ranks: usize = ranks.parse().ok().filter(|&ranks| ranks > 0).ok_or_else(|| {
                (line, format!("expected a number of ranks of at least 1 after the `*`, found `{ranks}`"))
            })?;
            if ranks as u64 > slots.max_ranks() - entries.len() as u64 {
                return Err((line, format!("there are more than {} ranks", slots.max_ranks())));
            }
            entries.extend(std::iter::repeat_n((Place::Node(*node), line), ranks));
        }
    }
    Ok(entries)
}
