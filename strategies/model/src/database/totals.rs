//! Totals of a database.

use serde::Serialize;

use super::Database;

/// The totals of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The load-balancing step.
    pub step: u64,
    /// The number of PEs.
    pub pes: usize,
    /// The number of named chare arrays.
    pub arrays: usize,
    /// The number of objects.
    pub objects: usize,
    /// The number of migratable objects.
    pub migratable_objects: usize,
    /// The total load of all objects, in seconds.
    pub load_seconds: f64,
    /// The total background of all PEs, in seconds.
    pub background_seconds: f64,
    /// The communication; `None` if it was not recorded.
    #[serde(flatten)]
    pub communication: Option<Volumes>,
}

/// The totals of the communication of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Volumes {
    /// The number of (sender, receiver) pairs.
    pub edges: usize,
    /// The number of communication records with unknown objects.
    pub dangling_edges: u64,
    /// The number of messages in the period.
    pub messages: u64,
    /// The number of bytes in the period.
    pub bytes: u64,
}

impl Database {
    /// The total load of all objects, in seconds at speed 1; independent of the placement.
    pub fn load_seconds(&self) -> f64 {
        // Starts from 0.0, because the empty sum of floats is -0.0.
        self.objects.iter().fold(0.0, |sum, o| sum + o.load_seconds)
    }

    /// The total bytes of all edges; saturates at 2^64-1, which [`Database::check`] excludes.
    pub fn bytes(&self) -> u64 {
        self.edges.iter().fold(0, |sum, edge| edge.bytes.saturating_add(sum))
    }

    /// The total messages of all edges; saturates at 2^64-1, which [`Database::check`] excludes.
    pub fn messages(&self) -> u64 {
        self.edges.iter().fold(0, |sum, edge| edge.messages.saturating_add(sum))
    }

    /// The time of each PE in seconds when object `i` is on `placement[i]`: the background plus the loads of the PE's
    /// objects divided by its speed.
    ///
    /// # Panics
    /// If `placement` contains a PE that does not exist.
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

    /// The totals of this step.
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
    fn pe_loads_add_background_and_scale_loads_by_speed() {
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
    fn totals_of_an_empty_database_are_positive_zero() {
        let summary = Database::default().summary();
        assert_eq!(format!("{} {}", summary.load_seconds, summary.background_seconds), "0 0");
    }
}
