//! How the server is set up, by the makers' advice: docs/peers.md names their documents.

use shaledb_lab::setup::{Durability, Setup};
use shaledb_lab::stores::engine::Result;

/// A storage engine and the form of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Innodb,
    /// Pages of 8 KiB on disk that hold what 16 KiB in memory do.
    Compressed,
    /// Pages are compressed when they are written, and holes punched where they were longer.
    Punch,
    Myrocks,
    /// Shale as the server's engine: `mariadb/shale`.
    Shale,
}

const MEMTABLES: u64 = 4;
/// Of MyRocks: so many files of level 0 are merged.
const LEVEL0_FILES: u64 = 4;
const MIB: u64 = 1 << 20;
const LOG_BUFFER: u64 = 16 * MIB;
/// For the server's own tables, where the tables that are measured are elsewhere.
const SYSTEM_POOL: u64 = 8 * MIB;

/// zlib's own default; what `codecs` says if it names zlib and a level.
const ZLIB_LEVEL: u32 = 6;

impl Form {
    pub(crate) const ALL: [Form; 5] =
        [Form::Innodb, Form::Compressed, Form::Punch, Form::Myrocks, Form::Shale];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Innodb => "innodb",
            Form::Compressed => "innodb-compressed",
            Form::Punch => "innodb-punch",
            Form::Myrocks => "myrocks",
            Form::Shale => "shale-sql",
        }
    }

    pub(crate) fn named(name: &str) -> Result<Form> {
        Form::ALL.into_iter().find(|form| form.name() == name).ok_or_else(|| {
            format!(
                "there is no engine `{name}`; the engines are {}",
                Form::ALL.map(Form::name).join(", ")
            )
            .into()
        })
    }

    /// What comes after the columns of each table.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Form::Innodb => {
                "ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=latin1 COLLATE=latin1_bin"
            }
            Form::Compressed => {
                "ENGINE=InnoDB ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8 DEFAULT CHARSET=latin1 \
                 COLLATE=latin1_bin"
            }
            Form::Punch => {
                "ENGINE=InnoDB PAGE_COMPRESSED=1 DEFAULT CHARSET=latin1 COLLATE=latin1_bin"
            }
            Form::Myrocks => "ENGINE=ROCKSDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin",
            Form::Shale => "ENGINE=SHALE DEFAULT CHARSET=latin1 COLLATE=latin1_bin",
        }
    }

    /// The comment of an index: MyRocks keeps each in a column family of its own, and one that is
    /// read backwards in reverse order.
    pub(crate) fn family(self, name: &str) -> String {
        match self {
            Form::Myrocks => format!(" COMMENT '{name}'"),
            _ => String::new(),
        }
    }
}

/// What each connection sets: data are bytes and stay as they are.
pub(crate) const SESSION: &str = "SET NAMES latin1 COLLATE latin1_bin";

/// Options of the server, by name and value.
pub(crate) fn options(form: Form, setup: &Setup) -> Vec<(&'static str, String)> {
    let mut options = vec![
        ("transaction_isolation", "READ-COMMITTED".to_owned()),
        ("character_set_server", "latin1".to_owned()),
        ("collation_server", "latin1_bin".to_owned()),
        ("max_connections", "5000".to_owned()),
        ("max_prepared_stmt_count", "1000000".to_owned()),
        ("max_allowed_packet", (1024 * MIB).to_string()),
        ("key_buffer_size", MIB.to_string()),
        ("aria_pagecache_buffer_size", (8 * MIB).to_string()),
        ("query_cache_type", "0".to_owned()),
        ("query_cache_size", "0".to_owned()),
        ("innodb_flush_method", "O_DIRECT".to_owned()),
        ("innodb_file_per_table", "ON".to_owned()),
        ("innodb_doublewrite", "ON".to_owned()),
        ("innodb_fast_shutdown", "1".to_owned()),
    ];
    match form {
        Form::Myrocks => myrocks(setup, &mut options),
        Form::Shale => shale(setup, &mut options),
        _ => innodb(form, setup, &mut options),
    }
    options
}

