//! Random histories of concurrent transactions that append to lists, stepped by one thread: at each
//! level and in each mode there is no anomaly but those that it allows.

use crate::Case;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shaledb::fs::mem::MemFs;
use shaledb::{
    Concurrency, Db, Error, Isolation, LockMode, OnConflict, Transaction, TransactionOptions, Tree,
    WriteOptions,
};
use shaledb_sim::history::{Anomaly, Event, Run, check};
use shaledb_sim::settings::{seeds, small};
use shaledb_sim::world::{PATH, open_db};
use std::collections::BTreeMap;

const KEYS: u32 = 4;

/// What is to be done next; kept until it has been done.
#[derive(Clone, Copy, Debug)]
enum Next {
    Append(u32, u32),
    Read(u32),
    Commit,
    Rollback,
}

/// A client: one transaction after the other.
struct Client {
    /// The transaction, and its place in the history.
    txn: Option<(Transaction, usize)>,
    left: u32,
    next: Option<Next>,
}

struct World {
    db: Db,
    tree: Tree,
    options: TransactionOptions,
    /// Whether appends lock the list when they read it.
    locking: bool,
    /// Whether locks of keys are made ranges now and then.
    merging: bool,
    merges: u64,
    history: Vec<Run>,
    values: u32,
    waits: u64,
    refused: u64,
}

fn list(value: Option<shaledb::Value>) -> Vec<u32> {
    let bytes = value.map(shaledb::Value::into_vec).unwrap_or_default();
    bytes.chunks(4).map(|part| u32::from_le_bytes(part.try_into().unwrap())).collect()
}

impl World {
    fn new(options: TransactionOptions, locking: bool, merging: bool) -> World {
        let db = open_db(&MemFs::new(), PATH, &small()).unwrap();
        let tree = db.tree_or_create("lists").unwrap();
        let (history, values) = (Vec::new(), 0);
        let (waits, refused, merges) = (0, 0, 0);
        World { db, tree, options, locking, merging, merges, history, values, waits, refused }
    }

    fn turn(&mut self, client: &mut Client, rng: &mut Pcg64Mcg) {
        if client.txn.is_none() {
            let txn = self.db.begin(self.options).unwrap();
            client.txn = Some((txn, self.history.len()));
            self.history.push(Run::default());
            client.left = rng.random_range(1..6);
            client.next = None;
        }
        let next = *client.next.get_or_insert_with(|| {
            if client.left == 0 {
                return if rng.random_ratio(1, 12) { Next::Rollback } else { Next::Commit };
            }
            client.left -= 1;
            let key = rng.random_range(0..KEYS);
            if rng.random() {
                self.values += 1;
                Next::Append(key, self.values)
            } else {
                Next::Read(key)
            }
        });
        match self.act(client, next) {
            Ok(()) => client.next = None,
            Err(Error::LockQueued { .. }) => {
                self.waits += 1;
                return;
            }
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                self.refused += 1;
                client.txn = None;
            }
        }
        // Ranges in place of keys lock more, and nobody may come to see less of it.
        if let Some((txn, _)) = &mut client.txn
            && self.merging
            && rng.random_ratio(1, 3)
        {
            self.merges += u64::from(txn.escalate_locks().unwrap());
        }
    }

    fn act(&mut self, client: &mut Client, next: Next) -> shaledb::Result<()> {
        let (txn, index) = client.txn.as_mut().unwrap();
        let events = &mut self.history[*index].events;
        match next {
            Next::Read(key) => {
                let found = list(txn.get(&self.tree, &key.to_be_bytes())?);
                events.push(Event::Read(key, found));
            }
            Next::Append(key, value) => {
                let at = key.to_be_bytes();
                let before = match (self.locking, value % 2) {
                    (true, 0) => txn.get_for_update(&self.tree, &at)?,
                    (true, _) => {
                        txn.lock(&self.tree, &at, LockMode::Exclusive)?;
                        // As late as it may be looked up: what is locked stays as it is.
                        self.db.step()?;
                        txn.multi_get_locked(&self.tree, &[at])?.pop().flatten()
                    }
                    (false, _) => txn.get(&self.tree, &at)?,
                };
                let mut bytes = before.map(shaledb::Value::into_vec).unwrap_or_default();
                bytes.extend_from_slice(&value.to_le_bytes());
                txn.put(&self.tree, &at, &bytes)?;
                events.push(Event::Append(key, value));
            }
            Next::Commit => {
                let (txn, index) = client.txn.take().unwrap();
                txn.commit(WriteOptions::default())?;
                self.history[index].committed = true;
            }
            Next::Rollback => drop(client.txn.take()),
        }
        Ok(())
    }

    /// Runs clients in random turns, with background work between.
    fn run(&mut self, seed: u64, turns: u32) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut clients: Vec<Client> =
            (0..4).map(|_| Client { txn: None, left: 0, next: None }).collect();
        for turn in 0..turns {
            let index = rng.random_range(0..clients.len());
            self.turn(&mut clients[index], &mut rng);
            if turn % 50 == 49 {
                self.db.flush().unwrap();
            }
            if turn % 7 == 0 {
                self.db.step().unwrap();
            }
        }
    }

    fn finals(&self) -> BTreeMap<u32, Vec<u32>> {
        let lists = (0..KEYS).map(|key| (key, list(self.tree.get(&key.to_be_bytes()).unwrap())));
        lists.collect()
    }
}

