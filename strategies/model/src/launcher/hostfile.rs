//! A hostfile of MPI: the host of every rank, one per line (Open MPI: `mpirun --hostfile FILE --map-by seq`).
//!
//! Also accepted are numbers of consecutive ranks of a host: `n1 slots=4`, `n1:4`. Empty lines and comments after `#` are
//! ignored.

use super::{Entries, Format, Job, Place, RankFile, Slots};
use crate::files::AtLine;

/// The entry of `hostfile` in the list of formats.
pub const FORMAT: Format = Format {
    name: "hostfile",
    form: "",
    help: "A hostfile of MPI: the host of every rank, one per line (Open MPI: mpirun --hostfile FILE --map-by seq). \
           Contains hosts, but no slots; the machine must have host names.",
    params: &[],
    item: RankFile { write, read, has_slots: false },
};

fn write(job: &Job) -> Result<String, String> {
    job.slots.hosts()?;
    job.nodes().map(|node| Ok(format!("{}\n", job.slots.host(node)?))).collect()
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let hosts = slots.hosts();
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let (host, ranks) = match text.split_once(char::is_whitespace) {
            Some((host, slots)) => (host, slots.trim().strip_prefix("slots=")),
            None => text.split_once(':').map_or((text, Some("1")), |(host, ranks)| (host, Some(ranks))),
        };
        let ranks = ranks.and_then(|ranks| ranks.parse::<u64>().ok()).filter(|&ranks| ranks > 0);
        let ranks = ranks.ok_or_else(|| {
            (
                line,
                format!(
                    "expected a host, optionally with ranks as in `n1 slots=4` or `n1:4`, found `{text}`"
                ),
            )
        })?;
        let node = slots.find(&hosts, host).map_err(|reason| (line, reason))?;
        if ranks > slots.max_ranks() - entries.len() as u64 {
            return Err((line, format!("there are more than {} ranks", slots.max_ranks())));
        }
        entries.extend((0..ranks).map(|_| (Place::Node(node), line)));
    }
    Ok(entries)
}
