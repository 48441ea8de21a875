//! What threads leave to the one that removes files.

use crate::base::config::Config;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::mem::{MemClock, MemFs};
use crate::fs::{Env, Fs};
use std::path::Path;
use std::sync::Arc;

#[test]
fn files_that_a_scan_was_the_last_to_hold_are_gone_when_the_database_is_closed() {
    let fs = Arc::new(MemFs::new());
    let env = Env { fs: fs.clone(), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Threads, read_only: false };
    let db = Db::open_in("/db", Config::default(), options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for round in 0..3u8 {
        (0..1000u32).for_each(|number| tree.put(&number.to_be_bytes(), &[round; 8]).unwrap());
        db.flush().unwrap();
    }
    let scan = tree.scan::<&[u8]>(..).unwrap();
    tree.compact().unwrap();
    let tables = || {
        let is_table = |path: &Path| path.extension().is_some_and(|ending| ending == "table");
        let files = fs.list(Path::new("/db")).unwrap();
        files.iter().filter(|file| is_table(Path::new(&file.name))).count()
    };
    let held = tables();
    assert!(held > 1, "the scan holds {held}");
    drop(scan);
    (0..1000u32).for_each(|number| tree.put(&number.to_be_bytes(), &[9; 8]).unwrap());
    tree.compact().unwrap();
    assert_eq!(tables(), 1, "whoever has waited for a merge finds its inputs gone");
    (0..1000u32).for_each(|number| tree.put(&number.to_be_bytes(), &[10; 8]).unwrap());
    db.wait_idle().unwrap();
    let scan = tree.scan::<&[u8]>(..).unwrap();
    tree.compact().unwrap();
    drop(scan);
    db.close().unwrap();
    assert_eq!(tables(), 1);
}
