//! Further runs of the mapper, beside the paper's one, for programs with a PE for every process.
//!
//! The paper's run begins at the centres, decides by F, and never looks further than the next task. What it misses are
//! embeddings that nothing local shows: a mesh on a hypercube by Gray codes, a butterfly on a mesh, the two ends of a
//! ring that must meet, subtrees that need room. These runs place by equation (4) alone - the hops beyond the first, times
//! messages - which is cheap enough to try continuations:
//!
//! - [`unfold`]: from the periphery, each open choice decided by placing all tasks that it leaves no choice; once for each
//!   way that the first two may lie;
//! - [`beam`]: from the corner, many partial placements side by side where several PEs cost the same;
//! - [`chain`]: rings and rows along a Hamiltonian cycle or path of a grid;
//! - [`forest`]: subtrees into halves of a grid.
//!
//! Which of the results is taken is for F to say.

use std::ops::Range;

use super::host::{Host, WholeGrid};
use super::tasks::Tasks;
use crate::Topology;
use crate::program::Model;

mod beam;
mod chain;
mod forest;
mod unfold;

/// The most PEs between all of which distances are kept (16 bits each).
const MAX_PES: usize = 2048;

/// No place.
const NONE: u32 = u32::MAX;

/// What is placed where; PEs are numbers in [`Host::available`].
pub(super) struct Problem<'a> {
    tasks: &'a Tasks,
    host: &'a Host,
    /// By task: its partners, ascending, and the messages both ways.
    partners: Vec<Vec<(u32, u64)>>,
    /// From PE to PE: the hops beyond the first.
    extra: Vec<u16>,
    /// By PE: those one hop away.
    neighbors: Vec<Vec<u32>>,
    /// The PE farthest from all, the first of several.
    corner: u32,
    /// The PEs one hop from the corner, of those that are equally far from all the first.
    beside_corner: Vec<u32>,
}

/// The placements of all runs that can be made of a program with at most as many tasks as there are PEs, none of which
/// stays: the PE of every task. From each of the tasks `starts` there is a run, beside those from the periphery.
pub(super) fn all(
    model: &Model,
    topology: &dyn Topology,
    host: &Host,
    tasks: &Tasks,
    starts: Range<usize>,
) -> Vec<Vec<u32>> {
    let Some(periphery) = tasks.periphery().filter(|_| host.available.len() <= MAX_PES) else {
        return Vec::new();
    };
    let problem = Problem::new(model, topology, host, tasks);
    let mut runs: Vec<Vec<u32>> = chain::place(&problem).into_iter().collect();
    runs.extend(forest::all(&problem));
    for start in std::iter::once(periphery).chain(starts) {
        // Where every message takes one hop there is nothing left to find.
        if runs.iter().any(|places| problem.extra_hops(places) == 0) {
            break;
        }
        runs.extend(unfold::all(&problem, start as u32));
        runs.push(beam::place(&problem, start as u32));
    }
    let pe = |at: u32| host.available[at as usize];
    runs.into_iter().map(|places| places.into_iter().map(pe).collect()).collect()
}

impl<'a> Problem<'a> {
    fn new(model: &Model, topology: &dyn Topology, host: &'a Host, tasks: &'a Tasks) -> Self {
        let pes = host.available.len();
        let (mut row, mut extra) = (vec![0; topology.pes()], vec![0u16; pes * pes]);
        let mut neighbors = vec![Vec::new(); pes];
        let mut sums = vec![0u64; pes];
        for (at, &pe) in host.available.iter().enumerate() {
            topology.distances_from(pe as usize, &mut row);
            for (other, &there) in host.available.iter().enumerate() {
                let distance = row[there as usize];
                sums[at] += u64::from(distance);
                extra[at * pes + other] = u16::try_from(distance.saturating_sub(1)).unwrap_or(u16::MAX);
                if distance == 1 {
                    neighbors[at].push(other as u32);
                }
            }
        }
        let corner = (0..pes as u32).rev().max_by_key(|&pe| sums[pe as usize]).unwrap_or(0);
        let mut beside_corner = neighbors[corner as usize].clone();
        beside_corner.sort_by_key(|&pe| sums[pe as usize]);
        beside_corner.dedup_by_key(|&mut pe| sums[pe as usize]);
        let mut partners: Vec<Vec<(u32, u64)>> = vec![Vec::new(); model.tasks.len()];
        for channel in &model.channels {
            partners[channel.from as usize].push((channel.to, channel.messages));
            partners[channel.to as usize].push((channel.from, channel.messages));
        }
        for list in &mut partners {
            list.sort_unstable();
            list.dedup_by(|later, first| {
                let same = later.0 == first.0;
                first.1 += if same { later.1 } else { 0 };
                same
            });
        }
        Problem { tasks, host, partners, extra, neighbors, corner, beside_corner }
    }

    fn pes(&self) -> usize {
        self.neighbors.len()
    }

    /// Hops beyond the first from a PE to each.
    fn extra_from(&self, pe: u32) -> &[u16] {
        &self.extra[pe as usize * self.pes()..][..self.pes()]
    }

    /// All hops beyond the first of a placement, times messages.
    fn extra_hops(&self, places: &[u32]) -> u64 {
        let of = |(task, list): (usize, &Vec<(u32, u64)>)| {
            let row = self.extra_from(places[task]);
            list.iter()
                .map(|&(other, messages)| messages * u64::from(row[places[other as usize] as usize]))
                .sum::<u64>()
        };
        self.partners.iter().enumerate().map(of).sum::<u64>() / 2
    }

    /// By PE: the hops beyond the first that a task adds there beside those that have a place; returns the fewest of the PEs
    /// that are free.
    fn costs(&self, task: u32, place: &[u32], is_used: &[bool], costs: &mut Vec<u64>) -> u64 {
        costs.clear();
        costs.resize(self.pes(), 0);
        for &(partner, messages) in &self.partners[task as usize] {
            let there = place[partner as usize];
            if there != NONE {
                for (cost, &extra) in costs.iter_mut().zip(self.extra_from(there)) {
                    *cost += messages * u64::from(extra);
                }
            }
        }
        let free = costs.iter().zip(is_used).filter(|(_, is_used)| !**is_used);
        free.map(|(&cost, _)| cost).min().unwrap_or(0)
    }

    /// The coordinates of a PE.
    fn position(&self, pe: u32) -> &[u32] {
        self.host.position(self.host.available[pe as usize])
    }

    /// The grid that the machine is; none where it is no grid, or not all of it takes tasks.
    fn grid(&self) -> Option<&WholeGrid> {
        self.host.grid.as_ref()
    }
}
