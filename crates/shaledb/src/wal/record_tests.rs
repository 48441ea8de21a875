//! The bytes of headers and frames, pinned, and what checksums are bound to.

use super::*;

fn framed(seal: Seal, offset: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Framer::new(seal, offset).frame(&mut out, |out| out.extend_from_slice(payload));
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_are_these() {
    let seal = Seal::new(WAL, 7);
    assert_eq!(hex(&file_header(WAL, seal)), "5348414c4557414c02000000c823bfe6");
    let first = file_header(Format { version: 1, ..WAL }, seal);
    assert_eq!(hex(&first), "5348414c4557414c010000003f56c4db");
    assert_eq!(check_file_header(WAL, seal, &first), Header::Good);
    let record = framed(seal, 16, b"\x01\0\0\0\0\0\0\0\x01");
    assert_eq!(hex(&record), "1939a9fb09000000010000000000000001");
}

#[test]
fn a_checksum_belongs_to_one_file_and_place() {
    let (a, b) = (Seal::new(WAL, 7), Seal::new(WAL, 8));
    let other = Seal::new(Format { magic: *b"SHALEMAN", version: 1 }, 7);
    let payload = b"123456789";
    let record = framed(a, 16, payload);
    assert_eq!(record, framed(a, 16, payload));
    for (seal, offset) in [(b, 16), (other, 16), (a, 17), (a, 16 + 512), (b, 528)] {
        assert_ne!(record[..4], framed(seal, offset, payload)[..4]);
    }
}

#[test]
fn later_records_of_a_buffer_know_their_place() {
    let seal = Seal::new(WAL, 3);
    let mut both = Vec::new();
    let framer = Framer::new(seal, 100);
    framer.frame(&mut both, |out| out.extend_from_slice(b"first one"));
    let second = 100 + both.len() as u64;
    framer.frame(&mut both, |out| out.extend_from_slice(b"second one"));
    assert!(both.ends_with(&framed(seal, second, b"second one")));
    assert!(seal.is_of(100, &both) && seal.is_of(100, b""));
    assert!(!seal.is_of(101, &both) && !Seal::new(WAL, 4).is_of(100, &both));
    for end in (1..both.len()).filter(|end| 100 + *end as u64 != second) {
        assert!(!seal.is_of(100, &both[..end]), "cut at {end}");
    }
}

#[test]
fn headers_are_judged() {
    let seal = Seal::new(WAL, 7);
    let header = file_header(WAL, seal);
    assert_eq!(check_file_header(WAL, seal, &header), Header::Good);
    assert_eq!(check_file_header(WAL, Seal::new(WAL, 8), &header), Header::Damaged);
    assert_eq!(check_file_header(WAL, seal, &header[..15]), Header::Damaged);
    for at in 0..FILE_HEADER_BYTES {
        let mut bad = header;
        bad[at] ^= 4;
        assert_eq!(check_file_header(WAL, seal, &bad), Header::Damaged, "{at}");
    }
    let newer = Format { version: 9, ..WAL };
    let header = file_header(newer, seal);
    assert_eq!(check_file_header(WAL, seal, &header), Header::Unknown(9));
}

#[test]
#[should_panic(expected = "contains")]
fn an_empty_payload_is_a_mistake() {
    framed(Seal::new(WAL, 1), 16, b"");
}
