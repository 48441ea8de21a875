"""Part (f): part (a)'s programs with FULLTEXT and SPATIAL indexes, and with rows that have versions.

InnoDB's MATCH does not find what its own transaction has written. So both engines are asked after a
commit; within a transaction SHALE alone is, and held against a read of its whole table. So it is for
words of rows of the past, which InnoDB's indexes do not have. Ranks are compared of tables whose rows
are as they were inserted: InnoDB's count rows that are gone.
"""

from __future__ import annotations

import random
import re
from typing import Any, Callable

import alter
import schema
import searched
import values
from pair import Pair
from schema import Column, Key, Table, assignment, condition, quoted
from searched import match
from statements import Program
from wire import Result

# What changes no rows and leaves no transaction open.
READS = re.compile(r"(select|show|explain|check|analyze|set (?!autocommit))", re.IGNORECASE)


class Features(Program):
    def __init__(self, pair: Pair, chance: random.Random) -> None:
        super().__init__(pair, chance)
        # Whether all that was written is committed.
        self.committed = False

    def answer(self, sql: str) -> list[Result]:
        if sql in ("commit", "rollback"):
            self.committed = True
        elif not READS.match(sql):
            self.committed = False
        return super().answer(sql)

    def new_table(self, temporary: bool) -> Table:
        chance = self.chance
        table = super().new_table(temporary)
        if temporary:
            return table
        if chance.random() < 0.6:
            # Few other columns and keys: else each row has a duplicate, or a value that does not fit.
            table.columns, table.keys, table.partition, table.versioned = [], [], "", False
            table.columns = [Column(table.new_name(), values.whole("int", -9, 2**31 - 1, False), null=False)]
            if chance.random() < 0.8:
                schema.primary_key(chance, table)
            if chance.random() < 0.3:
                schema.partition(chance, table)
        searched.enrich(chance, table)
        return table

    def commit(self) -> bool:
        """Whether InnoDB finds now what was written; not in a branch of XA."""
        if self.branch:
            return False
        if not self.committed:
            self.do("commit")
            self.begun, self.savepoints = False, []
        return True

    def with_words(self) -> Table | None:
        able = [one for one in self.tables if searched.has_words(one) and not one.temporary]
        return self.chance.choice(able) if able else None

    # Words.

    def past(self, table: Table) -> str:
        chance = self.chance
        if not table.versioned or chance.random() < 0.4:
            return ""
        moment = f"from_unixtime({self.clock - chance.choice([0, 1, 5, 1000])})"
        kinds = ["all", "all", f"as of {moment}", f"as of {moment}", f"between '2000-01-01' and {moment}",
                 f"from {moment} to from_unixtime({self.clock + 1})"]
        return f" for system_time {chance.choice(kinds)}"

    def match(self) -> None:
        chance, table = self.chance, self.with_words()
        if table is None or searched.tells_apart(table) or not self.commit():
            self.own_match()
            return
        for _ in range(chance.choice([1, 2, 4])):
            self.do(self.match_query(table, quoted(table.name)))
            if chance.random() < 0.3:
                self.plain_match(table, "/*only*/ ")

    def match_query(self, table: Table, name: str) -> str:
        chance = self.chance
        one = match(chance, table)
        kind = chance.randrange(17)
        more = chance.choice(["", "", f" and {condition(chance, table)}"])
        column = quoted(chance.choice(table.columns).name)
        if kind < 5:
            lock = chance.choice(["", "", "", " for update", " lock in share mode"])
            return f"select * from {name} where {one}{more}{lock}"
        if kind == 6:
            return f"select * from {name} where {one} or {condition(chance, table)}"
        if kind == 7:
            return f"select * from {name} where not {one}{more}"
        # Two searches of a partitioned table end the server in InnoDB.
        if kind == 8 and not table.partition:
            word = chance.choice(["and", "or", "and not"])
            return f"select * from {name} where {one} {word} {match(chance, table)}"
        if kind == 10:
            return f"select count(*), count(distinct {column}) from {name} where {one}{more}"
        if kind == 11:
            return f"select count(*) from (select {column} from {name} where {one}{more} limit 2) x"
        if kind == 12:
            return (f"select {column} from {name} where {one} union all select {column} from {name}"
                    f" where {condition(chance, table)}")
        if kind == 13:
            order = table.total_order()
            limit = chance.choice(["", " limit 2", " limit 1, 3"])
            if order:
                return f"select /*ordered*/ * from {name} where {one}{more} order by {order}{limit}"
            return f"select * from {name} where {one}"
        return self.match_joined(table, name, one)

    def match_joined(self, table: Table, name: str, one: str) -> str:
        chance, other = self.chance, self.table()
        pairs = [(a, b) for a in table.columns for b in other.columns
                 if a.type.family == b.type.family == "whole"]
        if not pairs:
            return f"select count(*) from {name} where {one}"
        a, b = (quoted(column.name) for column in chance.choice(pairs))
        of_x = match(chance, table, "x.")
        kind = chance.randrange(5)
        if kind == 0:
            return f"select * from {quoted(other.name)} where {b} in (select {a} from {name} where {one})"
        if kind == 1:
            return (f"select * from {quoted(other.name)} y where exists (select 1 from {name} x where"
                    f" x.{a} = y.{b} and {of_x})")
        if kind == 2 and searched.has_words(other) and not (table.partition or searched.tells_apart(other)):
            return (f"select * from {name} x join {quoted(other.name)} y on x.{a} = y.{b} where"
                    f" {of_x} and {match(chance, other, 'y.')}")
        join = chance.choice(["join", "left join", "right join", "straight_join"])
        where = chance.choice([f"where {of_x}", f"where {of_x}", f"and {of_x}"])
        return f"select * from {name} x {join} {quoted(other.name)} y on x.{a} = y.{b} {where}"

    def plain_match(self, table: Table, only: str) -> None:
        """By the index and by a read of the table, of SHALE alone or of both."""
        names = searched.word_columns(self.chance, table)
        one, scan = searched.plain_match(self.chance, table, names)
        name = quoted(table.name) + self.past(table)
        if self.answer(f"select {only}* from {name} where {one}")[-1].kind != "error":
            self.do(f"select /*only*/ /*same*/ * from {name} where {scan}")

    def own_match(self) -> None:
        table = self.with_words()
        if table is not None:
            self.plain_match(table, "/*only*/ ")

    def match_change(self) -> None:
        """Changes of what words find."""
        chance, table = self.chance, self.with_words()
        if table is None or searched.tells_apart(table) or not self.commit():
            return
        one, name = match(chance, table), quoted(table.name)
        if chance.random() < 0.4:
            one += f" and {condition(chance, table)}"
        order = table.total_order()
        kind = chance.random()
        if kind < 0.3:
            tail = f" order by {order} limit 2" if order and chance.random() < 0.4 else ""
            self.do(f"delete from {name} where {one}{tail}")
            return
        free = [column for column in table.base if column.name not in table.unique_columns()
                and column.name not in table.partition and not column.numbers]
        if kind < 0.8 and free:
            chosen = chance.sample(free, min(len(free), chance.choice([1, 1, 2])))
            sets = ", ".join(f"{quoted(column.name)} = {assignment(chance, table, column)}"
                             for column in chosen)
            tail = f" order by {order}" if order and chance.random() < 0.4 else ""
            self.do(f"update {name} set {sets} where {one}{tail}")
            return
        other = self.table()
        pairs = [(a, b) for a in other.base for b in table.base if a.type.family == b.type.family]
        if pairs and order and not other.period:
            a, b = chance.choice(pairs)
            self.do(f"{chance.choice(['insert', 'insert ignore', 'replace'])} into {quoted(other.name)}"
                    f" ({quoted(a.name)}) select {quoted(b.name)} from {name} where {one} order by {order}")

    def ranks(self) -> None:
        """Ranks of a table whose rows are as they were inserted."""
        chance = self.chance
        if self.branch or len(self.tables) > 5:
            return
        collation = chance.choice([one for one in searched.COLLATIONS if not one.endswith(("_bin", "_cs"))])
        table = Table(self.name("t"), [Column("id", values.whole("int", 0, 9999, False), False)], [])
        for _ in range(chance.choice([1, 2, 2])):
            table.columns.append(searched.words_column(chance, table, collation))
        key = chance.choice(["primary key (id)", "primary key (id desc)", "key (id)", "unique key (id)"])
        table.keys = [Key("PRIMARY" if "primary" in key else "id", key.split(" (")[0], [("id", 0, "desc" in key)])]
        for _ in range(chance.choice([1, 2])):
            table.keys.append(searched.words_key(chance, table) or table.keys[0])
        later = chance.random() < 0.3 and table.keys.pop()
        if not self.do(table.declared()):
            return
        self.tables.append(table)
        serial = 0
        for _ in range(chance.choice([1, 2, 5])):
            rows = []
            for _ in range(chance.choice([1, 3, 10])):
                serial += 1
                texts = [values.literal(chance, one.type, one.null) for one in table.columns[1:]]
                rows.append(f"({serial}, {', '.join(texts)})")
            self.do(f"insert into {quoted(table.name)} values {', '.join(rows)}")
        if later and self.do(f"alter table {quoted(table.name)} add {later.declared()}"):
            table.keys.append(later)
        self.commit()
        if searched.has_words(table):
            for _ in range(6):
                self.do(self.rank_query(table))

    def rank_query(self, table: Table) -> str:
        chance, name = self.chance, quoted(table.name)
        one = match(chance, table, ranks=True)
        # What InnoDB has in its cache it looks up by beginnings otherwise than what is in its trees.
        while "*" in one:
            one = match(chance, table, ranks=True)
        rank = f"round({one}, 4)"
        kind = chance.randrange(9)
        if kind < 2:
            return f"select id, {rank} from {name}"
        if kind == 5:
            return f"select {one} > 0 m, count(*) from {name} group by m order by m"
        if kind == 6:
            return f"select *, {one} > 0 from {name} having {one} > 0.5"
        if kind == 7:
            return f"select id from {name} where {one} > {chance.choice(['0', '0.3', '1'])}"
        if kind < 4:
            return f"select id, {rank} from {name} where {one}"
        if kind == 4:
            limit = chance.choice(["", " limit 1", " limit 3", " limit 1, 2"])
            return f"select /*ordered*/ {rank} from {name} where {one} order by {one} desc{limit}"
        return f"select round(sum({one}), 3), round(max({one}), 4) from {name} where {one}"

    def numbered(self) -> None:
        """The user names FTS_DOC_ID: numbers that grow, as InnoDB wants them."""
        chance = self.chance
        if self.branch or not self.commit():
            return
        table = Table(self.name("d"), [], [])
        table.columns = [Column("c", searched.words_type(chance, chance.choice(searched.COLLATIONS[:4])))]
        table.keys = [Key("k", "fulltext key", [("c", 0, False)])]
        name = quoted(table.name)
        key = chance.choice(["primary key (FTS_DOC_ID)", "unique key FTS_DOC_ID_INDEX (FTS_DOC_ID)",
                             "primary key (id), unique key FTS_DOC_ID_INDEX (FTS_DOC_ID)"])
        if not self.do(f"create table {name} (FTS_DOC_ID bigint unsigned not null, id int not null,"
                       f" {table.columns[0].declared()}, {table.keys[0].declared()}, {key})"):
            return
        serial = 0
        for _ in range(chance.choice([3, 6, 12])):
            serial += chance.choice([1, 1, 2, 50])
            text = values.literal(chance, table.columns[0].type, True)
            kind = chance.randrange(7)
            if kind < 3 or serial < 4:
                self.do(f"insert into {name} values ({serial}, {serial}, {text})")
            elif kind == 3:
                self.do(f"update {name} set FTS_DOC_ID = {serial}, c = {text} where id ="
                        f" {chance.randrange(serial)}")
            elif kind == 4:
                self.do(f"delete from {name} where id = {chance.randrange(serial)}")
            elif kind == 5:
                self.do(chance.choice(["begin", "rollback", "commit"]))
            self.commit()
            self.do(f"select * from {name} where {match(chance, table)}")
        self.do(f"check table {name} extended /*meta*/")
        self.do(f"select * from {name}")
        self.do(f"drop table {name}")

    # Shapes.

    def meet(self) -> None:
        chance = self.chance
        able = [one for one in self.tables if searched.has_shapes(one) and not one.temporary]
        if not able:
            return
        table = chance.choice(able)
        keys = [key for key in table.keys if key.kind == "spatial key"]
        column = next((one for key in keys for one in table.columns if one.name in key.columns), None)
        column = column or next(one for one in table.columns if one.type.family == "shape")
        for _ in range(chance.choice([1, 2, 3])):
            where = schema.condition(chance, Table("", [column], []), 1)
            if chance.random() < 0.1:
                shape = values.literal(chance, column.type, False, 0.0)
                where = f"{chance.choice(['mbr', 'st_'])}disjoint({quoted(column.name)}, {shape})"
            if chance.random() < 0.3:
                where += f" and {condition(chance, table)}"
            name = quoted(table.name) + self.past(table)
            hints = ["", "", f" force index ({quoted(chance.choice(keys).name)})" if keys else ""]
            what = chance.choice(["*", "*", "*", "count(*)", f"st_astext({quoted(column.name)})"])
            # What InnoDB does not find by its index a read of its table may find (`Pair.equal_by_table`).
            hint = f"{chance.choice(hints)} /*{','.join(key.name for key in keys)}*/"
            if self.answer(f"select {what} from {name}{hint} where {where}")[-1].kind == "error":
                continue
            if keys and chance.random() < 0.6:
                listed = ", ".join(quoted(key.name) for key in keys)
                self.do(f"select /*only*/ /*same*/ {what} from {name} ignore index ({listed}) where {where}")
        if chance.random() < 0.3:
            self.meet_joined(table, column)

    def meet_joined(self, table: Table, column: Column) -> None:
        other = self.table()
        able = [one for one in other.columns if one.type.family == "shape"]
        if able:
            two = quoted(self.chance.choice(able).name)
            relation = self.chance.choice(["mbrintersects", "mbrwithin", "st_intersects", "mbrequal", "st_contains"])
            self.do(f"select count(*) from {quoted(table.name)} x join {quoted(other.name)} y on"
                    f" {relation}(x.{quoted(column.name)}, y.{two})")

    # Versions.

    def history(self) -> None:
        chance = self.chance
        able = [one for one in self.tables if one.versioned]
        if not able:
            return
        table = chance.choice(able)
        name = quoted(table.name)
        kind = chance.randrange(8)
        if kind < 4:
            # Each change at a time of its own.
            self.clock += chance.choice([1, 1, 1, 5000])
            self.do(f"set timestamp={self.clock}")
            chance.choice([Program.insert, Program.update, Program.delete])(self)
        elif kind < 6:
            past = self.past(table) or " for system_time all"
            self.do(f"select {chance.choice(['*', 'count(*)'])} from {name}{past} where {condition(chance, table)}")
        elif kind == 6:
            past = self.past(table) or " for system_time all"
            what = "row_start, row_end"
            self.do(f"select *, {what} from {name}{past}")
        else:
            before = f" before system_time from_unixtime({self.clock - chance.choice([0, 1, 1000])})"
            self.do(f"delete history from {name}{chance.choice(['', before])}")

    def changes(self) -> list[Any]:
        return CHANGES

    IN_BRANCH = Program.IN_BRANCH | {"own_match", "match", "meet"}
    WEIGHTS: list[tuple[Callable[[Any], None], int]] = [
        *[(act, {"create": 7, "insert": 26, "routine": 2}.get(act.__name__, weight))
          for act, weight in Program.WEIGHTS],
        (match, 22), (own_match, 4), (match_change, 7), (ranks, 3), (numbered, 1), (meet, 14), (history, 12),
    ]


