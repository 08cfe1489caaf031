//! Which process has which zones: `map_zones` of the benchmarks, as published.
//!
//! Zones are sorted by size. Again and again the process with the fewest points takes one: of those within 5 % of
//! the largest that is left, the one with the longest sides in common with zones it has. The sorting is not
//! stable, and the order of equals decides, so it is the same selection sort here.

use super::zones::Zones;

/// How much smaller than the largest a zone may be that is taken instead, as a part.
const NEARLY: f64 = 0.05;

/// By zone: the process that has it.
///
/// # Panics
/// Without a process.
pub fn assign(zones: &Zones, processes: usize) -> Vec<u32> {
    assert!(processes > 0, "somebody has the zones");
    let sizes: Vec<u64> = (0..zones.count()).map(|zone| zones.size(zone).iter().product()).collect();
    let order = sorted(&sizes);
    let mut process_of: Vec<Option<u32>> = vec![None; zones.count()];
    let mut points = vec![0u64; processes];
    let mut first = 0;
    while first < order.len() {
        // The lowest of several.
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

/// The zones by descending size, as a selection sort that swaps leaves them.
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
    fn everybody_has_about_as_many_points() {
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
