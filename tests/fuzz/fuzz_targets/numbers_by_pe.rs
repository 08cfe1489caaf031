//! Fuzz target of the reader `numbers_by_pe`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("numbers_by_pe", input));
