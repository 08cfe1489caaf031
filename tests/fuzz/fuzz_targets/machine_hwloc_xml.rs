//! Fuzz target of the reader `machine_hwloc_xml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("machine_hwloc_xml", input));
