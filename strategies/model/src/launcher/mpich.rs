//! `MPICH_RANK_ORDER` of Cray MPICH (`MPICH_RANK_REORDER_METHOD=3`): the ranks in the order of the slots.
//!
//! The launcher fills one node after the other; the first rank of the file runs in the first slot of the first node,
//! and so on. Ranks and ranges of ranks are separated by commas and line ends; `#` begins a comment. Files written here
//! have a line per node. If nodes are not full, a comment gives the number of ranks per node, which the launcher also
//! needs (`srun --ntasks-per-node`, `aprun -N`).

use std::fmt::Write as _;

use super::{Entries, Format, Job, Place, RankFile, Slots, sort_by_rank};
use crate::files::AtLine;
use crate::table::count;

/// The entry of `mpich` in the list of formats.
pub const FORMAT: Format = Format {
    name: "mpich",
    form: "",
    help: "MPICH_RANK_ORDER of Cray MPICH: the ranks in the order of the slots, one node after the other; use \
           it with MPICH_RANK_REORDER_METHOD=3. Contains nodes, but no slots; all used nodes except the last \
           need the same number of ranks.",
    params: &[],
    item: RankFile { write, read, has_slots: false },
};

/// The comment before the number of ranks per node.
const PER_NODE: &str = "# ranks per node: ";

fn write(job: &Job) -> Result<String, String> {
    let slots = job.slots;
    let mut ranks: Vec<Vec<usize>> = vec![Vec::new(); slots.nodes()];
    let mut by_slot: Vec<(usize, u64, usize)> =
        job.node_slots().enumerate().map(|(rank, (node, slot))| (node, slot, rank)).collect();
    by_slot.sort_unstable();
    by_slot.into_iter().for_each(|(node, _, rank)| ranks[node].push(rank));
    let used = ranks.iter().rposition(|ranks| !ranks.is_empty()).map_or(0, |last| last + 1);
    let per_node = ranks[0].len();
    let is_even = |(node, ranks): (usize, &Vec<usize>)| {
        ranks.len() == per_node || node + 1 == used && ranks.len() < per_node
    };
    if let Some((node, odd)) = ranks[..used].iter().enumerate().find(|&(node, ranks)| !is_even((node, ranks)))
    {
        return Err(format!(
            "{} has {}, but {} has {per_node}, and this launcher fills one node after the other; map to as \
             many PEs as ranks, or use another format such as openmpi or slurm",
            slots.name(node),
            count(odd.len() as u64, "rank"),
            slots.name(0)
        ));
    }
    let mut text = String::new();
    let is_full = (0..used.saturating_sub(1)).all(|node| per_node as u64 == slots.slots(node));
    if !is_full {
        let _ = writeln!(text, "{PER_NODE}{per_node}");
    }
    for ranks in &ranks[..used] {
        let words: Vec<String> = ranks.iter().map(usize::to_string).collect();
        let _ = writeln!(text, "{}", words.join(","));
    }
    Ok(text)
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let (mut order, mut per_node): (Vec<(u64, usize)>, Option<u64>) = (Vec::new(), None);
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(number) = text.trim().strip_prefix(PER_NODE) {
            let number = number.trim().parse().ok().filter(|&number| number > 0);
            per_node =
                Some(number.ok_or((line, "expected a number of ranks per node of at least 1".to_string()))?);
        }
        let content = text.split('#').next().unwrap_or_default();
        for word in content.split(|letter: char| letter == ',' || letter.is_whitespace()) {
            if word.is_empty() {
                continue;
            }
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let number = |word: &str| word.parse::<u64>().ok();
            let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
            let (first, last) = range.ok_or_else(|| {
                (line, format!("expected ranks and ranges such as 0,4,8-11, found `{word}`"))
            })?;
            if last - first >= slots.max_ranks() - order.len() as u64 {
                return Err((line, format!("there are more than {} ranks", slots.max_ranks())));
            }
            order.extend((first..=last).map(|rank| (rank, line)));
        }
    }
    let (mut entries, mut node, mut taken) = (Vec::with_capacity(order.len()), 0, 0);
    for (rank, line) in order {
        while node < slots.nodes() && taken >= per_node.unwrap_or(slots.slots(node)) {
            (node, taken) = (node + 1, 0);
        }
        if node == slots.nodes() {
            let ranks = count(entries.len() as u64, "rank");
            return Err((line, format!("the machine has slots for only {ranks}, but there are more")));
        }
        entries.push((rank, Place::Slot(node, taken), line));
        taken += 1;
    }
    sort_by_rank(entries)
}
