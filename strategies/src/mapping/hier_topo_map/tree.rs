//! The trees along which processes are mapped, and the recursion that maps them.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers",
//! J. Supercomput. 71, 2015, algorithm 1 (recursive tree mapping, figure 4): at every node of the tree the
//! processes are partitioned into one part per child, which exactly fills the places below the child, so that few bytes
//! are exchanged between parts. Section 3.1.2 notes that recursive bipartitioning (algorithm 2) is the same along a
//! binary tree, so there is one recursion for all trees.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rayon::prelude::*;

use equipoise_model::graph::Graph;
use equipoise_model::topology::Hierarchy;

use crate::partition::exact::{self, Partitioner};
use crate::strategy::StrategyError;

/// A rooted tree whose leaves are places of a machine: nodes, or PEs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// By vertex: its children, which have lower numbers; a leaf has none.
    children: Vec<Vec<u32>>,
    /// By vertex: the place of a leaf.
    places: Vec<u32>,
}

impl Tree {
    /// Adds a leaf; returns its vertex.
    pub fn leaf(&mut self, place: u32) -> u32 {
        self.children.push(Vec::new());
        self.places.push(place);
        self.places.len() as u32 - 1
    }

    /// Adds the parent of these vertices, at least one; returns a single vertex without adding a parent. The last vertex
    /// added is the root.
    pub fn parent(&mut self, children: Vec<u32>) -> u32 {
        if let [only] = children[..] {
            return only;
        }
        let parent = self.leaf(u32::MAX);
        self.children[parent as usize] = children;
        parent
    }

    /// Adds a copy of another tree, with its places replaced by `place_of`; returns the root of the copy.
    pub fn graft(&mut self, other: &Tree, place_of: impl Fn(u32) -> u32) -> u32 {
        let first = self.places.len() as u32;
        for (children, &place) in other.children.iter().zip(&other.places) {
            let vertex = self.leaf(if children.is_empty() { place_of(place) } else { place });
            self.children[vertex as usize] = children.iter().map(|child| first + child).collect();
        }
        self.places.len() as u32 - 1
    }

    /// The part of a machine's tree below a node, down to the level `until`. The nodes of that level with a `place_of` are
    /// the leaves; nodes without a leaf below are left out. `None` if there is no leaf.
    pub fn of(
        tree: &Hierarchy,
        (level, node): (usize, usize),
        until: usize,
        place_of: &impl Fn(usize) -> Option<u32>,
    ) -> Option<Tree> {
        let mut all = Tree::default();
        all.add(tree, (level, node), until, place_of)?;
        Some(all)
    }

    fn add(
        &mut self,
        tree: &Hierarchy,
        (level, node): (usize, usize),
        until: usize,
        place_of: &impl Fn(usize) -> Option<u32>,
    ) -> Option<u32> {
        if level == until {
            return place_of(node).map(|place| self.leaf(place));
        }
        let children = tree.children(level, node);
        let children: Vec<u32> =
            children.filter_map(|child| self.add(tree, (level + 1, child), until, place_of)).collect();
        (!children.is_empty()).then(|| self.parent(children))
    }

    /// The places of the leaves, from left to right.
    pub fn places(&self) -> Vec<u32> {
        let mut places = Vec::new();
        let mut open: Vec<u32> = self.root().into_iter().collect();
        while let Some(vertex) = open.pop() {
            let children = &self.children[vertex as usize];
            if children.is_empty() {
                places.push(self.places[vertex as usize]);
            }
            open.extend(children.iter().rev());
        }
        places
    }

    /// This tree with the places of its leaves replaced by numbers from left to right.
    pub fn numbered(&self) -> Tree {
        let mut tree = self.clone();
        let number: BTreeMap<u32, u32> = self.places().into_iter().zip(0..).collect();
        let leaves = tree.children.iter().zip(&mut tree.places).filter(|(children, _)| children.is_empty());
        leaves.for_each(|(_, place)| *place = number[place]);
        tree
    }

    /// This tree with every leaf replaced by another tree.
    pub fn with(&self, tree_of: impl Fn(u32) -> Tree) -> Tree {
        let mut all = Tree::default();
        let mut moved = Vec::with_capacity(self.places.len());
        for (children, &place) in self.children.iter().zip(&self.places) {
            moved.push(if children.is_empty() {
                all.graft(&tree_of(place), |place| place)
            } else {
                all.parent(children.iter().map(|&child| moved[child as usize]).collect())
            });
        }
        all
    }

