//! What a WAL record says: some operations of consecutive sequence numbers.
//!
//! ```text
//! payload := first_seq u64 | first_seq - durable_seq varint | op*
//! op      := kind u8 | tree varint | key bytes | value bytes    (put; range delete: value = end;
//!                                                                blob: value = blob reference)
//!          | kind u8 | tree varint | key bytes                  (delete)
//!          | 0x80                                               (nothing: takes a number only)
//! bytes   := length varint | that many bytes
//! ```
//!
//! The first operation has the sequence number `first_seq`, each other one the next number. Every
//! operation up to `durable_seq` was known to be durable when the record was appended; recovery
//! holds the log to it. A record without operations is written when a database is closed in good
//! order (with `durable_seq` = `first_seq` - 1, so that the whole log is known to be durable).
//! An operation that says nothing stands for a number that was used outside of the log, such as
//! that of an ingested table, so that the numbers in the log have no gaps.

use crate::base::coding::{Decoder, put_bytes, put_varint};
use crate::base::key::{KEY_BYTES_MAX, Kind, SEQ_MAX, SeqNo};

/// The kind byte of an operation that takes a sequence number and does nothing.
const NOTHING: u8 = 0x80;

/// Begins a payload: operations follow by [`put_op`] or as bytes that it made.
#[inline]
pub fn begin(out: &mut Vec<u8>, first_seq: SeqNo, durable_seq: SeqNo) {
    debug_assert!(durable_seq < first_seq);
    out.extend_from_slice(&first_seq.to_le_bytes());
    put_varint(out, first_seq - durable_seq);
}

/// Appends one operation. A delete has no value. Does not depend on what is before it.
#[inline]
pub fn put_op(out: &mut Vec<u8>, kind: Kind, tree: u32, key: &[u8], value: &[u8]) {
    debug_assert!(kind != Kind::Delete || value.is_empty());
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

    /// The sequence number that the next record starts with.
    pub fn next_seq(&self) -> SeqNo {
        self.first_seq + self.count
    }
}

/// The operations of a record, in order; those that do nothing are left out.
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

    /// The next operation; `Some(Ok(None))` for one that does nothing.
    #[inline]
    fn step(&mut self) -> Option<Result<Option<Op<'a>>, &'static str>> {
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
    fn decode(&mut self) -> Result<Option<Op<'a>>, &'static str> {
        const SHORT: &str = "the record ends inside an operation";
        let seq = self.seq;
        let byte = self.decoder.u8().ok_or(SHORT)?;
        self.seq += 1;
        if byte == NOTHING {
            return Ok(None);
        }
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
        Ok(Some(Op { seq, kind, tree, key, value }))
    }
}

impl<'a> Iterator for OpIter<'a> {
    type Item = Op<'a>;

    /// Parsing the [`WalBatch`] has checked that none of its operations is damaged.
    #[inline]
    fn next(&mut self) -> Option<Op<'a>> {
        loop {
            match self.step()? {
                Ok(Some(op)) => return Some(op),
                Ok(None) => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
