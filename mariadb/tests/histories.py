"""Random concurrent transactions against an oracle: what committed must be explained by some order.

    histories.py [--seconds 60] [--seed N] [--clients 6]

Transactions of all levels run at once, each of a few random statements on a small table:
SERIALIZABLE ones with plain reads; others that read FOR UPDATE or LOCK IN SHARE MODE. Each write
leaves a number of its own in its row. For all transactions together some serial order must explain
each answer: they are run again one by one on a dictionary, in an order that is searched for
(`explain`), and all answers compared.

READ UNCOMMITTED ones have plain reads too, glances, which no order needs to explain. A glance shows
one's own writes. Of others' it shows only what is committed at some moment of it (`check_glances`).
InnoDB shows more, so with `--engine InnoDB` only one's own writes are looked for.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
from typing import Any, Callable

import pymysql

import server as servers

ROWS = 12
RETRY = (1205, 1213)

# A row's version is the number of the write that made it; 0 is the first.
Row = tuple[int, int, int]  # id, k, version


@dataclasses.dataclass
class Step:
    """One statement and its answer, as rows."""

    kind: str
    low: int
    high: int
    number: int
    rows: list[Row]


@dataclasses.dataclass
class Done:
    """A transaction that committed, and when it began and ended by the client's clock."""

    number: int
    level: str
    steps: list[Step]
    began: float
    ended: float = 0.0


@dataclasses.dataclass
class Glance:
    """A plain read of some ids at READ UNCOMMITTED: rows that the transaction had not written."""

    ids: list[int]
    rows: list[Row]
    began: float
    ended: float


LEVELS = ["serializable", "repeatable read", "repeatable read", "read committed",
          "read uncommitted"]
# Their ranges are not protected: locking reads ask for single rows only.
NARROW = ["read committed", "read uncommitted"]


class Wrong(Exception):
    """An answer that nothing explains."""


def change_of(step: Step) -> dict[int, Row | None]:
    """What a statement has made of its row, if anything; None if it has deleted it."""
    row = step.low
    if step.kind == "update" and step.rows:
        return {row: (row, (step.rows[0][1] + 1) % ROWS, step.number)}
    if step.kind == "insert" and not step.rows:
        return {row: (row, row, step.number)}
    return {row: None} if step.kind == "delete" and step.rows else {}


