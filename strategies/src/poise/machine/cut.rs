//! Cuts a set of PEs into two compact halves, by the shape of the machine.
//!
//! A box of a grid is cut across its longest side. A run of leaves of a tree is cut between two nodes, so that no lower node
//! is divided. A set of nodes of a product is cut like its network; the cores of a single node are cut like the node.
//! Machines without a shape are cut by bisecting the graph of nearest PEs. Halves are as equal as this allows.

use equipoise_model::Topology;
use equipoise_model::random::generator;
use equipoise_model::topology::{Hierarchy, Shape};

use crate::partition::bisection::csr::{Csr, Half};
use crate::partition::bisection::{self, Halves};

/// Number of nearest PEs to which each PE is connected in the graph of a machine without a shape; up to twice as many
/// if several PEs are equally near.
const NEAREST: usize = 8;

/// The maximum number of PEs for which the nearest PEs are computed, from the distances of all pairs.
const MAX_ANY_PES: usize = 1 << 13;

/// The weight of an edge between two PEs at the least distance.
const NEAREST_WEIGHT: u32 = 1000;

/// The random number stream of bisecting a machine. The cuts do not depend on the seed.
const STREAM: u64 = 0x6d61_6368_696e_6500;

/// A machine that can be cut. The PEs in use are numbered from 0.
pub(crate) trait Cutter {
    /// Sorts `pes`, at least two, such that one half comes first; returns the size of that half.
    fn cut(&self, pes: &mut [u32]) -> usize;

    /// Adds the PEs adjacent to `pe`, if the machine defines any.
    fn near(&self, pe: u32, near: &mut Vec<u32>);
}

/// The cutter of a machine with this shape. `topology` provides distances if there is no shape; it numbers PE `i` as
/// `used[i]`.
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

/// The cutter of a machine that has only distances.
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
    /// The coordinates of each PE, PE by PE.
    coordinates: Vec<u32>,
    /// By node: its PE; `u32::MAX` for none.
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

/// By dimension: the lowest and highest coordinate of `pes`, from the coordinates of all PEs.
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

/// Of the positions between `low` and `high` (both excluded) where a cut is allowed, the one nearest to the middle; the
/// later of two. The middle if no cut is allowed.
fn nearest_to_middle(low: usize, high: usize, may_cut: impl Fn(usize) -> bool) -> usize {
    let middle = (low + high).div_ceil(2);
    let nearest = (0..high - low).find_map(|away| {
        // If `low + high` is odd, `middle` is rounded up. So the mirrored position below is nearer to the middle.
        let (above, below) = (middle + away, (low + high).wrapping_sub(middle + away));
        let within = |at: usize| at > low && at < high && may_cut(at);
        within(above).then_some(above).or(within(below).then_some(below))
    });
    nearest.unwrap_or(middle)
}

/// PEs at the leaves of a tree.
struct Tree {
    /// By PE: its position among the leaves.
    place_of: Vec<u32>,
    pe_at: Vec<u32>,
    /// By level, from the root: the start of each node, and the end of the last.
    starts: Vec<Vec<u32>>,
}

/// By level of a tree: the start of each node, and the end of the last.
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
        // The first level at which a node begins inside the run of leaves; on the level above, the run is inside one
        // node.
        let node_of = |starts: &[u32], place: u32| starts.partition_point(|&start| start <= place);
        let parts = self.starts.iter().find(|starts| node_of(starts, first) != node_of(starts, last));
        let Some(starts) = parts else { return pes.len() / 2 };
        let node = |at: usize| node_of(starts, self.place_of[pes[at] as usize]);
        nearest_to_middle(0, pes.len(), |at| node(at - 1) != node(at))
    }

    /// The closest leaves on both sides within the lowest node with several leaves, at most [`NEAREST`].
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
    /// By PE: its node, numbered among the used nodes, and its core.
    place_of: Vec<(u32, u32)>,
    /// By node, then core: the PE; `u32::MAX` for none.
    pe_at: Vec<u32>,
    cores: u32,
}

impl Product {
    /// `None` if the network or the node has no shape.
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

/// The cutter of a shape; `None` if the shape requires distances.
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

/// PEs with distances only, cut by the graph of nearest PEs.
struct Any {
    /// Edges between each PE and its nearest PEs.
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
        let nearest = equipoise_model::graph::Graph::new(used.len(), edges);
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
        let mut rng = generator(0, STREAM ^ pes.len() as u64);
        let sides = bisection::bisect(&halves, &bisection::Effort::THOROUGH, &mut rng);
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

/// PEs with distances only, too many to compute all distances. The poles are two PEs that are far apart; each half
/// contains the PEs that are nearer to its pole.
struct Poles<'a> {
    topology: &'a dyn Topology,
    used: &'a [u32],
}

impl Poles<'_> {
    /// The distances of `pes` from `from`.
    fn distances(&self, from: u32, pes: &[u32]) -> Vec<u32> {
        let others: Vec<u32> = pes.iter().map(|&pe| self.used[pe as usize]).collect();
        let mut row = vec![0; pes.len()];
        self.topology.distances_to(self.used[from as usize] as usize, &others, &mut row);
        row
    }

    /// The PE of `pes` that is farthest from `from`; of equals the first.
    fn farthest(&self, from: u32, pes: &[u32]) -> u32 {
        let row = self.distances(from, pes);
        let farthest = row.iter().zip(pes).max_by_key(|&(&distance, &pe)| (distance, std::cmp::Reverse(pe)));
        farthest.map_or(from, |(_, &pe)| pe)
    }
}

impl Cutter for Poles<'_> {
    fn cut(&self, pes: &mut [u32]) -> usize {
        pes.sort_unstable();
        let first_pole = self.farthest(pes[0], pes);
        let second_pole = self.farthest(first_pole, pes);
        let [to_first, to_second] = [first_pole, second_pole].map(|pole| self.distances(pole, pes));
        let mut parted: Vec<(i64, u32)> = pes
            .iter()
            .enumerate()
            .map(|(at, &pe)| (i64::from(to_first[at]) - i64::from(to_second[at]), pe))
            .collect();
        parted.sort_unstable();
        parted.iter().zip(&mut *pes).for_each(|(&(_, from), pe)| *pe = from);
        pes.len().div_ceil(2)
    }

    fn near(&self, _: u32, _: &mut Vec<u32>) {}
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;

    #[test]
    fn poles_separate_distant_pes() {
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
        // The poles are corners, so the halves are on both sides of the middle, except for PEs equally far from both.
        assert!(low[13] < 8 && high[2] > 7, "{low:?} and {high:?}");
    }
}
