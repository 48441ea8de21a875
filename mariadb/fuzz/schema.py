"""Random tables: columns, keys and partitions, and the expressions and values that fit them."""

from __future__ import annotations

import dataclasses
import random

import values
from values import Type


def quoted(name: str) -> str:
    return f"`{name}`"


@dataclasses.dataclass
class Column:
    name: str
    type: Type
    null: bool = True
    default: str | None = None
    generated: str = ""
    numbers: bool = False
    # The columns that a generated one is made of.
    of: tuple[str, ...] = ()
    tail: str = ""

    @property
    def base(self) -> bool:
        return not self.generated

    def declared(self) -> str:
        parts = [quoted(self.name), self.type.declared()]
        if self.generated:
            return " ".join([*parts, self.generated])
        parts.append("null" if self.null else "not null")
        if self.numbers:
            parts.append("auto_increment")
        elif self.default is not None:
            parts.append(f"default {self.default}")
        return " ".join(parts) + self.tail


@dataclasses.dataclass
class Key:
    name: str
    kind: str
    # Column, length of the prefix or 0, descending.
    parts: list[tuple[str, int, bool]]
    tail: str = ""
    overlaps: str = ""

    def declared(self) -> str:
        listed = ", ".join(
            quoted(name) + (f"({prefix})" if prefix else "") + (" desc" if desc else "")
            for name, prefix, desc in self.parts)
        if self.overlaps:
            listed += f", {self.overlaps} without overlaps"
        name = "" if self.kind == "primary key" else f" {quoted(self.name)}"
        return f"{self.kind}{name} ({listed}){self.tail}"

    @property
    def columns(self) -> list[str]:
        return [part[0] for part in self.parts]

    @property
    def unique(self) -> bool:
        return self.kind in ("primary key", "unique key")

    @property
    def ordered(self) -> bool:
        """Whether rows can be read in its order; not by words or shapes."""
        return self.unique or self.kind == "key"


@dataclasses.dataclass
class Foreign:
    """A foreign key; without a name the engine gives it one."""

    name: str
    columns: list[str]
    parent: str
    referenced: list[str]
    on_delete: str
    on_update: str

    def declared(self) -> str:
        name = f"constraint {quoted(self.name)} " if self.name else ""
        text = (f"{name}foreign key ({', '.join(map(quoted, self.columns))}) references"
                f" {quoted(self.parent)} ({', '.join(map(quoted, self.referenced))})")
        for event, action in (("delete", self.on_delete), ("update", self.on_update)):
            text += f" on {event} {action}" if action else ""
        return text


@dataclasses.dataclass
class Table:
    name: str
    columns: list[Column]
    keys: list[Key]
    partition: str = ""
    partitions: list[str] = dataclasses.field(default_factory=list)
    temporary: bool = False
    versioned: bool = False
    period: bool = False
    serial: int = 0
    foreign: list[Foreign] = dataclasses.field(default_factory=list)

    def column(self, name: str) -> Column | None:
        return next((one for one in self.columns if one.name == name), None)

    @property
    def by_constants(self) -> bool:
        """Partitioned by ranges that are written as texts. InnoDB's purge, which opens a table with an
        indexed virtual column, ends the server there: its thread has no connection's character set."""
        return "range columns" in self.partition

    def new_name(self) -> str:
        self.serial += 1
        return f"c{self.serial}"

    @property
    def base(self) -> list[Column]:
        return [one for one in self.columns if one.base]

    def unique_columns(self) -> set[str]:
        names = {name for key in self.keys if key.unique for name in key.columns}
        for one in self.columns:
            if one.name in names:
                names = names | set(one.of)
        return names

    def total_order(self) -> str | None:
        """What puts the rows into one order: the primary key, or a unique one without NULLs."""
        for key in self.keys:
            if not key.unique or key.overlaps:
                continue
            ones = [self.column(name) for name in key.columns]
            # A sort compares the first part of a long text's weights, which have several levels.
            if any(one is not None and one.type.prefix and one.type.collation.endswith("_as_cs") for one in ones):
                continue
            if all(one is not None and (key.kind == "primary key" or not one.null) for one in ones):
                return ", ".join(quoted(name) for name in key.columns)
        return None

    def declared(self) -> str:
        parts = [one.declared() for one in self.columns]
        if self.period:
            parts += ["`pf` date not null", "`pt` date not null", "period for `app` (`pf`, `pt`)"]
        parts += [key.declared() for key in [*self.keys, *self.foreign]]
        text = "temporary " if self.temporary else ""
        tail = " with system versioning" if self.versioned else ""
        return f"create {text}table {quoted(self.name)} ({', '.join(parts)}){tail}{self.partition}"


