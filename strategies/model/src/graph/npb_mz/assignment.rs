//! The assignment of zones to processes: `map_zones` of the benchmarks, as published.
//!
//! Zones are sorted by size. Repeatedly, the process with the fewest points takes a zone: among the remaining zones
//! within 5 % of the largest, the one with the longest common sides with zones of the process. The sort is not stable
//! and the order of equal zones matters, so this is the same selection sort as in the benchmarks.

use super::zones::Zones;

/// Zones whose size differs from that of the largest zone by at most this fraction compete for a process.
const NEARLY: f64 = 0.05;

/// The process of each zone.
///
/// # Panics
/// If `processes` is 0.
pub fn assign(zones: &Zones, processes: usize) -> Vec<u32> {
    assert!(processes > 0, "there must be at least one process");
    let sizes: Vec<u64> = (0..zones.count()).map(|zone| zones.size(zone).iter().product()).collect();
    let order = sorted(&sizes);
    let mut process_of: Vec<Option<u32>> = vec![None; zones.count()];
    let mut points = vec![0u64; processes];
    let mut first = 0;
    while first < order.len() {
        // Ties are broken by the lowest number.
        let process = (0..processes).min_by_key(|&process| points[process]).unwrap_or(0);
        let in_common = |zone: usize| -> u64 {
            let [x, y, _] = zones.size(zone);
            let sides = zones.neighbors(zone).into_iter().zip([y, y, x, x]);
            let own = sides.filter(|(neighbor, _)| process_of[*neighbor] == Some(process as u32));
            own.map(|(_, side)| side).sum()
        };
        let largest = sizes[order[first]] as f64;
        let (mut taken, mut most) = (order[first], in_common(order[first]));
        for &zone in &order[first + 1..] {
            if (largest - sizes[zone] as f64) / largest > NEARLY {
                break;
            }
            if process_of[zone].is_none() && in_common(zone) > most {
                (taken, most) = (zone, in_common(zone));
            }
        }
        process_of[taken] = Some(process as u32);
        points[process] += sizes[taken];
        while order.get(first).is_some_and(|&zone| process_of[zone].is_some()) {
            first += 1;
        }
    }
    process_of.into_iter().flatten().collect()
}

/// The zones by descending size, in the order of a selection sort with swaps.
fn sorted(sizes: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    for first in 0..order.len() {
        let mut largest = first;
        for next in first + 1..order.len() {
            if sizes[order[next]] > sizes[order[largest]] {
                largest = next;
            }
        }
        order.swap(first, largest);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::super::zones::{Benchmark, Class};
    use super::*;

    #[test]
    fn processes_have_about_equal_numbers_of_points() {
        for (benchmark, class, processes, worst) in [
            (Benchmark::Sp, Class::D, 16, 1.0),
            (Benchmark::Lu, Class::D, 16, 1.0),
            (Benchmark::Bt, Class::D, 16, 1.0003),
            (Benchmark::Bt, Class::C, 4, 1.001),
        ] {
            let zones = Zones::of(benchmark, class);
            let mut points = vec![0u64; processes];
            for (zone, process) in assign(&zones, processes).into_iter().enumerate() {
                points[process as usize] += zones.size(zone).iter().product::<u64>();
            }
            let average = points.iter().sum::<u64>() as f64 / processes as f64;
            let most = points.into_iter().max().expect("one") as f64;
            assert!(most / average <= worst, "{benchmark:?} {class:?}: {}", most / average);
        }
    }
}
