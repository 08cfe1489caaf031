//! `MPICH_RANK_ORDER` of Cray MPICH (`MPICH_RANK_REORDER_METHOD=3`): the ranks in the order of the slots.
//!
//! The launcher fills the nodes one after the other; the first rank of the file runs in the first slot of the first
//! node, and so on. Ranks and ranges of ranks stand between commas and ends of lines; `#` begins a comment. A file
//! written here has a line for each node and, where nodes are not full, a comment that says how many ranks each
//! has, which the launcher is to be told as well (`srun --ntasks-per-node`, `aprun -N`).

use std::fmt::Write as _;

use super::{Fault, Format, Job, MAX_RANKS, Place, Said, Slots, each_once};

/// `mpich` for the table of formats.
pub const FORMAT: Format = Format {
    name: "mpich",
    help: "MPICH_RANK_ORDER of Cray MPICH: the ranks in the order of the slots, nodes one after the other; use it with \
           MPICH_RANK_REORDER_METHOD=3. Says nodes; all but the last that is used must have the same number of ranks.",
    write,
    read,
    has_slots: false,
};

/// What our comment says before the number.
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
            "{} has {} ranks and {} has {per_node}, and this launcher fills nodes one after the other; map on as \
             many PEs as there are ranks, or write another format, such as openmpi or slurm",
            slots.name(node),
            odd.len(),
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

fn read(text: &str, slots: &Slots) -> Result<Said, Fault> {
    let (mut order, mut per_node): (Vec<(u64, usize)>, Option<u64>) = (Vec::new(), None);
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(number) = text.trim().strip_prefix(PER_NODE) {
            let number = number.trim().parse().ok().filter(|&number| number > 0);
            per_node =
                Some(number.ok_or((line, "expected a number of ranks per node from 1 on".to_string()))?);
        }
        let said = text.split('#').next().unwrap_or_default();
        for word in said.split(|letter: char| letter == ',' || letter.is_whitespace()) {
            if word.is_empty() {
                continue;
            }
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let number = |word: &str| word.parse::<u64>().ok();
            let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
            let (first, last) = range.ok_or_else(|| {
                (line, format!("expected ranks and ranges such as 0,4,8-11, found `{word}`"))
            })?;
            if last - first >= MAX_RANKS - order.len() as u64 {
                return Err((line, format!("there are more than {MAX_RANKS} ranks")));
            }
            order.extend((first..=last).map(|rank| (rank, line)));
        }
    }
    let (mut said, mut node, mut taken) = (Vec::with_capacity(order.len()), 0, 0);
    for (rank, line) in order {
        while node < slots.nodes() && taken >= per_node.unwrap_or(slots.slots(node)) {
            (node, taken) = (node + 1, 0);
        }
        if node == slots.nodes() {
            let ranks = said.len();
            return Err((line, format!("the machine has slots for {ranks} ranks, and there are more")));
        }
        said.push((rank, Place::Slot(node, taken), line));
        taken += 1;
    }
    each_once(said)
}
