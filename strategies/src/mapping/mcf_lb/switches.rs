//! Swaps of all that is at two switches: where no swap of two tasks helps, one of many at once may.
//!
//! The tasks at a switch exchange much with each other, after a search, so that a link towards it carries more if one of
//! them leaves; if all do, for a place where the rest of the tasks are nearer, it carries less.

use std::collections::BTreeMap;

use super::super::swap_lb::{Board, Dice};
use crate::Topology;
use crate::cost::mcf::McfSwaps;
use crate::cost::mcf_optimal::wiring::Wiring;
use crate::cost::swaps::SwapCost as _;
use crate::random::shuffle;

/// The most links of a machine that is looked at.
const MAX_LINKS: usize = 1 << 16;

/// The most pairs of switches that are tried: of more, those drawn first.
const MAX_PAIRS: usize = 1 << 10;

/// The PEs of `hosts` that hang by one cable each from the same vertex, those of each vertex that has any.
pub(super) fn of(machine: &dyn Topology, hosts: &[u32]) -> Vec<Vec<u32>> {
    if machine.links() > MAX_LINKS {
        return Vec::new();
    }
    let wiring = Wiring::of(machine);
    let mut neighbors = vec![Vec::new(); wiring.vertices];
    for &[from, to] in &wiring.ends {
        neighbors[from].push(to);
    }
    let mut pes_at = BTreeMap::<usize, Vec<u32>>::new();
    for &pe in hosts {
        if let [switch] = neighbors[wiring.vertex_of[pe as usize]][..] {
            pes_at.entry(switch).or_default().push(pe);
        }
    }
    pes_at.into_values().collect()
}

/// Tries, for every two switches in a random order, to let all that is at the smaller one and as many, drawn at random, of
/// what is at the other change places. Whether one swap was better, which is then made, and the last.
pub(super) fn swap(cost: &mut McfSwaps, board: &mut Board, dice: &mut Dice, switches: &[Vec<u32>]) -> bool {
    let mut pairs: Vec<[usize; 2]> = (0..switches.len()).flat_map(|a| (0..a).map(move |b| [a, b])).collect();
    shuffle(dice, &mut pairs);
    let mut then: Option<McfSwaps> = None;
    for [a, b] in pairs.into_iter().take(MAX_PAIRS) {
        let [mut these, mut those] = [a, b].map(|switch| switches[switch].clone());
        // One on one PE was tried before.
        if these.len().min(those.len()) < 2 {
            continue;
        }
        shuffle(dice, &mut these);
        shuffle(dice, &mut those);
        let swaps: Vec<[u32; 2]> = these.into_iter().zip(those).map(|(p, q)| [p, q]).collect();
        let places = board.swapped(&swaps);
        let then = then.get_or_insert_with(|| cost.clone());
        then.restart(&places);
        if then.worth().is_better(cost.worth()) {
            board.swap(&swaps);
            cost.restart(&places);
            return true;
        }
    }
    false
}
