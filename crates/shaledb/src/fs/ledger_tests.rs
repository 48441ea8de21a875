use super::*;
use crate::fs::balance::HeldBack;
use crate::fs::guard::{Guard, GuardedFs};
use crate::fs::mem::MemFs;
use crate::fs::{Env, Fs, create_dirs};

const HELD: HeldBack = HeldBack { merges: 100, deletes: 20, files: 30, commit: 200 };

fn limit(bytes: u64) -> Limit {
    Limit { bytes, held: HELD }
}

/// A directory on a disk in memory, counted.
fn counted() -> (MemFs, GuardedFs) {
    let disk = MemFs::new();
    let dir = Path::new("/db");
    create_dirs(&disk, dir).unwrap();
    let fs = GuardedFs::new(Arc::new(disk.clone()), dir, Arc::new(Guard::new(dir)));
    (disk, fs)
}

/// The same with a limit of 1000.
fn limited() -> (GuardedFs, Arc<Ledger>) {
    let (_, fs) = counted();
    let ledger = fs.ledger().clone();
    ledger.set_limit(limit(1000), true).unwrap();
    (fs, ledger)
}

fn used(fs: &GuardedFs) -> u64 {
    fs.ledger().balance().used
}

#[test]
fn what_each_may_take_follows_from_what_is_kept_back() {
    let balance = Balance {
        limit: limit(1000),
        used: 300,
        drawn: 50,
        promised: 80,
        merge_needs: 0,
        memtables: 40,
        pending: 10,
    };
    assert_eq!(balance.for_engine(), 1000 - 300 - 30);
    let left = 1000 - 300 - 30 - 40 - 10 - 30;
    assert_eq!(balance.for_merges(), left - 20, "the part of deletes is left alone");
    let short = Balance { used: 300 + left - 20, ..balance };
    assert_eq!(short.for_merges(), 20, "their own part is theirs though there is no more");
    assert_eq!(Balance { used: 300 + left - 5, ..balance }.for_merges(), 5);
    let needs = Balance { merge_needs: 130, ..short };
    assert_eq!((needs.for_merges(), needs.for_deletes()), (20, 0));
    assert_eq!(balance.for_deletes(), 1000 - 250 - 100 - 40 - 10 - 30);
    assert_eq!(balance.for_users(), balance.for_deletes() - 20);
    assert_eq!(balance.held_back(), 700 - balance.for_users());
    let more = Balance { promised: 150, drawn: 0, ..balance };
    assert_eq!(more.for_users(), 1000 - 300 - 150 - 40 - 10 - 30 - 20, "more than is kept back");
    let none = Balance { limit: Limit::default(), ..balance };
    assert_eq!((none.for_users(), none.for_engine()), (u64::MAX, u64::MAX));
    let full = Balance { used: 2000, ..balance };
    assert_eq!((full.for_engine(), full.for_users(), full.held_back()), (0, 0, 0));
}

#[test]
fn files_count_from_their_making_to_their_end() {
    let (disk, fs) = counted();
    let (a, b) = (Path::new("/db/a"), Path::new("/db/b"));
    let mut file = fs.create(a).unwrap();
    file.append(&[1; 100]).unwrap();
    assert_eq!(used(&fs), 100);
    file.truncate(40).unwrap();
    assert_eq!(used(&fs), 40);
    fs.remove(a).unwrap();
    assert_eq!(used(&fs), 40, "its writer has it open");
    drop(file);
    assert_eq!(used(&fs), 0);

    fs.create(a).unwrap().append(&[1; 10]).unwrap();
    fs.create(b).unwrap().append(&[1; 5]).unwrap();
    fs.rename(a, b).unwrap();
    assert_eq!((used(&fs), disk.used_bytes()), (10, 10), "what was there is gone");
    fs.append(b).unwrap().append(&[1; 7]).unwrap();
    assert_eq!(used(&fs), 17);
    fs.create(b).unwrap();
    assert_eq!(used(&fs), 0, "it was emptied");
    fs.remove(b).unwrap();
    // Links and files elsewhere are none of the database's.
    fs.create(a).unwrap().append(&[1; 10]).unwrap();
    fs.link(a, Path::new("/linked")).unwrap();
    fs.create(Path::new("/other")).unwrap().append(&[1; 1000]).unwrap();
    assert_eq!(used(&fs), 10);
    fs.remove(Path::new("/linked")).unwrap();
    assert_eq!(used(&fs), 10);
}

