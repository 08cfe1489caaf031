//! `equipoise launch`: programs that die and are started again from their newest checkpoint.

#![cfg(unix)]

use equipoise::checkpoint::Checkpoint;
use equipoise_tests::{Sandbox, command, without_run};

#[test]
#[ignore = "slow"]
fn a_program_that_dies_is_started_again_from_its_newest_checkpoint() {
    let sandbox = Sandbox::new();
    let line = "run stencil2d --blocks 4 --cells 8 --lb-every 3 --iterations 6000 --pes 2 --format json";
    let expected = sandbox.run(line).document()["heat"].clone();
    // Kills the first two starts when they have saved something.
    let script = "n=$(cat starts 2>/dev/null || echo 0); echo $((n + 1)) > starts\n\
                  newest() { ls -d saved/checkpoint-*/manifest.eqcp 2>/dev/null | sort -V | tail -n 1; }\n\
                  if [ $n -lt 2 ]; then old=$(newest); \"$@\" &\n\
                  while [ \"$(newest)\" = \"$old\" ]; do sleep 0.01; done; kill -9 $!; wait $!; exit 1; fi\nexec \"$@\"\n";
    sandbox.put("dies.sh", script);
    let command = command();
    let saves = "--checkpoint saved --checkpoint-every 2";
    let output = sandbox.run(&format!("launch -- sh dies.sh {command} {line} {saves}"));
    assert_eq!(output.stderr.matches("it starts again from `saved/checkpoint-").count(), 2, "{output:?}");
    assert_eq!(sandbox.text("starts"), "3\n");
    let result: serde_json::Value = serde_json::from_str(&output.stdout).expect("a document");
    assert_eq!(result["heat"], expected);
    // Always dies, on fewer and fewer processes.
    let output = sandbox.run("launch --retries 2 --processes 2 -- false --checkpoint none {processes}");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("it starts again on 1 process from the beginning"), "{output:?}");
    assert!(output.stderr.contains("died again after 2 restarts without a new checkpoint"), "{output:?}");
    for (line, phrase) in [
        ("launch", "<COMMAND>"),
        ("launch -- true", "has no --checkpoint DIR"),
        ("launch --processes 2 -- true --checkpoint none", "write {processes}"),
        ("launch -- true --checkpoint none {processes}", "add `--processes N`"),
        ("launch -- ./no-such-program --checkpoint none", "cannot be started"),
    ] {
        let output = sandbox.run(line);
        assert!(output.code == Some(2) && output.stderr.contains(phrase), "{output:?}");
    }
}

#[test]
fn a_misspelt_flag_is_not_taken_for_the_command() {
    let sandbox = Sandbox::new();
    sandbox
        .run("launch --retry 5 -- true --checkpoint none")
        .failed(2, &["unexpected argument '--retry' found", "'--retries'"]);
    // Flags after the first word are those of the command, also without `--`.
    sandbox.run("launch --retries 5 sh -c true --checkpoint none --retry 5").result();
}

/// The n-th start of a program, from 0, runs the n-th command of this script, and the last one for all others.
fn script(commands: &[&str]) -> String {
    let cases: String = (0..).zip(commands).map(|(at, command)| format!("{at}) {command} ;;\n")).collect();
    format!(
        "n=$(cat starts 2>/dev/null || echo 0); echo $((n + 1)) > starts\n\
         case $n in\n{cases}*) exec \"$@\" ;;\nesac\n"
    )
}

const LINE: &str = "run stencil2d --blocks 4 --cells 4 --lb-every 2 --pes 2 --format json";

#[test]
fn a_checkpoint_of_an_earlier_run_is_not_continued() {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("{LINE} --iterations 11 --checkpoint saved --checkpoint-every 1 --seed 5")).result();
    let line = format!("{LINE} --iterations 20");
    let expected = without_run(sandbox.run(&line).document());
    sandbox.put("dies.sh", script(&["exit 1"]));
    let saves = "--checkpoint saved --checkpoint-every 1";
    let output = sandbox.run(&format!("launch -- sh dies.sh {} {line} {saves}", command()));
    assert!(
        output.stderr.contains(
            "it starts again from the beginning, as there is no whole checkpoint of this program yet"
        ),
        "{output:?}"
    );
    let document = output.document();
    assert_eq!(document["seed"], 0, "not that of the earlier run");
    assert_eq!(without_run(document), expected);
}

#[test]
fn a_restart_that_the_command_asks_for_is_repeated_until_there_is_a_new_checkpoint() {
    // The newest is damaged after the third start.
    let damage = "\"$@\"; f=$(ls -d saved/checkpoint-* | sort -V | tail -n 1)/process-0.eqcp; \
                  printf '\\377' | dd of=$f bs=1 seek=40 conv=notrunc 2>/dev/null; exit 1";
    for names_folder in [true, false] {
        let sandbox = Sandbox::new();
        sandbox.put("dies.sh", script(&["exit 1", "\"$@\"; exit 1", damage]));
        let line = format!("{LINE} --iterations 40");
        let first = sandbox.run(&format!("{line} --checkpoint saved --checkpoint-every 5")).document();
        let earlier = Checkpoint::all(&sandbox.path().join("saved")).expect("a folder");
        std::fs::remove_dir_all(&earlier[1]).expect("it is there");
        let earlier = earlier[0].strip_prefix(sandbox.path()).expect("in the sandbox").display();
        let restart = if names_folder { "saved".to_owned() } else { earlier.to_string() };
        let program =
            format!("{} {line} --restart {restart} --checkpoint saved --checkpoint-every 1", command());
        let output = sandbox.run(&format!("launch -- sh dies.sh {program}"));
        let places = output.stderr.lines().filter_map(|line| line.split_once("it starts again from "));
        let places: Vec<&str> = places.map(|(_, place)| place).collect();
        assert_eq!(places.len(), 3, "{output:?}");
        assert_eq!(places[0], format!("`{earlier}`"), "{output:?}");
        assert!(places[1] != places[0] && places[2] != places[1] && places[2] != places[0], "{output:?}");
        assert!(output.stderr.contains("is damaged: the checksum of bytes"), "{output:?}");
        assert!(output.stderr.contains("; this checkpoint is not used\n"), "{output:?}");
        // Two starts before have printed the result, too.
        let last = output.stdout.rfind("\n{").map_or(0, |at| at + 1);
        let result = serde_json::from_str(&output.stdout[last..]).expect("a document");
        assert_eq!(without_run(result), without_run(first));
    }
}
