//! An ordered list of pods (or of nodes with one pod each): `HOST RANKS`, a line per pod.
//!
//! Pods are in the order of their lowest ranks; the ranks of a pod are separated by commas, in the order of its slots.
//! `cut -d ' ' -f 1` gives the list of hosts alone. A file without ranks is read, too: then consecutive ranks fill the
//! slots of one pod after the other. `+n2` is node 2 if the machine has no host names. Empty lines and lines that begin
//! with `#` are ignored.

use std::fmt::Write as _;

use super::{Entries, Format, Job, Place, RankFile, Slots, sort_by_rank};
use crate::files::AtLine;

/// The entry of `pods` in the list of formats.
pub const FORMAT: Format = Format {
    name: "pods",
    form: "",
    help: "An ordered list of pods, by their lowest ranks: lines HOST RANKS, as in `n3 0,1,2,3`; +n2 is node 2 if the \
           machine has no host names. Ranks of a line are in slots 0, 1, .. of the node; idle slots before them are lost.",
    params: &[],
    item: RankFile { write, read, has_slots: false },
};

fn write(job: &Job) -> Result<String, String> {
    let slots = job.slots;
    let mut pods = vec![Vec::new(); slots.nodes()];
    for (rank, (node, slot)) in job.node_slots().enumerate() {
        pods[node].push((slot, rank));
    }
    let lowest = |pod: &Vec<(u64, usize)>| pod.iter().map(|&(_, rank)| rank).min();
    let mut order: Vec<usize> = (0..pods.len()).filter(|&node| !pods[node].is_empty()).collect();
    order.sort_unstable_by_key(|&node| lowest(&pods[node]));
    let mut text = String::new();
    for node in order {
        pods[node].sort_unstable();
        let ranks: Vec<String> = pods[node].iter().map(|(_, rank)| rank.to_string()).collect();
        let _ = writeln!(text, "{} {}", slots.label(node), ranks.join(","));
    }
    Ok(text)
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let (hosts, mut first_line) = (slots.hosts(), vec![0; slots.nodes()]);
    let (mut entries, mut has_ranks) = (Vec::new(), None);
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (host, ranks) = match text.split_once(char::is_whitespace) {
            Some((host, ranks)) => (host, Some(ranks.trim())),
            None => (text, None),
        };
        if *has_ranks.get_or_insert(ranks.is_some()) != ranks.is_some() {
            return Err((line, "either all lines have ranks, or none; complete the ranks".into()));
        }
        let node = slots.find(&hosts, host).map_err(|reason| (line, reason))?;
        if first_line[node] > 0 {
            return Err((
                line,
                format!("{host} is already in line {}; give each pod one line", first_line[node]),
            ));
        }
        first_line[node] = line;
        let Some(ranks) = ranks else {
            let first = entries.len() as u64;
            entries.extend((first..first + slots.slots(node)).map(|rank| (rank, Place::Node(node), line)));
            continue;
        };
        for (slot, word) in (0..).zip(ranks.split(',')) {
            let rank = word.trim().parse().map_err(|_| {
                (line, format!("expected a host and its ranks, as in `n3 0,1,2,3`, found `{text}`"))
            })?;
            entries.push((rank, Place::Slot(node, slot), line));
        }
    }
    sort_by_rank(entries)
}