/// Runs histories; answers with the anomalies found, none of which may be worse than `allowed`.
fn histories(
    name: &str,
    options: TransactionOptions,
    locking: bool,
    allowed: Option<Anomaly>,
) -> u64 {
    let (mut found, mut committed, mut disturbed, mut merges) = (0, 0, 0, 0);
    let all = seeds(40);
    for &seed in &all {
        let label = format!("SHALE_SEED={seed}, {name}");
        let _case = Case::new(label.clone());
        // Half of those that can write all but the last write to runs of their own.
        let spills = options.concurrency == Concurrency::Pessimistic && seed % 2 == 1;
        let memory_bytes = u64::from(spills);
        let mut world =
            World::new(TransactionOptions { memory_bytes, ..options }, locking, seed % 3 == 0);
        world.run(seed, 400);
        committed += world.history.iter().filter(|run| run.committed).count();
        disturbed += world.waits + world.refused;
        merges += world.merges;
        if let Some(finding) = check(&world.history, &world.finals()) {
            let involved: Vec<&Run> =
                finding.transactions.iter().map(|index| &world.history[*index]).collect();
            assert!(
                allowed.is_some_and(|allowed| finding.anomaly >= allowed),
                "{label}: {finding:?}: {involved:?}"
            );
            found += 1;
        }
    }
    assert!(committed > 20 * all.len(), "{name}: {committed} committed");
    if options.concurrency == Concurrency::Pessimistic && all.len() > 3 {
        assert!(merges > 0, "{name}: no locks were merged");
    }
    assert!(disturbed > all.len() as u64, "{name}: {disturbed} met others");
    found
}

fn with(concurrency: Concurrency, isolation: Isolation) -> TransactionOptions {
    TransactionOptions { concurrency, isolation, ..TransactionOptions::default() }
}

#[test]
fn serializable_histories_have_no_anomaly() {
    for concurrency in [Concurrency::Pessimistic, Concurrency::Optimistic] {
        for locking in [false, true] {
            let options = with(concurrency, Isolation::Serializable);
            let name = format!("serializable {concurrency:?} {locking}");
            assert_eq!(histories(&name, options, locking, None), 0);
        }
    }
}

#[test]
fn snapshots_allow_write_skew_and_nothing_worse() {
    let mut found = 0;
    for concurrency in [Concurrency::Pessimistic, Concurrency::Optimistic] {
        for locking in [false, true] {
            let options = with(concurrency, Isolation::RepeatableRead);
            let name = format!("repeatable read {concurrency:?} {locking}");
            found += histories(&name, options, locking, Some(Anomaly::WriteSkew));
        }
    }
    // Or the histories would be too tame to tell anything.
    assert!(found > 0 || std::env::var_os("SHALE_SEED").is_some());
}

#[test]
fn lower_levels_allow_read_skew_and_nothing_worse() {
    let latest = TransactionOptions {
        on_conflict: OnConflict::Latest,
        ..with(Concurrency::Pessimistic, Isolation::RepeatableRead)
    };
    let mut found = histories("latest", latest, true, Some(Anomaly::ReadSkew));
    for concurrency in [Concurrency::Pessimistic, Concurrency::Optimistic] {
        let options = with(concurrency, Isolation::ReadCommitted);
        let name = format!("read committed {concurrency:?}");
        found += histories(&name, options, true, Some(Anomaly::ReadSkew));
    }
    assert!(found > 0 || std::env::var_os("SHALE_SEED").is_some());
}
