//! Lanes (virtual channels) that keep messages from waiting for each other in a circle.
//!
//! A blocked worm holds its links, so worms deadlock where routes depend on each other in a circle, as the
//! routes around a ring do. W. J. Dally, C. L. Seitz ("Deadlock-free message routing in multiprocessor
//! interconnection networks", 1987) cut the circle: a link has several lanes with a buffer each, and a
//! message changes lane at the cut (on a torus, their *dateline*). Here this is done for any machine:
//!
//! 1. The channel dependency graph has an arc from a link to each that directly follows it on some route.
//! 2. A depth-first search marks the arcs that lead back to a link on the search path: the *cuts*. What
//!    remains has no circle.
//! 3. A message's lane on a link is the number of cuts that lie ahead of it in the same strong component.
//!
//! So along every route the triple (component, cuts ahead, place in the order of what remains) moves one
//! way only, and nobody waits in a circle. Meshes, hypercubes and trees have no cut and one lane; a torus
//! with dimension-order routes has one cut, and two lanes, per ring and direction.

use rustc_hash::FxHashSet;

use super::NetworkError;
use crate::Topology;

/// The most PEs of a machine, all of whose routes are looked at.
const MAX_PES: usize = 4096;

/// No link, or not found yet.
const NONE: u32 = u32::MAX;

/// Which lane of each link a message takes.
pub(super) struct Lanes {
    /// The strong component of each link.
    component: Vec<u32>,
    /// The arcs at which a message changes lane.
    cuts: FxHashSet<(u32, u32)>,
}

impl Lanes {
    /// The lanes of the links of `machine`.
    ///
    /// # Errors
    /// If the machine has too many PEs to look at all its routes.
    pub(super) fn new(machine: &dyn Topology) -> Result<Self, NetworkError> {
        let pes = machine.pes();
        if pes > MAX_PES {
            return Err(NetworkError(format!(
                "`{}` has {pes} PEs, and wormhole looks at the routes between all pairs, of at most {MAX_PES}; \
                 use `packet` or `flow`",
                machine.spec()
            )));
        }
        Ok(Search::new(machine.links(), &arcs(machine)).run())
    }

    /// Writes the lane of each link of a route, from 0.
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

/// The arcs of the channel dependency graph, ascending.
fn arcs(machine: &dyn Topology) -> Vec<(u32, u32)> {
    let (mut arcs, mut route) = (FxHashSet::default(), Vec::new());
    // Routes to one PE mostly go on alike, so what followed a link last time spares most look-ups.
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

/// Strong components by depth-first search (R. E. Tarjan, 1972), and the arcs back along the search path.
struct Search<'a> {
    arcs: &'a [(u32, u32)],
    /// The arcs of a link are `arcs[first[link]..first[link + 1]]`.
    first: Vec<usize>,
    /// When a link was found.
    found: Vec<u32>,
    /// The earliest found link of its component that it leads to.
    low: Vec<u32>,
    is_on_path: Vec<bool>,
    /// Found links whose component is not complete.
    open: Vec<u32>,
    lanes: Lanes,
}

impl<'a> Search<'a> {
    fn new(links: usize, arcs: &'a [(u32, u32)]) -> Self {
        let first = (0..=links).map(|link| arcs.partition_point(|arc| (arc.0 as usize) < link)).collect();
        Search {
            arcs,
            first,
            found: vec![NONE; links],
            low: vec![NONE; links],
            is_on_path: vec![false; links],
            open: Vec::new(),
            lanes: Lanes { component: vec![NONE; links], cuts: FxHashSet::default() },
        }
    }

    fn run(mut self) -> Lanes {
        let mut finds = 0;
        for link in 0..self.found.len() {
            if self.found[link] == NONE {
                self.visit(link, &mut finds);
            }
        }
        self.lanes
    }

    /// Finds what `start` leads to; the path holds links and the next of their arcs.
    fn visit(&mut self, start: usize, finds: &mut u32) {
        let mut path = vec![(start, self.first[start])];
        self.find(start, finds);
        while let Some((link, arc)) = path.last_mut() {
            let link = *link;
            if *arc == self.first[link + 1] {
                path.pop();
                self.leave(link);
                if let Some(&(before, _)) = path.last() {
                    self.low[before] = self.low[before].min(self.low[link]);
                }
                continue;
            }
            let to = self.arcs[*arc].1 as usize;
            *arc += 1;
            if self.found[to] == NONE {
                path.push((to, self.first[to]));
                self.find(to, finds);
            } else if self.lanes.component[to] == NONE {
                self.low[link] = self.low[link].min(self.found[to]);
                if self.is_on_path[to] {
                    self.lanes.cuts.insert((link as u32, to as u32));
                }
            }
        }
    }

    fn find(&mut self, link: usize, finds: &mut u32) {
        (self.found[link], self.low[link]) = (*finds, *finds);
        *finds += 1;
        self.open.push(link as u32);
        self.is_on_path[link] = true;
    }

    /// Closes the component of which `link` was found first, if there is one.
    fn leave(&mut self, link: usize) {
        self.is_on_path[link] = false;
        if self.low[link] != self.found[link] {
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
    use super::*;
    use crate::topology;

    /// The lanes of a machine, after a look at whether lanes of links that follow each other form no
    /// circle; and the most lanes of a link.
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
        // What nobody waits for any more is taken away; a circle would remain.
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
    fn lanes_of_any_machine_form_no_circle() {
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
        // How many lanes these need is their own affair; that there is no circle is checked.
        for spec in ["dragonfly:groups=5,routers=4,hosts=1", "graph:random:n=30,degree=4", "graph:torus:4x5"]
        {
            check(spec);
        }
    }

    #[test]
    fn a_ring_is_cut_where_it_closes() {
        let ring = topology::parse("torus:5").expect("a ring");
        let lanes = Lanes::new(&*ring).expect("few PEs");
        let mut of = Vec::new();
        // Links 0 to 4 leave PEs 0 to 4 the positive way.
        for (route, expected) in [(&[3, 4, 0][..], [1, 1, 0]), (&[2, 3, 4], [0; 3]), (&[0, 1, 2], [0; 3])] {
            lanes.of(route, &mut of);
            assert_eq!(of, expected, "{route:?}");
        }
    }
}
