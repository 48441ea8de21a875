//! What the manifest knows of prepared transactions: of those whose writes are in tables.

use super::tree_id::TreeId;
use crate::table::meta::TableMeta;
use serde::Serialize;

/// The tables of a transaction that is prepared and not decided: they are in no tree yet. Their
/// entries have no sequence numbers.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// let options = shaledb::TransactionOptions { memory_bytes: 100, ..Default::default() };
/// let mut txn = db.begin(options)?;
/// for n in 0..10u32 {
///     txn.put(&tree, &n.to_be_bytes(), b"more than fits")?;
/// }
/// txn.prepare(b"order 17")?;
/// # let files = shaledb::inspect::directory_in(&env, "/db".as_ref())?.files;
/// # let names = files.iter().map(|file| &file.name);
/// # let name = names.filter(|name| name.starts_with("MANIFEST")).next().unwrap();
/// # let path = std::path::Path::new("/db").join(name);
/// # use shaledb::inspect::{Inspection, ManifestLine, open_in};
/// # let Inspection::Manifest(lines) = open_in(&env, &path)? else { panic!() };
/// # let edits: Vec<_> = lines
/// #     .filter_map(|line| match line {
/// #         Ok(ManifestLine::Edit { edit, .. }) => Some(edit),
/// #         _ => None,
/// #     })
/// #     .collect();
/// let prepared = edits.iter().flat_map(|edit| &edit.prepared).next().unwrap();
/// assert_eq!(prepared.xid, b"order 17");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PreparedTables {
    /// The transaction's name.
    pub xid: Vec<u8>,
    /// What is to be added to each tree.
    pub trees: Vec<(TreeId, Vec<TableMeta>)>,
}
