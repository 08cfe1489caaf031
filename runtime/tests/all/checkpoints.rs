//! A run that is restarted with a checkpoint has the result of the run that was not interrupted, wherever it is restarted.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::checkpoint::Checkpoint;
use equipoise::prelude::*;
use equipoise::{Checkpoints, Machine, PeFailure, Report, RunError, try_run};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// The result: sums that depend on every message.
pub type Sums = (u64, u64, u64, Vec<u64>);

const WEAVERS: i32 = 13;
const SLOW: i32 = 6;
const LAST: u32 = 24;

/// Exchanges words with its neighbors, in steps of which some end with load balancing, a reduction or a checkpoint.
#[derive(Serialize, Deserialize)]
struct Weaver {
    step: u32,
    /// Whether it has sent its words of this step; until then words of neighbors wait.
    has_sent: bool,
    heard: u32,
    words: u64,
    state: u64,
    panics_at: Shared<u32>,
    lead: Array<Lead>,
    slow: Array<Slow>,
    guests: Array<Guest>,
}

#[chare(index = [i32; 1], sync)]
impl Weaver {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        let (at, step) = (cx.index()[0], self.step);
        if at == 5 && step == *self.panics_at.get(cx) {
            panic!("as asked");
        }
        if step == LAST {
            return self.lead.at(cx, ()).contribute().finished(self.state);
        }
        self.has_sent = true;
        for to in [at + 1, at + WEAVERS - 1] {
            cx.peer([to % WEAVERS]).hear(step, mixed(self.state ^ to as u64));
        }
        // The guests do not exist before step 7.
        self.guests.at(cx, [at]).word(mixed(self.state ^ 77));
        if at < SLOW && step == 2 + 3 * at as u32 {
            self.slow.at(cx, [at]).poke(self.state);
        }
        if step == 7 {
            self.guests.insert(cx, [at], Guest { sum: 0, lead: self.lead });
        }
        if step % 5 == 2 {
            cx.migrate(Pe((step + at as u32) % cx.pes() as u32));
        }
    }

    #[entry(when = self.has_sent && self.step == step)]
    fn hear(&mut self, cx: &Cx<Self>, step: u32, word: u64) {
        let _ = step;
        self.heard += 1;
        self.words = self.words.wrapping_add(mixed(word));
        if self.heard < 2 {
            return;
        }
        self.state = mixed(self.state ^ self.words);
        (self.heard, self.words, self.has_sent) = (0, 0, false);
        self.step += 1;
        match self.step % 4 {
            0 => cx.at_sync().begin(),
            1 => self.lead.at(cx, ()).contribute().gather(self.state),
            2 => self.lead.at(cx, ()).contribute().save(self.state),
            _ => cx.peer(cx.index()).begin(),
        }
    }
}

/// Contributes once, late and each at another time.
#[derive(Serialize, Deserialize)]
struct Slow {
    lead: Array<Lead>,
}

#[chare(index = [i32; 1])]
impl Slow {
    #[entry]
    fn poke(&mut self, cx: &Cx<Self>, word: u64) {
        self.lead.at(cx, ()).contribute().slowly(vec![word]);
    }
}

/// Inserted while the run is in progress, long after the first messages for it.
#[derive(Serialize, Deserialize)]
struct Guest {
    sum: u64,
    lead: Array<Lead>,
}

#[chare(index = [i32; 1])]
impl Guest {
    #[entry]
    fn word(&mut self, _cx: &Cx<Self>, word: u64) {
        self.sum = self.sum.wrapping_add(word);
    }

    #[entry]
    fn tell(&mut self, cx: &Cx<Self>) {
        self.lead.at(cx, ()).contribute().total(self.sum);
    }
}

#[derive(Serialize, Deserialize)]
struct Lead {
    sums: Sums,
    weavers: Option<Array<Weaver>>,
    guests: Array<Guest>,
    done: Exit<Sums>,
}

#[chare(index = ())]
impl Lead {
    #[entry]
    fn meet(&mut self, _cx: &Cx<Self>, weavers: Array<Weaver>) {
        self.weavers = Some(weavers);
    }

    #[entry(reduce = u64::wrapping_add)]
    fn gather(&mut self, cx: &Cx<Self>, sum: u64) {
        self.sums.0 = mixed(self.sums.0 ^ sum);
        self.weavers.expect("it has met them").all(cx).begin();
    }

