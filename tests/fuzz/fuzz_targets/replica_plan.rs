//! Fuzz target of the reader `replica_plan`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("replica_plan", input));
