"""Versions by transaction id: the same work on a table of SHALE and on one of InnoDB.

    versions.py [--seconds 8] [--kills 2] [--clients 3] [--seed N]

A transaction does the same to both tables, so both have the same rows with the same ids, those of
the past too, whenever they are looked at: also after kill -9. All ids are in the server's registry,
and AS OF finds the same rows at any moment. Single statements without BEGIN go to a third table, of
which the registry has all ids.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import re
import sys
import threading
import time
from typing import Any

import pymysql

import server as servers

COLUMNS = (
    "(a int primary key, b int, w varchar(30), u int without system versioning, s bigint unsigned"
    " generated always as row start, e bigint unsigned generated always as row end, period for"
    " system_time (s, e)) with system versioning engine="
)
TRIES = 3
TABLES = {"ours": "shale", "theirs": "innodb", "alone": "shale"}
KEYS = 40


def statement(chance: random.Random, first: int) -> str:
    """With {} where the table is."""
    a, b = first + chance.randrange(KEYS), chance.randrange(1000)
    return chance.choice([
        f"insert ignore into {{}} (a, b, w) values ({a}, {b}, 'w{b}'), ({a + 1}, {b}, 'x')",
        f"replace into {{}} (a, b) values ({a}, {b})",
        f"insert into {{}} (a, b) values ({a}, {b}) on duplicate key update b = b + 1",
        f"update {{}} set b = {b} where a between {a} and {a + 3}",
        f"update {{}} set u = {b} where a = {a}",
        f"update {{}} set w = concat('y', {b}), u = {b} where a = {a}",
        f"delete from {{}} where a between {a} and {a + chance.randrange(3)}",
    ])


def work(cursor: Any, chance: random.Random, first: int) -> None:
    if chance.random() < 0.3:
        cursor.execute(statement(chance, first).format("alone"))
        return
    cursor.execute("begin")
    for _ in range(chance.randrange(1, 5)):
        one = statement(chance, first)
        undone = chance.random() < 0.2
        if undone:
            cursor.execute("savepoint x")
        for table in ("ours", "theirs"):
            cursor.execute(one.format(table))
        if undone:
            cursor.execute("rollback to x")
    cursor.execute("commit" if chance.random() < 0.9 else "rollback")


def client(server: servers.Server, seed: int, first: int, until: float) -> None:
    chance = random.Random(seed)
    try:
        cursor = server.connect("v").cursor()
        while time.monotonic() < until:
            work(cursor, chance, first)
    except (pymysql.err.OperationalError, pymysql.err.InterfaceError):
        if time.monotonic() < until and not server.killed:  # type: ignore[attr-defined]
            raise


def rows(cursor: Any, table: str, when: str) -> Any:
    cursor.execute(f"select a, b, w, u, s, e from {table} for system_time {when} order by a, e, s")
    return cursor.fetchall()


def check(server: servers.Server, chance: random.Random) -> tuple[int, int]:
    cursor = server.connect("v").cursor()
    both = [rows(cursor, table, "all") for table in ("ours", "theirs")]
    assert both[0] == both[1], first_difference(*both)
    for table in ("ours", "alone"):
        cursor.execute(f"select distinct s from {table} for system_time all where s not in"
                       " (select transaction_id from mysql.transaction_registry)")
        lost = cursor.fetchall()
        assert not lost, f"{table}: ids that the registry lacks: {lost}"
        cursor.execute(f"check table {table} extended")
        told = cursor.fetchall()
        assert told[-1][3] == "OK", told
    cursor.execute("select commit_timestamp from mysql.transaction_registry")
    moments = [str(moment) for moment, in cursor.fetchall()]
    for moment in chance.sample(moments, min(12, len(moments))):
        found = [rows(cursor, table, f"as of timestamp '{moment}'") for table in ("ours", "theirs")]
        assert found[0] == found[1], (moment, first_difference(*found))
    return len(both[0]), len(moments)


def first_difference(ours: Any, theirs: Any) -> str:
    for mine, other in zip(ours, theirs):
        if mine != other:
            return f"SHALE has {mine}, InnoDB {other}"
    return f"SHALE has {len(ours)} rows, InnoDB {len(theirs)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    for again in range(TRIES):
        layout = servers.Layout()
        try:
            run(given, layout)
            break
        except BaseException:
            # After a kill InnoDB now and then finds its undo logs out of order, and starts no more.
            assertion = of_innodb(layout.folder)
            if assertion is None or again + 1 == TRIES:
                raise
            print(f"versions: seed {given.seed}: InnoDB does not start again, for an assertion of its"
                  f" own: {assertion}; once more with another seed", flush=True)
            given.seed += 1
    return 0


def of_innodb(folder: pathlib.Path) -> str | None:
    """What InnoDB asserted when it ended a server."""
    for log in folder.glob("*.log"):
        found = re.search(r"InnoDB: Failing assertion: (.*)", log.read_text(errors="replace"))
        if found:
            return found.group(1)
    return None


def run(given: argparse.Namespace, layout: servers.Layout) -> None:
    chance = random.Random(given.seed)
    # Without the binary log the server's own tc.log decides after a crash, and now and then forgets
    # one of two engines: of InnoDB and MyRocks too.
    options = ["innodb-buffer-pool-size=64M"] + (["log-bin", "server-id=1"] if given.kills else [])
    server = servers.Server(layout, "versions", options)
    server.start()
    server.run("create database v")
    for name, engine in TABLES.items():
        server.run(f"create table v.{name} {COLUMNS}{engine}")
    seen = (0, 0)
    for part in range(given.kills + 1):
        server.killed = False  # type: ignore[attr-defined]
        until = time.monotonic() + given.seconds / (given.kills + 1)
        threads = [
            threading.Thread(target=client, args=(server, chance.randrange(1 << 30), 1000 * i, until))
            for i in range(given.clients)
        ]
        for thread in threads:
            thread.start()
        if part < given.kills:
            time.sleep(max(0.0, until - time.monotonic() - chance.random() * 0.5))
            server.killed = True  # type: ignore[attr-defined]
            server.kill()
        for thread in threads:
            thread.join()
        if part < given.kills:
            server.start()
        seen = check(server, chance)
    server.stop()
    layout.remove()
    print(f"versions: {given.kills} kills, {seen[0]} rows of all times and {seen[1]} transactions"
          f" are InnoDB's; seed {given.seed}")


if __name__ == "__main__":
    sys.exit(main())
