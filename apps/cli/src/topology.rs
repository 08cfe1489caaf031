//! `equipoise topology`: the distances between the PEs of a machine, and the links of its routes.

use std::collections::HashSet;

use equipoise_apps::{Failure, FormatArg, output};
use equipoise_model::Topology;
use equipoise_model::table::{aligned, bytes, pairs, percent, seconds};
use equipoise_model::topology::{Hierarchy, Link};
use serde::Serialize;

use crate::{input, progress};

/// The maximum number of PEs for which the distances of all pairs are computed.
const MAX_PAIRS_PES: usize = 1 << 15;

/// The maximum number of links for which the range of bandwidths is computed, and for --links.
const MAX_LISTED_LINKS: usize = 1 << 20;

/// The maximum number of host names in the text output.
const MAX_NAMED_HOSTS: usize = 8;

/// The maximum number of PEs for --distances.
const MAX_LISTED_PES: usize = 1 << 12;

/// The arguments of `equipoise topology`.
#[derive(clap::Args)]
pub struct Args {
    /// The machine, as in torus:4x4x4; `help` lists all kinds
    #[arg(value_name = "SPEC", value_parser = input::machine())]
    machine: input::Machine,

    /// List the distances between all PEs in hops, one line per PE
    #[arg(long)]
    distances: bool,

    /// List the links on the route from PE A to PE B
    #[arg(long, value_names = ["A", "B"], num_args = 2, allow_negative_numbers = true)]
    route: Vec<usize>,

    /// List all links with their bandwidths
    #[arg(long, conflicts_with_all = ["route", "distances"])]
    links: bool,

    #[command(flatten)]
    output: FormatArg,
}

/// The one JSON document.
#[derive(Serialize)]
struct Document {
    topology: String,
    pes: usize,
    links: usize,
    /// Where the machine is from, if the system reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The next three values are over pairs of different PEs; `None` if the machine has too many pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    diameter: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    average_distance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Vec<Bar>>,
    /// Nodes of each level of the tree whose leaves are the PEs, root first; none on machines that have no
    /// [`Topology::hierarchy`].
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes_per_level: Option<Vec<usize>>,
    /// The host of every node, if the machine's file names the hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<String>>,
    /// A description of the tree, and the smallest and largest bandwidth of a link.
    #[serde(skip)]
    tree: Option<String>,
    #[serde(skip)]
    bandwidths: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distances: Option<Vec<Vec<u32>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<Vec<ListedLink>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_links: Option<Vec<ListedLink>>,
}

/// The number of pairs of different PEs at one distance.
#[derive(Default, Serialize)]
struct Bar {
    distance: u32,
    pairs: u64,
}

/// A link of a route or of the machine.
#[derive(Default, Serialize)]
struct ListedLink {
    link: usize,
    name: String,
    length: u32,
    bytes_per_second: f64,
    latency_seconds: f64,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let machine = &*self.machine?;
        let pes = machine.pes();
        if self.distances && pes > MAX_LISTED_PES {
            let sentence = format!(
                "--distances: {pes} PEs are too many; use a machine with at most {MAX_LISTED_PES} PEs"
            );
            return Err(Failure::usage(sentence));
        }
        if self.links && machine.links() > MAX_LISTED_LINKS {
            let links = machine.links();
            let sentence = format!(
                "--links: {links} links are too many; use a machine with at most {MAX_LISTED_LINKS} links"
            );
            return Err(Failure::usage(sentence));
        }
        if self.distances || (pes > MAX_PAIRS_PES && self.route.is_empty() && !self.links) {
            self.output.format.refuse_csv("this result")?;
        }
        let route = match self.route.as_slice() {
            &[from, to] => Some(route(machine, from, to)?),
            _ => None,
        };
        let histogram = (pes <= MAX_PAIRS_PES)
            .then(|| progress::with_spinner("computing all distances", || histogram(machine)));
        let tree = machine.hierarchy().filter(|_| pes <= MAX_PAIRS_PES);
        let row = |a: usize| {
            let mut row = vec![0; pes];
            machine.distances_from(a, &mut row);
            row
        };
        let document = Document {
            topology: machine.spec(),
            pes,
            links: machine.links(),
            note: machine.note().map(String::from),
            diameter: histogram.as_deref().map(|bars| bars.last().map_or(0, |bar| bar.distance)),
            average_distance: histogram.as_deref().map(average),
            histogram,
            nodes_per_level: tree.as_ref().map(nodes_per_level),
            hosts: hosts(machine),
            tree: tree.as_ref().filter(|tree| tree.depth() > 0).map(tree_text),
            bandwidths: bandwidths(machine),
            distances: self.distances.then(|| (0..pes).map(row).collect()),
            route,
            all_links: self
                .links
                .then(|| (0..machine.links()).map(|link| ListedLink::of(machine, link)).collect()),
        };
        let (format, text) = (self.output.format, || document.text());
        match (document.route.as_ref().or(document.all_links.as_ref()), &document.histogram) {
            (Some(route), _) => output::show_list(format, text, &document, route),
            (None, Some(bars)) => output::show_list(format, text, &document, bars),
            (None, None) => output::show(format, text, &document),
        }
    }
}

