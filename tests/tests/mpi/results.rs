//! Results of runs in several processes.

use equipoise_tests::Sandbox;
use equipoise_tests::mpi::{Case, Launcher, pairwise, start_without_launcher};

#[test]
fn all_values_of_two_dimensions_meet() {
    let sizes = Case::SIZES;
    let rows = pairwise(&sizes);
    for (one, two) in (0..sizes.len()).flat_map(|two| (0..two).map(move |one| (one, two))) {
        for (a, b) in (0..sizes[one]).flat_map(|a| (0..sizes[two]).map(move |b| (a, b))) {
            assert!(rows.iter().any(|row| row[one] == a && row[two] == b), "{one}: {a}, {two}: {b}");
        }
    }
    assert!(rows.iter().all(|row| row.len() == sizes.len() && row.iter().zip(&sizes).all(|(a, b)| a < b)));
    // There are at least as many as the product of the two largest sizes, and at most a fifth more.
    let mut largest = sizes;
    largest.sort_unstable_by(|a, b| b.cmp(a));
    let least = largest[0] * largest[1];
    assert!(rows.len() <= least + least / 5, "{} rows, at least {least}", rows.len());
}

#[test]
fn sample_programs_have_the_results_of_threads() {
    let Some(launcher) = Launcher::find() else { return };
    for values in pairwise(&Case::SIZES) {
        Case::of(&values).check(&launcher);
    }
}

#[test]
#[ignore = "slow"]
fn sample_programs_have_the_results_of_threads_with_more_seeds() {
    let Some(launcher) = Launcher::find() else { return };
    for (seed, values) in (3..7).flat_map(|seed| pairwise(&Case::SIZES).into_iter().map(move |it| (seed, it)))
    {
        Case::of(&values).with_seed(seed).check(&launcher);
    }
}

#[test]
fn a_program_without_a_launcher_is_one_process() {
    if Launcher::find().is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    let line = "equipoise run kneighbor --iterations 3 --transport mpi --format json";
    assert_eq!(start_without_launcher(&sandbox, line).end().0.document()["pes"], 1);
}

#[test]
fn a_program_of_mpi_alternates_between_its_phases_and_runs() {
    let Some(launcher) = Launcher::find() else { return };
    for processes in 1..=4 {
        let output = launcher.start(&Sandbox::new(), &[(processes, "phases")]).end().0.result();
        // 45 is the sum of the indices.
        assert_eq!(output, format!("{processes} processes, {}\n", 45i64.pow(4)));
    }
}

#[test]
fn runs_in_parts_of_a_communicator_and_after_failures_and_again() {
    let Some(launcher) = Launcher::find() else { return };
    for processes in 2..=4 {
        let run = |how| launcher.start(&Sandbox::new(), &[(processes, how)]).end().0.result();
        let (even, odd) = (processes.div_ceil(2), processes / 2);
        assert_eq!(run("phases split"), format!("{processes} processes, {}\n", 45 * 45 * (even + 2 * odd)));
        assert_eq!(run("phases fail"), format!("{processes} processes, 45\n"));
        assert_eq!(run("phases repeat"), format!("{processes} processes, {}\n", 45 * (1 + 2 + 3)));
        // The page "Run on a cluster": every process has the largest value, and the next one is their sum.
        assert_eq!(run("mpi_phases"), format!("{}\n", processes.pow(3) * (processes - 1)));
    }
}

#[test]
fn databases_of_jobs_have_their_machine_and_can_be_read() {
    let Some(launcher) = Launcher::find() else { return };
    for (processes, pes, machine, distances) in
        [(3, 1, "job:3x1:flat:1", vec![0, 2]), (2, 2, "job:2x2:flat:1", vec![0, 1, 2])]
    {
        let sandbox = Sandbox::new();
        let line = format!(
            "equipoise run kneighbor --elements 24 --iterations 9 --lb-every 3 --balancer RotateLB \
             --transport mpi --pes-per-process {pes} --lb-dump lb.db --lb-dump-steps 2"
        );
        launcher.start(&sandbox, &[(processes, &line)]).end().0.result();
        let read = |line: &str| start_without_launcher(&sandbox, line).end().0.document();
        let replay = read("equipoise replay lb.db --step 1 --balancer GreedyLB --format json");
        assert_eq!(replay["topology"], machine, "{replay}");
        assert_eq!(replay["database"]["objects"], 24, "{replay}");
        assert_eq!(replay["database"]["pes"], processes * pes, "{replay}");
        let inspection = read("equipoise inspect lb.db --format json");
        assert_eq!(inspection["topology"], machine, "{inspection}");
        let at =
            inspection["steps"][0]["by_distance"].as_array().expect("the machine has the PEs of the step");
        let found: Vec<u64> = at.iter().filter_map(|at| at["distance"].as_u64()).collect();
        assert_eq!(found, distances, "{inspection}");
    }
}

#[test]
fn all_processes_know_what_migrations_cost_in_steps_without_a_centre() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    // Process 0 alone measures the costs, and takes part in few of the migrations between the others.
    let places = "0\n".repeat(6) + "1\n" + &"2\n".repeat(11);
    std::fs::write(sandbox.path().join("places.txt"), places).expect("it can be written");
    let line = "equipoise run kneighbor --elements 18 --iterations 200 --lb-every 10 --work 300000 --initial places.txt \
                --balancer DistributedLB --lb-gate auto --transport mpi --lb-report json";
    let output = launcher.start(&sandbox, &[(3, line)]).end().0.result();
    let steps = output.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let steps: Vec<_> = steps.filter(|step| step["after"]["migrations"].as_u64() > Some(0)).collect();
    assert!(!steps.is_empty(), "{output}");
    for step in steps {
        assert!(step["after"]["migration_seconds"].as_f64() > Some(0.0), "{step}");
    }
}
