//! The handles of blob files, so that all who refer to a file share one.

use crate::base::sync::Arc;
use crate::table::blob::Blob;
use crate::table::meta::FileId;
use std::collections::BTreeMap;
use std::sync::Weak;

/// Below so many handles none is looked for that is no more.
const KEPT: usize = 64;

/// The blob files in use, by number.
#[derive(Default)]
pub(crate) struct Blobs {
    known: BTreeMap<FileId, Weak<Blob>>,
    /// At this length those that are no more are taken out: not with each new one, since a database
    /// may have very many.
    prune_at: usize,
}

impl Blobs {
    /// The handle of the file of this number; `make` makes one that nobody has.
    pub fn share(&mut self, id: FileId, make: impl FnOnce() -> Arc<Blob>) -> Arc<Blob> {
        if let Some(blob) = self.known.get(&id).and_then(Weak::upgrade) {
            return blob;
        }
        if self.known.len() >= self.prune_at {
            self.known.retain(|_, blob| blob.strong_count() > 0);
            self.prune_at = 2 * self.known.len() + KEPT;
        }
        let blob = make();
        self.known.insert(id, Arc::downgrade(&blob));
        blob
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::base::stats::Recorder;
    use crate::fs::Env;
    use crate::table::TableEnv;

    #[test]
    fn few_of_many_new_handles_look_at_all_others() {
        let env = TableEnv::new(Env::memory(), 1 << 20, Arc::new(Recorder::new()));
        let make = |id: FileId| Blob::new(id, format!("/db/{id}").into(), &env);
        let mut blobs = Blobs::default();
        let (mut held, mut looks) = (Vec::new(), 0);
        for id in 0..10_000 {
            let before = blobs.prune_at;
            held.push(blobs.share(id, || make(id)));
            looks += u32::from(blobs.prune_at != before);
        }
        assert!(looks < 20, "{looks}");
        assert!(Arc::ptr_eq(&held[7], &blobs.share(7, || panic!("it is there"))));
        // What is no more is not kept for ever.
        held.truncate(10);
        for id in 10_000..30_000 {
            blobs.share(id, || make(id));
        }
        assert!(blobs.known.len() < 300, "{}", blobs.known.len());
        assert!(Arc::ptr_eq(&held[7], &blobs.share(7, || panic!("it is there"))));
        // One that is no more is made anew.
        assert_eq!(blobs.share(29_999, || make(29_999)).id(), 29_999);
    }
}