    #[entry(reduce = u64::wrapping_add)]
    fn save(&mut self, cx: &Cx<Self>, sum: u64) {
        self.sums.1 = mixed(self.sums.1 ^ sum);
        let weavers = self.weavers.expect("it has met them");
        weavers.only(cx, |[at]| at % 2 == 0).at_checkpoint().begin();
        weavers.only(cx, |[at]| at % 2 == 1).at_quiescence().begin();
    }

    #[entry(reduce = equipoise::reduce::concat)]
    fn slowly(&mut self, _cx: &Cx<Self>, words: Vec<u64>) {
        self.sums.3 = words;
    }

    #[entry(reduce = u64::wrapping_add)]
    fn finished(&mut self, cx: &Cx<Self>, sum: u64) {
        self.sums.2 = sum;
        self.guests.all(cx).at_quiescence().tell();
    }

    #[entry(reduce = u64::wrapping_add)]
    fn total(&mut self, cx: &Cx<Self>, sum: u64) {
        self.sums.2 ^= sum.rotate_left(1);
        self.done.exit(cx, self.sums.clone());
    }
}

/// Runs the program; with a panic in this step.
pub fn run(config: Config, panics_at: u32) -> Result<Report<Sums>, RunError> {
    try_run(config, move |pe, done| {
        let panics_at = pe.shared(|| panics_at);
        let guests = pe.sparse([WEAVERS]);
        let lead = pe.array((), |()| Lead { sums: Sums::default(), weavers: None, guests, done });
        let slow = pe.array([SLOW], |_| Slow { lead });
        let weavers = pe.array([WEAVERS], |[at]| Weaver {
            step: 0,
            has_sent: false,
            heard: 0,
            words: 0,
            state: mixed(at as u64),
            panics_at,
            lead,
            slow,
            guests,
        });
        pe.main(move |pe| {
            lead.at(pe, ()).meet(weavers);
            weavers.all(pe).at_quiescence().begin();
        });
    })
}

pub fn saves(config: Config, dir: &Path, every: Option<u32>) -> Config {
    let checkpoint = Some(dir.to_owned());
    Config {
        checkpoints: Checkpoints { checkpoint, checkpoint_every: every, ..Checkpoints::default() },
        ..config
    }
}

pub fn restarts_on(config: Config, dir: &Path) -> Config {
    let restart = Some(dir.to_owned());
    Config { checkpoints: Checkpoints { restart, ..config.checkpoints }, ..config }
}

fn balanced(config: Config, seed: u64) -> Config {
    let balancer = match seed % 3 {
        0 => Vec::new(),
        1 => vec!["RotateLB".into()],
        _ => vec!["RandomLB".into()],
    };
    Config { balancer, ..config }
}

/// Another way to run, for a restart.
fn other(config: &Config, seed: u64) -> Config {
    let other = if mixed(seed) % 3 == 0 { threads(mixed(seed) >> 8) } else { simulated(mixed(seed) >> 8) };
    let other = balanced(other, mixed(seed) >> 40);
    // The program was saved with this seed.
    Config { seed: config.seed, ..other }
}

