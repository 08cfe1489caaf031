//! Where the code of the points stands in the method of a flow.
//!
//! Code that is jumped to stands behind the code that jumps there, so a jump is a `break` with the variables as value, and the compiler sees
//! where each one goes. Only points between which the flow can go around without a wait need a loop over a step.

use super::graph::{Graph, Kind, Point, Step};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Where the code of a point stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: the flow leaves the method there.
    Outside,
    /// Where the message arrives that alone leads to it.
    AtItsMessage,
    /// In this group.
    Group(usize),
}

/// Points whose code stands together.
pub struct Group {
    /// The points.
    pub points: Vec<Point>,
    /// Whether the flow can go from them to themselves without a wait.
    pub is_loop: bool,
}

/// Where the code of all points stands.
pub struct Layout {
    /// By point, its place.
    pub places: Vec<Place>,
    /// In the order of the code: jumps go to later groups, or stay in a loop.
    pub groups: Vec<Group>,
}

impl Layout {
    /// The layout of a flow.
    pub fn of(graph: &Graph) -> Self {
        let count = graph.nodes.len();
        let jumps: Vec<Vec<Point>> = graph.nodes.iter().map(|node| targets(&node.code)).collect();
        let (mut jumped, mut received) = (vec![0; count], vec![0; count]);
        jumps.iter().flatten().for_each(|&to| jumped[to] += 1);
        received[graph.start] += 1;
        for node in &graph.nodes {
            if let Kind::Wait(cases) = &node.kind {
                cases.iter().for_each(|case| received[case.then] += 1);
            }
        }
        let mut places = vec![Place::Outside; count];
        let mut left = BTreeSet::new();
        for (point, node) in graph.nodes.iter().enumerate() {
            match node.kind {
                Kind::Inside if jumped[point] == 0 && received[point] == 1 => {
                    places[point] = Place::AtItsMessage
                }
                Kind::Inside => drop(left.insert(point)),
                Kind::Idle | Kind::Wait(_) => {}
            }
        }
        let reached: Vec<BTreeSet<Point>> = (0..count).map(|point| reachable(&jumps, &left, point)).collect();
        let is_in_loop = |point: Point| reached[point].contains(&point);
        let mut groups: Vec<Group> = Vec::new();
        // Points, with itself, that a point reaches: fewer than any point that reaches it and is not reached by it.
        let size = |point: Point| reached[point].len() + usize::from(!is_in_loop(point));
        while let Some(&point) = left.iter().max_by_key(|&&point| (size(point), Reverse(point))) {
            let is_together = |other: &Point| {
                *other == point || reached[point].contains(other) && reached[*other].contains(&point)
            };
            let points: Vec<Point> = left.iter().copied().filter(is_together).collect();
            for &point in &points {
                left.remove(&point);
                places[point] = Place::Group(groups.len());
            }
            groups.push(Group { points, is_loop: is_in_loop(point) });
        }
        Layout { places, groups }
    }

    /// The points in loops.
    pub fn in_loops(&self) -> impl Iterator<Item = Point> {
        self.groups.iter().filter(|group| group.is_loop).flat_map(|group| group.points.iter().copied())
    }
}

/// The points of a set that are reachable from a point by at least one jump.
fn reachable(jumps: &[Vec<Point>], of: &BTreeSet<Point>, from: Point) -> BTreeSet<Point> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(point) = next.pop() {
        next.extend(jumps[point].iter().filter(|to| of.contains(to) && found.insert(**to)));
    }
    found
}

/// The points to which code jumps.
fn targets(code: &[Step]) -> Vec<Point> {
    let mut found = Vec::new();
    for step in code {
        match step {
            Step::Goto(to, _) => found.push(*to),
            Step::Rust(fragment, _) => found.extend(fragment.jumps.iter().flatten()),
            Step::Choice { head, arms, .. } => {
                found.extend(head.jumps.iter().flatten());
                arms.iter().for_each(|arm| found.extend(targets(&arm.code)));
            }
        }
    }
    found
}
