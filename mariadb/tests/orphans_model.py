"""The tables of orphans.py as dictionaries, with their foreign keys: what a statement has to do.

A statement is done on a copy, row by row as a server does it, or refused as a whole (`Refused`).
"""

from __future__ import annotations

import dataclasses
from typing import Iterable

Row = tuple[int | None, ...]
# Each table by its name; the first column is the primary key.
Database = dict[str, dict[int, Row]]

COLUMNS = {
    "parent": ["id", "u", "k"],
    "strict": ["id", "parent"],
    "follows": ["id", "parent"],
    "loses": ["id", "parent"],
    "composite": ["id", "a", "b"],
    "many": ["id", "k"],
    "tree": ["id", "up"],
    "grand": ["id", "parent"],
}


@dataclasses.dataclass(frozen=True)
class Key:
    """One foreign key. Its actions are restrict, cascade and set null."""

    child: str
    columns: tuple[str, ...]
    parent: str
    referenced: tuple[str, ...]
    on_delete: str
    on_update: str

    def declared(self) -> str:
        return (f"foreign key ({', '.join(self.columns)}) references"
                f" {self.parent} ({', '.join(self.referenced)})"
                f" on delete {self.on_delete} on update {self.on_update}")

    def of_child(self, row: Row) -> Row:
        return values(self.child, row, self.columns)

    def of_parent(self, row: Row) -> Row:
        return values(self.parent, row, self.referenced)

    def orphans(self) -> str:
        """A query that counts children without a parent, by the rows and not by an index."""
        on = " and ".join(f"p.{parent} = c.{child}"
                          for child, parent in zip(self.columns, self.referenced))
        there = " and ".join(f"c.{child} is not null" for child in self.columns)
        return (f"select count(*) from {self.child} c use index () left join {self.parent} p"
                f" use index () on {on} where {there} and p.id is null")


KEYS = [
    Key("strict", ("parent",), "parent", ("id",), "restrict", "restrict"),
    Key("follows", ("parent",), "parent", ("id",), "cascade", "cascade"),
    Key("loses", ("parent",), "parent", ("id",), "set null", "set null"),
    Key("composite", ("a", "b"), "parent", ("u", "k"), "cascade", "cascade"),
    # The key of these parents is not unique.
    Key("many", ("k",), "parent", ("k",), "restrict", "restrict"),
    Key("tree", ("up",), "tree", ("id",), "cascade", "restrict"),
    Key("grand", ("parent",), "follows", ("id",), "cascade", "restrict"),
]
CHILDREN = [key.child for key in KEYS]


def values(table: str, row: Row, columns: Iterable[str]) -> Row:
    return tuple(row[COLUMNS[table].index(column)] for column in columns)


@dataclasses.dataclass(frozen=True)
class Form:
    """How the tables are made. A unique key that may be NULL is no primary key: the table has a hidden
    one, of which entries do not tell until when a row was current."""

    told: str
    number: str = "id int primary key"
    options: str = ""


FORMS = [
    Form("tables"),
    Form("system-versioned tables", options=" with system versioning"),
    Form("system-versioned tables without a primary key", "id int unique",
         " with system versioning"),
]


def create(engine: str, form: Form) -> list[str]:
    """The tables, made."""
    tail = f"engine={engine}{form.options}"
    made = [f"create table parent ({form.number}, u int not null, k int not null,"
            f" unique key uk (u, k), key k (k)) {tail}"]
    for key in KEYS:
        columns = ", ".join(f"{column} int" for column in key.columns)
        index = ", ".join(key.columns)
        made.append(f"create table {key.child} ({form.number}, {columns}, key c ({index}),"
                    f" {key.declared()}) {tail}")
    return made


class Refused(Exception):
    """The statement fails: a parent is missing, a child in the way, or a row there already."""


class Tables:
    """A copy of a database, to be changed by one statement after the other."""

    def __init__(self, rows: Iterable[tuple[str, Row]]) -> None:
        self.tables: Database = {name: {} for name in COLUMNS}
        for table, row in rows:
            assert row[0] is not None
            self.tables[table][row[0]] = row

    def frozen(self) -> frozenset[tuple[str, Row]]:
        return frozenset((name, row) for name, table in self.tables.items()
                         for row in table.values())

    def insert(self, table: str, row: Row) -> None:
        if self.in_the_way(table, row):
            raise Refused(f"{row} is in {table}")
        assert row[0] is not None
        self.tables[table][row[0]] = row
        self.check(table, row)

    def in_the_way(self, table: str, row: Row) -> list[Row]:
        """The rows of which this one is a duplicate."""
        return [other for other in self.tables[table].values()
                if other[0] == row[0] or (table == "parent" and other[1:] == row[1:])]

    def check(self, table: str, row: Row, follows: Key | None = None) -> None:
        """The row's parents are there, but for that which it follows."""
        for key in KEYS:
            wanted = key.of_child(row) if key.child == table else (None,)
            if key == follows or None in wanted:
                continue
            if not any(key.of_parent(other) == wanted
                       for other in self.tables[key.parent].values()):
                raise Refused(f"{row} of {table} has no parent")

    def delete(self, table: str, number: int) -> None:
        row = self.tables[table].pop(number)
        for key in KEYS:
            if key.parent == table:
                self.act(key, key.of_parent(row), None)

    def update(self, table: str, number: int, row: Row, follows: Key | None = None) -> None:
        old = self.tables[table].pop(number)
        if self.in_the_way(table, row):
            raise Refused(f"{row} is in {table}")
        assert row[0] is not None
        self.tables[table][row[0]] = row
        for key in KEYS:
            if key.child == table and key.of_child(old) != key.of_child(row):
                self.check(table, row, follows)
        for key in KEYS:
            if key.parent == table and key.of_parent(old) != key.of_parent(row):
                self.act(key, key.of_parent(old), key.of_parent(row))

    def act(self, key: Key, old: Row, new: Row | None) -> None:
        """What becomes of the children of a parent that is gone, or has other values."""
        action = key.on_delete if new is None else key.on_update
        for number, row in sorted(self.tables[key.child].items()):
            # Some have gone with others meanwhile.
            if key.of_child(row) != old or number not in self.tables[key.child]:
                continue
            if action == "restrict":
                raise Refused(f"{row} of {key.child} is in the way")
            if action == "cascade" and new is None:
                self.delete(key.child, number)
                continue
            wanted = dict(zip(key.columns, new if action == "cascade" and new else [None] * 9))
            changed = tuple(wanted.get(column, value)
                            for column, value in zip(COLUMNS[key.child], row))
            self.update(key.child, number, changed, key)

    def orphans(self) -> list[tuple[str, Row]]:
        found = []
        for name, table in self.tables.items():
            for row in table.values():
                try:
                    self.check(name, row)
                except Refused:
                    found.append((name, row))
        return found
