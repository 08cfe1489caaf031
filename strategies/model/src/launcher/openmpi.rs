//! Rankfiles of Open MPI (`mpirun --map-by rankfile:file=FILE`; before version 5 `--rankfile FILE`): a line `rank
//! 3=cx17 slot=1` per rank.
//!
//! If the machine has no host names, `+n2` is node 2 (from 0) of the allocation. A slot is a core of the complete node,
//! numbered across all sockets. If the PEs are hardware threads, as with hwloc, slots are hardware threads, and
//! `mpirun` needs `--use-hwthread-cpus`. Empty lines and comments after `#` are ignored.

use std::fmt::Write as _;

use super::{Entries, Format, Job, Place, RankFile, Slots, sort_by_rank};
use crate::files::AtLine;

/// The entry of `openmpi` in the list of formats.
pub const FORMAT: Format = Format {
    name: "openmpi",
    form: "",
    help: "A rankfile of Open MPI (mpirun --map-by rankfile:file=FILE). Contains hosts and slots, numbered \
           across the whole node; +n2 is node 2 if the machine has no host names. If PEs are hardware \
           threads, as with hwloc, and cores have several of them, add --use-hwthread-cpus.",
    params: &[],
    item: RankFile { write, read, has_slots: true },
};

fn write(job: &Job) -> Result<String, String> {
    let slots = job.slots;
    let has_hosts = slots.hosts().is_ok();
    let mut text = String::new();
    for (rank, (node, slot)) in job.node_slots().enumerate() {
        let host = if has_hosts { slots.host(node)?.to_string() } else { format!("+n{node}") };
        let _ = writeln!(text, "rank {rank}={host} slot={}", slots.number_of(node, slot));
    }
    Ok(text)
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let (hosts, numbered) = (slots.hosts(), slots.numbered());
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let expected = || (line, format!("expected `rank N=HOST slot=N`, found `{text}`"));
        let after = text.strip_prefix("rank").filter(|rest| rest.starts_with(char::is_whitespace));
        let (rank, rest) = after.and_then(|rest| rest.split_once('=')).ok_or_else(expected)?;
        let rank: u64 = rank.trim().parse().map_err(|_| expected())?;
        let (host, slot) = rest.trim().split_once(char::is_whitespace).ok_or_else(expected)?;
        let (key, slot) = slot.split_once('=').ok_or_else(expected)?;
        let slot = slot.trim();
        if !["slot", "slots"].contains(&key.trim()) {
            return Err(expected());
        }
        let slot: u64 = slot.parse().map_err(|_| match slot.contains([':', '-', ',', '*']) {
            true => (
                line,
                format!(
                    "slot={slot} is not a single core; give the core, numbered across the sockets of the host"
                ),
            ),
            false => expected(),
        })?;
        let node = slots.find(&hosts, host).map_err(|reason| (line, reason))?;
        let slot = *numbered
            .get(&(node, slot))
            .ok_or_else(|| (line, format!("rank {rank}: {}", slots.no_slot(node, slot))))?;
        entries.push((rank, Place::Slot(node, slot), line));
    }
    sort_by_rank(entries)
}
