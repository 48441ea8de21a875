//! The properties of a table as its file holds them: what [`TableMeta`] says, without the file's
//! number and length, and without `ingest_seq`, which is given after the file is written; and the
//! number of the tree. With them a table can be taken into a tree though the manifest is lost.
//!
//! ```text
//! properties := tree | smallest bytes | largest bytes | largest_exclusive u8
//!             | min_seq | max_seq | entries | deletes | range_deletes | key_bytes | value_bytes
//!             | blocks | raw_bytes | data_bytes | count of blobs | blob ids | chosen?
//! chosen     := codec u8 | its level u8 | why
//! ```
//!
//! `chosen` is there if the engine chose the codec.
//!
//! bytes := length varint and that many bytes; all other numbers are varints.

use crate::base::coding::{Decoder, put_bytes, put_varint};
use crate::base::config::Codec;
use crate::base::ranges::{Fragment, RangeDeletes};
use crate::table::meta::{TableMeta, Why};

/// The properties' bytes.
pub fn encode(meta: &TableMeta, tree: u32) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, tree.into());
    put_bytes(&mut out, &meta.smallest);
    put_bytes(&mut out, &meta.largest);
    out.push(meta.largest_exclusive.into());
    let numbers = [
        meta.min_seq,
        meta.max_seq,
        meta.entries,
        meta.deletes,
        meta.range_deletes,
        meta.key_bytes,
        meta.value_bytes,
        meta.blocks,
        meta.raw_bytes,
        meta.data_bytes,
        meta.blobs.len() as u64,
    ];
    for number in numbers.into_iter().chain(meta.blobs.iter().copied()) {
        put_varint(&mut out, number);
    }
    if let Some(codec) = meta.codec {
        out.extend_from_slice(&codec.encode());
        put_varint(&mut out, meta.why.number().into());
    }
    out
}

/// Reads the tree's number and the properties; `None` if the bytes are not what [`encode`] writes.
pub fn decode(bytes: &[u8]) -> Option<(u32, TableMeta)> {
    let mut decoder = Decoder::new(bytes);
    let tree = u32::try_from(decoder.varint()?).ok()?;
    let smallest = decoder.bytes()?.to_vec();
    let largest = decoder.bytes()?.to_vec();
    let largest_exclusive = match decoder.u8()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let mut meta = TableMeta { smallest, largest, largest_exclusive, ..TableMeta::default() };
    for field in [
        &mut meta.min_seq,
        &mut meta.max_seq,
        &mut meta.entries,
        &mut meta.deletes,
        &mut meta.range_deletes,
        &mut meta.key_bytes,
        &mut meta.value_bytes,
        &mut meta.blocks,
        &mut meta.raw_bytes,
        &mut meta.data_bytes,
    ] {
        *field = decoder.varint()?;
    }
    for _ in 0..decoder.varint()? {
        meta.blobs.push(decoder.varint()?);
    }
    if !decoder.is_empty() {
        let codec = [decoder.u8()?, decoder.u8()?];
        meta.codec = Some(Codec::decode(&codec)?);
        meta.why = Why::of_number(decoder.varint()?);
    }
    decoder.is_empty().then_some((tree, meta))
}

/// Adds range deletes to what the entries of a table add up to (`min_seq` is the largest number if
/// there are none), and brings the blobs into order.
pub fn complete(meta: &mut TableMeta, ranges: &RangeDeletes) {
    let fragments = ranges.fragments();
    meta.range_deletes = fragments.len() as u64;
    if let (Some(first), Some(last)) = (fragments.first(), fragments.last()) {
        if meta.entries == 0 || first.start < meta.smallest {
            meta.smallest.clone_from(&first.start);
        }
        if meta.entries == 0 || last.end > meta.largest {
            meta.largest.clone_from(&last.end);
            meta.largest_exclusive = true;
        }
    }
    for &seq in fragments.iter().flat_map(|fragment| &fragment.seqs) {
        meta.min_seq = meta.min_seq.min(seq);
        meta.max_seq = meta.max_seq.max(seq);
    }
    meta.blobs.sort_unstable();
    meta.blobs.dedup();
}

