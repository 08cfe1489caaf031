//! Fuzz target of the reader `launcher_slurm`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("launcher_slurm", input));
