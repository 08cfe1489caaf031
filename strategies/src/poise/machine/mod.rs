//! The machine as a tree of blocks: one block of all PEs, its halves, their halves, down to single PEs.
//!
//! Mapping cuts the task graph like the machine (F. Pellegrini, "Static mapping by dual recursive bipartitioning of
//! process and architecture graphs", 1994). Layer t holds the blocks after t cuts. The distance of two blocks
//! represents the distances of their PEs: on a grid, the distance between the centres of boxes; on a tree, the distance
//! between nodes; on other machines, the mean over a few PEs of each block.
//!
//! On a ring that is cut in four, every block has neighbors on both sides. So distances do not determine which half of
//! a block should be adjacent to the part that was cut off first, and flat graphs are folded in ways that increase the
//! cost of later cuts. Therefore, as long as blocks are large, distances include the distance on the ring opened to a
//! line. On the line, the part that was cut off first is near on one side only.

use equipoise_model::Topology;
use equipoise_model::topology::{Hierarchy, Shape};

mod cut;
pub(crate) mod distance;
pub(crate) mod timed;

use cut::{bounds, cutter, starts};
use distance::{Calls, Codes, Distance, MAX_TABLE_BLOCKS, Metric, Points, Table};

/// No second child: the block is a single PE, and is passed on to the next layer.
pub(crate) const NONE: u32 = u32::MAX;

/// The maximum number of blocks of a layer whose adjacent blocks are listed; the last layer has no limit.
const MAX_NEAR_BLOCKS: usize = 1 << 14;

/// PEs per block between which distances are computed on machines without a grid or tree.
const SAMPLES: usize = 4;

/// The weights of the ring and of the opened ring in distances, while blocks are large.
const RING_PART: i64 = 4;
const LINE_PART: i64 = 4;

/// Blocks are large if the longest one covers more than this fraction (1/8) of a ring.
const LARGE_PART: usize = 8;

/// What the distances between blocks are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distances {
    /// The shape of the machine, with the distance on opened rings or without.
    OfShape { opens_rings: bool },
    /// A few PEs of each block: distances are others than those of the shape.
    OfPes,
}

/// A machine cut down to its PEs.
pub(crate) struct Machine<'a> {
    /// The PEs in use, in an order in which every block is a contiguous run.
    pub order: Vec<u32>,
    /// From one block of all PEs to one block per PE.
    pub layers: Vec<Layer<'a>>,
    /// Whether distances are those of a tree: then both halves of a block are equally far from any PE outside.
    pub is_tree: bool,
}

/// The blocks after a number of cuts.
pub(crate) struct Layer<'a> {
    /// Block `b` has the PEs `order[starts[b]..starts[b + 1]]`.
    pub starts: Vec<u32>,
    /// By block: its halves in the next layer; [`NONE`] for a missing second one. Empty in the last layer.
    pub children: Vec<[u32; 2]>,
    /// Distances between blocks.
    pub distance: Distance<'a>,
    /// A machine distance of 1 in the scale of this layer.
    pub scale: i64,
    /// By block: its adjacent blocks.
    pub near: Near,
}

impl Layer<'_> {
    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of PEs of a block.
    #[cfg(test)]
    pub fn size(&self, block: usize) -> usize {
        (self.starts[block + 1] - self.starts[block]) as usize
    }
}

/// Lists of adjacent blocks; empty if they were not computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Near {
    starts: Vec<u32>,
    blocks: Vec<u32>,
}

impl Near {
    /// The blocks next to `block`, ascending.
    pub fn of(&self, block: u32) -> &[u32] {
        match self.starts.get(block as usize..block as usize + 2) {
            Some(&[start, end]) => &self.blocks[start as usize..end as usize],
            _ => &[],
        }
    }

    fn push(&mut self, near: &mut Vec<u32>) {
        near.sort_unstable();
        near.dedup();
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.blocks.append(near);
        self.starts.push(self.blocks.len() as u32);
    }
}

/// The data from which distances between blocks are computed.
enum Metrics {
    /// Sizes of the grid, and the coordinates of each PE, PE by PE.
    Grid(Vec<(usize, bool)>, Vec<u32>),
    /// By PE: its code; and by bit: the distance of codes that differ there.
    Tree(Vec<u64>, Vec<i64>),
    /// Distances by calls of the machine.
    Other,
}

