//! Choosing codecs where that is left to the engine: gathers what has been done, has
//! `compaction/policy/auto` choose, and notes the choices with the trees.

use crate::base::config::LEVELS;
use crate::base::sync::atomic::Ordering::Relaxed;
use crate::compaction::policy::auto::{self, TreeLoad};
use crate::compaction::policy::candidates::Costs;
use crate::compaction::policy::chosen::{Chosen, LevelCodecs};
use crate::db::core::{Core, TreeCore};
use crate::table::Probe;
use crate::table::meta::TableMeta;

impl TreeCore {
    /// The codecs of its levels now.
    pub fn level_codecs(&self) -> LevelCodecs {
        let chosen = Chosen::unpack(self.chosen.load(Relaxed));
        LevelCodecs { set: self.config.codecs, chosen }
    }

    fn has_auto(&self) -> bool {
        LevelCodecs::from(self.config.codecs).has_auto()
    }

    /// A probe for the next table of a level, if one is wanted.
    pub fn probe(&self, level: usize) -> Option<Probe> {
        let wanted = self.has_auto() && self.levels.lock().learned.wants_probe(level);
        wanted.then(Probe::default)
    }
}

impl Core {
    /// Learns from a table that was written into a level, and from the blocks left in `probe`.
    pub fn learn(
        &self,
        tree: &TreeCore,
        level: usize,
        (meta, reused): (&TableMeta, u64),
        probe: Option<&Probe>,
    ) {
        if !tree.has_auto() {
            return;
        }
        let blocks = probe.and_then(|probe| probe.get());
        let costs = blocks.and_then(|blocks| Costs::measure(blocks, &*self.env.clock));
        let mut levels = tree.levels.lock();
        if let Some(costs) = costs {
            levels.learned.measured(level, costs);
        }
        levels.learned.wrote(level, meta, reused);
    }

    /// Chooses codecs anew, if it is time for that.
    pub fn renew_codecs(&self) {
        let Some(seconds) = self.codec_price.due(self.env.clock.now_nanos()) else { return };
        let trees = self.trees.load();
        let mut chosen_for = Vec::new();
        let mut loads = Vec::new();
        for tree in trees.by_id.values().filter(|tree| tree.has_auto()) {
            loads.push(tree_load(tree, seconds));
            chosen_for.push(tree);
        }
        if loads.is_empty() {
            return;
        }
        let machine = (self.settings.cores as f64, self.settings.background_threads as f64);
        let totals = self.recorder.totals();
        let price = self
            .codec_price
            .renew(&totals, seconds, machine, |window, before| auto::price(window, before, &loads));
        for (tree, load) in chosen_for.iter().zip(&loads) {
            let chosen = auto::choose(&price, load);
            if chosen != load.chosen {
                tracing::debug!(tree = tree.name, ?chosen, ?price, "codecs chosen");
                tree.chosen.store(chosen.pack(), Relaxed);
            }
        }
    }
}

/// What is known of a tree, and what was done with it in the last `seconds`.
fn tree_load(tree: &TreeCore, seconds: f64) -> TreeLoad {
    let state = tree.state.load();
    let mut read = [0.0; LEVELS];
    for (read, level) in read.iter_mut().zip(&state.version.levels) {
        for table in level.tables() {
            let raw = table.meta.raw_bytes as f64 / table.meta.data_bytes.max(1) as f64;
            *read += table.take_decoded() as f64 * raw;
        }
    }
    let chosen = Chosen::unpack(tree.chosen.load(Relaxed));
    let mut levels = tree.levels.lock();
    let load = levels.learned.look(&read, seconds);
    TreeLoad { costs: levels.learned.costs(), levels: load, chosen }
}
