//! What a WAL record says: some operations of consecutive sequence numbers.
//!
//! ```text
//! payload := first_seq u64 | first_seq - durable_seq varint | op*
//! op      := kind u8 | tree varint | key bytes | value bytes    (put; range delete: value = end;
//!                                                                blob: value = blob reference)
//!          | kind u8 | tree varint | key bytes                  (delete)
//!          | 0x80                                               (nothing: takes a number only)
//!          | 0x81 | xid bytes | ops bytes                       (prepare)
//!          | 0x82 | xid bytes                                   (commit what was prepared)
//!          | 0x83 | xid bytes                                   (roll back what was prepared)
//! bytes   := length varint | that many bytes
//! ```
//!
//! The first operation has the sequence number `first_seq`, each other one the next number. Every
//! operation up to `durable_seq` was known to be durable when the record was appended; recovery
//! holds the log to it. A record without operations is written when a database is closed in good
//! order (with `durable_seq` = `first_seq` - 1, so that the whole log is known to be durable).
//! An operation that says nothing stands for a number that was used outside of the log, such as
//! that of an ingested table, so that the numbers in the log have no gaps.
//!
//! A prepare holds the operations of a transaction that is not decided yet: `ops` are encoded as
//! above, only of kinds 0, 1, 2 and 4, and by tree: first range deletes, then the others, ascending
//! by key, each key once. It takes one number, and so does its commit, which all its operations
//! then have.

use crate::base::coding::{Decoder, put_bytes, put_varint};
use crate::base::key::{KEY_BYTES_MAX, Kind, SEQ_MAX, SeqNo};

const SHORT: &str = "the record ends inside an operation";

/// The kind byte of an operation that takes a sequence number and does nothing.
const NOTHING: u8 = 0x80;

/// Begins a payload: operations follow by [`put_op`] or as bytes that it made.
#[inline]
pub fn begin(out: &mut Vec<u8>, first_seq: SeqNo, durable_seq: SeqNo) {
    debug_assert!(durable_seq < first_seq);
    debug_assert!(first_seq <= SEQ_MAX);
    out.extend_from_slice(&first_seq.to_le_bytes());
    put_varint(out, first_seq - durable_seq);
}

/// Appends one operation. A delete has no value. Does not depend on what is before it.
#[inline]
pub fn put_op(out: &mut Vec<u8>, kind: Kind, tree: u32, key: &[u8], value: &[u8]) {
    debug_assert!(kind != Kind::Delete || value.is_empty());
    debug_assert!(kind != Kind::Merge, "no reader knows it");
    debug_assert!(key.len() <= KEY_BYTES_MAX);
    out.push(kind as u8);
    put_varint(out, u64::from(tree));
    put_bytes(out, key);
    if kind != Kind::Delete {
        put_bytes(out, value);
    }
}

/// Appends an operation that takes a sequence number and does nothing.
pub fn put_nothing(out: &mut Vec<u8>) {
    out.push(NOTHING);
}

/// The longest name of a prepared transaction, in bytes.
pub const XID_BYTES_MAX: usize = 256;

/// The kind bytes of what concerns transactions in two phases.
const PREPARE: u8 = 0x81;
const COMMIT: u8 = 0x82;
const ROLLBACK: u8 = 0x83;

/// Appends the prepare of a transaction with these operations, made by [`put_op`].
pub fn put_prepare(out: &mut Vec<u8>, xid: &[u8], ops: &[u8]) {
    assert!((1..=XID_BYTES_MAX).contains(&xid.len()));
    debug_assert_eq!(check_prepared(ops), Ok(()));
    out.push(PREPARE);
    put_bytes(out, xid);
    put_bytes(out, ops);
}

/// Appends the commit of a prepared transaction, or its rollback.
pub fn put_decision(out: &mut Vec<u8>, xid: &[u8], commit: bool) {
    assert!((1..=XID_BYTES_MAX).contains(&xid.len()));
    out.push(if commit { COMMIT } else { ROLLBACK });
    put_bytes(out, xid);
}

