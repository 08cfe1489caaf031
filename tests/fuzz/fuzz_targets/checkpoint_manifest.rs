//! Fuzz target of the reader `checkpoint_manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("checkpoint_manifest", input));
