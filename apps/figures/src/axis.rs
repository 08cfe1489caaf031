//! An axis of a chart: its range, and its ticks.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity, with its unit.
    pub title: String,
    /// Its scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear; the range includes 0.
    Linear,
    /// Logarithmic; numbers that are not positive are left out.
    Log,
}

impl Axis {
    /// A linear axis whose range includes 0.
    pub fn linear(title: impl Into<String>) -> Self {
        Axis { title: title.into(), scale: Scale::Linear }
    }

    /// A logarithmic axis.
    pub fn log(title: impl Into<String>) -> Self {
        Axis { title: title.into(), scale: Scale::Log }
    }
}

/// The range of an axis, as a coordinate type of plotters.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    scale: Scale,
    range: Range<f64>,
}

impl Span {
    /// The range of these numbers, with a margin.
    pub(crate) fn of(scale: Scale, numbers: impl Iterator<Item = f64>) -> Self {
        let shown = numbers.filter(|number| number.is_finite() && (scale == Scale::Linear || *number > 0.0));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| {
            (low.min(number), high.max(number))
        });
        let range = match scale {
            _ if low > high => 1.0..10.0,
            Scale::Linear => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                let room = if high > low { 0.05 * (high - low) } else { 1.0 };
                (if low < 0.0 { low - room } else { 0.0 })..high + room
            }
            Scale::Log => low / 1.3..high * 1.3,
        };
        Span { scale, range }
    }

    /// Whether the number is in the range.
    pub(crate) fn shows(&self, number: f64) -> bool {
        (self.range.start..=self.range.end).contains(&number)
    }

    /// The relative position of the number, from 0 to 1.
    pub(crate) fn part(&self, number: f64) -> f64 {
        let Range { start, end } = self.range;
        match self.scale {
            Scale::Linear => (number - start) / (end - start),
            Scale::Log => (number / start).ln() / (end / start).ln(),
        }
    }

    /// At most `most` round numbers, evenly spread.
    fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(2) as f64;
        let Range { start, end } = self.range;
        // Ticks at powers of 2. Ticks at powers of 10 if the range has many powers of 2, or begins at 0.5 or below.
        let base: f64 = if start > 0.5 && (end / start).log2() <= 14.0 { 2.0 } else { 10.0 };
        let (step, place): (f64, &dyn Fn(f64) -> f64) = match self.scale {
            Scale::Linear => {
                let least = (end - start) / most;
                let power = 10f64.powf(least.log10().floor());
                let round = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power);
                (round.into_iter().find(|&step| step >= least).unwrap_or(10.0 * power), &|tick| tick)
            }
            Scale::Log => (((end / start).log(base) / most).ceil().max(1.0), &|tick| base.powf(tick)),
        };
        let inverse = |number: f64| match self.scale {
            Scale::Linear => number,
            Scale::Log => number.log(base),
        };
        let (first, last) = ((inverse(start) / step).ceil() as i64, (inverse(end) / step).floor() as i64);
        (first..=last).map(|tick| place(tick as f64 * step)).collect()
    }
}

impl Ranged for Span {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.part(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        self.ticks(hint.max_num_points().min(10))
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Span {
    fn format(value: &f64) -> String {
        // Rounded, so that sums of binary fractions are shown as short decimal fractions.
        ((value * 1e9).round() / 1e9).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scale: Scale, numbers: &[f64], expected: &[f64]) {
        let span = Span::of(scale, numbers.iter().copied());
        let ticks = span.ticks(8);
        assert_eq!(ticks, expected, "{:?}", span.range);
        assert!(ticks.iter().all(|&tick| span.shows(tick)));
    }

    #[test]
    fn ticks_are_round_numbers() {
        check(Scale::Linear, &[3.0, 10.0], &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        check(Scale::Linear, &[960.0], &[0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        check(Scale::Linear, &[-1.0, 1.0], &[-1.0, -0.5, 0.0, 0.5, 1.0]);
        check(Scale::Linear, &[0.0], &[0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        check(Scale::Log, &[16.0, 4096.0], &[16.0, 64.0, 256.0, 1024.0, 4096.0]);
        check(Scale::Log, &[0.01, 1000.0, -5.0], &[0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]);
        check(Scale::Log, &[], &[1.0, 2.0, 4.0, 8.0]);
    }

    #[test]
    fn numbers_are_mapped_evenly_or_by_their_logarithms() {
        let linear = Span { scale: Scale::Linear, range: 0.0..10.0 };
        assert_eq!([0.0, 5.0, 10.0].map(|number| linear.map(&number, (100, 0))), [100, 50, 0]);
        let log = Span { scale: Scale::Log, range: 1.0..100.0 };
        assert_eq!([1.0, 10.0, 100.0].map(|number| log.map(&number, (0, 60))), [0, 30, 60]);
        assert_eq!(Span::format(&0.6000000000000001), "0.6");
    }
}
