//! See `shaledb::fuzz::table_roundtrip`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb::fuzz::table_roundtrip(data));
