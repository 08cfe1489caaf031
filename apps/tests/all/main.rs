//! The results of the sample programs are the same in every configuration, and their flags are parsed.

mod amr;
mod common;
mod decisions;
mod flags;
mod kneighbor;
mod leanmd;
mod pic;
mod stencil;
mod traces;
