//! Load limits: how much load of movable objects each PE may have.
//!
//! A limit is a time in seconds that no PE exceeds. PEs have different speeds and different load that does not move, so each
//! has room of its own below a limit.

use equipoise_model::Database;

use crate::cost::{LoadBound, pour};

/// Capacities allow rounding of at most the heaviest load divided by this, so that the largest load does not rise noticeably.
const ROUNDING_PARTS: i64 = 1 << 12;

/// Bisection steps for the lowest limit that leaves room for all objects.
const STEPS: usize = 50;

/// What limits depend on.
pub(crate) struct Limits {
    /// By PE: the seconds that do not move, and the seconds of one unit of load; none if it is not available.
    pes: Vec<Option<(f64, f64)>>,
    /// The load of all movable objects.
    total: i64,
}

impl Limits {
    /// Limits for integer `loads` in units of `unit_seconds`, and the first capacities of all PEs: those of the limit (1 + `imbalance`) times the
    /// average load, or of a higher one if the heaviest object, fixed load, or indivisible loads require that.
    ///
    /// The sum of `loads` may be up to `rounding` units too large. Where the heaviest object or a fixed load sets the limit, the capacities are
    /// larger by that: otherwise objects without load would not fit next to it, and neither would objects fit together that are as heavy.
    ///
    /// If `unit_seconds` is 0, no load was recorded; then objects are counted, and fixed load is ignored.
    pub fn new(
        database: &Database,
        available: &[u32],
        (loads, unit_seconds, rounding): (&[i64], f64, i64),
        imbalance: f64,
    ) -> (Limits, Vec<i64>) {
        let has_load = unit_seconds > 0.0;
        let unit = if has_load { unit_seconds } else { 1.0 };
        let speed = |pe: u32| database.pes[pe as usize].speed;
        let mut fixed = vec![0.0; database.pes.len()];
        if has_load {
            fixed.iter_mut().zip(&database.pes).for_each(|(fixed, pe)| *fixed = pe.background_seconds);
            for object in database.objects.iter().filter(|object| !object.migratable) {
                fixed[object.pe as usize] += object.load_seconds / speed(object.pe);
            }
        }
        let mut pes = vec![None; database.pes.len()];
        available.iter().for_each(|&pe| pes[pe as usize] = Some((fixed[pe as usize], unit / speed(pe))));
        let (total, heaviest) = (loads.iter().sum::<i64>(), loads.iter().copied().max().unwrap_or(0));
        let limits = Limits { pes, total };
        let rounding = rounding.min(heaviest / ROUNDING_PARTS);
        // Loads were rounded up, so a placement that satisfies this limit satisfies it in true loads, too.
        let movable = database.objects.iter().filter(|object| object.migratable);
        let work = match has_load {
            true => movable.map(|object| object.load_seconds / unit).sum::<f64>(),
            false => total as f64,
        };
        let are_alike =
            available.iter().all(|&pe| fixed[pe as usize] == 0.0 && speed(pe) == speed(available[0]));
        if are_alike {
            let limit = (work / available.len() as f64 * (1.0 + imbalance) + 1e-9).min(total as f64) as i64;
            let least = (total as u64).div_ceil(available.len() as u64) as i64;
            let most = limit.max(least).max(heaviest + rounding);
            let first = limits.pes.iter().map(|pe| if pe.is_some() { most } else { 0 }).collect();
            return (limits, first);
        }
        let bound_seconds = if has_load { LoadBound::of(database).bound_seconds } else { 0.0 };
        let mut open: Vec<(f64, f64)> = available.iter().map(|&pe| (fixed[pe as usize], speed(pe))).collect();
        let level = pour(work * unit, &mut open);
        let balanced = level * (1.0 + imbalance);
        let limit = (balanced.max(bound_seconds) * (1.0 + 1e-9)).max(f64::MIN_POSITIVE);
        let mut first = limits.capacities(limits.lowest(limit));
        if bound_seconds > balanced {
            available.iter().for_each(|&pe| first[pe as usize] += rounding);
        }
        // Rounding must not remove the only PE with room for the heaviest object.
        if let Some(&most) = available.iter().max_by_key(|&&pe| (first[pe as usize], std::cmp::Reverse(pe))) {
            first[most as usize] = first[most as usize].max(heaviest);
        }
        (limits, first)
    }

    /// By PE: the load that it may have below a limit.
    pub fn capacities(&self, limit_seconds: f64) -> Vec<i64> {
        let room = |pe: &Option<(f64, f64)>| {
            pe.map_or(0, |(fixed, unit)| {
                ((limit_seconds - fixed).max(0.0) / unit).min(self.total as f64) as i64
            })
        };
        self.pes.iter().map(room).collect()
    }

    /// The seconds of a PE with this load of movable objects; 0 if it is not available.
    pub fn seconds(&self, pe: u32, load: i64) -> f64 {
        self.pes[pe as usize].map_or(0.0, |(fixed, unit)| fixed + load as f64 * unit)
    }

    /// The lowest limit from `limit` on that has room for all objects: integer loads leave a part of every PE unused.
    fn lowest(&self, limit: f64) -> f64 {
        let fits = |limit: f64| self.capacities(limit).into_iter().sum::<i64>() >= self.total;
        let (mut low, mut high) = (limit, limit);
        while !fits(high) && high.is_finite() {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..if low < high { STEPS } else { 0 } {
            let middle = f64::midpoint(low, high);
            if fits(middle) { high = middle } else { low = middle }
        }
        high
    }
}
