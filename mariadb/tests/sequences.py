"""No value of a sequence is given twice, though many ask at once and the server is killed.

    sequences.py [--kills 6] [--clients 6] [--seed N]

Clients ask sequences with and without a cache: alone, in transactions that are committed or rolled
back, and by inserts whose rows have them. The server is killed among that, with a binary log in every
other round. All values that clients were told, and those of all rows, differ; rows that were
acknowledged are there.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import pymysql

from server import Layout, Server, all_of, say

SEQUENCES = {"plain": "nocache", "few": "cache 3", "cached": "", "down": "increment -1 cache 5"}
BINLOG = ["log-bin=bin", "binlog-format=ROW", "server-id=1"]
GONE = (2003, 2006, 2013, 2055)


# The sequence, a value, and whether it is that of a row.
Told = tuple[str, int, bool]


def ask(server: Server, seed: int, told: list[Told]) -> None:
    """Asks until the server is gone."""
    rng = random.Random(seed)
    try:
        connection = server.connect("sequences")
        with connection.cursor() as cursor:
            while True:
                name = rng.choice(list(SEQUENCES))
                ending = rng.choice(["", "", "commit", "rollback"])
                if ending:
                    cursor.execute("begin")
                inserts = rng.random() < 0.3
                if inserts:
                    cursor.execute(f"insert into rows_of_{name} values (default), (default) returning id")
                    values = [row[0] for row in cursor.fetchall()] if ending != "rollback" else []
                else:
                    cursor.execute(f"select nextval({name}), nextval({name})")
                    values = list(cursor.fetchone() or ())
                # What a statement of its own has told is durable; of others the commit says so.
                if ending:
                    cursor.execute(ending)
                told.extend((name, value, inserts) for value in values)
    except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
        if error.args[0] not in (*GONE, 0):
            raise


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    say(f"seed {given.seed}")
    layout = Layout()
    server = Server(layout, "sequences")
    server.start()
    server.run("create database sequences")
    for name, options in SEQUENCES.items():
        server.run(
            f"create sequence {name} {options}",
            f"create table rows_of_{name} (id bigint primary key default nextval({name}))",
            database="sequences",
        )
    told: list[Told] = []
    rng = random.Random(given.seed)
    for number in range(given.kills):
        lists: list[list[Told]] = [[] for _ in range(given.clients)]
        calls = [(ask, server, rng.randrange(1 << 30), one) for one in lists]
        all_of([*calls, (kill_after, server, rng.uniform(0.3, 1.5))])
        told += [one for each in lists for one in each]
        server.start(*(BINLOG if number % 2 == 0 else []))
    rows = [(name, value, True) for name in SEQUENCES
            for (value,) in server.run(f"select id from rows_of_{name}", database="sequences")]
    checked = server.run(*(f"check table rows_of_{name} extended" for name in SEQUENCES),
                         database="sequences")
    server.stop()
    lost = {one for one in told if one[2]} - set(rows)
    values = [one[:2] for one in told if not one[2]] + [one[:2] for one in rows]
    twice = len(values) - len(set(values))
    print(f"{given.kills} kills, {len(values)} values, {twice} twice; {len(rows)} rows, {len(lost)} lost")
    if twice or lost or not rows or len(values) == len(rows) or checked[0][3] != "OK":
        return 1
    layout.remove()
    return 0


def kill_after(server: Server, seconds: float) -> None:
    time.sleep(seconds)
    server.kill()


if __name__ == "__main__":
    sys.exit(main())
