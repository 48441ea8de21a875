//! Which tree.

/// The number of a tree in a database; never used twice.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// let id: shaledb::TreeId = tree.id();
/// assert!(id > 0);
/// # Ok::<(), shaledb::Error>(())
/// ```
pub type TreeId = u32;
