//! See `shale::fuzz::wal`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shale::fuzz::wal(data));
