"""Features of tables, columns, indexes: InnoDB's pages on formats, limits, tablespaces."""

from __future__ import annotations

from compatibility_feature import Feature, Section

SHOWN = (
    "select count(*) from information_schema.tables where table_schema = database()"
    " and table_name = 't'"
)

FORMATS = Section(
    "Row formats, compression, encryption",
    "",
    (
        Feature(
            "`ROW_FORMAT=REDUNDANT`, `COMPACT`, `DYNAMIC` are taken",
            "compatibility.py",
            "?",
            (
                "create table t1 (a int) row_format=redundant",
                "create table t2 (a int) row_format=compact",
                "create table t (a int) row_format=dynamic",
                SHOWN,
            ),
            "(1)",
            note="SHALE keeps the word; a row has one form",
        ),
        Feature(
            "`ROW_FORMAT=COMPRESSED`, `KEY_BLOCK_SIZE`",
            "compatibility.py",
            "?",
            (
                "create table t (a int) row_format=compressed key_block_size=8",
                "select row_format from information_schema.tables where table_schema = database()",
            ),
            "(Compressed)",
            says={"shale": "partly"},
            note="SHALE keeps the words, and compresses by `COMPRESSION`; MyRocks by settings of column families",
        ),
        Feature(
            "Compression of a table's pages or blocks",
            "dictionary",
            "yes",
            ("create table t (a int) page_compressed=1",),
            of={
                "shale": ("create table t (a int) compression='zstd:3'",),
                "rocksdb": (
                    "select if(@@rocksdb_supported_compression_types like '%LZ4%', 'yes', 'no')",
                ),
            },
            note="InnoDB: `PAGE_COMPRESSED`; SHALE: `COMPRESSION`, and dictionaries; MyRocks: of all tables",
        ),
        Feature(
            "Change of a table's compression afterwards",
            "dictionary",
            "yes",
            (
                "create table t (a int)",
                "insert into t values (1)",
                "alter table t page_compressed=1",
                "select * from t",
            ),
            "(1)",
            of={
                "shale": (
                    "create table t (a int)",
                    "insert into t values (1)",
                    "alter table t compression='lz4'",
                    "select * from t",
                )
            },
            says={"rocksdb": "no"},
            note="MyRocks: by a restart with other settings",
        ),
        Feature(
            "Compressed columns (`COMPRESSED`)",
            "compatibility.py",
            "?",
            (
                "create table t (a text compressed)",
                "insert into t values (repeat('a', 1000))",
                "select length(a) from t",
            ),
            "(1000)",
        ),
        Feature(
            "Encryption of a table (`ENCRYPTED=YES`)",
            "compatibility.py",
            "yes",
            (
                "create table t (a int) encrypted=yes",
                "insert into t values (1)",
                "select count(*) from information_schema.innodb_tablespaces_encryption e"
                " where e.name = concat(database(), '/t') and e.encryption_scheme = 1",
            ),
            "(1)",
            note="SHALE and MyRocks do not know the option: with `IGNORE_BAD_TABLE_OPTIONS` it is a warning",
        ),
        Feature(
            "Data scrubbing, zeroes over what is deleted",
            "",
            "?",
            says={"innodb": "partly", "shale": "no", "rocksdb": "no"},
            note="of InnoDB only freed pages, since 10.5; files of a log-structured tree are removed whole",
        ),
        Feature(
            "Folder of a table's own (`DATA DIRECTORY`)",
            "compatibility.py",
            "?",
            (
                "create table t (a int) data directory='/tmp'",
                "select create_options like '%DATA DIRECTORY%' or create_options like '%data_directory%'"
                " from information_schema.tables where table_schema = database()",
            ),
            says={"innodb": "yes"},
            note="SHALE: one log and one folder for all tables, each of which needs the whole at a start;"
            " that folder, `#shale`, may be a link to another device",
        ),
        Feature(
            "Texts and blobs of 16 MB and more",
            "blobs",
            "?",
            (
                "create table t (id int primary key, a longblob)",
                "insert into t values (1, repeat('x', 20000000))",
                "select length(a) from t",
            ),
            "(20000000)",
        ),
        Feature(
            "1,017 columns",
            "compatibility.py",
            "?",
            ("create table t (" + ", ".join(f"c{n} tinyint" for n in range(1017)) + ")", SHOWN),
            "(1)",
        ),
        Feature(
            "2,000 columns",
            "compatibility.py",
            "?",
            ("create table t (" + ", ".join(f"c{n} tinyint" for n in range(2000)) + ")", SHOWN),
            "(1)",
            note="beyond InnoDB's limit",
        ),
        Feature(
            "64 secondary indexes",
            "compatibility.py",
            "?",
            (
                "create table t (id int primary key, "
                + ", ".join(f"c{n} int, key (c{n})" for n in range(63))
                + ")",
                SHOWN,
            ),
            "(1)",
            note="the server takes 64 of a table, the primary key among them",
        ),
        Feature(
            "Keys of 3,072 bytes",
            "compatibility.py",
            "?",
            ("create table t (a varchar(3072) character set latin1, key (a))", SHOWN),
            "(1)",
        ),
        Feature(
            "Rows of 65,535 bytes",
            "compatibility.py",
            "?",
            (
                "create table t (a varbinary(65000)) row_format=dynamic",
                "insert into t values (repeat('a', 65000))",
                "select length(a) from t",
            ),
            "(65000)",
        ),
        Feature(
            "Fixed rows that fill a page twice over",
            "compatibility.py",
            "?",
            (
                "create table t (" + ", ".join(f"c{n} binary(250)" for n in range(200)) + ")",
                "insert into t (c1) values ('a')",
                "select count(*) from t",
            ),
            "(1)",
            note="InnoDB's rows, without long columns, have to fit twice into a page: 1118",
        ),
    ),
)

