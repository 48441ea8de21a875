#!/usr/bin/env python3
"""Indexes that are added and dropped while clients write: each has just the entries of the rows.

    mariadb/tests/online_ddl.py [--rounds 40] [--kills 4] [--clients 5] [--rows 6000] [--seed N]

Clients insert, update, replace and delete, one by one and many at once, in transactions with
savepoints and in XA transactions, at every isolation level. Meanwhile indexes are added with
LOCK=NONE, unique ones and those of virtual columns too, and the table is rebuilt with other types,
keys, collations and codecs. Some ALTERs are ended by KILL, and in the last rounds the server is
killed. After each the new indexes and the table are compared at one snapshot, and so is what
triggers have written of each change; CHECK TABLE EXTENDED finds nothing. No client gets an error
for it, and no tree is left over.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from typing import Any

import pymysql

from server import Layout, Running, Server, say

DUPLICATE, TIMEOUT, DEADLOCK, CHANGED, KILLED = 1062, 1205, 1213, 1412, 1317
GONE = (2002, 2003, 2006, 2013, 0)
# An XA transaction that has ended, or that a deadlock has rolled back.
XA_ENDED = (1397, 1399, 1402, 1613, 1614)
EXPECTED = (DUPLICATE, TIMEOUT, DEADLOCK, CHANGED)
LEVELS = ["read committed", "repeatable read", "serializable"]
DISAGREE = ("is damaged", "stays until the next start", "has no .frm file")
LEFT_OVER = "belongs to no table and is dropped"

COLUMNS = ("a int, b varchar(30) collate utf8mb4_general_ci, c text, d decimal(9,2), "
           "e enum('x','y','z'), f double, g bit(11), h char(8) not null default '', "
           "v int as (a * 2) virtual")
# By the name of the table: its keys, and what follows the columns.
TABLES = {
    "plain": ("id int primary key, unique u (id, a), key (e)", ""),
    "hidden": ("id int, key (id)", ""),
    "texts": ("id varchar(20) collate utf8mb4_general_ci primary key, key (f)", ""),
    "pairs": ("id int, w int not null default 3, primary key (w, id), unique (id, w, b)", ""),
    "parts": ("id int primary key", " partition by hash (id) partitions 3"),
    # An update leaves a row of the past, which has entries too.
    "history": ("id int primary key, key (e), t1 bigint unsigned generated always as row start "
                "invisible, t2 bigint unsigned generated always as row end invisible, "
                "period for system_time (t1, t2)", " with system versioning"),
}
OF_ALL_TIMES = {"history": " for system_time all"}
# Definitions of indexes, and the columns that they alone give.
INDEXES = {
    "(a)": "a", "(b)": "b", "(b, a desc)": "b, a", "(b(3), e)": "e", "(c(10))": "", "(d, id)": "d, id",
    "(e, f desc)": "e, f", "(f)": "f", "(g, b)": "g, b", "(h)": "h", "(h(2), g)": "g",
    "(a, b, d, e)": "a, b, d, e", "(id, e)": "id, e", "(v)": "v", "(v desc, b)": "v, b",
}
# Of words: CHECK TABLE compares their entries with the rows.
WORDS = ["(c)", "(c, h)"]
# Those that may have duplicates, and mostly have none.
UNIQUE = {"(id, a, h)": "id, a, h", "(id, v)": "id, v", "(b, id, e, a)": "b, id, e, a", "(a)": "a",
          "(f, id)": "f, id"}
# What is done to the columns and rows, and what undoes it. No value reads otherwise for it.
REBUILDS = [
    ("modify a bigint", "modify a int"),
    ("modify b varchar(30) collate utf8mb4_bin", "modify b varchar(30) collate utf8mb4_general_ci"),
    ("modify c mediumtext", "modify c text"),
    ("modify d decimal(14, 2)", "modify d decimal(9, 2)"),
    ("modify e enum('y', 'x', 'z')", "modify e enum('x', 'y', 'z')"),
    ("modify h varchar(20) not null default '' first", "modify h char(8) not null default ''"),
    ("add column if not exists s int as (a + 1) stored, add check (a < 100000)",
     "drop column if exists s, force"),
    ("compression='zstd:1'", "compression='lz4', dictionary=yes"),
    ("force", "engine=shale"),
]
KEY_REBUILDS = {
    "plain": ("drop primary key, add primary key (id, h)", "drop primary key, add primary key (id)"),
    "texts": ("modify id varchar(30) collate utf8mb4_bin",
              "modify id varchar(20) collate utf8mb4_general_ci"),
    "pairs": ("drop primary key, add primary key (id, w)",
              "drop primary key, add primary key (w desc, id)"),
    "hidden": ("modify id bigint", "modify id int"),
}
# What triggers keep of a row. The server calls them also for rows that UPDATE IGNORE has left as they
# were, so there is a table without them.
UNKEPT = "hidden"
DIGEST = ("crc32(concat_ws('/', {0}id, ifnull({0}a, '-'), ifnull({0}b, '-'), ifnull({0}c, '-'), "
          "ifnull({0}d, '-'), ifnull({0}e, '-'), ifnull({0}f, '-'), ifnull({0}g + 0, '-'), rtrim({0}h)))")


class Clients:
    """Threads that write; what they meet is raised by `end`."""

    def __init__(self, server: Server, table: str, seed: int, count: int, rows: int) -> None:
        self.server = server
        self.table = table
        self.rows = rows
        self.seed = seed
        self.statements = 0
        self.stopped = threading.Event()
        self.threads = [Running(self.write, random.Random(f"{seed}/{n}"), n) for n in range(count)]

    def row(self, rng: random.Random) -> str:
        def may_be_null(value: str) -> str:
            return "null" if rng.random() < 0.1 else value

        word = "".join(rng.choice("aAbBcC é") for _ in range(rng.randrange(9)))
        pads = " " * rng.randrange(3)
        return ", ".join([
            str(rng.randrange(self.rows * 2)), may_be_null(str(rng.randrange(200))),
            may_be_null(f"'{word}{pads}'"), may_be_null(f"'{word * 3}'"),
            may_be_null(f"{rng.randrange(1000)}.5"), may_be_null(f"'{rng.choice('xyz')}'"),
            may_be_null(rng.choice(["0.0", "-0.0", "1.5", "-7e9"])),
            may_be_null(str(rng.randrange(2048))), f"'{word[:8]}'",
        ])

    def statement(self, rng: random.Random) -> str:
        columns = f"{self.table} (id, a, b, c, d, e, f, g, h)"
        many = ", ".join(f"({self.row(rng)})" for _ in range(rng.choice([1, 1, 1, 3, 40])))
        number = rng.randrange(self.rows * 2)
        # Texts compared with numbers would have each statement lock all rows.
        first, ninth = ((f"'{number}'", f"'{number + 9}'") if self.table == "texts" else
                        (str(number), str(number + 9)))
        change = rng.choice([
            f"a = {rng.randrange(200)}", "a = a + 1", "b = upper(b)", "b = concat(b, ' ')",
            "b = left(b, 29), e = 'x'", "f = -f", "c = concat(left(c, 20), 'end')", "d = d + 1",
            "g = null, h = 'new'", "c = null", f"id = {rng.randrange(self.rows * 2)}", "d = d",
        ])
        return rng.choice([
            f"insert into {columns} values {many}",
            f"insert ignore into {columns} values {many}",
            f"replace into {columns} values {many}",
            f"insert into {columns} values {many} on duplicate key update {change}",
            f"insert ignore into {columns} select id + 1, a, b, c, d, e, f, g, h from {self.table} "
            f"where id between {first} and {ninth} limit 20",
            f"update {self.table} set {change} where id = {first}",
            f"update {'ignore ' if self.table == UNKEPT else ''}{self.table} set {change} where id "
            f"between {first} and {ninth}",
            f"update {self.table} set {change} where e = 'y' limit 5",
            f"delete from {self.table} where id = {first}",
            f"delete from {self.table} where id between {first} and {ninth} order by id desc",
            f"delete x from {self.table} x join {self.table} y on x.id = concat(y.id, '1') "
            f"where y.id = {first}",
        ])

    def one(self, cursor: Any, statement: str) -> int:
        """Runs a statement; the number of its error."""
        try:
            cursor.execute(statement)
        except pymysql.err.Error as error:
            if error.args[0] not in (*EXPECTED, *XA_ENDED):
                raise
            return int(error.args[0])
        self.statements += 1
        return 0

    def transaction(self, cursor: Any, rng: random.Random, xid: str) -> None:
        is_xa = rng.random() < 0.15
        cursor.execute(f"set session transaction isolation level {rng.choice(LEVELS)}")
        cursor.execute(f"xa start '{xid}'" if is_xa else "begin")
        saved = False
        if rng.random() < 0.3:
            self.one(cursor, f"select count(*) from other where id < {rng.randrange(9)}")
        for _ in range(rng.randrange(1, 5)):
            if rng.random() < 0.3 and not is_xa:
                cursor.execute("savepoint s")
                saved = True
            if self.one(cursor, self.statement(rng)) == DEADLOCK:
                saved = False
                break
            if saved and rng.random() < 0.4:
                cursor.execute("rollback to s")
            if rng.random() < 0.1:
                time.sleep(rng.random() * 0.05)
        if not is_xa:
            cursor.execute(rng.choice(["commit", "commit", "rollback"]))
            return
        self.one(cursor, f"xa end '{xid}'")
        if rng.random() < 0.7:
            self.one(cursor, f"xa prepare '{xid}'")
            self.one(cursor, f"xa {rng.choice(['commit', 'commit', 'rollback'])} '{xid}'")
        self.one(cursor, f"xa rollback '{xid}'")

    def write(self, rng: random.Random, number: int) -> None:
        connection, count = None, 0
        try:
            connection = self.server.connect("test", autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute("set session shale_lock_wait_timeout = 1, sql_mode = ''")
                cursor.execute(f"set session shale_bulk_load = {number % 2}")
                while not self.stopped.is_set():
                    count += 1
                    if rng.random() < 0.5:
                        self.one(cursor, self.statement(rng))
                    else:
                        self.transaction(cursor, rng, f"{self.seed}-{number}-{count}")
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
            if not self.stopped.is_set() or error.args[0] not in GONE:
                raise
        finally:
            if connection is not None and connection.open:
                connection.close()

    def end(self) -> None:
        self.stopped.set()
        for thread in self.threads:
            try:
                thread.get()
            except pymysql.err.Error as error:
                raise AssertionError(f"seed {self.seed}, table {self.table}: {error}") from error


def compare(server: Server, table: str, indexes: dict[str, str]) -> None:
    """Each index against the table, at one snapshot."""
    connection = server.connect("test")
    with connection.cursor() as cursor:
        cursor.execute("set session transaction isolation level repeatable read")
        cursor.execute("start transaction with consistent snapshot")
        for name, columns in indexes.items():
            if columns in WORDS:
                continue
            given = ", ".join(f"hex({column})" for column in columns.split(", ") if column)
            query = f"select count(*), sum(crc32(concat_ws('/', id{', ' if given else ''}{given}))) "
            rows = table + OF_ALL_TIMES.get(table, "")
            cursor.execute(f"{query} from {rows} force index ({name})")
            by_index = cursor.fetchone()
            cursor.execute(f"{query} from {rows} use index ()")
            by_rows = cursor.fetchone()
            assert by_index == by_rows, (table, name, columns, by_index, by_rows)
    connection.close()


def check(server: Server, table: str) -> None:
    rows = server.run(f"check table test.{table} extended")
    assert rows[-1][3] == "OK", (table, rows)


def compare_kept(server: Server, table: str) -> None:
    """The table against what its triggers have kept, at one snapshot."""
    if table == UNKEPT:
        return
    connection = server.connect("test")
    with connection.cursor() as cursor:
        cursor.execute("set session transaction isolation level repeatable read")
        cursor.execute("start transaction with consistent snapshot")
        cursor.execute(f"select count(*), sum({DIGEST.format('')}) from {table} use index ()")
        rows = cursor.fetchone()
        cursor.execute(f"select count(*), sum(digest) from kept_{table}")
        kept = cursor.fetchone()
        assert rows == kept, (table, rows, kept)
    connection.close()


def indexes_of(server: Server, table: str) -> set[str]:
    rows = server.run("select distinct index_name from information_schema.statistics where "
                      f"table_schema = 'test' and table_name = '{table}' and index_name like 'new%'")
    return {row[0] for row in rows}


class Alterer:
    """Adds and drops indexes of one table, and knows which are there."""

    def __init__(self, server: Server, table: str, rng: random.Random) -> None:
        self.server = server
        self.table = table
        self.rng = rng
        self.there: dict[str, str] = {}
        self.rebuilds = [list(pair) for pair in REBUILDS]
        if table in KEY_REBUILDS:
            self.rebuilds.append(list(KEY_REBUILDS[table]))
        self.made = self.killed = self.rebuilt = self.refused = 0
        self.may_fail = False
        self.rebuild_chosen: list[str] = []

    def statement(self) -> tuple[str, dict[str, str], list[str]]:
        self.may_fail, self.rebuild_chosen = False, []
        if self.rng.random() < 0.4:
            return self.rebuild()
        chosen = self.rng.sample(sorted(INDEXES), self.rng.choice([1, 1, 2, 3]))
        added = {f"new{self.made + i}": INDEXES[key] for i, key in enumerate(chosen)}
        words = [f"add index {name} {key}" for name, key in zip(added, chosen)]
        if self.rng.random() < 0.4:
            # One of a partitioned table has the columns by which it is.
            key = self.rng.choice(sorted(k for k in UNIQUE if self.table != "parts" or "id" in k))
            added[f"newu{self.made}"] = UNIQUE[key]
            words.append(f"add unique index newu{self.made} {key}")
            self.may_fail = True
        if self.rng.random() < 0.4:
            key = self.rng.choice(WORDS)
            added[f"newf{self.made}"] = key
            words.append(f"add fulltext index newf{self.made} {key}")
        self.made += len(chosen)
        count = self.rng.randrange(len(self.there) + 1) if len(self.there) < 6 else 4
        dropped = self.rng.sample(sorted(self.there), count)
        words += [f"drop index {name}" for name in dropped]
        if self.rng.random() < 0.2:
            words.append(f"add column y{self.made} int default {self.made}")
        if self.rng.random() < 0.2:
            words.append(f"comment = 'change {self.made}'")
        self.rng.shuffle(words)
        lock = self.rng.choice(["lock=none", "lock=none", "algorithm=nocopy, lock=none",
                                "algorithm=inplace", "lock=shared"])
        return f"alter table {self.table} {', '.join(words)}, {lock}", added, dropped

    def rebuild(self) -> tuple[str, dict[str, str], list[str]]:
        """All rows anew, perhaps with an index more."""
        chosen = self.rng.choice(self.rebuilds)
        words, added = [chosen[0]], {}
        self.rebuild_chosen = chosen
        self.may_fail = True
        if self.rng.random() < 0.3:
            key = self.rng.choice(sorted(INDEXES))
            added = {f"new{self.made}": INDEXES[key]}
            words.append(f"add index new{self.made} {key}")
            self.made += 1
        self.rebuilt += 1
        return f"alter table {self.table} {', '.join(words)}, lock=none", added, []

    def alter(self, kill_after: float | None) -> None:
        statement, added, dropped = self.statement()
        connection = self.server.connect("test")
        killer = None
        if kill_after is not None:
            killer = Running(self.kill, connection.thread_id(), kill_after)
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"set shale_alter_rest = {self.rng.choice([0, 50, 95])}")
                cursor.execute(statement)
        except pymysql.err.Error as error:
            is_killed = error.args[0] == KILLED and kill_after is not None
            if not is_killed and (error.args[0] != DUPLICATE or not self.may_fail):
                raise AssertionError(f"{statement}: {error}") from error
            self.killed += is_killed
            self.refused += not is_killed
            added, dropped = {}, []
        else:
            if self.rebuild_chosen:
                self.rebuild_chosen.reverse()
        finally:
            if killer is not None:
                killer.get()
            connection.close()
        for name in dropped:
            del self.there[name]
        self.there.update(added)
        found = indexes_of(self.server, self.table)
        assert found == set(self.there), (statement, found, set(self.there))
        compare(self.server, self.table, self.there)
        compare_kept(self.server, self.table)
        if self.rng.random() < 0.4 or any(columns in WORDS for columns in added.values()):
            check(self.server, self.table)

    def kill(self, thread: int, after: float) -> None:
        time.sleep(after)
        try:
            self.server.run(f"kill query {thread}")
        except pymysql.err.Error:
            pass  # it has ended

    def forget(self) -> None:
        """After a crash: what is there is what the server says. All of it goes, for names come again."""
        found = [f"drop index {name}" for name in sorted(indexes_of(self.server, self.table))]
        found += [f"drop column {row[0]}" for row in self.server.run(
            "select column_name from information_schema.columns where table_schema = 'test' "
            f"and table_name = '{self.table}' and column_name regexp '^y[0-9]+$'")]
        if found:
            self.server.run(f"alter table {self.table} {', '.join(found)}", database="test")
        self.there = {}


def make(server: Server, table: str, rows: int) -> None:
    keys, end = TABLES[table]
    kept = f"kept_{table}"
    new, old = (DIGEST.format(f"{side}.") for side in ("new", "old"))
    insert = f"insert into {kept} values ({new})"
    delete = f"delete from {kept} where digest = {old} limit 1"
    server.run("create or replace table other (id int primary key)",
               f"create or replace table {kept} (digest bigint, key (digest))",
               f"create or replace table {table} ({keys}, {COLUMNS}){end}",
               f"insert into {table} (id, a, b, c, d, e, f, g, h) select seq * 2, seq % 97, "
               "concat('Word ', seq % 31), concat('text ', seq), seq / 4, 1 + seq % 3, cast(seq % 5 as signed) - 2, "
               f"seq % 2048, concat('h', seq % 9) from seq_1_to_{rows}",
               f"insert into {kept} select {DIGEST.format('')} from {table}", database="test")
    if table != UNKEPT:
        server.run(
            f"create trigger {table}_ai after insert on {table} for each row {insert}",
            f"create trigger {table}_ad after delete on {table} for each row {delete}",
            f"create trigger {table}_au after update on {table} for each row begin {delete}; "
            f"{insert}; end", database="test")


def decide_prepared(server: Server, rng: random.Random) -> None:
    for row in server.run("xa recover"):
        xid = row[3] if isinstance(row[3], str) else row[3].decode()
        server.run(f"xa {rng.choice(['commit', 'rollback'])} '{xid}'")


def trees(server: Server) -> int:
    return len(server.run("select tree from information_schema.shale_trees"))


def write_and_alter(server: Server, table: str, options: Any, seed: int) -> tuple[int, ...]:
    rng = random.Random(seed)
    make(server, table, options.rows)
    before = trees(server)
    clients = Clients(server, table, seed, options.clients, options.rows)
    alterer = Alterer(server, table, rng)
    try:
        for _ in range(options.rounds // len(TABLES)):
            kill = rng.random() * rng.choice([0.02, 0.5, 1.5]) if rng.random() < 0.3 else None
            alterer.alter(kill)
    finally:
        clients.end()
    check(server, table)
    compare(server, table, alterer.there)
    compare_kept(server, table)
    alterer.forget()
    now = trees(server)
    assert now == before, f"{now - before} trees of {table} are left over"
    return (alterer.made, alterer.rebuilt, alterer.refused, alterer.killed, clients.statements)


def kill_and_start(server: Server, options: Any, seed: int) -> None:
    """The server is killed while an index is added, and started again."""
    rng = random.Random(seed)
    table = rng.choice(sorted(TABLES))
    make(server, table, options.rows)
    clients = Clients(server, table, seed, options.clients, options.rows)
    statement = Alterer(server, table, rng).statement()[0]
    alter = Running(server.run, "use test", statement)
    time.sleep(rng.random() * rng.choice([0.1, 1.0, 2.0]))
    clients.stopped.set()
    server.kill()
    clients.end()
    alter.join()
    offset = len(server.log.read_text(errors="replace"))
    server.start()
    decide_prepared(server, rng)
    there = {name: "" for name in indexes_of(server, table)}
    check(server, table)
    compare(server, table, there)
    compare_kept(server, table)
    log = server.log.read_text(errors="replace")[offset:]
    for words in DISAGREE:
        assert words not in log, (statement, words)
    # And on it goes, with names of trees that the crash has left.
    clients = Clients(server, table, seed + 1, options.clients, options.rows)
    alterer = Alterer(server, table, rng)
    alterer.forget()
    alterer.alter(None)
    clients.end()
    check(server, table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--clients", type=int, default=5)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    options = parser.parse_args()
    say(f"seed {options.seed}")
    layout = Layout()
    server = Server(layout, "online", ["performance-schema=off", "system-versioning-alter-history=keep"])
    server.start()
    server.run("create database if not exists test")
    counts = [0] * 5
    for number, table in enumerate(options.tables):
        done = write_and_alter(server, table, options, options.seed + number)
        counts = [count + more for count, more in zip(counts, done)]
    for number in range(options.kills):
        kill_and_start(server, options, options.seed + 100 + number)
    server.stop()
    offset = len(server.log.read_text(errors="replace"))
    server.start()
    log = server.log.read_text(errors="replace")[offset:]
    assert LEFT_OVER not in log, f"a clean stop has left a tree: see {server.log}"
    server.stop()
    layout.remove()
    made, rebuilt, refused, killed, statements = counts
    print(f"{made} indexes and {rebuilt} rebuilds asked for beside {statements} statements of "
          f"clients, {refused} ALTERs refused for a duplicate, {killed} ended by KILL, "
          f"{options.kills} kills of the server: all indexes as the tables, all rows as written")


if __name__ == "__main__":
    sys.exit(main())
