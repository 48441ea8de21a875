//! What it costs to flush many trees that hold a little each, together and one by one:
//! `cargo run --release -p shale --example many_trees`.
//!
//! Arguments: trees (5000), keys in each (5), a directory to do it in (a new one that is removed
//! in the end). Counts the syncs on a disk in memory, then takes the time on the real one.

use shaledb::fs::mem::{Call, MemClock, MemFs};
use shaledb::{Background, Config, Db, Env, OpenOptions, Result, Tree};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments.next().map_or(default, |argument| argument.parse::<usize>().expect("a number"))
    };
    let (trees, keys) = (number(5_000), number(5));
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let dir = arguments.next().map_or(temporary.path().to_owned(), Into::into);

    let fs = MemFs::new();
    let env = Env { fs: Arc::new(fs.clone()), clock: Arc::new(MemClock::new()) };
    let options = OpenOptions { env, background: Background::Stepped, read_only: false };
    let db = Db::open_in("/db", Config::default(), options)?;
    let all = create(&db, trees)?;
    for (how, together) in [("together", true), ("one by one", false)] {
        write(&all, keys)?;
        let before = fs.counts();
        flush(&db, &all, together)?;
        let counts = fs.counts();
        let made = |call| counts.of(call) - before.of(call);
        let (files, dirs) = (made(Call::Sync), made(Call::SyncDir));
        println!("{how:<12} {files:>7} syncs of files {dirs:>7} of directories");
    }
    drop((all, db));

    let db = Db::open(Path::new(&dir).join("many_trees"), Config::default())?;
    let all = create(&db, trees)?;
    for (how, together) in [("together", true), ("one by one", false)] {
        write(&all, keys)?;
        let started = Instant::now();
        flush(&db, &all, together)?;
        println!("{how:<12} {:>8.2} s on {}", started.elapsed().as_secs_f64(), dir.display());
    }
    Ok(())
}

fn create(db: &Db, trees: usize) -> Result<Vec<Tree>> {
    (0..trees).map(|tree| db.tree_or_create(&format!("tree {tree:06}"))).collect()
}

fn write(trees: &[Tree], keys: usize) -> Result<()> {
    for key in 0..keys as u64 {
        trees.iter().try_for_each(|tree| tree.put(&key.to_be_bytes(), &[7; 100]))?;
    }
    Ok(())
}

fn flush(db: &Db, trees: &[Tree], together: bool) -> Result<()> {
    if together { db.flush() } else { trees.iter().try_for_each(Tree::flush) }
}
