//! See `shaledb_cli::fuzz::rows`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb_cli::fuzz::rows(data));
