//! Cutting a set of PEs in two compact halves, by the shape of the machine.
//!
//! A box of a grid is cut across its longest side; a run of nodes of a tree between two of them, so that no node
//! below is torn; a set of nodes of a network as the network is, and when only one is left its cores; a machine
//! without a shape by bisecting the graph of who is nearest to whom. Halves are as equal as that allows.

use crate::Topology;
use crate::poise::bisect::{self, Halves};
use crate::poise::csr::{Csr, Half};
use crate::random::generator;
use crate::topology::{Hierarchy, Shape};

/// How many nearest PEs make the graph of a machine without a shape; as many again where they are equally near.
const NEAREST: usize = 8;

/// The most PEs of which it is found out who is nearest to whom: that takes all distances.
const MAX_ANY_PES: usize = 1 << 13;

/// The weight of the edge between two PEs that are nearest to each other.
const NEAREST_WEIGHT: u32 = 1000;

/// The stream of random numbers that bisect a machine. The machine is cut the same way whatever the seed.
const STREAM: u64 = 0x6d61_6368_696e_6500;

/// A machine that can be cut. PEs are numbered among those that are used, from 0.
pub(crate) trait Cutter {
    /// Sorts `pes`, of which there are at least two, such that one half comes first; gives the size of that.
    fn cut(&self, pes: &mut [u32]) -> usize;

    /// The PEs that are next to `pe`, if the machine has such.
    fn near(&self, pe: u32, near: &mut Vec<u32>);
}

/// The cutter of a machine of so many PEs; `topology` is asked for distances where there is no shape, and
/// `used[i]` is what it calls PE `i`.
pub(crate) fn cutter<'a>(shape: Shape, topology: &'a dyn Topology, used: &'a [u32]) -> Box<dyn Cutter + 'a> {
    match shape {
        Shape::Grid { sizes, nodes } => Box::new(Grid::new(sizes, &nodes)),
        Shape::Tree(tree) | Shape::Nested(tree) => Box::new(Tree::new(&tree)),
        Shape::Product { network, node, cores, places } => {
            let product = Product::new(*network, *node, cores as u32, &places);
            match product {
                Some(product) => Box::new(product),
                None => any(topology, used),
            }
        }
        Shape::Any => any(topology, used),
    }
}

/// The cutter of a machine of which only distances are known.
fn any<'a>(topology: &'a dyn Topology, used: &'a [u32]) -> Box<dyn Cutter + 'a> {
    if used.len() > MAX_ANY_PES {
        Box::new(Poles { topology, used })
    } else {
        Box::new(Any::new(topology, used))
    }
}

/// PEs on a grid.
pub(crate) struct Grid {
    sizes: Vec<(usize, bool)>,
    /// The coordinates of each PE, one after the other.
    coordinates: Vec<u32>,
    /// The PE at each node; `u32::MAX` where there is none.
    pe_at: Vec<u32>,
}

impl Grid {
    fn new(sizes: Vec<(usize, bool)>, nodes: &[u32]) -> Grid {
        let mut pe_at = vec![u32::MAX; sizes.iter().map(|size| size.0).product()];
        let mut coordinates = Vec::with_capacity(nodes.len() * sizes.len());
        for (&node, pe) in nodes.iter().zip(0..) {
            pe_at[node as usize] = pe;
            let mut rest = node;
            for &(size, _) in &sizes {
                coordinates.push(rest % size as u32);
                rest /= size as u32;
            }
        }
        Grid { sizes, coordinates, pe_at }
    }

    fn coordinate(&self, pe: u32, dimension: usize) -> u32 {
        self.coordinates[pe as usize * self.sizes.len() + dimension]
    }
}

/// By dimension: the lowest and the highest coordinate of some PEs, given by the coordinates of all.
pub(crate) fn bounds(coordinates: &[u32], dimensions: usize, pes: &[u32]) -> Vec<(u32, u32)> {
    let mut bounds = vec![(u32::MAX, 0); dimensions];
    for &pe in pes {
        let at = &coordinates[pe as usize * dimensions..][..dimensions];
        for (bound, &coordinate) in bounds.iter_mut().zip(at) {
            *bound = (bound.0.min(coordinate), bound.1.max(coordinate));
        }
    }
    bounds
}

