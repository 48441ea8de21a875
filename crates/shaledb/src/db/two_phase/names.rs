//! The names of prepared transactions.

use crate::base::error::{Error, Result};
use crate::db::core::Core;
use crate::wal::payload::XID_BYTES_MAX;

/// The error for a name under which nothing is prepared.
pub(super) fn not_prepared(xid: &[u8]) -> Error {
    Error::InvalidArgument(format!(
        "no transaction is prepared under the name `{}`; it may have been decided already",
        xid.escape_ascii()
    ))
}

impl Core {
    /// Refuses a name that cannot be prepared under.
    pub fn check_xid(&self, xid: &[u8]) -> Result<()> {
        if xid.is_empty() || xid.len() > XID_BYTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "the name of a prepared transaction must have 1 to {XID_BYTES_MAX} bytes, not {}",
                xid.len()
            )));
        }
        if self.prepared.lock().contains_key(xid) {
            return Err(Error::InvalidArgument(format!(
                "a transaction is prepared under the name `{}` already; decide it first",
                xid.escape_ascii()
            )));
        }
        Ok(())
    }
}
