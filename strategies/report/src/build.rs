//! Makes a report from a database, a machine and placements.

use std::cmp::Reverse;

use equipoise_model::database::{Edge, End, Object};
use equipoise_model::topology::DEFAULT_BANDWIDTH;
use equipoise_model::{Database, Topology};
use equipoise_strategies::cost::explain::{Explanation, Names, largest_parts};
use equipoise_strategies::cost::mcf::seconds_of;
use equipoise_strategies::cost::{Metrics, link_loads};

use crate::data::{Objects, Pes, Placement, ReportData, VERSION};
use crate::digits::rounded;
use crate::machine::Drawing;
use crate::matrix::{Participants, between_objects, between_pes, fixed_senders_part, half_senders};

/// The digits of loads and times.
const DIGITS: i32 = 4;

/// The digits of the times of links, which the page rounds again.
const LINK_DIGITS: i32 = 8;

/// The links that are listed by name.
const TOP_LINKS: usize = 24;

/// The busiest links that the page may mark.
const MOST_BUSIEST: usize = 8;

/// The edges that are listed.
const TOP_EDGES: usize = 100;

/// A report in the making: of the placements of one database.
pub struct Builder<'a> {
    database: &'a Database,
    topology: &'a dyn Topology,
    drawing: Drawing,
    /// The report so far.
    pub data: ReportData,
}

impl<'a> Builder<'a> {
    /// A report whose placement before is `before`, with the costs `metrics`.
    ///
    /// # Panics
    /// As [`Metrics::of`], also when placements are added.
    pub fn new(
        title: String,
        database: &'a Database,
        topology: &'a dyn Topology,
        before: Vec<u32>,
        metrics: Metrics,
    ) -> Self {
        let has_messages = database.communication_recorded && !database.edges.is_empty();
        let participants = Participants::of(database);
        let links = topology.links();
        let is_assumed =
            links > 0 && (0..links).all(|link| topology.link(link).bandwidth == DEFAULT_BANDWIDTH);
        let spec = topology.spec();
        // PEs of which nothing is known but their number have no picture, only a list of links.
        let is_plain = spec.strip_prefix("flat:").is_some_and(|pes| pes.parse::<usize>().is_ok());
        let drawing = if is_plain { Drawing::none() } else { Drawing::of(topology) };
        let data = ReportData {
            version: VERSION,
            title,
            topology: spec,
            assumed_bandwidth: is_assumed.then_some(DEFAULT_BANDWIDTH),
            pes: pes(database, topology),
            objects: objects(database),
            matrix: has_messages.then(|| between_objects(database, &participants)),
            senders: participants.senders,
            receivers: participants.receivers,
            half_senders: half_senders(database),
            fixed_senders_part: fixed_senders_part(database),
            heaviest_edges: heaviest_edges(database),
            machine: has_messages.then(|| drawing.machine.clone()),
            ..ReportData::default()
        };
        let mut builder = Builder { database, topology, drawing, data };
        builder.place("as recorded".into(), &before, metrics);
        builder
    }

    /// Adds a placement, and returns it for what only the caller knows of it.
    pub fn place(&mut self, name: String, pe_of: &[u32], metrics: Metrics) -> &mut Placement {
        let (database, topology) = (self.database, self.topology);
        let before = self.data.placements.first().map(|first| first.pe_of.clone());
        let loads = database.pe_loads(pe_of).into_iter().map(|load| rounded(load, DIGITS)).collect();
        let mut placement =
            Placement { name, metrics, pe_of: pe_of.to_vec(), load_seconds: loads, ..Placement::default() };
        if self.data.matrix.is_some() {
            let start = before.as_deref().unwrap_or(pe_of);
            let explained = Explanation::of(database, topology, start, pe_of, TOP_LINKS);
            placement.distances =
                explained.distances.iter().map(|at| (at.distance, at.bytes_after)).collect();
            placement.levels = explained.levels.into_iter().map(|at| (at.name, at.bytes_after)).collect();
            let hot = explained.hot_after.into_iter();
            placement.top_links =
                hot.map(|link| (link.name, link.bytes, rounded(link.seconds, LINK_DIGITS))).collect();
            let links = link_loads(database, topology, pe_of);
            let seconds: Vec<f64> = seconds_of(topology, &links).collect();
            let most = seconds.iter().copied().fold(0.0, f64::max);
            let above = |part: f64| seconds.iter().filter(|&&it| it > 0.0 && it >= part * most).count();
            // Times that differ by rounding only are equal.
            placement.busiest_links = [1.0 - 1e-9, 0.95].map(above);
            let busiest = (0..).zip(&seconds).filter(|&(_, &it)| it > 0.0 && it >= (1.0 - 1e-9) * most);
            placement.busiest_drawn =
                self.drawing.drawn_of(busiest.map(|(link, _)| link)).take(MOST_BUSIEST).collect();
            placement.link_seconds =
                self.drawing.seconds(&seconds).into_iter().map(|it| rounded(it, DIGITS)).collect();
            placement.matrix = Some(between_pes(database, pe_of, topology.pes()));
            if let Some(before) = before {
                placement.hop_bytes_by_move = hop_bytes_by_move(database, topology, &before, pe_of);
            }
        }
        self.data.placements.push(placement);
        let last = self.data.placements.len() - 1;
        &mut self.data.placements[last]
    }
}

