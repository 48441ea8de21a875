//! Choosing codecs where that is left to the engine: gathers what has been done, has
//! `compaction/policy/auto` choose, and notes the choices with the trees; then sizes of blocks.

use crate::base::config::{Codec, LEVELS};
use crate::base::stats::Counter;
use crate::base::sync::atomic::Ordering::{Acquire, Relaxed};
use crate::compaction::plan::Space;
use crate::compaction::policy::LAST;
use crate::compaction::policy::auto::{self, Price, TreeLoad};
use crate::compaction::policy::chosen::{Chosen, LevelCodecs};
use crate::compaction::policy::sizes::{BlockSizes, ChosenSizes, SIZES};
use crate::db::core::{Core, LevelReads, Seen, TreeCore};
use crate::table::meta::TableMeta;
use crate::table::write::SMALL_TABLE_BYTES;
use crate::table::{Probe, TableDictionary};

/// A table that was written.
pub(crate) struct WrittenTable<'a> {
    pub meta: &'a TableMeta,
    /// The codec that it was written with.
    pub codec: Codec,
    /// Bytes in the file of blocks that were reused.
    pub reused: u64,
    /// The dictionary that it was to have.
    pub dictionary: &'a TableDictionary,
}

impl TreeCore {
    /// The codecs of its levels now.
    pub fn level_codecs(&self) -> LevelCodecs {
        // A size that needs a dictionary comes after the codec that uses it.
        let sizes = ChosenSizes::unpack(self.chosen_sizes.load(Acquire));
        let chosen = Chosen::unpack(self.chosen.load(Relaxed));
        let set = LevelCodecs::of_config(&self.config);
        let rewrite_before = self.rewrite_before.load(Relaxed);
        let blocks = BlockSizes { chosen: sizes, rewrite_before, ..set.blocks };
        LevelCodecs { chosen, blocks, ..set }
    }

    /// The same with this much room. Where the limit on space is near no block becomes smaller than
    /// its rows were in: what that takes more is in no estimate of what a merge needs.
    pub fn codecs_in(&self, space: Space) -> LevelCodecs {
        let codecs = self.level_codecs();
        let blocks = if space.is_tight { codecs.blocks.largest() } else { codecs.blocks };
        LevelCodecs { blocks, ..codecs }
    }

    /// Whether the engine chooses how large blocks are.
    pub fn chooses_sizes(&self) -> bool {
        self.config.block_bytes == 0
    }

    /// Whether the engine chooses codecs or how large blocks are.
    fn chooses(&self) -> bool {
        self.config.codecs.has_auto() || self.chooses_sizes()
    }

    /// A probe for the next table of this codec, if anything is to be learnt of it.
    pub fn probe(&self, codec: Codec) -> Option<Probe> {
        let pieces = if self.chooses_sizes() { SIZES[SIZES.len() - 1] as usize } else { 0 };
        self.learns_from(codec).then(|| Probe::of_pieces(pieces))
    }

    /// Whether anything is chosen by what its tables of this codec are like. Where codecs are set,
    /// what zstd writes is enough to decide on its dictionary.
    fn learns_from(&self, codec: Codec) -> bool {
        let zstd = matches!(codec, Codec::Zstd(_));
        self.chooses() || zstd && self.dictionary_level().is_some()
    }
}

impl Core {
    /// Learns from a table that was written into a level, and from the blocks left in `probe`.
    pub fn learn(
        &self,
        tree: &TreeCore,
        level: usize,
        written: &WrittenTable<'_>,
        probe: Option<&Probe>,
    ) {
        if !tree.learns_from(written.codec) {
            return;
        }
        let table = Seen {
            raw_bytes: written.meta.raw_bytes,
            data_bytes: written.meta.data_bytes,
            reused_bytes: written.reused,
            codec: written.codec,
            dictionary: match written.dictionary {
                TableDictionary::None => Some(false),
                TableDictionary::OfTable => None,
                // A smaller one is better without, maybe.
                TableDictionary::Given(_) => {
                    (written.meta.raw_bytes >= SMALL_TABLE_BYTES).then_some(true)
                }
            },
        };
        let wanted = tree.levels.lock().learned.wrote(level, &table);
        let probed = probe.and_then(|probe| probe.get()).filter(|_| wanted);
        let Some(probed) = probed else { return };
        if let Some(costs) = self.study(tree, level, probed) {
            tree.levels.lock().learned.studied(level, &table, costs);
        }
        if let Some(sizes) =
            self.study_sizes(tree, (written.meta, written.codec, written.dictionary), probed)
        {
            tree.levels.lock().learned.studied_sizes(level, sizes);
        }
        if level == LAST {
            self.try_small_blocks(tree, written.meta, &probed.blocks, true);
        }
    }