#[test]
fn nothing_grows_beyond_the_limit() {
    let (disk, fs) = counted();
    fs.ledger().set_limit(limit(1000), true).unwrap();
    let mut file = fs.create(Path::new("/db/a")).unwrap();
    file.append(&[1; 900]).unwrap();
    let refused = file.append(&[1; 101]).unwrap_err();
    assert!(matches!(refused, Error::SpaceLimit { limit: 1000, used: 900, needed: 101 }));
    assert_eq!((file.len(), disk.used_bytes()), (900, 900), "no byte was written");
    file.append(&[1; 100]).unwrap();
    // A user's file leaves what is kept back.
    file.truncate(800).unwrap();
    let users = fs.paid_by(Payer::User);
    let mut other = users.create(Path::new("/db/b")).unwrap();
    other.append(&[1; 50]).unwrap();
    assert!(other.append(&[1]).unwrap_err().is_space_limit());
    assert_eq!(fs.ledger().set_limit(limit(500), true), Err(850 + 30));
    assert_eq!(fs.ledger().set_limit(limit(800), false), Err(850));
    fs.ledger().set_limit(Limit::default(), true).unwrap();
    other.append(&[1; 5000]).unwrap();
}

#[test]
fn what_a_merge_was_promised_is_its_own() {
    let (fs, ledger) = limited();
    assert!(ledger.promise(951).is_none(), "what is kept back for others is not promised");
    let promise = ledger.promise(300).unwrap();
    assert_eq!(ledger.balance().for_engine(), 700);
    let merges = fs.paid_by(Payer::Merge(promise.clone()));
    let (a, b) = (Path::new("/db/a"), Path::new("/db/b"));
    let mut file = merges.create(a).unwrap();
    file.append(&[1; 200]).unwrap();
    let balance = ledger.balance();
    assert_eq!((balance.used, balance.drawn, balance.for_engine()), (200, 200, 700));
    // More than was thought is promised as well.
    let mut other = merges.create(b).unwrap();
    other.append(&[1; 150]).unwrap();
    let balance = ledger.balance();
    assert_eq!((balance.drawn, balance.promised, balance.for_engine()), (350, 350, 650));
    // But not what others wait for.
    assert!(other.append(&[1; 1000 - 350 - 30 - 20 + 1]).unwrap_err().is_space_limit());
    drop((file, other));
    fs.remove(b).unwrap();
    assert_eq!(
        (ledger.balance().drawn, used(&fs)),
        (200, 200),
        "what is discarded may be had again"
    );
    drop(merges);
    drop(promise);
    let balance = ledger.balance();
    assert_eq!((balance.promised, balance.drawn, balance.for_engine()), (0, 0, 800));
}

/// Files of a merge's inputs: one above, two below.
fn inputs(fs: &GuardedFs) -> [PathBuf; 3] {
    let inputs = ["/db/above", "/db/left", "/db/right"].map(PathBuf::from);
    inputs.iter().for_each(|path| fs.create(path).unwrap().append(&[1; 100]).unwrap());
    inputs
}

#[test]
fn what_is_replaced_counts_in_the_promise_until_it_is_gone() {
    let (fs, ledger) = limited();
    let [above, left, right] = inputs(&fs);
    let seen = || {
        let balance = ledger.balance();
        (balance.used, balance.drawn, balance.promised)
    };
    let promise = ledger.promise(220).unwrap();
    let merges = fs.paid_by(Payer::Merge(promise.clone()));
    let (a, b) = (PathBuf::from("/db/a"), PathBuf::from("/db/b"));
    // The first stage makes more than it replaces: the rest is above as well.
    merges.create(&a).unwrap().append(&[1; 120]).unwrap();
    assert_eq!(seen(), (420, 120, 220));
    promise.installed(std::slice::from_ref(&a), std::slice::from_ref(&left), false);
    assert_eq!(seen(), (420, 120, 220), "what is replaced is there, and 20 are twice");
    fs.remove(&left).unwrap();
    assert_eq!(seen(), (320, 20, 220));
    merges.create(&b).unwrap().append(&[1; 110]).unwrap();
    assert_eq!(seen(), (430, 130, 220));
    let rest = [above, right];
    promise.installed(&[b], &rest, true);
    assert_eq!(seen(), (430, 200, 200), "readers have what was replaced");
    drop(merges);
    drop(promise);
    let balance = ledger.balance();
    assert_eq!((seen(), balance.for_deletes()), ((430, 200, 200), 1000 - 230 - 200 - 30));
    fs.remove(&rest[0]).unwrap();
    assert_eq!(seen(), (330, 100, 100));
    fs.remove(&rest[1]).unwrap();
    assert_eq!(seen(), (230, 0, 0));
}

#[test]
fn merges_leave_the_part_of_deletes_alone() {
    let (fs, ledger) = limited();
    let inputs = inputs(&fs);
    let mut data = fs.create(Path::new("/db/data")).unwrap();
    data.append(&[1; 1000 - 300 - 100 - 20 - 30]).unwrap();
    let balance = || ledger.balance();
    assert_eq!((balance().for_users(), balance().for_deletes()), (0, 20));
    // Merges whose inputs readers still have, until there is no room for another.
    let mut merged = 0;
    while let Some(promise) = ledger.promise(60) {
        merged += 1;
        let path = PathBuf::from(format!("/db/out-{merged}"));
        let merges = fs.paid_by(Payer::Merge(promise.clone()));
        merges.create(&path).unwrap().append(&[1; 60]).unwrap();
        promise.installed(&[path], &inputs[merged - 1..merged], true);
        drop(merges);
        drop(promise);
        assert!(balance().for_deletes() >= 20, "{:?}", balance());
    }
    assert_eq!(merged, 1, "there is the room of one: {:?}", balance());
    assert!(ledger.admit(20, 5, true).is_some());
    data.truncate(10).unwrap();
    assert!(balance().for_merges() >= 400);
}

