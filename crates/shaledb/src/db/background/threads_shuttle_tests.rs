use super::*;
use crate::base::config::Config;
use crate::db::{Background, Db, OpenOptions};
use crate::fs::Env;
use shuttle::scheduler::RandomScheduler;

/// The only worker looks, finds nothing, and is about to wait when a flush is wanted. (A wait here
/// ends by a call only: who misses it waits for ever.)
fn with_a_flush_that_is_wanted() {
    let background = Background::Stepped;
    let options = OpenOptions { env: Env::memory(), background, read_only: false };
    let config = Config { background_threads: 1, ..Config::default() };
    let db = Db::open_in("/db", config, options).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    while db.step().unwrap() {}
    tree.put(b"k", b"v").unwrap();
    let core = db.core().clone();
    let worker = shuttle::thread::spawn(move || work(&core));
    let core = db.core();
    core.seal_all(Some(&tree.inner)).unwrap();
    let mut state = core.sched.lock();
    while !tree.inner.state.load().sealed.is_empty() {
        state = core.sched.wait_for_progress(state, LOOK_EVERY);
    }
    drop(state);
    core.stop_background();
    worker.join().unwrap();
}

#[test]
fn a_worker_that_is_about_to_wait_misses_nothing() {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    shuttle::Runner::new(RandomScheduler::new(300), config).run(with_a_flush_that_is_wanted);
}
