//! `platform:FILE.json`: a machine with explicit links and routes.
//!
//! The file is a JSON object with `hosts` (their number; they are the PEs and the first vertices), `vertices` (the
//! number of hosts and routers), `links`, each `{"src": .., "dst": .., "bw": .., "lat": ..}` (vertices, bytes per
//! second, seconds; one direction), and `routes`, each `{"src": .., "dst": .., "links": [..]}` (hosts, and positions in
//! `links` in the order of crossing), one for each ordered pair of hosts. Other fields are ignored.
//!
//! The distance of two PEs is the number of links of the route. If the routes in both directions differ in length, the
//! longer one counts, since distances are symmetric. (On such a machine, hop-bytes exceed the bytes on all links.)

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::error::from_file;
use super::{Kind, Link, MAX_TABLE_PES, Topology};
use crate::files::JsonStep::{self, Item, Key};
use crate::files::line_in_json;
use crate::memory;
use crate::table::{count, there_are};

mod litvinov;

/// The entry of `platform:FILE.json` in the list of machines.
pub const KIND: Kind = Kind {
    name: "platform",
    form: "platform:FILE.json",
    help: "Hosts, routers, links with bandwidths and latencies, and a route for each pair of hosts, from a \
           file. Hosts are PEs; distances are links crossed. Instead of a file: litvinov-cluster, litvinov-tree, \
           litvinov-grid, 16 hosts each as in a paper on costs of mappings.",
    params: &[],
    item: |name| {
        if name.is_empty() {
            return Err("expected the name of a JSON file with hosts, vertices, links and routes".into());
        }
        if let Some(machine) = litvinov::named(name) {
            return Ok(Arc::new(machine));
        }
        Ok(Arc::new(from_file("platform", name, |text| Platform::read(name, text))?))
    },
};

/// The largest number of vertices, and of links.
const MAX_PARTS: usize = 1 << 24;

/// A machine given by its links and routes.
#[derive(Clone, Debug, PartialEq)]
pub struct Platform {
    /// The file.
    source: String,
    hosts: usize,
    wires: Vec<Wire>,
    /// The route from `a` to `b` is `crossed[starts[a * hosts + b]..starts[a * hosts + b + 1]]`.
    starts: Vec<usize>,
    crossed: Vec<u32>,
}

/// The content of a file.
#[derive(Deserialize)]
struct Written {
    hosts: usize,
    vertices: usize,
    links: Vec<Wire>,
    routes: Vec<Route>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Wire {
    src: usize,
    dst: usize,
    bw: f64,
    lat: f64,
}

#[derive(Deserialize)]
struct Route {
    src: usize,
    dst: usize,
    links: Vec<u32>,
}

/// The path of a wrong JSON value, and what is wrong.
type Wrong = (Vec<JsonStep>, String);

impl Platform {
    /// Parses the text of file `source`.
    ///
    /// # Errors
    /// If the text is not JSON with this structure, a number is out of range, two links join the same vertices, or a
    /// route is missing, given twice, or does not connect its ends. The error begins with the line.
    pub fn read(source: &str, text: &str) -> Result<Self, String> {
        let Written { hosts, vertices, links, routes } = serde_json::from_str(text).map_err(|error| {
            format!("expected a JSON object with hosts, vertices, links and routes: {error}")
        })?;
        let with_line = |(path, reason): Wrong| format!("line {}: {reason}", line_in_json(text, &path));
        check_parts(hosts, vertices, &links).map_err(with_line)?;
        let routes = sort(hosts, &links, &routes).map_err(with_line)?;
        let mut platform =
            Platform { source: source.to_string(), hosts, wires: links, starts: vec![0], crossed: vec![] };
        for route in routes {
            platform.crossed.extend_from_slice(route);
            platform.starts.push(platform.crossed.len());
        }
        Ok(platform)
    }

    fn crossed(&self, a: usize, b: usize) -> &[u32] {
        let pair = a * self.hosts + b;
        &self.crossed[self.starts[pair]..self.starts[pair + 1]]
    }

