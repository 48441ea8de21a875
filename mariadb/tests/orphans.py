"""Random transactions on parents and children at once: no child is left without its parent.

    orphans.py [--seconds 60] [--seed N] [--clients 6] [--engine SHALE]

Transactions of all levels, plain and XA, insert, change and remove parents and children of seven
foreign keys: RESTRICT, CASCADE and SET NULL, of two columns, of a key that is not unique, of a
table to itself, of two levels (`orphans_model.py`). Then each foreign key is asked for orphans,
each table is checked, and some serial order has to explain all answers, refusals too, as in
`histories.py`: the tables at the end are those that it gives, cascades included. The same with
system-versioned tables, with and without primary keys, whose rows of the past nobody counts.

What found nothing, or was refused, at READ COMMITTED and below is not explained: these levels do
not keep a missing row from coming.

First of all a writer without foreign_key_checks shows that orphans are found.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
from typing import Any

import pymysql
from pymysql.constants import CLIENT

import histories
import server as servers
from histories import LEVELS, NARROW, RETRY, Wrong
from orphans_model import CHILDREN, COLUMNS, FORMS, KEYS, Form, Refused, Row, Tables, create

PARENTS = 8
CHILDREN_IDS = 12
# u and k of a parent.
PARTS = 3
# A duplicate, a child in the way, a parent that is missing.
REFUSED = (1062, 1451, 1452)
ROUND = 1.0

Database = frozenset[tuple[str, Row]]


@dataclasses.dataclass
class Step:
    """One statement; its answer is a count of rows, rows that were read, or None if refused."""

    kind: str
    table: str
    column: str = "id"
    low: int = 0
    high: int = 0
    rows: list[Row] = dataclasses.field(default_factory=list)
    lock: str = ""
    answer: Any = 0

    def sql(self) -> str:
        where = f"where {self.column} between {self.low} and {self.high}"
        if self.kind == "read":
            return f"select * from {self.table} {where} order by id{self.lock}"
        if self.kind == "delete":
            return f"delete from {self.table} {where}"
        if self.kind == "update":
            sets = ", ".join(f"{column} = {shown(value)}"
                             for column, value in zip(COLUMNS[self.table][1:], self.rows[0][1:]))
            return f"update {self.table} set {sets} {where}"
        if self.kind == "rename":
            return f"update {self.table} set id = {self.rows[0][0]} {where}"
        if self.kind == "copy":
            return (f"insert into {self.table} select id + {self.rows[0][0]}, id from parent"
                    f" where id between {self.low} and {self.high} order by id")
        word = {"ignore": "insert ignore", "replace": "replace"}.get(self.kind, "insert")
        rows = ", ".join(f"({', '.join(map(shown, row))})" for row in self.rows)
        tail = ""
        if self.kind == "or update":
            tail = " on duplicate key update " + ", ".join(
                f"{column} = values({column})" for column in COLUMNS[self.table][1:])
        return f"{word} into {self.table} values {rows}{tail}"


def shown(value: int | None) -> str:
    return "null" if value is None else str(value)


@dataclasses.dataclass
class Done:
    """A transaction that committed, and when it began and ended by the client's clock."""

    number: int
    level: str
    steps: list[Step]
    began: float
    ended: float = 0.0


