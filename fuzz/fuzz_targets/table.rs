//! See `shale::fuzz::table`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shale::fuzz::table(data));
