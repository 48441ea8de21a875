//! Creating and dropping trees: several at once are one change, of which all becomes durable or
//! nothing.

use crate::base::config::TreeConfig;
use crate::base::error::{Error, Result};
use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::base::sync::atomic::Ordering;
use crate::compaction::plan::Busy;
use crate::db::core::{Core, Leader, TreeCore, Trees};
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::table::Blob;
use crate::version::edit::{Edit, LogStart};
use crate::version::{TreeId, Version};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name of a tree, in bytes.
const NAME_BYTES_MAX: usize = 1024;

/// What trees that are gone have had.
type States = Vec<(TreeId, Arc<TreeState>)>;

/// The trees that are to go. They are there, and none is named twice.
fn find_dropped(trees: &Trees, names: &[&str]) -> Result<Vec<Arc<TreeCore>>> {
    let mut found = BTreeMap::new();
    for &name in names {
        let tree = trees.by_name.get(name).filter(|_| !found.contains_key(name));
        let tree = tree.ok_or_else(|| Error::NoSuchTree(name.to_owned()))?;
        found.insert(name, tree.clone());
    }
    Ok(found.into_values().collect())
}

/// Whether the names of new trees are names, and free once others are dropped.
fn check_created(trees: &Trees, created: &[(&str, TreeConfig)], dropped: &[&str]) -> Result<()> {
    let mut new = BTreeSet::new();
    for (name, config) in created {
        config.validate()?;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(Error::InvalidArgument(format!(
                "the name of a tree must have 1 to {NAME_BYTES_MAX} bytes, not {}",
                name.len()
            )));
        }
        let stays = trees.by_name.contains_key(*name) && !dropped.contains(name);
        if stays || !new.insert(*name) {
            return Err(Error::TreeExists((*name).to_owned()));
        }
    }
    Ok(())
}

impl Core {
    /// Drops trees and creates others, in one step; answers with the new ones.
    pub fn change_trees(
        &self,
        created: &[(&str, TreeConfig)],
        dropped: &[&str],
    ) -> Result<Vec<Arc<TreeCore>>> {
        // In a fork whoever held the mutex is not here.
        self.check_writable()?;
        let mut leader = self.leader.lock();
        let (new, states) = self.change_trees_in(&mut leader, created, dropped, false)?;
        drop(leader);
        if !states.is_empty() {
            self.forget_trees(&states);
            drop(states);
            // Its space is free at once.
            self.tables.remove_gone();
        }
        Ok(new)
    }

    /// Creates trees whose older rows come later, by [`Core::put_beneath`], or never: until their
    /// build has ended an open drops them. Answers with the trees, in their order, and a sequence
    /// number that is older than all that will be written to them.
    pub fn begin_build(
        &self,
        created: &[(&str, TreeConfig)],
    ) -> Result<(Vec<Arc<TreeCore>>, SeqNo)> {
        self.check_writable()?;
        // Most of it now, so that writers of other trees do not wait for it below.
        self.sync_beside_commits()?;
        let mut leader = self.leader.lock();
        let seq = leader.next_seq;
        self.append_nothing(&mut leader)?;
        self.publish(seq);
        let (trees, _) = self.change_trees_in(&mut leader, created, &[], true)?;
        Ok((trees, seq))
    }

    fn change_trees_in(
        &self,
        leader: &mut Leader,
        created: &[(&str, TreeConfig)],
        dropped: &[&str],
        building: bool,
    ) -> Result<(Vec<Arc<TreeCore>>, States)> {
        self.check_writable()?;
        if created.is_empty() && dropped.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        // With the leader's lock no group is half applied to a tree that goes. What was committed
        // before must not be lost while the change stays: one order for all.
        let through = leader.next_seq - 1;
        let trees = self.trees.load_full();
        check_created(&trees, created, dropped)?;
        let gone = find_dropped(&trees, dropped)?;
        self.sync_log(leader, through)?;
        let mut manifest = self.manifest.lock();
        let mut edit =
            Edit { trees_dropped: gone.iter().map(|tree| tree.id).collect(), ..Edit::default() };
        for (name, config) in created {
            let id = self.next_tree.fetch_add(1, Ordering::Relaxed) as TreeId;
            edit.trees_created.push((id, (*name).to_owned(), config.clone()));
            edit.builds_begun.extend(building.then_some(id));
        }
        if !gone.is_empty() {
            edit.log = self.log_start_without(&gone);
        }
        self.append_edit(&mut manifest, &edit)?;
        if let Some(log) = edit.log {
            self.note_log_start(log);
        }
        let mut after = Trees::clone(&trees);
        for tree in &gone {
            tree.dropped.store(true, Ordering::Release);
            after.remove(tree);
        }
        let mut new = Vec::with_capacity(created.len());
        for (id, name, config) in edit.trees_created {
            assert!(!trees.by_id.contains_key(&id), "the number of a tree is given once");
            assert!(!after.by_name.contains_key(&name), "a name has one tree");
            let tree = TreeCore::new(id, name, config, Version::new());
            tree.building.store(building, Ordering::Release);
            after.insert(tree.clone());
            new.push(tree);
        }
        self.trees.store(Arc::new(after));
        let empty = |tree: Arc<TreeCore>| {
            let before = tree.state.load_full();
            tree.swap_state(|_| TreeState::empty());
            (tree.id, before)
        };
        Ok((new, gone.into_iter().map(empty).collect()))
    }

    /// Where the log starts once these trees are gone: perhaps nothing else needs what it has, and
    /// no flush will come of it.
    fn log_start_without(&self, gone: &[Arc<TreeCore>]) -> Option<LogStart> {
        let memtables = |tree: &Arc<TreeCore>| -> Vec<Arc<Memtable>> {
            tree.state.load().memtables().cloned().collect()
        };
        let memtables: Vec<(TreeId, Vec<Arc<Memtable>>)> =
            gone.iter().map(|tree| (tree.id, memtables(tree))).collect();
        self.log_start(&memtables.iter().map(|(id, memtables)| (*id, &memtables[..])).collect())
    }

    /// Gives the files of dropped trees back, and what was planned for these trees up.
    fn forget_trees(&self, dropped: &[(TreeId, Arc<TreeState>)]) {
        for (_, before) in dropped {
            for (_, table) in before.version.tables() {
                for &id in &table.meta.blobs {
                    self.blob(id).mark_obsolete();
                }
                table.mark_obsolete();
            }
            for memtable in before.sealed.iter().chain([&before.active]) {
                for blob in memtable.attached::<Blob>() {
                    blob.mark_obsolete();
                }
            }
        }
        {
            let mut state = self.sched.lock();
            for (id, _) in dropped {
                state.debts.remove(id);
                state.look.remove(id);
                state.idle_look.remove(id);
                state.flush.remove(id);
                state.failed.remove(id);
                if state.busy.get(id).is_some_and(Busy::is_empty) {
                    state.busy.remove(id);
                }
            }
        }
        self.remove_old_logs();
        self.update_pressure();
        self.sched.wake_all();
    }
}
