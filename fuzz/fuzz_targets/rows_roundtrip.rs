//! See `shaledb_cli::fuzz::rows_roundtrip`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb_cli::fuzz::rows_roundtrip(data));
