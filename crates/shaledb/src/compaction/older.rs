//! Whether a key may have entries older than those of a job, where no more than a guess is needed:
//! as the filters of the tables there say.
//!
//! A delete hides what is older. One that meets the put which it deletes in the same job (an index
//! entry that lived for a moment) mostly has nothing else to hide, since the key was born above all
//! that lies below. It goes as well then, instead of down through every level.
//!
//! Asked is the tree as it is at that moment, and the answer that nothing has the key stays true
//! for as long as the job runs, and after:
//!
//! - What is older than a flush is in tables, all of it: it takes the oldest memtables. What is
//!   older than the outputs of a merge is in deeper levels, since its plan takes all of the output
//!   level that meets its range.
//! - A merge that is installed meanwhile, all of it or a stage, moves entries that are there, makes
//!   copies of them and drops some. It makes no entry of a key that had none; nor does it take one
//!   from beside or above this job to below it, since the job's tables and its range are busy.
//! - Commits, bulk loads, and what was prepared and is decided now are newer than all that is in
//!   tables, and a bulk load has flushed the memtables of its tree itself, while no one else may.
//! - Older rows come later only to a tree that is being built: of one nobody is asked.
//! - A copy that a merge left half installed has its key, and keeps the delete.
//!
//! Of readers it asks no more than the dropping of the put does: the delete is in the stripe of the
//! oldest of them, so whoever may see the put may see the delete.

use super::plan::Plan;
use crate::base::coding;
use crate::state::TreeState;
use arc_swap::ArcSwap;

/// After so many keys in a row that may be there, so many others are passed over, and then it
/// begins anew: a load that deletes what has long been there pays for one key in nine, and one that
/// now and then deletes what is new does not give up on that.
const VAIN_MAX: u32 = 32;
const REST: u32 = 255;

/// How much of filters and indexes a job may load: one byte for so many that it reads or writes.
const LOADS_SHARE: u64 = 8;

/// What is older than a job, to be asked for keys.
#[derive(Debug)]
pub struct Older<'a> {
    state: &'a ArcSwap<TreeState>,
    /// The first level that has it.
    level: usize,
    /// Bytes of filters and indexes that may yet be loaded.
    loads: u64,
    /// How many keys in a row may have been there.
    vain: u32,
    /// For how many more nobody is asked.
    rest: u32,
}

impl<'a> Older<'a> {
    /// All tables of a tree, which are older than the memtables that a flush takes: they have
    /// `bytes`. Not while it is being built. Without filters (0 bits) none is loaded in vain.
    pub fn all(state: &'a ArcSwap<TreeState>, bytes: u64, filter_bits: u8) -> Older<'a> {
        let loads = if filter_bits == 0 { 0 } else { bytes / LOADS_SHARE };
        Older { state, level: 0, loads, vain: 0, rest: 0 }
    }

    /// What lies below the outputs of a plan, for a part that reads `bytes`. `None` if that is not
    /// all that is older.
    pub fn below(plan: &Plan, state: &'a ArcSwap<TreeState>, bytes: u64) -> Option<Older<'a>> {
        let asks = plan.output_level > 0 && !plan.building;
        let all = Older::all(state, bytes, plan.filter_bits);
        asks.then(|| Older { level: plan.output_level + 1, ..all })
    }

    /// Whether surely no older entry has the key. May be wrong in saying no.
    pub fn surely_lacks(&mut self, key: &[u8]) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        let lacks = self.ask(key);
        self.vain = if lacks { 0 } else { self.vain + 1 };
        if self.vain >= VAIN_MAX {
            (self.vain, self.rest) = (0, REST);
        }
        lacks
    }

    /// The deepest level first: there is most, so that of a key which is there one filter is asked.
    fn ask(&mut self, key: &[u8]) -> bool {
        let hash = coding::hash(key);
        let state = self.state.load();
        let levels = state.version.levels.iter().enumerate().skip(self.level).rev();
        for (number, level) in levels.filter(|(_, level)| !level.is_empty()) {
            let lacks = match number {
                0 => level.tables().iter().all(|t| t.surely_lacks(key, hash, &mut self.loads)),
                _ => level.find(key).is_none_or(|t| t.surely_lacks(key, hash, &mut self.loads)),
            };
            if !lacks {
                return false;
            }
        }
        true
    }
}