fn innodb(form: Form, setup: &Setup, options: &mut Vec<(&'static str, String)>) {
    let pool = setup.memory.saturating_sub(LOG_BUFFER).max(SYSTEM_POOL);
    options.extend([
        ("innodb_buffer_pool_size", pool.to_string()),
        ("innodb_log_buffer_size", LOG_BUFFER.to_string()),
        ("innodb_log_file_size", setup.memory.clamp(96 * MIB, 4096 * MIB).to_string()),
        ("innodb_flush_log_at_trx_commit", commit(setup).to_owned()),
        ("innodb_io_capacity", "2000".to_owned()),
        ("innodb_io_capacity_max", "4000".to_owned()),
        ("innodb_flush_neighbors", "0".to_owned()),
        ("innodb_lock_wait_timeout", "50".to_owned()),
        ("innodb_buffer_pool_dump_at_shutdown", "ON".to_owned()),
        ("innodb_buffer_pool_dump_pct", "100".to_owned()),
        ("innodb_buffer_pool_load_at_startup", "ON".to_owned()),
    ]);
    if matches!(form, Form::Compressed | Form::Punch) {
        let codec = setup.codecs.bottommost.split_once(':').filter(|(name, _)| *name == "zlib");
        let level = codec.and_then(|(_, level)| level.parse().ok()).unwrap_or(ZLIB_LEVEL);
        options.push(("innodb_compression_level", level.to_string()));
    }
    match form {
        Form::Punch => options.push(("innodb_compression_algorithm", "zlib".to_owned())),
        Form::Compressed => options.push(("innodb_read_only_compressed", "OFF".to_owned())),
        _ => {}
    }
}

/// 2: a commit writes the log, which is synced once a second. 1: a commit syncs it.
fn commit(setup: &Setup) -> &'static str {
    match setup.durability {
        Durability::Process => "2",
        Durability::Power => "1",
    }
}