def generated(chance: random.Random, table: Table, column: Column) -> bool:
    """Makes the column one that is made of others, if there are any that fit."""
    sources = [one for one in table.columns if one.base and not one.numbers]
    if not sources:
        return False
    one = chance.choice(sources)
    name, family = quoted(one.name), one.type.family
    if family == "whole" and chance.random() < 0.7:
        expression = chance.choice([f"{name} % 7", f"abs({name} % 100) + 1", f"coalesce({name}, 0) & 15",
                                    f"if({name} > 5, 1, 0)"])
        column.type = values.whole("bigint", -5, 100, False)
    elif family == "text" and "(0)" not in one.type.sql:
        expression = chance.choice([f"left({name}, 2)", f"upper({name})", f"concat({name}, 'x')",
                                    f"char_length({name})", f"substr({name}, 2, 3)"])
        column.type = Type("varchar(300)", "text", values.TEXTS, one.type.collation, 20)
    elif family in ("date", "datetime"):
        expression = chance.choice([f"year({name})", f"to_days({name})"])
        column.type = values.whole("int", -5, 9999, False)
    else:
        expression = chance.choice([f"{name} is null", f"length({name})"])
        column.type = values.whole("int", -5, 100, False)
    how = chance.choice(["virtual", "virtual", "stored"])
    column.generated, column.of = f"as ({expression}) {how}", (one.name,)
    return True


def new_column(chance: random.Random, table: Table) -> Column:
    kind = values.any_type(chance)
    column = Column(table.new_name(), kind, null=chance.random() < 0.6)
    if chance.random() < 0.13 and not table.by_constants and generated(chance, table, column):
        return column
    if chance.random() < (0.4 if column.null else 0.7) and kind.family != "enum":
        column.default = values.literal(chance, kind, column.null, 0.0)
        if kind.sql.startswith("timestamp") and chance.random() < 0.3:
            column.default = "current_timestamp"
        if "text" in kind.sql or "blob" in kind.sql or kind.family == "json":
            column.default = f"({column.default})"
    return column


def key_part(chance: random.Random, column: Column) -> tuple[str, int, bool]:
    prefix = column.type.prefix
    if prefix and chance.random() < 0.15:
        prefix = 0
    elif not prefix and chance.random() < 0.2 and column.type.sql.startswith(
            ("char(5", "char(20", "varchar(1", "varchar(2", "varbinary")):
        prefix = chance.choice([1, 2, 3, 5])
    return column.name, prefix, chance.random() < 0.2


def new_key(chance: random.Random, table: Table, kind: str | None = None) -> Key | None:
    if kind is None:
        kind = chance.choice(["key", "key", "key", "unique key"])
    able = [one for one in table.columns
            if kind != "primary key" or (one.base and not one.null)]
    if not able:
        return None
    count = chance.choice([1, 1, 1, 2, 2, 3])
    chosen = chance.sample(able, min(count, len(able)))
    table.serial += 1
    key = Key(f"k{table.serial}", kind, [key_part(chance, one) for one in chosen])
    if kind == "key" and chance.random() < 0.06:
        key.tail = " ignored"
    # The server makes a hash of what is too long for a unique key.
    if kind == "unique key" and chance.random() < 0.1:
        key.parts = [(name, 0, False) for name, _, _ in key.parts]
    return key


def primary_key(chance: random.Random, table: Table) -> None:
    kind = chance.random()
    if kind < 0.12:
        return
    if kind < 0.27:
        one = Column(table.new_name(), values.whole("int", -100, 2**31 - 1, False), null=False,
                     numbers=True)
        table.columns.insert(0, one)
        table.keys.append(Key("PRIMARY", "primary key", [(one.name, 0, False)]))
        return
    for one in table.columns:
        if one.base and chance.random() < 0.5 and one.default != "NULL":
            one.null = False
    key = new_key(chance, table, "primary key" if kind < 0.92 else "unique key")
    if key is not None:
        table.keys.append(key)


def partition(chance: random.Random, table: Table) -> None:
    """PARTITION BY what all unique keys have; by anything if there are none."""
    names = [one.name for one in table.columns]
    for key in table.keys:
        if key.unique:
            names = [name for name in names if name in key.columns and
                     all(part[1] == 0 for part in key.parts if part[0] == name)]
    ones = [one for one in table.columns if one.name in names]
    if not ones:
        return
    column = chance.choice(ones)
    name, family = quoted(column.name), column.type.family
    whole = family == "whole"
    sub = chance.random() < 0.2 and whole
    kind = chance.choice(["hash", "key", "range", "list"] if whole else ["key", "range columns"])
    if any(one.generated for one in table.columns):
        kind = kind.replace("range columns", "key")
    if kind == "hash":
        table.partition = f" partition by {chance.choice(['', 'linear '])}hash ({name}) partitions {chance.choice([2, 3, 5])}"
        table.partitions = ["p0", "p1"]
        return
    if kind == "key":
        table.partition = f" partition by key ({name}) partitions {chance.choice([2, 3])}"
        table.partitions = ["p0", "p1"]
        return
    below = f" subpartition by {chance.choice(['hash', 'key'])} ({name}) subpartitions 2" if sub else ""
    if kind == "range":
        able = [f"range ({name})"]
        if not any(one.generated for one in table.columns):
            able.append(f"range columns ({name})")
        by = chance.choice(able)
        parts = ("(partition p0 values less than (3), partition p1 values less than (7),"
                 " partition p2 values less than (maxvalue))")
    elif kind == "list":
        by = chance.choice([f"list ({name})", f"list columns ({name})"])
        parts = "(partition p0 values in (1,2,3), partition p1 values in (5,7), partition p2 default)"
    else:
        by = f"range columns ({name})"
        middle = chance.choice(column.type.values)
        parts = (f"(partition p0 values less than ({middle}), partition p2 values less than"
                 " (maxvalue))")
    table.partition = f" partition by {by}{below} {parts}"
    table.partitions = ["p0", "p2"]


