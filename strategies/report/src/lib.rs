//! Reports that people look at: one HTML file about placements and runs, and timelines of recorded runs for Perfetto.

pub mod perfetto;
