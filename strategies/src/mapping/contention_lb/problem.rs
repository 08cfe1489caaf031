//! The input of runs that begin at the periphery: hops between PEs, and messages between tasks.

use equipoise_model::Topology;
use equipoise_network::program::Model;

use crate::mapping::de_petris_perego::bounds::Bounds;
use crate::mapping::de_petris_perego::host::Host;
use crate::mapping::de_petris_perego::tasks::Tasks;

/// The maximum number of PEs for which all distances are stored (16 bits each).
const MAX_PES: usize = 2048;

/// The place of a task that has none.
pub(super) const NONE: u32 = u32::MAX;

/// The tasks and the machine. PEs are indices into [`Host::available`].
pub(super) struct Problem<'a> {
    pub(super) tasks: &'a Tasks,
    host: &'a Host,
    /// The task that is placed first.
    pub(super) start: u32,
    /// By task: its partners, ascending, and the number of messages in both directions.
    pub(super) partners: Vec<Vec<(u32, u64)>>,
    /// By pair of PEs: the hops beyond the first.
    extra: Vec<u16>,
    /// By PE: the PEs one hop away.
    pub(super) neighbors: Vec<Vec<u32>>,
    /// The PE with the largest sum of distances; ties go to the first.
    pub(super) corner: u32,
    /// The PEs one hop from the corner; of PEs with the same sum of distances, only the first.
    pub(super) next_to_corner: Vec<u32>,
}

impl<'a> Problem<'a> {
    /// For a program without fixed tasks and with at most one task per PE; `None` above [`MAX_PES`].
    pub(super) fn new(
        model: &Model,
        topology: &dyn Topology,
        host: &'a Host,
        tasks: &'a Tasks,
    ) -> Option<Self> {
        let start = tasks.periphery().filter(|_| host.available.len() <= MAX_PES)? as u32;
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
        let mut next_to_corner = neighbors[corner as usize].clone();
        next_to_corner.sort_by_key(|&pe| sums[pe as usize]);
        next_to_corner.dedup_by_key(|&mut pe| sums[pe as usize]);
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
        Some(Problem { tasks, host, start, partners, extra, neighbors, corner, next_to_corner })
    }

    /// Hops beyond the first from a PE to every PE.
    pub(super) fn extra_from(&self, pe: u32) -> &[u16] {
        let pes = self.neighbors.len();
        &self.extra[pe as usize * pes..][..pes]
    }

    /// The coordinates of a PE.
    pub(super) fn position(&self, pe: u32) -> &[u32] {
        self.host.position(self.host.available[pe as usize])
    }

    /// The empty box.
    pub(super) fn no_bounds(&self) -> Bounds {
        self.host.no_bounds()
    }

    /// The PEs of tasks, from their indices into [`Host::available`].
    pub(super) fn pes_of(&self, places: &[u32]) -> Vec<u32> {
        places.iter().map(|&at| self.host.available[at as usize]).collect()
    }

    /// Computes, by PE, the hops beyond the first that a task adds there; returns the least value of a free PE.
    pub(super) fn costs(&self, task: u32, place: &[u32], is_used: &[bool], costs: &mut Vec<u64>) -> u64 {
        costs.clear();
        costs.resize(is_used.len(), 0);
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
}
