//! `hyperx:4x4x4,hosts=4`: a grid of switches in which all switches of a line are connected with each other.
//!
//! J. H. Ahn, N. Binkert, A. Davis, M. McLaren, R. S. Schreiber, "HyperX: topology, routing, and packaging of efficient
//! large-scale networks", 2009. Switches are numbered with the first dimension fastest, and PE p is at switch p / hosts. A
//! distance is the number of links crossed: two for the PEs, and one for each dimension in which their switches differ.
//! Messages correct dimension 0 first.

use std::sync::Arc;

use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Topology, count_links, count_pes,
};
use crate::params::{Param, Params};

/// The entry of `hyperx:..` in the list of machines.
pub const KIND: Kind = Kind {
    name: "hyperx",
    form: "hyperx:4x4x4,hosts=4",
    help: "A grid of switches with several PEs each; a switch has a link to every switch that differs in one coordinate \
           (two dimensions: flattened butterfly). Dimension-order routes.",
    params: PARAMS,
    item: |text| {
        Params::parse_with("hyperx", PARAMS, text, |params| {
            let [sizes] = params.positional(["sizes such as 4x4x4"])?;
            let parsed = sizes.split('x').map(|size| size.parse().ok()).collect::<Option<Vec<usize>>>();
            let parsed = parsed.ok_or_else(|| format!("expected sizes such as 4x4x4, found `{sizes}`"))?;
            Ok(Arc::new(HyperX::new(&parsed, params.take("hosts")?)?) as Arc<dyn Topology>)
        })
    },
};

const PARAMS: &[Param] = &[Param { key: "hosts", default: "1", help: "PEs per switch" }];

/// The most dimensions.
const MAX_DIMENSIONS: usize = 32;

/// A HyperX network whose hosts are the PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperX {
    dimensions: Vec<Dimension>,
    switches: usize,
    hosts: usize,
    links: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Dimension {
    size: usize,
    /// The difference of neighboring switches.
    stride: usize,
    /// The first of the links of this dimension, which are numbered by switch, then by the other switch of the line.
    first_link: usize,
}

impl Dimension {
    fn coordinate(&self, switch: usize) -> usize {
        switch / self.stride % self.size
    }

    /// The link from a switch to the one with this coordinate.
    fn link(&self, from: usize, to: usize) -> usize {
        let rank = to - usize::from(to > self.coordinate(from));
        self.first_link + from * (self.size - 1) + rank
    }
}

impl HyperX {
    /// The network with these sizes, first dimension fastest, and `hosts` PEs per switch.
    ///
    /// # Errors
    /// If there is no dimension or more than 32, a size is 0, or there are too many PEs or links.
    pub fn new(sizes: &[usize], hosts: usize) -> Result<Self, String> {
        if sizes.is_empty() || sizes.len() > MAX_DIMENSIONS {
            return Err(format!(
                "a network has 1 to {MAX_DIMENSIONS} dimensions, this one has {}",
                sizes.len()
            ));
        }
        let switches = count_pes(sizes.iter().copied())?;
        let pes = count_pes([switches, hosts])?;
        let (mut dimensions, mut stride, mut links) = (Vec::with_capacity(sizes.len()), 1, 2 * pes);
        for &size in sizes {
            dimensions.push(Dimension { size, stride, first_link: links });
            links = count_links([Some(links), switches.checked_mul(size - 1)])?;
            stride *= size;
        }
        Ok(HyperX { dimensions, switches, hosts, links })
    }

    /// The number of dimensions in which two switches differ.
    fn apart(&self, a: usize, b: usize) -> u32 {
        self.dimensions.iter().filter(|d| d.coordinate(a) != d.coordinate(b)).count() as u32
    }

    /// The switches at the ends of a link between switches.
    fn ends(&self, id: usize) -> (usize, usize) {
        // Dimensions of size 1 have no link; the last dimension that starts there has it.
        let d = &self.dimensions[self.dimensions.partition_point(|d| d.first_link <= id) - 1];
        let (from, rank) = ((id - d.first_link) / (d.size - 1), (id - d.first_link) % (d.size - 1));
        let here = d.coordinate(from);
        let there = rank + usize::from(rank >= here);
        (from, from - here * d.stride + there * d.stride)
    }
}

