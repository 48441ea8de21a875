//! Edits round-trip, their bytes are pinned, and unknown or damaged fields are judged.

use super::*;

fn meta() -> TableMeta {
    TableMeta {
        id: 77,
        file_bytes: 1 << 26,
        smallest: b"a".to_vec(),
        largest: b"mm".to_vec(),
        largest_exclusive: true,
        min_seq: 5,
        max_seq: 900,
        ingest_seq: 9,
        entries: 1000,
        deletes: 10,
        range_deletes: 2,
        key_bytes: 20_000,
        value_bytes: 300_000,
        blocks: 20,
        raw_bytes: 320_000,
        data_bytes: 160_000,
        blobs: vec![3, 70],
        codec: Some(Codec::Zstd(-3)),
        why: Why::CpuShort,
    }
}

fn edit() -> Edit {
    let codecs = Codecs { upper: Codec::Zlib(6), middle: Codec::Lz4, bottommost: Codec::Zstd(-5) };
    let config = TreeConfig { codecs, dictionary: true, filter_bits: 0, ..TreeConfig::default() };
    Edit {
        trees_dropped: vec![4, 9],
        trees_created: vec![
            (12, "t\u{e9}st".into(), config),
            (13, "b".into(), TreeConfig::default()),
        ],
        trees: vec![
            TreeEdit {
                tree: 12,
                removed: vec![(0, 5), (6, 1 << 40)],
                added: vec![(0, meta()), (3, TableMeta { id: 78, ..TableMeta::default() })],
                flushed_seq: Some(0),
            },
            TreeEdit { tree: 1, ..TreeEdit::default() },
        ],
        next_file: Some(100),
        next_tree: Some(14),
        last_seq: Some(SEQ_MAX),
        log_end: Some((17, u64::MAX)),
        log: Some(LogStart { file: 90, seq: 0 }),
        decided: vec![b"one".to_vec(), vec![0, 255]],
        prepared: vec![
            PreparedTables {
                xid: b"two".to_vec(),
                trees: vec![(12, vec![meta(), TableMeta { id: 79, ..meta() }]), (13, vec![])],
            },
            PreparedTables { xid: b"three".to_vec(), trees: vec![] },
        ],
        builds_begun: vec![12, 13],
        builds_ended: vec![1],
    }
}

fn encoded(edit: &Edit) -> Vec<u8> {
    let mut out = Vec::new();
    encode(edit, &mut out);
    out
}

#[test]
fn edits_round_trip() {
    assert_eq!(decode(&encoded(&edit())), Ok(edit()));
    assert_eq!(decode(&encoded(&Edit::default())), Ok(Edit::default()));
}

#[test]
fn the_bytes_are_these() {
    let small = Edit {
        trees: vec![TreeEdit {
            tree: 2,
            removed: vec![(1, 300)],
            flushed_seq: Some(9),
            ..TreeEdit::default()
        }],
        log: Some(LogStart { file: 5, seq: 0 }),
        ..Edit::default()
    };
    let expected = [
        1, // version
        3, 15, // tree
        1, 1, 2, // its number
        2, 7, 1, 1, 1, 2, 2, 0xac, 2, // removed: level 1, table 300
        4, 1, 9, // flushed_seq
        7, 1, 5, // the log's file
        8, 1, 0, // and sequence number
    ];
    assert_eq!(encoded(&small), expected);
}

/// A reader that does not know that they count as the table's entries must refuse the edit.
#[test]
fn range_deletes_of_ingested_tables_have_a_tag_of_their_own() {
    for (ingest_seq, tag) in [(0, 11), (9, 12)] {
        let meta = TableMeta { ingest_seq, range_deletes: 2, ..TableMeta::default() };
        let mut table = Vec::new();
        encode_table(&meta, &mut table);
        assert_eq!(decode_table(&table), Ok((0, meta)));
        assert!(table.windows(3).any(|field| field == [tag, 1, 2]), "{table:?}");
    }
}

#[test]
fn unknown_fields_are_skipped_or_refused() {
    for (tag, known) in [(200, true), (130, true), (127, false), (0, false)] {
        let mut bytes = encoded(&Edit { next_file: Some(7), ..Edit::default() });
        bytes.extend_from_slice(&[tag, 3, 1, 2, 3]);
        let decoded = decode(&bytes);
        if known {
            assert_eq!(decoded.unwrap().next_file, Some(7));
        } else {
            assert!(decoded.unwrap_err().contains("unknown to this version"));
        }
    }
    let mut table = Vec::new();
    encode_table(&meta(), &mut table);
    table.extend_from_slice(&[250, 0]);
    assert_eq!(decode_table(&table), Ok((0, meta())));
    table.extend_from_slice(&[100, 0]);
    assert!(decode_table(&table).is_err());
}

#[test]
fn every_cut_and_every_flip_is_an_edit_or_an_error() {
    let bytes = encoded(&edit());
    for end in 0..bytes.len() {
        let _ = decode(&bytes[..end]);
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            if let Ok(edit) = decode(&bad) {
                // What is accepted can be written again.
                assert!(decode(&encoded(&edit)).is_ok());
            }
        }
    }
}

#[test]
fn impossible_values_are_refused() {
    let refused = |edit: &Edit| decode(&encoded(edit)).is_err();
    let tree = |added, removed| Edit {
        trees: vec![TreeEdit { tree: 1, added, removed, flushed_seq: None }],
        ..Edit::default()
    };
    assert!(refused(&tree(vec![(LEVELS, meta())], vec![])));
    assert!(refused(&tree(vec![], vec![(LEVELS, 1)])));
    let long = TableMeta { largest: vec![0; KEY_BYTES_MAX + 1], ..meta() };
    assert!(refused(&tree(vec![(0, long)], vec![])));
    assert!(refused(&tree(vec![(0, TableMeta { max_seq: SEQ_MAX + 1, ..meta() })], vec![])));
    let config = TreeConfig { block_bytes: 3, ..TreeConfig::default() };
    let created = vec![(1, "x".to_owned(), config)];
    assert!(refused(&Edit { trees_created: created, ..Edit::default() }));
    assert!(decode(&[2]).unwrap_err().contains("version is 2"));
    assert!(decode(&[]).is_err());
    assert!(decode(&[1, 7, 1, 5]).unwrap_err().contains("half"));
}
