//! What a database holds at each moment of its commit order: the right answers.
//!
//! A moment is the number of commits made so far. Commits are kept as versions of keys, so that
//! every earlier moment can be asked (snapshots, crashes). A crash takes the model back to the
//! moment that the disk kept ([`Model::find`], [`Model::rewind`]).

use crate::data::{self, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A point in the commit order: how many commits there were.
pub type Moment = usize;

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets a key.
    Put(u8, u32, Value),
    /// Removes a key.
    Delete(u8, u32),
    /// Removes the keys from the first (included) to the second (excluded), in byte order.
    DeleteRange(u8, u32, u32),
}

/// What one commit does. Trees are named by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// Changes, all or none.
    Batch(Vec<Change>),
    /// A new tree.
    Create(u8),
    /// The end of a tree.
    Drop(u8),
    /// The end of a tree, and a new one of its name, in one step.
    Renew(u8),
}

/// The name of the tree with this number.
pub fn tree_name(tree: u8) -> String {
    format!("tree{tree}")
}

/// The versions of one key, oldest first: since when, and which value (`None`: deleted).
type Versions = Vec<(Moment, Option<Value>)>;

#[derive(Clone, Debug)]
struct TreeHistory {
    created: Moment,
    dropped: Option<Moment>,
    keys: BTreeMap<Vec<u8>, Versions>,
}

impl TreeHistory {
    fn lives_at(&self, moment: Moment) -> bool {
        self.created <= moment && self.dropped.is_none_or(|dropped| dropped > moment)
    }
}

/// The history of a database.
#[derive(Clone, Debug)]
pub struct Model {
    /// Each tree's incarnations, oldest first.
    trees: BTreeMap<u8, Vec<TreeHistory>>,
    /// The hash of the state at each moment.
    hashes: Vec<u64>,
    /// Every state from this moment on may be what a crash leaves.
    durable: Moment,
}

impl Default for Model {
    fn default() -> Model {
        Model::new()
    }
}

impl Model {
    /// A database without trees.
    pub fn new() -> Model {
        Model { trees: BTreeMap::new(), hashes: vec![0], durable: 0 }
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        self.hashes.len() - 1
    }

    /// The oldest moment that a crash may go back to.
    pub fn durable(&self) -> Moment {
        self.durable
    }

    /// Says that all commits so far survive a crash.
    pub fn synced(&mut self) {
        self.durable = self.now();
    }

    /// Adds a commit.
    pub fn commit(&mut self, commit: &Commit) {
        let now = self.now() + 1;
        let mut hash = self.hashes[now - 1];
        match commit {
            Commit::Batch(changes) => {
                for change in changes {
                    hash = self.change(now, hash, change);
                }
            }
            Commit::Create(tree) => hash = self.create(now, hash, *tree),
            Commit::Drop(tree) => hash = self.drop(now, hash, *tree),
            Commit::Renew(tree) => {
                hash = self.drop(now, hash, *tree);
                hash = self.create(now, hash, *tree);
            }
        }
        self.hashes.push(hash);
    }

    fn create(&mut self, now: Moment, hash: u64, tree: u8) -> u64 {
        let history = TreeHistory { created: now, dropped: None, keys: BTreeMap::new() };
        self.trees.entry(tree).or_default().push(history);
        hash.wrapping_add(data::tree_hash(&tree_name(tree)))
    }

    fn drop(&mut self, now: Moment, mut hash: u64, tree: u8) -> u64 {
        let name = tree_name(tree);
        for (key, value) in self.entries(tree, now - 1) {
            hash = hash.wrapping_sub(data::entry_hash(&name, &key, &value.fill()));
        }
        if let Some(history) = self.trees.get_mut(&tree).and_then(|list| list.last_mut()) {
            history.dropped = Some(now);
        }
        hash.wrapping_sub(data::tree_hash(&name))
    }

    fn change(&mut self, now: Moment, mut hash: u64, change: &Change) -> u64 {
        let (tree, keys, value) = match change {
            Change::Put(tree, key, value) => (*tree, vec![data::key(*key)], Some(*value)),
            Change::Delete(tree, key) => (*tree, vec![data::key(*key)], None),
            Change::DeleteRange(tree, from, to) => {
                let (from, to) = (data::key(*from), data::key(*to));
                let Some(history) = self.trees.get(tree).and_then(|list| list.last()) else {
                    return hash;
                };
                let keys = if from < to {
                    history.keys.range(from..to).map(|(key, _)| key.clone()).collect()
                } else {
                    Vec::new()
                };
                (*tree, keys, None)
            }
        };
        let name = tree_name(tree);
        let history = self.trees.get_mut(&tree).and_then(|list| list.last_mut());
        let history = history.expect("programs write only to trees that exist");
        for key in keys {
            let versions = history.keys.entry(key.clone()).or_default();
            if let Some((_, Some(old))) = versions.last() {
                hash = hash.wrapping_sub(data::entry_hash(&name, &key, &old.fill()));
            }
            if let Some(value) = value {
                hash = hash.wrapping_add(data::entry_hash(&name, &key, &value.fill()));
            }
            versions.push((now, value));
        }
        hash
    }

    /// The trees there are at a moment.
    pub fn trees(&self, moment: Moment) -> BTreeSet<u8> {
        let live = |list: &Vec<TreeHistory>| list.iter().any(|history| history.lives_at(moment));
        self.trees.iter().filter(|(_, list)| live(list)).map(|(&tree, _)| tree).collect()
    }

