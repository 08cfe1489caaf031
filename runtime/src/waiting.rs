//! What a run waits for when it ends without an exit: lines about single PEs, and reductions and load-balancing steps
//! over all PEs.

use crate::section::{SectionId, Source};
use crate::slot::Collective;
use equipoise_model::table::count;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The most elements that a line names.
const NAMED: usize = 3;

/// What a run waits for, or a part of its PEs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// What PEs run.
    running: Vec<String>,
    /// Of the setup and of single PEs.
    lines: Vec<(Option<u32>, String)>,
    /// The reductions that have begun.
    reductions: Vec<OpenReduction>,
    /// The names of the members of sections.
    sections: BTreeMap<SectionId, Vec<String>>,
    /// How far the elements of each array are, by [`Collective`] and array.
    progress: BTreeMap<(usize, u16), Progress>,
    /// The elements whose flows wait for messages, by array and messages.
    flows: BTreeMap<(u16, String), Progress>,
}

/// The contributions to one reduction that are on one PE.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct OpenReduction {
    /// The contributing array or section.
    pub(crate) source: Source,
    /// Its name.
    pub(crate) name: String,
    /// The number of the reduction.
    pub(crate) round: u32,
    /// The entry that receives the result, with its array if that is another one.
    pub(crate) entry: String,
    /// The array that receives the result.
    pub(crate) to: u16,
    /// The entry and its elements that receive the result.
    pub(crate) target: String,
    /// An element that has contributed.
    pub(crate) by: String,
    /// For a section, the members that have contributed, as runs: the first position and the number of members.
    pub(crate) done: Vec<(u32, u64)>,
}

/// The progress of the elements of one array in a collective.
#[derive(Debug, Serialize, Deserialize)]
struct Progress {
    array: String,
    /// The oldest round in which an element has not participated.
    round: u32,
    /// The number of elements that have participated in this round.
    done: u64,
    /// The number of elements that have not, and those of the lowest ranks by rank.
    missing: u64,
    named: BTreeMap<u32, String>,
}

impl Waiting {
    /// Adds a line about the setup, or about a PE.
    pub(crate) fn line(&mut self, pe: Option<u32>, line: String) {
        self.lines.push((pe, line));
    }

    /// Sets what PEs run, one line each.
    pub(crate) fn runs(&mut self, running: Vec<String>) {
        self.running = running;
    }

    /// Adds a reduction that has begun.
    pub(crate) fn reduction(&mut self, open: OpenReduction) {
        self.reductions.push(open);
    }

    /// Adds a section, so that its members have names.
    pub(crate) fn section(&mut self, section: SectionId, names: impl FnOnce() -> Vec<String>) {
        self.sections.entry(section).or_insert_with(names);
    }

    /// Adds an element with the number of its next round of a collective.
    pub(crate) fn element(
        &mut self,
        collective: Collective,
        (id, array): (u16, &str),
        round: u32,
        (rank, name): (u32, impl FnOnce() -> String),
    ) {
        let begin = || Progress::new(array, round);
        let progress = self.progress.entry((collective as usize, id)).or_insert_with(begin);
        match round.cmp(&progress.round) {
            Ordering::Greater => {
                progress.done += 1;
                return;
            }
            Ordering::Less => *progress = Progress { done: progress.done + progress.missing, ..begin() },
            Ordering::Equal => {}
        }
        progress.missing += 1;
        progress.name(rank, name);
    }

    /// Adds an element whose flow waits for messages.
    pub(crate) fn flow(
        &mut self,
        (id, array): (u16, &str),
        messages: &str,
        (rank, name): (u32, impl FnOnce() -> String),
    ) {
        let waits = self.flows.entry((id, messages.to_owned())).or_insert_with(|| Progress::new(array, 0));
        waits.missing += 1;
        waits.name(rank, name);
    }