/// One operation of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op<'a> {
    /// Its sequence number.
    pub seq: SeqNo,
    /// What it does.
    pub kind: Kind,
    /// The tree it does it to.
    pub tree: u32,
    /// The key, or the start of a range.
    pub key: &'a [u8],
    /// The value, the end of a range, or a blob reference; empty for a delete.
    pub value: &'a [u8],
}

/// Part of a record: an operation, or what becomes of a transaction in two phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// An operation.
    Op(Op<'a>),
    /// A transaction is prepared.
    Prepare {
        /// The number of the prepare.
        seq: SeqNo,
        /// Its name.
        xid: &'a [u8],
        /// Its operations; see [`prepared_ops`].
        ops: &'a [u8],
    },
    /// A prepared transaction is committed.
    Commit {
        /// The number that its operations have.
        seq: SeqNo,
        /// Its name.
        xid: &'a [u8],
    },
    /// A prepared transaction is rolled back.
    Rollback {
        /// The number of the rollback.
        seq: SeqNo,
        /// Its name.
        xid: &'a [u8],
    },
}

/// The operations of a prepared transaction, which all get the number `seq`.
pub fn prepared_ops(ops: &[u8], seq: SeqNo) -> impl Iterator<Item = Op<'_>> {
    OpIter::new(ops, seq).map(move |op| Op { seq, ..op })
}

/// Checks the operations of a prepare: sound, and no key of a tree twice.
fn check_prepared(ops: &[u8]) -> Result<(), &'static str> {
    let mut rest = OpIter::new(ops, 1);
    let mut last: Option<(u32, bool, &[u8])> = None;
    while let Some(byte) = rest.decoder.u8() {
        // Unread: it may be another prepare, of another, and so on, which no stack is deep enough
        // for. A search for records behind damage parses what may be anything.
        if byte >= NOTHING {
            return Err("a prepared transaction holds what is no operation");
        }
        let op = rest.decode_op(byte, 1)?;
        let order = (op.tree, op.kind != Kind::RangeDelete, op.key);
        // Range deletes may begin anywhere, and repeat.
        let wrong = last.is_some_and(|last| match order.1 {
            true => last >= order,
            false => (last.0, last.1) > (order.0, order.1),
        });
        if wrong {
            return Err("the operations of a prepared transaction are out of order");
        }
        last = Some(order);
    }
    Ok(())
}

/// The decoded head of a record, and its operations.
#[derive(Clone, Copy, Debug)]
pub struct WalBatch<'a> {
    /// The sequence number of the first operation; without operations, that of the next one.
    pub first_seq: SeqNo,
    /// Every operation up to this number was durable when the record was appended.
    pub durable_seq: SeqNo,
    /// How many sequence numbers the record takes.
    pub count: u64,
    /// The operations.
    pub ops: OpIter<'a>,
}

impl<'a> WalBatch<'a> {
    /// Decodes a payload and checks all of it. The error says what is wrong.
    pub fn parse(payload: &'a [u8]) -> Result<WalBatch<'a>, &'static str> {
        let mut decoder = Decoder::new(payload);
        let (first_seq, lag) = decoder
            .u64()
            .zip(decoder.varint())
            .ok_or("the record ends inside its sequence numbers")?;
        if first_seq == 0 || first_seq > SEQ_MAX || lag == 0 || lag > first_seq {
            return Err("the record's sequence numbers contradict each other");
        }
        let ops = OpIter { decoder, seq: first_seq };
        let mut rest = ops;
        while let Some(op) = rest.step() {
            op?;
        }
        if rest.seq > SEQ_MAX {
            return Err("the record's sequence numbers are too large");
        }
        let durable_seq = first_seq - lag;
        Ok(WalBatch { first_seq, durable_seq, count: rest.seq - first_seq, ops })
    }

