//! Lower bounds of the largest load of a placement.

use equipoise_model::Database;
use equipoise_model::database::Object;
use rustc_hash::FxHashMap;

/// Lower bounds of the largest load, and the average load.
///
/// Movable objects may go to every available PE (to any PE if none is available). The fixed load of a PE is its
/// background plus its objects that cannot move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadBound {
    /// The load of each available PE if the movable work could be divided arbitrarily: movable work plus the fixed work
    /// of the available PEs, over the sum of their speeds. Fixed work of other PEs cannot be shared and does not count.
    /// At most [`Self::bound_seconds`], apart from rounding.
    ///
    /// This is the average in every max/avg: in metrics and in the limits of strategies.
    pub average_seconds: f64,
    /// The time of the heaviest movable object, added to the fixed load of the PE where it finishes first; 0 if no
    /// object can move.
    pub heaviest_object_seconds: f64,
    /// Lower bound of the largest load: the largest of [`Self::heaviest_object_seconds`], the fixed load of any PE, and
    /// the level that the movable work reaches when it is poured over the fixed loads.
    pub bound_seconds: f64,
}

impl LoadBound {
    /// The bound for the objects of `database`.
    pub fn of(database: &Database) -> LoadBound {
        LoadBound::over(database, |pe| database.pes[pe].background_seconds)
    }

    /// As [`Self::of`], with another background of each PE.
    pub(super) fn over(database: &Database, background_seconds: impl Fn(usize) -> f64) -> LoadBound {
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

        // Per available PE: fixed seconds, and speed.
        let mut fixed = Vec::with_capacity(database.pes.len());
        let (mut speed, mut bound) = (0.0, 0.0f64);
        for (number, pe) in database.pes.iter().enumerate() {
            let background = background_seconds(number);
            let seconds = background + pinned[number].unwrap_or(0.0) / pe.speed;
            if open[number] {
                fixed.push((seconds, pe.speed));
                speed += pe.speed;
                work += background * pe.speed;
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

/// The level that `work` reaches when poured over PEs given as (fixed seconds, speed).
pub(crate) fn pour(work: f64, fixed: &mut [(f64, f64)]) -> f64 {
    fixed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut volume, mut speed, mut level) = (work, 0.0, 0.0);
    for &(seconds, pe_speed) in &*fixed {
        // PEs are sorted by fixed load: this PE and all later ones are above the level and take no work.
        if speed > 0.0 && seconds >= level {
            break;
        }
        volume += seconds * pe_speed;
        speed += pe_speed;
        level = volume / speed;
    }
    level
}

/// Whether each PE accepts objects: the available PEs, or all PEs if none is available.
fn open_pes(database: &Database) -> Vec<bool> {
    let any = database.pes.iter().any(|pe| pe.available);
    database.pes.iter().map(|pe| pe.available || !any).collect()
}

/// The number of movable objects of a placement that are on PEs that are not available; 0 if no PE is available.
pub(crate) fn stranded(database: &Database, pe_of: &[u32]) -> u64 {
    let accepts = open_pes(database);
    let is_stranded = |(object, pe): &(&Object, &u32)| object.migratable && !accepts[**pe as usize];
    database.objects.iter().zip(pe_of).filter(is_stranded).count() as u64
}

/// The PEs for which others wait: those that accept objects or have objects.
pub(super) fn counted_pes(database: &Database, placement: &[u32]) -> Vec<bool> {
    let mut counts = open_pes(database);
    placement.iter().for_each(|&pe| counts[pe as usize] = true);
    counts
}

/// The load of the most loaded PE, among the [`counted_pes`].
pub(crate) fn max_load(database: &Database, placement: &[u32]) -> f64 {
    let loads = database.pe_loads(placement).into_iter().zip(counted_pes(database, placement));
    loads.filter(|&(_, counts)| counts).map(|(load, _)| load).fold(0.0, f64::max)
}
/// The sum over the phases of the database's constraints of the seconds of the slowest PE, among the [`counted_pes`]. The background
/// is divided equally among phases. None without phases.
pub(super) fn phases_seconds(database: &Database, placement: &[u32]) -> Option<f64> {
    let loads = &database.constraints.phases;
    let phases = loads.first()?.1.len();
    let pe_of: FxHashMap<u64, u32> =
        database.objects.iter().map(|object| object.id).zip(placement.iter().copied()).collect();
    let counts = counted_pes(database, placement);
    let slowest = |phase: usize| {
        let mut work = vec![0.0; database.pes.len()];
        loads.iter().for_each(|(id, seconds)| work[pe_of[id] as usize] += seconds[phase]);
        let seconds = database
            .pes
            .iter()
            .zip(work)
            .map(|(pe, work)| pe.background_seconds / phases as f64 + work / pe.speed);
        seconds.zip(&counts).filter(|(_, counts)| **counts).map(|(seconds, _)| seconds).fold(0.0, f64::max)
    };
    Some((0..phases).map(slowest).sum())
}

/// Relative rounding error of sums of seconds in a different order.
pub(crate) const ROUNDING: f64 = 1e-12;

/// Whether a PE with `seconds` is lighter than one with `than`, by more than the rounding error of the sums.
pub(crate) fn is_lighter(seconds: f64, than: f64) -> bool {
    seconds < than * (1.0 - ROUNDING)
}