    /// Adds what PEs of another process wait for.
    pub(crate) fn merge(&mut self, other: Waiting) {
        self.running.extend(other.running);
        self.lines.extend(other.lines);
        self.reductions.extend(other.reductions);
        self.sections.extend(other.sections);
        for (of, theirs) in other.flows {
            let mine = self.flows.entry(of).or_insert_with(|| Progress::new(&theirs.array, 0));
            mine.add_missing(theirs);
        }
        for (of, theirs) in other.progress {
            let mine = self.progress.entry(of).or_insert_with(|| Progress::new(&theirs.array, theirs.round));
            // The elements of both that have not participated in the older of the two rounds.
            match theirs.round.cmp(&mine.round) {
                Ordering::Greater => mine.done += theirs.done + theirs.missing,
                Ordering::Less => {
                    let all = mine.done + mine.missing;
                    *mine = Progress { done: theirs.done + all, ..theirs };
                }
                Ordering::Equal => {
                    mine.done += theirs.done;
                    mine.add_missing(theirs);
                }
            }
        }
    }

    /// One line per item: what runs, then reductions, load balancing and flows, then PEs in order, with their names.
    pub(crate) fn into_lines(mut self, pe_name: impl Fn(u32) -> String) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.running);
        lines.extend(self.reduction_lines());
        lines.extend(self.section_lines());
        lines.extend(self.barrier_lines());
        let flows = std::mem::take(&mut self.flows).into_iter();
        lines.extend(flows.map(|((_, messages), waits)| {
            format!("{} {} for {messages}", waits.names(), if waits.missing == 1 { "waits" } else { "wait" })
        }));
        self.lines.sort_by_key(|(pe, _)| *pe);
        let with_pe = |(pe, line): (Option<u32>, String)| match pe {
            Some(pe) => format!("{}: {line}", pe_name(pe)),
            None => line,
        };
        lines.extend(self.lines.into_iter().map(with_pe));
        lines
    }

    /// The progress of all arrays in a collective.
    fn of(&self, collective: Collective) -> impl Iterator<Item = (u16, &Progress)> {
        let all = self.progress.range((collective as usize, 0)..=(collective as usize, u16::MAX));
        all.map(|(&(_, array), progress)| (array, progress))
    }

    /// The oldest incomplete reduction of every array. Sorts the reductions.
    fn reduction_lines(&mut self) -> Vec<String> {
        self.reductions.sort();
        let mut lines = Vec::new();
        for (source, progress) in self.of(Collective::Reduction) {
            let of_source = || self.reductions.iter().filter(|open| open.source == Source::Array(source));
            let Some(round) = of_source().map(|open| open.round).min() else { continue };
            let open: Vec<&OpenReduction> = of_source().filter(|open| open.round == round).collect();
            let all = progress.done + progress.missing;
            // Elements have contributed to all reductions before that of `progress`.
            let is_missing = round >= progress.round && progress.missing > 0;
            let done = if is_missing { progress.done } else { all };
            lines.extend(disagreements(&open));
            lines.push(contributed(open[0], (done, all), is_missing.then_some(progress)));
        }
        lines
    }

    /// The oldest incomplete reduction of every section.
    fn section_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        // They are sorted by section, then by number.
        for open in self.reductions.chunk_by(|a, b| a.source == b.source) {
            let Source::Section(section) = open[0].source else { continue };
            let open: Vec<&OpenReduction> = open.iter().filter(|it| it.round == open[0].round).collect();
            lines.extend(disagreements(&open));
            let mut runs: Vec<(u32, u64)> = open.iter().flat_map(|open| open.done.iter().copied()).collect();
            runs.sort_unstable();
            let mut progress = Progress::new(&open[0].name, open[0].round);
            let names = self.sections.get(&section);
            let mut at = 0;
            for (start, count) in runs.into_iter().chain([(section.len, 0)]) {
                for position in at..u64::from(start) {
                    progress.missing += 1;
                    let name = names.and_then(|names| names.get(position as usize));
                    name.into_iter().for_each(|name| progress.name(position as u32, || name.clone()));
                }
                at = at.max(u64::from(start) + count);
            }
            let all = u64::from(section.len);
            let done = all - progress.missing;
            lines.push(contributed(open[0], (done, all), names.is_some().then_some(&progress)));
        }
        lines
    }

    /// The arrays for which a load-balancing step waits, if there are elements that wait for one.
    fn barrier_lines(&self) -> Vec<String> {
        let arrays = || self.of(Collective::Barrier).map(|(_, progress)| progress);
        let Some(round) = arrays().map(|progress| progress.round).min() else { return Vec::new() };
        if !arrays().any(|progress| progress.round > round || progress.done > 0) {
            return Vec::new();
        }
        let line = |progress: &Progress| {
            let verb = if progress.missing == 1 { "has" } else { "have" };
            let all = count(progress.done + progress.missing, "element");
            format!(
                "load balancing waits for {}, which {verb} not called at_sync ({} of {all} of {} called at_sync)",
                progress.names(),
                progress.done,
                progress.array
            )
        };
        arrays().filter(|progress| progress.round == round && progress.missing > 0).map(line).collect()
    }
}

