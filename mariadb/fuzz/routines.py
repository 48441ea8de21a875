"""Triggers, stored functions and procedures, views: what runs statements within statements."""

from __future__ import annotations

from typing import Any

from schema import Table, assignment, condition, quoted

WHEN = ["before insert", "after insert", "before update", "after update", "before delete",
        "after delete"]


def trigger(program: Any) -> None:
    chance = program.chance
    table = program.table()
    if table.temporary:
        return
    when = chance.choice(WHEN)
    kind = chance.randrange(6)
    body = f"insert into log (what, v) values ('{when}', 'x')"
    if kind == 0 and when.startswith("before") and "delete" not in when and table.base:
        column = chance.choice(table.base)
        value = assignment(chance, Table("", [], []), column) if False else chance.choice(
            column.type.values)
        body = f"set new.{quoted(column.name)} = {value}"
    elif kind == 1:
        body = "update log set v = concat(left(v, 50), 'y') where crc32(what) % 3 = 0"
    elif kind == 2:
        body = "begin create temporary table if not exists `ft` (a int); insert into `ft` values (1); " \
               "insert into log (what, v) select 'ft', count(*) from `ft`; drop temporary table `ft`; end"
    elif kind == 3:
        body = "delete from log where crc32(what) % 4 = 0"
    elif kind == 4:
        body = "begin if (select count(*) from log) > 8 then signal sqlstate '45000' set " \
               "message_text = 'too many'; end if; insert into log (what, v) values ('t', 'z'); end"
    program.do(f"create trigger {program.name('g')} {when} on {quoted(table.name)} for each row {body}")


def function(program: Any) -> None:
    chance = program.chance
    name = program.name("f")
    table = program.table()
    source = "log" if table.temporary else quoted(table.name)
    body = chance.choice([
        "begin declare v int; create temporary table if not exists `ft` (a int, key (a)); insert into"
        " `ft` values (x), (x + 1); select sum(a) into v from `ft`; drop temporary table `ft`;"
        " return v; end",
        "begin insert into log (what, v) values ('f', x); return x + 1; end",
        f"begin declare v int; select count(*) into v from {source}; return v; end",
        "begin declare exit handler for sqlexception return -1; insert into log (n, what) values"
        " (1, 'a'), (1, 'b'); return 5; end",
    ])
    if program.do(f"create function {name}(x int) returns int {body}"):
        program.functions.append(name)


def procedure(program: Any) -> None:
    chance = program.chance
    name = program.name("p")
    table = program.table()
    source = "log" if table.temporary else quoted(table.name)
    where = condition(chance, table) if table.columns and source != "log" else "v > 2"
    body = chance.choice([
        f"begin start transaction; delete from {source} where {where}; select count(*) from"
        f" {source}; rollback; end",
        f"begin declare done int default 0; declare c cursor for select 1 from {source}; declare"
        " continue handler for not found set done = 1; open c; repeat fetch c into @v; insert into"
        " log (what, v) values ('c', done); until done end repeat; close c; end",
        "begin create temporary table `pt` (a int primary key, b varchar(10)); insert into `pt` values"
        " (1, 'a'), (2, 'b'); update `pt` set a = a + 1 order by a desc; select * from `pt`; drop"
        " temporary table `pt`; end",
        "begin declare continue handler for 1062 set @d = 1; insert into log (n, what) values (1, 'p');"
        " insert into log (n, what) values (1, 'q'); insert into log (what) values ('r'); end",
        f"begin savepoint s; update {source} set {first_set(program, table, source)}; rollback to"
        " savepoint s; end",
    ])
    if program.do(f"create procedure {name}() {body}"):
        program.procedures.append(name)


def first_set(program: Any, table: Table, source: str) -> str:
    if source == "log" or not table.base:
        return "v = 'u'"
    return f"{quoted(table.base[-1].name)} = {program.chance.choice(table.base[-1].type.values)}"


def call(program: Any) -> None:
    chance = program.chance
    if program.procedures and chance.random() < 0.5:
        program.do(f"call {chance.choice(program.procedures)}() /*loose*/")
        # What is within it may have ended the transaction.
        return
    if not program.functions:
        return
    name = chance.choice(program.functions)
    kind = chance.randrange(3)
    if kind == 0:
        program.do(f"select {name}({chance.randrange(9)})")
    elif kind == 1:
        program.do(f"insert into log (what, v) values ('fn', {name}({chance.randrange(9)}))")
    else:
        program.do(f"do {name}(3), {name}(4)")


def view(program: Any) -> None:
    table = program.table()
    if table.temporary or not table.columns:
        return
    name = program.name("v")
    if program.do(f"create view {name} as select * from {quoted(table.name)} where"
                  f" {condition(program.chance, table)}"):
        program.do(f"select * from {name}")
        program.do(f"drop view {name}")


def routine(program: Any) -> None:
    kind = program.chance.random()
    if kind < 0.25:
        trigger(program)
    elif kind < 0.4 and len(program.functions) < 4:
        function(program)
    elif kind < 0.55 and len(program.procedures) < 4:
        procedure(program)
    elif kind < 0.63:
        view(program)
    else:
        call(program)
