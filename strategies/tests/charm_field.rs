//! What the balancers make of a recorded program, beside what Charm++ 6.10's make of it.

use std::path::Path;

use equipoise_strategies::cost::LoadBound;
use equipoise_strategies::database::Dump;
use equipoise_strategies::{Database, registry, topology};

/// LeanMD on 64 PEs, as Charm++ dumped it; `None`, said aloud, where the reference data is not at hand.
fn leanmd() -> Option<Database> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference/charm_dumps/leanmd_664_5616_p64.v6.0");
    if !Path::new(path).exists() {
        eprintln!("skipped: the reference data {path} is not at hand");
        return None;
    }
    Some(Dump::read_steps(Path::new(path), None, None).expect("Charm++ wrote it").steps.swap_remove(0))
}

/// Strategy, PEs, max/avg in Charm++ (infinite where it has no such strategy), the most that is good here.
const ROWS: &[(&str, u32, f64, f64)] = &[
    ("GreedyLB", 64, 1.002, 1.003),
    ("GreedyLB", 512, 1.005, 1.006),
    ("GreedyCommLB", 64, 1.148, 1.148),
    ("RefineLB", 64, 1.050, 1.0501),
    ("RefineLB", 512, 1.050, 1.0501),
    ("RefineCommLB", 64, 1.494, 1.494),
    ("RefineCommLB", 512, 2.018, 2.018),
    ("RefineSwapLB", 64, 1.010, 1.0101),
    ("RefineSwapLB", 512, 1.010, 1.0101),
    ("CommAwareRefineLB", 64, 1.020, 1.0201),
    ("CommAwareRefineLB", 512, 1.069, 1.05),
    ("MetisLB", 64, 1.584, 1.0501),
    ("MetisLB", 512, 1.748, 1.15),
    ("RecBipartLB", 64, 32.413, 1.0501),
    ("RecBipartLB", 512, 256.474, 1.15),
    ("DistributedLB", 64, f64::INFINITY, 1.06),
    ("DistributedLB", 512, f64::INFINITY, 1.2),
    ("TemperedLB", 64, f64::INFINITY, 1.15),
    ("TemperedLB:transfer=SwapClusters", 512, f64::INFINITY, 1.05),
];

#[test]
fn the_balance_is_as_good_as_charms_or_better() {
    let Some(recorded) = leanmd() else { return };
    for &(spec, pes, charm, most) in ROWS {
        let database = recorded.remap(pes);
        let machine = topology::parse(&format!("flat:{pes}")).expect("a flat machine");
        let strategy = registry::parse(spec, &[]).expect(spec).strategy;
        let answer = strategy.assign(&database, &*machine, 0).expect(spec);
        assert_eq!(answer.check(&database), Ok(()), "{spec}");
        let max = database.pe_loads(&answer.pe_of).into_iter().fold(0.0, f64::max);
        let ratio = max / LoadBound::of(&database).average_seconds;
        assert!(ratio <= most, "{spec} on {pes} PEs: max/avg {ratio:.4}; Charm++ has {charm}");
    }
}

#[test]
fn fewer_bytes_cross_pes_than_with_charms() {
    let Some(recorded) = leanmd() else { return };
    // The part of all bytes that crosses PEs in Charm++, on 64 PEs.
    for (spec, charm) in [("MetisLB", 0.988), ("CommAwareRefineLB", 0.995)] {
        let machine = topology::parse("flat:64").expect("a flat machine");
        let strategy = registry::parse(spec, &[]).expect(spec).strategy;
        let answer = strategy.assign(&recorded, &*machine, 0).expect(spec);
        let crosses = recorded.edges.iter().filter(|e| e.from.pe(&answer.pe_of) != e.to.pe(&answer.pe_of));
        let part = crosses.map(|edge| edge.bytes).sum::<u64>() as f64 / recorded.bytes() as f64;
        assert!(part < charm, "{spec}: {part:.4} of all bytes, and {charm} in Charm++");
    }
}
