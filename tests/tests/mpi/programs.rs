//! Programs of new users, messages of all sizes, printed lines, bound processes, and setups that differ.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use equipoise_tests::mpi::{CARRIERS, Launcher, SHAPES, program, start_without_launcher};
use equipoise_tests::{ProcessOutput, Sandbox, longer_copy, skip};

/// Runs the program `traffic`; returns its result, and the most bytes that waited in one process.
fn traffic(output: ProcessOutput) -> (u64, u64) {
    let text = output.result();
    let line = text.lines().last().expect("it prints a line");
    let numbers: Vec<u64> = line.split(" peak ").map(|number| number.parse().expect("a number")).collect();
    (numbers[0], numbers[1])
}

#[test]
fn large_messages_arrive_whole() {
    let Some(launcher) = Launcher::find() else { return };
    for (bytes, times) in [(64 << 10, 20), ((8 << 20) + 1, 1)] {
        for ((processes, pes), carrier) in
            SHAPES.iter().flat_map(|it| CARRIERS.iter().map(move |on| (it, on)))
        {
            let line = format!(
                "traffic all --bytes {bytes} --times {times} --transport mpi --pes-per-process {pes} --time-limit 60"
            );
            let output = launcher.start_on(*carrier, &Sandbox::new(), &[(*processes, &line)]).end().0;
            let all = (processes * pes) as u64;
            assert_eq!(traffic(output).0, all * all * times * bytes, "{processes} x {pes}, {carrier:?}");
        }
    }
}

#[test]
fn what_waits_for_a_slow_process_is_bounded() {
    let Some(launcher) = Launcher::find() else { return };
    for (processes, pes) in [(3, 1), (3, 2)] {
        let line = format!(
            "traffic flood --elements 3 --bytes 262144 --times 400 --transport mpi --pes-per-process {pes} \
             --initial {} --time-limit 60",
            if pes == 1 { "blocks" } else { "places" }
        );
        let sandbox = Sandbox::new();
        fs::write(sandbox.path().join("places"), "0\n2\n4\n").expect("a file can be written");
        let (result, peak) = traffic(launcher.start(&sandbox, &[(processes, &line)]).end().0);
        assert_eq!(result, 4 * 400 * 262_144);
        // 64 MiB, four times a window, and more if nothing leaves for 0.1 s, as on busy computers. Without a bound, 300 MB wait.
        assert!(peak < 240 << 20, "{processes} x {pes}: {peak} bytes waited");
    }
}

#[test]
fn printed_lines_are_whole_and_those_of_a_process_in_order() {
    let Some(launcher) = Launcher::find() else { return };
    for (processes, pes) in SHAPES {
        let line = format!("traffic print --times 50 --transport mpi --pes-per-process {pes}");
        let text = launcher.start(&Sandbox::new(), &[(processes, &line)]).end().0.result();
        let mut next = vec![0; processes * pes];
        for line in text.lines().filter(|line| !line.contains("peak")) {
            let words: Vec<&str> = line.split(' ').collect();
            let [element, number, dashes] = words[..] else { panic!("`{line}` is no whole line") };
            let element: usize = element.parse().expect("a number");
            assert_eq!((number, dashes), (&*next[element].to_string(), &*"-".repeat(300)), "{line}");
            next[element] += 1;
        }
        assert!(next.iter().all(|&lines| lines == 50), "{processes} x {pes}: lines are missing: {next:?}");
    }
}

#[test]
fn setups_and_programs_that_differ_are_refused() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let run = |parts: &[(usize, &str)], phrases: [&str; 2]| {
        let output = launcher.start(&sandbox, parts).end().0;
        assert_eq!(output.code, Some(1), "{output:?}");
        let sentence = "error: processes do not run the same program: process 0 has ";
        for phrase in [sentence].iter().chain(&phrases) {
            assert!(output.stderr.contains(phrase), "no `{phrase}` in {output:?}");
        }
    };
    let differs = |how| format!("traffic all --transport mpi --differs {how}");
    run(
        &[(2, &differs("arrays"))],
        ["nothing more and process 1 has array 2 of the setup", "with the entries rest"],
    );
    run(&[(3, &differs("entries"))], ["with the entries sleep", "with the entries rest"]);
    // The same program with one more byte at its end, under the same name.
    let (first, folder) = (program("traffic"), sandbox.path().join("other"));
    let other = folder.join(first.file_name().expect("a file"));
    fs::create_dir(&folder).expect("it can be made");
    longer_copy(first, &other);
    let [one, two] = [first, &other].map(|path| format!("{} all --transport mpi", path.display()));
    run(&[(1, &one), (1, &two)], ["a program file of", "with the checksum"]);
}

#[test]
fn bound_processes_have_a_core_each() {
    let Some(launcher) = Launcher::find() else { return };
    let cores = |id: &u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list"))?;
        line.split_whitespace().last().map(str::to_owned)
    };
    if cores(&std::process::id()).is_some_and(|cores| !cores.contains(['-', ','])) {
        return skip("there is only one core");
    }
    let sandbox = Sandbox::new();
    let job = launcher.start(&sandbox, &[(2, "failing circle --transport mpi --bind --time-limit 30")]);
    let begin = Instant::now();
    let is_one = |cores: &String| !cores.contains(['-', ',']);
    let bound = loop {
        let bound: BTreeSet<String> = job.processes().values().filter_map(cores).collect();
        if bound.len() == 2 && bound.iter().all(is_one) || begin.elapsed() > Duration::from_secs(20) {
            break bound;
        }
        sleep(Duration::from_millis(10));
    };
    job.kill_all();
    let output = job.end().0;
    assert!(bound.len() == 2 && bound.iter().all(is_one), "{bound:?}: {output:?}");
    assert!(!output.stderr.contains("--bind"), "{output:?}");
}

#[test]
fn every_process_has_its_element_and_its_shared_values() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    for (processes, pes) in SHAPES {
        let line = format!("traffic count --transport mpi --pes-per-process {pes}");
        let (result, _) = traffic(launcher.start(&sandbox, &[(processes, &line)]).end().0);
        let (processes, pes) = (processes as u64, pes as u64);
        // The element of a process is on its first PE.
        let expected: u64 = (0..processes).map(|process| (process + 1) * (1000 * pes + process * pes)).sum();
        assert_eq!(result, expected, "{processes} x {pes}");
    }
}

#[test]
fn programs_of_the_book_and_all_features_have_the_results_of_threads() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    for line in [
        "features --balancer RotateLB",
        "queens",
        "pool",
        "particles --balancer RotateLB",
        "matmul --balancer RotateLB",
        "ghost_4_flags --blocks 7",
        "ghost_5_balance --blocks 7 --balancer RotateLB",
    ] {
        let threads = start_without_launcher(&sandbox, &format!("{line} --pes 2")).end().0.result();
        for (processes, pes) in SHAPES {
            let line = format!("{line} --transport mpi --pes-per-process {pes}");
            let text = launcher.start(&sandbox, &[(processes, &line)]).end().0.result();
            // Every process prints the result.
            let mut results: Vec<&str> = text.lines().collect();
            let mut expected: Vec<&str> = (0..processes).flat_map(|_| threads.lines()).collect();
            results.sort_unstable();
            expected.sort_unstable();
            assert_eq!(results, expected, "{line}");
        }
    }
}
