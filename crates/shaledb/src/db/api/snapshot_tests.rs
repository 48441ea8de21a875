//! Tests of what the end of a snapshot sets off.

use crate::base::config::Config;
use crate::base::error::Result;
use crate::base::sync::Arc;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::Env;
use crate::fs::mem::{MemClock, MemFs};

/// Statements take and drop snapshots by the ten thousand a second: background work must not wake
/// up for those that have held nothing back, and must for those that have.
#[test]
fn only_snapshots_that_held_something_back_wake_background_work() -> Result<()> {
    let env = Env { fs: Arc::new(MemFs::new()), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let tree = db.tree_or_create("t")?;
    let looks = || db.core().sched.lock().look.len();
    tree.put(b"a", b"1")?;
    db.flush()?;
    while db.step()? {}
    assert_eq!(looks(), 0);

    let short = db.snapshot();
    tree.put(b"a", b"2")?;
    drop(short);
    assert_eq!(looks(), 0);

    let long = db.snapshot();
    tree.put(b"a", b"3")?;
    tree.flush()?;
    while db.step()? {}
    drop(db.snapshot());
    assert_eq!(looks(), 0);
    drop(long);
    assert_eq!(looks(), 1);
    Ok(())
}
