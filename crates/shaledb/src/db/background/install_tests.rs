//! Tests of changes of several trees at once.

use super::*;
use crate::base::config::Config;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::Env;
use crate::fs::mem::{MemClock, MemFs};

#[test]
fn a_tree_dropped_meanwhile_is_left_out() -> Result<()> {
    let env = Env { fs: Arc::new(MemFs::new()), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let trees = ["a", "b"].map(|name| db.tree_or_create(name).unwrap());
    for tree in &trees {
        tree.put(b"k", b"v")?;
    }
    let core = db.core();
    core.seal_all(None)?;
    let sealed = trees.each_ref().map(|tree| tree.inner.state.load().sealed.clone());
    db.drop_tree("a")?;
    let change = |at: usize| {
        let tree: &TreeCore = &trees[at].inner;
        let flushed_seq = Some(sealed[at][0].last_seq());
        let edit = TreeEdit { tree: tree.id, flushed_seq, ..TreeEdit::default() };
        Change { tree, edit, flushed: &sealed[at] }
    };
    let installed = core.install_all(vec![change(0), change(1)], None, None)?;
    assert_eq!(installed.into_iter().collect::<Vec<_>>(), [trees[1].inner.id]);
    assert!(trees[1].inner.state.load().sealed.is_empty());
    assert!(matches!(core.install_all(vec![change(0)], None, None), Err(Error::NoSuchTree(_))));
    Ok(())
}
