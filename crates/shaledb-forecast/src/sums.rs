//! A tree as a start of which only the sums of its levels are known, as a report of a run tells.

use crate::existing::Existing;
use crate::scenario::Scenario;
use crate::tree::{Tree, cost_of, key};
use shaledb::Codec;
use shaledb::base::config::LEVELS;
use shaledb::compaction::plan::Settings;
use shaledb::compaction::policy::LAST;
use shaledb::compaction::policy::chosen::{Choice, LevelCodecs};
use shaledb::table::meta::{TableMeta, Why};

/// What is known of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelSum {
    /// Its number.
    pub level: usize,
    /// Its tables, at least 1.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The codec of their blocks.
    pub codec: Codec,
    /// Whether it has a dictionary.
    pub dictionary: bool,
}

/// Tables with these sums: alike within a level, those of level 0 over all keys, those of another
/// beside each other. Levels that the engine does not have are left out.
pub fn existing(scenario: &Scenario, name: &str, sums: &[LevelSum]) -> Existing {
    let config = &scenario.config.tree;
    let settings = Settings {
        memtable_bytes: 1,
        table_bytes: 1,
        codecs: LevelCodecs::of_config(config),
        filter_bits: config.filter_bits,
        building: false,
    };
    let tree = Tree::new(scenario, settings);
    let live = scenario.start_bytes / scenario.row_bytes();
    let bottom = sums.iter().filter(|sum| sum.level > 0).map(|sum| sum.level).max();
    let mut levels = vec![Vec::new(); LEVELS];
    for sum in sums.iter().filter(|sum| sum.level < LEVELS && sum.bytes > 0) {
        let files = sum.files.max(1);
        let choice = Choice { codec: sum.codec, dictionary: sum.dictionary, why: Why::default() };
        let raw_row = tree.raw_bytes(1.0, 0.0, sum.level);
        let mut rows =
            sum.bytes as f64 / tree.file_bytes(raw_row, 1.0, sum.level, choice).max(1e-9);
        if Some(sum.level) == bottom {
            // No key is there twice.
            rows = rows.min(live);
        }
        let each = (rows / files as f64).round().max(1.0);
        let width = u64::MAX / files;
        let raw = tree.raw_bytes(each, 0.0, sum.level);
        for at in 0..files {
            let (start, end) =
                if sum.level == 0 { (0, u64::MAX) } else { (at * width, (at + 1) * width - 1) };
            // The newest table of level 0 is its first.
            let seq = if sum.level == 0 { 1 + files - at } else { 1 };
            let seq = if sum.level == LAST { 0 } else { seq };
            levels[sum.level].push(TableMeta {
                file_bytes: sum.bytes / files,
                smallest: key(start),
                largest: key(end),
                min_seq: seq,
                max_seq: seq,
                entries: each as u64,
                key_bytes: (each * scenario.key_bytes) as u64,
                value_bytes: (each * scenario.value_bytes) as u64,
                raw_bytes: raw as u64,
                data_bytes: (raw * cost_of(&scenario.costs, choice).ratio) as u64,
                codec: Some(sum.codec),
                ..TableMeta::default()
            });
        }
    }
    Existing { name: name.to_owned(), config: config.clone(), levels }
}
