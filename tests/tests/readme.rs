//! The README says what is true: its commands run as written, its table is the registry's, its program
//! compiles (as a test of the documentation of `equipoise-tests`).

use equipoise_tests::{Place, WORKSPACE};
use std::fs;
use std::path::Path;

fn readme() -> String {
    fs::read_to_string(format!("{WORKSPACE}/README.md")).expect("there is a README")
}

/// The lines of its shell blocks.
fn commands(readme: &str) -> Vec<&str> {
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).collect()
}

#[test]
fn its_commands_run_as_written_one_after_the_other() {
    let readme = readme();
    let place = Place::new();
    let mut run = 0;
    for command in commands(&readme) {
        if let Some(line) = command.strip_prefix("cargo run --release -- ") {
            place.run(line).result();
            run += 1;
        } else {
            let bench = command.strip_prefix("cargo bench -p equipoise-benches --bench ");
            let file = |bench| format!("{WORKSPACE}/benches/benches/{bench}.rs");
            let is_bench = bench.is_some_and(|bench| Path::new(&file(bench)).exists());
            assert!(is_bench || command == "cargo test --workspace", "what is `{command}`?");
        }
    }
    assert!(run >= 8, "only {run} commands found");
}

#[test]
fn its_main_job_shows_what_every_step_did_in_a_sentence() {
    let readme = readme();
    let line =
        commands(&readme)[0].strip_prefix("cargo run --release -- ").expect("command one is the main job");
    // The steps of a shorter run; what they find does not matter here.
    let told = Place::new().run(&format!("{line} --iterations 21 --lb-every 10")).result();
    assert!(told.contains("An ideal balance would run in"), "{told}");
    assert_eq!(told.matches("LB step").count() - told.matches("LB steps").count(), 2, "{told}");
}

#[test]
fn its_table_of_balancers_is_the_registrys() {
    let table = equipoise_strategies::registry::table();
    assert!(readme().contains(table.trim()), "put this into the README:\n{table}");
}
