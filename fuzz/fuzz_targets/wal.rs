//! See `shaledb::fuzz::wal`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shaledb::fuzz::wal(data));
