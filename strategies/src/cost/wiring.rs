//! A machine as a graph: vertices joined by links.

use rustc_hash::FxHashMap;

use equipoise_model::Topology;

use super::unsolved::{MAX_LINKS, Unsolved};

/// The graph of a machine. Vertices are identified by the names of link ends in [`equipoise_model::topology::Link::name`].
/// [`Wiring::carry`] checks along every route that successive links meet at a vertex, and rejects machines with other names.
pub(crate) struct Wiring {
    /// The number of vertices.
    pub(crate) vertices: usize,
    /// By link: the vertex it leaves, and the vertex it enters.
    pub(crate) ends: Vec<[usize; 2]>,
    /// By link: its length, its part of the distance.
    pub(crate) lengths: Vec<u32>,
    /// By PE: its vertex.
    pub(crate) vertex_of: Vec<usize>,
}

impl Wiring {
    /// The graph of `machine`.
    ///
    /// # Errors
    /// When the machine has more than [`MAX_LINKS`] links.
    pub(crate) fn of(machine: &dyn Topology) -> Result<Self, Unsolved> {
        let links = machine.links();
        if links > MAX_LINKS {
            return Err(Unsolved::Links { links });
        }
        let mut number_of = FxHashMap::<String, usize>::default();
        let mut number = |name: &str| {
            let next = number_of.len();
            *number_of.entry(name.to_string()).or_insert(next)
        };
        let (mut ends, mut lengths) = (Vec::new(), Vec::new());
        for link in (0..links).map(|link| machine.link(link)) {
            let (from, to) = link.name.split_once(" -> ").unwrap_or((&link.name, &link.name));
            ends.push([number(from), number(to)]);
            lengths.push(link.length);
        }
        // The vertex of a PE is the start of its routes; the only PE of a machine may be any vertex.
        let mut route = Vec::new();
        let vertex = |pe: usize| {
            route.clear();
            machine.route(pe, usize::from(pe == 0).min(machine.pes() - 1), &mut route);
            route.first().map_or(0, |&link| ends[link][0])
        };
        let vertex_of = (0..machine.pes()).map(vertex).collect();
        Ok(Wiring { vertices: number_of.len().max(1), ends, lengths, vertex_of })
    }

    /// The bytes over every link when `sent`, as (from PE, to PE, bytes), follow the machine's own routes.
    ///
    /// # Errors
    /// When successive links of a route do not meet, or do not lead to the receiver. This happens in products, where no
    /// link joins the cores and their node, so that other routes cannot be constructed.
    pub(crate) fn carry(
        &self,
        machine: &dyn Topology,
        sent: impl Iterator<Item = (u32, u32, u64)>,
    ) -> Result<Vec<u64>, Unsolved> {
        let (mut loads, mut route) = (vec![0u64; self.ends.len()], Vec::new());
        for (from, to, bytes) in sent.filter(|(from, to, _)| from != to) {
            route.clear();
            machine.route(from as usize, to as usize, &mut route);
            let mut at = self.vertex_of[from as usize];
            for &link in &route {
                let [tail, head] = self.ends[link];
                if tail != at {
                    return Err(Unsolved::DisjointLinks);
                }
                at = head;
                loads[link] = loads[link].saturating_add(bytes);
            }
            if at != self.vertex_of[to as usize] {
                return Err(Unsolved::DisjointLinks);
            }
        }
        Ok(loads)
    }
}