COLUMNS = Section(
    "Columns",
    "",
    (
        Feature(
            "Virtual columns",
            "virtual_indexes",
            "yes",
            (
                "create table t (a int, b int as (a + 1) virtual)",
                "insert into t (a) values (1)",
                "select b from t",
            ),
            "(2)",
        ),
        Feature(
            "Stored generated columns",
            "virtual_indexes",
            "yes",
            (
                "create table t (a int, b int as (a + 1) persistent)",
                "insert into t (a) values (1)",
                "select b from t",
            ),
            "(2)",
        ),
        Feature(
            "Indexes on virtual columns",
            "virtual_indexes",
            "yes",
            (
                "create table t (id int primary key, a int, b int as (a + 1) virtual, key (b))",
                "insert into t (id, a) values (1, 1), (2, 5)",
                "select id from t force index (b) where b = 6",
            ),
            "(2)",
        ),
        Feature(
            "`CHECK` constraints",
            "compatibility.py",
            "?",
            ("create table t (a int check (a > 1))", "insert into t values (1)"),
            "error 4025",
        ),
        Feature(
            "Expressions as defaults",
            "collations",
            "?",
            (
                "create table t (a int, b int default (a + 2))",
                "insert into t (a) values (1)",
                "select b from t",
            ),
            "(3)",
        ),
        Feature(
            "Invisible columns",
            "compatibility.py",
            "?",
            (
                "create table t (a int, b int invisible)",
                "insert into t values (1)",
                "select * from t",
            ),
            "(1)",
        ),
        Feature(
            "JSON, UUID, INET6",
            "types",
            "yes",
            (
                "create table t (a json, b uuid, c inet6, key (b), key (c))",
                "insert into t values ('{}', '6ccd780c-baba-1026-9564-5b8c656024db', '::1')",
                "select a, b, c from t where b = '6ccd780c-baba-1026-9564-5b8c656024db'",
            ),
            "({},6ccd780c-baba-1026-9564-5b8c656024db,::1)",
        ),
        Feature(
            "Geometries as values",
            "compatibility.py",
            "yes",
            (
                "create table t (a point)",
                "insert into t values (point(1, 2))",
                "select st_x(a) from t",
            ),
            "(1.0)",
        ),
        Feature(
            "System-versioned tables, and their history",
            "unique_checked",
            "?",
            (
                "create table t (a int primary key, b int) with system versioning",
                "insert into t values (1, 1)",
                "update t set b = 2",
                "select count(*) from t for system_time all",
            ),
            "(2)",
        ),
        Feature(
            "Versions by transaction id",
            "versions_by_id",
            "?",
            (
                "create table t (a int, s bigint unsigned generated always as row start,"
                " e bigint unsigned generated always as row end, period for system_time (s, e))"
                " with system versioning",
                "insert into t (a) values (1)",
                "select count(*) from t",
            ),
            "(1)",
        ),
        Feature(
            "Periods, `FOR PORTION OF`",
            "unique_checked",
            "?",
            (
                "create table t (a int, s date, e date, period for p (s, e))",
                "insert into t values (1, '2000-01-01', '2000-12-31')",
                "delete from t for portion of p from '2000-02-01' to '2000-03-01'",
                "select count(*) from t",
            ),
            "(2)",
        ),
        Feature(
            "`AUTO_INCREMENT`: no number twice after a restart",
            "auto_increment",
            "no",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "yes"},
        ),
        Feature(
            "`AUTO_INCREMENT`: no lock of the table until a statement's end",
            "auto_increment",
            "yes",
            (
                "create table t (a int auto_increment primary key)",
                "begin",
                "insert into t values ()",
                "B: insert into t values ()",
                "commit",
                "select count(*) from t",
            ),
            "(2)",
        ),
        Feature(
            "`AUTO_INCREMENT`: numbers of one statement together, of a log of statements",
            "auto_increment",
            "?",
            says={"innodb": "yes", "shale": "no", "rocksdb": "no"},
            note="`innodb_autoinc_lock_mode=1`; the server logs rows of such statements, unless told otherwise",
        ),
        Feature(
            "`AUTO_INCREMENT` in the first place of a key, not later",
            "auto_increment",
            "?",
            ("create table t (a int, b int auto_increment, primary key (a, b))",),
            "error 1075",
            note="later, 1075",
        ),
    ),
)

