//! The order of encoded columns is the order of the columns; what was written is read.

use super::*;
use crate::generate::Random;
use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq, PartialOrd)]
struct Columns {
    a: u8,
    b: i32,
    text: Vec<u8>,
    c: u64,
    d: i64,
    e: f64,
    f: u16,
    rest: Vec<u8>,
}

fn encode(columns: &Columns) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.u64(7).start();
    encoder.u8(columns.a).i32(columns.b).text(&columns.text).u64(columns.c);
    encoder.i64(columns.d).f64(columns.e).u16(columns.f).rest(&columns.rest);
    encoder.bytes().to_vec()
}

fn decode(bytes: &[u8]) -> Option<Columns> {
    let mut decoder = Decoder::new(bytes);
    let (a, b) = (decoder.u8()?, decoder.i32()?);
    let mut text = Vec::new();
    decoder.text(&mut text)?;
    let (c, d, e) = (decoder.u64()?, decoder.i64()?, decoder.f64()?);
    let f = decoder.u16()?;
    let rest = decoder.rest().to_vec();
    assert!(decoder.is_empty());
    Some(Columns { a, b, text, c, d, e, f, rest })
}

/// Few different values of each column, so that the later columns decide often.
fn any(random: &mut Random) -> Columns {
    let mut pick = |bound: u64| random.below(bound) as usize;
    let texts: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"\0\x01", b"a", b"a\0b", b"\xff"];
    Columns {
        a: pick(2) as u8 * 255,
        b: [i32::MIN, -1, 0, 1, i32::MAX][pick(5)],
        text: texts[pick(7)].to_vec(),
        c: [0, 1, 255, 256, u64::MAX][pick(5)],
        d: [i64::MIN, -256, 0, 3, i64::MAX][pick(5)],
        e: [f64::NEG_INFINITY, -1.5, 0.0, 1e-300, 2.0][pick(5)],
        f: [0, 256][pick(2)],
        rest: texts[pick(7)].to_vec(),
    }
}

#[test]
fn bytes_compare_as_columns_do() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let (one, other) = (any(&mut random), any(&mut random));
        let (a, b) = (encode(&one), encode(&other));
        assert_eq!(one.partial_cmp(&other), Some(a.cmp(&b)), "{one:?} {other:?}");
        assert_eq!(decode(&a), Some(one));
    }
}

#[test]
fn a_falling_column_turns_the_order() {
    let bytes = |value| Encoder::new().u64_descending(value).bytes().to_vec();
    assert_eq!(bytes(3).cmp(&bytes(4)), Ordering::Greater);
    assert_eq!(Decoder::new(&bytes(3)).u64_descending(), Some(3));
}

#[test]
fn cut_bytes_are_noticed() {
    let columns = any(&mut Random::new(2));
    let bytes = encode(&columns);
    for end in 0..bytes.len() - columns.rest.len() {
        assert_eq!(decode(&bytes[..end]), None, "{end}");
    }
    assert_eq!(Decoder::new(b"a\0\x02").text(&mut Vec::new()), None);
}
