//! Figures, their options and results.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Instant;

use cpu_time::ThreadTime;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::ThreadPoolBuilder;

use crate::chart::Chart;
use crate::rows::Rows;
use equipoise_apps::Failure;

/// A figure of a paper, or one that is in no paper.
#[derive(Debug)]
pub struct Figure {
    /// Its name on the command line, and of its files.
    pub name: &'static str,
    /// Its title, one line.
    pub title: &'static str,
    /// The paper and the number of the figure there.
    pub paper: &'static str,
    /// What the paper shows, one line.
    pub paper_shows: &'static str,
    /// What this figure shows, one line.
    pub we_show: &'static str,
    /// Why its numbers are as they are, one line.
    pub why: &'static str,
    /// The approximate running time.
    pub takes: &'static str,
    /// Differences from the figure in the paper; may be empty.
    pub notes: &'static str,
    /// Computes the figure.
    pub run: fn(&Options) -> Result<FigureResult, Failure>,
}

/// The options of a figure.
#[derive(Debug)]
pub struct Options {
    /// Whether to make the small version, which takes seconds even without compiler optimisation.
    pub small: bool,
    /// Seed of the random number generator.
    pub seed: u64,
    /// A folder with databases and task graphs, which replace the generated ones.
    pub data: Option<PathBuf>,
}

/// The result of a figure.
#[derive(Debug)]
pub struct FigureResult {
    /// Its numbers, next to those of the paper and of theory.
    pub rows: Rows,
    /// Its chart.
    pub chart: Chart,
    /// Its criteria.
    pub criteria: Vec<Criterion>,
}

/// A condition for the numbers of a figure, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Criterion {
    /// The condition, with its limits.
    pub criterion: String,
    /// The measured numbers.
    pub measured: String,
    /// Whether it holds. False if it is not judged.
    pub met: bool,
    /// Whether the numbers can decide it.
    pub judged: bool,
    /// Why it is missed or not judged, one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Criterion {
    /// A criterion with its measured numbers.
    pub fn new(criterion: impl Into<String>, measured: impl Display, met: bool) -> Self {
        Criterion {
            criterion: criterion.into(),
            measured: measured.to_string(),
            met,
            judged: true,
            why: None,
        }
    }

    /// The same with the reason, one sentence, if it is missed.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Self {
        Criterion { why: (!self.met).then(|| why.into()), ..self }
    }

    /// The same about wall-clock time: not judged if the times were `taken` on a busy machine.
    #[must_use]
    pub fn of_wall_time(self, taken: Taken) -> Self {
        if !taken.is_busy() {
            return self;
        }
        let Taken { wall, cpu } = taken;
        let why = format!("the machine was busy: {wall:.3} s took {cpu:.3} s of CPU time");
        Criterion { met: false, judged: false, why: Some(why), ..self }
    }

    /// The condition, the measured numbers, and the reason if it is missed or not judged.
    pub fn sentence(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{}: {}{why}", self.criterion, self.measured)
    }

    /// `met`, `missed` or `not judged`.
    pub fn verdict(&self) -> &'static str {
        match (self.judged, self.met) {
            (false, _) => "not judged",
            (true, true) => "met",
            (true, false) => "missed",
        }
    }

    /// A criterion for all `items`, with the measured numbers of the worst item. The worst item has the smallest
    /// `slack`, which is its distance to the limit: negative beyond the limit, NaN if it cannot be computed.
    pub fn every<I>(
        criterion: impl Into<String>,
        items: impl IntoIterator<Item = I>,
        slack: impl Fn(&I) -> f64,
        measured: impl Fn(&I) -> String,
    ) -> Self {
        let slack = |item: &I| Some(slack(item)).filter(|slack| !slack.is_nan()).unwrap_or(f64::NEG_INFINITY);
        let worst = items.into_iter().map(|item| (slack(&item), item)).min_by(|a, b| a.0.total_cmp(&b.0));
        match worst {
            Some((slack, item)) => Criterion::new(criterion, measured(&item), slack >= 0.0),
            None => Criterion::new(criterion, "nothing was measured", false),
        }
    }
}

/// The wall-clock time and the CPU time of work on one thread, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// Wall-clock time.
    pub wall: f64,
    /// CPU time of the thread.
    pub cpu: f64,
}

