//! The leaves of a forest of quadtrees over a periodic box. Leaves that share an edge differ by at most one level.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::cells::Side;

/// A node: its level, and its position among the nodes of this level.
pub type Node = [i32; 3];

/// The four sides of a node.
pub const SIDES: [Side; 4] = [
    Side { dimension: 0, upper: false },
    Side { dimension: 0, upper: true },
    Side { dimension: 1, upper: false },
    Side { dimension: 1, upper: true },
];

/// The leaves that touch a side of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Neighbor {
    /// One of the same level.
    Same(Node),
    /// One of the next coarser level; this half of its side touches the leaf.
    Coarser(Node, usize),
    /// Two of the next finer level, in ascending order of their positions.
    Finer([Node; 2]),
}

impl Neighbor {
    /// The leaves.
    pub fn leaves(self) -> impl Iterator<Item = Node> {
        let (first, second) = match self {
            Neighbor::Same(node) | Neighbor::Coarser(node, _) => (node, None),
            Neighbor::Finer([first, second]) => (first, Some(second)),
        };
        [Some(first), second].into_iter().flatten()
    }
}

/// The parent of a node.
pub fn parent([level, x, y]: Node) -> Node {
    [level - 1, x >> 1, y >> 1]
}

/// The children of a node, the first dimension fastest.
pub fn children([level, x, y]: Node) -> [Node; 4] {
    [0, 1, 2, 3].map(|number| [level + 1, 2 * x + number % 2, 2 * y + number / 2])
}

/// The number of a node among the [`children`] of its parent.
pub fn number([_, x, y]: Node) -> usize {
    (x % 2 + 2 * (y % 2)) as usize
}

/// The leaves of a forest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    roots: [i32; 2],
    levels: i32,
    leaves: BTreeSet<Node>,
}

impl Tree {
    /// Roots without children, for a forest of at most `levels` levels.
    pub fn new(roots: [i32; 2], levels: i32) -> Self {
        let leaves = (0..roots[0]).flat_map(|x| (0..roots[1]).map(move |y| [0, x, y])).collect();
        Tree { roots, levels, leaves }
    }

    /// The leaves, in ascending order.
    pub fn leaves(&self) -> &BTreeSet<Node> {
        &self.leaves
    }

    /// The neighbor of a leaf on a side. A leaf may be its own neighbor.
    pub fn neighbor(&self, leaf: Node, side: Side) -> Neighbor {
        let (d, across) = (1 + usize::from(side.dimension), 2 - usize::from(side.dimension));
        let mut same = leaf;
        same[d] = (leaf[d] + if side.upper { 1 } else { -1 }).rem_euclid(self.roots[d - 1] << leaf[0]);
        if self.leaves.contains(&same) {
            return Neighbor::Same(same);
        }
        if self.leaves.contains(&parent(same)) {
            return Neighbor::Coarser(parent(same), (leaf[across] % 2) as usize);
        }
        let facing = children(same).into_iter().filter(|child| (child[d] % 2 == 0) == side.upper);
        let mut finer = [same; 2];
        finer.iter_mut().zip(facing).for_each(|(to, child)| *to = child);
        Neighbor::Finer(finer)
    }

    /// The neighbors of a leaf on the four [`SIDES`].
    pub fn neighbors(&self, leaf: Node) -> [Neighbor; 4] {
        SIDES.map(|side| self.neighbor(leaf, side))
    }

    /// Refines leaves that want 1 and coarsens those that want -1, as far as levels permit. A leaf that does not want it
    /// is refined, or not coarsened, if its neighbor would be finer by two levels. Four leaves are coarsened
    /// together or not at all. Returns the change of every previous leaf.
    pub fn adapt(&mut self, wants: &BTreeMap<Node, i32>) -> BTreeMap<Node, i32> {
        let mut levels: BTreeMap<Node, i32> = BTreeMap::new();
        for &leaf in &self.leaves {
            let want = wants.get(&leaf).copied().unwrap_or_default();
            levels.insert(leaf, (leaf[0] + want).clamp(0, self.levels - 1));
        }
        // Levels only rise, so the loop ends; the result does not depend on the order of the leaves.
        while self.raise(&mut levels) {}
        let mut changes = BTreeMap::new();
        for (leaf, level) in levels {
            changes.insert(leaf, level - leaf[0]);
            if level > leaf[0] {
                self.leaves.remove(&leaf);
                self.leaves.extend(children(leaf));
            } else if level < leaf[0] {
                self.leaves.remove(&leaf);
                self.leaves.insert(parent(leaf));
            }
        }
        changes
    }

    /// Raises the intended levels of leaves that must not stay coarse; returns whether there were any.
    fn raise(&self, levels: &mut BTreeMap<Node, i32>) -> bool {
        let mut raised = false;
        for &leaf in &self.leaves {
            let level = levels[&leaf];
            let coarsens = |node: &Node| levels.get(node).is_some_and(|&level| level < node[0]);
            if level < leaf[0] && !children(parent(leaf)).iter().all(coarsens) {
                levels.insert(leaf, leaf[0]);
                raised = true;
            }
            for neighbor in self.neighbors(leaf).into_iter().flat_map(Neighbor::leaves) {
                let least = levels[&leaf] - 1;
                if levels[&neighbor] < least {
                    levels.insert(neighbor, least);
                    raised = true;
                }
            }
        }
        raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise_model::random::splitmix;

    #[test]
    fn adapted_leaves_cover_the_box_once_and_are_balanced() {
        let mut tree = Tree::new([3, 2], 5);
        for round in 0..60u64 {
            let before = tree.clone();
            let mut random = round;
            let wants = tree.leaves().iter().map(|&leaf| {
                random = splitmix(random);
                (leaf, [-1, -1, 0, 1][(random % 4) as usize])
            });
            // Every third round all leaves want to be coarser.
            let wants = wants.map(|(leaf, want)| (leaf, if round % 3 == 2 { -1 } else { want })).collect();
            let changes = tree.adapt(&wants);
            assert!(changes.keys().eq(before.leaves()));
            let area: i32 = tree.leaves().iter().map(|leaf| 1 << (2 * (4 - leaf[0]))).sum();
            assert_eq!(area, 6 << 8, "round {round}");
            for &leaf in tree.leaves() {
                assert!(leaf[0] == 0 || !tree.leaves().contains(&parent(leaf)), "{leaf:?}");
                for side in SIDES {
                    for neighbor in tree.neighbor(leaf, side).leaves() {
                        assert!(tree.leaves().contains(&neighbor), "{leaf:?} {side:?} {neighbor:?}");
                        let back: Vec<_> = tree.neighbor(neighbor, side.opposite()).leaves().collect();
                        assert!(back.contains(&leaf), "{neighbor:?} {back:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn leaves_that_want_to_be_coarser_return_to_the_roots() {
        let mut tree = Tree::new([2, 2], 4);
        tree.adapt(&BTreeMap::from([([0, 0, 0], 1)]));
        tree.adapt(&BTreeMap::from([([1, 1, 1], 1)]));
        // Two neighbors of the refined child are roots, which are refined, too.
        assert_eq!(tree.leaves().len(), 7 + 4 + 4 + 1);
        for _ in 0..3 {
            let wants = tree.leaves().iter().map(|&leaf| (leaf, -1)).collect();
            tree.adapt(&wants);
        }
        assert_eq!(tree, Tree::new([2, 2], 4));
    }
}
