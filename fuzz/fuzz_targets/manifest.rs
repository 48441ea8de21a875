//! See `shale::fuzz::manifest`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shale::fuzz::manifest(data));