class Client:
    """One connection, and what it has committed."""

    def __init__(self, server: servers.Server, number: int, seed: int, checked: bool) -> None:
        self.connection = server.connect("orphans", autocommit=False,
                                         client_flag=CLIENT.FOUND_ROWS)
        self.cursor = self.connection.cursor()
        self.ask(f"set foreign_key_checks = {int(checked)}")
        self.chance = random.Random(seed)
        self.number, self.until = number, 0.0
        self.done: list[Done] = []
        self.errors: dict[int, int] = {}
        self.branch = ""

    def run(self) -> "Client":
        count = 0
        while time.monotonic() < self.until:
            count += 1
            self.one(count * 100 + self.number)
        self.connection.close()
        return self

    def ask(self, statement: str) -> int:
        return int(self.cursor.execute(statement))

    def one(self, number: int) -> None:
        chance = self.chance
        level = chance.choice(LEVELS)
        transaction = Done(number, level, [], time.monotonic())
        try:
            self.begin(level, number)
            for _ in range(chance.randrange(1, 5)):
                transaction.steps += self.steps(level not in NARROW)
            if not self.end():
                return
        except pymysql.err.MySQLError as error:
            if error.args[0] not in RETRY:
                raise
            self.errors[error.args[0]] = self.errors.get(error.args[0], 0) + 1
            self.give_up()
            return
        transaction.ended = time.monotonic()
        self.done.append(transaction)

    def begin(self, level: str, number: int) -> None:
        self.ask(f"set transaction isolation level {level}")
        self.branch = f"x{number}" if self.chance.random() < 0.25 else ""
        self.ask(f"xa start '{self.branch}'" if self.branch else "begin")

    def end(self) -> bool:
        """Whether it has been committed."""
        commits = self.chance.random() < 0.9
        if not self.branch:
            self.ask("commit" if commits else "rollback")
            return commits
        self.ask(f"xa end '{self.branch}'")
        if commits and self.chance.random() < 0.3:
            self.ask(f"xa commit '{self.branch}' one phase")
            return True
        self.ask(f"xa prepare '{self.branch}'")
        self.ask(f"xa {'commit' if commits else 'rollback'} '{self.branch}'")
        return commits

    def give_up(self) -> None:
        if not self.branch:
            self.connection.rollback()
            return
        for statement in ("xa end", "xa rollback"):
            try:
                self.ask(f"{statement} '{self.branch}'")
            except pymysql.err.MySQLError as error:
                # After a deadlock XA END tells of it, and XA ROLLBACK may find nothing.
                if error.args[0] not in (1397, 1399, 1402, 1613, 1614):
                    raise

    def steps(self, wide: bool) -> list[Step]:
        """One statement, or some that are undone by a savepoint."""
        if self.chance.random() < 0.07:
            self.ask("savepoint s")
            for _ in range(self.chance.randrange(1, 3)):
                self.step(wide)
            self.ask("rollback to savepoint s")
            return []
        step = self.step(wide)
        if not wide and step.answer in (None, 0, []):
            return []
        return [step]

    def step(self, wide: bool) -> Step:
        step = self.random_step(wide)
        try:
            count = self.ask(step.sql())
        except pymysql.err.MySQLError as error:
            if error.args[0] not in REFUSED:
                raise
            self.errors[error.args[0]] = self.errors.get(error.args[0], 0) + 1
            step.answer = None
            return step
        step.answer = list(self.cursor.fetchall()) if step.kind == "read" else count
        return step

    def random_step(self, wide: bool) -> Step:
        chance = self.chance
        # Parents are what all others meet in.
        table = chance.choice(["parent", "parent", "parent", *CHILDREN])
        kind = chance.choice(["insert", "insert", "insert", "delete", "delete", "update", "update",
                              "rename", "ignore", "replace", "or update", "copy", "read"])
        step = Step(kind, table, rows=[self.row(table)])
        step.low = step.high = chance.randrange(PARENTS if table == "parent" else CHILDREN_IDS)
        if kind == "copy":
            step.table = chance.choice(["strict", "follows", "loses"])
            step.low = step.high = chance.randrange(PARENTS)
            step.rows = [(chance.randrange(CHILDREN_IDS - PARENTS),)]
        elif kind == "insert" and chance.random() < 0.4:
            step.rows += [self.row(table) for _ in range(chance.randrange(1, 4))]
        elif kind == "or update" and table in ("parent", "tree"):
            # A row in the way of two keys; of parents the server says itself which is updated.
            step.kind = "insert"
        if wide and kind in ("read", "delete", "copy") and chance.random() < 0.4:
            step.high = step.low + chance.randrange(3)
            if kind != "copy":
                step.column = chance.choice(COLUMNS[step.table])
        if kind == "read":
            step.lock = chance.choice([" for update", " lock in share mode"])
        return step

    def row(self, table: str) -> Row:
        chance = self.chance
        if table == "parent":
            return chance.randrange(PARENTS), chance.randrange(PARTS), chance.randrange(PARTS)
        number = chance.randrange(CHILDREN_IDS)
        if table in ("composite", "many"):
            parts = [chance.randrange(PARTS) for _ in COLUMNS[table][1:]]
        else:
            parts = [chance.randrange(PARENTS)]
        return (number, *(None if chance.random() < 0.05 else one for one in parts))