    /// The numbers of inner vertices by their number of children: (children, vertices), ascending.
    pub fn arities(&self) -> Vec<(usize, usize)> {
        let mut counts = BTreeMap::new();
        for children in self.children.iter().filter(|children| !children.is_empty()) {
            *counts.entry(children.len()).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// The sorted places below every vertex, in ascending order; equal for two trees if they are isomorphic.
    #[cfg(test)]
    pub(super) fn groups(&self) -> Vec<Vec<u32>> {
        let mut below: Vec<Vec<u32>> = Vec::with_capacity(self.places.len());
        for (children, &place) in self.children.iter().zip(&self.places) {
            let mut places: Vec<u32> =
                children.iter().flat_map(|&child| below[child as usize].iter().copied()).collect();
            places.extend(children.is_empty().then_some(place));
            places.sort_unstable();
            below.push(places);
        }
        below.sort_unstable();
        below
    }

    fn is_leaf(&self, vertex: u32) -> bool {
        self.children[vertex as usize].is_empty()
    }

    fn root(&self) -> Option<u32> {
        (self.places.len() as u32).checked_sub(1)
    }

    /// By vertex: the sum of the rooms of the places below it.
    fn rooms(&self, room_of_place: &[u64]) -> Vec<u64> {
        let mut rooms: Vec<u64> = Vec::with_capacity(self.places.len());
        for (children, &place) in self.children.iter().zip(&self.places) {
            rooms.push(match children[..] {
                [] => room_of_place[place as usize],
                _ => children.iter().map(|&child| rooms[child as usize]).sum(),
            });
        }
        rooms
    }
}

/// The processes that are mapped along a tree.
pub struct Processes<'a> {
    /// The bytes that they exchange, in both directions together.
    pub graph: &'a Graph,
    /// By process: its weight.
    pub weights: &'a [u32],
    /// By place: its capacity for weights; all capacities together suffice.
    pub rooms: &'a [u64],
    /// The graph partitioner.
    pub partitioner: Partitioner,
    /// The seed of the random number generator.
    pub seed: u64,
}

/// The processes that are mapped below a vertex of the tree.
struct Piece<'a> {
    vertex: u32,
    processes: Vec<u32>,
    /// The bytes that the processes exchange; unused if the vertex is a leaf.
    graph: Cow<'a, Graph>,
}

