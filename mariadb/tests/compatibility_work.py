"""Features of transactions and operation, by InnoDB's pages and those on its use."""

from __future__ import annotations

from compatibility_feature import Feature, Section

SETUP = ("create table t (a int primary key, b int)", "insert into t values (1, 1), (5, 5)")
EVERYWHERE = {"innodb": "yes", "shale": "yes", "rocksdb": "yes"}

TRANSACTIONS = Section(
    "Transactions and locks",
    "What is answered when transactions meet is on its [own page](semantics.md).",
    (
        Feature(
            "`COMMIT`, `ROLLBACK`",
            "transactions",
            "yes",
            (*SETUP, "begin", "update t set b = 9", "rollback", "select b from t where a = 1"),
            "(1)",
        ),
        Feature(
            "Savepoints",
            "savepoints",
            "yes",
            (
                *SETUP,
                "begin",
                "update t set b = 9",
                "savepoint s",
                "update t set b = 10",
                "rollback to s",
                "commit",
                "select b from t where a = 1",
            ),
            "(9)",
        ),
        Feature(
            "A statement that fails leaves nothing",
            "statement_rollback",
            "partly",
            (
                *SETUP,
                "begin",
                "insert ignore into t values (7, 7)",
                "commit",
                "select count(*) from t",
            ),
            "(3)",
            note="TideSQL commits large statements in parts of 500 changes",
        ),
        Feature(
            "Transactions larger than memory",
            "large.py",
            "?",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "no"},
            note="MyRocks: `rocksdb_max_row_locks`, and all changes in memory, or `rocksdb_bulk_load`",
        ),
        Feature(
            "`READ UNCOMMITTED` reads what is not committed",
            "semantics.py",
            "yes",
            (
                *SETUP,
                "set transaction isolation level read uncommitted",
                "B: begin",
                "B: update t set b = 9",
                "select b from t where a = 1",
            ),
            "(9)",
        ),
        Feature(
            "`READ COMMITTED`",
            "isolation",
            "yes",
            (
                *SETUP,
                "set transaction isolation level read committed",
                "begin",
                "select * from t",
                "B: update t set b = 9",
                "select b from t where a = 1",
            ),
            "(9)",
        ),
        Feature(
            "`REPEATABLE READ`",
            "isolation",
            "yes",
            (
                *SETUP,
                "set transaction isolation level repeatable read",
                "begin",
                "select * from t",
                "B: update t set b = 9",
                "select b from t where a = 1",
            ),
            "(1)",
        ),
        Feature(
            "`SERIALIZABLE`",
            "histories.py",
            "yes",
            (
                *SETUP,
                "set transaction isolation level serializable",
                "begin",
                "select * from t",
                "B: update t set b = 9",
            ),
            "error 1205",
        ),
        Feature(
            "`START TRANSACTION WITH CONSISTENT SNAPSHOT`",
            "isolation",
            "yes",
            (
                *SETUP,
                "start transaction with consistent snapshot",
                "B: update t set b = 9",
                "select b from t where a = 1",
            ),
            "(1)",
        ),
        Feature(
            "Locks of rows, waited for",
            "locks",
            "no",
            (
                *SETUP,
                "begin",
                "update t set b = 9 where a = 1",
                "B: update t set b = 10 where a = 1",
            ),
            "error 1205",
        ),
        Feature(
            "Others' rows are not locked",
            "locks",
            "yes",
            (
                *SETUP,
                "begin",
                "update t set b = 9 where a = 1",
                "B: update t set b = 10 where a = 5",
                "commit",
                "select sum(b) from t",
            ),
            "(19)",
        ),
        Feature(
            "`SELECT ... FOR UPDATE`, `LOCK IN SHARE MODE`",
            "locks",
            "no",
            (
                *SETUP,
                "begin",
                "select * from t where a = 1 lock in share mode",
                "B: select * from t where a = 1 for update",
            ),
            "error 1205",
        ),
        Feature(
            "Locks of gaps",
            "new_rows",
            "no",
            (
                *SETUP,
                "begin",
                "select * from t where a between 2 and 4 for update",
                "B: insert into t values (3, 3)",
            ),
            "error 1205",
        ),
        Feature(
            "`SKIP LOCKED`",
            "skip_locked",
            "?",
            (
                *SETUP,
                "begin",
                "select * from t where a = 1 for update",
                "B: select a from t for update skip locked",
            ),
            "(5)",
        ),
        Feature(
            "`NOWAIT`",
            "locks",
            "?",
            (
                *SETUP,
                "begin",
                "select * from t where a = 1 for update",
                "B: select a from t for update nowait",
            ),
            "error 1205",
        ),
        Feature(
            "Deadlocks are found, one is undone",
            "deadlock",
            "no",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "partly"},
            note="MyRocks only with `rocksdb_deadlock_detect=ON`",
        ),
        Feature(
            "The last deadlock is told",
            "deadlock_words",
            "no",
            says=EVERYWHERE,
            note="`SHOW ENGINE ... STATUS`; MyRocks: `SHOW ENGINE ROCKSDB TRANSACTION STATUS`",
        ),
        Feature(
            "`LOCK TABLES`",
            "compatibility.py",
            "?",
            (*SETUP, "lock tables t write", "B: set lock_wait_timeout = 1", "B: select * from t"),
            "error 1205",
        ),
        Feature(
            "XA transactions",
            "xa",
            "yes",
            (
                *SETUP,
                "xa start 'ENGINE'",
                "update t set b = 9",
                "xa end 'ENGINE'",
                "xa prepare 'ENGINE'",
                "xa commit 'ENGINE'",
                "select b from t where a = 1",
            ),
            "(9)",
        ),
        Feature("Prepared transactions after a crash", "xa", "yes", says=EVERYWHERE),
        Feature(
            "Statements that change tables are atomic",
            "ddl_crash.py",
            "?",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "partly"},
            note="MyRocks: by the server's log of DDL for `CREATE`, `DROP`, `RENAME`",
        ),
    ),
)


