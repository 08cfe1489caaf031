//! Flows that are nearly conserved made into paths that carry every byte, and prices into a bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::wiring::Core;
use crate::breadth_first::breadth_first;

/// Flows below this part of what a sender sends are noise of the solver.
const NOISE: f64 = 1e-10;

/// The bytes over each arc when every demand goes along paths on which the flow of its star is, as much on each
/// as there is, and what is left for want of flow by a path with the fewest links; and, where there are mirrors, as much
/// comes back over those.
pub(super) fn carry(core: &Core, flows: &[Vec<f64>]) -> Vec<f64> {
    let mut loads = vec![0.0; core.arcs.len()];
    for (number, (star, flow)) in core.stars.iter().zip(flows).enumerate() {
        let (onward, mut flow) = (core.onward(number), flow.clone());
        let sum: f64 = star.ends.iter().map(|&(_, bytes)| bytes as f64).sum();
        let noise = NOISE * sum;
        for &(end, bytes) in &star.ends {
            let mut left = bytes as f64;
            while left > 0.0 {
                let path = path(&onward, star.hub, end, |arc| flow[arc] > noise);
                let most = path.iter().flatten().map(|&arc| flow[arc]).fold(left, f64::min);
                let (path, most) = match path {
                    Some(path) => (path, most),
                    // Every vertex can be reached, or there would be no route.
                    None => (path_of_any(&onward, star.hub, end), left),
                };
                for &arc in &path {
                    flow[arc] -= most;
                    loads[arc] += most;
                    if let Some(mirrors) = &core.mirrors {
                        loads[mirrors[arc]] += most;
                    }
                }
                left -= most;
            }
        }
    }
    loads
}

fn path_of_any(onward: &[Vec<(usize, usize)>], from: usize, to: usize) -> Vec<usize> {
    path(onward, from, to, |_| true).unwrap_or_default()
}

/// A path with the fewest arcs of those that are open, from its end on.
fn path(
    onward: &[Vec<(usize, usize)>],
    from: usize,
    to: usize,
    is_open: impl Fn(usize) -> bool,
) -> Option<Vec<usize>> {
    let mut came_by = vec![None; onward.len()];
    let open = |vertex: usize| onward[vertex].iter().copied().filter(|&(_, arc)| is_open(arc));
    for (vertex, by) in breadth_first(onward.len(), from, open) {
        came_by[vertex] = by;
        if vertex == to {
            break;
        }
    }
    let (mut path, mut at) = (Vec::new(), to);
    while at != from {
        let (before, arc) = came_by[at]?;
        path.push(arc);
        at = before;
    }
    Some(path)
}

/// Seconds that no routing of the core's demands can go below: what they cost by the cheapest paths at these prices, which
/// are the same for mirrors, over what all bandwidths cost together (weak duality).
pub(super) fn bound(core: &Core, bandwidth: &[f64], prices: &[f64]) -> f64 {
    let worth: f64 = core.arcs.iter().zip(prices).map(|(arc, price)| price * bandwidth[arc.link]).sum();
    if worth <= 0.0 {
        return 0.0;
    }
    let mut sum = 0.0;
    for (number, star) in core.stars.iter().enumerate() {
        let onward = core.onward(number);
        let next = |&(next, arc): &(usize, usize)| (next, prices[arc]);
        let cheapest = cheapest(core.vertices, star.hub, |vertex| onward[vertex].iter().map(next));
        sum += star.ends.iter().map(|&(end, bytes)| bytes as f64 * cheapest[end]).sum::<f64>();
    }
    // As much comes back.
    if core.mirrors.is_some() { 2.0 * sum / worth } else { sum / worth }
}

/// By vertex: the price of the cheapest path from one (E. W. Dijkstra, 1959); `leaving` gives the vertices next to one
/// and the prices of the ways there.
pub(super) fn cheapest<I: Iterator<Item = (usize, f64)>>(
    vertices: usize,
    from: usize,
    leaving: impl Fn(usize) -> I,
) -> Vec<f64> {
    let mut price_of = vec![f64::INFINITY; vertices];
    price_of[from] = 0.0;
    // Prices are not negative, and of such numbers the bits have the same order.
    let mut queue = BinaryHeap::from([Reverse((0u64, from))]);
    while let Some(Reverse((bits, vertex))) = queue.pop() {
        let price = f64::from_bits(bits);
        if price > price_of[vertex] {
            continue;
        }
        for (next, more) in leaving(vertex) {
            let sum = price + more;
            if sum < price_of[next] {
                price_of[next] = sum;
                queue.push(Reverse((sum.to_bits(), next)));
            }
        }
    }
    price_of
}