def rerun(database: Database, transaction: Done) -> Database | str:
    """The database after it, or which answer it could not have given."""
    tables = Tables(database)
    for step in transaction.steps:
        before = tables.frozen()
        try:
            expected = answer(tables, step)
        except Refused as refused:
            tables = Tables(before)
            expected = None
            if step.answer is not None:
                return f"{step} should have been refused: {refused}"
        # How many rows these two count depends on how the server does them.
        told = step.answer
        if step.kind in ("replace", "or update") and told is not None and expected is not None:
            told = expected
        if told != expected:
            return f"{step} should have answered {expected}"
    return tables.frozen()


def answer(tables: Tables, step: Step) -> Any:
    """Does the statement; raises if it is refused."""
    table = tables.tables[step.table]
    place = COLUMNS[step.table].index(step.column)
    found = [table[number] for number in sorted(table)
             if step.low <= (-1 if (value := table[number][place]) is None else value) <= step.high]
    if step.kind == "read":
        return found
    if step.kind == "delete":
        for row in found:
            # One of a tree may have gone with another.
            if row[0] in table:
                tables.delete(step.table, row[0])
        return len(found) if step.table != "tree" else step.answer
    if step.kind in ("update", "rename"):
        for row in found:
            new = (row[0], *step.rows[0][1:]) if step.kind == "update" else (
                step.rows[0][0], *row[1:])
            if new != row:
                tables.update(step.table, row[0] or 0, new)
        return len(found)
    return add(tables, step)


def add(tables: Tables, step: Step) -> int:
    """Does a statement that inserts."""
    rows = step.rows
    if step.kind == "copy":
        shift = step.rows[0][0] or 0
        rows = [(shift + number, number) for number in sorted(tables.tables["parent"])
                if step.low <= number <= step.high]
    added = 0
    for row in rows:
        in_the_way = tables.in_the_way(step.table, row)
        if step.kind == "replace":
            for other in in_the_way:
                if other[0] in tables.tables[step.table]:
                    tables.delete(step.table, other[0])
        if step.kind == "or update" and in_the_way:
            if in_the_way[0] != row:
                tables.update(step.table, row[0] or 0, row)
        elif step.kind == "ignore":
            before = tables.frozen()
            try:
                tables.insert(step.table, row)
                added += 1
            except Refused:
                tables.tables = Tables(before).tables
        else:
            tables.insert(step.table, row)
            added += 1
    return added


def self_check() -> None:
    """The model refuses and cascades as it should."""
    start = [("parent", (1, 1, 1)), ("parent", (2, 2, 1)), ("strict", (5, 2)), ("follows", (6, 1)),
             ("grand", (7, 6)), ("loses", (8, 1)), ("composite", (9, 1, 1)), ("tree", (1, None)),
             ("tree", (2, 1)), ("tree", (3, 2))]
    for step, expected in [
        (Step("delete", "parent", low=1, high=1),
         {("parent", (2, 2, 1)), ("strict", (5, 2)), ("loses", (8, None))}),
        (Step("rename", "parent", low=1, high=1, rows=[(4,)]),
         {*start, ("parent", (4, 1, 1)), ("follows", (6, 4)), ("loses", (8, None))}
         - {("parent", (1, 1, 1)), ("follows", (6, 1)), ("loses", (8, 1))}),
        (Step("delete", "parent", low=2, high=2), None),
        (Step("insert", "many", rows=[(1, 2)]), None),
        (Step("delete", "tree", low=1, high=1), {one for one in start if one[0] != "tree"}),
    ]:
        tables = Tables(start)
        try:
            answer(tables, step)
            assert expected is not None, step
        except Refused:
            assert expected is None, step
            continue
        found = set(tables.frozen())
        if step.table == "parent":
            found -= {one for one in start if one[0] == "tree"}
            expected -= {one for one in start if one[0] == "tree"}
        assert found == expected, (step, found, expected)
    assert Tables([("strict", (1, 1))]).orphans()


def rows_of(server: servers.Server) -> list[tuple[str, Row]]:
    return [(table, row) for table in COLUMNS
            for row in server.run(f"select * from {table}", database="orphans")]


