//! Fuzz target of the reader `machine_slurm_conf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("machine_slurm_conf", input));
