//! The routes between PEs, at hand where they are few and asked for again where they are many.

use crate::Topology;

/// The most links of all routes together that are kept, at 4 bytes each. (To find the place in a larger table takes as long as
/// to ask a torus again.)
const MAX_KEPT: usize = 1 << 24;

/// The routes of a machine.
pub struct Routes<'a> {
    machine: &'a dyn Topology,
    /// The route from `a` to `b` is `links[starts[a * pes + b]..starts[a * pes + b + 1]]`; none are kept if this is
    /// empty.
    starts: Vec<u32>,
    links: Vec<u32>,
}

impl<'a> Routes<'a> {
    /// Those of `machine`, kept if there are few.
    pub fn of(machine: &'a dyn Topology) -> Self {
        let pes = machine.pes();
        let (mut starts, mut links, mut route) = (vec![0], Vec::new(), Vec::new());
        // A route has a link, so this many are kept at least.
        if pes.saturating_mul(pes) > MAX_KEPT {
            return Routes { machine, starts: Vec::new(), links };
        }
        for from in 0..pes {
            for to in 0..pes {
                route.clear();
                machine.route(from, to, &mut route);
                links.extend(route.iter().map(|&link| link as u32));
                starts.push(links.len() as u32);
            }
            // The routes from one PE may be twice as long as others; more than that is no accident.
            let expected = links.len() / (from + 1) * pes;
            if links.len() > MAX_KEPT || expected > 2 * MAX_KEPT {
                return Routes { machine, starts: Vec::new(), links: Vec::new() };
            }
        }
        Routes { machine, starts, links }
    }

    /// The machine.
    pub fn machine(&self) -> &'a dyn Topology {
        self.machine
    }

    /// Calls `see` with every link between two PEs, in order; `buffer` is written over.
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

    /// By link: the seconds that a byte takes of it.
    pub fn seconds_per_byte(&self) -> Vec<f64> {
        (0..self.machine.links()).map(|link| 1.0 / self.machine.link(link).bandwidth).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    #[test]
    fn kept_routes_are_those_of_the_machine() {
        for spec in ["torus:4x3", "platform:litvinov-grid", "dragonfly:groups=3,routers=2,hosts=2", "flat:1"]
        {
            let machine = topology::parse(spec).expect(spec);
            let kept = Routes::of(&*machine);
            let asked = Routes { machine: &*machine, starts: Vec::new(), links: Vec::new() };
            assert!(!kept.starts.is_empty());
            let mut buffer = Vec::new();
            for pair in 0..machine.pes() * machine.pes() {
                let [from, to] = [pair / machine.pes(), pair % machine.pes()].map(|pe| pe as u32);
                let mut both = [&kept, &asked].map(|routes| {
                    let mut links = Vec::new();
                    routes.follow(from, to, &mut buffer, |link| links.push(link));
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