/// The host of every node, in the order of their first PEs.
fn hosts(machine: &dyn Topology) -> Option<Vec<String>> {
    // PEs of a node may have PEs of other nodes between them.
    let mut known = HashSet::new();
    let hosts: Vec<String> = (0..machine.pes())
        .map_while(|pe| Some((machine.node_of(pe), machine.host(pe)?)))
        .filter(|(node, _)| known.insert(*node))
        .map(|(_, host)| host.to_string())
        .collect();
    (!hosts.is_empty()).then_some(hosts)
}

/// The number of nodes of each level, root first.
fn nodes_per_level(tree: &Hierarchy) -> Vec<usize> {
    (0..=tree.depth()).map(|level| tree.nodes(level).len()).collect()
}

/// A description of the tree of a machine.
fn tree_text(tree: &Hierarchy) -> String {
    let join = |numbers: &[usize], between: &str| {
        numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(between)
    };
    match tree.arities() {
        Some(arities) => format!("{}, top level first", join(&arities, " x ")),
        None => format!("irregular, nodes per level from the root: {}", join(&nodes_per_level(tree), ", ")),
    }
}

/// The smallest and the largest bandwidth of a link, in bytes per second.
fn bandwidths(machine: &dyn Topology) -> Option<(f64, f64)> {
    let of_all = || (0..machine.links()).map(|link| machine.link(link).bandwidth);
    let known = (1..=MAX_LISTED_LINKS).contains(&machine.links());
    known.then(|| (of_all().fold(f64::INFINITY, f64::min), of_all().fold(0.0, f64::max)))
}

/// The number of unordered pairs of PEs at each distance.
fn histogram(machine: &dyn Topology) -> Vec<Bar> {
    let pes = machine.pes();
    let (mut row, mut far): (Vec<u32>, Vec<(u32, u64)>) = (vec![0; pes], Vec::new());
    for a in 0..pes {
        machine.distances_from(a, &mut row);
        let after = &mut row[a + 1..];
        after.sort_unstable();
        for same in after.chunk_by(|a, b| a == b) {
            match far.binary_search_by_key(&same[0], |bar| bar.0) {
                Ok(at) => far[at].1 += same.len() as u64,
                Err(at) => far.insert(at, (same[0], same.len() as u64)),
            }
        }
    }
    far.into_iter().map(|(distance, pairs)| Bar { distance, pairs }).collect()
}

fn average(bars: &[Bar]) -> f64 {
    let pairs: u64 = bars.iter().map(|bar| bar.pairs).sum();
    let sum: u128 = bars.iter().map(|bar| u128::from(bar.distance) * u128::from(bar.pairs)).sum();
    if pairs > 0 { sum as f64 / pairs as f64 } else { 0.0 }
}