    /// The name of a vertex.
    fn vertex(&self, vertex: usize) -> String {
        if vertex < self.hosts { vertex.to_string() } else { format!("router {vertex}") }
    }
}

/// Checks vertices and links.
fn check_parts(hosts: usize, vertices: usize, links: &[Wire]) -> Result<(), Wrong> {
    if hosts == 0 || hosts > MAX_TABLE_PES {
        let sentence = format!("a platform has 1 to {MAX_TABLE_PES} hosts, this one has {hosts}");
        return Err((vec![Key("hosts")], sentence));
    }
    // A route and its place in a list for each pair.
    let pairs = (hosts as u64).pow(2);
    memory::check(32 * pairs, &format!("a platform of {hosts} hosts"), "use fewer hosts")
        .map_err(|sentence| (vec![Key("hosts")], sentence))?;
    if vertices < hosts || vertices > MAX_PARTS || links.len() > MAX_PARTS {
        let sentence = format!(
            "there are at most {MAX_PARTS} vertices, including the hosts, and {MAX_PARTS} links; found {}, {} and {}",
            count(hosts as u64, "host"),
            count(vertices as u64, "vertex"),
            count(links.len() as u64, "link")
        );
        return Err((vec![Key("vertices")], sentence));
    }
    let mut seen = FxHashMap::default();
    for (id, &Wire { src, dst, bw, lat }) in links.iter().enumerate() {
        let last = vertices - 1;
        let wrong = |reason: String| Err((vec![Key("links"), Item(id)], reason));
        if let Some(vertex) = [src, dst].into_iter().find(|&vertex| vertex > last) {
            return wrong(format!("link {id} ends at vertex {vertex}, but the last vertex is {last}"));
        }
        if src == dst {
            return wrong(format!("link {id} leads from vertex {src} to itself"));
        }
        if !(bw.is_finite() && bw > 0.0 && lat.is_finite() && lat >= 0.0) {
            return wrong(format!(
                "link {id} has a bandwidth of {bw} and a latency of {lat}; expected bytes per second above 0 and \
                 seconds of at least 0"
            ));
        }
        if let Some(other) = seen.insert((src, dst), id) {
            return wrong(format!(
                "links {other} and {id} both lead from vertex {src} to vertex {dst}; merge them, or route one \
                of them over an additional vertex"
            ));
        }
    }
    Ok(())
}

/// The links of each route, sorted by source, then by target; the route of a host to itself is empty.
fn sort<'a>(hosts: usize, links: &[Wire], routes: &'a [Route]) -> Result<Vec<&'a [u32]>, Wrong> {
    // Validates the number of hosts before memory for all pairs is allocated.
    if routes.len() < hosts * (hosts - 1) {
        let (found, hosts) = (count(routes.len() as u64, "route"), count(hosts as u64, "host"));
        let sentence = format!("the file has {found} for {hosts}; give one for each ordered pair of hosts");
        return Err((vec![Key("routes")], sentence));
    }
    let mut sorted: Vec<&[u32]> = vec![&[]; hosts * hosts];
    for (id, route) in routes.iter().enumerate() {
        let Route { src, dst, links: crossed } = route;
        let wrong = |reason: String| (vec![Key("routes"), Item(id)], reason);
        if src.max(dst) >= &hosts || src == dst {
            return Err(wrong(format!(
                "there is a route from {src} to {dst}; expected two different hosts of 0 to {}",
                hosts - 1
            )));
        }
        check_route(route, links).map_err(wrong)?;
        let place = &mut sorted[src * hosts + dst];
        if !place.is_empty() {
            return Err(wrong(format!("the route from {src} to {dst} is given twice")));
        }
        *place = crossed;
    }
    // No route is missing: there are as many routes as pairs, and no route is given twice.
    Ok(sorted)
}

/// Checks that a route connects its ends.
fn check_route(Route { src, dst, links: crossed }: &Route, links: &[Wire]) -> Result<(), String> {
    let (mut at, mut visited) = (*src, vec![*src]);
    for &id in crossed {
        let Some(link) = links.get(id as usize) else {
            return Err(format!(
                "the route from {src} to {dst} crosses link {id}, but {}",
                there_are(links.len(), "link")
            ));
        };
        if link.src != at {
            return Err(format!(
                "the route from {src} to {dst} is at vertex {at} before link {id}, which starts at vertex {}",
                link.src
            ));
        }
        at = link.dst;
        if visited.contains(&at) {
            return Err(format!("the route from {src} to {dst} visits vertex {at} twice"));
        }
        visited.push(at);
    }
    if at != *dst {
        return Err(format!("the route from {src} to {dst} ends at vertex {at}"));
    }
    Ok(())
}

impl Topology for Platform {
    fn spec(&self) -> String {
        format!("platform:{}", self.source)
    }

    fn pes(&self) -> usize {
        self.hosts
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.crossed(a, b).len().max(self.crossed(b, a).len()) as u32
    }

    fn links(&self) -> usize {
        self.wires.len()
    }

    /// Links are numbered as in the file.
    fn link(&self, id: usize) -> Link {
        let Wire { src, dst, bw, lat } = self.wires[id];
        Link {
            name: format!("{} -> {}", self.vertex(src), self.vertex(dst)),
            bandwidth: bw,
            latency_seconds: lat,
            length: 1,
        }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        links.extend(self.crossed(a, b).iter().map(|&link| link as usize));
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check, route, row};
    use super::*;
    use crate::testing::reference;

    /// Two hosts at one router and a third host at another.
    const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/platform.json");