fn myrocks(setup: &Setup, options: &mut Vec<(&'static str, String)>) {
    let memtables = MEMTABLES * setup.memtable;
    let cache = setup.memory.saturating_sub(memtables).max(8 * MIB);
    options.extend([
        ("plugin_load_add", "ha_rocksdb".to_owned()),
        ("plugin_maturity", "gamma".to_owned()),
        ("innodb_buffer_pool_size", SYSTEM_POOL.to_string()),
        ("rocksdb_block_cache_size", cache.to_string()),
        ("rocksdb_db_write_buffer_size", memtables.to_string()),
        ("rocksdb_flush_log_at_trx_commit", commit(setup).to_owned()),
        // Else a commit leaves its log in the server's own memory.
        ("rocksdb_manual_wal_flush", "OFF".to_owned()),
        ("rocksdb_allow_concurrent_memtable_write", "ON".to_owned()),
        ("rocksdb_max_background_jobs", setup.background_threads.to_string()),
        ("rocksdb_max_subcompactions", "2".to_owned()),
        ("rocksdb_max_open_files", "-1".to_owned()),
        ("rocksdb_table_cache_numshardbits", "6".to_owned()),
        ("rocksdb_block_size", setup.block_bytes.to_string()),
        ("rocksdb_bytes_per_sync", (4 * MIB).to_string()),
        ("rocksdb_wal_bytes_per_sync", (4 * MIB).to_string()),
        ("rocksdb_compaction_sequential_deletes", "199999".to_owned()),
        ("rocksdb_compaction_sequential_deletes_window", "200000".to_owned()),
        ("rocksdb_compaction_sequential_deletes_count_sd", "ON".to_owned()),
        ("rocksdb_deadlock_detect", "ON".to_owned()),
        ("rocksdb_lock_wait_timeout", "50".to_owned()),
        ("rocksdb_default_cf_options", families(setup)),
    ]);
}

fn shale(setup: &Setup, options: &mut Vec<(&'static str, String)>) {
    let durability = match setup.durability {
        Durability::Process => "periodic",
        Durability::Power => "full",
    };
    options.extend([
        ("plugin_load_add", "ha_shale".to_owned()),
        ("plugin_maturity", "experimental".to_owned()),
        ("innodb_buffer_pool_size", SYSTEM_POOL.to_string()),
        ("shale_memory", setup.memory.to_string()),
        ("shale_durability", durability.to_owned()),
        ("shale_lock_wait_timeout", "50".to_owned()),
    ]);
    if let Some(codec) = setup.sql_codec() {
        options.push(("shale_compression", codec.to_owned()));
    }
    if let Some(limit) = setup.space_limit {
        options.push(("shale_space_limit", limit.to_string()));
    }
}

/// A codec by RocksDB's name, and its level. What is not known stays as it is: MyRocks refuses it.
fn codec(name: &str) -> (&str, Option<&str>) {
    let (name, level) = name.split_once(':').map_or((name, None), |(n, level)| (n, Some(level)));
    match name {
        "lz4" => ("kLZ4Compression", None),
        "zlib" => ("kZlibCompression", level),
        "zstd" => ("kZSTD", level),
        "none" => ("kNoCompression", None),
        _ => (name, level),
    }
}

/// As RocksDB's own peer has it: level 1 is as large as level 0 when it is merged.
fn level_base_bytes(setup: &Setup) -> u64 {
    LEVEL0_FILES * setup.memtable
}

/// As there.
fn file_bytes(setup: &Setup) -> u64 {
    setup.memtable.clamp(2 * MIB, 64 * MIB)
}

/// The options of all column families.
fn families(setup: &Setup) -> String {
    let codecs = &setup.codecs;
    let (upper, _) = codec(&codecs.upper);
    let (middle, middle_level) = codec(&codecs.middle);
    let (bottommost, bottommost_level) = codec(&codecs.bottommost);
    // With dynamic levels, entry 0 is level 0, entry 1 the first level in use below it, and so on.
    let levels = [upper, upper, upper, middle, middle, middle, middle].join(":");
    let level = |name: &str, level: Option<&str>, end: &str| {
        level.map_or(String::new(), |level| format!("{name}=-14:{level}:0{end};"))
    };
    let filter = match setup.filter_bits {
        0 => String::new(),
        bits => format!("filter_policy=bloomfilter:{bits}:false;whole_key_filtering=1;"),
    };
    format!(
        "write_buffer_size={};max_write_buffer_number={MEMTABLES};target_file_size_base={};\
         max_bytes_for_level_base={};level0_file_num_compaction_trigger={LEVEL0_FILES};\
         level_compaction_dynamic_level_bytes=true;compaction_pri=kMinOverlappingRatio;\
         optimize_filters_for_hits=true;compression={middle};compression_per_level={levels};\
         {}bottommost_compression={bottommost};{}block_based_table_factory={{\
         cache_index_and_filter_blocks=1;cache_index_and_filter_blocks_with_high_priority=1;\
         pin_l0_filter_and_index_blocks_in_cache=1;{filter}format_version=5}}",
        setup.memtable,
        file_bytes(setup),
        level_base_bytes(setup),
        level("compression_opts", middle_level, ""),
        level("bottommost_compression_opts", bottommost_level, ":0:0:true"),
    )
}

/// The whole configuration, as a report prints it.
pub(crate) fn configuration(form: Form, setup: &Setup) -> Vec<(String, String)> {
    let options = options(form, setup);
    let mut all: Vec<(String, String)> =
        options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut pair = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
    pair("log_bin", "OFF");
    pair("skip_networking", "ON (a socket)");
    pair("tables", form.table());
    pair("each connection", SESSION);
    if form == Form::Myrocks {
        pair("column families", "one for each index of LinkBench, id1_type in reverse order");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(form: Form, setup: &Setup, name: &str) -> Option<String> {
        let of = options(form, setup);
        of.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    #[test]
    fn all_forms_have_the_memory_that_was_given() {
        for memory in [32 << 20, 64 << 20, 96 << 20, 1 << 30] {
            let setup = Setup { memory, ..Setup::default() }.resolved();
            let number = |form, name| value(form, &setup, name).unwrap().parse::<u64>().unwrap();
            for form in [Form::Innodb, Form::Compressed, Form::Punch] {
                let pool = number(form, "innodb_buffer_pool_size");
                assert_eq!(pool + number(form, "innodb_log_buffer_size"), memory);
            }
            assert_eq!(number(Form::Shale, "shale_memory"), memory);
            let cache = number(Form::Myrocks, "rocksdb_block_cache_size");
            let memtables = number(Form::Myrocks, "rocksdb_db_write_buffer_size");
            assert_eq!(cache + memtables, memory);
            assert!(cache >= memory / 2, "{memory}: a cache of {cache}");
        }
    }

    /// As RocksDB's peer (`level_base_bytes`, `file_bytes` in its engine.rs).
    #[test]
    fn levels_of_myrocks_follow_its_memtable() {
        for (memtable, base, file) in [
            (MIB, 4 * MIB, 2 * MIB),
            (16 * MIB, 64 * MIB, 16 * MIB),
            (64 * MIB, 256 * MIB, 64 * MIB),
        ] {
            let setup = Setup { memtable, ..Setup::default() };
            let families = value(Form::Myrocks, &setup, "rocksdb_default_cf_options").unwrap();
            for part in [
                format!("write_buffer_size={memtable};"),
                format!("max_bytes_for_level_base={base};"),
                format!("target_file_size_base={file};"),
            ] {
                assert!(families.contains(&part), "{part}: {families}");
            }
        }
    }

    #[test]
    fn durability_and_codecs_are_what_was_asked() {
        let mut setup = Setup { codecs: "none,lz4,zlib:3".parse().unwrap(), ..Setup::default() };
        let commit = |setup: &Setup| {
            let innodb = value(Form::Innodb, setup, "innodb_flush_log_at_trx_commit").unwrap();
            let rocks = value(Form::Myrocks, setup, "rocksdb_flush_log_at_trx_commit").unwrap();
            let shale = value(Form::Shale, setup, "shale_durability").unwrap();
            (innodb, rocks, shale)
        };
        assert_eq!(commit(&setup), ("2".to_owned(), "2".to_owned(), "periodic".to_owned()));
        assert_eq!(value(Form::Punch, &setup, "innodb_compression_level").unwrap(), "3");
        let families = value(Form::Myrocks, &setup, "rocksdb_default_cf_options").unwrap();
        assert!(families.contains("bottommost_compression=kZlibCompression;"), "{families}");
        assert!(families.contains("bottommost_compression_opts=-14:3:"), "{families}");
        assert_eq!(value(Form::Shale, &setup, "shale_compression"), None);
        setup.durability = Durability::Power;
        setup.codecs = "lz4".parse().unwrap();
        assert_eq!(value(Form::Shale, &setup, "shale_compression").unwrap(), "lz4");
        assert_eq!(commit(&setup), ("1".to_owned(), "1".to_owned(), "full".to_owned()));
        assert_eq!(value(Form::Compressed, &setup, "innodb_compression_level").unwrap(), "6");
        let families = value(Form::Myrocks, &setup, "rocksdb_default_cf_options").unwrap();
        assert!(!families.contains("compression_opts"), "{families}");
    }

    #[test]
    fn engines_are_known_by_name() {
        for form in Form::ALL {
            assert_eq!(Form::named(form.name()).unwrap(), form);
        }
        assert!(Form::named("oracle").unwrap_err().to_string().contains("innodb-punch"));
    }
}