impl Cutter for Grid {
    fn cut(&self, pes: &mut [u32]) -> usize {
        let bounds = bounds(&self.coordinates, self.sizes.len(), pes);
        let lengths = bounds.iter().map(|(low, high)| high - low);
        let longest = lengths.clone().max().unwrap_or(0);
        let dimension = lengths.into_iter().position(|length| length == longest).unwrap_or(0);
        pes.sort_unstable_by_key(|&pe| (self.coordinate(pe, dimension), pe));
        let same = |at: usize| self.coordinate(pes[at - 1], dimension) == self.coordinate(pes[at], dimension);
        nearest_to_middle(0, pes.len(), |at| !same(at))
    }

    fn near(&self, pe: u32, near: &mut Vec<u32>) {
        let mut stride = 1;
        let dimensions = self.sizes.len();
        let at = |d: usize| self.coordinate(pe, d) as usize;
        let node = (0..dimensions).rev().fold(0, |node, d| node * self.sizes[d].0 + at(d));
        for (d, &(size, wraps)) in self.sizes.iter().enumerate() {
            let line = node - at(d) * stride;
            let up = (at(d) + 1 < size).then_some(at(d) + 1).or((wraps && size > 1).then_some(0));
            let down = at(d).checked_sub(1).or((wraps && size > 1).then_some(size - 1));
            for other in [up, down].into_iter().flatten() {
                let neighbor = self.pe_at[line + other * stride];
                if neighbor != u32::MAX && neighbor != pe {
                    near.push(neighbor);
                }
            }
            stride *= size;
        }
    }
}

/// The place between `low` and `high` (both excluded) nearest to their middle where one may cut; the later of two.
/// The middle itself where one may cut nowhere.
fn nearest_to_middle(low: usize, high: usize, may_cut: impl Fn(usize) -> bool) -> usize {
    let middle = (low + high).div_ceil(2);
    let nearest = (0..high - low).find_map(|away| {
        // Of an odd number the middle is half a PE further up, so what is as far below is nearer by one.
        let (above, below) = (middle + away, (low + high).wrapping_sub(middle + away));
        let within = |at: usize| at > low && at < high && may_cut(at);
        within(above).then_some(above).or(within(below).then_some(below))
    });
    nearest.unwrap_or(middle)
}

/// PEs at the leaves of a tree.
struct Tree {
    /// The place of each PE among the leaves.
    place_of: Vec<u32>,
    pe_at: Vec<u32>,
    /// By level, from the root: where its nodes begin, and after the last one where they end.
    starts: Vec<Vec<u32>>,
}

/// Where the nodes of each level of a tree begin, and after the last one where they end.
pub(crate) fn starts(tree: &Hierarchy) -> Vec<Vec<u32>> {
    let end = tree.leaves().len() as u32;
    let of_level = |level| tree.nodes(level).map(|node| node.start as u32).chain([end]).collect();
    (0..=tree.depth()).map(of_level).collect()
}

impl Tree {
    fn new(tree: &Hierarchy) -> Tree {
        let pe_at = tree.leaves().to_vec();
        let mut place_of = vec![0; pe_at.len()];
        for (&pe, place) in pe_at.iter().zip(0..) {
            place_of[pe as usize] = place;
        }
        Tree { place_of, pe_at, starts: starts(tree) }
    }
}

impl Cutter for Tree {
    fn cut(&self, pes: &mut [u32]) -> usize {
        pes.sort_unstable_by_key(|&pe| self.place_of[pe as usize]);
        let first = self.place_of[pes[0] as usize];
        let last = self.place_of[pes[pes.len() - 1] as usize];
        // The first level at which a node begins within the run; above it there is one node, or a part of it.
        let node_of = |starts: &[u32], place: u32| starts.partition_point(|&start| start <= place);
        let parts = self.starts.iter().find(|starts| node_of(starts, first) != node_of(starts, last));
        let Some(starts) = parts else { return pes.len() / 2 };
        let node = |at: usize| node_of(starts, self.place_of[pes[at] as usize]);
        nearest_to_middle(0, pes.len(), |at| node(at - 1) != node(at))
    }

    /// Of the lowest node that has several leaves those on either side, [`NEAREST`] at most.
    fn near(&self, pe: u32, near: &mut Vec<u32>) {
        let place = self.place_of[pe as usize];
        for starts in self.starts.iter().rev() {
            let node = starts.partition_point(|&start| start <= place);
            let (first, end) = (starts[node - 1], starts[node]);
            if end - first > 1 {
                let (leaves, from) = (end - first, place - first);
                for step in 1..=(leaves / 2).min(NEAREST as u32 / 2) {
                    let others = [(from + step) % leaves, (from + leaves - step) % leaves];
                    near.extend(others.map(|other| self.pe_at[(first + other) as usize]));
                }
                return;
            }
        }
    }
}

