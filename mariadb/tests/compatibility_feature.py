"""What a row of docs/compatibility.md is made of."""

from __future__ import annotations

import dataclasses

# The engines that statements ask, by their names in SQL.
ENGINES = {"innodb": "InnoDB", "shale": "SHALE", "rocksdb": "MyRocks"}


@dataclasses.dataclass(frozen=True)
class Feature:
    """One feature of InnoDB's manual.

    `sql` are statements that ask each engine: an engine has the feature if none is refused and the
    last answers `want` (anything, if that is None). `ENGINE` is the engine's name; a statement that
    begins with `B: ` goes through a second connection. `of` has other statements for one engine,
    where it has words of its own for the same. `says` is the answer where no statement can give it,
    or where one gives too good an answer, with the reason in `note`.
    """

    name: str
    tests: str
    tidesql: str
    sql: tuple[str, ...] = ()
    want: str | None = None
    of: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    says: dict[str, str] = dataclasses.field(default_factory=dict)
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a table, of which is asked by which way an engine does it."""

    name: str
    tests: str
    tidesql: str
    sql: str
    table: str = (
        "create table t (id int primary key, a int, b varchar(10), c int not null default 0,"
        " key ka (a))"
    )
    before: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Section:
    """A table of the page."""

    title: str
    text: str
    rows: tuple[Feature | Change, ...]
