//! How to repair, and how far it has come.

use crate::base::config::Config;
use crate::fs::Env;
use serde::Serialize;

/// How to repair.
///
/// ```
/// use shaledb::repair::RepairOptions;
/// use shaledb::{Config, TreeConfig};
///
/// // If the settings of a tree are lost, it gets those.
/// let tree = TreeConfig { block_bytes: 4096, ..TreeConfig::default() };
/// let config = Config { tree, ..Config::default() };
/// let options = RepairOptions { config, ..RepairOptions::default() };
/// assert!(options.config.validate().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// The settings of the new database; [`Config::tree`] is used for trees whose own settings are
    /// lost.
    pub config: Config,
    /// Disk and clock, of both databases. Default [`Env::os`].
    pub env: Env,
}

impl Default for RepairOptions {
    fn default() -> RepairOptions {
        RepairOptions { config: Config::default(), env: Env::os() }
    }
}

/// What a repair is doing.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.flush()?;
/// # db.close()?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
/// use shaledb::repair::{RepairStep, repair};
///
/// let mut steps = Vec::new();
/// repair(from, to, &options, &mut |at| steps.push(at.step))?;
/// assert_eq!(steps.first(), Some(&RepairStep::Reading));
/// assert_eq!(steps.last(), Some(&RepairStep::Writing));
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairStep {
    /// Reading and checking the damaged database.
    Reading,
    /// Writing rows to the new one.
    Writing,
}

/// How far a repair has come.
///
/// ```
/// # let env = shaledb::Env::memory();
/// # let options = shaledb::OpenOptions { env: env.clone(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # db.tree_or_create("t")?.put(b"a", b"1")?;
/// # db.close()?;
/// # let (from, to) = ("/db".as_ref(), "/saved".as_ref());
/// # let options = shaledb::repair::RepairOptions { env, ..Default::default() };
/// use shaledb::repair::{RepairProgress, repair};
///
/// let mut show = |at: RepairProgress| {
///     println!("{:?} {}: {} of {} bytes", at.step, at.name, at.bytes_done, at.bytes_total);
/// };
/// repair(from, to, &options, &mut show)?;
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct RepairProgress {
    /// What it is doing.
    pub step: RepairStep,
    /// The file read, or the tree written.
    pub name: String,
    /// Bytes of files read so far.
    pub bytes_done: u64,
    /// Bytes of files to be read in all.
    pub bytes_total: u64,
    /// Rows written so far.
    pub rows: u64,
}
