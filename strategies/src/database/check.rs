//! Whether a database is whole: every reference points at something, every number means something.

use rustc_hash::FxHashSet;

use super::{Database, End};

/// What is wrong with a database: a sentence that names the entry and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistent(pub String);

impl Database {
    /// Whether strategies and cost models may rely on it.
    ///
    /// A database that passes has at least one PE; every object is on one of them, has an id of its own and
    /// belongs to a named array if any array has a name; every edge joins objects and PEs that exist, and
    /// there is none where communication was not recorded; every time is finite and not negative and every
    /// speed positive; and its total bytes and messages are below 2^64. What was read from a file has passed.
    ///
    /// # Errors
    /// The first thing that is wrong, in the order PEs, objects, edges.
    pub fn check(&self) -> Result<(), Inconsistent> {
        self.check_pes()?;
        self.check_objects()?;
        self.check_edges()
    }

    fn check_pes(&self) -> Result<(), Inconsistent> {
        let pes = self.pes.len();
        if pes == 0 || u32::try_from(pes).is_err() {
            return Err(Inconsistent(format!("there are {pes} PEs; a database has 1 to 2^32-1 of them")));
        }
        for (number, pe) in self.pes.iter().enumerate() {
            if !(pe.speed.is_finite() && pe.speed > 0.0) {
                let speed = pe.speed;
                return Err(Inconsistent(format!(
                    "the speed of PE {number} is {speed}; a speed is positive, and 1 is normal"
                )));
            }
            let times = [
                ("wall_seconds", pe.wall_seconds),
                ("idle_seconds", pe.idle_seconds),
                ("background_seconds", pe.background_seconds),
            ];
            for (name, seconds) in times {
                check_seconds(seconds, || format!("{name} of PE {number}"))?;
            }
        }
        Ok(())
    }

    fn check_objects(&self) -> Result<(), Inconsistent> {
        let (pes, arrays, objects) = (self.pes.len(), self.arrays.len(), self.objects.len());
        if u32::try_from(objects).is_err() {
            return Err(Inconsistent(format!("there are {objects} objects; a database has at most 2^32-1")));
        }
        for (position, o) in self.objects.iter().enumerate() {
            if o.pe as usize >= pes {
                let pe = o.pe;
                return Err(Inconsistent(format!(
                    "object {position} is on PE {pe}, and there are only {pes}; PEs are numbered from 0"
                )));
            }
            if arrays > 0 && o.array as usize >= arrays {
                let array = o.array;
                return Err(Inconsistent(format!(
                    "object {position} belongs to array {array}, and only {arrays} have names; \
                     name all arrays or none"
                )));
            }
            check_seconds(o.load_seconds, || format!("load_seconds of object {position}"))?;
        }
        // Records of the runtime come in ascending order, and then no table is needed.
        if !self.objects.is_sorted_by(|a, b| a.id < b.id) {
            let mut seen = FxHashSet::with_capacity_and_hasher(objects, Default::default());
            if let Some(position) = self.objects.iter().position(|o| !seen.insert(o.id)) {
                let id = self.objects[position].id;
                return Err(Inconsistent(format!(
                    "object {position} has the id {id} of another object; give every object its own"
                )));
            }
        }
        Ok(())
    }

    fn check_edges(&self) -> Result<(), Inconsistent> {
        let (pes, objects) = (self.pes.len(), self.objects.len());
        if !self.communication_recorded && !self.edges.is_empty() {
            return Err(Inconsistent(
                "communication was not recorded, and there is an edge; remove the edges, or say that it was \
                 recorded"
                    .into(),
            ));
        }
        let (mut bytes, mut messages) = (0u64, 0u64);
        for (position, edge) in self.edges.iter().enumerate() {
            for end in [edge.from, edge.to] {
                let (what, number, count) = match end {
                    End::Object(object) => ("object", object, objects),
                    End::Pe(pe) => ("PE", pe, pes),
                };
                if number as usize >= count {
                    return Err(Inconsistent(format!(
                        "edge {position} ends at {what} {number}, and there are only {count}; \
                         leave it out and count it in dangling_edges"
                    )));
                }
            }
            let sums = (bytes.checked_add(edge.bytes), messages.checked_add(edge.messages));
            let (Some(b), Some(m)) = sums else {
                return Err(Inconsistent(format!(
                    "the edges up to number {position} have more than 2^64 bytes or messages in all; \
                     divide all of them by the same number"
                )));
            };
            (bytes, messages) = (b, m);
        }
        Ok(())
    }
}

fn check_seconds(seconds: f64, name: impl FnOnce() -> String) -> Result<(), Inconsistent> {
    if seconds.is_finite() && seconds >= 0.0 {
        return Ok(());
    }
    let name = name();
    Err(Inconsistent(format!("{name} is {seconds}; a time is finite and not negative")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Edge, Object, ObjectIndex, PeRecord};

    fn whole() -> Database {
        let object = |id, pe| Object {
            id,
            array: 0,
            index: ObjectIndex::default(),
            load_seconds: 1.0,
            bytes: Some(3),
            pe,
            migratable: true,
        };
        let edge = |from, to| Edge { from, to, messages: 1, bytes: 1 << 62 };
        Database {
            arrays: vec!["blocks".into()],
            pes: vec![PeRecord::default(); 2],
            objects: vec![object(5, 0), object(3, 1)],
            edges: vec![edge(End::Object(0), End::Object(1)), edge(End::Pe(1), End::Object(0))],
            ..Database::default()
        }
    }

    #[track_caller]
    fn check(spoil: impl FnOnce(&mut Database), expected: &str) {
        let mut database = whole();
        spoil(&mut database);
        let error = database.check().expect_err(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    #[test]
    fn a_whole_database_passes() {
        assert_eq!(whole().check(), Ok(()));
        let one_pe = Database { pes: vec![PeRecord::default()], ..Database::default() };
        assert_eq!(one_pe.check(), Ok(()), "no objects is fine");
    }

    #[test]
    fn everything_that_can_be_wrong_is_named() {
        check(|d| d.communication_recorded = false, "communication was not recorded, and there is an edge");
        check(|d| d.pes.clear(), "there are 0 PEs");
        check(|d| d.pes[1].speed = 0.0, "the speed of PE 1 is 0");
        check(|d| d.pes[1].speed = f64::NAN, "the speed of PE 1 is NaN");
        check(|d| d.pes[0].background_seconds = -1.0, "background_seconds of PE 0 is -1");
        check(|d| d.pes[0].idle_seconds = f64::INFINITY, "idle_seconds of PE 0 is inf");
        check(|d| d.objects[1].pe = 2, "object 1 is on PE 2, and there are only 2");
        check(|d| d.objects[1].array = 1, "object 1 belongs to array 1, and only 1 have names");
        check(|d| d.objects[0].load_seconds = f64::NAN, "load_seconds of object 0 is NaN");
        check(|d| d.objects[1].id = 5, "object 1 has the id 5 of another object");
        check(|d| d.edges[1].to = End::Object(2), "edge 1 ends at object 2, and there are only 2");
        check(|d| d.edges[0].from = End::Pe(9), "edge 0 ends at PE 9, and there are only 2");
        check(|d| d.edges[1].bytes = u64::MAX, "more than 2^64 bytes");
    }

    #[test]
    fn arrays_need_no_names() {
        let mut database = whole();
        database.arrays.clear();
        database.objects[0].array = 4;
        assert_eq!(database.check(), Ok(()));
    }
}
