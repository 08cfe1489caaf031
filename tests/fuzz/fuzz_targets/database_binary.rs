//! Fuzz target of the reader `database_binary`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("database_binary", input));
