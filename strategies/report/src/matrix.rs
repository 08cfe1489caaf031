//! The bytes between objects, in bins.

use std::cmp::Reverse;

use equipoise_model::Database;
use equipoise_model::database::End;

use crate::data::Matrix;
use crate::digits::rounded;
use crate::heat::MAX_BINS;

/// The objects that rows and columns of matrices stand for.
#[derive(Default)]
pub(crate) struct Participants {
    /// The objects that send to objects, in the order of the database; empty if they are at least half of all, so that rows are all objects.
    pub(crate) senders: Vec<u32>,
    /// The objects that receive from objects, in the same way.
    pub(crate) receivers: Vec<u32>,
}

impl Participants {
    pub(crate) fn of(database: &Database) -> Participants {
        let objects = database.objects.len();
        let [mut sends, mut receives] = [(); 2].map(|()| vec![false; objects]);
        for edge in &database.edges {
            if let (End::Object(from), End::Object(to)) = (edge.from, edge.to) {
                (sends[from as usize], receives[to as usize]) = (true, true);
            }
        }
        let few = |is: &[bool]| {
            let some: Vec<u32> = (0..).zip(is).filter(|(_, is)| **is).map(|(object, _)| object).collect();
            if 2 * some.len() < objects { some } else { Vec::new() }
        };
        Participants { senders: few(&sends), receivers: few(&receives) }
    }
}

/// By object: its bin, if the objects of a list, or all of them if it is empty, are divided among bins in the order of the database; and the
/// number of bins.
fn bins(list: &[u32], objects: usize) -> (Vec<u32>, usize) {
    let all: Vec<u32> = (0..objects as u32).collect();
    let list = if list.is_empty() { &all } else { list };
    let bins = list.len().min(MAX_BINS);
    let mut bin_of = vec![0; objects];
    for (at, &object) in list.iter().enumerate() {
        bin_of[object as usize] = (at * bins / list.len()) as u32;
    }
    (bin_of, bins)
}

/// The matrix of the bytes between the objects of `database`, in its order. Messages of PEs, which are no objects, are left out.
pub(crate) fn between_objects(database: &Database, participants: &Participants) -> Matrix {
    let objects = database.objects.len();
    let (row_of, rows) = bins(&participants.senders, objects);
    let (column_of, columns) = bins(&participants.receivers, objects);
    matrix(database, (&row_of, rows), (&column_of, columns))
}

/// The matrix of the bytes between the PEs of objects. Messages of PEs, which are no objects, are left out.
pub(crate) fn between_pes(database: &Database, pe_of: &[u32], pes: usize) -> Matrix {
    let bins = pes.min(MAX_BINS);
    let bin_of: Vec<u32> = pe_of.iter().map(|&pe| (pe as usize * bins / pes) as u32).collect();
    matrix(database, (&bin_of, bins), (&bin_of, bins))
}

/// The bytes of all edges between objects, of which each has a row and a column.
fn matrix(
    database: &Database,
    (row_of, rows): (&[u32], usize),
    (column_of, columns): (&[u32], usize),
) -> Matrix {
    let mut bytes = vec![0u64; rows * columns];
    for edge in &database.edges {
        if let (End::Object(from), End::Object(to)) = (edge.from, edge.to) {
            let cell = &mut bytes[row_of[from as usize] as usize * columns + column_of[to as usize] as usize];
            *cell = cell.saturating_add(edge.bytes);
        }
    }
    let mut matrix = Matrix { rows, columns, ..Matrix::default() };
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

/// By object: the bytes that it sends to other objects.
fn sent(database: &Database) -> Vec<u128> {
    let mut sent = vec![0; database.objects.len()];
    for edge in database.edges.iter().filter(|edge| edge.from != edge.to) {
        if let (End::Object(from), End::Object(_)) = (edge.from, edge.to) {
            sent[from as usize] += u128::from(edge.bytes);
        }
    }
    sent
}

/// The part of the bytes between objects, without those to themselves, whose sender cannot move; none if there are none, or if nothing
/// can move.
pub(crate) fn fixed_senders_part(database: &Database) -> Option<f64> {
    if database.objects.iter().all(|object| !object.migratable) {
        return None;
    }
    let sent = sent(database);
    let total: u128 = sent.iter().sum();
    let fixed: u128 = database
        .objects
        .iter()
        .zip(&sent)
        .filter(|(object, _)| !object.migratable)
        .map(|(_, sent)| sent)
        .sum();
    (total > 0).then(|| rounded(fixed as f64 / total as f64, 4))
}

/// The fewest objects that together send half of the bytes between objects, without those to themselves; none if there are none.
pub(crate) fn half_senders(database: &Database) -> Option<u32> {
    let mut sent = sent(database);
    sent.sort_unstable_by_key(|&bytes| Reverse(bytes));
    let total: u128 = sent.iter().sum();
    let mut sum = 0;
    let reaches_half = |&bytes: &u128| {
        sum += bytes;
        2 * sum >= total
    };
    sent.iter().position(reaches_half).filter(|_| total > 0).map(|at| at as u32 + 1)
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Edge, Object};

    use super::*;

    #[test]
    fn cells_follow_objects_and_pes() {
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
        let participants = Participants::of(&database);
        assert!(
            participants.senders.is_empty() && participants.receivers.is_empty(),
            "two of three objects send, and two receive"
        );
        let found = between_objects(&database, &participants);
        assert_eq!((found.rows, found.columns, found.ends), (3, 3, [4, 16]));
        assert_eq!((found.gaps, found.levels), (vec![1, 5], vec![16, 8]));
        let found = between_pes(&database, &[1, 0, 1], 2);
        assert_eq!((found.rows, found.columns, found.ends), (2, 2, [4, 16]));
        assert_eq!((found.gaps, found.levels), (vec![2, 1], vec![16, 8]), "PE 1 sends 16 B to PE 0");
        assert_eq!(half_senders(&database), Some(1), "object 0 sends 16 of 20 bytes");
        let mut fixed = database.clone();
        fixed.objects[0].migratable = false;
        assert_eq!([&database, &fixed].map(fixed_senders_part), [Some(0.0), Some(0.8)]);
        fixed.objects.iter_mut().for_each(|object| object.migratable = false);
        assert_eq!(fixed_senders_part(&fixed), None, "nothing can move");
        let silent = Database { edges: Vec::new(), ..database.clone() };
        assert_eq!((half_senders(&silent), fixed_senders_part(&silent)), (None, None));

        // One of three objects sends, so that there is one row.
        let database =
            Database { edges: vec![edge(End::Object(2), 0, 8), edge(End::Object(2), 1, 4)], ..database };
        let participants = Participants::of(&database);
        assert_eq!((&participants.senders[..], participants.receivers.len()), (&[2][..], 0));
        let found = between_objects(&database, &participants);
        assert_eq!((found.rows, found.columns, found.gaps, found.levels), (1, 3, vec![0, 1], vec![12, 8]));
    }
}
