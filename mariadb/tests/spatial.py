"""SPATIAL indexes answer as InnoDB's: random shapes, all relations, with changes, rollbacks, other
sessions' snapshots, ALTER TABLE and kills of the server in between.

    spatial.py [--seed N] [--rounds 2] [--queries 120] [--rows 1500] [--kills 1]

Each table is in both engines with the same rows, and each query runs in both, by the index as the
optimizer likes and by force; SHALE's answer is held against its own without the index, too. (Where
InnoDB's index and InnoDB's table disagree, the table is right; such queries are counted.) Whenever
InnoDB uses its index, SHALE has to use its own. At the end of each round: CHECK TABLE.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import threading
from typing import Any

import pymysql
import server as servers

ENGINES = ["innodb", "shale"]
KEYS = {
    "int": ("k int", "primary key (k)"),
    "text": ("k varchar(40) character set utf8mb4", "primary key (k)"),
    "two": ("k int, l varchar(10) not null default 'x'", "primary key (l desc, k)"),
    "hidden": ("k int", "key (k)"),
}
# Of the windows, and of the columns.
RELATIONS = [
    "mbrcontains(g, {w})", "mbrcontains({w}, g)", "mbrwithin(g, {w})", "mbrintersects(g, {w})",
    "mbrdisjoint(g, {w})", "mbrequal(g, {w})", "mbroverlaps(g, {w})", "mbrtouches(g, {w})",
    "st_contains(g, {w})", "st_contains({w}, g)", "st_within(g, {w})", "st_intersects(g, {w})",
    "st_disjoint(g, {w})", "st_equals(g, {w})", "st_overlaps(g, {w})", "st_touches(g, {w})",
    "st_crosses(g, {w})", "within(g, {w})", "intersects({w}, g)",
    "mbrintersects(g, {w}) and st_distance(g, {w}) < 1", "mbrwithin(g, {w}) and n % 3 = 0",
    "mbrwithin(g, {w}) or mbrequal(g, {v})", "mbrintersects(g, {w}) and mbrintersects(g, {v})",
]


class Shapes:
    """Shapes of one kind of place."""

    PLACES = ["degrees", "clusters", "grid", "meters", "tiny", "huge", "zero", "mixed"]

    def __init__(self, chance: random.Random, place: str, type_: str) -> None:
        self.chance, self.place, self.type = chance, place, type_
        self.centers = [self.at(chance.choice([180.0, 10.0])) for _ in range(8)]

    def at(self, limit: float) -> tuple[float, float]:
        return self.chance.uniform(-limit, limit), self.chance.uniform(-limit, limit)

    def corner(self) -> tuple[float, float, float]:
        """A point, and how large shapes there are."""
        chance = self.chance
        place = self.place
        if place == "mixed":
            place = chance.choice([one for one in self.PLACES if one not in ("mixed", "huge")])
        if place == "degrees":
            return (*self.at(180.0), 10 ** chance.uniform(-4, 0.5))
        if place == "clusters":
            x, y = chance.choice(self.centers)
            return chance.gauss(x, 0.01), chance.gauss(y, 0.01), 10 ** chance.uniform(-6, -2)
        if place == "grid":
            return float(chance.randrange(-9, 10)), float(chance.randrange(-9, 10)), 0.0
        if place == "meters":
            return chance.uniform(0, 6e6), chance.uniform(-1e4, 6e6), chance.uniform(1, 1000)
        if place == "tiny":
            return (*self.at(1e-9), 10 ** chance.uniform(-14, -9))
        if place == "huge":
            scale = 10 ** chance.uniform(0, 300)
            return (*self.at(scale), scale * chance.random())
        return chance.uniform(-1, 0), chance.uniform(-1, 0), chance.uniform(0.5, 2)

    def points(self, count: int) -> list[tuple[float, float]]:
        x, y, size = self.corner()
        if size == 0.0:
            return [(x + self.chance.randrange(4), y + self.chance.randrange(4))
                    for _ in range(count)]
        return [(x + self.chance.random() * size, y + self.chance.random() * size)
                for _ in range(count)]

    @staticmethod
    def words(points: list[tuple[float, float]]) -> str:
        return "(" + ", ".join(f"{x!r} {y!r}" for x, y in points) + ")"

    def box(self) -> str:
        (a, b), (c, d) = self.points(2)
        return self.ring(a, b, c, d)

    @classmethod
    def ring(cls, a: float, b: float, c: float, d: float) -> str:
        return "(" + cls.words([(a, b), (c, b), (c, d), (a, d), (a, b)]) + ")"

    def shape(self, type_: str | None = None) -> str:
        chance = self.chance
        one = type_ or self.type
        if one == "geometry":
            one = chance.choice(["point", "point", "linestring", "polygon", "polygon", "multipoint",
                                 "multilinestring", "multipolygon", "geometrycollection"])
        if one == "point":
            return f"point{self.words(self.points(1))}"
        if one == "linestring":
            points = self.points(chance.randrange(2, 6))
            return "linestring" + self.words([points[0]] * 2 if chance.random() < 0.1 else points)
        if one == "polygon":
            if chance.random() < 0.7:
                return f"polygon{self.box()}"
            points = self.points(chance.randrange(3, 7))
            return "polygon(" + self.words([*points, points[0]]) + ")"
        if one == "multipoint":
            return f"multipoint{self.words(self.points(chance.randrange(1, 5)))}"
        many = range(chance.randrange(1, 4))
        if one == "multilinestring":
            return "multilinestring(" + ", ".join(self.words(self.points(2)) for _ in many) + ")"
        if one == "multipolygon":
            return "multipolygon(" + ", ".join(self.box() for _ in many) + ")"
        if chance.random() < 0.2:
            return "geometrycollection empty"
        parts = [self.shape(chance.choice(["point", "linestring", "polygon"])) for _ in many]
        return "geometrycollection(" + ", ".join(parts) + ")"

    def window(self, known: list[str]) -> str:
        kind = self.chance.random()
        if kind < 0.15 and known:
            return self.chance.choice(known)
        if kind < 0.5:
            return self.shape("geometry")
        x, y, size = self.corner()
        width = (size or 1.0) * 10 ** self.chance.uniform(-1, 2)
        if self.place in ("degrees", "mixed") and self.chance.random() < 0.3:
            width = self.chance.uniform(1, 200)
        if self.place == "grid":
            width = float(self.chance.randrange(1, 6))
        return "polygon" + self.ring(x, y, x + width, y + width)


def differ(rows: list[Any] | int, table: list[Any] | int) -> str:
    if isinstance(rows, int) or isinstance(table, int):
        return f"{rows} and {table}"[:1000]
    few = [row for row in table if row not in rows], [row for row in rows if row not in table]
    return f"lacks {few[0][:5]}, has too many {few[1][:5]}, {len(rows)} of {len(table)} rows"


def literal(shape: str) -> str:
    return f"st_geomfromtext('{shape}')"


class Pair:
    """The same table in both engines."""

    def __init__(self, server: servers.Server, chance: random.Random, key: str, place: str,
                 type_: str, rows: int) -> None:
        self.server, self.chance, self.key = server, chance, key
        self.shapes = Shapes(chance, place, type_)
        self.known: list[str] = []
        self.next = 0
        self.cursors: dict[str, Any] = {}
        self.used = {engine: 0 for engine in ENGINES}
        self.lost = self.written = 0
        self.name = f"{key}, {place}, {type_}"
        for engine in ENGINES:
            server.run(f"drop database if exists {engine}", f"create database {engine}")
        self.connect()
        columns, primary = KEYS[key]
        early = chance.random() < 0.5
        index = ", spatial key g (g)" if early else ""
        self.both(f"create table t ({columns}, g {type_} not null, n int, {primary}{index})")
        for _ in range(rows // 50):
            self.insert(50)
        if not early:
            self.both("alter table t add spatial key g (g)")
        self.both("analyze table t")

    def connect(self) -> None:
        for engine in ENGINES:
            connection = self.server.connect(engine)
            self.cursors[engine] = connection.cursor()
            self.cursors[engine].execute(f"set default_storage_engine={engine}")

    def both(self, statement: str) -> int:
        """Ends alike in both."""
        found = {}
        for engine, cursor in self.cursors.items():
            try:
                cursor.execute(statement)
                found[engine] = ("rows", cursor.rowcount)
            except pymysql.err.Error as error:
                found[engine] = ("error", error.args[0])
        if found["innodb"] != found["shale"] and not statement.startswith("analyze"):
            raise SystemExit(f"{self.name}: {found}: {statement[:2000]}")
        return int(found["shale"][1])

    def insert(self, count: int) -> None:
        rows = []
        for _ in range(count):
            shape = self.shapes.shape()
            if self.known and self.chance.random() < 0.02:
                shape = self.chance.choice(self.known)
            self.known.append(shape)
            rows.append(f"({self.next}, {literal(shape)}, {self.chance.randrange(100)})")
            self.next += 1
        self.both("insert into t (k, g, n) values " + ", ".join(rows))

    def change(self) -> None:
        """A few statements, in a transaction or not, which is undone or not."""
        chance = self.chance
        begins = chance.random() < 0.6
        if begins:
            self.both("begin")
        for _ in range(chance.randrange(1, 6)):
            kind = chance.randrange(8)
            if kind == 0:
                self.insert(chance.randrange(1, 20))
            elif kind == 1:
                self.both(f"delete from t where n = {chance.randrange(100)}")
            elif kind == 2:
                self.both(f"update t set g = {literal(self.shapes.shape())}"
                          f" where n = {chance.randrange(100)}")
            elif kind == 3:
                self.both(f"update t set n = n + 1 where {self.found_by_all()}")
            elif kind == 4:
                self.both(f"delete from t where {self.found_by_all()} and n < 5")
            elif kind == 5:
                self.both(f"update t set k = k + 1000000 where n = {chance.randrange(100)}")
            elif kind == 6 and begins:
                self.both("savepoint s")
                self.both(f"update t set g = {literal(self.shapes.shape())}"
                          f" where n = {chance.randrange(100)}")
                self.both("rollback to savepoint s")
            else:
                self.both(f"replace into t (k, g, n) values ({chance.randrange(self.next)},"
                          f" {literal(self.shapes.shape())}, 1)")
            if begins and chance.random() < 0.5:
                self.query()
        if begins:
            self.both(chance.choice(["commit", "rollback"]))

    def condition(self) -> str:
        # Those of exact shapes, MBRTOUCHES among them, are true of anything where numbers are too
        # large for them.
        is_huge = self.shapes.place == "huge"
        text = self.chance.choice([one for one in RELATIONS if not is_huge
                                   or one.startswith("mbr") and "st_" not in one
                                   and "touches" not in one])
        self.windows = [literal(self.shapes.window(self.known)) for _ in range(2)]
        return text.format(w=self.windows[0], v=self.windows[1])

    def found_by_all(self) -> str:
        """A condition for changes: InnoDB's index loses rows of some, which would stay there."""
        while True:
            where = self.condition()
            by_index, by_table = (self.rows("innodb", where, f"{way} index (g)")
                                  for way in ("force", "ignore"))
            if by_index == by_table:
                return where

    def rows(self, engine: str, where: str, hint: str = "") -> list[Any] | int:
        cursor = self.cursors[engine]
        try:
            cursor.execute(f"select k, n, st_astext(g) from t {hint} where {where}")
            return sorted(cursor.fetchall())
        except pymysql.err.Error as error:
            return int(error.args[0])

    def plan(self, engine: str, where: str) -> str:
        cursor = self.cursors[engine]
        cursor.execute(f"explain select k, n, st_astext(g) from t where {where}")
        return str(cursor.fetchall()[0][5])

    def query(self) -> None:
        where = self.condition()
        innodb, shale = (self.rows(engine, where) for engine in ENGINES)
        forced = self.rows("shale", where, "force index (g)")
        scanned = self.rows("shale", where, "ignore index (g)")
        if not shale == forced == scanned:
            raise SystemExit(f"{self.name}: SHALE's answers differ for {where}: by the optimizer's"
                             f" way {differ(shale, scanned)}, by its index"
                             f" {differ(forced, scanned)}")
        if innodb != shale:
            table = self.rows("innodb", where, "ignore index (g)")
            if table != shale:
                raise SystemExit(f"{self.name}: InnoDB and SHALE differ for {where}:"
                                 f" {differ(innodb, shale)}")
            self.lost += 1
        if self.chance.random() < 0.3:
            plans = {engine: self.plan(engine, where) for engine in ENGINES}
            for engine in ENGINES:
                self.used[engine] += plans[engine] == "g"
            if plans["innodb"] == "g" != plans["shale"] and isinstance(shale, list):
                # Where much of a table may match it is faster to read all of it.
                meets = " or ".join(f"mbrintersects(g, {one})" for one in self.windows)
                cursor = self.cursors["shale"]
                cursor.execute(f"select count(*), sum({meets}) from t")
                all_, candidates = cursor.fetchall()[0]
                if (candidates or 0) * 10 < all_:
                    raise SystemExit(f"{self.name}: InnoDB's plan is {plans['innodb']}, SHALE's"
                                     f" {plans['shale']} for {where}, {len(shale)} rows")

    def snapshot(self) -> None:
        """What a session sees does not change with what others do."""
        others = Pair.__new__(Pair)
        others.__dict__.update(self.__dict__)
        others.cursors = {}
        others.connect()
        for engine in ENGINES:
            others.cursors[engine].execute("start transaction with consistent snapshot")
        wheres = [self.condition() for _ in range(4)]
        before = [others.rows("shale", where, "force index (g)") for where in wheres]
        self.change()
        self.change()
        for where, was in zip(wheres, before):
            now = others.rows("shale", where, "force index (g)")
            if now != was or others.rows("shale", where, "ignore index (g)") != was:
                raise SystemExit(f"{self.name}: the snapshot had {was}, has {now} for {where}")
        for engine in ENGINES:
            others.cursors[engine].connection.close()

    def alter(self) -> None:
        kind = self.chance.randrange(4)
        if kind == 0:
            self.both("alter table t drop key g")
            self.insert(20)
            self.both("delete from t where n = 7")
            self.both("alter table t add spatial key g (g)")
        elif kind == 1:
            self.both("alter table t force")
        elif kind == 2:
            self.both("alter table t add column c int default 7, algorithm=copy")
            self.both("alter table t drop column c")
        else:
            self.both("alter table t rename key g to h")
            self.both("alter table t rename key h to g")

    def online(self) -> None:
        """An index that is built while others write has just the entries of the rows."""
        cursor = self.cursors["shale"]
        cursor.execute("create or replace table o like t")
        cursor.execute("alter table o drop key g")
        cursor.execute("insert into o select * from t")
        changes = []
        for _ in range(400):
            shape = literal(self.shapes.shape())
            row = f"({self.chance.randrange(2 * self.next)}, {shape}, {self.chance.randrange(100)})"
            changes.append(self.chance.choice([
                f"replace into o (k, g, n) values {row}",
                f"update o set g = {shape} where n = {self.chance.randrange(100)} limit 3",
                f"delete from o where n = {self.chance.randrange(100)} limit 2",
            ]))
        ends = threading.Event()

        def write() -> None:
            own = self.server.connect("shale").cursor()
            for number in itertools.count():
                if ends.is_set():
                    return
                own.execute(changes[number % len(changes)])
                self.written += 1

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(3):
            cursor.execute("alter table o add spatial key g (g), algorithm=nocopy, lock=none")
            cursor.execute("check table o extended")
            answer = cursor.fetchall()
            if answer[-1][-1] != "OK":
                raise SystemExit(f"{self.name}: after ALTER TABLE, CHECK TABLE says {answer}")
            cursor.execute("alter table o drop key g")
        ends.set()
        writer.join()

    def kill(self) -> None:
        """A transaction is under way; what is not committed is gone."""
        self.both("begin")
        self.insert(30)
        self.both("update t set n = n + 1 where n < 30")
        self.server.kill()
        self.server.start()
        self.connect()

    def check(self) -> None:
        cursor = self.cursors["shale"]
        cursor.execute("check table t extended")
        answer = cursor.fetchall()
        if answer[-1][-1] != "OK":
            raise SystemExit(f"{self.name}: CHECK TABLE says {answer}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--kills", type=int, default=1)
    options = parser.parse_args()
    servers.say(f"seed {options.seed}")
    chance = random.Random(options.seed)
    layout = servers.Layout()
    server = servers.Server(layout, "spatial", ["innodb-flush-log-at-trx-commit=2"])
    server.start()
    queries = lost = 0
    used = {engine: 0 for engine in ENGINES}
    for number in range(options.rounds):
        place = Shapes.PLACES[(number + options.seed) % len(Shapes.PLACES)]
        type_ = chance.choice(["geometry", "geometry", "point", "polygon"])
        pair = Pair(server, chance, chance.choice(list(KEYS)), place, type_, options.rows)
        for step in range(options.queries):
            pair.query()
            if step % 8 == 0:
                pair.change()
            if step % 40 == 7:
                pair.snapshot()
            if step % 60 == 50:
                pair.alter()
        pair.online()
        if number < options.kills:
            pair.kill()
            for _ in range(options.queries // 4):
                pair.query()
        pair.check()
        queries += options.queries
        lost += pair.lost
        for engine in ENGINES:
            used[engine] += pair.used[engine]
        servers.say(f"{pair.name}: equal, plans {pair.used}, InnoDB's index lost {pair.lost},"
                    f" {pair.written} changes beside ALTER TABLE")
    server.stop()
    layout.remove()
    print(f"{queries} queries and more are equal; plans by the index: {used};"
          f" InnoDB's index and table disagreed {lost} times", file=sys.stdout)


if __name__ == "__main__":
    main()
