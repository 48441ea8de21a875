"""ALTER TABLE of all kinds: instant, in place, by copy; several changes in one statement."""

from __future__ import annotations

from typing import Any, Callable

import foreign
import schema
import values
from pair import Stopped
from schema import Column, Key, Table, quoted

Change = tuple[str, Callable[[], None]]


def nothing() -> None:
    pass


def references(table: Table, name: str) -> bool:
    return any(name in one.of for one in table.columns) or quoted(name) in table.partition


def add_column(program: Any, table: Table) -> Change:
    chance = program.chance
    column = schema.new_column(chance, table)
    place = chance.choice(["", "", " first", None])
    at = len(table.columns)
    if place is None and table.columns:
        after = chance.choice(table.columns)
        place, at = f" after {quoted(after.name)}", table.columns.index(after) + 1
    elif place == " first":
        at = 0
    return f"add column {column.declared()}{place or ''}", lambda: table.columns.insert(at, column)


def drop_column(program: Any, table: Table) -> Change | None:
    able = [one for one in table.columns if not references(table, one.name)]
    if len(table.columns) < 3 or not able:
        return None
    column = program.chance.choice(able)

    def done() -> None:
        table.columns.remove(column)
        for key in list(table.keys):
            key.parts = [part for part in key.parts if part[0] != column.name]
            if not key.parts:
                table.keys.remove(key)

    return f"drop column {quoted(column.name)}", done


def rename_column(program: Any, table: Table) -> Change | None:
    able = [one for one in table.columns if not references(table, one.name)]
    if not able:
        return None
    column, name = program.chance.choice(able), table.new_name()
    old = column.name

    def done() -> None:
        column.name = name
        for key in table.keys:
            key.parts = [(name if part[0] == old else part[0], *part[1:]) for part in key.parts]
        foreign.column_renamed(program, table, old, name)

    return f"rename column {quoted(old)} to {quoted(name)}", done


WIDER = {"char(5)": "char(20)", "varchar(5)": "varchar(20)", "varchar(20)": "varchar(100)",
         "varchar(100)": "varchar(255)", "varchar(255)": "varchar(300)", "tinyint": "int",
         "int": "bigint", "smallint": "int", "tinytext": "text", "text": "mediumtext",
         "tinyblob": "blob", "blob": "longblob", "decimal(10,2)": "decimal(12,2)",
         "enum('a','b','C','longer one','')": "enum('a','b','C','longer one','','more')",
         "set('a','b','c','d')": "set('a','b','c','d','e')"}


def modify(program: Any, table: Table) -> Change | None:
    chance = program.chance
    able = [one for one in table.base if not references(table, one.name)]
    if not able:
        return None
    column = chance.choice(able)
    new = Column(column.name, column.type, column.null, column.default, numbers=column.numbers)
    kind = chance.random()
    if kind < 0.3 and column.type.sql in WIDER:
        new.type = values.Type(WIDER[column.type.sql], column.type.family, column.type.values,
                               column.type.collation, column.type.prefix)
    elif kind < 0.5:
        new.null = not column.null
        if new.default == "NULL":
            new.default = None
    elif kind < 0.65 and column.type.collation:
        new.type = values.Type(column.type.sql, column.type.family, column.type.values,
                               chance.choice(values.COLLATIONS), column.type.prefix)
    elif kind < 0.8:
        new.type, new.default, new.numbers = values.any_type(chance), None, False
    else:
        new.default = values.literal(chance, new.type, new.null, 0.0)
        if "text" in new.type.sql or "blob" in new.type.sql or new.type.family == "json":
            new.default = f"({new.default})"
    place = chance.choice(["", "", "", " first"])

    def done() -> None:
        at = table.columns.index(column)
        table.columns[at] = new
        if place:
            table.columns.insert(0, table.columns.pop(at))

    return f"modify column {new.declared()}{place}", done


def default(program: Any, table: Table) -> Change | None:
    able = [one for one in table.base if not one.numbers and not one.type.prefix]
    if not able:
        return None
    column = program.chance.choice(able)
    value = values.literal(program.chance, column.type, column.null, 0.0)
    if program.chance.random() < 0.3:
        return f"alter column {quoted(column.name)} drop default", nothing
    return f"alter column {quoted(column.name)} set default {value}", nothing


def add_key(program: Any, table: Table) -> Change | None:
    key = schema.new_key(program.chance, table)
    if key is None or len(table.keys) > 5:
        return None
    return f"add {key.declared()}", lambda: table.keys.append(key)


def drop_key(program: Any, table: Table) -> Change | None:
    if not table.keys:
        return None
    key = program.chance.choice(table.keys)
    word = "primary key" if key.kind == "primary key" else f"index {quoted(key.name)}"
    return f"drop {word}", lambda: table.keys.remove(key)


