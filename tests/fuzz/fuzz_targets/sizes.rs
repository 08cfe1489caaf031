//! Fuzz target of the reader `sizes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("sizes", input));