/// Cores in the nodes of a network.
struct Product {
    network: Box<dyn Cutter>,
    node: Box<dyn Cutter>,
    /// By PE: its node, among those that are used, and its core.
    place_of: Vec<(u32, u32)>,
    /// The PE of every core of every node, `u32::MAX` where there is none.
    pe_at: Vec<u32>,
    cores: u32,
}

impl Product {
    /// `None` if the network or the node have no shape to go by.
    fn new(network: Shape, node: Shape, cores: u32, places: &[u32]) -> Option<Product> {
        if matches!(network, Shape::Any) || matches!(node, Shape::Any) {
            return None;
        }
        let mut nodes: Vec<u32> = places.iter().map(|place| place / cores).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let node_number = |place: u32| nodes.partition_point(|&node| node < place / cores) as u32;
        let place_of: Vec<(u32, u32)> = places.iter().map(|&p| (node_number(p), p % cores)).collect();
        let mut pe_at = vec![u32::MAX; nodes.len() * cores as usize];
        for (&(node, core), pe) in place_of.iter().zip(0..) {
            pe_at[(node * cores + core) as usize] = pe;
        }
        let network = with_shape(network.keep(&nodes))?;
        Some(Product { network, node: with_shape(node)?, place_of, pe_at, cores })
    }

    fn pe(&self, node: u32, core: u32) -> Option<u32> {
        Some(self.pe_at[(node * self.cores + core) as usize]).filter(|&pe| pe != u32::MAX)
    }
}

/// The cutter of a shape that needs no distances.
fn with_shape(shape: Shape) -> Option<Box<dyn Cutter>> {
    match shape {
        Shape::Grid { sizes, nodes } => Some(Box::new(Grid::new(sizes, &nodes))),
        Shape::Tree(tree) | Shape::Nested(tree) => Some(Box::new(Tree::new(&tree))),
        Shape::Product { network, node, cores, places } => {
            Some(Box::new(Product::new(*network, *node, cores as u32, &places)?))
        }
        Shape::Any => None,
    }
}

impl Cutter for Product {
    fn cut(&self, pes: &mut [u32]) -> usize {
        let place = |pe: &u32| self.place_of[*pe as usize];
        let mut nodes: Vec<u32> = pes.iter().map(|pe| place(pe).0).collect();
        nodes.sort_unstable();
        nodes.dedup();
        if let [node] = nodes[..] {
            let mut cores: Vec<u32> = pes.iter().map(|pe| place(pe).1).collect();
            let first = self.node.cut(&mut cores);
            for (pe, core) in pes.iter_mut().zip(cores) {
                *pe = self.pe_at[(node * self.cores + core) as usize];
            }
            return first;
        }
        let first = self.network.cut(&mut nodes);
        let mut left = nodes[..first].to_vec();
        left.sort_unstable();
        pes.sort_unstable_by_key(|pe| (left.binary_search(&place(pe).0).is_err(), place(pe)));
        pes.partition_point(|pe| left.binary_search(&place(pe).0).is_ok())
    }

    fn near(&self, pe: u32, near: &mut Vec<u32>) {
        let (node, core) = self.place_of[pe as usize];
        let mut others = Vec::new();
        self.node.near(core, &mut others);
        near.extend(others.drain(..).filter_map(|core| self.pe(node, core)));
        self.network.near(node, &mut others);
        near.extend(others.into_iter().filter_map(|node| self.pe(node, core)));
    }
}

/// PEs of which only distances are known.
struct Any {
    /// Who is nearest to whom.
    graph: Csr,
}

impl Any {
    fn new(topology: &dyn Topology, used: &[u32]) -> Any {
        let mut edges = Vec::new();
        let mut row = vec![0; used.len()];
        let mut nearest: Vec<(u32, u32)> = Vec::new();
        for (&pe, from) in used.iter().zip(0u32..) {
            topology.distances_to(pe as usize, used, &mut row);
            nearest.clear();
            nearest.extend(row.iter().copied().zip(0..).filter(|&(_, to)| to != from));
            let most = (2 * NEAREST).min(nearest.len());
            if most < nearest.len() {
                nearest.select_nth_unstable(most);
            }
            nearest.truncate(most);
            nearest.sort_unstable();
            let Some(&(least, _)) = nearest.first() else { continue };
            let farthest = nearest[most.min(NEAREST) - 1].0;
            for &(distance, to) in nearest.iter().filter(|&&(distance, _)| distance <= farthest) {
                let weight =
                    (u64::from(NEAREST_WEIGHT) * u64::from(least) / u64::from(distance.max(1))).max(1);
                edges.push((from, to, weight));
            }
        }
        let nearest = crate::graph::Graph::new(used.len(), edges);
        let mut graph = Csr::with_capacity(used.len());
        for pe in 0..used.len() {
            let half = |(to, weight): (usize, u64)| Half { to: to as u32, weight: weight as u32 };
            graph.push(1, nearest.neighbors(pe).map(half));
        }
        Any { graph }
    }
}

