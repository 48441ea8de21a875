//! Without the feature `fault` no call fails but for the reasons of a real disk.

use super::call::Call;
use super::disk::Disk;
use crate::base::error::Result;
use std::ops::Range;
use std::path::Path;

/// As the type of this name in `fault`, without faults.
#[derive(Default)]
pub(super) struct Faults;

impl Faults {
    pub(super) fn enter(&self, _: &Disk, _: Call, _: &Path, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    pub(super) fn check_read(&self, _: &Path, _: Range<u64>) -> Result<()> {
        Ok(())
    }

    pub(super) fn refuses(&self, _: &Path) -> bool {
        false
    }

    pub(super) fn take_short(&self, _: usize) -> Option<usize> {
        None
    }

    pub(super) fn take_unreported(&self) -> bool {
        false
    }

    pub(super) fn crashed(&self) -> bool {
        false
    }

    pub(super) fn pause(&self) -> Option<fn(Call, &Path)> {
        None
    }
}