class Client:
    def __init__(self, server: servers.Server, number: int, seed: int) -> None:
        self.connection = server.connect("histories", autocommit=False)
        self.cursor = self.connection.cursor()
        self.chance = random.Random(seed)
        self.number, self.until = number, 0.0
        self.writes = 0
        self.done: list[Done] = []
        self.glances: list[Glance] = []
        self.errors: dict[int, int] = {}

    def run(self) -> "Client":
        count = 0
        while time.monotonic() < self.until:
            count += 1
            self.one(count * 100 + self.number)
        self.connection.close()
        return self

    def one(self, number: int) -> None:
        chance = self.chance
        level = chance.choice(LEVELS)
        wide = level not in NARROW
        own: dict[int, Row | None] = {}
        transaction = Done(number, level, [], time.monotonic())
        try:
            self.cursor.execute(f"set transaction isolation level {level}")
            self.cursor.execute("begin")
            for _ in range(chance.randrange(2, 6)):
                if level == "read uncommitted" and chance.random() < 0.5:
                    self.glance(own)
                    continue
                step = self.step(level, wide)
                transaction.steps.append(step)
                own.update(change_of(step))
            if chance.random() < 0.1:
                self.connection.rollback()
                return
            self.connection.commit()
        except pymysql.err.MySQLError as error:
            if error.args[0] not in RETRY:
                raise
            self.errors[error.args[0]] = self.errors.get(error.args[0], 0) + 1
            self.connection.rollback()
            return
        transaction.ended = time.monotonic()
        self.done.append(transaction)

    def ask(self, statement: str, *values: int) -> list[Row]:
        self.cursor.execute(statement, values)
        return list(self.cursor.fetchall())

    def glance(self, own: dict[int, Row | None]) -> None:
        """A plain read; `own` is what the transaction has made of rows."""
        low = self.chance.randrange(ROWS)
        ids = range(low, min(ROWS, low + 5))
        began = time.monotonic()
        rows = self.ask("select id, k, version from t where id between %s and %s", low, ids[-1])
        ended = time.monotonic()
        found = {row[0]: row for row in rows}
        for row in own.keys() & set(ids):
            if found.get(row) != own[row]:
                raise Wrong(f"a plain read shows {found.get(row)}, not its own {own[row]}")
        others = [row for row in ids if row not in own]
        self.glances.append(
            Glance(others, [found[row] for row in others if row in found], began, ended))

    def step(self, level: str, wide: bool) -> Step:
        chance = self.chance
        low = chance.randrange(ROWS)
        high = min(ROWS, low + chance.randrange(5)) if wide else low
        lock = "" if level == "serializable" else chance.choice(
            [" for update", " lock in share mode"])
        kind = chance.choice(["read", "read", "read_k", "update", "update", "insert", "delete"])
        if kind == "read_k" and not wide:
            kind = "read"
        self.writes += 1
        write = self.writes * 100 + self.number
        where = "where id between %s and %s"
        if kind == "read_k":
            rows = self.ask("select id, k, version from t force index (k)"
                            f" where k between %s and %s order by id{lock}", low, high)
            return Step(kind, low, high, write, rows)
        if kind == "read":
            rows = self.ask(f"select id, k, version from t {where} order by id{lock}", low, high)
        else:
            # What is about to be written is read first, so that it is known what was overwritten.
            rows = self.ask(f"select id, k, version from t {where} order by id for update",
                            low, low)
        if not rows and not wide:
            # These levels do not keep a missing row from coming.
            return Step("nothing", low, low, write, rows)
        if kind == "update":
            self.ask(f"update t set k = (k + 1) %% {ROWS}, version = %s {where}", write, low, low)
        elif kind == "insert" and not rows:
            self.ask("insert into t values (%s, %s, %s)", low, low, write)
        elif kind == "delete":
            self.ask(f"delete from t {where}", low, low)
        return Step(kind, low, high, write, rows)


Table = frozenset[Any]
# The table after a transaction, or why it cannot have had its answers.
Rerun = Callable[[Table, Any], "Table | str"]


def run(table: Table, transaction: Done) -> Table | str:
    """The table after it; or what it was answered otherwise than by this table, if anything was."""
    rows = {row[0]: row for row in table}
    for step in transaction.steps:
        if step.kind == "nothing":
            continue
        expected = answer(rows, step)
        if expected != sorted(step.rows):
            return f"{step} should have answered {expected}"
    return frozenset(rows.values())


def answer(rows: dict[int, Row], step: Step) -> list[Row]:
    column = 1 if step.kind == "read_k" else 0
    high = step.high if step.kind.startswith("read") else step.low
    found = sorted(row for row in rows.values() if step.low <= row[column] <= high)
    here = rows.get(step.low)
    if step.kind == "update" and here:
        rows[step.low] = (step.low, (here[1] + 1) % ROWS, step.number)
    elif step.kind == "insert" and not here:
        rows[step.low] = (step.low, step.low, step.number)
    elif step.kind == "delete":
        rows.pop(step.low, None)
    return found


