//! Lanes (virtual channels) that prevent deadlocks of wormhole messages.
//!
//! A blocked worm holds its links, so worms can deadlock if routes depend on each other in a cycle, for example
//! around a ring. W. J. Dally, C. L. Seitz ("Deadlock-free message routing in multiprocessor interconnection
//! networks", 1987) break the cycle: a link has several lanes with a buffer each, and a message changes its lane at a
//! cut (on a torus, the *dateline*). This module does so for any machine:
//!
//! 1. The channel dependency graph has an arc from each link to every link that directly follows it on some route.
//! 2. A depth-first search marks the arcs to a link on the search path: the *cuts*. Without them, the graph is acyclic.
//! 3. The lane of a message on a link is the number of cuts ahead of it in the same strongly connected component.
//!
//! Along every route, the triple (component, cuts ahead, position in the order of the acyclic graph) is monotonic, so
//! there is no cyclic wait. Meshes, hypercubes and trees have no cut and one lane. A torus with dimension-order routes
//! has one cut per ring and direction, and two lanes.

use rustc_hash::FxHashSet;

use equipoise_model::Topology;

use super::NetworkError;

/// The maximum number of PEs of a machine: the routes between all pairs are computed.
const MAX_PES: usize = 4096;

/// No link, or not discovered yet.
const NONE: u32 = u32::MAX;

/// Chooses the lane of a message on each link.
pub(super) struct Lanes {
    /// By link: its strongly connected component.
    component: Vec<u32>,
    /// The arcs at which a message changes its lane.
    cuts: FxHashSet<(u32, u32)>,
}

impl Lanes {
    /// The lanes of the links of `machine`.
    ///
    /// # Errors
    /// If the machine has too many PEs to compute all routes.
    pub(super) fn new(machine: &dyn Topology) -> Result<Self, NetworkError> {
        let pes = machine.pes();
        if pes > MAX_PES {
            return Err(NetworkError(format!(
                "`{}` has {pes} PEs, but `wormhole` computes the routes between all pairs and so takes at most {MAX_PES} \
                 PEs; use `packet` or `flow`",
                machine.spec()
            )));
        }
        Ok(Search::new(machine.links(), &arcs(machine)).run())
    }

    /// Replaces `lanes` by the lane of each link of a route; lanes count from 0.
    pub(super) fn of(&self, route: &[usize], lanes: &mut Vec<usize>) {
        lanes.clear();
        lanes.resize(route.len(), 0);
        for hop in (1..route.len()).rev() {
            let (from, to) = (route[hop - 1], route[hop]);
            if self.component[from] == self.component[to] {
                let is_cut = self.cuts.contains(&(from as u32, to as u32));
                lanes[hop - 1] = lanes[hop] + usize::from(is_cut);
            }
        }
    }
}

/// The arcs of the channel dependency graph, sorted.
fn arcs(machine: &dyn Topology) -> Vec<(u32, u32)> {
    let (mut arcs, mut route) = (FxHashSet::default(), Vec::new());
    // Routes to one PE mostly continue the same way after a link, so this cache avoids most look-ups.
    let mut followed_by = vec![NONE; machine.links()];
    for b in 0..machine.pes() {
        for a in 0..machine.pes() {
            route.clear();
            machine.route(a, b, &mut route);
            for pair in route.windows(2) {
                let (from, to) = (pair[0] as u32, pair[1] as u32);
                if std::mem::replace(&mut followed_by[pair[0]], to) != to {
                    arcs.insert((from, to));
                }
            }
        }
    }
    let mut arcs: Vec<_> = arcs.into_iter().collect();
    arcs.sort_unstable();
    arcs
}

/// Finds strongly connected components by depth-first search (R. E. Tarjan, 1972), and the arcs back to the search path.
struct Search<'a> {
    arcs: &'a [(u32, u32)],
    /// The arcs of a link are `arcs[first[link]..first[link + 1]]`.
    first: Vec<usize>,
    /// By link: its position in the order of discovery.
    order: Vec<u32>,
    /// By link: the lowest position of a link of its component that it reaches.
    low: Vec<u32>,
    is_on_path: Vec<bool>,
    /// Discovered links whose component is not complete.
    open: Vec<u32>,
    lanes: Lanes,
}

impl<'a> Search<'a> {
    fn new(links: usize, arcs: &'a [(u32, u32)]) -> Self {
        let first = (0..=links).map(|link| arcs.partition_point(|arc| (arc.0 as usize) < link)).collect();
        Search {
            arcs,
            first,
            order: vec![NONE; links],
            low: vec![NONE; links],
            is_on_path: vec![false; links],
            open: Vec::new(),
            lanes: Lanes { component: vec![NONE; links], cuts: FxHashSet::default() },
        }
    }

