#![no_main]

use letterhead_fuzz::{fuzz, targets};

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz(&targets::json::TARGET, data));
