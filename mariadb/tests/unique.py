"""Many writers at once at every isolation level: no unique key lets two rows in.

    unique.py [--rounds 2] [--transactions 60] [--seed N] [--clients 6]

Of keys that the server checks itself: of long values (by a hash) and WITHOUT OVERLAPS. Clients insert,
replace, update, move rows to other primary keys and delete them, in transactions of a few statements
with savepoints, on few values; then no two rows may be in each other's way, and CHECK TABLE EXTENDED
finds none.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Callable

import pymysql

from server import Layout, Server, all_of, say

DUPLICATE, TIMEOUT, DEADLOCK = 1062, 1205, 1213
LEVELS = ["read uncommitted", "read committed", "repeatable read", "serializable"]

# Tables whose values are `v`: each a definition, how a value is made, and how two are compared.
HASHED = {
    "blobs": ("id int primary key, n int, v blob, unique (v)", "v{0}", "v"),
    "texts": ("id int primary key, n int, v text collate utf8mb4_general_ci not null, unique (v)",
              "v{0}", "v"),
    "longs": ("id int, n int, v varchar(3000) character set utf8mb4, unique (v), key (id)",
              "v{0}", "v"),
    "parts": ("id int primary key, n int, v blob, unique (v(2))", "v{0}{1}", "left(v, 2)"),
    "pairs": ("id int, n int, g int, v text, unique (g, v), key (id)", "v{0}", "concat(g, ':', v)"),
    "split": ("id int, n int, g int as (id % 2) stored, v blob, unique (v, id), key (id)",
              "v{0}", "concat(id, ':', v)"),
}
PARTITIONED = {"split": " partition by hash (id) partitions 3"}

PERIODS = {
    "periods": "id int primary key, k int, s int, e int, b date, f date, period for p (b, f), "
               "unique (k, p without overlaps)",
    "prefixes": "id int primary key, k varchar(20), s int, e int, b date, f date, "
                "period for p (b, f), unique (k(1), p without overlaps)",
}

# One client's statement: what it runs, given its own randomness.
Statement = Callable[[random.Random], str]


def hashed_statement(table: str, rng: random.Random) -> str:
    made = HASHED[table][1]
    value = lambda: made.format(rng.randrange(5), rng.randrange(100))
    number = rng.randrange(40)
    columns, values = "id, n, v", f"{number}, {rng.randrange(9)}, '{value()}'"
    if table == "pairs":
        columns, values = columns + ", g", values + f", {rng.randrange(2)}"
    # Rows of an id are those of one key of the partitioned table: few of them, so that they meet.
    if table == "split":
        values = f"{rng.randrange(3)}, {rng.randrange(9)}, '{value()}'"
    insert = f"into {table} ({columns}) values ({values})"
    choice = rng.randrange(10)
    if choice < 4:
        return f"insert {insert}"
    if choice == 4:
        return f"insert ignore {insert}"
    if choice == 5:
        return f"replace {insert}"
    if choice == 6:
        return f"insert {insert} on duplicate key update n = n + 1, v = '{value()}'"
    if choice == 7:
        return f"update {rng.choice(['', 'ignore '])}{table} set v = '{value()}' where id = {number}"
    if choice == 8 and table != "split":
        return f"update {table} set id = {rng.randrange(40)} where id = {number}"
    return f"delete from {table} where v = '{value()}'"


def period_statement(table: str, rng: random.Random) -> str:
    first = rng.randrange(1, 25)
    days = f"'2020-01-{first:02}', '2020-01-{first + rng.randrange(1, 4):02}'"
    key = rng.randrange(2)
    key_text = f"'{key}{rng.randrange(100)}'" if table == "prefixes" else str(key)
    number = rng.randrange(60)
    choice = rng.randrange(10)
    if choice < 5:
        return f"insert into {table} (id, k, b, f) values ({number}, {key_text}, {days})"
    if choice == 5:
        return f"insert ignore into {table} (id, k, b, f) values ({number}, {key_text}, {days})"
    if choice == 6:
        return f"update {table} set k = {key_text} where id = {number}"
    if choice == 7:
        return f"update {table} set f = f + interval 1 day where id = {number}"
    if choice == 8:
        return f"update {table} set id = {rng.randrange(60)} where id = {number}"
    return f"delete from {table} where b >= '2020-01-{first:02}' limit 2"


def client(server: Server, table: str, seed: int, transactions: int) -> dict[int, int]:
    """Runs transactions; how often each error came. Any other than the expected is raised."""
    rng = random.Random(seed)
    of_table = period_statement if table in PERIODS else hashed_statement
    errors: dict[int, int] = {}
    connection = server.connect("test", autocommit=True)
    with connection.cursor() as cursor:
        for _ in range(transactions):
            cursor.execute(f"set session transaction isolation level {rng.choice(LEVELS)}")
            cursor.execute("begin")
            for number in range(rng.randrange(1, 4)):
                if rng.random() < 0.2:
                    cursor.execute(f"savepoint s{number}")
                statement = of_table(table, rng)
                try:
                    cursor.execute(statement)
                except pymysql.Error as error:
                    code = error.args[0]
                    if code not in (DUPLICATE, TIMEOUT, DEADLOCK):
                        raise AssertionError(f"seed {seed}: {statement}: {error}") from error
                    errors[code] = errors.get(code, 0) + 1
                    if code == DEADLOCK:
                        break
                if rng.random() < 0.1:
                    try:
                        cursor.execute(f"rollback to s{number}")
                    except pymysql.Error:
                        pass  # there is none
                if rng.random() < 0.3:
                    time.sleep(0.002)
            cursor.execute("commit" if rng.random() < 0.8 else "rollback")
    connection.close()
    return errors


def in_the_way(server: Server, table: str) -> list[tuple[object, ...]]:
    """Rows that are in each other's way."""
    if table in PERIODS:
        same = "a.k = b.k" if table == "periods" else "left(a.k, 1) = left(b.k, 1)"
        query = (f"select a.id, b.id, a.k, a.b, a.f, b.b, b.f from {table} a join {table} b "
                 f"on a.id < b.id and {same} and a.b < b.f and b.b < a.f")
    else:
        of = HASHED[table][2]
        query = f"select {of}, count(*) from {table} where v is not null group by 1 having count(*) > 1"
    return server.run(query, database="test")


