"""Part (a): programs of random statements on small tables: DDL, DML, transactions, routines, XA.

The generator looks at each answer, so that its picture of the tables stays that of the server; the
program that it leaves is a plain list of statements.
"""

from __future__ import annotations

import copy
import random
import re
from typing import Any, Callable

import alter
import foreign
import routines
import schema
from pair import Pair
from schema import Column, Table, assignment, condition, quoted, row
from wire import Result

MODES = ["", "", "", "strict_all_tables", "ansi_quotes", "no_zero_date,strict_trans_tables",
         "no_auto_value_on_zero", "pad_char_to_full_length,strict_trans_tables",
         "strict_trans_tables,no_zero_in_date,error_for_division_by_zero"]
# What takes numbers of a table.
INTO = re.compile(r"(?:insert|replace|load)\b.*? into (?:table )?`(\w+)`")
ISOLATION = ["read uncommitted", "read committed", "repeatable read", "serializable"]


class Program:
    """One program: its tables, and the statements that it does."""

    def __init__(self, pair: Pair, chance: random.Random, foreign_keys: bool = False) -> None:
        self.pair, self.chance = pair, chance
        self.foreign_keys = foreign_keys
        # A table that is no more, which a foreign key may name.
        self.gone = ""
        self.tables: list[Table] = []
        self.serial = 0
        self.savepoints: list[str] = []
        self.branch = ""
        self.functions: list[str] = []
        self.procedures: list[str] = []
        self.views: list[str] = []
        self.begun = False
        self.clock = 1700000000

    def do(self, sql: str) -> bool:
        """Whether the statement succeeded."""
        if self.answer(sql)[-1].kind != "error":
            return True
        into = INTO.match(sql)
        table = next((one for one in self.tables if into and one.name == into[1]), None)
        if table is not None:
            self.failed(table)
        return False

    def failed(self, table: Table) -> None:
        """A statement that adds rows has failed; a temporary table is left alone from here on (`insert`)."""
        if table.temporary:
            self.tables.remove(table)
        elif any(one.numbers for one in table.columns):
            self.count_again(table)

    def count_again(self, table: Table) -> None:
        """Brings both engines to one next number after a statement that has failed: when its table is
        closed InnoDB forgets the numbers that the statement took and did not use, SHALE does not."""
        if self.branch:
            self.end_branch()
        self.begun, self.savepoints = False, []
        self.answer(f"alter table {quoted(table.name)} auto_increment=1")

    def answer(self, sql: str) -> list[Result]:
        return self.pair.do(sql)

    def name(self, letter: str) -> str:
        self.serial += 1
        return f"{letter}{self.serial}"

    def table(self) -> Table:
        return self.chance.choice(self.tables)

    # Each of these does one or a few statements.

    def create(self) -> None:
        chance = self.chance
        if len(self.tables) >= 5:
            self.drop()
        temporary = chance.random() < 0.15
        kind = chance.random()
        if kind < 0.8 or not self.tables:
            table = self.new_table(temporary)
            self.constrain(table)
            if self.do(table.declared()):
                self.tables.append(table)
                self.insert(table)
            return
        old = self.table()
        # InnoDB has no words in temporary tables.
        if any(key.kind == "fulltext key" for key in old.keys):
            temporary = False
        word = "temporary table" if temporary else "table"
        table = Table(self.name("t"), copy.deepcopy(old.columns), copy.deepcopy(old.keys), "", [], temporary,
                      serial=old.serial, period=old.period)
        if kind < 0.9:
            table.partition, table.partitions = old.partition, old.partitions
            table.versioned = old.versioned
            if self.do(f"create {word} {quoted(table.name)} like {quoted(old.name)}"):
                self.tables.append(table)
                order = old.total_order()
                if order and chance.random() < 0.7:
                    self.do(f"insert into {quoted(table.name)} select * from {quoted(old.name)}"
                            f" order by {order}")
            return
        table.keys, table.period = [], False
        table.columns = [Column(one.name, one.type, True) for one in old.base]
        names = ", ".join(quoted(one.name) for one in table.columns)
        how = chance.choice(["", "", " or replace"])
        if not names or old.total_order() is None:
            return
        if self.do(f"create{how} {word} {quoted(table.name)} as select {names} from"
                   f" {quoted(old.name)} order by {old.total_order()}"):
            self.tables.append(table)
            # A rollback takes these rows from SHALE's table; InnoDB keeps them.
            if temporary and self.do("commit"):
                self.begun, self.savepoints = False, []
            if chance.random() < 0.3:
                self.do(f"drop table {quoted(table.name)}")
                self.tables.remove(table)

    def new_table(self, temporary: bool) -> Table:
        return schema.new_table(self.chance, self.name("t"), temporary)

    def constrain(self, table: Table) -> None:
        """Foreign keys for half of the tables that have another beside them."""
        if not self.foreign_keys:
            return
        if self.gone and self.chance.random() < 0.2:
            table.name, self.gone = self.gone, ""
        if not (table.temporary or table.partition) and self.chance.random() < 0.15:
            table.versioned = True
        if self.tables and self.chance.random() < (0.06 if table.temporary else 0.6):
            foreign.constrain(self, table)

    def related(self, table: Table) -> bool:
        return self.foreign_keys and foreign.related(self, table)

    def drop(self) -> None:
        table = self.table()
        word = self.chance.choice(["table", "table if exists", "temporary table"
                                   if table.temporary else "table"])
        if self.do(f"drop {word} {quoted(table.name)}"):
            self.tables.remove(table)
            self.gone = table.name

    def truncate(self) -> None:
        self.do(f"truncate table {quoted(self.table().name)}")

    def rename(self) -> None:
        table = self.table()
        name = self.name("t")
        if self.do(f"rename table {quoted(table.name)} to {quoted(name)}"):
            for one in self.tables:
                for key in one.foreign:
                    key.parent = name if key.parent == table.name else key.parent
            table.name = name

    def alter(self) -> None:
        alter.alter(self, self.table())

    def changes(self) -> list[Any]:
        """Those of ALTER TABLE, with their weights."""
        return alter.FOREIGN if self.foreign_keys else alter.CHANGES

    def foreign(self) -> None:
        if self.foreign_keys:
            foreign.act(self)

    def insert(self, table: Table | None = None) -> None:
        chance = self.chance
        table = table or self.table()
        columns = [one for one in table.base if chance.random() < (0.9 if one.null or one.default is not None else 0.995)]
        if not columns:
            return
        names = ", ".join([quoted(one.name) for one in columns]
                          + (["`pf`", "`pt`"] if table.period else []))
        numbered = chance.random() < 0.6
        rows = ", ".join(row(chance, table, columns, numbered) for _ in range(chance.choice([1, 1, 2, 4, 8])))
        kind = chance.random()
        into = f"into {quoted(table.name)} ({names})"
        text = f"insert {into} values {rows}"
        # InnoDB loses rows of a temporary table when it rolls back after it has taken a row back, as that
        # of a duplicate.
        if kind < 0.25 and not table.temporary:
            text = f"insert ignore {into} values {rows}"
        elif kind < 0.4 and not table.temporary:
            text = f"replace {into} values {rows}"
        elif kind < 0.55 and not table.temporary:
            column = chance.choice(columns)
            value = chance.choice([f"values({quoted(column.name)})",
                                   assignment(chance, table, column)])
            text += f" on duplicate key update {quoted(column.name)} = {value}"
        elif kind < 0.63:
            text = self.insert_select(table)
        if text and kind < 0.7 and chance.random() < 0.2:
            text += " returning *"
        if text:
            self.do(text)

    def insert_select(self, table: Table) -> str:
        old = self.table()
        order = old.total_order()
        if order is None:
            return ""
        pairs = []
        for column in table.base:
            same = [one for one in old.columns if one.type.family == column.type.family]
            if same:
                pairs.append((column, self.chance.choice(same)))
        if not pairs or table.period:
            return ""
        names = ", ".join(quoted(one.name) for one, _ in pairs)
        source = ", ".join(quoted(one.name) for _, one in pairs)
        word = "insert" if table.temporary else self.chance.choice(["insert", "insert ignore", "replace"])
        limit = self.chance.choice(["", " limit 3"])
        return (f"{word} into {quoted(table.name)} ({names}) select {source} from"
                f" {quoted(old.name)} where {condition(self.chance, old)} order by {order}{limit}")

    def update(self) -> None:
        chance, table = self.chance, self.table()
        free = [one for one in table.base if one.name not in table.unique_columns()
                and one.name not in table.partition]
        order = table.total_order()
        columns = table.base if order and chance.random() < 0.5 else free
        # InnoDB loses rows of a temporary table whose key was set to an equal one, by a rollback.
        if table.temporary:
            columns = free
        # InnoDB keeps no next number for one that an UPDATE gives a row of a partition.
        if table.partition:
            columns = [one for one in columns if not one.numbers]
        if not columns:
            return
        ordered = order is not None and (len(columns) > len(free) or chance.random() < 0.2)
        if self.related(table):
            # Which row is refused hangs on which is the first.
            ordered = order is not None
            if not ordered and chance.random() < 0.7:
                return
        ignore = "ignore " if chance.random() < 0.1 and ordered else ""
        chosen = chance.sample(columns, min(len(columns), chance.choice([1, 1, 2])))
        sets = ", ".join(f"{quoted(one.name)} = {assignment(chance, table, one)}" for one in chosen)
        where = f" where {condition(chance, table)}" if chance.random() < 0.85 else ""
        if table.period and chance.random() < 0.4:
            portion = " for portion of `app` from '2001-01-03' to '2001-01-08'"
            # Which row is cut first decides which numbers the parts get.
            if not any(one.numbers for one in table.columns) and not self.related(table):
                self.do(f"update {quoted(table.name)}{portion} set {sets}{where} /*loose*/")
            return
        tail = ""
        if ordered:
            tail = f" order by {order}{chance.choice(['', ' desc', '', ' limit 2'])}"
        self.do(f"update {ignore}{quoted(table.name)} set {sets}{where}{tail}")

    def delete(self) -> None:
        chance, table = self.chance, self.table()
        where = f" where {condition(chance, table)}" if chance.random() < 0.93 else ""
        order = table.total_order()
        if table.period and chance.random() < 0.3:
            # How many numbers InnoDB takes for the parts that stay is its own affair.
            if any(one.numbers for one in table.columns) or self.related(table):
                return
            self.do(f"delete from {quoted(table.name)} for portion of `app` from '2001-01-03' to"
                    f" '2001-01-08'{where} /*loose*/")
            return
        if order and chance.random() < 0.4:
            tail = f" order by {order} limit {chance.randrange(1, 4)}"
            back = " returning * /*ordered*/" if chance.random() < 0.3 else ""
            self.do(f"delete from {quoted(table.name)}{where}{tail}{back}")
            return
        if self.related(table):
            if order is None and chance.random() < 0.7:
                return
            where += f" order by {order}" if order else ""
        back = " returning *" if chance.random() < 0.1 else ""
        self.do(f"delete from {quoted(table.name)}{where}{back}")

    def multi(self) -> None:
        """UPDATE and DELETE of joined tables, and of one with itself; nothing that depends on the
        order of rows."""
        chance, one, two = self.chance, self.table(), self.table()
        pairs = [(a, b) for a in one.columns for b in two.columns
                 if a.type.family == b.type.family == "whole"]
        free = [c for c in one.base if c.name not in one.unique_columns()
                and c.name not in one.partition]
        if not pairs:
            return
        a, b = chance.choice(pairs)
        on = f"x.{quoted(a.name)} = y.{quoted(b.name)}"
        where = f" where {condition(chance, two, 1, 'y.')}" if chance.random() < 0.6 else ""
        join = chance.choice(["join", "left join"])
        # Which row is refused hangs on which is the first.
        if join == "join" and (one is two or self.related(one) or self.related(two)):
            join = "straight_join"
        if chance.random() < 0.5 and free:
            column = chance.choice(free)
            value = assignment(chance, Table("", [column], []), column)
            value = value.replace(quoted(column.name), "x." + quoted(column.name))
            self.do(f"update {quoted(one.name)} x {join} {quoted(two.name)} y on {on}"
                    f" set x.{quoted(column.name)} = {value}{where} /*loose*/")
        else:
            target = chance.choice(["x", "x", "x, y"])
            self.do(f"delete {target} from {quoted(one.name)} x {join} {quoted(two.name)} y on {on}"
                    f"{where} /*loose*/")

    def select(self) -> None:
        chance, table = self.chance, self.table()
        name, where = quoted(table.name), condition(chance, table)
        order = table.total_order()
        if table.versioned and chance.random() < 0.5:
            name += " for system_time " + chance.choice(
                ["all", f"as of from_unixtime({self.clock - 1})", "between '2000-01-01' and now()"])
            order = None
        kind = chance.randrange(9)
        if table.versioned and self.foreign_keys:
            where, kind = f"({where}) and row_start < row_end", chance.choice([2, 3, 4])
        lock = chance.choice(["", "", "", " for update", " lock in share mode"])
        if kind < 2 and order:
            way = chance.choice(["", " desc"])
            way = ", ".join(part + way for part in order.split(", "))
            limit = chance.choice(["", " limit 2", " limit 3, 4"])
            self.do(f"select /*ordered*/ * from {name} where {where} order by {way}{limit}{lock}")
        elif kind < 4:
            self.do(f"select * from {name} where {where}{lock}")
        elif kind == 4:
            column = chance.choice(table.columns)
            self.do(f"select count(*), count({quoted(column.name)}), count(distinct"
                    f" {quoted(column.name)}) from {name} where {where}")
        elif kind == 5:
            column = chance.choice(table.columns)
            self.do(f"select count(*) from {name} group by {quoted(column.name)}")
        elif kind == 6:
            other = self.table()
            pairs = [(a, b) for a in table.columns for b in other.columns
                     if a.type.sql == b.type.sql and a.type.collation == b.type.collation]
            if pairs and not table.versioned:
                a, b = chance.choice(pairs)
                self.do(f"select {chance.choice(['*', 'count(*)'])} from {name} x"
                        f" {chance.choice(['join', 'left join'])} {quoted(other.name)} y on"
                        f" x.{quoted(a.name)} = y.{quoted(b.name)}")
        elif kind == 7:
            other = self.table()
            a, b = chance.choice(table.columns), chance.choice(other.columns)
            if a.type.sql == b.type.sql and a.type.collation == b.type.collation:
                word = chance.choice(["in", "not in"])
                self.do(f"select * from {name} where {quoted(a.name)} {word} (select"
                        f" {quoted(b.name)} from {quoted(other.name)})")
        else:
            column = chance.choice(table.columns)
            if column.type.collation == "" or column.type.collation.endswith("_bin"):
                self.do(f"select /*loose*/ min({quoted(column.name)}), max({quoted(column.name)})"
                        f" from {name}")

    def transaction(self) -> None:
        chance = self.chance
        if self.branch:
            self.end_branch()
            return
        if not self.begun:
            kind = chance.random()
            if kind < 0.15:
                self.do(f"set transaction isolation level {chance.choice(ISOLATION)}")
            if kind > 0.85:
                self.branch = f"fuzz{self.name('x')}"
                if not self.do(f"xa start '{self.branch}'"):
                    self.branch = ""
                    return
            elif not self.do(chance.choice(["begin", "start transaction", "begin",
                                            "start transaction with consistent snapshot"])):
                return
            self.begun = True
            return
        kind = chance.random()
        if kind < 0.3:
            name = chance.choice(["a", "b", "c"])
            if self.do(f"savepoint {name}"):
                self.savepoints.append(name)
        elif kind < 0.5 and self.savepoints:
            self.do(f"{chance.choice(['rollback to', 'release'])} savepoint"
                    f" {chance.choice(self.savepoints)}")
        else:
            self.do(chance.choice(["commit", "commit", "rollback", "commit and chain", "rollback"]))
            self.begun = chance.random() < 0.1
            self.savepoints = []

    def end_branch(self) -> None:
        chance, name = self.chance, self.branch
        self.branch, self.begun = "", False
        if not self.do(f"xa end '{name}'"):
            self.do(f"xa rollback '{name}'")
            return
        kind = chance.random()
        if kind < 0.25:
            if self.do(f"xa commit '{name}' one phase"):
                return
        elif kind < 0.9:
            if self.do(f"xa prepare '{name}'") and chance.random() < 0.5:
                self.do(f"xa commit '{name}'")
                return
        self.do(f"xa rollback '{name}'")

    def session(self) -> None:
        chance = self.chance
        kind = chance.randrange(7)
        if kind == 0:
            self.do(f"set sql_mode='{chance.choice(MODES)}'")
        elif kind == 1:
            self.do(f"set session transaction isolation level {chance.choice(ISOLATION)}")
        elif kind == 2:
            self.do(f"set autocommit={chance.choice([0, 1, 1])}")
        elif kind == 3 and not self.foreign_keys:
            # Without both kinds of checks InnoDB loads empty tables without looking for duplicates.
            self.do(f"set unique_checks={chance.choice([0, 1])}")
        elif kind == 4:
            self.do(chance.choice(["set sql_quote_show_create=1", "set system_versioning_alter_history=keep",
                                   "set sql_safe_updates=0", "set old_mode=''"]))
        else:
            self.clock += chance.choice([1, 10, 1000])
            self.do(f"set timestamp={self.clock}")

    def administer(self) -> None:
        name = quoted(self.table().name)
        # CHECKSUM TABLE is not asked: InnoDB's two equal tables can differ in it.
        kind = self.chance.randrange(7)
        if kind == 0:
            self.do(f"analyze table {name} /*meta*/")
        elif kind == 1:
            self.do(f"flush tables {name}")
        elif kind == 2:
            self.do(f"show create table {name} /*meta*/")
        elif kind == 3:
            self.do(f"check table {name} /*meta*/")
        elif kind == 4:
            self.do("select table_name, index_name, seq_in_index, column_name, sub_part, nullable,"
                    " non_unique, index_type, collation, ignored from information_schema.statistics"
                    " where table_schema = 'fuzz' /*meta*/")
        elif kind == 5:
            self.do(f"lock tables {name} {self.chance.choice(['read', 'write'])}")
            self.do(f"select * from {name}")
            self.do("unlock tables")
            self.begun = False
        else:
            self.do("select table_name, column_name, ordinal_position, column_default, is_nullable,"
                    " column_type, column_key, extra, collation_name from information_schema.columns"
                    " where table_schema = 'fuzz' /*meta*/")

    def load(self) -> None:
        table, other = self.table(), self.table()
        order = other.total_order()
        if order is None or table.period:
            return
        file = f"/tmp/fuzz.{self.name('f')}"
        common = [one for one in other.base][: len(table.base)]
        if not common:
            return
        names = ", ".join(quoted(one.name) for one in common)
        if not self.do(f"select {names} into outfile '{file}' from {quoted(other.name)}"
                       f" order by {order}"):
            return
        into = ", ".join(quoted(one.name) for one in table.base[: len(common)])
        word = "" if table.temporary else self.chance.choice(["", "ignore ", "replace "])
        self.do(f"load data infile '{file}' {word}into table {quoted(table.name)} ({into})")

    def handler(self) -> None:
        chance, table = self.chance, self.table()
        keys = [key for key in table.keys if key.parts and key.ordered and not key.tail and not key.overlaps]
        if not keys or table.temporary or table.partition:
            return
        key = chance.choice(keys)
        column = table.column(key.columns[0])
        if column is None or not self.do(f"handler {quoted(table.name)} open"):
            return
        index = f"`{key.name}`"
        for _ in range(chance.randrange(1, 6)):
            how = chance.choice(["first", "next", "prev", "last", "next", "="])
            if how == "=":
                how = f"{chance.choice(['=', '>=', '<=', '>', '<'])} ({values_of(chance, column)})"
            # Rows of one key come in any order.
            if key.kind == "key" and " limit" not in how:
                how += " limit 100" if how in ("first", "last") or how[0] in "=<>" else ""
            self.do(f"handler {quoted(table.name)} read {index} {how}")
        self.do(f"handler {quoted(table.name)} close")

    def routine(self) -> None:
        routines.routine(self)

    # A branch of XA takes no DDL.
    IN_BRANCH = {"insert", "update", "delete", "select", "transaction"}
    WEIGHTS: list[tuple[Callable[["Program"], None], int]] = [
        (create, 5), (drop, 1), (truncate, 1), (rename, 1), (alter, 10), (insert, 32), (update, 16),
        (delete, 6), (multi, 3), (select, 22), (transaction, 12), (session, 3), (administer, 3),
        (load, 1), (handler, 1), (routine, 4),
    ]

    def run(self, statements: int) -> None:
        chance = self.chance
        self.do("create table log (n int, what varchar(20), v varchar(200), unique key (n))")
        acts = [act for act, _ in self.WEIGHTS]
        weights = [weight for _, weight in self.WEIGHTS]
        if self.foreign_keys:
            acts.append(Program.foreign)
            weights.append(12)
        self.create()
        while len(self.pair.steps) < statements:
            if not self.tables:
                self.create()
                continue
            # What an action keeps as history and what a statement does have times of their own.
            if self.foreign_keys and chance.random() < 0.3 and any(one.versioned for one in self.tables):
                self.clock += 1
                self.do(f"set timestamp={self.clock}")
            act = chance.choices(acts, weights)[0]
            if not self.branch or act.__name__ in self.IN_BRANCH:
                act(self)
        self.finish()

    def finish(self) -> None:
        """All tables as a whole, looked through by both engines."""
        if self.branch:
            self.end_branch()
        self.do("rollback" if self.chance.random() < 0.3 else "commit")
        self.do("set autocommit=1, sql_mode=''")
        for table in [*self.tables, Table("log", [], [])]:
            name = quoted(table.name)
            # What an action changes twice at one time InnoDB keeps as rows of no time, SHALE does not.
            some = " where row_start < row_end" if self.foreign_keys else ""
            everything = f" for system_time all{some}" if table.versioned else ""
            self.do(f"select * from {name}{everything}")
            self.do(f"check table {name} extended /*meta*/")
            for key in table.keys:
                if key.ordered and not key.tail and not key.overlaps:
                    names = ", ".join(quoted(one) for one in key.columns)
                    self.do(f"select {names} from {name} force index (`{key.name}`)"
                            " /*keyed*/")
            if self.chance.random() < 0.5:
                self.do(f"show create table {name} /*meta*/")


def values_of(chance: random.Random, column: Column) -> str:
    return chance.choice(column.type.values)


def program(pair: Pair, chance: random.Random, statements: int, foreign_keys: bool = False) -> None:
    Program(pair, chance, foreign_keys).run(statements)
