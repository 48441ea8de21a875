//! What the checks have in common.

use crate::setup::Setup;

pub(super) const TREES: [&str; 3] = ["first", "second", "third"];

/// Settings under which a store is small and yet flushes.
pub fn setup() -> Setup {
    Setup { memory: 64 << 20, memtable: 1 << 20, ..Setup::default() }
}
