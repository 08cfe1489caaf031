//! Fuzz target of the reader `trace_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("trace_json", input));
