//! What a figure is, of a paper or of our own, and what comes of making it again.

use std::fmt::Display;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};

use super::chart::Chart;
use super::rows::Rows;

/// A figure of a paper that can be made again, or one of our own.
#[derive(Debug)]
pub struct Figure {
    /// What it is called on the command line, and what its files are called.
    pub name: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Where it is printed, or that it is in no paper.
    pub paper: &'static str,
    /// How long it takes, about, for people.
    pub takes: &'static str,
    /// What to know when comparing it with the paper's; empty if there is nothing.
    pub notes: &'static str,
    /// Makes it.
    pub run: fn(&Options) -> anyhow::Result<FigureResult>,
}

/// How a figure is made.
#[derive(Debug)]
pub struct Options {
    /// Whether a part will do, which takes seconds also where nothing is optimised.
    pub small: bool,
    /// Everything random comes from this.
    pub seed: u64,
    /// A folder with databases and task graphs, for the figures that take them instead of those they make.
    pub data: Option<PathBuf>,
}

/// A figure, made.
#[derive(Debug)]
pub struct FigureResult {
    /// Its numbers, and beside them those that the paper prints and the theory gives.
    pub rows: Rows,
    /// What is drawn of them.
    pub chart: Chart,
    /// Whether they are as they should be.
    pub criteria: Vec<Criterion>,
}

/// Something that must hold of the numbers of a figure, and whether it does.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Criterion {
    /// What must hold, with its limits.
    pub criterion: String,
    /// The numbers that decide.
    pub measured: String,
    /// Whether it holds.
    pub met: bool,
}

impl Criterion {
    /// That `criterion` holds, as `measured` shows, or does not.
    pub fn new(criterion: impl Into<String>, measured: impl Display, met: bool) -> Self {
        Criterion { criterion: criterion.into(), measured: measured.to_string(), met }
    }

    /// That something holds of every one of `items`; what was measured is told of the worst one: that for
    /// which `slack`, what is left to the limit, is least (negative where the limit is passed, or not a
    /// number where nothing could be computed).
    pub fn every<I>(
        criterion: impl Into<String>,
        items: impl IntoIterator<Item = I>,
        slack: impl Fn(&I) -> f64,
        measured: impl Fn(&I) -> String,
    ) -> Self {
        let left = |item: &I| Some(slack(item)).filter(|left| !left.is_nan()).unwrap_or(f64::NEG_INFINITY);
        let worst = items.into_iter().map(|item| (left(&item), item)).min_by(|a, b| a.0.total_cmp(&b.0));
        match worst {
            Some((slack, item)) => Criterion::new(criterion, measured(&item), slack >= 0.0),
            None => Criterion::new(criterion, "nothing was measured", false),
        }
    }
}

impl Options {
    /// All of them, or those of a small version.
    pub fn choose<'a, T>(&self, all: &'a [T], small: &'a [T]) -> &'a [T] {
        if self.small { small } else { all }
    }

    /// Does `work` on every item in turn; a terminal shows how far it is.
    ///
    /// # Errors
    /// The first of `work`.
    pub fn sweep<I: Display, R>(
        &self,
        items: impl IntoIterator<Item = I>,
        work: impl FnMut(I) -> anyhow::Result<R>,
    ) -> anyhow::Result<Vec<R>> {
        self.sweep_labelled(items.into_iter().map(|item| (item.to_string(), item)), work)
    }

    /// The same with items that are shown by labels.
    ///
    /// # Errors
    /// The first of `work`.
    pub fn sweep_labelled<L: Display, I, R>(
        &self,
        items: impl IntoIterator<Item = (L, I)>,
        mut work: impl FnMut(I) -> anyhow::Result<R>,
    ) -> anyhow::Result<Vec<R>> {
        let items: Vec<(L, I)> = items.into_iter().collect();
        // It draws on stderr, and only if that is a terminal.
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
    fn a_criterion_of_all_is_decided_by_the_worst() {
        let check = |items: &[f64], measured: &str, met: bool| {
            let found = Criterion::every("at most 2", items, |item| 2.0 - **item, |item| format!("{item}"));
            let expected = Criterion { criterion: "at most 2".into(), measured: measured.into(), met };
            assert_eq!(found, expected);
        };
        check(&[1.0, 2.0, 0.5], "2", true);
        check(&[1.0, 3.0, 2.5], "3", false);
        check(&[1.0, f64::NAN], "NaN", false);
        check(&[1.0, -f64::NAN, 0.5], "NaN", false);
        check(&[], "nothing was measured", false);
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
            anyhow::ensure!(item != 2, "two");
            Ok(())
        });
        assert_eq!((result.expect_err("two").to_string(), done), ("two".into(), 2));
    }
}
