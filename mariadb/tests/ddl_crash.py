#!/usr/bin/env python3
"""Statements that change tables, killed at any moment: nothing is half there afterwards.

    mariadb/tests/ddl_crash.py                  25 kills
    mariadb/tests/ddl_crash.py --kills 200 --seed 7

Several connections create, alter (at once, in place, by copy), rename, empty, partition and drop
tables of their own, others insert into a table, and change its rows, that is altered meanwhile:
indexes are added to it beside them, FULLTEXT and SPATIAL ones too. One exchanges partitions for
tables. The server is killed at a random moment and started again. Then every table can be read by
each of its indexes with the same result, words and places included, CHECK TABLE finds nothing, the
server has reported no table without a .frm file or the reverse, no table of a statement under way
is left, tables that nobody touched are the same, each exchange was done or not, and every insert
that was acknowledged is there. A last clean start drops no tree: none was left over.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import threading
import time
from typing import Any

import pymysql

from server import Layout, Server, say

# What the plugin says if catalog and .frm files do not agree, or something was left over.
DISAGREE = ("has no .frm file", "the catalog has no table", "was not dropped", "is damaged",
            "stays until the next start")
LEFT_OVER = ("belongs to no table and is dropped", "is left over from a statement")

# The partitions that are exchanged, and the rows that each of them and its table has.
EXCHANGED = (1, 2)
SWAPPED = 200

# Rows of the table that others write to, besides those that are acknowledged.
LOADED = 10000
COLUMNS = "id int primary key, a int, b varchar(40), c bigint default 3"
ROWS = "select seq, seq * 7 % 101, concat('text ', seq), seq from test.numbers where seq <= {}"

# `t` is a table of the thread, `n` a number that was not used before.
ALTERS = [
    "alter table {t} add index i{n} (a)",
    "alter table {t} add unique u{n} (b, id)",
    "alter table {t} add index i{n} (a), add index j{n} (b, a)",
    "alter table {t} add n{n} int default {n}",
    "alter table {t} add n{n} varchar(20) not null default 'new' first, add index k{n} (n{n})",
    "alter table {t} modify b varchar(80)",
    "alter table {t} modify a bigint",
    "alter table {t} add fulltext f{n} (b)",
    "alter table {t} add g{n} point not null default (point(coalesce(a, 0), id)),"
    " add spatial s{n} (g{n})",
    "alter table {t} engine=shale",
    "alter table {t} comment='change {n}'",
    "alter table {t} add v{n} int as (a + 1) virtual, add index w{n} (v{n})",
    "alter table {t} rename column a to a{n}, add index (a{n}), rename to {t}x",
    "alter table {t} add system versioning",
    "alter table {t} drop system versioning",
    "alter table {t} partition by hash(id) partitions 3",
    "alter table {t} add partition partitions 1",
    "alter table {t} remove partitioning",
    "alter table {t} coalesce partition 1",
    "alter table {t} partition by range(id) (partition a values less than (100), "
    "partition b values less than (1000), partition c values less than maxvalue)",
    "alter table {t} reorganize partition b into (partition d values less than (500), "
    "partition b values less than (1000))",
    "alter table {t} drop partition b",
    "alter table {t} truncate partition a",
    "alter table {t} convert partition a to table {t}w",
    "rename table {t} to t{n}, {t}x to {t}, t{n} to {t}x",
    "truncate table {t}",
    "rename table {t} to {t}y",
    "drop table {t}",
]


class Load:
    """The threads between a start and a kill. Errors are expected: the server goes, names clash."""

    def __init__(self, server: Server, seed: int, numbers: Any) -> None:
        self.server = server
        self.numbers = numbers
        self.stopped = False
        self.done = 0
        self.acknowledged: list[int] = []
        self.exchanges: list[str] = []
        # What each thread asked last: what the kill met, if a check fails.
        self.last: dict[str, str] = {}
        self.threads = [
            threading.Thread(target=self.change, args=(k, f"{seed}/{k}"), daemon=True)
            for k in range(3)
        ]
        self.threads += [
            threading.Thread(target=self.insert, daemon=True),
            threading.Thread(target=self.update, args=(random.Random(seed),), daemon=True),
            threading.Thread(target=self.alter_loaded, args=(random.Random(seed),), daemon=True),
            threading.Thread(target=self.exchange, args=(random.Random(seed),), daemon=True),
        ]
        for thread in self.threads:
            thread.start()

    def statements(self, statement_of: Any) -> None:
        try:
            connection = self.server.connect("test", read_timeout=60)
        except pymysql.err.Error:
            return
        with connection.cursor() as cursor:
            while not self.stopped:
                statement, arrived = statement_of()
                self.last[threading.current_thread().name] = statement
                try:
                    cursor.execute(statement)
                except pymysql.err.OperationalError as error:
                    if error.args[0] in (2006, 2013, 0):
                        return
                    continue
                except pymysql.err.Error:
                    if not connection.open:
                        return
                    continue
                self.done += 1
                self.last[threading.current_thread().name] = f"(done) {statement}"
                if arrived is not None:
                    arrived()

    def change(self, k: int, seed: str) -> None:
        rng = random.Random(seed)
        self.statements(lambda: (self.one_change(k, rng), None))

    def one_change(self, k: int, rng: random.Random) -> str:
        n = next(self.numbers)
        table = f"d{k}_{rng.randrange(4)}" + rng.choice(["", "", "x", "y"])
        if rng.random() < 0.1:
            schema = f"schema_{k}"
            return rng.choice([
                f"create database if not exists {schema}",
                f"create table {schema}.t{rng.randrange(3)} ({COLUMNS})",
                f"create table {schema}.t{rng.randrange(3)} ({COLUMNS}) select 1 as id",
                f"drop database {schema}",
                f"create temporary table tmp_{n} ({COLUMNS}, key(a))",
            ])
        if rng.random() < 0.35:
            rows = "" if rng.random() < 0.3 else ROWS.format(rng.choice([5, 300, 2000]))
            rows = rows.replace("select seq,", "select seq as id,").replace(" 101,", " 101 as a,")
            rows = rows.replace("seq), seq", "seq) as b, seq as c")
            replace = "or replace" if rng.random() < 0.2 else ""
            parts = rng.choice(["", "", "partition by hash(id) partitions 5"])
            return f"create {replace} table {table} ({COLUMNS}, key(a)) {parts} {rows}"
        return rng.choice(ALTERS).format(t=table, n=n)

    def insert(self) -> None:
        def statement() -> tuple[str, Any]:
            n = next(self.numbers)
            return f"insert into loaded (id, a) values ({n}, {n % 50})", (
                lambda: self.acknowledged.append(n))

        self.statements(statement)

    def update(self, rng: random.Random) -> None:
        def statement() -> tuple[str, Any]:
            first = -rng.randrange(LOADED)
            return rng.choice([
                f"update loaded set a = a + 1 where id between {first} and {first + 20}",
                f"update loaded set a = a + 1 where a = {rng.randrange(50)} limit 100",
                f"update loaded set w = concat('newer text{first} ', w), g = point({first}, 7)"
                f" where id between {first} and {first + 5}",
                f"delete from loaded where id = {first}",
                f"replace into loaded (id, a) values ({first}, 1), ({first - 1}, null)",
            ]), None

        self.statements(statement)

    def alter_loaded(self, rng: random.Random) -> None:
        def statement() -> tuple[str, Any]:
            n = next(self.numbers)
            return rng.choice([
                f"alter table loaded add n{n} int default {n}",
                f"alter table loaded add index i{n} (a)",
                f"alter table loaded add index i{n} (a), add index j{n} (a desc, id), lock=none",
                "alter table loaded drop index if exists i, add index i (a, id), lock=none",
                "alter table loaded drop index if exists f, add fulltext f (w), lock=none",
                "alter table loaded drop index if exists s, add spatial s (g), lock=none",
                "alter table loaded drop index if exists f, drop index if exists s, lock=none",
                f"alter table loaded drop index if exists f, add fulltext f (w), "
                f"drop index if exists s, add spatial s (g), add index i{n} (a)",
                "alter table loaded engine=shale",
                "alter table loaded drop column if exists b, drop index if exists i",
                "alter table loaded add if not exists b varchar(10) default 'b', "
                "add index if not exists i (a)",
            ]), None

        def slowly() -> tuple[str, Any]:
            time.sleep(0.05)
            return statement()

        self.statements(slowly)

    def exchange(self, rng: random.Random) -> None:
        def statement() -> tuple[str, Any]:
            part = rng.choice(EXCHANGED)
            text = f"alter table swap exchange partition p{part} with table swap_{part}"
            return text, lambda: self.exchanges.append(text)

        self.statements(statement)

    def run_until(self, statements: int) -> None:
        while self.done < statements and any(thread.is_alive() for thread in self.threads):
            time.sleep(0.01)

    def end(self) -> None:
        self.stopped = True
        for thread in self.threads:
            thread.join(60)


def fingerprint(server: Server, table: str) -> Any:
    return server.run(f"select count(*), sum(id), sum(crc32(concat_ws('/', id, a, b, c))) "
                      f"from {table}")


def check_exchanged(cursor: Any) -> None:
    """Of each pair one has all rows that are marked `x`, the other all that are marked `y`."""
    for part in EXCHANGED:
        found = []
        for rows in (f"swap partition (p{part})", f"swap_{part}"):
            cursor.execute(f"select mark, count(*) from {rows} group by mark")
            found.append(cursor.fetchall())
        if sorted(found) != [(("x", SWAPPED),), (("y", SWAPPED),)]:
            raise SystemExit(f"after an exchange p{part} of swap and swap_{part} have {found}")


def log_since(server: Server, offset: int) -> str:
    return server.log.read_text(errors="replace")[offset:]


def check_words_and_places(cursor: Any, name: str) -> None:
    """FULLTEXT and SPATIAL indexes give what a read of the table gives."""
    cursor.execute("select index_name, index_type, group_concat(column_name) "
                   "from information_schema.statistics where concat(table_schema, '.', table_name) "
                   f"= '{name}' and index_type in ('FULLTEXT', 'SPATIAL') group by 1, 2")
    for index, kind, columns in cursor.fetchall():
        if kind == "SPATIAL":
            everywhere = "polygon((-1e9 -1e9, 1e9 -1e9, 1e9 1e9, -1e9 1e9, -1e9 -1e9))"
            where = f"where mbrintersects({columns}, st_geomfromtext('{everywhere}'))"
            cursor.execute(f"select id from {name} force index (`{index}`) {where}")
            found = cursor.fetchall()
            cursor.execute(f"select id from {name} use index ()")
            there = cursor.fetchall()
            if sorted(found) != sorted(there):
                raise SystemExit(f"{name} has {len(there)} rows, and {len(found)} by {index}")
            continue
        cursor.execute(f"select id, concat_ws(' ', {columns}) from {name} use index ()")
        holders: dict[str, set[int]] = {}
        for row, text in cursor.fetchall():
            for word in re.findall("[a-z0-9]{4,}", text.lower()):
                holders.setdefault(word, set()).add(row)
        for word in ["text", "newer", *random.sample(sorted(holders), min(8, len(holders)))]:
            cursor.execute(f"select id from {name} where match ({columns}) against ('{word}')")
            found = [row for row, in cursor.fetchall()]
            if sorted(found) != sorted(holders.get(word, ())):
                raise SystemExit(f"{name}: {len(holders.get(word, ()))} rows have `{word}`, and "
                                 f"{index} finds {len(found)}")


def check_table(cursor: Any, name: str) -> None:
    try:
        cursor.execute(f"show create table {name}")
    except pymysql.err.Error as error:
        raise SystemExit(f"{name} cannot be opened: {error}") from error
    cursor.execute(f"select count(*) from {name}")
    rows = cursor.fetchone()[0]
    cursor.execute(f"select index_name from information_schema.statistics "
                   f"where concat(table_schema, '.', table_name) = '{name}' and seq_in_index = 1")
    for (index,) in cursor.fetchall():
        cursor.execute(f"select count(*) from {name} force index (`{index}`)")
        found = cursor.fetchone()[0]
        if found != rows:
            raise SystemExit(f"{name} has {rows} rows, and {found} by its index {index}")
    check_words_and_places(cursor, name)
    cursor.execute(f"check table {name} extended")
    for _, _, kind, text in cursor.fetchall():
        if kind in ("error", "warning") or (kind == "status" and text != "OK"):
            raise SystemExit(f"CHECK TABLE {name}: {kind}: {text}")
    cursor.execute(f"insert ignore into {name} (id) values (-1)")
    cursor.execute(f"delete from {name} where id = -1")


def check(server: Server, before: dict[str, Any], acknowledged: set[int], offset: int) -> int:
    text = log_since(server, offset)
    for words in DISAGREE:
        if words in text:
            raise SystemExit(f"the server's log says `{words}`: see {server.log}")
    # The list of partitions of a table under way (.par) is the server's alone, and seldom stays
    # behind without its .frm: nothing reads it.
    left = [path for path in server.data.glob("*/#sql*")
            if path.suffix == ".frm" or path.suffix == ".par" and path.with_suffix(".frm").exists()]
    if left:
        raise SystemExit(f"left over: {left}")
    connection = server.connect("test")
    with connection.cursor() as cursor:
        cursor.execute("select concat(table_schema, '.', table_name), table_comment "
                       "from information_schema.tables where table_type = 'BASE TABLE' and "
                       "(table_schema = 'test' or table_schema like 'schema%')")
        tables = cursor.fetchall()
        for name, _ in tables:
            check_table(cursor, name)
        check_exchanged(cursor)
        cursor.execute("select id from loaded")
        missing = acknowledged - {row[0] for row in cursor.fetchall()}
    connection.close()
    if missing:
        raise SystemExit(f"acknowledged and not there: {sorted(missing)[:10]}")
    for table, was in before.items():
        if fingerprint(server, table) != was:
            raise SystemExit(f"{table} has changed, though nobody wrote to it")
    return len(tables)


def set_up(server: Server) -> dict[str, Any]:
    server.run("create database if not exists test")
    server.run("create table numbers (id int primary key) select seq as id, seq from seq_1_to_3000",
               database="test")
    server.run("create table loaded (id int primary key, a int, w varchar(200)"
               " default (concat('word', a, ' text', abs(id))), g point not null"
               " default (point(coalesce(a, 0), id)))",
               f"insert into loaded (id, a) select -seq, seq % 50 from seq_1_to_{LOADED}",
               database="test")
    columns = "id int, part int default 1, mark char(1), primary key (id, part), key (mark)"
    server.run(f"create table swap ({columns}) partition by list (part) "
               "(partition p1 values in (1), partition p2 values in (2))", database="test")
    for part in EXCHANGED:
        server.run(f"create table swap_{part} ({columns})", *(
            f"insert into {table} select seq, {part}, '{mark}' from seq_1_to_{SWAPPED}"
            for table, mark in (("swap", "x"), (f"swap_{part}", "y"))), database="test")
    rows = ROWS.format(1500)
    for k in range(3):
        server.run(f"create table still_{k} ({COLUMNS}, key(a), unique(b))",
                   f"insert into still_{k} {rows}", database="test")
    server.run("alter table still_1 add d int default 4", "alter table still_1 add index (c)",
               "alter table still_2 drop index b",
               "alter table still_2 partition by hash(id) partitions 4", database="test")
    return {f"test.still_{k}": fingerprint(server, f"test.still_{k}") for k in range(3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    say(f"seed {options.seed}")
    rng = random.Random(options.seed)
    layout = Layout()
    server = Server(layout, "ddl", ["performance-schema=off"])
    server.start()
    before = set_up(server)
    acknowledged: set[int] = set()
    numbers = itertools.count(1)
    done = seen = exchanged = 0
    for kill in range(options.kills):
        load = Load(server, options.seed + kill, numbers)
        load.run_until(rng.randrange(3, 40))
        time.sleep(rng.random() * rng.choice([0.01, 0.1, 0.5]))
        server.kill()
        load.end()
        done += load.done
        exchanged += len(load.exchanges)
        acknowledged.update(load.acknowledged)
        offset = len(server.log.read_text(errors="replace"))
        server.start()
        try:
            seen += check(server, before, acknowledged, offset)
        except (Exception, SystemExit):
            met = "\n".join(load.last.values())
            log = log_since(server, offset)
            said = "\n".join(line for line in log.splitlines() if "InnoDB" not in line)
            say(f"kill {kill + 1} met these statements:\n{met}\nthe log since:\n{said}")
            raise
    server.stop()
    offset = len(server.log.read_text(errors="replace"))
    server.start()
    for words in (*DISAGREE, *LEFT_OVER):
        if words in log_since(server, offset):
            raise SystemExit(f"after a clean stop the log says `{words}`: see {server.log}")
    server.stop()
    log = log_since(server, 0)
    back, dropped = log.count("goes back to"), log.count(LEFT_OVER[1])
    layout.remove()
    print(f"{options.kills} kills among {done} statements, of which {exchanged} exchanged a "
          f"partition: {seen} tables checked, {len(acknowledged)} acknowledged inserts there; "
          f"after the kills {back} partitions were put back, {dropped} tables and partitions "
          "dropped; nothing is left over")


if __name__ == "__main__":
    sys.exit(main())