def check_tables(server: servers.Server) -> None:
    """No orphan, by the rows; and each index has the rows of its table."""
    for key in KEYS:
        [(count,)] = server.run(key.orphans(), database="orphans")
        if count:
            raise Wrong(f"{count} orphans: {key.child}, {key.declared()}")
    for table in COLUMNS:
        told = server.run(f"check table {table} extended", database="orphans")
        if told[-1][3] != "OK":
            raise Wrong(f"CHECK TABLE {table}: {told}")
        for index, column in (("c", COLUMNS[table][1]), ("k", "k"), ("uk", "u")):
            if (index == "c") == (table == "parent"):
                continue
            by_index = server.run(f"select id from {table} force index ({index})"
                                  f" where {column} >= 0 order by id", database="orphans")
            by_rows = server.run(f"select id from {table} use index () where {column} is not null"
                                 " order by id", database="orphans")
            if by_index != by_rows:
                raise Wrong(f"index {index} of {table} has other rows than the table")


def one_round(server: servers.Server, given: argparse.Namespace, chance: random.Random,
              seconds: float, unchecked: int = 0) -> tuple[list[Done], dict[int, int], int]:
    """What was committed, what was refused, and how many are not in the order of their ends."""
    start = rows_of(server)
    clients = [Client(server, number, chance.randrange(1 << 60), number > unchecked)
               for number in range(1, given.clients + 1)]
    for client in clients:
        client.until = time.monotonic() + seconds
    servers.all_of((client.run,) for client in clients)
    check_tables(server)
    moved = histories.explain(start, [client.done for client in clients], rows_of(server), rerun)
    errors: dict[int, int] = {}
    for client in clients:
        for code, times in client.errors.items():
            errors[code] = errors.get(code, 0) + times
    return [one for client in clients for one in client.done], errors, moved


def make(server: servers.Server, engine: str, form: Form) -> None:
    server.run("drop database if exists orphans", "create database orphans")
    server.run(*create(engine, form), database="orphans")
    server.run("insert into parent select seq, seq div 3, seq % 3 from seq_0_to_5",
               "insert into tree values (0, null), (1, 0), (2, 1), (3, 1)", database="orphans")


def finds_orphans(server: servers.Server, given: argparse.Namespace,
                  chance: random.Random) -> None:
    """A writer that does not check leaves orphans, and they are found."""
    for _ in range(5):
        make(server, given.engine, FORMS[0])
        try:
            one_round(server, given, chance, 1.0, unchecked=1)
        except Wrong as wrong:
            if "orphans" in str(wrong):
                return
    raise Wrong("a writer without foreign_key_checks was not noticed")


def run(server: servers.Server, given: argparse.Namespace, chance: random.Random, form: Form) -> str:
    make(server, given.engine, form)
    total, moved = 0, 0
    errors: dict[int, int] = {}
    until = time.monotonic() + given.seconds / len(FORMS)
    while (left := until - time.monotonic()) > 0:
        done, refused, out_of_order = one_round(server, given, chance, min(ROUND, left))
        total, moved = total + len(done), moved + out_of_order
        for code, times in refused.items():
            errors[code] = errors.get(code, 0) + times
    for code in REFUSED:
        if not errors.get(code):
            raise Wrong(f"no statement was refused with {code}")
    return (f"{form.told}: {total} transactions left no orphan and are as if one after the other ({moved} not"
            f" in the order of their ends); refused: {dict(sorted(errors.items()))}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--engine", default="SHALE")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    self_check()
    layout = servers.Layout()
    server = servers.Server(layout, "one", ["shale-durability=none",
                                            "innodb-flush-log-at-trx-commit=2",
                                            "innodb-lock-wait-timeout=5",
                                            "shale-lock-wait-timeout=5"])
    try:
        server.start()
        chance = random.Random(given.seed)
        finds_orphans(server, given, chance)
        for form in FORMS:
            print(run(server, given, chance, form))
        server.stop()
    except (Wrong, SystemExit) as wrong:
        print(f"--seed {given.seed}: {wrong}\nthe server's data and log: {layout.folder}")
        return 1
    finally:
        server.kill()
    print("orphans: none")
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
