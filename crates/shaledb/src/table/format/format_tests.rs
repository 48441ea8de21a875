use super::compress::Compressor;
use super::*;
use crate::base::coding::checksum;
use crate::base::config::Codec;

#[test]
fn frames_round_trip_and_any_flip_is_found() {
    let raw: Vec<u8> = b"block ".repeat(40);
    for codec in [Codec::None, Codec::Lz4, Codec::Zlib(1), Codec::Zstd(1)] {
        let mut out = b"before".to_vec();
        let length = put_frame(&mut Compressor::new(codec), &raw, &mut out);
        assert_eq!(out.len(), 6 + length);
        let mut back = b"junk".to_vec();
        decode_frame(&out[6..], &mut back).unwrap();
        assert_eq!(back, raw);
        for at in 6..out.len() {
            out[at] ^= 4;
            assert!(decode_frame(&out[6..], &mut back).is_err());
            out[at] ^= 4;
        }
        for cut in 6..out.len() {
            assert!(decode_frame(&out[6..cut], &mut back).is_err());
        }
    }
}

#[test]
fn a_frame_is_these_bytes() {
    let mut out = Vec::new();
    put_plain_frame(b"abc", &mut out);
    assert_eq!(out[..8], [b'a', b'b', b'c', 3, 0, 0, 0, 0]);
    assert_eq!(out[8..], checksum(&out[..8]).to_le_bytes());
}

#[test]
fn footers_round_trip() {
    let at = |offset, bytes| Handle { offset, bytes };
    let footer = Footer {
        dictionary: Handle::default(),
        packed: false,
        filter: at(100, 20),
        range_deletes: at(120, 0),
        index: at(120, 30),
        properties: at(150, 50),
    };
    let bytes = footer.encode();
    assert_eq!(Footer::decode(&bytes, 264), Ok(footer));
    assert_eq!(&bytes[56..], b"SHALEtbl");
    assert!(Footer::decode(&bytes, 265).is_err());
    for index in 0..bytes.len() {
        let mut bytes = bytes;
        bytes[index] ^= 1;
        assert!(Footer::decode(&bytes, 264).is_err());
        assert!(Footer::decode(&bytes[..index], 264).is_err());
    }
    // A gap between sections would be bytes that no one checks.
    let gap = Footer { index: at(121, 29), ..footer }.encode();
    assert!(Footer::decode(&gap, 264).is_err());
    let huge = Footer { filter: at(u64::MAX - 3, 20), ..footer }.encode();
    assert!(Footer::decode(&huge, 264).is_err());
}

#[test]
fn footers_with_a_dictionary_are_of_version_2_or_3() {
    let at = |offset, bytes| Handle { offset, bytes };
    let footer = Footer {
        dictionary: at(0, 60),
        packed: false,
        filter: at(100, 20),
        range_deletes: at(120, 0),
        index: at(120, 30),
        properties: at(150, 50),
    };
    let bytes = footer.encode();
    assert_eq!((footer.version(), bytes[48]), (2, 2));
    assert_eq!(footer.data(), 60..100);
    assert_eq!(Footer::decode(&bytes, 264), Ok(footer));
    assert!(Footer::decode(&bytes, 265).is_err());
    let packed = Footer { packed: true, ..footer };
    assert_eq!((packed.version(), packed.encode()[48]), (3, 3));
    assert_eq!(Footer::decode(&packed.encode(), 264), Ok(packed));
    // Sealed again, so that not only the checksum finds it.
    for (index, value) in [(0, 101), (0, 0), (4, 101), (12, 21), (28, 1), (47, 1), (48, 1), (48, 4)]
    {
        let mut bytes = bytes;
        bytes[index] = value;
        let sum = checksum(&bytes[..52]).to_le_bytes();
        bytes[52..56].copy_from_slice(&sum);
        assert!(Footer::decode(&bytes, 264).is_err(), "{index}");
    }
}

#[test]
fn block_infos_round_trip() {
    let info = BlockInfo {
        handle: Handle { offset: 1 << 40, bytes: u32::MAX },
        entries: 77,
        tagged: true,
        deletes: false,
    };
    let mut bytes = Vec::new();
    info.encode(&mut bytes);
    assert_eq!(BlockInfo::decode(&bytes), Some(info));
    for cut in 0..bytes.len() {
        assert_eq!(BlockInfo::decode(&bytes[..cut]), None);
    }
    bytes.push(0);
    assert_eq!(BlockInfo::decode(&bytes), None);
}

#[test]
fn file_names_read_as_they_are_written() {
    let kinds = [FileKind::Table, FileKind::Wal, FileKind::Blob, FileKind::Run, FileKind::Manifest];
    for kind in kinds {
        for id in [0, 7, 123_456, 1_234_567, u64::MAX] {
            assert_eq!(parse_file_name(&file_name(kind, id)), Some((kind, id)));
        }
    }
    assert_eq!(file_name(FileKind::Table, 123), "000123.table");
    assert_eq!(parse_file_name("CURRENT"), Some((FileKind::Current, 0)));
    assert_eq!(parse_file_name("LOCK"), Some((FileKind::Lock, 0)));
    for name in ["", "1.table", "000001.tmp", "+00001.wal", "MANIFEST-", "MANIFEST-1", ".table"] {
        assert_eq!(parse_file_name(name), None, "{name}");
    }
}