impl ListedLink {
    fn of(machine: &dyn Topology, link: usize) -> ListedLink {
        let Link { name, bandwidth, latency_seconds, length } = machine.link(link);
        ListedLink { link, name, length, bytes_per_second: bandwidth, latency_seconds }
    }
}

fn route(machine: &dyn Topology, from: usize, to: usize) -> Result<Vec<ListedLink>, Failure> {
    let pes = machine.pes();
    if let Some(pe) = [from, to].into_iter().find(|&pe| pe >= pes) {
        return Err(Failure::usage(format!(
            "--route: there is no PE {pe}; {} has PEs 0 to {}",
            machine.spec(),
            pes - 1
        )));
    }
    let mut links = Vec::new();
    machine.route(from, to, &mut links);
    Ok(links.into_iter().map(|link| ListedLink::of(machine, link)).collect())
}

impl Document {
    fn text(&self) -> String {
        let mut lines = vec![
            ("machine", self.topology.clone()),
            ("PEs", self.pes.to_string()),
            ("links", format!("{}, each in one direction", self.links)),
        ];
        if let Some(note) = &self.note {
            lines.push(("note", note.clone()));
        }
        if let Some((least, most)) = self.bandwidths {
            let speed = |bandwidth: f64| format!("{}/s", bytes(bandwidth as u64));
            let range =
                if least == most { speed(least) } else { format!("{} to {}", speed(least), speed(most)) };
            lines.push(("bandwidth", format!("{range} per link")));
        }
        if let Some(tree) = &self.tree {
            lines.push(("tree", tree.clone()));
        }
        if let Some(hosts) = &self.hosts {
            let first = hosts.iter().take(MAX_NAMED_HOSTS).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = hosts.len().saturating_sub(MAX_NAMED_HOSTS);
            lines.push(("hosts", if more > 0 { format!("{first} and {more} more") } else { first }));
        }
        match (self.diameter, self.average_distance) {
            (Some(diameter), Some(average)) => lines.extend([
                ("diameter", diameter.to_string()),
                ("average distance", format!("{average:.3} between different PEs")),
            ]),
            _ => lines.push(("diameter", format!("not computed for more than {MAX_PAIRS_PES} PEs"))),
        }
        let mut text = pairs(&lines);
        if let Some(bars) = self.histogram.as_deref().filter(|bars| !bars.is_empty()) {
            text += &format!("\n{}", bar_chart(bars));
        }
        if let Some(route) = &self.route {
            text += &format!("\n{}", links_text("route", route));
        }
        if let Some(links) = &self.all_links {
            text += &format!("\n{}", links_text("link from and to", links));
        }
        if let Some(rows) = &self.distances {
            text += "\n";
            for row in rows {
                let row: Vec<String> = row.iter().map(u32::to_string).collect();
                text += &format!("{}\n", row.join(" "));
            }
        }
        text
    }
}

fn bar_chart(bars: &[Bar]) -> String {
    let all: u64 = bars.iter().map(|bar| bar.pairs).sum();
    let row = |bar: &Bar| {
        vec![bar.distance.to_string(), bar.pairs.to_string(), percent(bar.pairs as f64 / all.max(1) as f64)]
    };
    let header = ["distance", "pairs", "of all"].map(String::from).to_vec();
    aligned(&[header].into_iter().chain(bars.iter().map(row)).collect::<Vec<_>>())
}

fn links_text(title: &str, links: &[ListedLink]) -> String {
    let row = |link: &ListedLink| {
        vec![
            link.name.clone(),
            link.link.to_string(),
            link.length.to_string(),
            format!("{}/s", bytes(link.bytes_per_second as u64)),
            seconds(link.latency_seconds),
        ]
    };
    let header = [title, "link", "length", "bandwidth", "latency"].map(String::from).to_vec();
    aligned(&[header].into_iter().chain(links.iter().map(row)).collect::<Vec<_>>())
}
