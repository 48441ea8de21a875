//! The trees of a database: what readers of each see, and what is wanted of it.

use super::counters::LevelCounters;
use crate::base::config::TreeConfig;
use crate::base::key::SeqNo;
use crate::base::rank;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Arc, Mutex};
use crate::compaction::policy::LAST;
use crate::compaction::policy::chosen::Chosen;
use crate::compaction::policy::sizes::ChosenSizes;
use crate::memtable::Memtable;
use crate::state::TreeState;
use crate::version::{TreeId, Version};
use crate::write::dead::Patience;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;

/// A range of a tree that is to be brought down to the last level: its first key and the first one
/// past it; `None` means no bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Manual {
    pub lower: Option<Vec<u8>>,
    pub upper: Option<Vec<u8>>,
    /// Of a tree that is being built: some level is to be free instead.
    pub for_room: bool,
}

/// One tree.
pub(crate) struct TreeCore {
    pub id: TreeId,
    pub name: String,
    pub config: TreeConfig,
    /// What a reader sees. Replaced only by [`TreeCore::swap_state`].
    pub state: ArcSwap<TreeState>,
    /// Held while `state` is replaced.
    pub swap: Mutex<(), { rank::SWAP }>,
    pub dropped: AtomicBool,
    /// Whether older rows are still to be put beneath all that it has: then no delete may go.
    pub building: AtomicBool,
    /// Where compaction of this tree stands; see `counters`.
    pub levels: Mutex<LevelCounters, { rank::LEVELS }>,
    /// What codecs the engine has chosen for its levels: a [`Chosen`] in one word.
    pub chosen: AtomicU64,
    /// How large the engine has chosen their blocks to be: [`ChosenSizes`] in one word.
    pub chosen_sizes: AtomicU64,
    /// See [`BlockSizes::rewrite_before`](crate::compaction::policy::sizes::BlockSizes).
    pub rewrite_before: AtomicU64,
    /// A request to compact a range down to the last level.
    pub manual: Mutex<Option<Manual>, { rank::MANUAL }>,
    /// How much that is dead scans pass in a memtable until it is sealed.
    pub patience: Patience,
}

impl TreeCore {
    pub fn new(id: TreeId, name: String, config: TreeConfig, version: Version) -> Arc<TreeCore> {
        let chosen = match config.codecs.has_auto() {
            true => Chosen::of_tables(version.levels.iter().map(|level| level.metas())),
            false => Chosen::default(),
        };
        let sizes = ChosenSizes::of_last(version.levels[LAST].metas());
        Arc::new(TreeCore {
            id,
            name,
            config,
            state: ArcSwap::from_pointee(TreeState {
                version: Arc::new(version),
                ..TreeState::empty()
            }),
            swap: Mutex::new(()),
            dropped: AtomicBool::new(false),
            building: AtomicBool::new(false),
            levels: Mutex::new(LevelCounters::default()),
            chosen: AtomicU64::new(chosen.pack()),
            chosen_sizes: AtomicU64::new(sizes.pack()),
            rewrite_before: AtomicU64::new(0),
            manual: Mutex::new(None),
            patience: Patience::default(),
        })
    }

    /// Replaces what readers see: the only place where that is done.
    pub fn swap_state(&self, change: impl FnOnce(&TreeState) -> TreeState) {
        let _swapping = self.swap.lock();
        let new = change(&self.state.load());
        assert!(
            new.sealed.is_sorted_by(|newer, older| newer.last_seq() > older.last_seq()),
            "sealed memtables are newest first"
        );
        self.state.store(Arc::new(new));
    }

    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub fn is_building(&self) -> bool {
        self.building.load(Ordering::Acquire)
    }

    /// The first sequence number that is in a memtable only, if any.
    pub fn first_unflushed(&self) -> Option<SeqNo> {
        self.first_unflushed_but(&FlushedOf::new())
    }

    /// As [`TreeCore::first_unflushed`], leaving out what is being flushed.
    pub fn first_unflushed_but(&self, flushed: &FlushedOf<'_>) -> Option<SeqNo> {
        let but = flushed.get(&self.id).copied().unwrap_or_default();
        let state = self.state.load();
        // Not just of the oldest: one may need the log from before its first entry on.
        let counts =
            |memtable: &&Arc<Memtable>| !but.iter().any(|other| Arc::ptr_eq(other, memtable));
        state.memtables().filter(counts).filter_map(|memtable| memtable.first_seq()).min()
    }
}

/// The memtables that a flush writes, by tree, newest first.
pub(crate) type FlushedOf<'a> = BTreeMap<TreeId, &'a [Arc<Memtable>]>;

/// All trees. Replaced as a whole when one is created or dropped.
#[derive(Clone, Default)]
pub(crate) struct Trees {
    pub by_id: BTreeMap<TreeId, Arc<TreeCore>>,
    pub by_name: BTreeMap<String, Arc<TreeCore>>,
}

impl Trees {
    pub fn insert(&mut self, tree: Arc<TreeCore>) {
        let same_name = self.by_name.insert(tree.name.clone(), tree.clone());
        let same_id = self.by_id.insert(tree.id, tree);
        assert!(
            same_name.is_none() && same_id.is_none(),
            "a tree has a name and a number of its own"
        );
    }

    pub fn remove(&mut self, tree: &TreeCore) {
        self.by_name.remove(&tree.name);
        self.by_id.remove(&tree.id);
    }
}
