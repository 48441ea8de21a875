//! See `shale::fuzz::block`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shale::fuzz::block(data));
