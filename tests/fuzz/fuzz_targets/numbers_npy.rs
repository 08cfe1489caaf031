//! Fuzz target of the reader `numbers_npy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("numbers_npy", input));