/// Range deletes as bytes: count of fragments varint, then for each: start bytes, end bytes, count
/// of sequence numbers varint, the numbers (newest first) as varints.
pub fn encode_ranges(ranges: &RangeDeletes) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, ranges.fragments().len() as u64);
    for fragment in ranges.fragments() {
        put_bytes(&mut out, &fragment.start);
        put_bytes(&mut out, &fragment.end);
        put_varint(&mut out, fragment.seqs.len() as u64);
        for &seq in &fragment.seqs {
            put_varint(&mut out, seq);
        }
    }
    out
}

/// Reads what [`encode_ranges`] wrote; `None` if the bytes are anything else. It takes memory as
/// the bytes do: keys are not copied for each number, and fragments that overlap are not cut.
pub fn decode_ranges(bytes: &[u8]) -> Option<RangeDeletes> {
    let mut decoder = Decoder::new(bytes);
    let mut fragments = Vec::new();
    for _ in 0..decoder.varint()? {
        let (start, end) = (decoder.bytes()?.to_vec(), decoder.bytes()?.to_vec());
        let mut seqs = Vec::new();
        for _ in 0..decoder.varint()? {
            seqs.push(decoder.varint()?);
        }
        fragments.push(Fragment { start, end, seqs });
    }
    if decoder.is_empty() { RangeDeletes::from_fragments(fragments) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ranges::RangeDelete;

    #[test]
    fn properties_round_trip() {
        let meta = TableMeta {
            smallest: b"a".to_vec(),
            largest: b"zz".to_vec(),
            largest_exclusive: true,
            min_seq: 3,
            max_seq: 1 << 50,
            entries: 10,
            deletes: 1,
            range_deletes: 2,
            key_bytes: 100,
            value_bytes: 1000,
            blocks: 4,
            raw_bytes: 1200,
            data_bytes: 800,
            blobs: vec![7, 9],
            ..TableMeta::default()
        };
        let chosen = TableMeta { codec: Some(Codec::Lz4), why: Why::CpuShort, ..meta.clone() };
        let without = encode(&meta, 300).len();
        for meta in [meta, chosen] {
            let bytes = encode(&meta, 300);
            assert_eq!(decode(&bytes), Some((300, meta)));
            for cut in (0..bytes.len()).filter(|cut| *cut != without) {
                assert_eq!(decode(&bytes[..cut]), None);
            }
        }
    }

    #[test]
    fn range_deletes_round_trip() {
        let delete =
            |start: &str, end: &str, seq| RangeDelete { start: start.into(), end: end.into(), seq };
        let ranges =
            RangeDeletes::new([delete("a", "f", 3), delete("c", "k", 9), delete("x", "y", 1)]);
        let bytes = encode_ranges(&ranges);
        assert_eq!(decode_ranges(&bytes), Some(ranges));
        for cut in 0..bytes.len() {
            assert_eq!(decode_ranges(&bytes[..cut]), None);
        }
    }

    /// What cannot have been written may say in few bytes what takes much memory.
    #[test]
    fn range_deletes_that_are_not_fragments_are_refused() {
        let decode = |fragments: &[(&[u8], &[u8], &[u64])]| {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, fragments.len() as u64);
            for (start, end, seqs) in fragments {
                put_bytes(&mut bytes, start);
                put_bytes(&mut bytes, end);
                put_varint(&mut bytes, seqs.len() as u64);
                seqs.iter().for_each(|&seq| put_varint(&mut bytes, seq));
            }
            decode_ranges(&bytes)
        };
        assert!(decode(&[(b"a", b"c", &[3, 1]), (b"c", b"d", &[2])]).is_some());
        assert_eq!(decode(&[(b"a", b"c", &[3]), (b"b", b"d", &[2])]), None, "they overlap");
        assert_eq!(decode(&[(b"c", b"d", &[3]), (b"a", b"b", &[2])]), None, "out of order");
        assert_eq!(decode(&[(b"a", b"a", &[3])]), None, "no length");
        assert_eq!(decode(&[(b"a", b"b", &[])]), None, "no delete");
        assert_eq!(decode(&[(b"a", b"b", &[2, 3])]), None, "the oldest first");
        assert_eq!(decode(&[(b"a", b"b", &[3, 3])]), None, "one twice");
        let (long, numbers) = (vec![7; 1 << 16], Vec::from_iter((1..1000u64).rev()));
        let found = decode(&[(b"", &long, &numbers)]).unwrap();
        assert!(found.memory_bytes() < 1 << 17, "{}", found.memory_bytes());
    }
}