    /// Does a piece of background work, of which is counted how long it takes and what CPU it uses.
    pub fn counted<T>(&self, work: impl FnOnce() -> T) -> T {
        let clock = &*self.env.clock;
        let (began, cpu) = (clock.now_nanos(), clock.thread_cpu_nanos());
        let done = work();
        self.recorder.add_all([
            (Counter::BackgroundNanos, clock.now_nanos().saturating_sub(began)),
            (Counter::BackgroundCpuNanos, clock.thread_cpu_nanos().saturating_sub(cpu)),
        ]);
        done
    }

    /// Whether nobody writes, so that what background work there is has time.
    fn is_at_rest(&self, now: u64) -> bool {
        let mut state = self.sched.lock();
        self.sched.is_quiet(&mut state, now) || state.idle_wanted > 0
    }

    /// Chooses codecs anew, if it is time for that.
    pub fn renew_codecs(&self) {
        if self.read_only || self.is_poisoned() {
            return;
        }
        let now = self.env.clock.now_nanos();
        if !self.codec_price.due(now) {
            return;
        }
        let at_rest = self.is_at_rest(now);
        // What is only read may want blocks of another size, but no other codecs.
        let rests = self.codec_price.stays_at_rest(at_rest);
        if rests && !self.codec_price.reads(self.recorder.totals().get(Counter::DataMisses)) {
            return;
        }
        let trees = self.trees.load();
        let mut by_auto = trees.by_id.values().filter(|tree| tree.chooses()).peekable();
        if by_auto.peek().is_none() {
            return;
        }
        let seconds = self.codec_price.count(now);
        // Of thousands of trees most are idle; they cost a look.
        let (used, idle): (Vec<_>, Vec<_>) = by_auto.partition(|tree| is_used(tree, seconds));
        let loads: Vec<TreeLoad> = used.iter().map(|tree| tree_load(tree)).collect();
        // The steps of a seed are the same on every machine.
        let cores = if self.stepped { 2 } else { self.settings.cores };
        let machine = (cores as f64, self.settings.background_threads as f64);
        let totals = || self.recorder.totals();
        let (price, changed) =
            self.codec_price.renew(totals, (seconds, at_rest), machine, |window, before| {
                auto::price(window, before, &loads)
            });
        for (tree, load) in used.iter().zip(&loads) {
            self.choose_codecs(tree, load, (&price, seconds), (at_rest, rests));
        }
        for tree in idle.iter().filter(|_| changed) {
            self.choose_codecs(tree, &tree_load(tree), (&price, seconds), (at_rest, rests));
        }
    }

    fn choose_codecs(
        &self,
        tree: &TreeCore,
        load: &TreeLoad,
        (price, seconds): (&Price, f64),
        (at_rest, rests): (bool, bool),
    ) {
        let mut changed = false;
        if tree.config.codecs.has_auto() && !rests {
            let chosen = auto::choose(price, load);
            if chosen != load.chosen {
                changed = true;
                tracing::debug!(tree = tree.name, ?chosen, ?price, "codecs chosen");
                let suits = |chosen| {
                    let codecs = LevelCodecs { chosen, ..tree.level_codecs() };
                    matches!(codecs.of(LAST, LAST).codec, Codec::Zstd(1..))
                };
                if suits(chosen) && !suits(load.chosen) {
                    // What a dictionary would do was of no use before.
                    tree.levels.lock().learned.forget_trial();
                }
                tree.chosen.store(chosen.pack(), Relaxed);
            }
        }
        changed |= self.choose_block_sizes(tree, &load.levels, (price, seconds));
        if changed && at_rest {
            // What was looked at with the choice before may have to be rewritten by this.
            self.sched.want_look(tree.id);
        }
    }
}

/// Looks at what was done with a tree in the last `seconds`: whether that is anything, or was at
/// the look before.
fn is_used(tree: &TreeCore, seconds: f64) -> bool {
    let state = tree.state.load();
    let mut read = [LevelReads::default(); LEVELS];
    for (read, level) in read.iter_mut().zip(&state.version.levels) {
        for table in level.tables() {
            let raw = table.meta.raw_bytes as f64 / table.meta.data_bytes.max(1) as f64;
            let (bytes, apart) = table.take_decoded();
            read.bytes += bytes as f64 * raw;
            read.apart += apart as f64;
        }
    }
    tree.levels.lock().learned.look(&read, seconds)
}

/// What is known of a tree, and what was done with it at the last look.
fn tree_load(tree: &TreeCore) -> TreeLoad {
    let chosen = Chosen::unpack(tree.chosen.load(Relaxed));
    let levels = tree.levels.lock();
    TreeLoad { costs: levels.learned.costs(), levels: levels.learned.loads(), chosen }
}