impl<'a> Machine<'a> {
    /// The tree of the PEs `used`, ascending.
    pub fn new(topology: &'a dyn Topology, used: &[u32], distances: Distances) -> Machine<'a> {
        let shape = match used.len() == topology.pes() {
            true => topology.shape(),
            false => topology.shape().keep(used),
        };
        let (metrics, opened) = match distances {
            Distances::OfShape { opens_rings } => (Metrics::of(&shape, topology, used), opens_rings),
            Distances::OfPes => (Metrics::Other, false),
        };
        let cutter = cutter(shape, topology, used);
        let mut order: Vec<u32> = (0..used.len() as u32).collect();
        let mut all_starts = vec![vec![0, used.len() as u32]];
        let mut all_children = Vec::new();
        while let Some(starts) = all_starts.last().filter(|starts| starts.len() <= used.len()) {
            let (mut below, mut children) = (vec![0], Vec::with_capacity(starts.len()));
            for block in starts.windows(2) {
                let pes = &mut order[block[0] as usize..block[1] as usize];
                let first = below.len() as u32 - 1;
                if pes.len() == 1 {
                    children.push([first, NONE]);
                } else {
                    let size = cutter.cut(pes).clamp(1, pes.len() - 1) as u32;
                    below.push(block[0] + size);
                    children.push([first, first + 1]);
                }
                below.push(block[1]);
            }
            all_starts.push(below);
            all_children.push(children);
        }
        all_children.push(Vec::new());
        let depth = all_starts.len();
        let mut block_of = vec![0; used.len()];
        let layers =
            all_starts.into_iter().zip(all_children).enumerate().map(|(number, (starts, children))| {
                let (distance, scale) = metrics.between(topology, used, &order, &starts, opened);
                let mut near = Near::default();
                if starts.len() - 1 <= MAX_NEAR_BLOCKS || number + 1 == depth {
                    let (mut of_one, mut of_block) = (Vec::new(), Vec::new());
                    for (block, range) in (0..).zip(starts.windows(2)) {
                        let pes = &order[range[0] as usize..range[1] as usize];
                        pes.iter().for_each(|&pe| block_of[pe as usize] = block);
                    }
                    for (block, range) in (0..).zip(starts.windows(2)) {
                        for &pe in &order[range[0] as usize..range[1] as usize] {
                            cutter.near(pe, &mut of_one);
                            let others = of_one.drain(..).map(|pe| block_of[pe as usize]);
                            of_block.extend(others.filter(|&other| other != block));
                        }
                        near.push(&mut of_block);
                    }
                }
                Layer { starts, children, distance, scale, near }
            });
        let layers = layers.collect();
        let order = order.into_iter().map(|pe| used[pe as usize]).collect();
        Machine { order, layers, is_tree: matches!(metrics, Metrics::Tree(..)) }
    }

    /// The layer in which every block is a PE.
    pub fn last(&self) -> &Layer<'a> {
        &self.layers[self.layers.len() - 1]
    }

    /// By PE of a machine with `pes` PEs: its block in the last layer; [`NONE`] for unused PEs.
    pub fn blocks_of_pes(&self, pes: usize) -> Vec<u32> {
        let mut blocks = vec![NONE; pes];
        for (&pe, block) in self.order.iter().zip(0..) {
            blocks[pe as usize] = block;
        }
        blocks
    }
}

impl Metrics {
    fn of(shape: &Shape, topology: &dyn Topology, used: &[u32]) -> Metrics {
        match shape {
            Shape::Grid { sizes, nodes } => {
                let mut coordinates = Vec::with_capacity(nodes.len() * sizes.len());
                for &node in nodes {
                    let mut rest = node;
                    for &(size, _) in sizes {
                        coordinates.push(rest % size as u32);
                        rest /= size as u32;
                    }
                }
                Metrics::Grid(sizes.clone(), coordinates)
            }
            Shape::Tree(tree) => codes(tree, topology, used),
            _ => Metrics::Other,
        }
    }

