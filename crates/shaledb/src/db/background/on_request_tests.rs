//! Tests of who is told of what failures of background work.

use super::*;
use crate::base::config::Config;
use crate::db::background::outcome::Work;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::Env;
use crate::fs::mem::{MemClock, MemFs};

#[test]
fn a_compaction_that_fails_fails_no_flush_of_another_tree() -> Result<()> {
    let fs = MemFs::new();
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let (damaged, sound) = (db.tree_or_create("damaged")?, db.tree_or_create("sound")?);
    for round in 0..2u8 {
        for number in 0..1_000u32 {
            damaged.put(&number.to_be_bytes(), &[round; 8])?;
        }
        db.flush()?;
    }
    for (path, _) in fs.files() {
        let is_table = path.extension().is_some_and(|extension| extension == "table");
        assert!(!is_table || fs.corrupt(&path, 100, 1));
    }
    sound.put(b"k", b"v")?;
    let core = db.core();
    core.seal_all(None)?;
    {
        let mut state = core.sched.lock();
        state.idle_wanted += 1;
        state.look.insert(damaged.id());
        // As if it were flushed by another, so that the waiting thread finds the merge to do.
        state.flushing.insert(sound.id());
    }
    let flushed = {
        let sound = sound.clone();
        std::thread::spawn(move || sound.flush())
    };
    while core.sched.lock().compaction_failure.total == 0 {
        assert!(!flushed.is_finished() || core.sched.lock().compaction_failure.total > 0);
        std::thread::yield_now();
    }
    core.sched.lock().flushing.remove(&sound.id());
    flushed.join().unwrap()?;
    assert!(sound.inner.state.load().sealed.is_empty());
    // Nor a compaction of it.
    sound.compact()?;
    assert!(matches!(damaged.compact(), Err(Error::Corruption { .. })));
    assert!(matches!(db.core().wait_idle(), Err(Error::Corruption { .. })));
    Ok(())
}

#[test]
fn after_work_that_found_no_room_no_file_waits_for_its_removal() -> Result<()> {
    let options =
        OpenOptions { env: Env::memory(), background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let core = db.core();
    core.tables.wake_remover_by(|| ());
    core.tables.let_go(());
    let _ = core.note_outcome(Work::Flush, Err(Error::Closed));
    assert!(core.tables.has_gone());
    let full = Error::SpaceLimit { limit: 4 << 20, used: 4 << 20, needed: 100 };
    let _ = core.note_outcome(Work::Flush, Err(full));
    assert!(!core.tables.has_gone());
    Ok(())
}