#[test]
fn a_restarted_run_has_the_result_of_the_whole_run_wherever_it_is_restarted() {
    let expected = run(Config::simulated(1, 0), u32::MAX).expect("the run exits").result;
    let expected = Box::leak(Box::new(expected));
    everywhere(80, 24, |config| {
        let seed = config.seed;
        let dir = tempfile::tempdir().expect("a folder");
        let config = saves(balanced(config, seed), dir.path(), Some(1 + (seed % 2) as u32));
        let report = run(config.clone(), u32::MAX).expect("the run exits");
        assert_eq!(report.result, *expected, "checkpoints change no result");
        assert!(report.checkpoints >= 6, "only {} checkpoints", report.checkpoints);
        assert_eq!(report.dump_error, None);
        // The last two are kept.
        let mut folders: Vec<_> =
            dir.path().read_dir().expect("there").map(|it| it.expect("there").path()).collect();
        folders.sort();
        assert_eq!(folders.len(), 2, "{folders:?}");
        for folder in &folders {
            Checkpoint::open(folder).and_then(|checkpoint| checkpoint.check()).expect("it is whole");
            let other = restarts_on(other(&config, seed), folder);
            let report =
                run(other.clone(), u32::MAX).unwrap_or_else(|error| panic!("{}: {error}", describe(&other)));
            assert_eq!(report.result, *expected, "{}", describe(&other));
            // Those before the restart do not count.
            assert!(report.lb_steps.iter().all(|step| step.sync_points == 1), "{}", describe(&other));
        }
        // A failure at a random step, and again after a restart that saves, too.
        std::fs::remove_dir_all(dir.path()).expect("removed");
        let step = 3 + (mixed(seed) >> 20) as u32 % (LAST - 4);
        run(config.clone(), step).expect_err("the program panics");
        let again = |at: u64| saves(restarts_on(other(&config, seed + at), dir.path()), dir.path(), Some(1));
        let again = |at| Config {
            checkpoints: Checkpoints { restart: Some(dir.path().to_owned()), ..again(at).checkpoints },
            ..again(at)
        };
        if Checkpoint::newest(dir.path()).is_err() {
            assert!(step <= 3, "no checkpoint before step {step}");
            return;
        }
        run(again(1), LAST).expect_err("the program panics");
        let last = again(2);
        let report =
            run(last.clone(), u32::MAX).unwrap_or_else(|error| panic!("{}: {error}", describe(&last)));
        assert_eq!(report.result, *expected, "{}", describe(&last));
    });
}

#[test]
#[ignore = "slow"]
fn restarts_at_full_size() {
    at_full_size(&[
        a_restarted_run_has_the_result_of_the_whole_run_wherever_it_is_restarted,
        what_waits_at_a_checkpoint_goes_on_after_a_restart,
    ]);
}

#[test]
fn a_machine_whose_pe_fails_recovers_from_any_moment() {
    let config = |fail: Option<PeFailure>| {
        let config = Config::on_machine("torus:2x2", "packet");
        let machine = Machine { fail: fail.into_iter().collect(), delivery: 1e-6, ..config.machine.clone() };
        Config { machine, balancer: vec!["RotateLB".into()], ..config }
    };
    let whole = run(config(None), u32::MAX).expect("the run exits");
    let seconds = whole.machine.expect("a simulated machine").seconds;
    let mut restarts = 0;
    for at in 1..10u32 {
        let dir = tempfile::tempdir().expect("a folder");
        let fails = PeFailure { pe: at % 4, seconds: seconds * f64::from(at) / 10.0 };
        let failed = run(saves(config(Some(fails)), dir.path(), Some(1)), u32::MAX).expect_err("a PE fails");
        assert!(failed.to_string().starts_with(&format!("PE {} failed at ", at % 4)), "{failed}");
        if Checkpoint::newest(dir.path()).is_ok() {
            let report = run(restarts_on(config(None), dir.path()), u32::MAX).expect("the run exits");
            assert_eq!(report.result, whole.result, "{fails:?}");
            restarts += 1;
        }
    }
    assert!(restarts >= 7, "only {restarts} had a checkpoint");
}