    /// The distances of the blocks that begin at `starts` of `order`, and their scale.
    fn between<'a>(
        &self,
        topology: &'a dyn Topology,
        used: &[u32],
        order: &[u32],
        starts: &[u32],
        opened: bool,
    ) -> (Distance<'a>, i64) {
        let blocks = starts.len() - 1;
        let range = |block: usize| starts[block] as usize..starts[block + 1] as usize;
        match self {
            Metrics::Grid(sizes, coordinates) if sizes.len() <= Points::MAX_DIMENSIONS => {
                let mut longest = vec![0; sizes.len()];
                let centre = |block: usize| {
                    let mut at = [0; Points::MAX_DIMENSIONS];
                    let bounds = bounds(coordinates, sizes.len(), &order[range(block)]);
                    for ((at, longest), (low, high)) in at.iter_mut().zip(&mut longest).zip(bounds) {
                        *at = (low + high) as i32;
                        *longest = (high - low + 1).max(*longest);
                    }
                    at
                };
                let centres: Vec<_> = (0..blocks).map(centre).collect();
                let is_large =
                    |size: usize, longest: u32| longest > 1 && LARGE_PART * longest as usize > size;
                let lines: Vec<(usize, bool)> = sizes
                    .iter()
                    .zip(longest)
                    .map(|(&(size, wraps), longest)| (size, wraps && !is_large(size, longest)))
                    .collect();
                if opened && lines != *sizes && blocks <= MAX_TABLE_BLOCKS {
                    let ring = Points::new(centres.clone(), sizes);
                    let line = Points::new(centres.clone(), &lines);
                    let table = Table::new(blocks, |a, row| {
                        for (distance, b) in row.iter_mut().zip(0..) {
                            let [ring, line] = [ring.between(a as u32, b), line.between(a as u32, b)];
                            *distance = RING_PART * ring + LINE_PART * line;
                        }
                    });
                    if let Some(table) = table {
                        return (Distance::Table(table), 2 * (RING_PART + LINE_PART));
                    }
                }
                (tabulated(blocks, Points::new(centres, sizes), Distance::Points), 2)
            }
            Metrics::Tree(codes, distances) => {
                let code = |block: usize| codes[order[range(block).start] as usize];
                let codes = Codes::new((0..blocks).map(code).collect(), distances.clone());
                (tabulated(blocks, codes, Distance::Codes), 1)
            }
            _ => sampled(topology, used, order, starts),
        }
    }
}

/// The table of a metric if it is small enough, else the metric itself.
fn tabulated<'a, M: Metric>(blocks: usize, metric: M, otherwise: fn(M) -> Distance<'a>) -> Distance<'a> {
    let fill = |a: usize, row: &mut [i64]| {
        row.iter_mut().zip(0..).for_each(|(distance, b)| *distance = metric.between(a as u32, b));
    };
    let table = (blocks <= MAX_TABLE_BLOCKS).then(|| Table::new(blocks, fill)).flatten();
    table.map_or_else(|| otherwise(metric), Distance::Table)
}

/// Mean distances between a few PEs of every block, as a table; if that is too large, distances between one PE of each.
fn sampled<'a>(
    topology: &'a dyn Topology,
    used: &[u32],
    order: &[u32],
    starts: &[u32],
) -> (Distance<'a>, i64) {
    let blocks = starts.len() - 1;
    let is_last = blocks == used.len();
    let of_block = |block: usize, samples: usize| {
        let (start, end) = (starts[block] as usize, starts[block + 1] as usize);
        let sample =
            move |i: usize| used[order[start + (end - start) * (2 * i + 1) / (2 * samples)] as usize];
        (0..samples).map(sample)
    };
    let table = |samples: usize| {
        let others: Vec<u32> = (0..blocks).flat_map(|block| of_block(block, samples)).collect();
        let mut row = vec![0; others.len()];
        Table::new(blocks, |a, sums| {
            sums.fill(0);
            for pe in of_block(a, samples) {
                topology.distances_to(pe as usize, &others, &mut row);
                for (sum, distances) in sums.iter_mut().zip(row.chunks_exact(samples)) {
                    *sum += distances.iter().map(|&distance| i64::from(distance)).sum::<i64>();
                }
            }
            sums[a] = 0;
        })
    };
    let samples = if is_last { 1 } else { SAMPLES };
    if blocks <= MAX_TABLE_BLOCKS
        && let Some(table) = table(samples)
    {
        return (Distance::Table(table), (samples * samples) as i64);
    }
    let middle = (0..blocks).flat_map(|block| of_block(block, 1)).collect();
    (Distance::Calls(Calls::new(topology, middle)), 1)
}

