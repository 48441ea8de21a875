//! What a transaction is told when it and others are in each other's way.

use super::key::SeqNo;
use serde::Serialize;
use std::fmt;

/// One of the transactions of a [`Deadlock`]: what it waited for, and for whom.
///
/// ```
/// let edge = shaledb::DeadlockEdge {
///     transaction: 7,
///     writes: 2,
///     lock: "a shared lock on key `b` of tree `t`".to_owned(),
///     holder: 9,
/// };
/// assert!(edge.to_string().contains("transaction 7 (2 writes) waits for a shared lock"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadlockEdge {
    /// The number of the transaction; later ones have larger numbers.
    pub transaction: u64,
    /// How many writes it had made.
    pub writes: u64,
    /// The lock it asked for, in words.
    pub lock: String,
    /// The transaction that it waited for.
    pub holder: u64,
}

impl fmt::Display for DeadlockEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeadlockEdge { transaction, writes, lock, holder } = self;
        let plural = if *writes == 1 { "" } else { "s" };
        write!(
            f,
            "transaction {transaction} ({writes} write{plural}) waits for {lock}, which \
             transaction {holder} holds or asked for before"
        )
    }
}

/// Transactions each of which waited for the next, and the last for the first; one had to give way.
///
/// ```
/// # let options = shaledb::OpenOptions { env: shaledb::Env::memory(), ..Default::default() };
/// # let db = shaledb::Db::open_in("/db", shaledb::Config::default(), options)?;
/// # let tree = db.tree_or_create("t")?;
/// use shaledb::{Error, TransactionOptions};
///
/// let mut a = db.begin(TransactionOptions::default())?;
/// let mut b = db.begin(TransactionOptions::default())?;
/// a.put(&tree, b"x", b"1")?;
/// b.put(&tree, b"y", b"1")?;
/// let failed = std::thread::scope(|scope| {
///     let tree = &tree;
///     let other = scope.spawn(move || a.put(tree, b"y", b"2").err());
///     let own = b.put(tree, b"x", b"2").err();
///     drop(b); // so that the other can go on, if it is not the victim
///     other.join().unwrap().or(own)
/// });
/// let Some(Error::Deadlock(deadlock)) = failed else { panic!("{failed:?}") };
/// assert_eq!(deadlock.waits.len(), 2);
/// println!("{deadlock}");
/// # Ok::<(), shaledb::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    /// The transactions, each waiting for the next.
    pub waits: Vec<DeadlockEdge>,
    /// The one that had to give way: the one with the fewest writes and locks, and of those that
    /// have as many the one that came last into the circle.
    pub victim: u64,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for wait in &self.waits {
            write!(f, "{wait}; ")?;
        }
        write!(f, "transaction {} gave way", self.victim)
    }
}

/// The words for a key or a range of keys of a tree.
pub(crate) fn keys_text(lower: &[u8], upper: Option<Option<&[u8]>>, tree: &str) -> String {
    let lower = short(lower);
    match upper {
        None => format!("key `{lower}` of tree `{tree}`"),
        Some(None) => format!("the keys from `{lower}` on of tree `{tree}`"),
        Some(Some(upper)) => {
            format!("the keys from `{lower}` to before `{}` of tree `{tree}`", short(upper))
        }
    }
}

/// A key as text, cut if it is long.
fn short(key: &[u8]) -> String {
    const BYTES: usize = 64;
    let shown = key.get(..BYTES).unwrap_or(key);
    // So that programs find its end.
    let text = shown.escape_ascii().to_string().replace('`', "\\x60");
    if shown.len() < key.len() { text + "..." } else { text }
}

/// The words for a change since a snapshot.
pub(crate) fn changed_text(keys: &str, since: SeqNo) -> String {
    format!(
        "another transaction changed {keys} after this one's snapshot (sequence number {since})"
    )
}
