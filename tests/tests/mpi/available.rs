//! Runs in several processes that use fewer PEs for a while.

use std::collections::BTreeSet;
use std::fs;

use equipoise::model::database::{Database, Dump};
use equipoise_tests::Sandbox;
use equipoise_tests::mpi::{Launcher, start_without_launcher};

/// Replaces the list of available PEs.
fn list(sandbox: &Sandbox, pes: &str) {
    sandbox.put("new", pes);
    fs::rename(sandbox.path().join("new"), sandbox.path().join("pes")).expect("it can be renamed");
}

/// The PEs with elements before a step.
fn used(database: &Database) -> BTreeSet<u32> {
    database.placement().into_iter().collect()
}

#[test]
fn elements_leave_processes_and_return() {
    let Some(launcher) = Launcher::find() else { return };
    let expected = start_without_launcher(&Sandbox::new(), "failing slow --pes 2").end().0.result();
    for (processes, pes, balancer) in [(4, 1, "RotateLB"), (2, 2, "RandomLB"), (4, 1, "GreedyLB")] {
        let sandbox = Sandbox::new();
        list(&sandbox, "3\n");
        let line = format!(
            "failing slow --transport mpi --pes-per-process {pes} --initial roundrobin --balancer {balancer} \
             --pes-available pes --lb-dump lb.db --lb-dump-steps 3"
        );
        let job = launcher.start(&sandbox, &[(processes, &line)]);
        // An entry of a second is between two steps.
        sandbox.wait_for("working-4");
        list(&sandbox, "0\n1\n2\n3\n");
        sandbox.wait_for("working-5");
        list(&sandbox, "1\n2\n");
        let output = job.end().0;
        let case = format!("{processes} x {pes}, {balancer}: {output:?}");
        assert_eq!(output.result(), expected.repeat(processes), "{case}");
        let steps = Dump::read(sandbox.path().join("lb.db")).expect("a database").steps;
        let available = |step: &Database| -> Vec<bool> { step.pes.iter().map(|pe| pe.available).collect() };
        let found: Vec<Vec<bool>> = steps.iter().map(available).collect();
        assert_eq!(found, [[false, false, false, true], [true; 4], [false, true, true, false]], "{case}");
        assert_eq!(used(&steps[0]), BTreeSet::from([0, 1, 2, 3]), "{case}");
        assert_eq!(used(&steps[1]), BTreeSet::from([3]), "{case}");
        assert_ne!(used(&steps[2]), BTreeSet::from([3]), "the elements return: {case}");
    }
}