def add_words(program: Any, table: Table) -> alter.Change | None:
    if table.temporary:
        return None
    column = searched.words_column(program.chance, table, program.chance.choice(searched.COLLATIONS))
    return f"add column {column.declared()}", lambda: table.columns.append(column)


def add_shape(program: Any, table: Table) -> alter.Change | None:
    if table.temporary:
        return None
    column = searched.shape_column(program.chance, table)
    if program.chance.random() < 0.7:
        column.null = True
    return f"add column {column.declared()}", lambda: table.columns.append(column)


def add_key(program: Any, table: Table) -> alter.Change | None:
    make = program.chance.choice([searched.words_key, searched.words_key, searched.shape_key])
    key = make(program.chance, table)
    # InnoDB has no FULLTEXT in temporary tables.
    if key is None or len(table.keys) > 6 or table.temporary:
        return None
    return f"add {key.declared()}", lambda: table.keys.append(key)


def drop_key(program: Any, table: Table) -> alter.Change | None:
    able = [key for key in table.keys if not key.ordered]
    if not able:
        return None
    key = program.chance.choice(able)
    return f"drop index {quoted(key.name)}", lambda: table.keys.remove(key)


def unversioned(program: Any, table: Table) -> alter.Change | None:
    """A column gets versions, or does without."""
    able = [one for one in table.base if not one.numbers]
    if not table.versioned or not able:
        return None
    column = program.chance.choice(able)
    tail = "" if column.tail else " without system versioning"

    def done() -> None:
        column.tail = tail

    fresh = Column(column.name, column.type, column.null, column.default, tail=tail)
    return f"modify column {fresh.declared()}", done


CHANGES = [*alter.CHANGES, (alter.versioning, 5), (add_words, 4), (add_shape, 2), (add_key, 14),
                    (drop_key, 6), (unversioned, 2)]


def program(pair: Pair, chance: random.Random, length: int) -> None:
    Features(pair, chance).run(length)
