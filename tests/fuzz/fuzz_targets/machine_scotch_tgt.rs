//! Fuzz target of the reader `machine_scotch_tgt`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("machine_scotch_tgt", input));