fn pes(database: &Database, topology: &dyn Topology) -> Pes {
    let all = 0..topology.pes();
    let speeds: Vec<f64> = database.pes.iter().map(|pe| pe.speed).collect();
    let nodes: Vec<u32> = all.clone().map(|pe| topology.node_of(pe) as u32).collect();
    let (largest_parts, part_of) = largest_parts(topology).unwrap_or_default();
    let several = {
        let mut found = nodes.clone();
        found.sort_unstable();
        found.dedup();
        found.len() < nodes.len()
    };
    let border = |pe: usize| match pe {
        0 => 0,
        pe if !part_of.is_empty() && part_of[pe] != part_of[pe - 1] => 2,
        pe if several && nodes[pe] != nodes[pe - 1] => 1,
        _ => 0,
    };
    let borders = all.clone().map(border).collect();
    let names = Names::of(topology);
    let background = database.pes.iter().map(|pe| rounded(pe.background_seconds, DIGITS)).collect();
    Pes {
        names: match topology.host(0) {
            Some(_) => all.map(|pe| names.pe(pe as u32).to_string()).collect(),
            None => Vec::new(),
        },
        speeds: if speeds.iter().all(|&speed| speed == 1.0) { Vec::new() } else { speeds },
        background_seconds: background,
        unavailable: (0..)
            .zip(&database.pes)
            .filter(|(_, pe)| !pe.available)
            .map(|(number, _)| number)
            .collect(),
        nodes,
        borders,
        largest_parts,
    }
}

fn objects(database: &Database) -> Objects {
    let all = &database.objects;
    let mut dimensions: Vec<u8> = all.iter().map(|object| object.index.coordinates().len() as u8).collect();
    let most = dimensions.iter().copied().max().unwrap_or(0);
    if dimensions.iter().all(|&it| it == most) {
        dimensions.clear();
    }
    let is_named = |object: &Object| !object.index.coordinates().is_empty();
    let are_ids_known = all.iter().all(is_named) || (0..).zip(all).all(|(at, object)| object.id == at);
    let coordinate = |object: &Object, d: u8| object.index.coordinates().get(usize::from(d)).copied();
    let column = |d: u8| all.iter().map(|object| coordinate(object, d).unwrap_or(0)).collect();
    Objects {
        arrays: database.arrays.clone(),
        array: all.iter().map(|object| object.array).collect(),
        index: (0..most).map(column).collect(),
        dimensions,
        ids: if are_ids_known {
            Vec::new()
        } else {
            all.iter().map(|object| object.id.to_string()).collect()
        },
        load_seconds: all.iter().map(|object| rounded(object.load_seconds, DIGITS)).collect(),
        bytes: all.iter().map(|object| object.bytes).collect::<Option<_>>().unwrap_or_default(),
    }
}

