//! The chart of a figure, as SVG.

use equipoise_apps::Failure;
use plotters::chart::SeriesLabelPosition;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use serde::Serialize;

use crate::axis::{Axis, Span};

/// Pixels: wide enough for a column of text, high enough for lines and a legend.
const SIZE: (u32, u32) = (800, 560);

/// Colors for readers with color vision deficiency (Okabe and Ito 2008), used cyclically.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
];

/// The color of theoretical curves.
const GREY: RGBColor = RGBColor(130, 130, 130);

/// Lines over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

/// A series of points.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The source of its numbers.
    pub source: Source,
    /// Its points, by ascending x.
    pub points: Vec<(f64, f64)>,
}

/// The source of the numbers of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// This program: a line with its points.
    Measured,
    /// A formula: a dashed grey line.
    Theory,
    /// The paper: points without a line.
    Paper,
    /// This program: many small points.
    Dots,
}

impl Series {
    /// Measured points, connected by a line.
    pub fn measured(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series { name: name.into(), source: Source::Measured, points: points.into_iter().collect() }
    }

    /// Measured points without an order.
    pub fn dots(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series { source: Source::Dots, ..Series::measured(name, points) }
    }

    /// Points of a formula.
    pub fn theory(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series { source: Source::Theory, ..Series::measured(name, points) }
    }

    /// Points printed in the paper.
    pub fn paper(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series { source: Source::Paper, ..Series::measured(name, points) }
    }
}

impl Chart {
    /// The text of an SVG file with this caption.
    ///
    /// # Errors
    /// If plotters fails.
    pub fn svg(&self, caption: &str) -> Result<String, Failure> {
        let mut text = String::new();
        let drawn = self.draw(caption, SVGBackend::with_string(&mut text, SIZE).into_drawing_area());
        drawn.map_err(Failure::bug)?;
        Ok(text)
    }

    fn draw<'a, B>(
        &'a self,
        caption: &str,
        area: DrawingArea<B, plotters::coord::Shift>,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>>
    where
        B: DrawingBackend + 'a,
    {
        let points = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let x = Span::of(self.x.scale, points().map(|(x, _)| x));
        let y = Span::of(self.y.scale, points().map(|(_, y)| y));
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(caption, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .x_desc(&self.x.title)
            .y_desc(&self.y.title)
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 15))
            .draw()?;
        let mut colors = COLORS.into_iter().cycle();
        for series in &self.series {
            let color = match series.source {
                Source::Theory => GREY,
                _ => colors.next().unwrap_or(GREY),
            };
            let shown = |&&(at_x, at_y): &&(f64, f64)| x.shows(at_x) && y.shows(at_y);
            let points: Vec<(f64, f64)> = series.points.iter().filter(shown).copied().collect();
            let line = color.stroke_width(2);
            let (radius, dot) = match series.source {
                Source::Measured => (3, color.filled()),
                Source::Theory => (0, color.filled()),
                Source::Paper => (5, line),
                Source::Dots => (1, color.filled()),
            };
            match series.source {
                Source::Measured => _ = chart.draw_series([PathElement::new(points.clone(), line)])?,
                Source::Theory => {
                    _ = chart.draw_series([DashedPathElement::new(points.clone(), 6, 4, line)])?;
                }
                Source::Paper | Source::Dots => {}
            }
            let dots = points.iter().filter(|_| radius > 0).map(|&point| Circle::new(point, radius, dot));
            chart.draw_series(dots)?.label(&series.name).legend(move |(x, y)| {
                let end = match series.source {
                    Source::Measured => x + 24,
                    Source::Theory => x + 8,
                    Source::Paper | Source::Dots => x,
                };
                EmptyElement::at((x, y))
                    + PathElement::new(vec![(0, 0), (end - x, 0)], line)
                    + Circle::new((12, 0), radius, dot)
            });
        }
        chart
            .configure_series_labels()
            .position(self.legend(&x, &y))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 13))
            .draw()?;
        area.present()
    }

    /// The position where the legend hides the fewest points of the lines.
    fn legend(&self, x: &Span, y: &Span) -> SeriesLabelPosition {
        // The approximate size of its text, relative to the chart.
        let letters = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        let width = ((60 + 7 * letters) as f64 / f64::from(SIZE.0 - 90)).min(1.0);
        let height = ((12 + 17 * self.series.len()) as f64 / f64::from(SIZE.1 - 94)).min(1.0);
        let hidden = |left: f64, bottom: f64| {
            let inside = |&(x, y): &(f64, f64)| {
                (left..=left + width).contains(&x) && (bottom..=bottom + height).contains(&y)
            };
            self.series
                .iter()
                .map(|series| trace(series, x, y).iter().filter(|at| inside(at)).count())
                .sum::<usize>()
        };
        let (right, middle) = (1.0 - width, 0.5 - width / 2.0);
        let (upper, center) = (1.0 - height, 0.5 - height / 2.0);
        let places = [
            (SeriesLabelPosition::UpperLeft, 0.0, upper),
            (SeriesLabelPosition::UpperRight, right, upper),
            (SeriesLabelPosition::LowerRight, right, 0.0),
            (SeriesLabelPosition::LowerLeft, 0.0, 0.0),
            (SeriesLabelPosition::UpperMiddle, middle, upper),
            (SeriesLabelPosition::LowerMiddle, middle, 0.0),
            (SeriesLabelPosition::MiddleLeft, 0.0, center),
            (SeriesLabelPosition::MiddleRight, right, center),
            (SeriesLabelPosition::MiddleMiddle, middle, center),
        ];
        let least = places.into_iter().min_by_key(|&(_, left, bottom)| hidden(left, bottom));
        least.map_or(SeriesLabelPosition::UpperLeft, |(position, ..)| position)
    }
}

