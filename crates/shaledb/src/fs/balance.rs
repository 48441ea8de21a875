//! What of a limit on space is left, and to whom: pure.
//!
//! The invariant: `data + max(for merges, promised) + owed <= limit`, where data is what files take
//! without what merges under way have there twice. Users stop earlier by what is kept back for
//! deletes; deletes stop at it; what merges are promised beyond their part leaves the part of
//! deletes alone. So neither of the two can take what the other needs.

/// What of a limit is kept back, and for whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// For merges: one can always begin that makes room.
    pub merges: u64,
    /// For deletes: their log and their tables, until merges have made room of them.
    pub deletes: u64,
    /// For the manifest and other small files, and for what tables take beyond what was thought.
    pub files: u64,
    /// How much of one commit the part of merges is made for: more needs as much more room.
    pub commit: u64,
}

/// A limit and what of it is kept back; a limit of 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// What all files together may take, in bytes.
    pub bytes: u64,
    /// What of that is kept back.
    pub held: HeldBack,
}

/// What a ledger has counted, as of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// The limit.
    pub limit: Limit,
    /// The bytes of all files.
    pub used: u64,
    /// Of these, what goes with merges' ends: outputs that are not installed, inputs that were
    /// replaced and that readers still have, and what is both above and below for a while.
    pub drawn: u64,
    /// What merges may have there beside the data, that included.
    pub promised: u64,
    /// What the merge needs that needs the most, if that is more than is kept back for one.
    pub merge_needs: u64,
    /// What is in memtables: it will be in tables.
    pub memtables: u64,
    /// What commits under way will add to log and tables.
    pub pending: u64,
}

impl Balance {
    /// What files and promises may yet take, whoever asks; without a limit there is no end to it.
    fn left(&self, taken: u64) -> u64 {
        if self.limit.bytes == 0 { u64::MAX } else { self.limit.bytes.saturating_sub(taken) }
    }

    /// What files take that will stay.
    fn data(&self) -> u64 {
        // Less than nothing for a moment where a tree is dropped while it is merged: its files go
        // before the promise ends.
        self.used.saturating_sub(self.drawn)
    }

    fn owed(&self) -> u64 {
        self.memtables + self.pending + self.limit.held.files
    }

    /// What is kept back for merges.
    fn of_merges(&self) -> u64 {
        self.limit.held.merges.max(self.merge_needs)
    }

    /// What the engine's own small files, logs and flushes may grow by.
    pub fn for_engine(&self) -> u64 {
        self.left(self.data() + self.promised)
    }

    /// What a further merge may be promised: of the part of merges what is left of it, or what is
    /// left beside the part of deletes.
    pub fn for_merges(&self) -> u64 {
        let taken = self.data() + self.promised + self.owed();
        let own = self.of_merges().saturating_sub(self.promised).min(self.left(taken));
        own.max(self.left(taken + self.limit.held.deletes))
    }

    /// What deletes may add.
    pub fn for_deletes(&self) -> u64 {
        self.left(self.data() + self.of_merges().max(self.promised) + self.owed())
    }

    /// What users may add.
    pub fn for_users(&self) -> u64 {
        let deletes = self.for_deletes();
        if self.limit.bytes == 0 {
            deletes
        } else {
            deletes.saturating_sub(self.limit.held.deletes)
        }
    }

    /// What of the limit users may not have: it is kept back, or promised.
    pub fn held_back(&self) -> u64 {
        let free = self.limit.bytes.saturating_sub(self.used);
        free.saturating_sub(self.for_users())
    }
}
