//! A campaign of faults against the command `equipoise`: kinds of faults in turn, until a budget of time is used, and a
//! table at the end. Every case follows from its seed, except for what the operating system decides.

mod damage;
mod disks;
mod kills;
mod memory;
mod programs;

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::{ExitCode, exit};
use std::sync::{Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use clap::builder::PossibleValuesParser;
use equipoise::model::table;
use equipoise_tests::fuzz::Rng;

/// What a case knows in addition to its random numbers.
struct Case {
    /// Its seed.
    seed: u64,
    /// The part of the budget that all cases of its kind have.
    share: Duration,
}

/// Tries one case: panics if it fails, and returns a note for the table if there is one. A note that begins with
/// `skipped` says that this computer cannot try the kind.
type Try = fn(&Case, &mut Rng) -> Option<String>;

/// The kinds of faults.
const KINDS: &[(&str, Try)] = &[
    ("seeds", programs::seeds),
    ("storms", programs::storms),
    ("oversubscription", programs::oversubscription),
    ("kills", kills::kills),
    ("full-disk", disks::full),
    ("read-only", disks::read_only),
    ("damaged-files", damage::files),
    ("damaged-specs", damage::specs),
    ("memory", memory::messages),
    #[cfg(feature = "mpi")]
    ("mpi", programs::mpi),
    #[cfg(feature = "mpi")]
    ("mpi-kills", kills::ranks),
];

/// Failures that are shown of each kind.
const SHOWN: usize = 3;

/// The time of a case after which it counts as hung, beyond the share of its kind.
const HUNG: Duration = Duration::from_secs(120);

/// Tries faults against the command `equipoise`
#[derive(Parser)]
struct Flags {
    /// Budget; the case that runs at its end is completed
    #[arg(long, value_name = "MINUTES", default_value_t = 3.0)]
    minutes: f64,

    /// Seed of the first case of each kind; the n-th case after it has this seed plus n [default: the seconds of the
    /// clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Only this kind of faults
    #[arg(long, value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.0)))]
    kind: Option<String>,

    /// Largest number of cases of each kind
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    cases: u64,
}

/// What was tried of a kind.
struct Tally {
    name: &'static str,
    attempt: Try,
    cases: u64,
    failures: u64,
    time: Duration,
    note: String,
    is_skipped: bool,
}

/// The case that runs, and when it began.
static RUNNING: Mutex<Option<(String, Instant)>> = Mutex::new(None);

fn main() -> ExitCode {
    let flags = Flags::parse();
    let clock = SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_secs());
    let first = flags.seed.unwrap_or(clock);
    let Ok(budget) = Duration::try_from_secs_f64(60.0 * flags.minutes) else {
        eprintln!("error: --minutes {}: give a number of at least 0", flags.minutes);
        return ExitCode::from(2);
    };
    let mut tallies: Vec<Tally> = KINDS
        .iter()
        .copied()
        .filter(|kind| flags.kind.as_deref().is_none_or(|wanted| wanted == kind.0))
        .map(|(name, attempt)| Tally {
            name,
            attempt,
            cases: 0,
            failures: 0,
            time: Duration::ZERO,
            note: String::new(),
            is_skipped: false,
        })
        .collect();
    let share = budget / tallies.len() as u32;
    println!("seed {first}, {} minutes", flags.minutes);
    // Failures are printed with what repeats them.
    set_hook(Box::new(|_| ()));
    spawn(move || end_when_hung(share + HUNG));
    let begin = Instant::now();
    // The kind that had the least time is next; every kind has at least one case.
    while let Some(tally) = tallies
        .iter_mut()
        .filter(|tally| !tally.is_skipped && tally.cases < flags.cases)
        .min_by_key(|tally| tally.time)
        .filter(|tally| tally.cases == 0 || begin.elapsed() < budget)
    {
        let case = Case { seed: first.wrapping_add(tally.cases), share };
        tally.attempt(&case);
    }
    print!("\n{}", summary(&tallies));
    ExitCode::from(u8::from(tallies.iter().any(|tally| tally.failures > 0)))
}

impl Tally {
    /// Tries the next case, and prints its failure.
    fn attempt(&mut self, case: &Case) {
        let repeat = format!("--kind {} --seed {} --cases 1", self.name, case.seed);
        let begin = Instant::now();
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some((repeat.clone(), begin));
        let mut rng = Rng(case.seed);
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.attempt)(case, &mut rng)));
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.time += begin.elapsed();
        match outcome {
            Ok(Some(note)) if note.starts_with("skipped") => (self.note, self.is_skipped) = (note, true),
            Ok(note) => {
                self.cases += 1;
                self.note = note.unwrap_or_default();
            }
            Err(panic) => {
                self.cases += 1;
                self.failures += 1;
                if self.failures <= SHOWN as u64 {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                    println!("\nfailed: {}\n{}", self.name, text.unwrap_or("a panic without a text"));
                    println!("repeat it: cargo run -p equipoise-tests --bin campaign -- {repeat}");
                }
            }
        }
    }
}

/// Ends the process if a case runs longer than `most`.
fn end_when_hung(most: Duration) {
    loop {
        sleep(Duration::from_secs(1));
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((repeat, begin)) = &*running
            && begin.elapsed() > most
        {
            println!("\nfailed: a case has not ended within {} s", most.as_secs());
            println!("repeat it: cargo run -p equipoise-tests --bin campaign -- {repeat}");
            exit(1);
        }
    }
}

/// The table of all kinds.
fn summary(tallies: &[Tally]) -> String {
    let mut rows = vec![["kind", "cases", "failures", "seconds"].map(String::from).to_vec()];
    for tally in tallies {
        let seconds = format!("{:.1}", tally.time.as_secs_f64());
        rows.push(vec![tally.name.into(), tally.cases.to_string(), tally.failures.to_string(), seconds]);
    }
    let mut text = table::aligned(&rows);
    for tally in tallies.iter().filter(|tally| !tally.note.is_empty()) {
        text += &format!("{}: {}\n", tally.name, tally.note);
    }
    text
}
