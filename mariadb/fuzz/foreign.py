"""Part (d): foreign keys between the small tables of part (a), and the statements that meet them.

About half of the new tables are children, of another table or of themselves. Parent and child share few
values, so that rows find parents, parents have children, and some do not. `DDL` and `ALTER` say which
changes of such tables are asked; SHALE answers all of them since both are on.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import schema
import values
from schema import Column, Foreign, Key, Table, quoted

ACTIONS = ["", "", "restrict", "no action", "cascade", "cascade", "cascade", "set null", "set null"]
FEW = 5


def referable(table: Table) -> list[list[Column]]:
    """Lists of columns that a foreign key may reference: with which a key begins, whole."""
    found = []
    for key in table.keys:
        columns = []
        for name, prefix, _ in key.parts:
            column = table.column(name)
            if column is None or prefix or column.type.prefix or not column.base:
                break
            columns.append(column)
        found += [columns[: count + 1] for count in range(len(columns))]
    return found


def few_values(program: Any, column: Column) -> None:
    """Leaves the column so few values that children find parents."""
    if column.numbers:
        return
    some = column.type.values
    if len(some) > FEW:
        kept = program.chance.sample(some, FEW)
        column.type = dataclasses.replace(column.type, values=kept)


def like(program: Any, table: Table, column: Column) -> Column:
    """A new column of the table, for what a parent's column has."""
    kind = column.type
    if column.numbers:
        kind = dataclasses.replace(kind, values=[str(number) for number in range(1, 7)])
    if program.chance.random() < 0.04:
        kind = values.any_type(program.chance)
    return Column(table.new_name(), kind, null=program.chance.random() < 0.85)


def actions(program: Any) -> tuple[str, str]:
    chance = program.chance
    return chance.choice(ACTIONS), chance.choice(ACTIONS)


def to_itself(program: Any, table: Table) -> Table:
    return table if program.chance.random() < 0.15 else program.table()


def constrain(program: Any, table: Table) -> None:
    """Gives a table that is not made yet one or two foreign keys."""
    chance = program.chance
    if table.partition and chance.random() < 0.9:
        return
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        foreign = new_foreign(program, table, True)
        if foreign is None:
            continue
        table.foreign.append(foreign)
        if chance.random() < 0.4:
            table.serial += 1
            more = [one.name for one in table.columns if one.name not in foreign.columns
                    and not one.type.prefix and "json" != one.type.family]
            names = foreign.columns + ([chance.choice(more)] if more and chance.random() < 0.3 else [])
            table.keys.append(Key(f"k{table.serial}", chance.choice(["key", "key", "key", "unique key"]),
                                  [(name, 0, chance.random() < 0.15) for name in names]))


def new_foreign(program: Any, table: Table, columns: bool) -> Foreign | None:
    """A foreign key of the table; with new columns, or of those that it has."""
    chance = program.chance
    parent = to_itself(program, table)
    able = referable(parent)
    if not able:
        return None
    referenced = chance.choice(able)
    for column in referenced:
        few_values(program, column)
    names = []
    for column in referenced:
        same = [one.name for one in table.base if one.type.declared() == column.type.declared()
                and one is not column and one.name not in names]
        if columns and not (same and chance.random() < 0.15):
            new = like(program, table, column)
            table.columns.append(new)
            names.append(new.name)
        elif same:
            names.append(chance.choice(same))
        else:
            return None
    name = program.name("f") if chance.random() < 0.5 else ""
    target = parent.name
    if chance.random() < 0.03:
        target = program.gone or "nowhere"
    other = [one.name for one in referenced]
    if chance.random() < 0.02:
        other.reverse()
    return Foreign(name, names, target, other, *actions(program))


def related(program: Any, table: Table) -> bool:
    """Whether a foreign key is of this table, on either side."""
    return any(one.foreign and (one is table or any(key.parent == table.name for key in one.foreign))
               for one in program.tables)


def is_parent(program: Any, table: Table) -> bool:
    return any(key.parent == table.name for one in program.tables for key in one.foreign)


def checks(program: Any) -> None:
    program.do(f"set foreign_key_checks={program.chance.choice([0, 1, 1, 1])}")