impl Progress {
    /// No element yet.
    fn new(array: &str, round: u32) -> Self {
        Progress { array: array.to_owned(), round, done: 0, missing: 0, named: BTreeMap::new() }
    }

    /// Adds missing elements of another process.
    fn add_missing(&mut self, theirs: Progress) {
        self.missing += theirs.missing;
        theirs.named.into_iter().for_each(|(rank, name)| self.name(rank, || name));
    }

    /// Keeps the name of a missing element if its rank is among the lowest.
    fn name(&mut self, rank: u32, name: impl FnOnce() -> String) {
        let named = &mut self.named;
        if named.len() < NAMED || named.last_key_value().is_some_and(|(&last, _)| rank < last) {
            named.insert(rank, name());
            if named.len() > NAMED {
                named.pop_last();
            }
        }
    }

    /// The elements that are missing: `A[1] and A[2]`, or `A[1], A[2], A[3] and 4 more`.
    fn names(&self) -> String {
        let mut names: Vec<String> = self.named.values().cloned().collect();
        let more = self.missing - names.len() as u64;
        let last = if more > 0 { Some(format!("{more} more")) } else { names.pop() };
        let last = last.unwrap_or_default();
        if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
    }
}

/// How many elements have contributed to a reduction, and the elements that have not. If these are too many to name, one that
/// has: perhaps it has contributed once too often, to the reduction after the last one of the others.
fn contributed(open: &OpenReduction, (done, all): (u64, u64), missing: Option<&Progress>) -> String {
    let number = if open.round == 0 { String::new() } else { format!(" {}", u64::from(open.round) + 1) };
    let (verb, of) = (if done == 1 { "has" } else { "have" }, count(all, "element"));
    let among = if done == 1 { "" } else { "among them " };
    let is_long = missing.is_some_and(|missing| missing.missing > missing.named.len() as u64);
    let by = if is_long { format!(", {among}{}", open.by) } else { String::new() };
    let missing = missing.map_or(String::new(), |missing| format!("; missing {}", missing.names()));
    format!(
        "reduction{number} of {} to entry {}: {done} of {of} {verb} contributed{by}{missing}",
        open.name, open.entry
    )
}

/// The sentence about two parts of a reduction with different targets, if there are such parts.
fn disagreements(open: &[&OpenReduction]) -> Option<String> {
    let other = open.iter().find(|other| (other.to, &other.target) != (open[0].to, &open[0].target))?;
    Some(disagreement(open[0], other))
}