def explain(start: list[Any], done: list[list[Any]], end: list[Any], rerun: Rerun = run) -> int:
    """Finds an order that explains all answers; how many are not in the order of their ends in it.

    `done` has each client's transactions in their order. The client's clock bounds when a commit was:
    one that began after another had ended comes after it. So the next is one that some client is at.
    All orders are tried, and of those that have come to the same state, clients' places and table, one
    goes on: so if none is left, there is none.
    """
    # How many are out of order on the way to each state.
    states = {((0,) * len(done), frozenset(start)): 0}
    for _ in range(sum(map(len, done))):
        following: dict[tuple[tuple[int, ...], Table], int] = {}
        reasons: list[str] = []
        for (places, table), moved in states.items():
            left = [(client, of[place]) for client, (of, place) in enumerate(zip(done, places))
                    if place < len(of)]
            first = min(one.ended for _, one in left)
            for client, one in left:
                if one.began > first:
                    continue
                after = rerun(table, one)
                if isinstance(after, str):
                    reasons.append(f"{one.level} {one.number}: {after}")
                    continue
                new = (places[:client] + (places[client] + 1,) + places[client + 1:], after)
                count = moved + (one.ended > first)
                following[new] = min(count, following.get(new, count))
        if not following:
            raise Wrong("no transaction can be the next:\n" + "\n".join(reasons))
        states = following
    if not any(table == frozenset(end) for _, table in states):
        found = [sorted(table) for _, table in states]
        raise Wrong(f"the table ends as {sorted(end)}, not as {found}")
    return min(states.values())


def check_glances(start: list[Row], done: list[Done], glances: list[Glance]) -> None:
    """Each shows only rows that were committed, and all that were there the whole time."""
    # From when on a row is there for sure; until when it is for sure, and when it is surely gone.
    there = dict.fromkeys(start, float("-inf"))
    until: dict[Row, float] = {}
    gone: dict[Row, float] = {}
    for one in done:
        made: dict[int, Row | None] = {}
        for step in one.steps:
            change = change_of(step)
            if change and step.rows and step.low not in made:
                until[step.rows[0]], gone[step.rows[0]] = one.began, one.ended
            made.update(change)
        there.update((row, one.ended) for row in made.values() if row is not None)
    for glance in glances:
        for row in glance.rows:
            if row not in there:
                raise Wrong(f"{glance} shows {row}, which nobody has committed")
            if glance.began > gone.get(row, float("inf")):
                raise Wrong(f"{glance} shows {row}, which another commit had replaced")
        for row, since in there.items():
            lasts = since < glance.began and until.get(row, float("inf")) > glance.ended
            if lasts and row[0] in glance.ids and row not in glance.rows:
                raise Wrong(f"{glance} lacks {row}, which was there all the time")


def self_check() -> None:
    """What is explained, and what is not."""

    def one(client: int, began: float, ended: float, *steps: Step) -> Done:
        return Done(client, "serializable", list(steps), began, ended)

    def update(row: int, seen: int, new: int) -> Step:
        return Step("update", row, row, new, [(row, int(seen > 0), seen)])

    def read(row: int, seen: int) -> Step:
        return Step("read", row, row, 0, [(row, int(seen > 0), seen)])

    start = [(0, 0, 0), (1, 0, 0)]
    for name, first, second, end in [
        ("in the order of their ends", one(1, 0, 1, update(0, 0, 7)), one(2, 0, 2, read(0, 7)), [7, 0]),
        ("in the other order", one(1, 0, 1, update(0, 0, 7)), one(2, 0, 2, read(0, 0)), [7, 0]),
        ("!a stale read", one(1, 0, 1, update(0, 0, 7)), one(2, 1.5, 2, read(0, 0)), [7, 0]),
        ("!a lost update", one(1, 0, 1, update(0, 0, 7)), one(2, 0, 2, update(0, 0, 8)), [8, 0]),
        ("!a skew", one(1, 0, 1, read(1, 0), update(0, 0, 7)), one(2, 0, 2, read(0, 0), update(1, 0, 8)),
         [7, 8]),
        ("!another end", one(1, 0, 1, update(0, 0, 7)), one(2, 0, 2, read(0, 7)), [0, 0]),
    ]:
        table = [(row, int(version > 0), version) for row, version in enumerate(end)]
        try:
            explain(start, [[first], [second]], table)
            assert not name.startswith("!"), name
        except Wrong:
            assert name.startswith("!"), name
    writer = one(1, 1, 2, update(0, 0, 7))
    for name, done, began, ended, row in [
        ("before", [writer], 0, 0.5, (0, 0, 0)),
        ("meanwhile, as it was", [writer], 1.2, 1.5, (0, 0, 0)),
        ("meanwhile, as it will be", [writer], 1.2, 1.5, (0, 1, 7)),
        ("afterwards", [writer], 3, 4, (0, 1, 7)),
        ("!a stale one", [writer], 3, 4, (0, 0, 0)),
        ("!what was undone", [], 3, 4, (0, 1, 7)),
        ("!what was on its way", [one(1, 1, 2, update(0, 0, 7), Step("update", 0, 0, 8,
                                                                    [(0, 1, 7)]))], 3, 4, (0, 1, 7)),
        ("!none", [writer], 3, 4, None),
    ]:
        try:
            check_glances(start, done, [Glance([0], [row] if row else [], began, ended)])
            assert not name.startswith("!"), name
        except Wrong:
            assert name.startswith("!"), name


