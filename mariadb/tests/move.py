#!/usr/bin/env python3
"""Tables move between two servers as files, and either server is killed meanwhile.

    mariadb/tests/move.py                   8 rounds
    mariadb/tests/move.py --rounds 40 --seed 7

In each round a table of the first server is exported while others write to that server, and the
second makes it its own, by DISCARD and IMPORT TABLESPACE. One of the two is killed at a random
moment of that. After its start the table of the first server has its rows. That of the second has
its old rows, or is discarded, or has the new rows: all of them, by each index, with CHECK TABLE
content. Where it is discarded the file is still there, and imported then; what a killed export has
left is imported as a whole, or refused. A last clean start drops no tree: none was left over.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import shutil
import sys
import threading
import time
from typing import Any

import pymysql

from server import Layout, Server, say

DISCARDED, REFUSED = 1814, 1816
LEFT_OVER = ("belongs to no table and is dropped", "is left over from a statement")
ROWS = 12000
# By name: columns, and what a row has.
TABLES = {
    "plain": ("id int auto_increment primary key, a int, b varchar(200), key (a), unique (b)",
              "seq, seq % 97, concat(seq, repeat('b', seq % 150))"),
    "hidden": ("a int, b text, c double, key (c)", "seq, repeat('t', seq % 300), seq / 7"),
    "computed": ("id bigint primary key, a int, v int as (a * 2) virtual, s varchar(40) as "
                 "(concat('s', a)) stored, key (v), key (s)", None),
    "wide": ("id int, part int, d decimal(30, 9), e enum('x', 'y', 'z'), f datetime(6), "
             "primary key (part, id), key (d desc), key (e, f)",
             "seq, seq % 11, seq / 13, 1 + seq % 3, '2020-01-01' + interval seq second"),
}
OPTIONS = {"wide": "compression='lz4'", "hidden": "dictionary=no"}


def create(name: str) -> str:
    return f"create table {name} ({TABLES[name][0]}) engine=shale {OPTIONS.get(name, '')}"


def fill(name: str, rows: int) -> str:
    values = TABLES[name][1]
    if values is None:
        return f"insert into {name} (id, a) select seq, seq % 1000 from seq_1_to_{rows}"
    return f"insert into {name} select {values} from seq_1_to_{rows}"


def fingerprint(cursor: Any, name: str) -> Any:
    """Rows and what they are, by a scan and by each index; None: the table is discarded."""
    cursor.execute("select column_name from information_schema.columns where table_schema = 'test' "
                   f"and table_name = '{name}' order by ordinal_position")
    columns = ", ".join(f"ifnull(`{column}`, 'NULL')" for (column,) in cursor.fetchall())
    cursor.execute("select distinct index_name from information_schema.statistics where "
                   f"table_schema = 'test' and table_name = '{name}'")
    indexes = [index for (index,) in cursor.fetchall()]
    found = set()
    for by in ["", *(f"force index (`{index}`)" for index in indexes)]:
        try:
            cursor.execute(f"select count(*), sum(crc32(concat_ws('/', {columns}))) "
                           f"from {name} {by}")
        except pymysql.err.Error as error:
            if error.args[0] == DISCARDED:
                return None
            raise
        found.add(cursor.fetchone())
        cursor.execute(f"select count(*) from {name} {by}")
        found.add((cursor.fetchone()[0], next(iter(found))[1]))
    if len(found) != 1:
        raise SystemExit(f"indexes of {name} disagree: {found}")
    return found.pop()


def check(server: Server, name: str) -> Any:
    connection = server.connect("test")
    with connection.cursor() as cursor:
        found = fingerprint(cursor, name)
        if found is not None:
            cursor.execute(f"check table {name} extended")
            for _, _, kind, text in cursor.fetchall():
                if kind != "status" or text != "OK":
                    raise SystemExit(f"CHECK TABLE {name} of {server.name}: {kind}: {text}")
    connection.close()
    return found


def file_of(server: Server, name: str) -> pathlib.Path:
    return server.data / "test" / f"{name}.shale"


class Writers:
    """Others write to a table of the first server meanwhile. Errors are expected: it is killed."""

    def __init__(self, server: Server) -> None:
        self.stopped = False
        self.server = server
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        try:
            connection = self.server.connect("test")
            with connection.cursor() as cursor:
                while not self.stopped:
                    cursor.execute("insert into busy (a) values (1), (2), (3)")
                    cursor.execute("update busy set a = a + 1 order by id desc limit 5")
        except pymysql.err.Error:
            pass

    def end(self) -> None:
        self.stopped = True
        self.thread.join(60)


class Mover:
    def __init__(self, layout: Layout, rng: random.Random) -> None:
        self.rng = rng
        self.moved = layout.folder / "moved.shale"
        self.source = Server(layout, "from", ["performance-schema=off"])
        self.target = Server(layout, "to", ["performance-schema=off"])
        self.ends: dict[str, int] = {}
        self.flushing = 0.0  # seconds that the last export took
        for server in (self.source, self.target):
            server.start()
            server.run("create database if not exists test")
        self.source.run("create table busy (id int auto_increment primary key, a int, key (a))",
                        database="test")
        for name in TABLES:
            self.source.run(create(name), fill(name, ROWS), database="test")
            self.target.run(create(name), fill(name, 10), database="test")

    def count(self, what: str) -> None:
        self.ends[what] = self.ends.get(what, 0) + 1

    def export(self, name: str) -> Any:
        """Leaves the file in `moved`, and gives what the rows were."""
        connection = self.source.connect("test")
        with connection.cursor() as cursor:
            began = time.monotonic()
            cursor.execute(f"flush tables {name} for export")
            self.flushing = time.monotonic() - began
            was = fingerprint(cursor, name)
            shutil.copy(file_of(self.source, name), self.moved)
            cursor.execute("unlock tables")
        connection.close()
        if file_of(self.source, name).exists():
            raise SystemExit("UNLOCK TABLES has left the file of an export")
        return was

    def take(self, name: str) -> None:
        connection = self.target.connect("test")
        with connection.cursor() as cursor:
            cursor.execute(f"alter table {name} discard tablespace")
            shutil.copy(self.moved, file_of(self.target, name))
            cursor.execute(f"alter table {name} import tablespace")
        connection.close()

    def killed(self, server: Server, work: Any, seconds: float) -> None:
        def quietly() -> None:
            try:
                work()
            except (pymysql.err.Error, FileNotFoundError):
                pass

        thread = threading.Thread(target=quietly, daemon=True)
        thread.start()
        time.sleep(self.rng.random() * seconds)
        server.kill()
        thread.join(120)
        server.start()

    def change(self, name: str) -> None:
        """The rows of the next round are others, and of more than one form."""
        self.source.run(f"delete from {name} where a % 7 = {self.rng.randrange(7)}"
                        if name != "wide" else
                        f"delete from wide where part = {self.rng.randrange(11)}", database="test")
        column = f"n{self.rng.randrange(10**6)}"
        for server in (self.source, self.target):
            server.run(f"alter table {name} add {column} int default 5, algorithm=instant",
                       database="test")

    def kill_target(self, name: str, before: Any, seconds: float) -> None:
        after = self.export(name)
        # A copy that was not finished is no file to import.
        self.killed(self.target, lambda: self.take(name), seconds)
        found = check(self.target, name)
        if found is None:
            self.count("discarded")
            whole = file_of(self.target, name)
            if not whole.exists() or whole.stat().st_size < self.moved.stat().st_size:
                shutil.copy(self.moved, whole)
            self.target.run(f"alter table {name} import tablespace", database="test")
            found = check(self.target, name)
        elif found == after and found != before:
            self.count("imported")
        elif found == before:
            self.count("not begun")
            self.take(name)
            found = check(self.target, name)
        if found != after:
            raise SystemExit(f"{name} has {found}, and was {after}")

    def kill_source(self, name: str) -> None:
        before = check(self.source, name)
        self.killed(self.source, lambda: self.export(name), 1.5 * self.flushing)
        if check(self.source, name) != before:
            raise SystemExit(f"{name} has changed by an export")
        left = file_of(self.source, name)
        if not left.exists():
            self.count("no file")
            return
        left.rename(self.moved)
        try:
            self.take(name)
        except pymysql.err.Error as error:
            if error.args[0] != REFUSED:
                raise
            self.count("a part refused")
            return
        self.count("a whole file")
        if check(self.target, name) != before:
            raise SystemExit(f"{name} was imported, and is otherwise")

    def round(self) -> None:
        name = self.rng.choice(list(TABLES))
        self.change(name)
        writers = Writers(self.source)
        was = self.export(name)
        exported = time.monotonic()
        self.take(name)
        taken = time.monotonic()
        if check(self.target, name) != was:
            raise SystemExit(f"{name} has {check(self.target, name)}, and was {was}")
        self.change(name)
        before = check(self.target, name)
        if self.rng.random() < 0.6:
            self.kill_target(name, before, taken - exported)
        else:
            self.kill_source(name)
        writers.end()
        if check(self.target, name) is None:
            self.export(name)
            self.target.run(f"truncate {name}", database="test")
            self.take(name)
        check(self.source, "busy")

    def end(self) -> None:
        for server in (self.source, self.target):
            server.stop()
            offset = len(server.log.read_text(errors="replace"))
            server.start()
            text = server.log.read_text(errors="replace")[offset:]
            server.stop()
            for words in LEFT_OVER:
                if words in text:
                    raise SystemExit(f"after a clean stop the log says `{words}`: {server.log}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    say(f"seed {options.seed}")
    layout = Layout()
    mover = Mover(layout, random.Random(options.seed))
    for _ in range(options.rounds):
        mover.round()
    mover.end()
    layout.remove()
    ends = ", ".join(f"{count} {what}" for what, count in sorted(mover.ends.items()))
    print(f"{2 * options.rounds} tables were moved, each second one past a kill ({ends}); all have "
          "their rows, nothing is left over")


if __name__ == "__main__":
    sys.exit(main())