/// What a holder keeps and sends.
trait Word: Serialize + DeserializeOwned + Clone + Send + 'static {
    fn of(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Word for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

impl Word for String {
    fn of(number: u64) -> Self {
        number.to_string()
    }

    fn number(&self) -> u64 {
        self.parse().expect("a number")
    }
}

const HOLDERS: i32 = 10;
const TIMED: usize = 3;

/// At the checkpoint it has a callback and prioritized messages that wait. A prefix reduction, and one of a section, have the
/// contributions of some elements.
#[derive(Serialize, Deserialize)]
struct Holder<T> {
    word: T,
    is_open: bool,
    urgent: u64,
    callback: Option<Callback<u64>>,
    prefix: u64,
    section: u64,
    called: u64,
    timed: usize,
    digests: Array<Digests>,
}

#[chare(index = [i32; 1])]
impl<T: Word> Holder<T> {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        let [at] = cx.index();
        for priority in [3, -1, 0] {
            let word = T::of(self.word.number() ^ priority as u64);
            cx.peer([(at + 1) % HOLDERS]).urgent(priority, word);
        }
        self.callback = Some(cx.peers().callback().called());
        if at % 2 == 0 {
            self.contribute(cx);
        }
        for delay in 0..TIMED {
            cx.peer([(at + 3) % HOLDERS]).after(Duration::from_micros(50 * delay as u64)).timed();
        }
        if at == 0 {
            cx.peers().at_checkpoint().open();
        }
    }

    #[entry(priority = priority, when = self.is_open)]
    fn urgent(&mut self, _cx: &Cx<Self>, priority: i64, word: T) {
        self.urgent = self.urgent.wrapping_add(mixed(word.number() ^ mixed(priority as u64)));
    }

    #[entry]
    fn timed(&mut self, _cx: &Cx<Self>) {
        self.timed += 1;
    }

    /// The first entry of a restarted run.
    #[entry]
    fn open(&mut self, cx: &Cx<Self>) {
        assert_eq!(self.timed, TIMED, "all have come before the checkpoint");
        self.is_open = true;
        if cx.index()[0] % 2 == 1 {
            self.contribute(cx);
        }
        self.callback.take().expect("it was kept").contribute(cx, self.word.number());
        cx.peer(cx.index()).at_quiescence().report();
    }

    #[entry(reduce = u64::wrapping_add)]
    fn prefixed(&mut self, _cx: &Cx<Self>, sum: u64) {
        self.prefix = sum;
    }

    #[entry(reduce = u64::wrapping_add)]
    fn section(&mut self, _cx: &Cx<Self>, sum: u64) {
        self.section = sum;
    }

    #[entry(reduce = u64::wrapping_add)]
    fn called(&mut self, _cx: &Cx<Self>, sum: u64) {
        self.called = sum;
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        let Holder { urgent, prefix, section, called, .. } = *self;
        self.digests.at(cx, ()).digest(vec![cx.index()[0] as u64, urgent, prefix, section, called]);
    }
}

impl<T: Word> Holder<T> {
    fn contribute(&self, cx: &Cx<Self>) {
        cx.peers().contribute().prefix().prefixed(self.word.number());
        let thirds = cx.array().section(cx, |[at]| at % 3 == 0);
        if thirds.contains(cx, cx.array(), cx.index()) {
            thirds.all(cx).contribute_in(&thirds).section(self.word.number());
        }
    }
}

/// Collects what all holders have at their end.
#[derive(Serialize, Deserialize)]
struct Digests {
    all: Vec<Vec<u64>>,
    done: Exit<Vec<Vec<u64>>>,
}

#[chare(index = ())]
impl Digests {
    #[entry]
    fn digest(&mut self, cx: &Cx<Self>, digest: Vec<u64>) {
        self.all.push(digest);
        if self.all.len() == 2 * HOLDERS as usize {
            self.all.sort();
            self.done.exit(cx, std::mem::take(&mut self.all));
        }
    }
}

fn hold(config: Config) -> Report<Vec<Vec<u64>>> {
    fn holder<T: Word>(number: u64, digests: Array<Digests>) -> Holder<T> {
        let word = T::of(mixed(number));
        Holder {
            word,
            is_open: false,
            urgent: 0,
            callback: None,
            prefix: 0,
            section: 0,
            called: 0,
            timed: 0,
            digests,
        }
    }
    equipoise::run(config, |pe, done| {
        let digests = pe.array((), |()| Digests { all: Vec::new(), done });
        let numbers = pe.array([HOLDERS], |[at]| holder::<u64>(at as u64, digests));
        let texts = pe.array([HOLDERS], |[at]| holder::<String>(100 + at as u64, digests));
        pe.main(move |pe| {
            numbers.all(pe).begin();
            texts.all(pe).begin();
        });
    })
}

#[test]
fn what_waits_at_a_checkpoint_goes_on_after_a_restart() {
    let expected = Box::leak(Box::new(hold(Config::simulated(1, 0)).result));
    everywhere(32, 8, |config| {
        let seed = config.seed;
        let dir = tempfile::tempdir().expect("a folder");
        let report = hold(saves(config.clone(), dir.path(), None));
        assert_eq!((&report.result, report.checkpoints), (&*expected, 1), "{:?}", report.checkpoint_error);
        let pes = config.pes.expect("a number of PEs") % 8 + 1;
        for other in [with_pes(&config, pes), simulated(mixed(seed) >> 8), threads(mixed(seed) >> 8)] {
            let other = restarts_on(Config { seed, ..other }, dir.path());
            assert_eq!(hold(other.clone()).result, *expected, "{}", describe(&other));
        }
    });
}
