//! Memory over many messages: a long run needs hardly more than a short one.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use equipoise::model::table;
use equipoise_tests::Sandbox;
use equipoise_tests::fuzz::Rng;

use crate::Case;

/// Elements of `kneighbor`; each sends 6 messages per iteration and gets as many replies.
const ELEMENTS: usize = 1000;

/// Iterations of the short run: 20 load-balancing steps.
const SHORT: usize = 200;

/// The memory that the long run may need in addition to that of the short run, in kB.
const MORE_KILOBYTES: u64 = 16 << 10;

/// As many messages as are sent in three quarters of the share of this kind.
pub fn messages(case: &Case, _: &mut Rng) -> Option<String> {
    let Some((peak, seconds)) = run(SHORT) else {
        return Some("skipped: there is no /proc/PID/status".into());
    };
    let left = 0.75 * case.share.as_secs_f64() - seconds;
    let iterations = SHORT.max((left / seconds * SHORT as f64) as usize);
    let (long_peak, _) = run(iterations).expect("the short run had a status");
    let sent = ELEMENTS * 12 * iterations;
    assert!(
        long_peak <= peak + MORE_KILOBYTES,
        "{sent} messages: {long_peak} kB of memory, and {peak} kB in {SHORT} iterations"
    );
    let shown = |kilobytes: u64| table::bytes(kilobytes << 10);
    Some(format!("{sent} messages, {} (short run: {})", shown(long_peak), shown(peak)))
}

/// The largest resident memory of a run in kB, and its time in seconds. `None` if the system does not show it.
fn run(iterations: usize) -> Option<(u64, f64)> {
    let sandbox = Sandbox::new();
    let begin = Instant::now();
    let mut child = sandbox.start(&format!(
        "run kneighbor --pes 2 --elements {ELEMENTS} --bytes 8 --iterations {iterations} --lb-every 10 --balancer RotateLB"
    ));
    let status = format!("/proc/{}/status", child.id());
    let mut peak = None;
    let code = loop {
        // The status of a process that has ended has no such line.
        peak = resident(&status).or(peak);
        if let Some(code) = child.try_wait().expect("the process was started") {
            break code;
        }
        sleep(Duration::from_millis(10));
    };
    assert!(code.success(), "{iterations} iterations of kneighbor: {code}");
    Some((peak?, begin.elapsed().as_secs_f64()))
}

/// The largest resident memory so far, in kB.
fn resident(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
