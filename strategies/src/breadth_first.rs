//! Breadth-first search of whatever has vertices and arcs.

use std::collections::VecDeque;

/// The vertices below `vertices` that can be reached from `start`, nearest first, as they are asked for: each with the
/// vertex and the arc by which it is met, which `start` has none of. `leaving` gives the arcs of a vertex, as (where it
/// leads, arc), in the order in which they are looked at.
pub(crate) fn breadth_first<A, I: IntoIterator<Item = (usize, A)>>(
    vertices: usize,
    start: usize,
    mut leaving: impl FnMut(usize) -> I,
) -> impl Iterator<Item = (usize, Option<(usize, A)>)> {
    let mut is_met = vec![false; vertices];
    is_met[start] = true;
    let mut queue = VecDeque::from([(start, None)]);
    std::iter::from_fn(move || {
        let (vertex, by) = queue.pop_front()?;
        for (next, arc) in leaving(vertex) {
            if !std::mem::replace(&mut is_met[next], true) {
                queue.push_back((next, Some((vertex, arc))));
            }
        }
        Some((vertex, by))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_are_met_nearest_first_and_by_the_first_arc() {
        let arcs = [(0, 2), (0, 1), (1, 3), (2, 3), (3, 0), (4, 0)];
        let leaving = |vertex: usize| {
            let own = arcs.iter().enumerate().filter(move |(_, arc)| arc.0 == vertex);
            own.map(|(number, arc)| (arc.1, number)).collect::<Vec<_>>()
        };
        let met: Vec<_> = breadth_first(5, 0, leaving).collect();
        assert_eq!(met, [(0, None), (2, Some((0, 0))), (1, Some((0, 1))), (3, Some((2, 3)))]);
    }
}
