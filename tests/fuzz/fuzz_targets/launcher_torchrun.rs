//! Fuzz target of the reader `launcher_torchrun`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("launcher_torchrun", input));
