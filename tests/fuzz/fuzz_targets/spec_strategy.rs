//! Fuzz target of the reader `spec_strategy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("spec_strategy", input));