OPERATION = Section(
    "Operation",
    "",
    (
        Feature("What is committed survives `kill -9`", "crash.py", "yes", says=EVERYWHERE),
        Feature(
            "A commit may wait for the disk, or not",
            "group_commit.py",
            "yes",
            ("select @@innodb_flush_log_at_trx_commit",),
            "(1)",
            of={
                "shale": ("select @@shale_durability",),
                "rocksdb": ("select @@rocksdb_flush_log_at_trx_commit",),
            },
            says=EVERYWHERE,
            note="`shale_durability`",
        ),
        Feature(
            "Commits share syncs, with the binary log", "group_commit.py", "yes", says=EVERYWHERE
        ),
        Feature(
            "Pages that a crash has written in part (doublewrite)",
            "crash.py",
            "?",
            says=EVERYWHERE,
            note="the log-structured engines write no page in place",
        ),
        Feature("Checksums of all that is read", "check.py", "yes", says=EVERYWHERE),
        Feature(
            "A full disk: statements fail, nothing is lost",
            "disk_full.py",
            "?",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "?"},
        ),
        Feature(
            "Backup while the server works",
            "backup.py",
            "yes",
            says=EVERYWHERE,
            note="`mariadb-backup` takes InnoDB and MyRocks; `mariadb/backup` takes SHALE",
        ),
        Feature(
            "Incremental backups",
            "",
            "?",
            says={"innodb": "yes", "shale": "no", "rocksdb": "no"},
            note="of SHALE: the binary log from the backup's position on",
        ),
        Feature(
            "A single table is restored out of a backup",
            "restore_table.py",
            "?",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "no"},
        ),
        Feature(
            "Replication: rows, statements, mixed; GTID that a crash does not break",
            "crash.py",
            "yes",
            says={"innodb": "yes", "shale": "yes", "rocksdb": "partly"},
            note="MyRocks refuses statements unless `rocksdb_unsafe_for_binlog=1`",
        ),
        Feature("Galera", "", "yes", says={"innodb": "yes", "shale": "no", "rocksdb": "no"}),
        Feature(
            "Memory that changes while the server runs",
            "compatibility.py",
            "no",
            ("set global innodb_buffer_pool_size = 64 * 1024 * 1024",),
            of={
                "shale": ("set global shale_memory = 64 * 1024 * 1024",),
                "rocksdb": ("set global rocksdb_block_cache_size = 64 * 1024 * 1024",),
            },
        ),
        Feature(
            "The cache is warm after a restart (buffer pool dump)",
            "",
            "?",
            ("set global innodb_buffer_pool_dump_now = 1",),
            says={"shale": "no", "rocksdb": "no"},
        ),
        Feature("`SHOW ENGINE ... STATUS`", "status", "yes", ("show engine ENGINE status",)),
        Feature(
            "Transactions and locks as tables",
            "transactions",
            "?",
            (
                "select count(*) >= 0 from information_schema.innodb_trx, information_schema.innodb_locks",
            ),
            "(1)",
            of={
                "shale": (
                    "select count(*) >= 0 from information_schema.shale_transactions,"
                    " information_schema.shale_locks",
                ),
                "rocksdb": (
                    "select count(*) >= 0 from information_schema.rocksdb_trx,"
                    " information_schema.rocksdb_locks",
                ),
            },
        ),
        Feature(
            "Counters as status variables",
            "status",
            "yes",
            (
                "select count(*) > 10 from information_schema.global_status where variable_name like 'ENGINE%'",
            ),
            "(1)",
        ),
        Feature(
            "`SHOW TABLE STATUS`: rows, bytes",
            "statistics",
            "?",
            (
                *SETUP,
                "select table_rows from information_schema.tables where table_schema = database()",
            ),
            "(2)",
        ),
        Feature(
            "`CHECK TABLE` finds damage, `EXTENDED` what indexes lack",
            "check.py",
            "partly",
            (*SETUP, "check table t extended"),
            says={"rocksdb": "yes"},
        ),
        Feature(
            "`OPTIMIZE TABLE`, defragmentation",
            "alter",
            "yes",
            (*SETUP, "optimize table t"),
            None,
            note="SHALE compacts; InnoDB makes the table anew",
        ),
        Feature("`CHECKSUM TABLE`", "check", "?", (*SETUP, "checksum table t"), None),
        Feature(
            "`HANDLER`", "handler", "?", (*SETUP, "handler t open", "handler t read first"), "(1,1)"
        ),
        Feature(
            "Query cache",
            "query_cache.py",
            "?",
            (*SETUP, "select sql_cache * from t"),
            "(1,1) (5,5)",
        ),
        Feature(
            "A server for reading only (`innodb_read_only`)",
            "",
            "?",
            says={"innodb": "yes", "shale": "no", "rocksdb": "no"},
            note="the server's own `read_only` works with all",
        ),
        Feature(
            "A start in spite of damage (`innodb_force_recovery`)",
            "",
            "?",
            says={"innodb": "yes", "shale": "no", "rocksdb": "no"},
            note="of SHALE: `shale repair` of the command, on a copy",
        ),
    ),
)

SECTIONS = (TRANSACTIONS, OPERATION)
