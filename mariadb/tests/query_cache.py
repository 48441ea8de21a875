"""The query cache under load: what it gives is committed, whole, and not older than what was
acknowledged before the question.

    query_cache.py [--seconds 8] [--seed N]

Writers count up one row of two tables (one of them partitioned) in one transaction, by autocommit of a
multi-table UPDATE, by two-phase commit that another client decides; or make both negative and roll
that back. Readers ask the same few queries again and again, at every isolation level.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time

import pymysql

from server import Layout, Server, all_of, say

LEVELS = ["read uncommitted", "read committed", "repeatable read", "serializable"]
RETRY = (1205, 1213)
QUERIES = [
    "select t.v, p.v from t join p using (id) where id = 1",
    "select (select v from t where id = 1), (select v from p where id = 1)",
    "select min(v), max(v) from (select v from t where id = 1 union all select v from p where id = 1) x",
]


class Race:
    def __init__(self, server: Server, seconds: float) -> None:
        self.server = server
        self.ends = time.monotonic() + seconds
        # What is certainly committed: only grows, by the clock of the clients.
        self.committed = 0
        self.turn = threading.Lock()

    def going_on(self) -> bool:
        return time.monotonic() < self.ends

    def write(self, seed: int) -> None:
        rng = random.Random(seed)
        connection = self.server.connect("test")
        other = self.server.connect("test")
        with connection.cursor() as cursor, other.cursor() as decides:
            while self.going_on():
                way = rng.randrange(4)
                try:
                    # One after the other, so that it is known what is committed.
                    with self.turn:
                        if way == 0:
                            cursor.execute("begin")
                            cursor.execute("update t set v = v + 1 where id = 1")
                            time.sleep(rng.random() * 0.005)
                            cursor.execute("update p set v = v + 1 where id = 1")
                            cursor.execute("commit")
                        elif way == 1:
                            cursor.execute("update t, p set t.v = t.v + 1, p.v = p.v + 1 "
                                           "where t.id = 1 and p.id = 1")
                        elif way == 2:
                            cursor.execute("begin")
                            cursor.execute("update t set v = -7")
                            cursor.execute("update p set v = -8")
                            time.sleep(rng.random() * 0.005)
                            cursor.execute("rollback")
                        else:
                            xid = f"'x{seed}'"
                            third = self.server.connect("test")
                            with third.cursor() as prepares:
                                prepares.execute(f"xa start {xid}")
                                prepares.execute("update t set v = v + 1 where id = 1")
                                prepares.execute("update p set v = v + 1 where id = 1")
                                prepares.execute(f"xa end {xid}")
                                prepares.execute(f"xa prepare {xid}")
                            third.close()
                            self.decide(decides, xid)
                        self.committed += way != 2
                except pymysql.Error as error:
                    if error.args[0] not in RETRY:
                        raise
                    cursor.execute("rollback")
                time.sleep(rng.random() * 0.01)
        connection.close()
        other.close()

    @staticmethod
    def decide(cursor: pymysql.cursors.Cursor, xid: str) -> None:
        while True:
            try:
                cursor.execute(f"xa commit {xid}")
                return
            except pymysql.Error as error:
                # The server has not let go of it yet.
                if error.args[0] != 1397:
                    raise

    def read(self, seed: int) -> int:
        rng = random.Random(seed)
        connection = self.server.connect("test")
        hits = 0
        with connection.cursor() as cursor:
            while self.going_on():
                cursor.execute(f"set session transaction isolation level {rng.choice(LEVELS)}")
                for _ in range(30):
                    known, query = self.committed, rng.choice(QUERIES)
                    cursor.execute(query)
                    (one, two), = cursor.fetchall()
                    assert one == two and one >= known, (query, one, two, "committed", known)
                    hits += 1
        connection.close()
        return hits


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    options = parser.parse_args()
    layout = Layout()
    server = Server(layout, "query-cache", ["query-cache-type=1", "query-cache-size=4M", "log-bin",
                                            "shale-lock-wait-timeout=2"])
    server.start()
    server.run("create database if not exists test", "use test",
               "create table t (id int primary key, v int) engine=shale",
               "create table p (id int primary key, v int) engine=shale partition by hash (id) "
               "partitions 2",
               "insert into t values (1, 0), (2, 0)", "insert into p values (1, 0), (2, 0)")
    race = Race(server, options.seconds)
    calls = [(race.write, options.seed + n) for n in range(2)]
    try:
        reads = all_of([*calls, *((race.read, options.seed + 10 + n) for n in range(4))])[2:]
    except AssertionError as error:
        raise SystemExit(f"query_cache: --seed {options.seed}: {error}") from error
    hits = server.status("qcache_hits")
    assert hits > 0 and race.committed > 0, (hits, race.committed)
    assert server.run("select v from test.t where id = 1") == [(race.committed,)]
    server.stop()
    layout.remove()
    say(f"query_cache: seed {options.seed}: {sum(reads)} reads, {hits} of them from the cache, "
        f"{race.committed} changes, nothing stale or uncommitted")


if __name__ == "__main__":
    sys.exit(main())