/// The codes of all PEs, and the distance for each bit of the codes. [`Metrics::Other`] if codes do not fit 64 bits, as in
/// trees with few wide nodes on many levels.
fn codes(tree: &Hierarchy, topology: &dyn Topology, used: &[u32]) -> Metrics {
    let (starts, leaves) = (starts(tree), tree.leaves());
    // For each level, two leaves whose paths differ first at this level. Levels at which no node has two children need
    // no bits.
    let mut by_place = vec![0u64; leaves.len()];
    let (mut levels, mut width) = (Vec::new(), 0);
    for pair in starts.windows(2) {
        let (mut widest, mut parted) = (0, None);
        for node in pair[0].windows(2) {
            let (first, end) = (node[0], node[1]);
            let from = pair[1].partition_point(|&start| start < first);
            let children = &pair[1][from..pair[1].partition_point(|&start| start < end)];
            widest = widest.max(children.len());
            if let [a, b, ..] = *children {
                parted = Some((a, b));
            }
        }
        let Some((a, b)) = parted else { continue };
        let bits = usize::BITS - (widest - 1).leading_zeros();
        width += bits;
        if width > u64::BITS {
            return Metrics::Other;
        }
        for node in pair[0].windows(2) {
            let from = pair[1].partition_point(|&start| start < node[0]);
            let to = pair[1].partition_point(|&start| start < node[1]);
            for (child, number) in (from..to).zip(0u64..) {
                for code in &mut by_place[pair[1][child] as usize..pair[1][child + 1] as usize] {
                    *code = *code << bits | number;
                }
            }
        }
        let pe = |place: u32| used[leaves[place as usize] as usize] as usize;
        levels.push((bits, i64::from(topology.distance(pe(a), pe(b)))));
    }
    let mut distances = vec![0; 65];
    let mut bit = 0;
    for (bits, distance) in levels.into_iter().rev() {
        distances[bit + 1..=bit + bits as usize].fill(distance);
        bit += bits as usize;
    }
    let mut codes = vec![0; leaves.len()];
    for (&pe, code) in leaves.iter().zip(by_place) {
        codes[pe as usize] = code;
    }
    Metrics::Tree(codes, distances)
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;

    const SHAPE: Distances = Distances::OfShape { opens_rings: true };

    #[track_caller]
    fn check(spec: &str) {
        let topology = topology::parse(spec).expect(spec);
        let used: Vec<u32> = (0..topology.pes() as u32).collect();
        let machine = Machine::new(&*topology, &used, SHAPE);
        let mut sorted = machine.order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, used, "{spec}");
        let last = machine.last();
        assert_eq!(last.blocks(), used.len(), "{spec}");
        for (a, &p) in machine.order.iter().enumerate() {
            for (b, &q) in machine.order.iter().enumerate() {
                let expected = i64::from(topology.distance(p as usize, q as usize)) * last.scale;
                assert_eq!(last.distance.between(a as u32, b as u32), expected, "{spec}: {p} and {q}");
            }
        }
        for (layer, next) in machine.layers.iter().zip(&machine.layers[1..]) {
            for (block, &[x, y]) in layer.children.iter().enumerate() {
                let size = |child: u32| if child == NONE { 0 } else { next.size(child as usize) };
                assert_eq!(layer.size(block), size(x) + size(y), "{spec}");
                assert!(size(x) > 0 && (size(y) > 0 || layer.size(block) == 1), "{spec}");
            }
            for a in 0..layer.blocks() as u32 {
                assert_eq!(layer.distance.between(a, a), 0, "{spec}");
                assert!(!layer.near.of(a).contains(&a), "{spec}");
            }
        }
    }

    #[test]
    fn the_last_layer_has_the_distances_of_the_machine() {
        for spec in [
            "flat:7",
            "torus:4x3x5",
            "torus:5x4m",
            "mesh:1x9",
            "mesh:1",
            "hypercube:5",
            "tree:3:2:4/100:10:1",
            "tree:2:1:3",
            "fattree:3:4",
            "dragonfly:groups=5,routers=4,hosts=2",
            "torus:3x2*tree:2:2/2:1",
            "torus:8x4x4[random:37,seed=1]",
            "tree:8:4:2/100:10:1[random:23,seed=4]",
            "(torus:4x4*tree:2:4/2:1)[random:29,seed=8]",
            "graph:random:n=33,degree=5",
        ] {
            check(spec);
        }
    }

    #[test]
    fn a_tree_with_codes_longer_than_64_bits_calls_the_machine_for_distances() {
        // On each of 9 levels the last node has 129 children, and all nodes before it have one child: 8 bits per level.
        let leaves = 9 * 128 + 1;
        let starts = |level: u32| (0..=128 * level).chain([leaves]).collect();
        let tree = Hierarchy::new((0..leaves).collect(), (0..=9).map(starts).collect());
        let flat = topology::parse(&format!("flat:{leaves}")).expect("a machine");
        let used: Vec<u32> = (0..leaves).collect();
        assert!(matches!(codes(&tree, &*flat, &used), Metrics::Other));
    }

    #[test]
    fn a_grid_is_cut_into_boxes_and_a_tree_between_nodes() {
        let blocks = |spec: &str, layer: usize| {
            let topology = topology::parse(spec).expect(spec);
            let machine = Machine::new(&*topology, &(0..topology.pes() as u32).collect::<Vec<_>>(), SHAPE);
            let layer = &machine.layers[layer];
            let block = |b: usize| {
                let mut pes = machine.order[layer.starts[b] as usize..][..layer.size(b)].to_vec();
                pes.sort_unstable();
                pes
            };
            (0..layer.blocks()).map(block).collect::<Vec<_>>()
        };
        assert_eq!(blocks("mesh:4x2", 1), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(blocks("tree:3:2", 1), [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(blocks("torus:2x1*tree:3/1", 1), [[0, 1, 2], [3, 4, 5]]);
    }
}
