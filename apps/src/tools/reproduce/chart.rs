//! What is drawn of a figure, as SVG.

use plotters::chart::SeriesLabelPosition;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use serde::Serialize;

use super::axis::{Axis, Span};

/// Pixels: wide enough for a column of text, high enough for a legend beside the lines.
const SIZE: (u32, u32) = (800, 560);

/// Colors that people tell apart who do not see all of them (Okabe and Ito 2008).
/// After the last, the first comes again.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
];

/// The color of theory.
const GREY: RGBColor = RGBColor(130, 130, 130);

/// Lines over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn, in the order of the legend.
    pub series: Vec<Series>,
}

/// Points that belong together.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Where its numbers come from.
    pub source: Source,
    /// Its points, by ascending x.
    pub points: Vec<(f64, f64)>,
}

/// Where numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// This program: a line with its points.
    Measured,
    /// A formula: a broken grey line.
    Theory,
    /// Print: points alone.
    Paper,
}

impl Series {
    /// Points that were measured.
    pub fn measured(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series { name: name.into(), source: Source::Measured, points: points.into_iter().collect() }
    }

    /// Points that a formula gives.
    pub fn theory(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series { source: Source::Theory, ..Series::measured(name, points) }
    }

    /// Points that the paper prints.
    pub fn paper(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Series { source: Source::Paper, ..Series::measured(name, points) }
    }
}

impl Chart {
    /// The text of an SVG file under that caption.
    ///
    /// # Errors
    /// When plotters cannot draw it.
    pub fn svg(&self, caption: &str) -> anyhow::Result<String> {
        let mut text = String::new();
        self.draw(caption, SVGBackend::with_string(&mut text, SIZE).into_drawing_area())?;
        Ok(text)
    }

    fn draw<'a, B>(
        &'a self,
        caption: &str,
        area: DrawingArea<B, plotters::coord::Shift>,
    ) -> anyhow::Result<()>
    where
        B: DrawingBackend + 'a,
        B::ErrorType: 'static,
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
            };
            match series.source {
                Source::Measured => _ = chart.draw_series([PathElement::new(points.clone(), line)])?,
                Source::Theory => {
                    _ = chart.draw_series([DashedPathElement::new(points.clone(), 6, 4, line)])?;
                }
                Source::Paper => {}
            }
            let dots = points.iter().filter(|_| radius > 0).map(|&point| Circle::new(point, radius, dot));
            chart.draw_series(dots)?.label(&series.name).legend(move |(x, y)| {
                let end = match series.source {
                    Source::Measured => x + 24,
                    Source::Theory => x + 8,
                    Source::Paper => x,
                };
                EmptyElement::at((x, y))
                    + PathElement::new(vec![(0, 0), (end - x, 0)], line)
                    + Circle::new((12, 0), radius, dot)
            });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 13))
            .draw()?;
        area.present()?;
        Ok(())
    }
}
