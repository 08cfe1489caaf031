//! The consistency check of databases: references point at existing entries, numbers are in their ranges.

use rustc_hash::FxHashSet;

use super::{Database, End};
use crate::fault::{Classified, Fault};
use crate::params::{are_seconds, is_positive};
use crate::table::{count, there_are};

/// What is wrong with a database: a sentence that names the entry and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistent(pub String);

impl Classified for Inconsistent {
    fn fault(&self) -> Fault {
        Fault::Input
    }
}

impl Database {
    /// Checks the properties that strategies and cost models rely on.
    ///
    /// A consistent database has at least one PE. Every object is on an existing PE, has a unique id, and belongs to a
    /// named array if arrays have names. Every edge joins existing objects and PEs, and there is no edge if
    /// communication was not recorded. Times are from 0 to 1e30 seconds and speeds from 1e-30 to 1e30, so that sums of
    /// times and their quotients by speeds are finite. The total bytes and messages are below 2^64. Databases read from files have passed this check.
    ///
    /// # Errors
    /// The first problem in the order PEs, objects, edges, costs, constraints.
    pub fn check(&self) -> Result<(), Inconsistent> {
        self.check_pes()?;
        self.check_objects()?;
        self.check_edges()?;
        self.costs.as_ref().map_or(Ok(()), |costs| costs.check()).map_err(Inconsistent)?;
        self.constraints.check(self.objects.iter().map(|object| object.id)).map_err(Inconsistent)
    }

    fn check_pes(&self) -> Result<(), Inconsistent> {
        let pes = self.pes.len();
        if pes == 0 || u32::try_from(pes).is_err() {
            return Err(Inconsistent(format!("there are {pes} PEs; a database has 1 to 2^32-1 PEs")));
        }
        for (number, pe) in self.pes.iter().enumerate() {
            if !is_positive(pe.speed) {
                return Err(Inconsistent(format!(
                    "the speed of PE {number} is {:?}; a speed is from 1e-30 to 1e30, and 1 is normal",
                    pe.speed
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
                    "object {position} is on PE {pe}, but {}",
                    there_are(pes, "PE")
                )));
            }
            if arrays > 0 && o.array as usize >= arrays {
                let array = o.array;
                return Err(Inconsistent(format!(
                    "object {position} belongs to array {array}, but `arrays` has {}; name all arrays or none",
                    count(arrays as u64, "name")
                )));
            }
            check_seconds(o.load_seconds, || format!("load_seconds of object {position}"))?;
        }
        // Records of the runtime are sorted by id; they need no table.
        if !self.objects.is_sorted_by(|a, b| a.id < b.id) {
            let mut seen = FxHashSet::with_capacity_and_hasher(objects, Default::default());
            if let Some(position) = self.objects.iter().position(|o| !seen.insert(o.id)) {
                let id = self.objects[position].id;
                return Err(Inconsistent(format!(
                    "object {position} has the id {id} of another object; give every object a unique id"
                )));
            }
        }
        Ok(())
    }

    fn check_edges(&self) -> Result<(), Inconsistent> {
        let (pes, objects) = (self.pes.len(), self.objects.len());
        if !self.communication_recorded && !self.edges.is_empty() {
            return Err(Inconsistent(
                "communication was not recorded, but there is an edge; remove the edges, or set \
                 communication_recorded"
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
                        "edge {position} ends at {what} {number}, but {}; \
                         remove the edge and count it in dangling_edges",
                        there_are(count, what)
                    )));
                }
            }
            let sums = (bytes.checked_add(edge.bytes), messages.checked_add(edge.messages));
            let (Some(b), Some(m)) = sums else {
                return Err(Inconsistent(format!(
                    "the edges up to edge {position} have more than 2^64 bytes or messages in total; \
                     divide all of them by the same number"
                )));
            };
            (bytes, messages) = (b, m);
        }
        Ok(())
    }
}

fn check_seconds(seconds: f64, name: impl FnOnce() -> String) -> Result<(), Inconsistent> {
    if are_seconds(seconds) {
        return Ok(());
    }
    let name = name();
    Err(Inconsistent(format!("{name} is {seconds:?}; a time is from 0 to 1e30 seconds")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraints::Place;
    use crate::database::{Edge, Object, ObjectIndex, PeRecord};

    fn consistent() -> Database {
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
    fn check(change: impl FnOnce(&mut Database), expected: &str) {
        let mut database = consistent();
        change(&mut database);
        let error = database.check().expect_err(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    #[test]
    fn accepts_a_consistent_database() {
        assert_eq!(consistent().check(), Ok(()));
        let one_pe = Database { pes: vec![PeRecord::default()], ..Database::default() };
        assert_eq!(one_pe.check(), Ok(()), "a database may have no objects");
    }

    #[test]
    fn names_every_problem() {
        check(|d| d.communication_recorded = false, "communication was not recorded, but there is an edge");
        check(|d| d.pes.clear(), "there are 0 PEs");
        check(|d| d.pes[1].speed = 0.0, "the speed of PE 1 is 0");
        check(|d| d.pes[1].speed = f64::NAN, "the speed of PE 1 is NaN");
        check(|d| d.pes[0].background_seconds = -1.0, "background_seconds of PE 0 is -1");
        check(|d| d.pes[0].idle_seconds = f64::INFINITY, "idle_seconds of PE 0 is inf");
        check(|d| d.objects[1].pe = 2, "object 1 is on PE 2, but there are 2 PEs (0 and 1)");
        check(
            |d| d.objects[1].array = 1,
            "object 1 belongs to array 1, but `arrays` has 1 name; name all arrays or none",
        );
        check(|d| d.objects[0].load_seconds = f64::NAN, "load_seconds of object 0 is NaN");
        check(|d| d.objects[1].id = 5, "object 1 has the id 5 of another object");
        check(
            |d| d.edges[1].to = End::Object(2),
            "edge 1 ends at object 2, but there are 2 objects (0 and 1)",
        );
        check(|d| d.edges[0].from = End::Pe(9), "edge 0 ends at PE 9, but there are 2 PEs (0 and 1)");
        check(|d| d.edges[1].bytes = u64::MAX, "more than 2^64 bytes");
    }

    #[test]
    fn constraints_name_an_object_once() {
        let places = |text: &str| Place::parse(text).expect("places");
        check(
            |d| d.constraints.object_bytes = vec![(5, 1), (3, 1), (5, 1)],
            "object 5 has several sizes (`object_bytes`); give it one",
        );
        check(
            |d| d.constraints.phases = vec![(3, vec![1.0]), (3, vec![2.0])],
            "object 3 has several entries in `phases`; give it one",
        );
        check(|d| d.constraints.phases = vec![(3, vec![])], "the loads of object 3 by phase are empty");
        let must_be = "object 3 has several entries in `places` without `worth_seconds`; give it one";
        check(|d| d.constraints.places = [places("3 0"), places("3 1")].concat(), must_be);
        let mut database = consistent();
        database.constraints.places = places("3 0\n3 1 0.5\n3 1 0.5");
        assert_eq!(database.check(), Ok(()), "an object may have several wishes");
    }

    #[test]
    fn accepts_arrays_without_names() {
        let mut database = consistent();
        database.arrays.clear();
        database.objects[0].array = 4;
        assert_eq!(database.check(), Ok(()));
    }
}
