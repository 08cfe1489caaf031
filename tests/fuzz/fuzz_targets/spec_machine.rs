//! Fuzz target of the reader `spec_machine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("spec_machine", input));