/// The sentence about two elements that contribute to different targets in one reduction.
#[cold]
pub(crate) fn disagreement(one: &OpenReduction, other: &OpenReduction) -> String {
    let target = |of: &OpenReduction| match one.target == other.target {
        // Arrays of the same chare.
        true => format!("{} in array {} of the setup", of.target, u64::from(of.to) + 1),
        false => of.target.clone(),
    };
    format!(
        "reduction {} of {} is inconsistent: {} contributes to {} and {} to {}; all elements must contribute to the same \
         entry and receivers",
        u64::from(one.round) + 1,
        one.name,
        one.by,
        target(one),
        other.by,
        target(other)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(waiting: &mut Waiting, collective: Collective, array: u16, rounds: &[u32]) {
        for (rank, &round) in (0..).zip(rounds) {
            let name = ["A", "B"][usize::from(array)];
            waiting.element(collective, (array, name), round, (rank, || format!("{name}[{rank}]")));
        }
    }

    fn open(round: u32, target: &str, by: &str) -> OpenReduction {
        let (entry, target, by) = ("`sum`".into(), target.into(), by.into());
        OpenReduction {
            source: Source::Array(0),
            name: "A".into(),
            round,
            entry,
            to: 0,
            target,
            by,
            done: Vec::new(),
        }
    }

    #[test]
    fn names_elements_that_have_not_contributed() {
        let lines = |rounds: &[u32]| {
            let mut waiting = Waiting::default();
            add(&mut waiting, Collective::Reduction, 0, rounds);
            waiting.reduction(open(4, "entry `sum` of A[0]", "A[0]"));
            waiting.reduction(open(5, "entry `sum` of A[0]", "A[0]"));
            waiting.into_lines(|pe| format!("PE {pe}"))
        };
        let begin = "reduction 5 of A to entry `sum`: ";
        assert_eq!(lines(&[5, 5, 4, 6]), [format!("{begin}3 of 4 elements have contributed; missing A[2]")]);
        assert_eq!(
            lines(&[4, 5, 4]),
            [format!("{begin}1 of 3 elements has contributed; missing A[0] and A[2]")]
        );
        let many = "A[1], A[2], A[3] and 2 more";
        assert_eq!(
            lines(&[5, 4, 4, 4, 4, 4]),
            [format!("{begin}1 of 6 elements has contributed, A[0]; missing {many}")]
        );
        let [line] = &lines(&[5, 5, 4, 4, 4, 4, 4])[..] else { panic!("one line") };
        assert!(
            line.starts_with(&format!(
                "{begin}2 of 7 elements have contributed, among them A[0]; missing A[2]"
            ))
        );
    }

    #[test]
    fn names_two_elements_that_disagree() {
        let mut waiting = Waiting::default();
        add(&mut waiting, Collective::Reduction, 0, &[1, 1, 0]);
        waiting.reduction(open(0, "entry `sum` of all elements of A", "A[1]"));
        waiting.reduction(open(0, "entry `max` of B[0]", "A[0]"));
        let lines = waiting.into_lines(|pe| format!("PE {pe}"));
        let sentence = "reduction 1 of A is inconsistent: A[0] contributes to entry `max` of B[0] and A[1] to entry \
                        `sum` of all elements of A; all elements must contribute to the same entry and receivers";
        assert_eq!(lines[0], sentence);
        assert!(lines[1].ends_with("2 of 3 elements have contributed; missing A[2]"), "{}", lines[1]);
    }

    #[test]
    fn names_elements_that_have_not_called_at_sync() {
        let mut waiting = Waiting::default();
        add(&mut waiting, Collective::Barrier, 0, &[2, 1, 2]);
        add(&mut waiting, Collective::Barrier, 1, &[1, 1]);
        waiting.line(Some(1), "one".into());
        waiting.line(Some(0), "zero".into());
        assert_eq!(
            waiting.into_lines(|pe| format!("PE {pe} (node7)")),
            [
                "load balancing waits for A[1], which has not called at_sync (2 of 3 elements of A called at_sync)",
                "load balancing waits for B[0] and B[1], which have not called at_sync \
                 (0 of 2 elements of B called at_sync)",
                "PE 0 (node7): zero",
                "PE 1 (node7): one",
            ]
        );
        let mut idle = Waiting::default();
        add(&mut idle, Collective::Barrier, 0, &[1, 1, 1]);
        assert!(idle.into_lines(|pe| format!("PE {pe}")).is_empty(), "no element waits for a step");
    }
}
