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
    assert_eq!(looks(), 0, "the next merge of level 0 drops what a flush has kept");

    let long = db.snapshot();
    tree.put(b"a", b"4")?;
    tree.compact()?;
    while db.step()? {}
    drop(db.snapshot());
    assert_eq!(looks(), 0);
    drop(long);
    assert_eq!(looks(), 1);
    Ok(())
}

/// What was kept for a snapshot goes when that has ended and there is time for it.
#[test]
fn old_versions_go_with_their_snapshot() -> Result<()> {
    for asked in [false, true] {
        let options =
            OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
        let db = Db::open_in("/db", Config::default(), options)?;
        let tree = db.tree_or_create("t")?;
        let fill = |mark: u8| -> Result<()> {
            for number in 0..1000u32 {
                let mut value = [0; 1000];
                let mut state = number ^ u32::from(mark) << 24;
                for byte in &mut value {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *byte = (state >> 24) as u8;
                }
                tree.put(&number.to_be_bytes(), &value)?;
            }
            tree.compact()
        };
        let bytes = || tree.approximate_bytes(b"", None);
        fill(1)?;
        let once = bytes()?;
        let snapshot = db.snapshot();
        fill(2)?;
        assert!(bytes()? > once * 19 / 10, "the snapshot needs both");
        drop(snapshot);
        if asked {
            tree.compact()?;
        } else {
            db.wait_idle()?;
        }
        assert!(bytes()? < once * 11 / 10, "{asked}: {} and {once}", bytes()?);
    }
    Ok(())
}