#[test]
fn a_merge_that_fails_leaves_what_it_has_installed() {
    let (fs, ledger) = limited();
    let [_, left, _] = inputs(&fs);
    let promise = ledger.promise(220).unwrap();
    let merges = fs.paid_by(Payer::Merge(promise.clone()));
    let (a, b) = (PathBuf::from("/db/a"), PathBuf::from("/db/b"));
    merges.create(&a).unwrap().append(&[1; 120]).unwrap();
    promise.installed(&[a], std::slice::from_ref(&left), false);
    merges.create(&b).unwrap().append(&[1; 50]).unwrap();
    drop(merges);
    drop(promise);
    let balance = ledger.balance();
    assert_eq!((balance.used, balance.drawn, balance.promised), (470, 100, 100));
    fs.remove(&left).unwrap();
    fs.remove(&b).unwrap();
    let balance = ledger.balance();
    assert_eq!((balance.used, balance.drawn, balance.promised), (320, 0, 0));
}

#[test]
fn a_limit_that_is_set_later_counts_what_is_open() {
    let (disk, fs) = counted();
    let ledger = fs.ledger().clone();
    let mut file = fs.create(Path::new("/db/a")).unwrap();
    for _ in 0..100 {
        file.append(&[1; 10]).unwrap();
        assert_eq!(used(&fs), disk.used_bytes());
    }
    assert!(matches!(ledger.set_limit(limit(1000), true), Err(1000..1200)));
    file.append(&[1; 1000]).unwrap();
    ledger.set_limit(limit(3000), true).unwrap();
    while file.append(&[1; 10]).is_ok() {
        assert!(disk.used_bytes() <= used(&fs));
    }
    assert_eq!((disk.used_bytes(), used(&fs)), (3000, 3000));
    ledger.set_limit(Limit::default(), true).unwrap();
    file.append(&[1; 10_000]).unwrap();
    drop(file);
    assert_eq!(used(&fs), 13_000);
}

/// Appends while a limit is set: each is counted, by one of the two.
#[test]
fn no_growth_is_missed_when_a_limit_is_set() {
    for _ in 0..200 {
        let (disk, fs) = counted();
        let mut file = fs.create(Path::new("/db/a")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| while file.append(&[1; 7]).is_ok() && file.len() < 3_000 {});
            scope.spawn(|| _ = fs.ledger().set_limit(limit(2000), true));
        });
        if fs.ledger().is_limited() {
            assert!(disk.used_bytes() <= 2000 && disk.used_bytes() <= used(&fs));
        }
    }
}

#[test]
fn commits_are_counted_before_they_are_made() {
    let (_, ledger) = limited();
    let one = ledger.admit(600, 250, false).unwrap();
    assert!(ledger.admit(251, 0, false).is_none() && ledger.admit(271, 0, true).is_none());
    let deletes = ledger.admit(270, 100, true).unwrap();
    assert!(ledger.admit(1, 0, true).is_none());
    drop(one);
    assert_eq!(ledger.balance().memtables, 250);
    drop(deletes);
    assert_eq!((ledger.balance().memtables, ledger.balance().pending), (350, 0));
    ledger.set_needs(0, 0);
    assert!(ledger.admit(850, 0, false).is_some());
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn what_a_log_is_made_longer_by_counts() {
    let dir = tempfile::tempdir().unwrap();
    let fs = GuardedFs::new(Env::os().fs, dir.path(), Arc::new(Guard::new(dir.path())));
    let path = dir.path().join("log");
    let on_disk = || std::fs::metadata(&path).unwrap().len();
    let mut log = fs.create_log(&path, 64 << 20).unwrap();
    let Some(preparer) = log.preparer() else { return };
    log.append(b"a few bytes").unwrap();
    fs.ledger().set_limit(limit(4 << 20), true).unwrap();
    while preparer.takes_wish() && preparer.prepare() {}
    assert!(on_disk() <= used(&fs) && used(&fs) <= 4 << 20, "{} {}", on_disk(), used(&fs));
    let before = used(&fs);
    log.append(&vec![1; 100_000]).unwrap();
    while preparer.takes_wish() && preparer.prepare() {}
    assert!(on_disk() <= used(&fs) && used(&fs) <= 4 << 20 && used(&fs) >= before);
    drop(log);
    preparer.clear();
    drop(preparer);
    assert_eq!((on_disk(), used(&fs)), (100_011, 100_011));
}