def new_table(chance: random.Random, name: str, temporary: bool = False) -> Table:
    table = Table(name, [], [], temporary=temporary)
    for _ in range(chance.choice([1, 2, 3, 4, 4, 5, 7])):
        table.columns.append(new_column(chance, table))
    primary_key(chance, table)
    if not temporary and chance.random() < 0.2:
        partition(chance, table)
    for _ in range(chance.choice([0, 1, 1, 2, 3])):
        key = new_key(chance, table, "key" if table.partition and chance.random() < 0.9 else None)
        if key is not None:
            table.keys.append(key)
    if not temporary and not table.partition and chance.random() < 0.08:
        table.versioned = True
    if not temporary and chance.random() < 0.07:
        table.period = True
        whole = [one for one in table.columns if one.base and not one.type.prefix]
        if whole and chance.random() < 0.6:
            table.serial += 1
            table.keys.append(Key(f"k{table.serial}", "unique key",
                                  [(chance.choice(whole).name, 0, False)], overlaps="`app`"))
    return table


def condition(chance: random.Random, table: Table, deep: int = 0, prefix: str = "") -> str:
    """What a row may be asked for; values are of the column's own type."""
    if deep < 2 and chance.random() < 0.35:
        word = chance.choice([" and ", " or "])
        return ("(" + condition(chance, table, deep + 1, prefix) + word
                + condition(chance, table, deep + 1, prefix) + ")")
    column = chance.choice(table.columns)
    name = prefix + quoted(column.name)
    kind = chance.randrange(9)

    def one() -> str:
        return values.literal(chance, column.type, False, 0.0)

    if column.type.asked:
        return chance.choice(column.type.asked).format(g=name, w=one(), v=one())
    if kind < 3:
        return f"{name} {chance.choice(['=', '=', '<', '>', '<=', '>=', '<>', '<=>'])} {one()}"
    if kind == 3:
        return f"{name} in ({', '.join(one() for _ in range(chance.randrange(1, 5)))})"
    if kind == 4:
        return f"{name} between {one()} and {one()}"
    if kind == 5:
        return f"{name} is {chance.choice(['', 'not '])}null"
    if kind == 6 and column.type.family == "text":
        return f"{name} like {chance.choice([repr('a%'), repr('%b'), repr('_'), repr('c%')])}"
    if kind == 7:
        return f"not ({name} = {one()})"
    return f"{name} {chance.choice(['=', '<', '>='])} {one()}"


def assignment(chance: random.Random, table: Table, column: Column) -> str:
    name = quoted(column.name)
    family = column.type.family
    kind = chance.random()
    if column.numbers:
        # InnoDB reads no next number after a negative one.
        return chance.choice([f"{name} + 1", "7", "50", f"{name}"])
    if kind < 0.2 and family == "whole":
        return chance.choice([f"{name} + 1", f"{name} - 1", f"{name} + 10", f"{name}"])
    if kind < 0.2 and family == "text":
        return chance.choice([f"concat({name}, 'a')", f"upper({name})", f"left({name}, 3)"])
    if kind < 0.3:
        same = [one for one in table.columns if one.type.family == family]
        return quoted(chance.choice(same).name)
    if kind < 0.35 and (column.null or column.default is not None):
        return "default"
    return values.literal(chance, column.type, column.null)


def row(chance: random.Random, table: Table, columns: list[Column], numbered: bool) -> str:
    """`numbered`: AUTO_INCREMENT gives the number. It is so for all rows of a statement or for none:
    how many numbers InnoDB takes for a statement that has both is its own affair."""
    listed = []
    for column in columns:
        if column.numbers and not numbered:
            listed.append(str(chance.randrange(1, 60)))
        elif column.numbers:
            listed.append(chance.choice(["NULL", "0", "default"]))
        elif chance.random() < 0.06 and (column.null or column.default is not None):
            listed.append("default")
        else:
            listed.append(values.literal(chance, column.type, column.null))
    if table.period:
        first = chance.randrange(1, 20)
        listed += [f"'2001-01-{first:02}'", f"'2001-01-{first + chance.randrange(1, 9):02}'"]
    return "(" + ", ".join(listed) + ")"
