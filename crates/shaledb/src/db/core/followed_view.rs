//! What a database shows that another process writes.

use crate::base::key::SeqNo;
use crate::base::sync::Arc;
use crate::state::TreeState;
use crate::version::TreeId;
use std::collections::BTreeMap;

/// All trees at one sequence number.
pub(crate) struct FollowedView {
    pub seq: SeqNo,
    pub states: BTreeMap<TreeId, Arc<TreeState>>,
}

impl FollowedView {
    /// What the tree was then, if it was there.
    pub fn state(&self, tree: TreeId) -> Option<Arc<TreeState>> {
        self.states.get(&tree).cloned()
    }
}