def race(server: Server, table: str, seed: int, clients: int, transactions: int) -> int:
    definition = PERIODS[table] if table in PERIODS else HASHED[table][0]
    server.run(f"create or replace table {table} ({definition}) engine=shale"
               + PARTITIONED.get(table, ""), database="test")
    found = all_of((client, server, table, seed * 100 + number, transactions)
                   for number in range(clients))
    wrong = in_the_way(server, table)
    assert not wrong, f"{table}, seed {seed}: rows are in each other's way: {wrong[:5]}"
    result = server.run(f"check table test.{table} extended")
    assert result[-1][3] == "OK", (table, seed, result)
    return sum(errors.get(DUPLICATE, 0) for errors in found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--transactions", type=int, default=60)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    options = parser.parse_args()
    layout = Layout()
    server = Server(layout, "unique", ["shale-lock-wait-timeout=5"])
    server.start()
    server.run("create database if not exists test")
    refused = 0
    try:
        for number in range(options.rounds):
            for table in [*HASHED, *PERIODS]:
                refused += race(server, table, options.seed + number, options.clients,
                                options.transactions)
    except AssertionError as error:
        raise SystemExit(f"unique: --seed {options.seed} --rounds {options.rounds}: {error}; the "
                         f"server's files are in {layout.folder}") from error
    assert refused > 0, "no statement met a duplicate: nothing was tried"
    server.stop()
    layout.remove()
    say(f"unique: seed {options.seed}: no two rows in each other's way, {refused} statements refused")


if __name__ == "__main__":
    sys.exit(main())
