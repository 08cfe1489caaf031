//! Swaps of all tasks at two switches: if no swap of two tasks is an improvement, a swap of many tasks may be.
//!
//! After a search, the tasks at a switch exchange many bytes with each other. If one of these tasks leaves, the link to
//! the switch carries more bytes. If all of these tasks move closer to the other tasks, the link may carry fewer bytes.

use std::collections::BTreeMap;

use equipoise_model::Topology;
use equipoise_model::random::shuffle;
use equipoise_model::search::breadth_first;

use super::search::{Board, Rng};
use crate::cost::mcf::McfSwaps;
use crate::cost::swaps::SwapCost as _;
use crate::cost::wiring::Wiring;

/// The maximum number of links of a machine for which such swaps are tried.
const MAX_LINKS: usize = 1 << 16;

/// The maximum number of pairs of switches that are tried; above it, a random sample.
const MAX_PAIRS: usize = 1 << 10;

/// By switch: the PEs of `hosts` that are connected to it by their only cable; switches without such PEs are left out.
/// Empty if there are several paths between switches: there such swaps take longer than all other swaps and are seldom
/// an improvement.
pub(super) fn of(machine: &dyn Topology, hosts: &[u32]) -> Vec<Vec<u32>> {
    if machine.links() > MAX_LINKS {
        return Vec::new();
    }
    let Ok(wiring) = Wiring::of(machine) else { return Vec::new() };
    let mut neighbors = vec![Vec::new(); wiring.vertices];
    for &[from, to] in &wiring.ends {
        neighbors[from].push(to);
    }
    let (mut trees, mut is_met) = (0, vec![false; wiring.vertices]);
    for start in 0..wiring.vertices {
        if !is_met[start] {
            trees += 1;
            let next = |vertex: usize| neighbors[vertex].iter().map(|&next| (next, ()));
            breadth_first(wiring.vertices, start, next).for_each(|(vertex, _)| is_met[vertex] = true);
        }
    }
    if wiring.ends.len() != 2 * (wiring.vertices - trees) {
        return Vec::new();
    }
    let mut pes_at = BTreeMap::<usize, Vec<u32>>::new();
    for &pe in hosts {
        if let [switch] = neighbors[wiring.vertex_of[pe as usize]][..] {
            pes_at.entry(switch).or_default().push(pe);
        }
    }
    pes_at.into_values().collect()
}

/// Tries, for pairs of switches in a random order, to swap the tasks on all PEs of the smaller switch with those on as
/// many random PEs of the other. Makes the first swap that is an improvement; returns whether there was one.
pub(super) fn swap(cost: &mut McfSwaps, board: &mut Board, rng: &mut Rng, switches: &[Vec<u32>]) -> bool {
    let mut pairs: Vec<[usize; 2]> = (0..switches.len()).flat_map(|a| (0..a).map(move |b| [a, b])).collect();
    shuffle(rng, &mut pairs);
    let mut trial: Option<McfSwaps> = None;
    for [a, b] in pairs.into_iter().take(MAX_PAIRS) {
        let [mut pes_a, mut pes_b] = [a, b].map(|switch| switches[switch].clone());
        // Swaps of two single tasks were tried before.
        if pes_a.len().min(pes_b.len()) < 2 {
            continue;
        }
        shuffle(rng, &mut pes_a);
        shuffle(rng, &mut pes_b);
        let swaps: Vec<[u32; 2]> = pes_a.into_iter().zip(pes_b).map(|(p, q)| [p, q]).collect();
        let places = board.swapped(&swaps);
        let trial = trial.get_or_insert_with(|| cost.clone());
        trial.restart(&places);
        if trial.worth().is_better(cost.worth()) {
            board.swap(&swaps);
            cost.restart(&places);
            return true;
        }
    }
    false
}
