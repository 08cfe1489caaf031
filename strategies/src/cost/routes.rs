//! The routes between PEs: kept in a table if they are short enough in total, else recomputed on each use.
//!
//! Links have numbers of their own here: if the routes are kept, links on no route are left out, so that costs on some PEs
//! of a large machine do not depend on the number of its links.

use equipoise_model::Topology;

/// The maximum number of links in the table, summed over all routes, at 4 bytes each. (A lookup in a larger table is as
/// slow as recomputing a route on a torus.)
const MAX_KEPT: usize = 1 << 24;

/// The routes of a machine.
pub struct Routes<'a> {
    machine: &'a dyn Topology,
    /// The route from `a` to `b` is `links[starts[a * pes + b]..starts[a * pes + b + 1]]`; no routes are kept if this
    /// is empty.
    starts: Vec<u32>,
    links: Vec<u32>,
    /// If routes are kept: the machine's number of every link on them, ascending.
    used: Vec<u32>,
}

impl<'a> Routes<'a> {
    /// The routes of `machine`; kept in a table if they are short enough in total.
    pub fn of(machine: &'a dyn Topology) -> Self {
        let pes = machine.pes();
        let (mut starts, mut links, mut route) = (vec![0], Vec::new(), Vec::new());
        // Each route has at least one link, so the table would have at least this many entries.
        if pes.saturating_mul(pes) > MAX_KEPT {
            return Routes::recomputed(machine);
        }
        for from in 0..pes {
            for to in 0..pes {
                route.clear();
                machine.route(from, to, &mut route);
                links.extend(route.iter().map(|&link| link as u32));
                starts.push(links.len() as u32);
            }
            // Stop early if the table will exceed the limit even if the remaining routes are only half as long.
            let expected = links.len() / (from + 1) * pes;
            if links.len() > MAX_KEPT || expected > 2 * MAX_KEPT {
                return Routes::recomputed(machine);
            }
        }
        let mut number_of = vec![None; machine.links()];
        links.iter().for_each(|&link| number_of[link as usize] = Some(0));
        let mut used = Vec::new();
        for (link, number) in (0..).zip(&mut number_of).filter(|(_, number)| number.is_some()) {
            *number = Some(used.len() as u32);
            used.push(link);
        }
        links.iter_mut().for_each(|link| *link = number_of[*link as usize].unwrap_or(*link));
        Routes { machine, starts, links, used }
    }

    fn recomputed(machine: &'a dyn Topology) -> Self {
        Routes { machine, starts: Vec::new(), links: Vec::new(), used: Vec::new() }
    }

    /// The machine.
    pub fn machine(&self) -> &'a dyn Topology {
        self.machine
    }

    /// Calls `see` with every link between two PEs, in order; overwrites `buffer`.
    pub fn follow(&self, from: u32, to: u32, buffer: &mut Vec<usize>, mut see: impl FnMut(usize)) {
        if self.starts.is_empty() {
            buffer.clear();
            self.machine.route(from as usize, to as usize, buffer);
            buffer.iter().for_each(|&link| see(link));
        } else {
            let pair = from as usize * self.machine.pes() + to as usize;
            let range = self.starts[pair] as usize..self.starts[pair + 1] as usize;
            self.links[range].iter().for_each(|&link| see(link as usize));
        }
    }

    /// By number of a link here: its number in the machine.
    pub fn links(&self) -> impl ExactSizeIterator<Item = usize> {
        let count = if self.starts.is_empty() { self.machine.links() } else { self.used.len() };
        (0..count).map(|link| self.used.get(link).map_or(link, |&used| used as usize))
    }

    /// By link: the seconds per byte.
    pub fn seconds_per_byte(&self) -> Vec<f64> {
        self.links().map(|link| 1.0 / self.machine.link(link).bandwidth).collect()
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;

    #[test]
    fn links_on_no_kept_route_have_no_number() {
        let machine = topology::parse("mesh:100x100[0-2]").expect("a part of a mesh");
        let routes = Routes::of(&*machine);
        let names: Vec<String> = routes.links().map(|link| machine.link(link).name).collect();
        assert_eq!(names, ["0 -> 1", "1 -> 2", "1 -> 0", "2 -> 1"]);
        assert_eq!(routes.seconds_per_byte().len(), 4);
    }

    #[test]
    fn kept_routes_are_those_of_the_machine() {
        for spec in ["torus:4x3", "platform:litvinov-grid", "dragonfly:groups=3,routers=2,hosts=2", "flat:1"]
        {
            let machine = topology::parse(spec).expect(spec);
            let kept = Routes::of(&*machine);
            let asked = Routes::recomputed(&*machine);
            assert!(!kept.starts.is_empty());
            let mut buffer = Vec::new();
            for pair in 0..machine.pes() * machine.pes() {
                let [from, to] = [pair / machine.pes(), pair % machine.pes()].map(|pe| pe as u32);
                let mut both = [&kept, &asked].map(|routes| {
                    let mut links = Vec::new();
                    let number_of: Vec<usize> = routes.links().collect();
                    routes.follow(from, to, &mut buffer, |link| links.push(number_of[link]));
                    links
                });
                let mut expected = Vec::new();
                machine.route(from as usize, to as usize, &mut expected);
                assert_eq!(both, [expected.clone(), expected], "{spec}: {from} to {to}");
                both[0].clear();
            }
        }
    }
}