/// Points along the line of a series, relative to the axes.
fn trace(series: &Series, x: &Span, y: &Span) -> Vec<(f64, f64)> {
    const STEPS: u32 = 16;
    let points: Vec<(f64, f64)> =
        series.points.iter().map(|&(at_x, at_y)| (x.part(at_x), y.part(at_y))).collect();
    let between = |ends: &[(f64, f64)]| {
        let (from, to) = (ends[0], ends[1]);
        let at = move |step: u32| {
            let part = f64::from(step) / f64::from(STEPS);
            (from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1))
        };
        (0..STEPS).map(at)
    };
    let last = points.last().copied();
    points.windows(2).flat_map(between).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(points: &[(f64, f64)], legend: fn(&SeriesLabelPosition) -> bool) {
        let series = vec![Series::measured("a line", points.iter().copied())];
        let chart = Chart { x: Axis::linear("x"), y: Axis::linear("y"), series };
        let x = Span::of(chart.x.scale, points.iter().map(|point| point.0));
        let y = Span::of(chart.y.scale, points.iter().map(|point| point.1));
        assert!(legend(&chart.legend(&x, &y)), "{points:?}");
    }

    #[test]
    fn the_legend_hides_no_line() {
        check(&[(0.0, 0.0), (10.0, 10.0)], |at| matches!(at, SeriesLabelPosition::UpperLeft));
        check(&[(0.0, 10.0), (10.0, 0.0)], |at| matches!(at, SeriesLabelPosition::UpperRight));
        check(&[(0.0, 10.0), (10.0, 10.0)], |at| matches!(at, SeriesLabelPosition::LowerRight));
        let corner = [(0.0, 10.0), (10.0, 10.0), (10.0, 0.0)];
        check(&corner, |at| matches!(at, SeriesLabelPosition::LowerLeft));
        check(&[], |at| matches!(at, SeriesLabelPosition::UpperLeft));
    }

    #[test]
    fn a_logarithmic_axis_omits_numbers_that_are_not_positive() {
        let series = vec![Series::measured("a & b", [(1.0, 0.0), (10.0, 5.0)]), Series::theory("none", [])];
        let chart = Chart { x: Axis::log("x"), y: Axis::log("y"), series };
        let svg = chart.svg("a < b").expect("a chart");
        // One dot for the visible point; two in the legend, one of them with radius 0.
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("a &amp; b"), "{svg}");
    }
}