impl Cutter for Any {
    fn cut(&self, pes: &mut [u32]) -> usize {
        pes.sort_unstable();
        let first = pes.len().div_ceil(2);
        let mut piece = Csr::with_capacity(pes.len());
        for &pe in pes.iter() {
            let inside = self.graph.row(pe as usize).iter().filter_map(|half| {
                Some(Half { to: pes.binary_search(&half.to).ok()? as u32, weight: half.weight })
            });
            piece.push(1, inside);
        }
        let halves = Halves::exact(&piece, first as i64);
        let mut dice = generator(0, STREAM ^ pes.len() as u64);
        let sides = bisect::bisect(&halves, &bisect::Effort::THOROUGH, &mut dice);
        let sorted: Vec<u32> = [0, 1]
            .into_iter()
            .flat_map(|side| pes.iter().zip(&sides).filter(move |(_, s)| **s == side).map(|(&pe, _)| pe))
            .collect();
        pes.copy_from_slice(&sorted);
        sides.iter().filter(|&&side| side == 0).count().clamp(1, pes.len() - 1)
    }

    fn near(&self, pe: u32, near: &mut Vec<u32>) {
        near.extend(self.graph.row(pe as usize).iter().map(|half| half.to));
    }
}

/// PEs of which only distances are known, and that are too many to take them all: parted by which of two that are far
/// apart is nearer.
struct Poles<'a> {
    topology: &'a dyn Topology,
    used: &'a [u32],
}

impl Poles<'_> {
    /// The distances of `pes` from one of them.
    fn distances(&self, from: u32, pes: &[u32]) -> Vec<u32> {
        let others: Vec<u32> = pes.iter().map(|&pe| self.used[pe as usize]).collect();
        let mut row = vec![0; pes.len()];
        self.topology.distances_to(self.used[from as usize] as usize, &others, &mut row);
        row
    }

    /// That of `pes` which is farthest from one of them; of equals the first.
    fn farthest(&self, from: u32, pes: &[u32]) -> u32 {
        let row = self.distances(from, pes);
        let farthest = row.iter().zip(pes).max_by_key(|&(&distance, &pe)| (distance, std::cmp::Reverse(pe)));
        farthest.map_or(from, |(_, &pe)| pe)
    }
}

impl Cutter for Poles<'_> {
    fn cut(&self, pes: &mut [u32]) -> usize {
        pes.sort_unstable();
        let north = self.farthest(pes[0], pes);
        let south = self.farthest(north, pes);
        let [up, down] = [north, south].map(|pole| self.distances(pole, pes));
        let mut parted: Vec<(i64, u32)> =
            pes.iter().enumerate().map(|(at, &pe)| (i64::from(up[at]) - i64::from(down[at]), pe)).collect();
        parted.sort_unstable();
        parted.iter().zip(&mut *pes).for_each(|(&(_, from), pe)| *pe = from);
        pes.len().div_ceil(2)
    }

    fn near(&self, _: u32, _: &mut Vec<u32>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    #[test]
    fn poles_part_what_is_far_apart() {
        let machine = topology::parse("mesh:16x4").expect("a mesh");
        // Every second row is used.
        let used: Vec<u32> = (0..64).filter(|pe| pe / 16 % 2 == 0).collect();
        let poles = Poles { topology: &*machine, used: &used };
        let mut pes: Vec<u32> = (0..used.len() as u32).rev().collect();
        let first = poles.cut(&mut pes);
        let columns = |pes: &[u32]| {
            let mut columns: Vec<u32> = pes.iter().map(|&pe| used[pe as usize] % 16).collect();
            columns.sort_unstable();
            columns
        };
        let [left, right] = [&pes[..first], &pes[first..]].map(columns);
        let (low, high) = if left[0] < right[0] { (left, right) } else { (right, left) };
        assert_eq!((low.len(), high.len()), (16, 16));
        // The poles are corners, so the halves lie on either side of the middle, but for what is as far from both.
        assert!(low[13] < 8 && high[2] > 7, "{low:?} and {high:?}");
    }
}
