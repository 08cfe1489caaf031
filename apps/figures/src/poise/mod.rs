//! Figures of `PoiseLB`: trade-offs over gamma, whole programs, and ablations.

pub(crate) mod ablation;
pub(crate) mod apps;
pub(crate) mod data;
pub(crate) mod gamma;