impl Topology for HyperX {
    fn spec(&self) -> String {
        let sizes: Vec<String> = self.dimensions.iter().map(|d| d.size.to_string()).collect();
        format!("hyperx:{},hosts={}", sizes.join("x"), self.hosts)
    }

    fn pes(&self) -> usize {
        self.switches * self.hosts
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        if a == b { 0 } else { 2 + self.apart(a / self.hosts, b / self.hosts) }
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        let here = a / self.hosts;
        for (there, row) in row.chunks_exact_mut(self.hosts).enumerate() {
            row.fill(2 + self.apart(here, there));
        }
        row[a] = 0;
    }

    fn diameter(&self) -> u32 {
        self.distance(0, self.pes() - 1)
    }

    fn links(&self) -> usize {
        self.links
    }

    fn link(&self, id: usize) -> Link {
        let name = if id < 2 * self.pes() {
            let (pe, switch) = (id / 2, id / 2 / self.hosts);
            if id % 2 == 0 { format!("{pe} -> switch {switch}") } else { format!("switch {switch} -> {pe}") }
        } else {
            let (from, to) = self.ends(id);
            format!("switch {from} -> switch {to}")
        };
        Link { name, bandwidth: DEFAULT_BANDWIDTH, latency_seconds: DEFAULT_LATENCY_SECONDS, length: 1 }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a == b {
            return;
        }
        let (mut at, to) = (a / self.hosts, b / self.hosts);
        links.push(2 * a);
        for d in &self.dimensions {
            let (here, there) = (d.coordinate(at), d.coordinate(to));
            if here != there {
                links.push(d.link(at, there));
                at = at - here * d.stride + there * d.stride;
            }
        }
        links.push(2 * b + 1);
    }

    /// Any dimension that is not corrected yet.
    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let (hosts, to) = (2 * self.pes(), b / self.hosts);
        let at = match crossed {
            None if a == b => return,
            None => return links.push(2 * a),
            Some(id) if id >= hosts => self.ends(id).1,
            Some(id) if id % 2 == 0 => id / 2 / self.hosts,
            Some(_) => return,
        };
        if at == to {
            return links.push(2 * b + 1);
        }
        let open = self.dimensions.iter().filter(|d| d.coordinate(at) != d.coordinate(to));
        links.extend(open.map(|d| d.link(at, d.coordinate(to))));
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        let sizes = self.dimensions.iter().rev().map(|d| d.size);
        Some(Hierarchy::balanced(&sizes.chain([self.hosts]).collect::<Vec<_>>()))
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        let (here, there) = (a / self.hosts, b / self.hosts);
        (here == there).then(|| format!("switch {here}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::super::tests::{check, route, row, search};
    use super::*;

    #[test]
    fn a_link_corrects_a_dimension() {
        let spec = "hyperx:4x3,hosts=2";
        assert_eq!(
            route(spec, 1, 22),
            "1 -> switch 0, switch 0 -> switch 3, switch 3 -> switch 11, switch 11 -> 22"
        );
        assert_eq!(route(spec, 22, 23), "22 -> switch 11, switch 11 -> 23");
        let machine = parse(spec).expect("a network");
        assert_eq!((machine.pes(), machine.links(), machine.diameter()), (24, 48 + 12 * 3 + 12 * 2, 4));
        assert_eq!(parse("hyperx:4x3").expect("a network").spec(), "hyperx:4x3,hosts=1");
        for (spec, expected) in [
            ("hyperx:", "expected sizes such as 4x4x4; found 0"),
            ("hyperx:4y4", "expected sizes such as 4x4x4, found `4y4`"),
            ("hyperx:4x0", "a size is at least 1"),
            ("hyperx:4x4,host=2", "hyperx has no parameter `host` (did you mean `hosts`?)"),
            ("hyperx:16777216", "the machine has more than 1073741824 links"),
        ] {
            let error = parse(spec).err().expect(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn hyperx_networks_have_the_properties_of_machines(
            sizes in prop::collection::vec(1..5usize, 1..4), hosts in 1..4usize,
        ) {
            let machine = HyperX::new(&sizes, hosts).expect("small sizes");
            check(&machine);
            prop_assert_eq!(row(&machine, 0), search(&machine), "{}", machine.spec());
        }
    }
}
