//! Followers: reading a database that another process writes, as of moments of the reader's choice.
//!
//! A follower takes no lock and changes nothing. It holds the files of its tables and blobs open,
//! so that it can read them after the writer has removed them. What it shows, a [`FollowedView`],
//! is the state of the database at one position in the commit order:
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

use super::following::{Following, Step};
use crate::base::config::Config;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::rank;
use crate::base::sync::atomic::Ordering;
use crate::base::sync::{Arc, Mutex};
use crate::db::background::cores;
use crate::db::core::{Core, FollowedView, Settings, Trees};
use crate::fs::guard::{Guard, GuardedFs};
use crate::fs::{Env, os};
use crate::state::TreeState;
use crate::table::Table;
use crate::table::meta::FileId;
use crate::version::manifest::{CURRENT, Recovered};
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::path::Path;

/// How often a refresh begins again because the writer has changed the manifest meanwhile.
const TRIES: usize = 1000;

/// How far the manifest and the log of another process have been read. `None` after a failure: the
/// next refresh reads everything anew.
pub(crate) struct Follower {
    following: Mutex<Option<Following>, { rank::FOLLOWER }>,
    /// What readers see: the database's own.
    shown: Arc<ArcSwap<FollowedView>>,
}

/// Opens a database that another process writes.
pub(crate) fn open_follower(
    given: &Path,
    config: &Config,
    env: Env,
) -> Result<(Arc<Core>, Follower)> {
    config.validate()?;
    super::unfinished::refuse(given)?;
    let dir = env.fs.absolute(given)?;
    if !env.fs.exists(&dir.join(CURRENT))? {
        return Err(Error::NoDatabase(given.to_owned()));
    }
    let settings = Settings::resolve(config, os::memory_bytes(), cores());
    let guard = Arc::new(Guard::new(given));
    let door = GuardedFs::new(env.fs.clone(), &dir, guard.clone());
    let mut core = Core::new((env, door), dir, given, settings, &Recovered::default(), guard);
    core.read_only = true;
    let shown = Arc::new(ArcSwap::from_pointee(FollowedView { seq: 0, states: BTreeMap::new() }));
    core.followed = Some(shown.clone());
    let core = Arc::new(core);
    core.watch_snapshots();
    let follower = Follower { following: Mutex::new(None), shown };
    follower.refresh(&core)?;
    Ok((core, follower))
}

/// Opens a database for reading, as of now, where its lock cannot be had.
pub(super) fn open_without_lock(dir: &Path, config: &Config, env: Env) -> Result<Arc<Core>> {
    let (core, follower) = open_follower(dir, config, env)?;
    follower.adopt(&core)?;
    Ok(core)
}

impl Follower {
    /// Moves on to what the writer has committed by now.
    pub fn refresh(&self, core: &Core) -> Result<SeqNo> {
        self.read_on(core).map_err(|error| {
            let Error::Io { op, path, .. } = &error else { return error };
            if !error.is_of_too_many_files() {
                return error;
            }
            let what = "too many open files: a follower, and a reader without the database's \
                        lock, keeps every table and blob open; raise the limit (ulimit -n)";
            Error::io(op, path, std::io::Error::other(what))
        })
    }

    fn read_on(&self, core: &Core) -> Result<SeqNo> {
        let mut slot = self.following.lock();
        let mut following = match slot.take() {
            Some(following) => following,
            None => Following::new(core, open_tables(&self.shown.load()))?,
        };
        for _ in 0..TRIES {
            match following.step(core)? {
                Step::Still => {
                    let seq = show(core, &self.shown, &following);
                    *slot = Some(following);
                    return Ok(seq);
                }
                Step::Again => {}
                Step::Undone => following = Following::new(core, following.tables)?,
            }
        }
        *slot = Some(following);
        let what = "the writer changed the manifest during each try to read it; try again";
        let cause = std::io::Error::new(std::io::ErrorKind::TimedOut, what);
        Err(Error::io("follow", &core.dir, cause))
    }

    /// Takes in what is prepared: this is to be looked at rather than followed.
    fn adopt(&self, core: &Core) -> Result<()> {
        let slot = self.following.lock();
        let Some(following) = slot.as_ref() else { return Ok(()) };
        for (xid, undecided) in &following.prepared.undecided {
            core.adopt_prepared(xid.clone(), undecided.clone(), &*core.env.clock);
        }
        let mut catalog = following.manifest.catalog().clone();
        catalog.take_unfinished();
        for (xid, trees) in catalog.prepared {
            core.adopt_prepared_tables(xid, trees)?;
        }
        Ok(())
    }
}

/// The tables that are open now.
fn open_tables(view: &FollowedView) -> BTreeMap<FileId, Arc<Table>> {
    let tables = view.states.values().flat_map(|state| state.version.tables());
    tables.map(|(_, table)| (table.meta.id, Arc::clone(table))).collect()
}

/// Shows readers what has been read. One at a time: its follower is locked.
fn show(core: &Core, shown: &ArcSwap<FollowedView>, following: &Following) -> SeqNo {
    let before = shown.load_full();
    let mut states = BTreeMap::new();
    for (id, tree) in following.shown() {
        states.insert(*id, tree.state(core, before.states.get(id)));
    }
    let view = Arc::new(FollowedView { seq: following.seq, states });
    // The view first: who finds a tree finds what is in it.
    shown.store(view.clone());
    let known = core.trees.load_full();
    let mut trees = Trees::default();
    for (id, tree) in following.shown() {
        if let Some(state) = view.state(*id) {
            tree.core.swap_state(|_| TreeState::clone(&state));
        }
        trees.by_name.insert(tree.core.name.clone(), tree.core.clone());
        trees.by_id.insert(*id, tree.core.clone());
    }
    for (id, tree) in &known.by_id {
        tree.dropped.store(!trees.by_id.contains_key(id), Ordering::Release);
    }
    core.trees.store(Arc::new(trees));
    core.publish(following.seq.max(core.visible.load(Ordering::Acquire)));
    core.flushed_to.fetch_max(following.manifest.catalog().log.seq, Ordering::AcqRel);
    following.seq
}