INDEXES = Section(
    "Indexes",
    "",
    (
        Feature(
            "Rows in order of the primary key",
            "scans",
            "yes",
            (
                "create table t (a int primary key)",
                "insert into t values (3), (1), (2)",
                "select a from t",
            ),
            "(1) (2) (3)",
        ),
        Feature(
            "Tables without a primary key",
            "scans",
            "yes",
            ("create table t (a int)", "insert into t values (1), (1)", "select count(*) from t"),
            "(2)",
        ),
        Feature(
            "Prefixes of columns",
            "index_reads",
            "?",
            (
                "create table t (a text, key (a(5)))",
                "insert into t values ('abcdefg')",
                "select a from t where a = 'abcdefg'",
            ),
            "(abcdefg)",
        ),
        Feature(
            "Descending parts",
            "index_reads",
            "?",
            (
                "create table t (a int, b int, key k (a desc, b))",
                "insert into t values (1, 1), (2, 1)",
                "select a from t force index (k) where b = 1 order by a desc",
            ),
            "(2) (1)",
        ),
        Feature(
            "Unique keys of long values (`TEXT UNIQUE`)",
            "unique_hash",
            "?",
            (
                "create table t (a text unique)",
                "insert into t values ('a')",
                "insert into t values ('a')",
            ),
            "error 1062",
        ),
        Feature(
            "`WITHOUT OVERLAPS`",
            "unique_checked",
            "?",
            (
                "create table t (a int, s date, e date, period for p (s, e), unique (a, p without overlaps))",
                "insert into t values (1, '2000-01-01', '2000-12-31')",
                "insert into t values (1, '2000-06-01', '2001-12-31')",
            ),
            "error 1062",
        ),
        Feature(
            "Ignored indexes",
            "compatibility.py",
            "?",
            ("create table t (a int, key k (a) ignored)", SHOWN),
            "(1)",
        ),
        Feature(
            "`FULLTEXT` indexes",
            "fulltext",
            "yes",
            (
                "create table t (id int primary key, a text, fulltext (a))",
                "insert into t values (1, 'one two')",
                "select id from t where match (a) against ('two')",
            ),
            "(1)",
        ),
        Feature(
            "`SPATIAL` indexes",
            "spatial",
            "yes",
            (
                "create table t (id int primary key, a point not null, spatial (a))",
                "insert into t values (1, point(1, 1))",
                "select id from t where st_within(a, st_geomfromtext('polygon((0 0, 2 0, 2 2, 0 2, 0 0))'))",
            ),
            "(1)",
        ),
        Feature(
            "Hash index that comes by itself (adaptive hash index)",
            "",
            "?",
            says={"innodb": "yes", "shale": "no", "rocksdb": "no"},
            note="off by default in InnoDB since 10.5",
        ),
        Feature(
            "Index condition pushdown",
            "index_reads",
            "yes",
            (
                "create table t (id int primary key, a int, b int, key k (a, b))",
                "insert into t select seq, seq, seq % 7 from seq_1_to_500",
                "select count(*) from t force index (k) where a < 300 and b = 3",
            ),
            "(43)",
        ),
        Feature(
            "Indexes that hold all that is asked (covering)",
            "scans",
            "yes",
            (
                "create table t (id int primary key, a int, key k (a))",
                "insert into t values (1, 2)",
                "select a from t force index (k)",
            ),
            "(2)",
        ),
        Feature(
            "Multi-range reads, batched key access",
            "multi_range.py",
            "partly",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "yes"},
        ),
        Feature(
            "Rowid filters",
            "rowid_filter",
            "?",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "no"},
        ),
        Feature(
            "Statistics that last (`ANALYZE TABLE`)",
            "statistics",
            "?",
            ("create table t (a int, key (a))", "insert into t values (1), (2)", "analyze table t"),
            None,
        ),
    ),
)

