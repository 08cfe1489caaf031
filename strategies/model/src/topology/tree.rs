//! `tree:16:8:4/100:10:1`: a tree with the PEs as leaves.
//!
//! Arities and distances are given from the top level: here the root has 16 children, each of them 8 children, each of
//! them 4 PEs. Two PEs have distance 1 if they meet at the lowest level, 10 at the middle level, 100 at the root.
//! Without distances, a distance is the number of links crossed: 2 per level. Every message goes up to the lowest
//! common ancestor, then down.
//!
//! Link lengths are such that the length of a route is the distance of its ends: a level contributes the difference
//! between its distance and that of the level below, half on the way up and half on the way down; an odd unit is on the
//! way down. (With a lowest distance of 1, the links out of the PEs have length 0.)

use std::sync::Arc;

use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Shape, Topology, count_pes, per_level,
};

/// The entry of `tree:..` in the list of machines.
pub const KIND: Kind = Kind {
    name: "tree",
    form: "tree:16:8:4/100:10:1",
    help: "A tree with PEs as leaves: arities, and the distance of two PEs that meet at a level, per level from the \
           top. Without distances, links are counted.",
    params: &[],
    item: |text| Ok(Arc::new(Tree::parse(text)?)),
};

/// The largest number of levels.
const MAX_LEVELS: usize = 32;

/// A tree with PEs as leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// From the lowest level to the top.
    levels: Vec<Level>,
    pes: usize,
    links: usize,
}

/// A level of nodes with the same number of children.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    arity: usize,
    /// The distance of two PEs that meet in a node of this level.
    distance: u32,
    /// The number of PEs below a child of this level.
    pes_per_child: usize,
    /// The number of the link up from the first child; the next number is the link down to it, and so on.
    first_link: usize,
    /// Lengths of the links from a child and to a child.
    up: u32,
    down: u32,
}

impl Tree {
    /// The tree with these (arity, distance) pairs, from the top level.
    ///
    /// # Errors
    /// If there is no level or more than 32, an arity or distance is 0, a distance is larger than that of the level
    /// above, or there are too many PEs.
    pub fn new(levels: &[(usize, u32)]) -> Result<Self, String> {
        if levels.is_empty() || levels.len() > MAX_LEVELS {
            return Err(format!("a tree has 1 to {MAX_LEVELS} levels, this one has {}", levels.len()));
        }
        let pes = count_pes(levels.iter().map(|&(arity, _)| arity))?;
        let mut tree = Tree { levels: Vec::with_capacity(levels.len()), pes, links: 0 };
        let (mut pes_per_child, mut below) = (1, 0);
        for &(arity, distance) in levels.iter().rev() {
            if distance == 0 || distance < below {
                return Err(format!(
                    "distances are at least 1 and do not grow towards the leaves; found {distance} above {below}"
                ));
            }
            let (added, first_link) = (distance - below, tree.links);
            let (up, down) = (added / 2, added - added / 2);
            tree.links += 2 * (pes / pes_per_child);
            tree.levels.push(Level { arity, distance, pes_per_child, first_link, up, down });
            pes_per_child *= arity;
            below = distance;
        }
        Ok(tree)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let expected = || format!("expected arities and distances such as 16:8:4/100:10:1, found `{text}`");
        let (arities, distances) = text.split_once('/').map_or((text, None), |(a, d)| (a, Some(d)));
        let arities: Vec<usize> = per_level(arities).ok_or_else(expected)?;
        let distances: Vec<u32> = match distances {
            Some(text) => per_level(text).ok_or_else(expected)?,
            None => (1..=arities.len() as u32).rev().map(|level| 2 * level).collect(),
        };
        if arities.len() != distances.len() {
            let (levels, given) = (arities.len(), distances.len());
            return Err(format!(
                "there are {levels} arities, but {given} distances; give one for each level"
            ));
        }
        Tree::new(&arities.into_iter().zip(distances).collect::<Vec<_>>())
    }

    /// The name of node `node` of height `height`; nodes of height 0 are PEs.
    fn name(height: usize, node: usize) -> String {
        if height == 0 { node.to_string() } else { format!("switch {height}.{node}") }
    }
}

impl Topology for Tree {
    fn spec(&self) -> String {
        let join = |f: fn(&Level) -> String| self.levels.iter().rev().map(f).collect::<Vec<_>>().join(":");
        format!("tree:{}/{}", join(|level| level.arity.to_string()), join(|level| level.distance.to_string()))
    }

    fn pes(&self) -> usize {
        self.pes
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        let apart = |level: &&Level| a / level.pes_per_child != b / level.pes_per_child;
        self.levels.iter().take_while(apart).last().map_or(0, |level| level.distance)
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        for level in self.levels.iter().rev() {
            let size = level.pes_per_child * level.arity;
            let first = a / size * size;
            row[first..first + size].fill(level.distance);
        }
        row[a] = 0;
    }

    fn diameter(&self) -> u32 {
        self.distance(0, self.pes - 1)
    }

    fn links(&self) -> usize {
        self.links
    }

    fn link(&self, id: usize) -> Link {
        let height = self.levels.partition_point(|level| level.first_link <= id) - 1;
        let level = &self.levels[height];
        let child = (id - level.first_link) / 2;
        let (below, above) = (Self::name(height, child), Self::name(height + 1, child / level.arity));
        let is_up = (id - level.first_link).is_multiple_of(2);
        let (name, length) = if is_up {
            (format!("{below} -> {above}"), level.up)
        } else {
            (format!("{above} -> {below}"), level.down)
        };
        Link { name, bandwidth: DEFAULT_BANDWIDTH, latency_seconds: DEFAULT_LATENCY_SECONDS, length }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let apart = |level: &&Level| a / level.pes_per_child != b / level.pes_per_child;
        let height = self.levels.iter().take_while(apart).count();
        let levels = &self.levels[..height];
        links.extend(levels.iter().map(|level| level.first_link + 2 * (a / level.pes_per_child)));
        links.extend(levels.iter().rev().map(|level| level.first_link + 2 * (b / level.pes_per_child) + 1));
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        let is_one = |level: &Level| {
            let size = level.pes_per_child * level.arity;
            a / size == b / size
        };
        let height = self.levels.iter().position(is_one)?;
        let size = self.levels[height].pes_per_child * self.levels[height].arity;
        (a != b).then(|| Self::name(height + 1, a / size))
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        Some(Hierarchy::balanced(&self.levels.iter().rev().map(|level| level.arity).collect::<Vec<_>>()))
    }

    fn shape(&self) -> Shape {
        self.hierarchy().map_or(Shape::Any, Shape::Tree)
    }
}
