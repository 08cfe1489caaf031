//! The rank order of a job that torchrun starts: `RANK NODE_RANK LOCAL_RANK HOST`, a line per rank.
//!
//! torchrun numbers processes node by node: process LOCAL_RANK of node NODE_RANK (`--node-rank`) uses GPU LOCAL_RANK. The
//! file gives this process another RANK, which it sets before `torch.distributed.init_process_group` (the book has the
//! lines of Python). Nodes are numbered in the order of the machine, and HOST is the host on which torchrun must run with
//! this `--node-rank`; machines without host names have no such column. Empty lines and lines that begin with `#` are
//! ignored.

use std::fmt::Write as _;

use super::{Entries, Format, Job, Place, RankFile, Slots, sort_by_rank};
use crate::files::AtLine;

/// The entry of `torchrun` in the list of formats.
pub const FORMAT: Format = Format {
    name: "torchrun",
    form: "",
    help: "The rank order for torchrun: lines RANK NODE_RANK LOCAL_RANK HOST. A process that torchrun starts as \
           LOCAL_RANK of NODE_RANK sets its RANK before it joins the process group. Contains nodes and slots.",
    params: &[],
    item: RankFile { write, read, has_slots: true },
};

fn write(job: &Job) -> Result<String, String> {
    let slots = job.slots;
    let mut taken = vec![Vec::new(); slots.nodes()];
    job.node_slots().for_each(|(node, slot)| taken[node].push(slot));
    let used = taken.iter().rposition(|taken| !taken.is_empty()).map_or(0, |last| last + 1);
    for (node, taken) in taken[..used].iter_mut().enumerate() {
        taken.sort_unstable();
        if let Some(free) =
            (0..).zip(&*taken).find_map(|(expected, &slot)| (slot != expected).then_some(expected))
        {
            return Err(format!(
                "{} has a rank in slot {}, but none in slot {free}, and torchrun fills the slots of a node in order; map to \
                 as many PEs as ranks, or use another format such as json",
                slots.name(node),
                taken[free as usize],
            ));
        }
        if taken.is_empty() {
            return Err(format!(
                "{} has no rank, and torchrun numbers nodes without gaps; map to as many PEs as ranks",
                slots.name(node)
            ));
        }
    }
    let has_hosts = slots.hosts().is_ok();
    let mut text = format!("# rank node_rank local_rank{}\n", if has_hosts { " host" } else { "" });
    for (rank, (node, slot)) in job.node_slots().enumerate() {
        let host = if has_hosts { format!(" {}", slots.host(node)?) } else { String::new() };
        let _ = writeln!(text, "{rank} {node} {slot}{host}");
    }
    Ok(text)
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let expected =
            || (line, format!("expected RANK NODE_RANK LOCAL_RANK HOST, as in `3 0 1 n1`, found `{text}`"));
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let (numbers, host) = match *words {
            [rank, node, slot] => ([rank, node, slot], None),
            [rank, node, slot, host] => ([rank, node, slot], Some(host)),
            _ => return Err(expected()),
        };
        let numbers = numbers.map(|word| word.parse::<u64>().ok());
        let [Some(rank), Some(node), Some(slot)] = numbers else { return Err(expected()) };
        let node = usize::try_from(node).ok().filter(|&node| node < slots.nodes()).ok_or_else(|| {
            (line, format!("there is no node {node}; nodes are 0 to {}", slots.nodes() - 1))
        })?;
        if let (Some(written), Ok(known)) = (host, slots.host(node))
            && written != known
        {
            return Err((
                line,
                format!(
                    "node {node} is host {known} of the machine, but the file says {written}; write the file anew"
                ),
            ));
        }
        entries.push((rank, Place::Slot(node, slot), line));
    }
    sort_by_rank(entries)
}