impl Processes<'_> {
    /// Algorithm 1: the place of every process. Maps one level of the tree at a time, with its vertices in parallel.
    ///
    /// # Errors
    /// If the partitioner fails.
    pub fn map(&self, tree: &Tree) -> Result<Vec<u32>, StrategyError> {
        let processes: Vec<u32> = (0..self.graph.vertices() as u32).collect();
        let mut place_of = vec![0; processes.len()];
        let rooms = tree.rooms(self.rooms);
        let all = |vertex| Piece { vertex, processes, graph: Cow::Borrowed(self.graph) };
        let mut pieces: Vec<Piece<'_>> = tree.root().map(all).into_iter().collect();
        while !pieces.is_empty() {
            let (leaves, inner): (Vec<Piece<'_>>, Vec<Piece<'_>>) =
                pieces.into_iter().partition(|piece| tree.is_leaf(piece.vertex));
            for Piece { vertex, processes, .. } in leaves {
                let place = tree.places[vertex as usize];
                processes.iter().for_each(|&process| place_of[process as usize] = place);
            }
            let below = inner.into_par_iter().map(|piece| self.partition(tree, &rooms, piece));
            pieces = below.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        }
        Ok(place_of)
    }

    /// Partitions a piece: one new piece for each child of its vertex that receives a process.
    fn partition(
        &self,
        tree: &Tree,
        rooms: &[u64],
        piece: Piece<'_>,
    ) -> Result<Vec<Piece<'static>>, StrategyError> {
        let children = &tree.children[piece.vertex as usize];
        let rooms: Vec<u64> = children.iter().map(|&child| rooms[child as usize]).collect();
        let weights: Vec<u32> =
            piece.processes.iter().map(|&process| self.weights[process as usize]).collect();
        let part_of = exact::partition(&piece.graph, &weights, &rooms, self.partitioner, self.seed)?;
        let mut parts = vec![Vec::new(); children.len()];
        for (&part, position) in part_of.iter().zip(0u32..) {
            parts[part as usize].push(position);
        }
        let mut kept: Vec<&[u32]> = parts.iter().map(Vec::as_slice).collect();
        for (kept, _) in kept.iter_mut().zip(children).filter(|(_, child)| tree.is_leaf(**child)) {
            *kept = &[];
        }
        let graphs = piece.graph.split(&kept);
        let pieces = children.iter().zip(graphs).zip(&parts).filter(|(_, part)| !part.is_empty());
        let process = |&position: &u32| piece.processes[position as usize];
        let pieces = pieces.map(|((&vertex, graph), part)| Piece {
            vertex,
            processes: part.iter().map(process).collect(),
            graph: Cow::Owned(graph),
        });
        Ok(pieces.collect())
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::graph::load;
    use equipoise_model::topology;

    use super::*;

    fn hierarchy(spec: &str) -> Hierarchy {
        topology::parse(spec).expect("a machine").hierarchy().expect("it is a tree")
    }

    #[test]
    fn a_tree_of_a_machine_has_its_nodes_and_only_the_selected_places() {
        let machine = hierarchy("tree:2:3");
        let all = Tree::of(&machine, (0, 0), 2, &|leaf| Some(leaf as u32)).expect("there are PEs");
        assert_eq!((all.places(), all.arities()), ((0..6).collect(), vec![(2, 1), (3, 2)]));
        let kept = |leaf| [0, 4, 5].contains(&leaf).then_some(10 * leaf as u32);
        let some = Tree::of(&machine, (0, 0), 2, &kept).expect("there are PEs");
        assert_eq!((some.places(), some.arities()), (vec![0, 40, 50], vec![(2, 2)]));
        let right = Tree::of(&machine, (1, 1), 2, &kept).expect("there are PEs");
        assert_eq!((right.places(), right.arities()), (vec![40, 50], vec![(2, 1)]));
        assert_eq!(Tree::of(&machine, (0, 0), 2, &|_| None), None);
        let nodes = Tree::of(&machine, (0, 0), 1, &|node| Some(node as u32)).expect("there are nodes");
        let whole = nodes.with(|node| {
            Tree::of(&machine, (1, node as usize), 2, &|leaf| Some(leaf as u32)).expect("there are PEs")
        });
        assert_eq!((whole.places(), whole.arities()), (all.places(), all.arities()));
    }

    #[test]
    fn processes_that_communicate_are_below_the_same_nodes() {
        // Two squares of four processes, numbered alternately and connected by a light edge.
        let square = |first: u32| [(0, 2), (2, 4), (4, 6), (6, 0)].map(|(a, b)| (a + first, b + first, 9));
        let graph = Graph::new(8, square(0).into_iter().chain(square(1)).chain([(0, 1, 1)]));
        let tree = Tree::of(&hierarchy("tree:2:4"), (0, 0), 2, &|leaf| Some(leaf as u32));
        let partitioner = Partitioner::Metis;
        let processes = Processes { graph: &graph, weights: &[1; 8], rooms: &[1; 8], partitioner, seed: 0 };
        let place_of = processes.map(&tree.expect("there are PEs")).expect("a mapping");
        let mut places = place_of.clone();
        places.sort_unstable();
        assert_eq!(places, (0..8).collect::<Vec<_>>());
        for v in 0..8 {
            assert_eq!(place_of[v] / 4, place_of[v % 2] / 4, "{place_of:?}");
        }
    }

    #[test]
    fn every_place_is_filled_exactly() {
        let graph = Graph::of(&load("mesh:10x10").expect("a generator"));
        let mut tree = Tree::default();
        let [a, b, c, d] = [2, 0, 3, 1].map(|place| tree.leaf(place));
        let right = tree.parent(vec![b, c, d]);
        tree.parent(vec![a, right]);
        let rooms = [20, 50, 13, 17];
        let partitioner = Partitioner::Metis;
        let processes = Processes { graph: &graph, weights: &[1; 100], rooms: &rooms, partitioner, seed: 3 };
        let place_of = processes.map(&tree).expect("an assignment");
        let mut loads = [0; 4];
        place_of.iter().for_each(|&place| loads[place as usize] += 1);
        assert_eq!(loads, rooms);
    }

    #[test]
    fn a_tree_as_deep_as_its_number_of_places_does_not_overflow_the_stack() {
        let mut tree = Tree::default();
        let mut top = tree.leaf(0);
        for place in 1..3000 {
            let leaf = tree.leaf(place);
            top = tree.parent(vec![top, leaf]);
        }
        assert_eq!(
            (
                tree.places().len(),
                tree.with(|place| {
                    let mut tree = Tree::default();
                    tree.leaf(place);
                    tree
                })
                .arities()
            ),
            (3000, vec![(2, 2999)])
        );
    }
}