def rows_of(server: servers.Server, index: str = "primary") -> list[Row]:
    where = "id" if index == "primary" else index
    return list(server.run(  # type: ignore[arg-type]
        f"select id, k, version from t force index ({index}) where {where} >= 0 order by id",
        database="histories"))


def one_round(server: servers.Server, given: argparse.Namespace, chance: random.Random,
              seconds: float) -> tuple[int, int, dict[int, int], int]:
    start = rows_of(server)
    clients = [Client(server, number, chance.randrange(1 << 60))
               for number in range(1, given.clients + 1)]
    for client, writes in zip(clients, given.writes):
        client.writes = writes
        client.until = time.monotonic() + seconds
    servers.all_of((client.run,) for client in clients)
    given.writes = [client.writes for client in clients]
    done = [client.done for client in clients]
    end = rows_of(server)
    if rows_of(server, "k") != end:
        raise Wrong("index k has other rows than the table")
    glances = [glance for client in clients for glance in client.glances]
    if given.engine.lower() != "innodb":
        check_glances(start, [one for of in done for one in of], glances)
    errors: dict[int, int] = {}
    for client in clients:
        for code, count in client.errors.items():
            errors[code] = errors.get(code, 0) + count
    return sum(map(len, done)), len(glances), errors, explain(start, done, end)


def main() -> int:
    parser = argparse.ArgumentParser(description="random transactions against a serial oracle")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--engine", default="SHALE")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given: Any = parser.parse_args()
    self_check()
    given.writes = [0] * given.clients
    layout = servers.Layout()
    server = servers.Server(layout, "one", ["shale-durability=none",
                                            "innodb-flush-log-at-trx-commit=2",
                                            "innodb-lock-wait-timeout=5",
                                            "shale-lock-wait-timeout=5"])
    chance = random.Random(given.seed)
    total, all_glances, out_of_order = 0, 0, 0
    all_errors: dict[int, int] = {}
    try:
        server.start()
        server.run("create database histories")
        server.run("create table t (id int primary key, k int, version bigint, key (k))"
                   f" engine={given.engine}",
                   f"insert into t select seq, seq, 0 from seq_0_to_{ROWS - 1}",
                   database="histories")
        until = time.monotonic() + given.seconds
        while (left := until - time.monotonic()) > 0:
            count, glances, errors, moved = one_round(server, given, chance, min(5.0, left))
            total, out_of_order = total + count, out_of_order + moved
            all_glances += glances
            for code, times in errors.items():
                all_errors[code] = all_errors.get(code, 0) + times
        if total == 0:
            raise Wrong("no transaction has committed")
        server.stop()
    except Wrong as wrong:
        print(f"--seed {given.seed}: {wrong}\nthe server's data and log: {layout.folder}")
        return 1
    finally:
        server.kill()
    print(f"histories: {total} transactions in {given.seconds:.0f} s are as if one after the other"
          f" ({out_of_order} not in the order of their ends), {all_glances} glances show what was"
          f" committed; refused: {all_errors}")
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
