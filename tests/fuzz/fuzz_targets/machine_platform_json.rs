//! Fuzz target of the reader `machine_platform_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("machine_platform_json", input));
