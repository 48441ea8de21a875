//! Followers: reading a database that another process writes, as of moments of the reader's choice.
//!
//! A follower takes no lock and changes nothing. It holds the files of its tables and blobs open,
//! so that it can read them after the writer has removed them. What it shows, a [`View`], is the
//! state of the database at one place of the commit order:
//!
//! 1. The manifest is read, and the tables that it names are opened. One that is gone has been
//!    replaced by a newer edit: so again.
//! 2. The log is read on to its end, into a memtable for each tree.
//! 3. The manifest is looked at again. If there is a new edit, the log that was read may be ahead
//!    of the tables (a bulk load is in the manifest only) or trees may be unknown: so again, from
//!    where this has come to. Else no edit was made while the log was read to its end: together
//!    they are what the writer had then.
//!
//! What is in tables by now leaves the memtables. It must: a bulk load, which is in no log, goes
//! below newer memtables only.
//!
//! See docs/decisions/0010-followers.md.

use super::Db;
use super::Handle;
use super::core::{Core, Trees};
use super::following::{Following, Step};
use super::open::build;
use super::threads::Threads;
use crate::base::config::Config;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::atomic::Ordering;
use crate::base::sync::{Arc, Mutex};
use crate::fs::guard::Guard;
use crate::fs::{Env, os};
use crate::state::TreeState;
use crate::table::Table;
use crate::table::meta::FileId;
use crate::version::TreeId;
use crate::version::manifest::{CURRENT, Recovered};
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::path::Path;

/// How often a refresh begins again because the writer has changed the manifest meanwhile.
const TRIES: usize = 1000;

/// All trees at one place of the commit order.
pub(crate) struct View {
    pub seq: SeqNo,
    states: BTreeMap<TreeId, Arc<TreeState>>,
}

impl View {
    /// What the tree was then, if it was there.
    pub fn state(&self, tree: TreeId) -> Option<Arc<TreeState>> {
        self.states.get(&tree).cloned()
    }
}

/// What makes a database one that follows.
pub(crate) struct Follower {
    view: ArcSwap<View>,
    /// `None` after a failure: the next refresh reads everything anew.
    following: Mutex<Option<Following>>,
    /// Whether it stays at the moment of the open: one opened for reading only, without its lock.
    fixed: bool,
}

impl Db {
    /// Opens a database for reading that another process may have open for writing. What is seen
    /// is the state at one place of the commit order, and stays so until [`Db::refresh`]: whole
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
    /// use shale::{Config, Db};
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
    /// # Ok::<(), shale::Error>(())
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
    /// use shale::{Config, Db, Env, OpenOptions};
    ///
    /// let env = Env::memory();
    /// let options = OpenOptions { env: env.clone(), ..OpenOptions::default() };
    /// let db = Db::open_in("/db", Config::default(), options)?;
    /// db.tree_or_create("t")?.put(b"a", b"1")?;
    /// let follower = Db::open_follower_in("/db", Config::default(), env)?;
    /// assert!(follower.tree("t")?.contains(b"a")?);
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn open_follower_in(path: impl AsRef<Path>, config: Config, env: Env) -> Result<Db> {
        let core = open(path.as_ref(), &config, env, false)?;
        let threads = Mutex::new(Threads::none());
        Ok(Db { handle: Arc::new(Handle { core, threads }) })
    }

    /// Moves a follower on to what the writer has committed by now; answers with the place in the
    /// commit order that it shows, as [`Snapshot::seq`](crate::Snapshot::seq). Snapshots and scans
    /// go on reading what they have seen. Its cost is that of what has been written since.
    ///
    /// The place goes back in one case: the writer met a full disk in the middle of a group of
    /// commits, which all failed, and the follower had seen some of them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if this is no follower; else as [`Db::open_follower`]. Then reads
    /// go on seeing what they saw, and a later refresh may succeed.
    ///
    /// ```
    /// # use shale::{Config, Db, Env, OpenOptions};
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
    /// # Ok::<(), shale::Error>(())
    /// ```
    pub fn refresh(&self) -> Result<SeqNo> {
        let core = self.core();
        core.check_open()?;
        match &core.follower {
            Some(follower) if !follower.fixed => follower.refresh(core),
            _ => Err(Error::InvalidArgument(
                "only a database that was opened as a follower can be refreshed".to_owned(),
            )),
        }
    }
}

