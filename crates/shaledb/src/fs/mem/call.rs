//! The kinds of calls to the disk.

/// A kind of call to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// Opening a file for reading or appending.
    Open,
    /// Reading.
    Read,
    /// Asking for a length, an existence or a space.
    Stat,
    /// Listing a directory.
    List,
    /// Taking a lock.
    Lock,
    /// Creating or emptying a file.
    Create,
    /// Appending.
    Append,
    /// Making a file durable.
    Sync,
    /// Cutting a file back.
    Truncate,
    /// Renaming.
    Rename,
    /// Removing a file.
    Remove,
    /// Removing a directory.
    RemoveDir,
    /// Giving a file a second name.
    Link,
    /// Creating directories.
    CreateDir,
    /// Making names durable.
    SyncDir,
}
