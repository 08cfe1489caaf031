//! The table of all figures: how many criteria each meets, and those that it misses.

use serde::Serialize;

use crate::figure::Criterion;

/// The line of a figure.
#[derive(Debug, Serialize)]
pub struct Line {
    figure: &'static str,
    criteria: usize,
    met: usize,
    missed: Vec<String>,
    not_judged: Vec<String>,
}

impl Line {
    /// The line of a figure with these criteria.
    pub fn of(figure: &'static str, criteria: &[Criterion]) -> Self {
        let with = |verdict: &str| {
            let these = criteria.iter().filter(|criterion| criterion.verdict() == verdict);
            these.map(Criterion::sentence).collect::<Vec<_>>()
        };
        let met = with("met").len();
        Line { figure, criteria: criteria.len(), met, missed: with("missed"), not_judged: with("not judged") }
    }

    /// How many criteria are met, missed and not judged, in words.
    pub fn verdict(&self) -> String {
        let mut text = format!("{} of {} criteria met", self.met, self.criteria);
        for (count, name) in [(self.missed.len(), "missed"), (self.not_judged.len(), "not judged")] {
            if count > 0 {
                text += &format!(", {count} {name}");
            }
        }
        text
    }

    /// How many criteria are missed.
    pub fn summary(&self) -> String {
        format!("{}: missed {} of the {} criteria", self.figure, self.missed.len(), self.criteria)
    }

    /// Whether no criterion is missed.
    pub fn is_clean(&self) -> bool {
        self.missed.is_empty()
    }
}

/// The lines as a text table, with a sentence for each criterion that is missed or not judged.
pub fn table(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.figure.len()).max().unwrap_or(0);
    let row = |figure: &str, met: &str, sentence: &str| {
        format!("{figure:<width$}  {met:>8}  {sentence}").trim_end().to_string() + "\n"
    };
    let mut text = row("figure", "met", "missed or not judged");
    for line in lines {
        let missed = line.missed.iter().map(|it| format!("missed: {it}"));
        let others = line.not_judged.iter().map(|it| format!("not judged: {it}"));
        let sentences: Vec<String> = missed.chain(others).collect();
        let met = format!("{} of {}", line.met, line.criteria);
        text += &row(line.figure, &met, sentences.first().map_or("", String::as_str));
        sentences.iter().skip(1).for_each(|sentence| text += &row("", "", sentence));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Taken;

    #[test]
    fn every_missed_criterion_has_a_sentence() {
        let busy = Taken { wall: 2.0, cpu: 1.0 };
        let lines = [
            Line::of("one", &[Criterion::new("A", 1, true)]),
            Line::of(
                "two",
                &[
                    Criterion::new("A", 1, true),
                    Criterion::new("B", "2 of 3", false).because("C is slow"),
                    Criterion::new("D", "4 s", false).of_wall_time(busy),
                ],
            ),
        ];
        assert_eq!(lines[0].verdict(), "1 of 1 criteria met");
        assert_eq!(lines[1].verdict(), "1 of 3 criteria met, 1 missed, 1 not judged");
        assert_eq!([&lines[0], &lines[1]].map(Line::is_clean), [true, false]);
        let text = table(&lines);
        let rows: Vec<String> =
            text.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(rows[0], "figure met missed or not judged");
        assert_eq!(rows[1], "one 1 of 1");
        assert_eq!(rows[2], "two 1 of 3 missed: B: 2 of 3 (C is slow)");
        assert_eq!(rows[3], "not judged: D: 4 s (the machine was busy: 2.000 s took 1.000 s of CPU time)");
    }
}
