//! The communication of a step by the distance that it travels. On the machine of a job, distances
//! are numbers of levels: in `job:2x4`, 0 is inside a PE, 1 inside a process, 2 between processes of a node, and more is between
//! nodes.

use std::collections::BTreeMap;

use equipoise_model::table::percent;
use equipoise_model::{Database, Topology};
use serde::Serialize;

/// The largest number of distances in a line of the text; the rest is summed up.
const MOST: usize = 8;

/// The communication between PEs of one distance.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct AtDistance {
    pub(super) distance: u32,
    messages: u64,
    bytes: u64,
}

/// The communication of a step by distance, in increasing order; none for another number of PEs than that of the machine.
pub(super) fn by_distance(database: &Database, machine: &dyn Topology) -> Option<Vec<AtDistance>> {
    if machine.pes() != database.pes.len() {
        return None;
    }
    let (placement, mut sums) = (database.placement(), BTreeMap::new());
    for edge in &database.edges {
        let [from, to] = [edge.from, edge.to].map(|end| end.pe(&placement) as usize);
        let (messages, bytes): &mut (u64, u64) = sums.entry(machine.distance(from, to)).or_default();
        *messages = messages.saturating_add(edge.messages);
        *bytes = bytes.saturating_add(edge.bytes);
    }
    let at = |(distance, (messages, bytes))| AtDistance { distance, messages, bytes };
    Some(sums.into_iter().map(at).collect())
}

/// The bytes of each distance as part of all bytes; none if there are no bytes.
pub(super) fn line(all: &[AtDistance]) -> Option<String> {
    let whole = all.iter().fold(0u64, |sum, at| sum.saturating_add(at.bytes));
    let part = |bytes: u64| percent(bytes as f64 / whole as f64);
    let (shown, rest) = all.split_at(all.len().min(MOST));
    let mut parts: Vec<String> =
        shown.iter().map(|at| format!("{} at {}", part(at.bytes), at.distance)).collect();
    if let Some(last) = shown.last().filter(|_| !rest.is_empty()) {
        let bytes = rest.iter().fold(0u64, |sum, at| sum.saturating_add(at.bytes));
        parts.push(format!("{} at more than {}", part(bytes), last.distance));
    }
    (whole > 0).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology::parse;
    use equipoise_strategies::workloads;

    use super::*;

    #[test]
    fn every_byte_has_the_distance_of_its_pes() {
        // Object i is on PE i, and sends a message of a byte to either neighbour.
        let database = workloads::load("mesh:8,bytes=1").expect("a generator").remap(8);
        let machine = parse("job:2x2:flat:2").expect("a machine");
        let found = by_distance(&database, &*machine).expect("8 PEs");
        let per_message = database.edges[0].messages;
        let expected = [(1, 8), (2, 4), (3, 2)].map(|(distance, pairs): (u32, u64)| AtDistance {
            distance,
            messages: pairs * per_message,
            bytes: pairs * database.edges[0].bytes,
        });
        assert_eq!(found, expected);
        assert_eq!(line(&found).as_deref(), Some("57.1 % at 1, 28.6 % at 2, 14.3 % at 3"));
        assert_eq!(by_distance(&database, &*parse("flat:7").expect("a machine")), None);
        assert_eq!(line(&[]), None);
    }

    #[test]
    fn many_distances_are_summed_up() {
        let all: Vec<AtDistance> =
            (0..10).map(|distance| AtDistance { distance, messages: 1, bytes: 10 }).collect();
        let line = line(&all).expect("bytes");
        assert!(line.ends_with("10.0 % at 7, 20.0 % at more than 7"), "{line}");
    }
}