    fn run(mut self) -> Lanes {
        let mut discovered = 0;
        for link in 0..self.order.len() {
            if self.order[link] == NONE {
                self.visit(link, &mut discovered);
            }
        }
        self.lanes
    }

    /// Searches from `start`. The path holds links and their next arcs.
    fn visit(&mut self, start: usize, discovered: &mut u32) {
        let mut path = vec![(start, self.first[start])];
        self.discover(start, discovered);
        while let Some((link, arc)) = path.last_mut() {
            let link = *link;
            if *arc == self.first[link + 1] {
                path.pop();
                self.finish(link);
                if let Some(&(before, _)) = path.last() {
                    self.low[before] = self.low[before].min(self.low[link]);
                }
                continue;
            }
            let to = self.arcs[*arc].1 as usize;
            *arc += 1;
            if self.order[to] == NONE {
                path.push((to, self.first[to]));
                self.discover(to, discovered);
            } else if self.lanes.component[to] == NONE {
                self.low[link] = self.low[link].min(self.order[to]);
                if self.is_on_path[to] {
                    self.lanes.cuts.insert((link as u32, to as u32));
                }
            }
        }
    }

    fn discover(&mut self, link: usize, discovered: &mut u32) {
        (self.order[link], self.low[link]) = (*discovered, *discovered);
        *discovered += 1;
        self.open.push(link as u32);
        self.is_on_path[link] = true;
    }

    /// All arcs of `link` are searched. If it is the first discovered link of its component, the component is complete.
    fn finish(&mut self, link: usize) {
        self.is_on_path[link] = false;
        if self.low[link] != self.order[link] {
            return;
        }
        while let Some(member) = self.open.pop() {
            self.lanes.component[member as usize] = link as u32;
            if member as usize == link {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;

    /// Checks that the dependencies between the lanes of a machine are acyclic; returns the maximum number of lanes.
    fn check(spec: &str) -> usize {
        let machine = topology::parse(spec).expect(spec);
        let lanes = Lanes::new(&*machine).expect(spec);
        let (mut route, mut of, mut most) = (Vec::new(), Vec::new(), 0);
        let mut follows = FxHashSet::default();
        for (a, b) in (0..machine.pes()).flat_map(|a| (0..machine.pes()).map(move |b| (a, b))) {
            route.clear();
            machine.route(a, b, &mut route);
            lanes.of(&route, &mut of);
            most = of.iter().map(|lane| lane + 1).fold(most, usize::max);
            let channels: Vec<_> = route.iter().zip(&of).map(|(&link, &lane)| (link, lane)).collect();
            follows.extend(channels.windows(2).map(|pair| (pair[0], pair[1])));
        }
        // Lanes that wait for no other lane are removed; a cycle would remain.
        loop {
            let ends: FxHashSet<_> = follows.iter().map(|arc| arc.0).collect();
            let before = follows.len();
            follows.retain(|arc| ends.contains(&arc.1));
            if follows.len() == before {
                break;
            }
        }
        assert!(follows.is_empty(), "{spec}: {follows:?}");
        most
    }

    #[test]
    fn dependencies_between_lanes_are_acyclic_on_every_machine() {
        for (spec, most) in [
            ("mesh:4x3x2", 1),
            ("hypercube:4", 1),
            ("tree:2:3", 1),
            ("fattree:2:3:2", 1),
            ("flat:5", 1),
            ("torus:5", 2),
            ("torus:8x8", 2),
            ("torus:3x4x5", 2),
            ("torus:5x4m", 2),
            ("torus:5*mesh:3", 2),
            ("graph:ring:7", 2),
        ] {
            assert_eq!(check(spec), most, "{spec}");
        }
        // For these machines, the number of lanes is not specified.
        for spec in ["dragonfly:groups=5,routers=4,hosts=1", "graph:random:n=30,degree=4", "graph:torus:4x5"]
        {
            check(spec);
        }
    }

    #[test]
    fn a_ring_has_one_cut_where_it_closes() {
        let ring = topology::parse("torus:5").expect("a ring");
        let lanes = Lanes::new(&*ring).expect("few PEs");
        let mut of = Vec::new();
        // Links 0 to 4 leave PEs 0 to 4 in the positive direction.
        for (route, expected) in [(&[3, 4, 0][..], [1, 1, 0]), (&[2, 3, 4], [0; 3]), (&[0, 1, 2], [0; 3])] {
            lanes.of(route, &mut of);
            assert_eq!(of, expected, "{route:?}");
        }
    }
}
