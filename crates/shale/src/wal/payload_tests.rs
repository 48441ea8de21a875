//! Payloads round-trip, and damaged ones are refused.

use super::*;

fn sample() -> Vec<u8> {
    let mut out = Vec::new();
    begin(&mut out, 1000, 990);
    put_op(&mut out, Kind::Put, 1, b"key", b"value");
    put_nothing(&mut out);
    put_op(&mut out, Kind::Delete, 300, b"", b"");
    put_op(&mut out, Kind::RangeDelete, 2, b"a", b"b");
    put_op(&mut out, Kind::Blob, 2, b"big", b"reference");
    out
}

#[test]
fn operations_round_trip() {
    let payload = sample();
    let batch = WalBatch::parse(&payload).unwrap();
    assert_eq!((batch.first_seq, batch.durable_seq, batch.count), (1000, 990, 5));
    assert_eq!(batch.next_seq(), 1005);
    let op = |seq, kind, tree, key, value| Op { seq, kind, tree, key, value };
    let ops: Vec<Op<'_>> = batch.ops.collect();
    let expected = [
        op(1000, Kind::Put, 1, &b"key"[..], &b"value"[..]),
        op(1002, Kind::Delete, 300, b"", b""),
        op(1003, Kind::RangeDelete, 2, b"a", b"b"),
        op(1004, Kind::Blob, 2, b"big", b"reference"),
    ];
    assert_eq!(ops, expected);
    let bare = OpIter::new(&payload[9..], 1000);
    assert_eq!(bare.collect::<Vec<_>>(), expected);
}

#[test]
fn every_cut_inside_an_operation_is_refused() {
    let payload = sample();
    let mut whole = 0;
    for end in 0..payload.len() {
        match WalBatch::parse(&payload[..end]) {
            Ok(batch) => {
                // Cut between two operations.
                assert!(batch.count < 5);
                whole += 1;
            }
            Err(what) => assert!(what.contains("ends inside"), "{what}"),
        }
    }
    assert_eq!(whole, 5);
}

#[test]
fn contradictions_are_refused() {
    let parse = |first: u64, lag: u64, op: &[u8]| {
        let mut out = first.to_le_bytes().to_vec();
        put_varint(&mut out, lag);
        out.extend_from_slice(op);
        WalBatch::parse(&out).map(|batch| batch.count)
    };
    assert_eq!(parse(5, 5, &[]), Ok(0));
    assert_eq!(parse(5, 1, &[NOTHING]), Ok(1));
    assert!(parse(0, 0, &[]).is_err());
    assert!(parse(5, 0, &[]).is_err());
    assert!(parse(5, 6, &[]).is_err());
    assert!(parse(SEQ_MAX + 1, 1, &[]).is_err());
    assert!(parse(SEQ_MAX, 1, &[NOTHING, NOTHING]).is_err());
    assert!(parse(5, 1, &[3, 1, 0, 0]).is_err(), "merge is not known yet");
    assert!(parse(5, 1, &[77, 1, 0, 0]).is_err());
    assert!(parse(5, 1, &[0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]).is_err(), "tree number");
}
