//! Fuzz target of the reader `spec_network`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("spec_network", input));
