//! What the load balance of a placement is, and how good it could be at best.

use crate::Database;

/// The least load the most loaded PE can have, and where it comes from.
///
/// Objects that may move are taken to go to PEs that are available (to any, if none is). What is fixed
/// on a PE is its background, and its objects that may not move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadBound {
    /// What each available PE would have if the work that may move could be divided at will: that work and
    /// what is fixed on the available PEs, over their speed. What is fixed elsewhere is nobody's to share,
    /// so it does not count. Never above [`Self::bound_seconds`], but for rounding.
    ///
    /// This is the average of max/avg everywhere: metrics, and the limits of strategies.
    pub average_seconds: f64,
    /// The time the heaviest object that may move takes on the PE where it, on top of what is fixed
    /// there, ends first; 0 without such an object.
    pub heaviest_object_seconds: f64,
    /// No placement is below: the largest of [`Self::heaviest_object_seconds`], what is fixed on any PE,
    /// and the level that the work that may move reaches when it is poured over what is fixed.
    pub bound_seconds: f64,
}

impl LoadBound {
    /// The bound for the objects of `database`.
    pub fn of(database: &Database) -> LoadBound {
        let open = open_pes(database);
        let mut pinned = vec![None; database.pes.len()];
        let (mut movable, mut heaviest, mut work) = (0.0, None::<f64>, 0.0);
        for o in &database.objects {
            if o.migratable || open[o.pe as usize] {
                work += o.load_seconds;
            }
            if o.migratable {
                movable += o.load_seconds;
                heaviest = Some(heaviest.unwrap_or(0.0).max(o.load_seconds));
            } else {
                *pinned[o.pe as usize].get_or_insert(0.0) += o.load_seconds;
            }
        }

        // Per available PE: seconds that are fixed, and speed.
        let mut fixed = Vec::with_capacity(database.pes.len());
        let (mut speed, mut bound) = (0.0, 0.0f64);
        for (number, pe) in database.pes.iter().enumerate() {
            let seconds = pe.background_seconds + pinned[number].unwrap_or(0.0) / pe.speed;
            if open[number] {
                fixed.push((seconds, pe.speed));
                speed += pe.speed;
                work += pe.background_seconds * pe.speed;
            }
            if open[number] || pinned[number].is_some() {
                bound = bound.max(seconds);
            }
        }
        let ends = |load: f64| fixed.iter().map(|&(s, speed)| s + load / speed).fold(f64::INFINITY, f64::min);
        let heaviest_object_seconds = heaviest.map_or(0.0, ends);
        let level = pour(movable, &mut fixed);
        LoadBound {
            average_seconds: if speed > 0.0 { work / speed } else { 0.0 },
            heaviest_object_seconds,
            bound_seconds: bound.max(heaviest_object_seconds).max(level),
        }
    }
}

/// The level that `work` reaches when it is poured over PEs of (fixed seconds, speed).
pub(crate) fn pour(work: f64, fixed: &mut [(f64, f64)]) -> f64 {
    fixed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut volume, mut speed, mut level) = (work, 0.0, 0.0);
    for &(seconds, pe_speed) in &*fixed {
        // A PE that stands above the level takes nothing, and neither do those after it.
        if speed > 0.0 && seconds >= level {
            break;
        }
        volume += seconds * pe_speed;
        speed += pe_speed;
        level = volume / speed;
    }
    level
}

/// Whether each PE takes objects: those that are available, or all if none is.
fn open_pes(database: &Database) -> Vec<bool> {
    let any = database.pes.iter().any(|pe| pe.available);
    database.pes.iter().map(|pe| pe.available || !any).collect()
}

/// The load of the most loaded PE, among those that take or have objects.
pub(super) fn max_load(database: &Database, placement: &[u32]) -> f64 {
    let mut counts = open_pes(database);
    placement.iter().for_each(|&pe| counts[pe as usize] = true);
    let loads = database.pe_loads(placement).into_iter().zip(counts);
    loads.filter(|&(_, counts)| counts).map(|(load, _)| load).fold(0.0, f64::max)
}
