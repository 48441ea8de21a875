//! The named anomalies, each at each level and in each mode: whether it can be, and that it is as
//! the table in docs/decisions/0006-transactions.md says.
//!
//! A case is a schedule of steps of two transactions. A step that has to wait is made as soon as it
//! can be, and those after it of the same transaction wait behind it.

use shaledb::{
    Background, Concurrency, Config, Db, Env, Error, Isolation, LockMode, OnConflict, OpenOptions,
    ScanOptions, Transaction, TransactionOptions, Tree, WriteOptions,
};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug)]
enum Step {
    Get(&'static str),
    GetForShare(&'static str),
    GetForUpdate(&'static str),
    Put(&'static str, i64),
    /// Writes what was read last, and 1 more.
    Add(&'static str),
    Scan,
    ScanLocking,
    Commit,
    Rollback,
}

use Step::{Add, Commit, Get, GetForShare, GetForUpdate, Put, Rollback, Scan, ScanLocking};

/// One of the transactions.
struct Session {
    txn: Option<Transaction>,
    waiting: VecDeque<Step>,
    /// What each read has found: a value (0 for none), or for a scan the sum and count.
    reads: Vec<i64>,
    committed: bool,
}

/// What came of a case.
struct Outcome {
    reads: [Vec<i64>; 2],
    committed: [bool; 2],
    rows: BTreeMap<String, i64>,
}

impl Outcome {
    fn both(&self) -> bool {
        self.committed == [true, true]
    }
}

fn number(value: Option<shaledb::Value>) -> i64 {
    value.map_or(0, |value| i64::from_le_bytes(value.as_ref().try_into().unwrap()))
}

impl Session {
    fn make(&mut self, tree: &Tree, step: Step) -> shaledb::Result<()> {
        let Some(txn) = self.txn.as_mut() else { return Ok(()) };
        match step {
            Get(key) => self.reads.push(number(txn.get(tree, key.as_bytes())?)),
            GetForShare(key) => self.reads.push(number(txn.get_for_share(tree, key.as_bytes())?)),
            GetForUpdate(key) => self.reads.push(number(txn.get_for_update(tree, key.as_bytes())?)),
            Put(key, value) => txn.put(tree, key.as_bytes(), &value.to_le_bytes())?,
            Add(key) => {
                let value = self.reads.last().copied().unwrap_or(0) + 1;
                txn.put(tree, key.as_bytes(), &value.to_le_bytes())?;
            }
            Scan => {
                let rows = txn.scan(tree, ScanOptions::default())?;
                self.reads.push(rows.count() as i64);
            }
            ScanLocking => {
                let options = ScanOptions::default();
                let mut scan = txn.scan_locking(tree, options, LockMode::Shared)?;
                let mut rows = 0;
                while scan.next(txn)? {
                    rows += 1;
                }
                self.reads.push(rows);
            }
            Commit => {
                if let Some(txn) = self.txn.take() {
                    txn.commit(WriteOptions::default())?;
                    self.committed = true;
                }
            }
            Rollback => drop(self.txn.take()),
        }
        Ok(())
    }

    /// Makes the steps that can be made; answers whether there were any.
    fn go(&mut self, tree: &Tree) -> bool {
        let mut moved = false;
        while let Some(&step) = self.waiting.front() {
            match self.make(tree, step) {
                Err(Error::LockQueued { .. }) => break,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    self.txn = None;
                    self.waiting.clear();
                }
                Ok(()) => drop(self.waiting.pop_front()),
            }
            moved = true;
        }
        moved
    }
}

fn run(options: TransactionOptions, schedule: &[(usize, Step)]) -> Outcome {
    let open = OpenOptions {
        env: Env::memory(),
        background: Background::Stepped,
        ..OpenOptions::default()
    };
    let db = Db::open_in("/db", Config::default(), open).unwrap();
    let tree = db.tree_or_create("t").unwrap();
    for key in ["x", "y"] {
        tree.put(key.as_bytes(), &10i64.to_le_bytes()).unwrap();
    }
    let session = || Session {
        txn: Some(db.begin(options).unwrap()),
        waiting: VecDeque::new(),
        reads: Vec::new(),
        committed: false,
    };
    let mut sessions = [session(), session()];
    for &(who, step) in schedule {
        sessions[who].waiting.push_back(step);
        sessions[who].go(&tree);
        while sessions.iter_mut().any(|session| session.go(&tree)) {}
    }
    assert!(sessions.iter().all(|session| session.waiting.is_empty()), "somebody waits for ever");
    let rows = tree.scan::<&[u8]>(..).unwrap().map(|row| {
        let (key, value) = row.unwrap();
        (String::from_utf8(key).unwrap(), i64::from_le_bytes(value.try_into().unwrap()))
    });
    let rows = rows.collect();
    let [a, b] = sessions;
    Outcome { reads: [a.reads, b.reads], committed: [a.committed, b.committed], rows }
}

/// The modes, in the order of the columns below.
fn modes() -> [(&'static str, TransactionOptions); 7] {
    use Concurrency::{Optimistic, Pessimistic};
    use Isolation::{ReadCommitted, RepeatableRead, Serializable};
    let with = |concurrency, isolation, on_conflict| TransactionOptions {
        concurrency,
        isolation,
        on_conflict,
        ..TransactionOptions::default()
    };
    [
        ("read committed", with(Pessimistic, ReadCommitted, OnConflict::Error)),
        ("repeatable read", with(Pessimistic, RepeatableRead, OnConflict::Error)),
        ("repeatable read, latest", with(Pessimistic, RepeatableRead, OnConflict::Latest)),
        ("serializable", with(Pessimistic, Serializable, OnConflict::Error)),
        ("optimistic read committed", with(Optimistic, ReadCommitted, OnConflict::Error)),
        ("optimistic repeatable read", with(Optimistic, RepeatableRead, OnConflict::Error)),
        ("optimistic serializable", with(Optimistic, Serializable, OnConflict::Error)),
    ]
}

/// Runs a schedule in each mode: `anomaly` judges the outcome, and `x` in a column says that it is
/// to be seen.
#[track_caller]
fn case(schedule: &[(usize, Step)], anomaly: impl Fn(&Outcome) -> bool, columns: &str) {
    let columns: Vec<bool> = columns.split_whitespace().map(|mark| mark == "x").collect();
    assert_eq!(columns.len(), modes().len());
    for ((name, options), possible) in modes().into_iter().zip(columns) {
        let outcome = run(options, schedule);
        assert_eq!(
            anomaly(&outcome),
            possible,
            "{name}: read {:?}, committed {:?}, left {:?}",
            outcome.reads,
            outcome.committed,
            outcome.rows
        );
        assert!(outcome.committed.contains(&true), "{name}: somebody always gets through");
    }
}

const NEVER: &str = "- - - - - - -";

#[test]
fn g0_dirty_write() {
    let schedule = [
        (0, Put("x", 1)),
        (1, Put("x", 2)),
        (0, Put("y", 1)),
        (0, Commit),
        (1, Put("y", 2)),
        (1, Commit),
    ];
    case(&schedule, |outcome| outcome.rows["x"] != outcome.rows["y"], NEVER);
}

#[test]
fn g1a_aborted_read() {
    let schedule = [(0, Put("x", 101)), (1, Get("x")), (0, Rollback), (1, Get("x")), (1, Commit)];
    case(&schedule, |outcome| outcome.reads[1].contains(&101), NEVER);
}

#[test]
fn g1b_intermediate_read() {
    let schedule = [
        (0, Put("x", 101)),
        (1, Get("x")),
        (0, Put("x", 11)),
        (0, Commit),
        (1, Get("x")),
        (1, Commit),
    ];
    case(&schedule, |outcome| outcome.reads[1].contains(&101), NEVER);
}

#[test]
fn g1c_circular_information_flow() {
    let schedule = [
        (0, Put("x", 11)),
        (1, Put("y", 22)),
        (0, Get("y")),
        (1, Get("x")),
        (0, Commit),
        (1, Commit),
    ];
    let anomaly = |o: &Outcome| o.both() && o.reads[0].contains(&22) && o.reads[1].contains(&11);
    case(&schedule, anomaly, NEVER);
}

#[test]
fn lost_update() {
    let lost = |outcome: &Outcome| outcome.both() && outcome.rows["x"] == 11;
    let plain =
        [(0, Get("x")), (1, Get("x")), (0, Add("x")), (0, Commit), (1, Add("x")), (1, Commit)];
    //            rc rr latest ser  optimistic: rc rr ser
    case(&plain, lost, "x - x -  x - -");
    let locking = [
        (0, GetForUpdate("x")),
        (1, GetForUpdate("x")),
        (0, Add("x")),
        (0, Commit),
        (1, Add("x")),
        (1, Commit),
    ];
    case(&locking, lost, NEVER);
    // Who waits for the lock to update finds the update of the other.
    for (name, options) in modes().into_iter().take(4) {
        let outcome = run(options, &locking);
        assert!(outcome.both() && outcome.rows["x"] == 12, "{name}");
    }
}

#[test]
fn g_single_read_skew() {
    let schedule = [
        (0, Get("x")),
        (1, Get("x")),
        (1, Get("y")),
        (1, Put("x", 12)),
        (1, Put("y", 18)),
        (1, Commit),
        (0, Get("y")),
        (0, Commit),
    ];
    let anomaly = |outcome: &Outcome| outcome.committed[0] && outcome.reads[0] == [10, 18];
    case(&schedule, anomaly, "x - - -  x - -");
}

#[test]
fn phantoms_of_plain_scans() {
    let schedule = [(0, Scan), (1, Put("z", 1)), (1, Commit), (0, Scan), (0, Commit)];
    let anomaly = |o: &Outcome| o.committed[0] && o.reads[0][0] != o.reads[0][1];
    case(&schedule, anomaly, "x - - -  x - -");
}

#[test]
fn phantoms_of_locking_scans() {
    let schedule =
        [(0, ScanLocking), (1, Put("xx", 1)), (1, Commit), (0, ScanLocking), (0, Commit)];
    let anomaly = |o: &Outcome| o.committed[0] && o.reads[0][0] != o.reads[0][1];
    case(&schedule, anomaly, "x - - -  - - -");
}

#[test]
fn g2_item_write_skew() {
    let skew =
        |outcome: &Outcome| outcome.both() && outcome.rows["x"] == 1 && outcome.rows["y"] == 2;
    let plain = [
        (0, Get("x")),
        (0, Get("y")),
        (1, Get("x")),
        (1, Get("y")),
        (0, Put("x", 1)),
        (1, Put("y", 2)),
        (0, Commit),
        (1, Commit),
    ];
    case(&plain, skew, "x x x -  x x -");
    let locking = [
        (0, GetForShare("x")),
        (0, GetForShare("y")),
        (1, GetForShare("x")),
        (1, GetForShare("y")),
        (0, Put("x", 1)),
        (1, Put("y", 2)),
        (0, Commit),
        (1, Commit),
    ];
    case(&locking, skew, NEVER);
}

#[test]
fn g2_write_skew_through_a_range() {
    let skew = |outcome: &Outcome| outcome.both() && outcome.rows.len() == 4;
    let schedule =
        |scan| [(0, scan), (1, scan), (0, Put("a", 1)), (1, Put("b", 2)), (0, Commit), (1, Commit)];
    case(&schedule(Scan), skew, "x x x -  x x -");
    case(&schedule(ScanLocking), skew, "x - - -  x - -");
}