fn heaviest_edges(database: &Database) -> Vec<(u32, u32, u64)> {
    let of_objects = |edge: &Edge| match (edge.from, edge.to) {
        (End::Object(from), End::Object(to)) if from != to => Some((from, to, edge.bytes)),
        _ => None,
    };
    let mut edges: Vec<_> = database.edges.iter().filter_map(of_objects).collect();
    let rank = |&(from, to, bytes): &(u32, u32, u64)| (Reverse(bytes), from, to);
    if edges.len() > TOP_EDGES {
        edges.select_nth_unstable_by_key(TOP_EDGES, rank);
        edges.truncate(TOP_EDGES);
    }
    edges.sort_unstable_by_key(rank);
    edges
}

/// By object: the hop-bytes after, less what they would be if it alone had stayed where it was before.
fn hop_bytes_by_move(
    database: &Database,
    topology: &dyn Topology,
    before: &[u32],
    after: &[u32],
) -> Vec<i64> {
    let mut changes = vec![0i128; after.len()];
    let distance = |from: u32, to: u32| i128::from(topology.distance(from as usize, to as usize));
    let moves =
        |end: End| matches!(end, End::Object(object) if before[object as usize] != after[object as usize]);
    let others = database.edges.iter().filter(|edge| edge.from != edge.to);
    for edge in others.filter(|edge| moves(edge.from) || moves(edge.to)) {
        let [[from, to], [was_from, was_to]] =
            [after, before].map(|pe_of| [edge.from, edge.to].map(|end| end.pe(pe_of)));
        let now = distance(from, to);
        for (end, otherwise) in [(edge.from, distance(was_from, to)), (edge.to, distance(from, was_to))] {
            if let End::Object(object) = end {
                changes[object as usize] += i128::from(edge.bytes) * (now - otherwise);
            }
        }
    }
    changes.into_iter().map(|it| rounded(it as f64, 3) as i64).collect()
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::PeRecord;
    use equipoise_model::{graph, topology};

    use super::*;

    #[test]
    fn the_change_by_a_move_is_that_of_putting_one_object_back() {
        let topology = topology::parse("torus:4x4").expect("a machine");
        let mut database = graph::tasks(32);
        database.pes = vec![PeRecord::default(); 16];
        let edge =
            |from: u32, to| Edge { from: End::Object(from), to, messages: 1, bytes: u64::from(from) + 1 };
        let next = (0..32).map(|object| edge(object, End::Object((object + 1) % 32)));
        let far = (0..32).map(|object| edge(object, End::Object((object + 11) % 32)));
        database.edges = next.chain(far).chain([edge(5, End::Pe(3)), edge(7, End::Object(7))]).collect();
        let before: Vec<u32> = (0..32).map(|object| object / 2).collect();
        let after: Vec<u32> = (0..32).map(|object| (7 * object + object / 5) % 16).collect();
        let hop_bytes = |pe_of: &[u32]| {
            let cost = Metrics::of(&database, topology.as_ref(), pe_of).communication;
            cost.expect("bytes").hop_bytes as i64
        };
        let mut moved = 0;
        for (object, change) in (0..).zip(hop_bytes_by_move(&database, topology.as_ref(), &before, &after)) {
            let mut others = after.clone();
            others[object] = before[object];
            assert_eq!(change, hop_bytes(&after) - hop_bytes(&others), "object {object}");
            moved += u32::from(change != 0);
        }
        assert!(moved > 10, "{moved}");
    }

    /// Also a message of an object to itself, and one between PEs.
    #[test]
    fn every_byte_has_a_distance_and_a_level() {
        let topology = topology::parse("tree:2:2").expect("a machine");
        let mut database = graph::load("mesh:4,bytes=10").expect("a graph").remap(4);
        let edge = |from, to, bytes| Edge { from, to, messages: 1, bytes };
        database.edges.push(edge(End::Object(0), End::Object(0), 900));
        database.edges.push(edge(End::Pe(0), End::Pe(3), 77));
        let before = database.placement();
        let metrics = Metrics::of(&database, topology.as_ref(), &before);
        let total = metrics.communication.expect("bytes").total_bytes;
        let builder = Builder::new("a mesh".into(), &database, topology.as_ref(), before, metrics);
        let placed = &builder.data.placements[0];
        assert_eq!(placed.distances, [(0, 900), (2, 40), (4, 20 + 77)]);
        assert_eq!(placed.levels.iter().map(|(_, bytes)| bytes).sum::<u64>(), total);
    }
}
