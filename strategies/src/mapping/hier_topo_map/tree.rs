//! The trees that processes are mapped along, and the recursion that does it.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers",
//! J. Supercomput. 71, 2015, algorithm 1 (recursive tree mapping, figure 4): at every node of the tree the
//! processes are partitioned into a part for each child, as large as what is below it, so that few bytes are
//! exchanged between parts. Section 3.1.2 notes that recursive bipartitioning (algorithm 2) is the same along
//! a binary tree; so here there is one recursion, and whoever has a machine makes a tree of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::graph::Graph;
use crate::partition::exact::{self, Partitioner};
use crate::strategy::StrategyError;
use crate::topology::Hierarchy;

/// A rooted tree whose leaves are places of a machine: nodes, or PEs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// By vertex: its children, which come before it; none of a leaf.
    children: Vec<Vec<u32>>,
    /// By vertex: the place that a leaf is.
    places: Vec<u32>,
}

impl Tree {
    /// Adds a leaf; returns its vertex.
    pub fn leaf(&mut self, place: u32) -> u32 {
        self.children.push(Vec::new());
        self.places.push(place);
        self.places.len() as u32 - 1
    }

    /// Adds the parent of these vertices, at least one, or returns the only one. What is added last is the root.
    pub fn parent(&mut self, children: Vec<u32>) -> u32 {
        if let [only] = children[..] {
            return only;
        }
        let parent = self.leaf(u32::MAX);
        self.children[parent as usize] = children;
        parent
    }

    /// Adds a copy of another tree with `place_of` its places; returns its root.
    pub fn graft(&mut self, other: &Tree, place_of: impl Fn(u32) -> u32) -> u32 {
        let first = self.places.len() as u32;
        for (children, &place) in other.children.iter().zip(&other.places) {
            let vertex = self.leaf(if children.is_empty() { place_of(place) } else { place });
            self.children[vertex as usize] = children.iter().map(|child| first + child).collect();
        }
        self.places.len() as u32 - 1
    }

    /// The part of a machine's tree that is below a node of it, down to the nodes of `until`; each that `place_of`
    /// gives a place to is a leaf, and who has none below is left out. None if there is no place.
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

    /// The places of its leaves, from left to right.
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

    /// This tree with its leaves numbered from left to right.
    pub fn numbered(&self) -> Tree {
        let mut tree = self.clone();
        let number: BTreeMap<u32, u32> = self.places().into_iter().zip(0..).collect();
        let leaves = tree.children.iter().zip(&mut tree.places).filter(|(children, _)| children.is_empty());
        leaves.for_each(|(_, place)| *place = number[place]);
        tree
    }

    /// This tree with another in place of every leaf.
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

    /// How many vertices have how many children, of those that have some: (children, vertices), ascending.
    pub fn arities(&self) -> Vec<(usize, usize)> {
        let mut counts = BTreeMap::new();
        for children in self.children.iter().filter(|children| !children.is_empty()) {
            *counts.entry(children.len()).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// The places below every vertex, ascending, in ascending order: two trees that have the same are the same.
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

    /// By vertex: the room of the places below it.
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

/// What is mapped along a tree.
pub struct Processes<'a> {
    /// What they exchange, in bytes both ways together.
    pub graph: &'a Graph,
    /// What each takes of a place's room.
    pub weights: &'a [u32],
    /// By place: its room, which all together is enough.
    pub rooms: &'a [u64],
    /// What cuts.
    pub partitioner: Partitioner,
    /// What is random comes from it.
    pub seed: u64,
}

/// Processes that go below a vertex of the tree, and what they exchange.
struct Piece<'a> {
    vertex: u32,
    processes: Vec<u32>,
    /// Below a leaf nobody looks at it.
    graph: Cow<'a, Graph>,
}

impl Processes<'_> {
    /// The place of every process: algorithm 1, a level of the tree at a time, its vertices in parallel.
    ///
    /// # Errors
    /// When the partitioner fails.
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
            let below = inner.into_par_iter().map(|piece| self.cut(tree, &rooms, piece));
            pieces = below.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        }
        Ok(place_of)
    }

    /// The pieces of a piece, one for each of the children of its vertex that gets any process.
    fn cut(
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
    use super::*;
    use crate::graph::load;
    use crate::topology;

    fn hierarchy(spec: &str) -> Hierarchy {
        topology::parse(spec).expect("a machine").hierarchy().expect("it is a tree")
    }

    #[test]
    fn a_tree_of_a_machine_has_its_nodes_and_only_the_places_that_are_kept() {
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
    fn processes_that_talk_are_below_the_same_nodes() {
        // Two squares of four joined by a thin edge, numbered alternately.
        let square = |first: u32| [(0, 2), (2, 4), (4, 6), (6, 0)].map(|(a, b)| (a + first, b + first, 9));
        let graph = Graph::new(8, square(0).into_iter().chain(square(1)).chain([(0, 1, 1)]));
        let tree = Tree::of(&hierarchy("tree:2:4"), (0, 0), 2, &|leaf| Some(leaf as u32));
        let partitioner = Partitioner::Metis;
        let processes = Processes { graph: &graph, weights: &[1; 8], rooms: &[1; 8], partitioner, seed: 0 };
        let place_of = processes.map(&tree.expect("there are PEs")).expect("METIS serves this");
        let mut places = place_of.clone();
        places.sort_unstable();
        assert_eq!(places, (0..8).collect::<Vec<_>>());
        for v in 0..8 {
            assert_eq!(place_of[v] / 4, place_of[v % 2] / 4, "{place_of:?}");
        }
    }

    #[test]
    fn a_place_takes_exactly_its_room() {
        let graph = Graph::of(&load("mesh:10x10").expect("a generator"));
        let mut tree = Tree::default();
        let [a, b, c, d] = [2, 0, 3, 1].map(|place| tree.leaf(place));
        let right = tree.parent(vec![b, c, d]);
        tree.parent(vec![a, right]);
        let rooms = [20, 50, 13, 17];
        let partitioner = Partitioner::Metis;
        let processes = Processes { graph: &graph, weights: &[1; 100], rooms: &rooms, partitioner, seed: 3 };
        let place_of = processes.map(&tree).expect("it is served");
        let mut loads = [0; 4];
        place_of.iter().for_each(|&place| loads[place as usize] += 1);
        assert_eq!(loads, rooms);
    }

    #[test]
    fn a_tree_as_deep_as_it_has_places_is_no_problem() {
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
