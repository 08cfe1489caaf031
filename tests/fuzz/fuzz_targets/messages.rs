//! Fuzz target of the reader `messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("messages", input));
