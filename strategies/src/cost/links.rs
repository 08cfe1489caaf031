//! The load of every link.

use equipoise_model::{Database, Topology};

use super::hops::Remote;

/// The bytes over each link of `topology` when object `i` is on PE `placement[i]`, by link number.
///
/// The sum of loads times link lengths is the hop-bytes if the machine's distance is the length of the route.
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn link_loads(database: &Database, topology: &dyn Topology, placement: &[u32]) -> Vec<u64> {
    let pes = topology.pes();
    let remote = Remote::of(database, pes, placement, |_, _| {});
    let mut loads = vec![0u64; topology.links()];
    // Each pair of PEs is routed once, regardless of its number of edges.
    let (mut bytes_to, mut touched, mut route) = (vec![0u64; pes], Vec::new(), Vec::new());
    for from in 0..pes {
        for (to, bytes) in remote.receivers(from) {
            let sum = &mut bytes_to[to as usize];
            if *sum == 0 {
                touched.push(to as usize);
            }
            *sum = sum.saturating_add(bytes);
        }
        for to in touched.drain(..) {
            let bytes = std::mem::take(&mut bytes_to[to]);
            route.clear();
            if bytes > 0 {
                topology.route(from, to, &mut route);
            }
            for &link in &route {
                loads[link] = loads[link].saturating_add(bytes);
            }
        }
    }
    loads
}