    /// The incarnation of a tree that lives at a moment.
    fn tree(&self, tree: u8, moment: Moment) -> Option<&TreeHistory> {
        self.trees.get(&tree)?.iter().find(|history| history.lives_at(moment))
    }

    /// The value of a key at a moment, in the tree as it now is (a snapshot taken before its
    /// present incarnation sees nothing of the one before).
    pub fn get(&self, tree: u8, key: &[u8], moment: Moment) -> Option<Value> {
        value_at(self.current(tree)?.keys.get(key)?, moment)
    }

    fn current(&self, tree: u8) -> Option<&TreeHistory> {
        self.tree(tree, self.now())
    }

    /// All keys and values of a tree at a moment, ascending, in the incarnation that lives then.
    pub fn entries(&self, tree: u8, moment: Moment) -> Vec<(Vec<u8>, Value)> {
        let Some(history) = self.tree(tree, moment) else { return Vec::new() };
        entries_of(history, moment)
    }

    /// As [`Model::entries`], in the tree's present incarnation.
    pub fn snapshot_entries(&self, tree: u8, moment: Moment) -> Vec<(Vec<u8>, Value)> {
        self.current(tree).map_or_else(Vec::new, |history| entries_of(history, moment))
    }

    /// The hash of the state at a moment.
    pub fn hash(&self, moment: Moment) -> u64 {
        self.hashes[moment]
    }

    /// The newest moment from `low` to `high` whose state has this hash.
    pub fn find(&self, hash: u64, low: Moment, high: Moment) -> Option<Moment> {
        (low..=high.min(self.now())).rev().find(|&moment| self.hashes[moment] == hash)
    }

    /// Goes back to a moment and forgets all that came after.
    pub fn rewind(&mut self, moment: Moment) {
        self.hashes.truncate(moment + 1);
        self.durable = self.durable.min(moment);
        for list in self.trees.values_mut() {
            list.retain(|history| history.created <= moment);
            for history in list {
                history.dropped = history.dropped.filter(|&dropped| dropped <= moment);
                history.keys.retain(|_, versions| {
                    versions.retain(|&(since, _)| since <= moment);
                    !versions.is_empty()
                });
            }
        }
    }
}

fn value_at(versions: &Versions, moment: Moment) -> Option<Value> {
    versions.iter().rev().find(|&&(since, _)| since <= moment)?.1
}

fn entries_of(history: &TreeHistory, moment: Moment) -> Vec<(Vec<u8>, Value)> {
    let live = |(key, versions): (&Vec<u8>, &Versions)| {
        value_at(versions, moment).map(|value| (key.clone(), value))
    };
    history.keys.iter().filter_map(live).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: u32) -> Value {
        Value { number, bytes: 10 }
    }

    fn put(tree: u8, key: u32, number: u32) -> Commit {
        Commit::Batch(vec![Change::Put(tree, key, value(number))])
    }

    /// The hash by definition.
    fn hash(model: &Model, moment: Moment) -> u64 {
        let mut hash = 0u64;
        for tree in model.trees(moment) {
            let name = tree_name(tree);
            hash = hash.wrapping_add(data::tree_hash(&name));
            for (key, value) in model.entries(tree, moment) {
                hash = hash.wrapping_add(data::entry_hash(&name, &key, &value.fill()));
            }
        }
        hash
    }

    #[test]
    fn every_moment_can_be_asked() {
        let mut model = Model::new();
        model.commit(&Commit::Create(0));
        model.commit(&put(0, 1, 1));
        model.commit(&put(0, 1, 2));
        model.commit(&Commit::Batch(vec![
            Change::Put(0, 2, value(3)),
            Change::DeleteRange(0, 0, 2),
            Change::Delete(0, 9),
            Change::Put(0, 9, value(4)),
        ]));
        let key = data::key(1);
        let seen: Vec<Option<u32>> =
            (0..=4).map(|at| model.get(0, &key, at).map(|v| v.number)).collect();
        assert_eq!(seen, [None, None, Some(1), Some(2), None]);
        model.commit(&Commit::Drop(0));
        model.commit(&Commit::Create(0));
        model.commit(&put(0, 5, 5));
        assert_eq!(model.get(0, &key, 3), None);
        assert_eq!(model.entries(0, 3).len(), 1);
        assert_eq!(model.entries(0, 7).len(), 1);
        assert_eq!(model.trees(5).len(), 0);
        for moment in 0..=model.now() {
            assert_eq!(model.hash(moment), hash(&model, moment), "{moment}");
        }
    }

    #[test]
    fn rewinding_forgets() {
        let mut model = Model::new();
        model.commit(&Commit::Create(0));
        model.commit(&put(0, 1, 1));
        model.synced();
        let before = model.clone();
        model.commit(&put(0, 1, 2));
        model.commit(&Commit::Drop(0));
        model.commit(&Commit::Create(1));
        let found = model.find(before.hash(2), model.durable(), model.now());
        assert_eq!(found, Some(2));
        model.rewind(2);
        assert_eq!(model.now(), 2);
        assert_eq!(model.entries(0, 2), before.entries(0, 2));
        assert_eq!(model.trees(2), before.trees(2));
        model.commit(&put(0, 3, 3));
        assert_eq!(model.hash(3), hash(&model, 3));
    }
}
