//! Flows that are nearly conserved made into paths that carry every byte, and prices into a bound.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::wiring::Core;

/// Flows below this part of what a sender sends are noise of the solver.
const NOISE: f64 = 1e-10;

/// The bytes over each arc when every demand goes along paths on which the flow of its sender is, as much on each
/// as there is, and what is left for want of flow by a path with the fewest links.
pub(super) fn carry(core: &Core, flows: &[Vec<f64>]) -> Vec<f64> {
    let mut loads = vec![0.0; core.arcs.len()];
    for (number, ((sender, receivers), flow)) in core.demands.iter().zip(flows).enumerate() {
        let (leaving, mut flow) = (core.leaving(number), flow.clone());
        let sum: f64 = receivers.iter().map(|&(_, bytes)| bytes as f64).sum();
        let noise = NOISE * sum;
        for &(receiver, bytes) in receivers {
            let mut left = bytes as f64;
            while left > 0.0 {
                let path = path(core, &leaving, *sender, receiver, |arc| flow[arc] > noise);
                let most = path.iter().flatten().map(|&arc| flow[arc]).fold(left, f64::min);
                let (path, most) = match path {
                    Some(path) => (path, most),
                    // Every vertex can be reached, or there would be no route.
                    None => (path_of_any(core, &leaving, *sender, receiver), left),
                };
                for &arc in &path {
                    flow[arc] -= most;
                    loads[arc] += most;
                }
                left -= most;
            }
        }
    }
    loads
}

fn path_of_any(core: &Core, leaving: &[Vec<u32>], from: usize, to: usize) -> Vec<usize> {
    path(core, leaving, from, to, |_| true).unwrap_or_default()
}

/// A path with the fewest arcs of those that `is_open`.
fn path(
    core: &Core,
    leaving: &[Vec<u32>],
    from: usize,
    to: usize,
    is_open: impl Fn(usize) -> bool,
) -> Option<Vec<usize>> {
    let mut came_by = vec![None; core.vertices];
    let mut queue = VecDeque::from([from]);
    while let Some(vertex) = queue.pop_front() {
        if vertex == to {
            break;
        }
        for &arc in &leaving[vertex] {
            let arc = arc as usize;
            let next = core.arcs[arc].to;
            if next != from && came_by[next].is_none() && is_open(arc) {
                came_by[next] = Some(arc);
                queue.push_back(next);
            }
        }
    }
    let (mut path, mut at) = (Vec::new(), to);
    while at != from {
        let arc = came_by[at]?;
        path.push(arc);
        at = core.arcs[arc].from;
    }
    path.reverse();
    Some(path)
}

/// Seconds that no routing of the core's demands can go below: what they cost by the cheapest paths at these prices,
/// over what all bandwidths cost together (weak duality).
pub(super) fn bound(core: &Core, bandwidth: &[f64], prices: &[f64]) -> f64 {
    let worth: f64 = core.arcs.iter().zip(prices).map(|(arc, price)| price * bandwidth[arc.link]).sum();
    if worth <= 0.0 {
        return 0.0;
    }
    let mut sum = 0.0;
    for (number, (sender, receivers)) in core.demands.iter().enumerate() {
        let leaving = core.leaving(number);
        let next = |&arc: &u32| (core.arcs[arc as usize].to, prices[arc as usize]);
        let cheapest = cheapest(core.vertices, *sender, |vertex| leaving[vertex].iter().map(next));
        sum += receivers.iter().map(|&(receiver, bytes)| bytes as f64 * cheapest[receiver]).sum::<f64>();
    }
    sum / worth
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
