//! Following a database that another process writes.

use super::handle::{Db, Handle};
use crate::base::config::Config;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::{Arc, Mutex};
use crate::db::background::Threads;
use crate::db::lifecycle;
use crate::fs::Env;
use std::path::Path;

impl Db {
    /// Opens a database for reading that another process may have open for writing. What is seen
    /// is the state at one position in the commit order, and stays so until [`Db::refresh`]: whole
    /// commits, in their order, without what is only prepared. Nothing on disk is changed, and no
    /// lock is taken: the writer does not notice.
    ///
    /// A follower sees what the writer has handed to the system, which may not be durable yet: a
    /// crash of the machine may take commits that were seen. It must run on the writer's machine:
    /// on a network file system it may take what it reads for damage. It holds every table and blob
    /// file open, also those that the writer removes meanwhile: their space is free after the next
    /// refresh, and the limit of open files must be above their number. What the log holds and
    /// tables do not is in memory, as the writer has it.
    ///
    /// # Errors
    /// As [`Db::open_read_only`], but for [`Error::Locked`].
    ///
    /// ```
    /// use shaledb::{Config, Db};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("people.db");
    /// let db = Db::open(&path, Config::default())?; // in another process, most of the time
    /// let people = db.tree_or_create("people")?;
    /// people.put(b"ada", b"1815")?;
    ///
    /// let follower = Db::open_follower(&path, Config::default())?;
    /// let followed = follower.tree("people")?;
    /// assert_eq!(followed.get(b"ada")?.unwrap(), b"1815");
    /// people.put(b"grace", b"1906")?;
    /// assert!(!followed.contains(b"grace")?);
    /// follower.refresh()?;
    /// assert!(followed.contains(b"grace")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn open_follower(path: impl AsRef<Path>, config: Config) -> Result<Db> {
        Db::open_follower_in(path, config, Env::os())
    }

    /// As [`Db::open_follower`], in a world of the caller's choice: the writer's.
    ///
    /// # Errors
    /// As [`Db::open_follower`].
    ///
    /// ```
    /// use shaledb::{Config, Db, Env, OpenOptions};
    ///
    /// let env = Env::memory();
    /// let options = OpenOptions { env: env.clone(), ..OpenOptions::default() };
    /// let db = Db::open_in("/db", Config::default(), options)?;
    /// db.tree_or_create("t")?.put(b"a", b"1")?;
    /// let follower = Db::open_follower_in("/db", Config::default(), env)?;
    /// assert!(follower.tree("t")?.contains(b"a")?);
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn open_follower_in(path: impl AsRef<Path>, config: Config, env: Env) -> Result<Db> {
        let (core, follower) = lifecycle::open_follower(path.as_ref(), &config, env)?;
        let threads = Mutex::new(Threads::none());
        Ok(Db { handle: Arc::new(Handle { core, threads, follower: Some(follower) }) })
    }

    /// Moves a follower on to what the writer has committed by now; answers with the
    /// sequence number that it shows, as [`Snapshot::seq`](crate::Snapshot::seq). Snapshots, scans
    /// and plain reads of transactions go on reading what they have seen. Those at
    /// [`Isolation::ReadCommitted`](crate::Isolation::ReadCommitted) move on, and so do locking
    /// reads but for [`Isolation::Serializable`](crate::Isolation::Serializable). Its cost is that
    /// of what has been written since.
    ///
    /// The number goes back in two cases. The writer met a full disk in the middle of a group of
    /// commits, which all failed, and the follower had seen some of them. Or a refresh has failed,
    /// and the newest commit was a bulk load that has been compacted since: what it brought is
    /// there, and its number is not found again.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if this is no follower; else as [`Db::open_follower`]. Then reads
    /// go on seeing what they saw, and a later refresh may succeed.
    ///
    /// ```
    /// # use shaledb::{Config, Db, Env, OpenOptions};
    /// # let env = Env::memory();
    /// # let options = OpenOptions { env: env.clone(), ..OpenOptions::default() };
    /// # let db = Db::open_in("/db", Config::default(), options)?;
    /// # let tree = db.tree_or_create("t")?;
    /// # tree.put(b"a", b"1")?;
    /// let follower = Db::open_follower_in("/db", Config::default(), env)?;
    /// let before = follower.refresh()?;
    /// tree.put(b"a", b"2")?;
    /// assert!(follower.refresh()? > before);
    /// assert_eq!(follower.tree("t")?.get(b"a")?.unwrap(), b"2");
    /// # Ok::<(), shaledb::Error>(())
    /// ```
    pub fn refresh(&self) -> Result<SeqNo> {
        let core = self.core();
        core.check_open()?;
        match &self.handle.follower {
            Some(follower) => follower.refresh(core),
            None => Err(Error::InvalidArgument(
                "only a follower can be refreshed; open the database by `Db::open_follower`"
                    .to_owned(),
            )),
        }
    }
}
