//! The communication partners of objects.

use equipoise_model::Database;
use equipoise_model::database::End;

/// By object: the number of other objects with which it exchanges messages, with or without bytes.
pub(super) fn of_objects(database: &Database) -> Vec<u32> {
    let mut pairs = Vec::new();
    for edge in database.edges.iter().filter(|edge| edge.messages > 0 || edge.bytes > 0) {
        if let (End::Object(a), End::Object(b)) = (edge.from, edge.to)
            && a != b
        {
            pairs.push((a.min(b), a.max(b)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut partners = vec![0; database.objects.len()];
    for (a, b) in pairs {
        partners[a as usize] += 1;
        partners[b as usize] += 1;
    }
    partners
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::Edge;
    use equipoise_strategies::workloads;

    use super::*;

    #[test]
    fn partners_are_counted_once_and_messages_may_be_empty() {
        let mut database = workloads::load("mesh:4").expect("a mesh");
        let end = End::Object;
        let edge = |from, to, messages| Edge { from, to, messages, bytes: 0 };
        database.edges.clear();
        database.edges.extend([edge(end(0), end(1), 5), edge(end(1), end(0), 5), edge(end(2), end(2), 5)]);
        database.edges.extend([edge(end(1), End::Pe(0), 5), edge(end(2), end(3), 0)]);
        database.edges.push(Edge { bytes: 7, ..edge(end(3), end(1), 1) });
        assert_eq!(of_objects(&database), [1, 2, 0, 1]);
    }
}