impl Taken {
    /// The times of `work` on the calling thread, and its result.
    pub fn of<R>(work: impl FnOnce() -> R) -> (Taken, R) {
        let (wall, cpu) = (Instant::now(), ThreadTime::now());
        let result = work();
        (Taken { wall: wall.elapsed().as_secs_f64(), cpu: cpu.elapsed().as_secs_f64() }, result)
    }

    /// Whether other programs had the processor for a part of the time: the times differ by more than 10 %.
    pub fn is_busy(self) -> bool {
        (self.wall - self.cpu).abs() > 0.1 * self.wall
    }
}

/// The result of `work` on one thread, also where it uses several.
///
/// # Errors
/// If the thread cannot be started.
pub fn on_one_thread<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, Failure> {
    Ok(ThreadPoolBuilder::new().num_threads(1).build().map_err(Failure::bug)?.install(work))
}

impl Options {
    /// `all`, or `small` for the small version.
    pub fn choose<'a, T>(&self, all: &'a [T], small: &'a [T]) -> &'a [T] {
        if self.small { small } else { all }
    }

    /// Calls `work` for every item in sequence; a terminal shows the progress.
    ///
    /// # Errors
    /// The first error of `work`.
    pub fn sweep<I: Display, R>(
        &self,
        items: impl IntoIterator<Item = I>,
        work: impl FnMut(I) -> Result<R, Failure>,
    ) -> Result<Vec<R>, Failure> {
        self.sweep_labelled(items.into_iter().map(|item| (item.to_string(), item)), work)
    }

    /// The same for items with labels.
    ///
    /// # Errors
    /// The first error of `work`.
    pub fn sweep_labelled<L: Display, I, R>(
        &self,
        items: impl IntoIterator<Item = (L, I)>,
        mut work: impl FnMut(I) -> Result<R, Failure>,
    ) -> Result<Vec<R>, Failure> {
        let items: Vec<(L, I)> = items.into_iter().collect();
        // The bar is drawn on stderr, and only if stderr is a terminal.
        let bar = ProgressBar::new(items.len() as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}") {
            bar.set_style(style);
        }
        let mut results = Vec::with_capacity(items.len());
        for (label, item) in items {
            bar.set_message(label.to_string());
            bar.tick();
            results.push(work(item)?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_criterion_for_all_items_is_decided_by_the_worst() {
        let check = |items: &[f64], measured: &str, met: bool| {
            let found = Criterion::every("at most 2", items, |item| 2.0 - **item, |item| format!("{item}"));
            assert_eq!(found, Criterion::new("at most 2", measured, met));
        };
        check(&[1.0, 2.0, 0.5], "2", true);
        check(&[1.0, 3.0, 2.5], "3", false);
        check(&[1.0, f64::NAN], "NaN", false);
        check(&[1.0, -f64::NAN, 0.5], "NaN", false);
        check(&[], "nothing was measured", false);
    }

    #[test]
    fn wall_clock_times_of_a_busy_machine_decide_nothing() {
        let criterion = Criterion::new("at most 1 s", "0.9 s", true).because("it is slow");
        assert_eq!((criterion.verdict(), &criterion.why), ("met", &None));
        let on = |cpu| criterion.clone().of_wall_time(Taken { wall: 0.9, cpu });
        assert_eq!(on(0.85), criterion);
        let busy = on(0.6);
        assert_eq!(busy.verdict(), "not judged");
        assert_eq!(busy.why.as_deref(), Some("the machine was busy: 0.900 s took 0.600 s of CPU time"));
        let missed = Criterion::new("at most 1 s", "2 s", false).because("it is slow");
        assert_eq!((missed.verdict(), missed.why.as_deref()), ("missed", Some("it is slow")));
        let (taken, result) = Taken::of(|| 7);
        assert!(result == 7 && taken.wall >= 0.0 && taken.cpu >= 0.0);
    }

    #[test]
    fn a_sweep_ends_with_the_first_error() {
        let options = Options { small: false, seed: 0, data: None };
        assert_eq!(options.sweep([1, 2], |item| Ok(2 * item)).expect("no error"), [2, 4]);
        let labelled = [("one", 1), ("two", 2)];
        assert_eq!(options.sweep_labelled(labelled, |item| Ok(2 * item)).expect("no error"), [2, 4]);
        let mut done = 0;
        let result = options.sweep([1, 2, 3], |item| {
            done += 1;
            if item == 2 { Err(Failure::input("two")) } else { Ok(()) }
        });
        assert_eq!((result.expect_err("two").to_string(), done), ("two".into(), 2));
    }
}
