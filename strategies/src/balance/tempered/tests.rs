//! Tests of `TemperedLB`.

use proptest::prelude::*;

use equipoise_model::database::arbitrary;

use super::*;
use crate::balance::members::Pile;
use crate::decentral::{Item, Own};
use crate::testing::{assign, database, max_per_average, uneven};

fn ratio(spec: &str, database: &Database) -> f64 {
    let answer = assign(spec, database).expect("TemperedLB serves every database");
    max_per_average(database, &answer.pe_of)
}

#[test]
fn all_parameters_balance() {
    for pes in [4, 17, 300] {
        let database = uneven(pes);
        for spec in [
            "TemperedLB",
            "TemperedLB:knowledge=Complete",
            "TemperedLB:fanout=3",
            "TemperedLB:rounds=5",
            "TemperedLB:knowledge=user-defined,fanout=2,rounds=6,trials=2",
            "TemperedLB:transfer=swap-clusters",
            "TemperedLB:ordering=elmid,iters=8",
            "TemperedLB:ordering=LargestObjects,iters=8",
        ] {
            let ratio = ratio(spec, &database);
            assert!(ratio <= 1.5, "{spec} on {pes} PEs: {ratio}");
        }
        let grapevine = ratio("TemperedLB:criterion=grapevine,ordering=SmallObjects", &database);
        assert!(grapevine <= 1.6, "{grapevine}");
    }
}

#[test]
fn more_iterations_or_trials_never_increase_the_maximum() {
    let database = uneven(100);
    let ratios = ["iters=1", "iters=2", "iters=8"].map(|p| ratio(&format!("TemperedLB:{p}"), &database));
    assert!(ratios.is_sorted_by(|a, b| a >= b), "{ratios:?}");
    let [one, three] = ["trials=1", "trials=3"].map(|p| ratio(&format!("TemperedLB:{p}"), &database));
    assert!(three <= one);
}

#[test]
fn exchanges_help_where_no_single_object_fits() {
    // The PEs have 13 and 11 seconds, and no single object can move.
    let database = database(2, &[(7.0, 0), (6.0, 0), (6.0, 1), (5.0, 1)]);
    assert_eq!(assign("TemperedLB", &database).map(|a| a.pe_of), Ok(vec![0, 0, 1, 1]));
    let swapped = assign("TemperedLB:transfer=SwapClusters", &database).map(|a| a.pe_of);
    assert!(swapped.is_ok_and(|pe_of| database.pe_loads(&pe_of) == [12.0, 12.0]));
}

#[track_caller]
fn check_order(ordering: Ordering, expected: &[u64]) {
    // PE 0 has 10 seconds; the average is 6.
    let loads = [1.0, 4.5, 2.5, 2.0];
    let item = |(key, load_seconds)| Item { key, id: key, home: 0, load_seconds, bytes: 0 };
    let objects = (0..).zip(loads).map(item).collect();
    let own = Own { rank: 0, ranks: 2, seed: 0, step: 0, speed: 1.0, fixed_seconds: 0.0, objects };
    let order: Vec<u64> = ordering.of(&Pile::new(&own), 6.0).iter().map(|item| item.key).collect();
    assert_eq!(order, expected, "{ordering:?}");
}

#[test]
fn objects_are_offered_in_the_requested_order() {
    check_order(Ordering::Arbitrary, &[0, 1, 2, 3]);
    check_order(Ordering::ElmId, &[0, 1, 2, 3]);
    check_order(Ordering::LargestObjects, &[1, 2, 3, 0]);
    // PE 0 has 4 seconds too many. The lightest sufficient object has 4.5; the lightest objects suffice up to 2.5.
    check_order(Ordering::FewestMigrations, &[1, 2, 3, 0]);
    check_order(Ordering::SmallObjects, &[2, 3, 0, 1]);
}

#[test]
fn fanout_and_rounds_are_those_of_vt() {
    let check = |knowledge: Knowledge, ranks, expected| assert_eq!(knowledge.resolve(ranks), expected);
    check(Knowledge::Log, 2, (2, 1));
    check(Knowledge::Log, 64, (8, 2));
    check(Knowledge::Log, 512, (8, 3));
    check(Knowledge::Log, 100_000, (18, 4));
    check(Knowledge::LogFanout(2), 1000, (2, 10));
    check(Knowledge::LogFanout(1), 5, (1, 5));
    check(Knowledge::LogRounds(2), 100, (10, 2));
    check(Knowledge::Complete, 7, (6, 1));
}

#[track_caller]
fn check_error(params: &str, expected: &str) {
    let error = crate::registry::parse(&format!("TemperedLB:{params}"), &[]).expect_err(params).to_string();
    assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
}

#[test]
fn contradictory_parameters_are_refused() {
    check_error("fanout=2,rounds=3", "give only one of fanout and rounds, or use knowledge=UserDefined");
    check_error("knowledge=UserDefined,fanout=2", "give both fanout and rounds");
    check_error("knowledge=complete,rounds=2", "Complete determines fanout and rounds");
    check_error("knowledge=all", "known are Log, Complete, UserDefined");
    check_error("fanout=0", "expected `auto` or a number from 1 to 1000");
    check_error("criterion=strict", "known are Grapevine, ModifiedGrapevine");
    check_error("transfer=Recursive", "known are Original, SwapClusters");
    check_error("ordering=size", "FewestMigrations");
}

proptest! {
    #[test]
    fn the_heaviest_pe_never_gets_heavier(
        mut database in arbitrary::database(8, 1, false),
        criterion in prop::sample::select(vec!["Grapevine", "ModifiedGrapevine"]),
        transfer in prop::sample::select(vec!["Original", "SwapClusters"]),
    ) {
        database.pes.iter_mut().for_each(|pe| pe.available = true);
        let spec = format!("TemperedLB:criterion={criterion},transfer={transfer}");
        let answer = assign(&spec, &database).expect("TemperedLB supports every database");
        let [before, after] = [database.placement(), answer.pe_of]
            .map(|pe_of| database.pe_loads(&pe_of).into_iter().fold(0.0, f64::max));
        prop_assert!(after <= before * (1.0 + 1e-9), "{} became {}", before, after);
    }
}
