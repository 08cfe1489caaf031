//! Schedules: the strategy of each load-balancing step.
//!
//! A schedule is given by `--balancer A --then B` (A at the first step, B at all later steps), or by a file in
//! the format of vt, with one rule `[%]STEP NAME [key=value ..]` per line. `120 GreedyLB` applies to step 120,
//! `%10 RefineLB imbalance=0.03` to every tenth step. An exact step takes precedence over a `%`, and an earlier
//! line over a later line. `NoLB` means that no strategy runs. `#` begins a comment only at the start of a line
//! or after white space, so that values such as file names may contain `#`.

use equipoise_model::params::ParamError;
use equipoise_model::quote::sentence;

use crate::descriptor::Choice;
use crate::registry;
use equipoise_model::fault::{Classified, Fault};

/// The strategy of each load-balancing step.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    steps: Steps,
    /// `None` for `NoLB`.
    choice: Option<Choice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    At(u64),
    Every(u64),
}

/// An invalid line of a schedule file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {}", sentence(.reason))]
pub struct ScheduleError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub reason: String,
}

impl Classified for ScheduleError {
    fn fault(&self) -> Fault {
        Fault::Input
    }
}

impl Schedule {
    /// The schedule without strategies.
    pub fn none() -> Self {
        Self::default()
    }

    /// `first` at step 0 and `then` at all later steps; without `then`, `first` at every step.
    pub fn first_then(first: Choice, then: Option<Choice>) -> Self {
        let later = then.unwrap_or_else(|| first.clone());
        Schedule {
            rules: vec![
                Rule { steps: Steps::At(0), choice: Some(first) },
                Rule { steps: Steps::Every(1), choice: Some(later) },
            ],
        }
    }

    /// Parses a schedule file; `custom` are strategies of the program, as in [`registry::parse`].
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse_file(text: &str, custom: &[Choice]) -> Result<Self, ScheduleError> {
        let mut rules = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = without_comment(line).trim();
            if !line.is_empty() {
                rules.push(
                    parse_line(line, custom).map_err(|reason| ScheduleError { line: number + 1, reason })?,
                );
            }
        }
        Ok(Schedule { rules })
    }

    /// The same schedule with strategies made of its strategies.
    #[must_use]
    pub fn map(mut self, made_of: impl Fn(&Choice) -> Choice) -> Self {
        for choice in self.rules.iter_mut().filter_map(|rule| rule.choice.as_mut()) {
            *choice = made_of(choice);
        }
        self
    }

    /// The strategy of a load-balancing step, counted from 0; `None` if no strategy runs.
    pub fn at(&self, step: u64) -> Option<&Choice> {
        let exact = self.rules.iter().find(|rule| rule.steps == Steps::At(step));
        let every = |rule: &&Rule| matches!(rule.steps, Steps::Every(n) if step.is_multiple_of(n));
        exact.or_else(|| self.rules.iter().find(every))?.choice.as_ref()
    }

    /// Whether any strategy of the schedule reads communication.
    pub fn needs_communication(&self) -> bool {
        self.rules.iter().filter_map(|rule| rule.choice.as_ref()).any(|choice| choice.needs_communication)
    }

    /// Whether the schedule says nothing about any step, as that of an empty file. A rule `NoLB` says something.
    pub fn has_no_rules(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether no strategy runs at any step.
    pub fn is_empty(&self) -> bool {
        self.rules.iter().all(|rule| rule.choice.is_none())
    }
}

/// The line up to the first `#` that begins it or follows white space.
fn without_comment(line: &str) -> &str {
    let begins = |&(at, _): &(usize, &str)| at == 0 || line[..at].ends_with(char::is_whitespace);
    line.match_indices('#').find(begins).map_or(line, |(at, _)| &line[..at])
}