    /// All that the record says, in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let mut ops = self.ops;
        std::iter::from_fn(move || {
            loop {
                match ops.step()? {
                    Ok(Some(entry)) => return Some(entry),
                    Ok(None) => {}
                    Err(_) => return None,
                }
            }
        })
    }

    /// The sequence number that the next record starts with.
    pub fn next_seq(&self) -> SeqNo {
        self.first_seq + self.count
    }
}

/// The operations of a record, in order; what is none is left out.
#[derive(Clone, Copy, Debug)]
pub struct OpIter<'a> {
    decoder: Decoder<'a>,
    seq: SeqNo,
}

impl<'a> OpIter<'a> {
    /// The operations that [`put_op`] wrote one after the other, the first of which has the
    /// number `first_seq`. Ends early if they are damaged.
    pub fn new(ops: &'a [u8], first_seq: SeqNo) -> OpIter<'a> {
        OpIter { decoder: Decoder::new(ops), seq: first_seq }
    }

    /// The next entry; `Some(Ok(None))` for an operation that does nothing.
    #[inline]
    fn step(&mut self) -> Option<Result<Option<Entry<'a>>, &'static str>> {
        if self.decoder.is_empty() {
            return None;
        }
        let op = self.decode();
        if op.is_err() {
            self.decoder = Decoder::new(&[]);
        }
        Some(op)
    }

    #[inline]
    fn decode(&mut self) -> Result<Option<Entry<'a>>, &'static str> {
        let seq = self.seq;
        let byte = self.decoder.u8().ok_or(SHORT)?;
        self.seq += 1;
        if byte >= NOTHING {
            return self.decode_special(byte, seq);
        }
        Ok(Some(Entry::Op(self.decode_op(byte, seq)?)))
    }

    /// The operation that begins with this byte.
    #[inline]
    fn decode_op(&mut self, byte: u8, seq: SeqNo) -> Result<Op<'a>, &'static str> {
        let kind = match Kind::from_u8(byte) {
            Some(kind) if kind != Kind::Merge => kind,
            _ => return Err("the record has an operation of an unknown kind"),
        };
        let tree = self.decoder.varint().ok_or(SHORT)?;
        let tree = u32::try_from(tree).map_err(|_| "an operation's tree number is too large")?;
        let key = self.decoder.bytes().ok_or(SHORT)?;
        if key.len() > KEY_BYTES_MAX {
            return Err("an operation's key is too long");
        }
        let value: &[u8] =
            if kind == Kind::Delete { &[] } else { self.decoder.bytes().ok_or(SHORT)? };
        Ok(Op { seq, kind, tree, key, value })
    }

    #[cold]
    fn decode_special(&mut self, byte: u8, seq: SeqNo) -> Result<Option<Entry<'a>>, &'static str> {
        if byte == NOTHING {
            return Ok(None);
        }
        if byte > ROLLBACK {
            return Err("the record has an operation of an unknown kind");
        }
        let xid = self.decoder.bytes().ok_or(SHORT)?;
        if xid.is_empty() || xid.len() > XID_BYTES_MAX {
            return Err("the name of a prepared transaction is empty or too long");
        }
        Ok(Some(match byte {
            COMMIT => Entry::Commit { seq, xid },
            ROLLBACK => Entry::Rollback { seq, xid },
            _ => {
                let ops = self.decoder.bytes().ok_or(SHORT)?;
                check_prepared(ops)?;
                Entry::Prepare { seq, xid, ops }
            }
        }))
    }
}

impl<'a> Iterator for OpIter<'a> {
    type Item = Op<'a>;

    /// Parsing the [`WalBatch`] has checked that none of its operations is damaged.
    #[inline]
    fn next(&mut self) -> Option<Op<'a>> {
        loop {
            match self.step()? {
                Ok(Some(Entry::Op(op))) => return Some(op),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