    #[test]
    fn reads_a_platform() {
        let spec = format!("platform:{SMALL}");
        let machine = parse(&spec).expect("a platform");
        check(&*machine);
        assert_eq!((row(&*machine, 0), machine.links()), (vec![0, 2, 3], 8));
        assert_eq!(route(&spec, 2, 0), "2 -> router 4, router 4 -> router 3, router 3 -> 0");
        let backbone = machine.link(6);
        assert_eq!((backbone.bandwidth, backbone.latency_seconds), (2.5e7, 1e-3));
    }

    #[test]
    fn the_reference_platforms_are_consistent() {
        for (name, links) in [("cluster", 40), ("tree", 46), ("grid", 54)] {
            let Some(text) = reference(&format!("simgrid/platform_{name}.json")) else { return };
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("platform.json");
            std::fs::write(&file, text).expect("a file");
            let machine = parse(&format!("platform:{}", file.display())).expect(name);
            check(&*machine);
            assert_eq!((machine.pes(), machine.links()), (16, links));
        }
    }

    #[test]
    fn a_distance_is_the_longer_of_both_directions() {
        let text = r#"{"hosts": 2, "vertices": 3, "name": "detour", "links": [
            {"src": 0, "dst": 1, "bw": 1, "lat": 0}, {"src": 1, "dst": 2, "bw": 1, "lat": 0},
            {"src": 2, "dst": 0, "bw": 1, "lat": 0}],
            "routes": [{"src": 0, "dst": 1, "links": [0]}, {"src": 1, "dst": 0, "links": [1, 2]}]}"#;
        let machine = Platform::read("detour.json", text).expect("a platform");
        assert_eq!([machine.distance(0, 1), machine.distance(1, 0), machine.diameter()], [2; 3]);
    }

    #[test]
    fn errors_name_the_line_and_the_problem() {
        let text = std::fs::read_to_string(SMALL).expect("a file");
        for (part, instead, line, expected) in [
            ("{", "", 0, "expected a JSON object with hosts, vertices, links and routes: "),
            ("\"hosts\"", "\"nodes\"", 0, "missing field `hosts` at line"),
            ("\"hosts\": 3", "\"hosts\": 0", 1, "a platform has 1 to 16384 hosts, this one has 0"),
            ("\"vertices\": 5", "\"vertices\": 2", 1, "found 3 hosts, 2 vertices and 8 links"),
            ("\"vertices\": 5", "\"vertices\": 4", 7, "link 4 ends at vertex 4, but the last vertex is 3"),
            ("\"dst\": 3", "\"dst\": 0", 3, "link 0 leads from vertex 0 to itself"),
            ("\"bw\": 1e8", "\"bw\": 0", 3, "link 0 has a bandwidth of 0 and a latency of 0.0001"),
            ("\"lat\": 1e-4", "\"lat\": -1", 3, "link 0 has a bandwidth of 100000000 and a latency of -1"),
            (
                "\"src\": 3, \"dst\": 0",
                "\"src\": 0, \"dst\": 3",
                4,
                "links 0 and 1 both lead from vertex 0 to vertex 3",
            ),
            (
                "\"dst\": 2, \"links\"",
                "\"dst\": 3, \"links\"",
                13,
                "there is a route from 0 to 3; expected two different hosts of 0 to 2",
            ),
            ("[0, 3]", "[0, 9]", 12, "the route from 0 to 1 crosses link 9, but there are 8 links"),
            (
                "[0, 3]",
                "[0, 2]",
                12,
                "the route from 0 to 1 is at vertex 3 before link 2, which starts at vertex 1",
            ),
            ("[0, 3]", "[0]", 12, "the route from 0 to 1 ends at vertex 3"),
            ("[0, 3]", "[]", 12, "the route from 0 to 1 ends at vertex 0"),
            (
                "{\"src\": 0, \"dst\": 1, \"links\": [0, 3]},",
                "",
                11,
                "the file has 5 routes for 3 hosts; give one for each ordered pair of hosts",
            ),
            ("[0, 3]", "[0, 1, 0, 3]", 12, "the route from 0 to 1 visits vertex 0 twice"),
            (
                "{\"src\": 0, \"dst\": 2, \"links\": [0, 6, 5]}",
                "{\"src\": 0, \"dst\": 1, \"links\": [0, 3]}",
                13,
                "the route from 0 to 1 is given twice",
            ),
        ] {
            assert!(text.contains(part), "{part}");
            let error =
                Platform::read("platform.json", &text.replacen(part, instead, 1)).expect_err(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
            // For malformed JSON, serde reports the position.
            let found = if line == 0 {
                error.contains(" at line ")
            } else {
                error.starts_with(&format!("line {line}: "))
            };
            assert!(found, "line {line}: {error}");
        }
        let error = parse("platform:").err().expect("no name").to_string();
        assert!(error.contains("expected the name of a JSON file"), "{error}");
        let few = r#"{"hosts": 9000, "vertices": 9000, "links": [], "routes": []}"#;
        let error = Platform::read("few.json", few).expect_err("no routes");
        assert!(error.contains("the file has 0 routes for 9000 hosts"), "{error}");
    }
}