fn parse_line(line: &str, custom: &[Choice]) -> Result<Rule, String> {
    let mut words = line.split_whitespace();
    let step = words.next().unwrap_or_default();
    let (every, digits) = match step.strip_prefix('%') {
        Some(digits) => (true, digits),
        None => (false, step),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("expected a step such as `12`, or `%12` for every 12th step, found `{step}`"))?;
    let steps = match (every, number) {
        (true, 0) => return Err("`%0` matches no step; write `%1` for every step".into()),
        (true, n) => Steps::Every(n),
        (false, n) => Steps::At(n),
    };
    let name = words.next().ok_or_else(|| format!("expected the name of a strategy after `{step}`"))?;
    let params: Vec<&str> = words.collect();
    if name == "NoLB" && params.is_empty() {
        return Ok(Rule { steps, choice: None });
    }
    let spec = if params.is_empty() { name.to_string() } else { format!("{name}:{}", params.join(",")) };
    let choice = registry::parse(&spec, custom).map_err(|error: ParamError| error.to_string())?;
    Ok(Rule { steps, choice: Some(choice) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(schedule: &Schedule, steps: impl IntoIterator<Item = u64>) -> Vec<&str> {
        steps.into_iter().map(|step| schedule.at(step).map_or("-", |choice| &choice.spec)).collect()
    }

    fn choice(spec: &str) -> Choice {
        registry::parse(spec, &[]).expect("a test names a strategy that exists")
    }

    #[track_caller]
    fn check_error(text: &str, line: usize, expected: &str) {
        let error = Schedule::parse_file(text, &[]).expect_err(expected);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(expected), "`{error}` does not contain `{expected}`");
    }

    #[test]
    fn the_second_strategy_runs_at_all_steps_after_the_first() {
        let schedule = Schedule::first_then(choice("GreedyLB"), Some(choice("RefineLB")));
        assert_eq!(at(&schedule, [0, 1, 2, 99]), ["GreedyLB", "RefineLB", "RefineLB", "RefineLB"]);
        let alone = Schedule::first_then(choice("GreedyLB"), None);
        assert_eq!(at(&alone, [0, 1]), ["GreedyLB", "GreedyLB"]);
        assert_eq!(at(&Schedule::none(), [0, 1]), ["-", "-"]);
        assert!(Schedule::none().is_empty() && !alone.is_empty());
    }

    #[test]
    fn exact_steps_and_earlier_lines_take_precedence() {
        let text = "# phase 1\n%4 RotateLB\n  %2 RefineLB imbalance=0.1  # every other\n%3 NoLB\n4 GreedyLB\n4 DummyLB\n";
        let schedule = Schedule::parse_file(text, &[]).expect("a schedule");
        let refine = "RefineLB:imbalance=0.1";
        let expected = ["RotateLB", "-", refine, "-", "GreedyLB", "-", refine, "-", "RotateLB", "-"];
        assert_eq!(at(&schedule, 0..10), expected);
        assert!(!schedule.needs_communication());
    }

    #[test]
    fn a_comment_begins_a_line_or_follows_white_space() {
        for (line, expected) in [
            ("# 1 GreedyLB", ""),
            ("\t# 1 GreedyLB", "\t"),
            ("1 GreedyLB # the first", "1 GreedyLB "),
            ("1 GreedyLB\t#the first", "1 GreedyLB\t"),
            ("1 FileLB path=a#b", "1 FileLB path=a#b"),
            ("1 FileLB path=é#b #c#d", "1 FileLB path=é#b "),
            ("", ""),
        ] {
            assert_eq!(without_comment(line), expected, "{line:?}");
        }
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("a#b");
        std::fs::write(&path, "0\n").expect("a temporary file can be written");
        let text = format!("3 FileLB path={} # made by hand\n", path.display());
        let schedule = Schedule::parse_file(&text, &[]).expect("a schedule");
        assert_eq!(at(&schedule, [3]), [format!("FileLB:path={}", path.display())]);
    }

    #[test]
    fn errors_name_the_line() {
        check_error("0 GreedyLB\nten GreedyLB", 2, "expected a step such as `12`, or `%12`");
        check_error("\n%0 GreedyLB", 2, "`%0` matches no step");
        check_error("7", 1, "expected the name of a strategy after `7`");
        check_error("7 GredyLB", 1, "did you mean `GreedyLB`?");
        check_error("7 RefineLB 0.05", 1, "expected key=value, found `0.05`");
        check_error("7 RefineLB imblance=0.05", 1, "did you mean `imbalance`?");
    }
}
