//! Repairs the inexact output of a solver: nearly conserved flows become a routing, and prices become a bound.

use equipoise_model::search::{breadth_first, cheapest};

use super::two_core::Core;

/// The bytes over each arc, from the flows by star and arc. Bytes that a vertex lacks because of rounding are added along a
/// path with the fewest links. If there are mirrors, the same bytes are added to the mirror of each arc.
pub(super) fn carry(core: &Core, flows: &[Vec<f64>]) -> Vec<f64> {
    let mut loads = vec![0.0; core.arcs.len()];
    let mut add = |arc: usize, bytes: f64| {
        loads[arc] += bytes;
        if let Some(mirrors) = &core.mirrors {
            loads[mirrors[arc]] += bytes;
        }
    };
    for (number, (star, flow)) in core.stars.iter().zip(flows).enumerate() {
        let mut missing = vec![0.0; core.vertices];
        star.ends.iter().for_each(|&(end, bytes)| missing[end] = bytes as f64);
        for arc in core.usable[number].iter().map(|&arc| arc as usize) {
            let [near, far] = core.arcs[arc].ends(star);
            missing[near] += flow[arc];
            missing[far] -= flow[arc];
            add(arc, flow[arc]);
        }
        let onward = core.onward(number);
        let next = |vertex: usize| onward[vertex].iter().copied();
        let nearest_first: Vec<_> = breadth_first(core.vertices, star.hub, next).collect();
        for (vertex, by) in nearest_first.into_iter().rev() {
            if let Some((before, arc)) = by.filter(|_| missing[vertex] > 0.0) {
                add(arc, missing[vertex]);
                missing[before] += missing[vertex];
            }
        }
    }
    loads
}

/// Lower bound, in seconds, for all routings of the core's demands (weak duality): their cost along the cheapest paths
/// at these prices, over the total price of all bandwidths. An arc and its mirror have the same price.
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
    // Mirrored demands cost the same.
    if core.mirrors.is_some() { 2.0 * sum / worth } else { sum / worth }
}
