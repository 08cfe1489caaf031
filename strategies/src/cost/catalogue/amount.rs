//! The value of a cost: a plain number in documents, and a number with its unit in tables.

use std::fmt;

use equipoise_model::table::{bytes, percent, seconds};
use serde::Serialize;

/// The value of a cost: a plain number in documents, and a number with its unit in tables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Amount {
    /// A time.
    Seconds(f64),
    /// max/avg - 1, displayed as max/avg.
    Imbalance(f64),
    /// A number of things.
    Count(u128),
    /// A volume.
    Bytes(u64),
    /// A mean volume.
    MeanBytes(f64),
    /// A ratio.
    Ratio(f64),
    /// The relative excess over a lower bound; infinite above a bound of 0.
    Excess(f64),
    /// Not recorded, or too expensive to compute.
    Unknown,
}

impl Amount {
    /// The relative excess of `value` over a lower bound.
    pub(super) fn above(value: f64, bound: f64) -> Self {
        Amount::Excess(if value <= bound { 0.0 } else { value / bound - 1.0 })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Amount::Seconds(time) => f.write_str(&seconds(time)),
            Amount::Imbalance(imbalance) => write!(f, "{:.3}", imbalance + 1.0),
            Amount::Count(count) => write!(f, "{count}"),
            Amount::Bytes(volume) => f.write_str(&bytes(volume)),
            Amount::MeanBytes(mean) => f.write_str(&bytes(mean.round() as u64)),
            Amount::Ratio(ratio) => write!(f, "{ratio:.3}"),
            Amount::Excess(part) if part < 9.0 => f.write_str(&percent(part)),
            // Large excesses are shown as a multiple of the bound.
            Amount::Excess(part) if part < 1e6 - 1.0 => write!(f, "{:.0} x", part + 1.0),
            // The bound is 0 or almost 0.
            Amount::Excess(_) => f.write_str("-"),
            Amount::Unknown => f.write_str("unknown"),
        }
    }
}
