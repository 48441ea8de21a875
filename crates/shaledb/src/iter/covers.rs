//! What range deletes hide from one reader.

use crate::base::key::SeqNo;
use crate::base::ranges::RangeDeletes;
use crate::base::sync::Arc;

/// All range deletes, as one reader sees them. There are few sets, and mostly none.
#[derive(Debug)]
pub(super) struct Covers(pub(super) Vec<Cover>);

impl Covers {
    pub(super) fn new(sets: Vec<Arc<RangeDeletes>>, seq: SeqNo) -> Covers {
        let sets = sets.into_iter().filter(|set| !set.is_empty());
        Covers(sets.map(|set| Cover::new(set, seq)).collect())
    }

    /// A set that deletes the entry (key, seq), if one does.
    #[inline]
    pub(super) fn newer_than(&mut self, key: &[u8], seq: SeqNo) -> Option<&Cover> {
        self.0.iter_mut().find_map(|cover| (cover.newest(key) > seq).then_some(&*cover))
    }
}

/// One set of range deletes with the last answer remembered: neighboring keys mostly lie in the
/// same range, or in the same gap.
#[derive(Debug)]
pub(super) struct Cover {
    deletes: Arc<RangeDeletes>,
    seq: SeqNo,
    /// The first range that ends after the last key asked for.
    at: usize,
    /// The newest visible delete of that range.
    pub(super) newest: SeqNo,
}

impl Cover {
    fn new(deletes: Arc<RangeDeletes>, seq: SeqNo) -> Cover {
        let newest = deletes.fragments().first().map_or(0, |first| first.newest_at(seq));
        Cover { deletes, seq, at: 0, newest }
    }

    /// The newest visible delete that covers `key`, or 0.
    #[inline]
    fn newest(&mut self, key: &[u8]) -> SeqNo {
        let fragments = self.deletes.fragments();
        let after_last = self.at == 0 || fragments[self.at - 1].end.as_slice() <= key;
        if !after_last || fragments.get(self.at).is_some_and(|f| f.end.as_slice() <= key) {
            self.at = fragments.partition_point(|f| f.end.as_slice() <= key);
            self.newest = fragments.get(self.at).map_or(0, |f| f.newest_at(self.seq));
        }
        match fragments.get(self.at) {
            Some(fragment) if fragment.start.as_slice() <= key => self.newest,
            _ => 0,
        }
    }

    /// The end of the range that covered the last key.
    pub(super) fn end(&self) -> &[u8] {
        &self.deletes.fragments()[self.at].end
    }

    /// The start of the range that covered the last key.
    pub(super) fn start(&self) -> &[u8] {
        &self.deletes.fragments()[self.at].start
    }
}