/// Opens a database without its lock. `fixed` is for reading at this one moment.
pub(super) fn open(dir: &Path, config: &Config, env: Env, fixed: bool) -> Result<Arc<Core>> {
    config.validate()?;
    super::checkpoint::refuse_unfinished(dir)?;
    if !env.fs.exists(&dir.join(CURRENT))? {
        return Err(Error::NoDatabase(dir.to_owned()));
    }
    let settings =
        super::core::Settings::resolve(config, os::memory_bytes(), super::threads::cores());
    let guard = Arc::new(Guard::new(dir));
    let mut core = build(env, dir, settings, &Recovered::default(), guard);
    core.read_only = true;
    let view = ArcSwap::from_pointee(View { seq: 0, states: BTreeMap::new() });
    core.follower = Some(Follower { view, following: Mutex::new(None), fixed });
    let core = Arc::new(core);
    core.snapshots.belong_to(&core);
    if let Some(follower) = &core.follower {
        follower.refresh(&core)?;
        follower.adopt(&core)?;
    }
    Ok(core)
}

impl Follower {
    /// What is seen now.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    fn refresh(&self, core: &Core) -> Result<SeqNo> {
        self.read_on(core).map_err(|error| {
            let Error::Io { op, path, source } = &error else { return error };
            if source.raw_os_error() != Some(libc::EMFILE) {
                return error;
            }
            let what = "too many open files: whoever follows a database, or reads it without its \
                        lock, holds every table and blob of it open; raise the limit (ulimit -n)";
            Error::io(op, path, std::io::Error::other(what))
        })
    }

    fn read_on(&self, core: &Core) -> Result<SeqNo> {
        let mut slot = self.following.lock();
        let mut following = match slot.take() {
            Some(following) => following,
            None => Following::new(core, self.tables())?,
        };
        for _ in 0..TRIES {
            match following.step(core)? {
                Step::Still => {
                    let seq = self.publish(core, &following);
                    *slot = Some(following);
                    return Ok(seq);
                }
                Step::Again => {}
                Step::Undone => following = Following::new(core, following.tables)?,
            }
        }
        *slot = Some(following);
        let what = "its writer has changed the manifest each time that it was read; try it again";
        let cause = std::io::Error::new(std::io::ErrorKind::TimedOut, what);
        Err(Error::io("follow", &core.dir, cause))
    }

    /// The tables that are open now.
    fn tables(&self) -> BTreeMap<FileId, Arc<Table>> {
        let view = self.view.load();
        let tables = view.states.values().flat_map(|state| state.version.tables());
        tables.map(|(_, table)| (table.meta.id, Arc::clone(table))).collect()
    }

    /// Shows readers what has been read.
    fn publish(&self, core: &Core, following: &Following) -> SeqNo {
        let before = self.view.load_full();
        let mut states = BTreeMap::new();
        for (id, tree) in &following.trees {
            states.insert(*id, tree.state(before.states.get(id)));
        }
        let view = Arc::new(View { seq: following.seq, states });
        // The view first: who finds a tree finds what is in it.
        self.view.store(view.clone());
        let known = core.trees.load_full();
        let mut trees = Trees::default();
        for (id, tree) in &following.trees {
            if let Some(state) = view.state(*id) {
                core.swap_state(&tree.core, |_| TreeState::clone(&state));
            }
            trees.by_name.insert(tree.core.name.clone(), tree.core.clone());
            trees.by_id.insert(*id, tree.core.clone());
        }
        for (id, tree) in &known.by_id {
            tree.dropped.store(!trees.by_id.contains_key(id), Ordering::Release);
        }
        core.trees.store(Arc::new(trees));
        core.visible.fetch_max(following.seq, Ordering::AcqRel);
        core.covered.fetch_max(following.manifest.catalog().log.seq, Ordering::AcqRel);
        following.seq
    }

    /// Takes in what is prepared, if this is to be looked at rather than followed.
    fn adopt(&self, core: &Core) -> Result<()> {
        let slot = self.following.lock();
        let Some(following) = slot.as_ref().filter(|_| self.fixed) else { return Ok(()) };
        for (xid, undecided) in &following.prepared.undecided {
            core.adopt_prepared(xid.clone(), undecided.clone(), &*core.env.clock);
        }
        for (xid, trees) in &following.manifest.catalog().prepared {
            core.adopt_prepared_tables(xid.clone(), trees.clone())?;
        }
        Ok(())
    }
}
