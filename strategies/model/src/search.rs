//! Graph searches: breadth-first search and shortest paths.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Breadth-first search: iterates over the vertices reachable from `start`, nearest first. Each vertex comes with its
/// predecessor and the arc from it (`None` for `start`). `leaving` gives the arcs of a vertex as (target, arc); arcs
/// are explored in this order.
pub fn breadth_first<A, I: IntoIterator<Item = (usize, A)>>(
    vertices: usize,
    start: usize,
    mut leaving: impl FnMut(usize) -> I,
) -> impl Iterator<Item = (usize, Option<(usize, A)>)> {
    let mut is_visited = vec![false; vertices];
    is_visited[start] = true;
    let mut queue = VecDeque::from([(start, None)]);
    std::iter::from_fn(move || {
        let (vertex, predecessor) = queue.pop_front()?;
        for (next, arc) in leaving(vertex) {
            if !std::mem::replace(&mut is_visited[next], true) {
                queue.push_back((next, Some((vertex, arc))));
            }
        }
        Some((vertex, predecessor))
    })
}

/// For each vertex: the cost of the cheapest path from `start` (E. W. Dijkstra, 1959), infinite if unreachable.
/// `leaving` gives the arcs of a vertex as (target, cost); costs are not negative.
pub fn cheapest<I: IntoIterator<Item = (usize, f64)>>(
    vertices: usize,
    start: usize,
    mut leaving: impl FnMut(usize) -> I,
) -> Vec<f64> {
    let mut cost_of = vec![f64::INFINITY; vertices];
    cost_of[start] = 0.0;
    // The bit patterns of non-negative floats have the same order as the floats.
    let mut queue = BinaryHeap::from([Reverse((0u64, start))]);
    while let Some(Reverse((bits, vertex))) = queue.pop() {
        let cost = f64::from_bits(bits);
        if cost > cost_of[vertex] {
            continue;
        }
        for (next, arc_cost) in leaving(vertex) {
            let sum = cost + arc_cost;
            if sum < cost_of[next] {
                cost_of[next] = sum;
                queue.push(Reverse((sum.to_bits(), next)));
            }
        }
    }
    cost_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheapest_prefers_low_cost_over_few_arcs() {
        let arcs = [(0, 1, 9.0), (0, 2, 1.0), (2, 3, 0.5), (3, 1, 2.0), (1, 0, 0.0), (4, 1, 1.0)];
        let leaving = |vertex: usize| arcs.into_iter().filter(move |arc| arc.0 == vertex);
        let found = cheapest(5, 0, |vertex| leaving(vertex).map(|(_, to, cost)| (to, cost)));
        assert_eq!(found, [0.0, 3.5, 1.0, 1.5, f64::INFINITY]);
    }

    #[test]
    fn breadth_first_visits_nearest_vertices_first_and_keeps_the_first_arc() {
        let arcs = [(0, 2), (0, 1), (1, 3), (2, 3), (3, 0), (4, 0)];
        let leaving = |vertex: usize| {
            let own = arcs.iter().enumerate().filter(move |(_, arc)| arc.0 == vertex);
            own.map(|(number, arc)| (arc.1, number)).collect::<Vec<_>>()
        };
        let visited: Vec<_> = breadth_first(5, 0, leaving).collect();
        assert_eq!(visited, [(0, None), (2, Some((0, 0))), (1, Some((0, 1))), (3, Some((2, 3)))]);
    }
}