def primary(program: Any, table: Table) -> Change | None:
    if any(key.kind == "primary key" for key in table.keys):
        return None
    key = schema.new_key(program.chance, table, "primary key")
    if key is None:
        return None
    key.name = "PRIMARY"
    return f"add {key.declared()}", lambda: table.keys.append(key)


def rename_key(program: Any, table: Table) -> Change | None:
    able = [key for key in table.keys if key.kind != "primary key"]
    if not able:
        return None
    key = program.chance.choice(able)
    table.serial += 1
    name = f"k{table.serial}"

    def done() -> None:
        key.name = name

    return f"rename index {quoted(key.name)} to {quoted(name)}", done


def ignored(program: Any, table: Table) -> Change | None:
    able = [key for key in table.keys if key.kind == "key"]
    if not able:
        return None
    key = program.chance.choice(able)
    word = program.chance.choice(["ignored", "not ignored"])

    def done() -> None:
        key.tail = " ignored" if word == "ignored" else ""

    return f"alter index {quoted(key.name)} {word}", done


def whole(program: Any, table: Table) -> Change:
    chance = program.chance
    return chance.choice(["force", "engine=SHALE", "comment='new'", "auto_increment=50",
                          "default character set latin1", "row_format=dynamic",
                          f"convert to character set {chance.choice(['utf8mb4', 'latin1'])}",
                          "add constraint check (1 = 1)"]), nothing


def versioning(program: Any, table: Table) -> Change | None:
    if table.temporary or table.partition:
        return None
    word = "drop" if table.versioned else "add"

    def done() -> None:
        table.versioned = not table.versioned

    return f"{word} system versioning", done


CHANGES = [(add_column, 8), (drop_column, 4), (rename_column, 3), (modify, 8), (default, 3),
           (add_key, 8), (drop_key, 4), (primary, 2), (rename_key, 2), (ignored, 1), (whole, 4),
           (versioning, 1)]
# With foreign keys.
FOREIGN = [*CHANGES, (foreign.add_foreign, 8), (foreign.drop_foreign, 4)]


def partitions(program: Any, table: Table) -> None:
    chance, name = program.chance, quoted(table.name)
    if not table.partition:
        fresh = Table(table.name, table.columns, table.keys)
        schema.partition(chance, fresh)
        if fresh.partition and program.do(f"alter table {name}{fresh.partition}"):
            table.partition, table.partitions = fresh.partition, fresh.partitions
        return
    kind = chance.randrange(6)
    part = chance.choice(table.partitions)
    if kind == 0:
        if program.do(f"alter table {name} remove partitioning"):
            table.partition = ""
    elif kind == 1:
        program.do(f"alter table {name} truncate partition {part}")
    elif kind == 2:
        program.do(f"alter table {name} rebuild partition {part}")
    elif kind == 3:
        if program.do(f"alter table {name} drop partition {part}"):
            table.partitions = ["p0", "p1", "p2"]
    elif kind == 4:
        program.do(f"alter table {name} {chance.choice(['add partition partitions 1', 'coalesce partition 1'])}")
    else:
        fresh = Table("x", table.columns, table.keys, period=table.period)
        if program.do(f"create table `x` like {name}"):
            program.do("alter table `x` remove partitioning")
            program.do(f"alter table {name} exchange partition {part} with table `x`")
            program.do("select * from `x`")
            program.do("check table `x` extended /*meta*/")
            program.do("drop table `x`")
        del fresh


def alter(program: Any, table: Table) -> None:
    chance = program.chance
    if not table.temporary and chance.random() < 0.12:
        partitions(program, table)
        return
    changes = program.changes()
    makers = [make for make, _ in changes]
    weights = [weight for _, weight in changes]
    made: list[Change] = []
    for maker in chance.choices(makers, weights, k=chance.choice([1, 1, 1, 1, 2, 3])):
        change = maker(program, table)
        if change is not None:
            made.append(change)
    if not made:
        return
    how = chance.choice(["", "", "", "", "", ", algorithm=copy", ", algorithm=copy"])
    text = ", ".join(change for change, _ in made)
    # In place InnoDB gives what was NULL the column's default, by copy both engines give it zero.
    if "modify column" in text and "not null" in text:
        how = ", algorithm=copy"
    ignore = "ignore " if chance.random() < 0.05 else ""
    done = program.do(f"alter {ignore}table {quoted(table.name)} {text}{how}")
    if ignore and program.pair.duplicates():
        # InnoDB may lose all rows of those that are duplicates.
        program.do(f"check table {quoted(table.name)} extended /*only*/")
        raise Stopped
    if done:
        for _, change in made:
            try:
                change()
            except ValueError:
                # Two changes of one column or key, which the server has taken in its own order.
                pass
