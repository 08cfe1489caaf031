//! Sums over a database.

use serde::Serialize;

use super::Database;

/// What a step holds, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The load-balancing step.
    pub step: u64,
    /// PEs.
    pub pes: usize,
    /// Chare arrays with a name.
    pub arrays: usize,
    /// Objects.
    pub objects: usize,
    /// Objects that may be moved.
    pub migratable_objects: usize,
    /// The sum of the objects' loads.
    pub load_seconds: f64,
    /// The sum of the PEs' background.
    pub background_seconds: f64,
    /// The communication; `None` where it was not recorded.
    #[serde(flatten)]
    pub communication: Option<Volumes>,
}

/// The communication of a step, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Volumes {
    /// Pairs of a sender and a receiver.
    pub edges: usize,
    /// Records of communication with an object that is not there.
    pub dangling_edges: u64,
    /// Messages in the period.
    pub messages: u64,
    /// Bytes in the period.
    pub bytes: u64,
}

impl Database {
    /// The sum of the objects' loads, in seconds at speed 1; it does not depend on where they are.
    pub fn load_seconds(&self) -> f64 {
        // From 0, because the sum of nothing is -0.0.
        self.objects.iter().fold(0.0, |sum, o| sum + o.load_seconds)
    }

    /// The bytes of all edges; saturates at 2^64-1, which [`Database::check`] excludes.
    pub fn bytes(&self) -> u64 {
        self.edges.iter().fold(0, |sum, edge| edge.bytes.saturating_add(sum))
    }

    /// The messages of all edges; saturates at 2^64-1, which [`Database::check`] excludes.
    pub fn messages(&self) -> u64 {
        self.edges.iter().fold(0, |sum, edge| edge.messages.saturating_add(sum))
    }

    /// Seconds each PE would take when object `i` is on `placement[i]`: its background, and the loads
    /// of its objects over its speed.
    ///
    /// # Panics
    /// When `placement` names a PE that is not in the database.
    pub fn pe_loads(&self, placement: &[u32]) -> Vec<f64> {
        let mut loads = vec![0.0; self.pes.len()];
        for (object, &pe) in self.objects.iter().zip(placement) {
            loads[pe as usize] += object.load_seconds;
        }
        for (load, pe) in loads.iter_mut().zip(&self.pes) {
            *load = *load / pe.speed + pe.background_seconds;
        }
        loads
    }

    /// Its numbers.
    pub fn summary(&self) -> Summary {
        Summary {
            step: self.step,
            pes: self.pes.len(),
            arrays: self.arrays.len(),
            objects: self.objects.len(),
            migratable_objects: self.objects.iter().filter(|o| o.migratable).count(),
            load_seconds: self.load_seconds(),
            background_seconds: self.pes.iter().fold(0.0, |sum, pe| sum + pe.background_seconds),
            communication: self.communication_recorded.then(|| Volumes {
                edges: self.edges.len(),
                dangling_edges: self.dangling_edges,
                messages: self.messages(),
                bytes: self.bytes(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::database::{Database, Object, ObjectIndex, PeRecord};

    #[test]
    fn a_pe_takes_its_background_and_its_objects_over_its_speed() {
        let object = |id, load_seconds, pe| Object {
            id,
            array: 0,
            index: ObjectIndex::new(&[id as i32]),
            load_seconds,
            bytes: None,
            pe,
            migratable: true,
        };
        let database = Database {
            pes: vec![
                PeRecord { speed: 2.0, background_seconds: 0.25, ..PeRecord::default() },
                PeRecord::default(),
            ],
            objects: vec![object(7, 3.0, 0), object(9, 0.5, 0), object(8, 1.0, 1)],
            ..Database::default()
        };
        assert_eq!(database.pe_loads(&database.placement()), [2.0, 1.0]);
        assert_eq!(database.pe_loads(&[1, 1, 0]), [0.75, 3.5]);
        assert_eq!(database.load_seconds(), 4.5);
        let summary = database.summary();
        assert_eq!((summary.pes, summary.objects, summary.background_seconds), (2, 3, 0.25));
    }

    #[test]
    fn the_sum_of_nothing_has_no_sign() {
        let summary = Database::default().summary();
        assert_eq!(format!("{} {}", summary.load_seconds, summary.background_seconds), "0 0");
    }
}