def show(program: Any) -> None:
    """What the server tells of constraints."""
    kind = program.chance.randrange(4)
    if kind == 0:
        program.do("select constraint_name, unique_constraint_name, match_option, update_rule, delete_rule,"
                   " table_name, referenced_table_name from information_schema.referential_constraints"
                   " where constraint_schema = 'fuzz' /*meta*/")
    elif kind == 1:
        program.do("select constraint_name, table_name, column_name, ordinal_position,"
                   " position_in_unique_constraint, referenced_table_name, referenced_column_name"
                   " from information_schema.key_column_usage where table_schema = 'fuzz' /*meta*/")
    elif kind == 2:
        program.do("select constraint_name, table_name, constraint_type from"
                   " information_schema.table_constraints where table_schema = 'fuzz' /*meta*/")
    else:
        program.do(f"show create table {quoted(program.table().name)} /*meta*/")


def drop_some(program: Any) -> None:
    """DROP of two tables, and CREATE OR REPLACE of one."""
    chance = program.chance
    one, two = program.table(), program.table()
    if one is two:
        # A new table of this name is what its children reference from then on.
        new = schema.new_table(chance, one.name)
        new.columns = copy.deepcopy(one.columns)
        new.keys, new.partition, new.versioned, new.period = copy.deepcopy(one.keys), "", False, False
        new.serial = max(one.serial, new.serial)
        if not one.temporary and program.do("create or replace " + new.declared()[len("create "):]):
            program.tables[program.tables.index(one)] = new
        return
    if one.temporary or two.temporary:
        return
    if program.do(f"drop table {quoted(one.name)}, {quoted(two.name)}"):
        for table in (one, two):
            program.tables.remove(table)
            program.gone = table.name
        return
    # The first of them may be gone.
    for table in (one, two):
        if not program.do(f"select 1 from {quoted(table.name)} limit 0"):
            program.tables.remove(table)
            program.gone = table.name


def parents_and_children(program: Any) -> None:
    """DELETE and UPDATE of a parent together with its child, in an order that the plan does not choose."""
    chance = program.chance
    pairs = [(child, key, parent) for child in program.tables for key in child.foreign
             for parent in program.tables if parent.name == key.parent and parent is not child]
    if not pairs:
        return
    child, key, parent = chance.choice(pairs)
    on = " and ".join(f"c.{quoted(a)} = p.{quoted(b)}"
                      for a, b in zip(key.columns, key.referenced))
    tables = f"{quoted(parent.name)} p {chance.choice(['straight_join', 'left join'])} {quoted(child.name)} c on {on}"
    where = f" where {schema.condition(chance, parent, 1, 'p.')}"
    if chance.random() < 0.5:
        program.do(f"delete {chance.choice(['p', 'c', 'p, c', 'c, p'])} from {tables}{where} /*loose*/")
        return
    column = parent.column(key.referenced[0])
    if column is not None and not column.numbers:
        value = values.literal(chance, column.type, column.null)
        target = chance.choice([f"p.{quoted(column.name)}", f"c.{quoted(key.columns[0])}"])
        program.do(f"update {tables} set {target} = {value}{where} /*loose*/")


def add_foreign(program: Any, table: Table) -> Any:
    """A part of an ALTER TABLE, and what it makes of the table."""
    foreign = None if table.temporary else new_foreign(program, table, False)
    if foreign is None:
        return None
    return f"add {foreign.declared()}", lambda: table.foreign.append(foreign)


def drop_foreign(program: Any, table: Table) -> Any:
    if not table.foreign:
        return None
    foreign = program.chance.choice(table.foreign)
    name = foreign.name or f"{table.name}_ibfk_{table.foreign.index(foreign) + 1}"
    word = "" if program.chance.random() < 0.9 else "if exists "
    return f"drop foreign key {word}{quoted(name)}", lambda: table.foreign.remove(foreign)


def column_renamed(program: Any, table: Table, old: str, new: str) -> None:
    for one in program.tables:
        for key in one.foreign:
            if one is table:
                key.columns = [new if name == old else name for name in key.columns]
            if key.parent == table.name:
                key.referenced = [new if name == old else name for name in key.referenced]


ACTS = [(checks, 3), (show, 2), (drop_some, 1), (parents_and_children, 4)]


def act(program: Any) -> None:
    makers = [make for make, _ in ACTS]
    program.chance.choices(makers, [weight for _, weight in ACTS])[0](program)
