//! The bytes between objects, in bins.

use std::cmp::Reverse;

use equipoise_model::Database;
use equipoise_model::database::End;

use crate::data::Matrix;
use crate::heat::MAX_BINS;

/// The matrix of the bytes between the objects of `database`, where `rank_of[i]` is the rank of object `i`. Messages of PEs, which
/// are no objects, are left out.
pub(crate) fn matrix(database: &Database, rank_of: &[u32]) -> Matrix {
    let objects = rank_of.len();
    let bins = objects.min(MAX_BINS);
    let bin = |object: u32| rank_of[object as usize] as usize * bins / objects;
    let mut bytes = vec![0u64; bins * bins];
    for edge in &database.edges {
        if let (End::Object(from), End::Object(to)) = (edge.from, edge.to) {
            let cell = &mut bytes[bin(from) * bins + bin(to)];
            *cell = cell.saturating_add(edge.bytes);
        }
    }
    let mut matrix = Matrix { bins, ..Matrix::default() };
    let mut last = 0;
    for (at, bytes) in bytes.into_iter().enumerate().filter(|&(_, bytes)| bytes > 0) {
        matrix.gaps.push((at - last) as u32);
        matrix.levels.push((4.0 * (bytes as f64).log2()).round() as u16);
        let [least, most] = matrix.ends;
        matrix.ends = [if most == 0 { bytes } else { least.min(bytes) }, most.max(bytes)];
        last = at;
    }
    matrix
}

/// The fewest objects that together send half of the bytes between objects, without those to themselves; none if there are none.
pub(crate) fn half_senders(database: &Database) -> Option<u32> {
    let mut sent = vec![0u128; database.objects.len()];
    for edge in database.edges.iter().filter(|edge| edge.from != edge.to) {
        if let (End::Object(from), End::Object(_)) = (edge.from, edge.to) {
            sent[from as usize] += u128::from(edge.bytes);
        }
    }
    sent.sort_unstable_by_key(|&bytes| Reverse(bytes));
    let total: u128 = sent.iter().sum();
    let mut sum = 0;
    let reaches_half = |&bytes: &u128| {
        sum += bytes;
        2 * sum >= total
    };
    sent.iter().position(reaches_half).filter(|_| total > 0).map(|at| at as u32 + 1)
}

/// The rank of each object if objects are ordered by their PE, and on a PE as in the database.
pub(crate) fn ranks_by_pe(pe_of: &[u32], pes: usize) -> Vec<u32> {
    let mut next = vec![0u32; pes + 1];
    pe_of.iter().for_each(|&pe| next[pe as usize + 1] += 1);
    for pe in 0..pes {
        next[pe + 1] += next[pe];
    }
    let rank = |&pe: &u32| {
        let rank = next[pe as usize];
        next[pe as usize] += 1;
        rank
    };
    pe_of.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Edge, Object};

    use super::*;

    #[test]
    fn cells_follow_the_ranks_of_objects() {
        let object = |id| Object {
            id,
            array: 0,
            index: Default::default(),
            load_seconds: 1.0,
            bytes: None,
            pe: 0,
            migratable: true,
        };
        let edge = |from, to, bytes| Edge { from, to: End::Object(to), messages: 1, bytes };
        let database = Database {
            objects: (0..3).map(object).collect(),
            edges: vec![
                edge(End::Object(0), 1, 16),
                edge(End::Object(2), 0, 3),
                edge(End::Object(2), 0, 1),
                edge(End::Pe(0), 2, 99),
            ],
            ..Database::default()
        };
        let ranks = ranks_by_pe(&[1, 0, 1], 2);
        assert_eq!(ranks, [1, 0, 2]);
        let found = matrix(&database, &ranks);
        assert_eq!((found.bins, found.gaps, found.levels, found.ends), (3, vec![3, 4], vec![16, 8], [4, 16]));
        assert_eq!(half_senders(&database), Some(1), "object 0 sends 16 of 20 bytes");
        assert_eq!(half_senders(&Database { edges: Vec::new(), ..database }), None);
    }
}