SPACES = Section(
    "Tablespaces and other tables",
    "",
    (
        Feature(
            "A table's space is free as soon as it is dropped",
            "truncate",
            "?",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "yes"},
            note="InnoDB: with a file for each table",
        ),
        Feature(
            "Export and import of a table's files",
            "move",
            "?",
            (
                "create table t (a int primary key)",
                "insert into t values (1)",
                "flush tables t for export",
                "unlock tables",
                "alter table t discard tablespace",
            ),
            None,
            note="SHALE writes the rows into a file, InnoDB has one for each table",
        ),
        Feature(
            "Temporary tables",
            "temporary",
            "?",
            ("create temporary table t (a int)", "insert into t values (1)", "select * from t"),
            "(1)",
        ),
        Feature("Sequences", "sequence", "?", ("create sequence t", "select nextval(t)"), "(1)"),
        Feature(
            "Partitions: `RANGE`, `LIST`, `HASH`, `KEY`, subpartitions",
            "partition",
            "partly",
            (
                "create table t1 (a int) partition by list (a) (partition p0 values in (1, 2))",
                "create table t2 (a int) partition by key (a) partitions 3",
                "create table t (a int) partition by range (a) subpartition by hash (a) subpartitions 2"
                " (partition p0 values less than (10), partition p1 values less than maxvalue)",
                "insert into t values (1), (20)",
                "select a from t partition (p1)",
            ),
            "(20)",
        ),
        Feature(
            "Partitions: `ADD`, `DROP`, `TRUNCATE`, `REORGANIZE`",
            "partition",
            "partly",
            (
                "create table t (a int) partition by range (a) (partition p0 values less than (10))",
                "insert into t values (1)",
                "alter table t add partition (partition p1 values less than (20))",
                "insert into t values (11)",
                "alter table t truncate partition p0",
                "alter table t reorganize partition p0, p1 into (partition p values less than (20))",
                "select * from t",
            ),
            "(11)",
        ),
        Feature(
            "Partitions: `EXCHANGE`",
            "exchange",
            "?",
            (
                "create table t (a int) partition by range (a) (partition p0 values less than (10))",
                "insert into t values (1)",
                "create table u (a int)",
                "alter table t exchange partition p0 with table u",
                "select * from u",
            ),
            "(1)",
        ),
        Feature(
            "Partitions by `SYSTEM_TIME`, with those that come by themselves (`AUTO`)",
            "versions",
            "?",
            (
                "set timestamp = unix_timestamp('2030-01-01')",
                "create table t (a int) with system versioning"
                " partition by system_time interval 1 hour auto",
                "insert into t values (1)",
                "set timestamp = unix_timestamp('2030-01-01 03:30:00')",
                "delete from t",
                "select count(*) from information_schema.partitions where table_name = 't'"
                " and table_schema = database()",
            ),
            "(5)",
        ),
        Feature(
            "`TRUNCATE` that makes the tree anew",
            "truncate",
            "yes",
            (
                "create table t (a int)",
                "insert into t values (1)",
                "truncate t",
                "select count(*) from t",
            ),
            "(0)",
        ),
        Feature(
            "`RENAME TABLE` of several, to another schema",
            "alter",
            "yes",
            (
                "create table u (a int)",
                "create table v (b int)",
                "rename table u to w, v to u, w to t",
                "select count(a) from t",
            ),
            "(0)",
        ),
    ),
)

SECTIONS = (FORMATS, COLUMNS, INDEXES, SPACES)
