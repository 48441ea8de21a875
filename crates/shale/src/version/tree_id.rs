//! Which tree.

/// The number of a tree in a database; never used twice.
///
/// ```
/// # let options = shale::OpenOptions { env: shale::Env::memory(), ..Default::default() };
/// # let db = shale::Db::open_in("/db", shale::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// let id: shale::TreeId = tree.id();
/// assert!(id > 0);
/// # Ok::<(), shale::Error>(())
/// ```
pub type TreeId = u32;
