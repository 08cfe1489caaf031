//! Changing the number of PEs of a database.

use super::{Database, End, PeRecord};

impl Database {
    /// The same objects and edges on `pes` PEs, like `+LBSimProcs` of Charm++.
    ///
    /// If the number differs, the new PEs have default records: normal speed, no background, available. Objects are
    /// placed in blocks in object order (object `i` of `n` on PE `i * pes / n`, rounded down); so are edge ends that
    /// are PEs, in PE order. If the number is the same, the database is returned unchanged.
    ///
    /// # Panics
    /// If `pes` is 0.
    pub fn remap(mut self, pes: u32) -> Database {
        assert!(pes > 0, "objects need at least one PE");
        let (recorded, objects) = (self.pes.len(), self.objects.len());
        if pes as usize == recorded {
            return self;
        }
        let block = |i: usize, n: usize| (i as u64 * u64::from(pes) / n as u64) as u32;
        self.pes = vec![PeRecord::default(); pes as usize];
        for (i, object) in self.objects.iter_mut().enumerate() {
            object.pe = block(i, objects);
        }
        for end in self.edges.iter_mut().flat_map(|edge| [&mut edge.from, &mut edge.to]) {
            if let End::Pe(pe) = end {
                *pe = block(*pe as usize, recorded);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Edge, Object, ObjectIndex};

    fn database(objects: u64, pes: usize) -> Database {
        let object = |id| Object {
            id,
            array: 0,
            index: ObjectIndex::default(),
            load_seconds: 0.1 * id as f64,
            bytes: None,
            pe: 0,
            migratable: id % 2 == 0,
        };
        let from_pe = |pe| Edge { from: End::Pe(pe as u32), to: End::Pe(0), messages: 1, bytes: 8 };
        Database {
            pes: vec![PeRecord { background_seconds: 1.0, ..PeRecord::default() }; pes],
            objects: (0..objects).map(object).collect(),
            edges: (0..pes).map(from_pe).collect(),
            ..Database::default()
        }
    }

    #[track_caller]
    fn check(objects: u64, from_pes: usize, to_pes: u32, placement: &[u32], ends: &[u32]) {
        let before = database(objects, from_pes);
        let after = before.clone().remap(to_pes);
        assert_eq!(after.check(), Ok(()));
        assert_eq!(after.pes.len(), to_pes as usize);
        assert_eq!(after.placement(), placement);
        let expected: Vec<End> = ends.iter().map(|&pe| End::Pe(pe)).collect();
        assert_eq!(after.edges.iter().map(|e| e.from).collect::<Vec<_>>(), expected);
        assert_eq!(after.load_seconds(), before.load_seconds());
        assert_eq!((after.bytes(), after.messages()), (before.bytes(), before.messages()));
        let background: f64 = after.pes.iter().map(|pe| pe.background_seconds).sum();
        assert_eq!(background, if to_pes as usize == from_pes { from_pes as f64 } else { 0.0 });
    }

    #[test]
    fn objects_and_pe_ends_are_mapped_in_blocks() {
        check(7, 2, 3, &[0, 0, 0, 1, 1, 2, 2], &[0, 1]);
        check(2, 2, 8, &[0, 4], &[0, 4]);
        check(4, 4, 2, &[0, 0, 1, 1], &[0, 0, 1, 1]);
        check(3, 2, 1, &[0, 0, 0], &[0, 0]);
        check(0, 2, 3, &[], &[0, 1]);
    }

    #[test]
    fn keeps_a_database_with_the_same_number_of_pes() {
        check(3, 2, 2, &[0, 0, 0], &[0, 1]);
    }
}
