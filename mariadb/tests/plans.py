"""Plans that merge scans answer as InnoDB: index_merge, ordered reads of partitions, filters of row
references, reads of an index alone, over every kind of primary key.

    plans.py [--seed N] [--statements 40]

Each table is in both engines with the same rows, and each statement runs in both: queries, whose
rows are compared; UPDATE and DELETE through the same plans, whose counts are compared, and now and
then the whole table. Half of the statements have a plan forced on them. At the end: CHECK TABLE.
The server's memory is filled with a pattern when it is given out and taken back, so that what was
never written is not zero by chance.
"""

from __future__ import annotations

import argparse
import random
import sys
from typing import Any

import pymysql
import server as servers

ROWS = 2400
ENGINES = ["innodb", "shale"]

# The columns and the definition of the primary key; partitions, by a column of that key.
KEYS = {
    "int": ("k int", "primary key (k)", ""),
    "int_desc": ("k bigint unsigned", "primary key (k desc)", ""),
    "varchar": ("k varchar(40)", "primary key (k)", ""),
    "varchar_ci": ("k varchar(40) character set utf8mb4", "primary key (k)", ""),
    "varchar_desc": ("k varchar(40)", "primary key (k desc)", ""),
    "char": ("k char(30) collate latin1_bin", "primary key (k)", ""),
    "varbinary": ("k varbinary(40)", "primary key (k)", ""),
    "text_int": ("k varchar(40), m int", "primary key (k, m)", ""),
    "int_text": ("k int, m varchar(40)", "primary key (k, m desc)", ""),
    "prefix": ("k varchar(40) character set utf8mb4", "primary key (k(12))", ""),
    "prefix_int": ("k varchar(40), m int", "primary key (k(3), m)", ""),
    "blob": ("k blob", "primary key (k(12))", ""),
    "decimal": ("k decimal(20,3)", "primary key (k)", ""),
    "hidden": ("k varchar(40)", "key (k)", ""),
    "unique": ("k varchar(40) not null, m int", "unique (m, k), unique (k, m)", ""),
    "parts": ("k int", "primary key (k)", "by hash (k) partitions 3"),
    "parts_text": ("k varchar(40)", "primary key (k)", "by key (k) partitions 4"),
    "parts_range": ("k varchar(40), m int", "primary key (m, k)",
                    "by range (m) (partition a values less than (1000),"
                    " partition b values less than (2000), partition c values less than maxvalue)"),
    "parts_hidden": ("k varchar(40), m int not null", "key (k)", "by hash (m) partitions 3"),
}
OTHERS = """a int, b int, c varchar(20), t text not null, v int default 0, pad varchar(200),
    w int as (a * 2 + 1) virtual, key w (w), key bw (b, w),
    key a (a), key b (b), key c (c), key ab (a, b), key at (a, t(3)), key bd (b desc),
    key c2 (c(2), a)"""
# InnoDB is always asked with mrr=off: its own reads in the order of row references end with 1032 on
# partitioned tables.
SWITCHES = [
    "default",
    "'index_merge_intersection=on,index_merge_sort_intersection=on,rowid_filter=off'",
    "'index_merge_sort_union=on,index_merge_union=off,mrr=on'",
    "'index_merge=off,rowid_filter=on'",
    "'index_condition_pushdown=off,index_merge_sort_intersection=on'",
]
PLANS = {"index_merge": "index_merge", "filter": "rowid filter", "index only": "Using index",
         "union": "Using union", "intersect": "Using intersect"}


def text_of(chance: random.Random, number: int) -> str:
    """Of any length, none the beginning of another, the same if only twelve characters count."""
    return "".join(chance.choices("abBcxyz", k=chance.randrange(1, 6))) + f"{number}".zfill(4)


def is_numeric(columns: str) -> bool:
    return columns.startswith(("k int", "k bigint", "k decimal"))


def rows_of(chance: random.Random, columns: str) -> list[tuple[Any, ...]]:
    numeric = is_numeric(columns)
    rows = []
    for number in range(ROWS):
        text = text_of(chance, number)
        key: list[Any] = [number * 3 if numeric else text]
        if " m " in columns:
            key.append(text if numeric else number)
        rows.append((
            *key, None if chance.random() < 0.05 else chance.randrange(25), chance.randrange(20),
            chance.choice(["red", "green", "blue", "Blue", "grey ", None, "r"]),
            chance.choice("pqrs") * chance.randrange(1, 30) + str(number % 7), 0,
            "p" * chance.randrange(200),
        ))
    return rows


def condition(chance: random.Random) -> str:
    def one() -> str:
        return chance.choice([
            f"a = {chance.randrange(25)}", f"b = {chance.randrange(20)}", "a is null",
            f"c = '{chance.choice(['red', 'blue', 'r', 'GREEN'])}'",
            f"a between {chance.randrange(25)} and {chance.randrange(10, 25)}",
            f"b > {chance.randrange(15, 20)}", f"b in (1, {chance.randrange(20)})",
            f"w = {chance.randrange(50)}", f"w between 9 and {chance.randrange(9, 50)}",
        ])

    kind = chance.randrange(5)
    if kind == 0:
        return f"a = {chance.randrange(25)} and b = {chance.randrange(20)}"
    if kind == 1:
        return f"(a = {chance.randrange(25)} or b = {chance.randrange(20)}) and v < 1000"
    if kind == 2:
        return f"{one()} or {one()}"
    if kind == 3:
        return f"({one()}) and ({one()})"
    return f"({one()} or {one()}) and ({one()} or {one()})"


def hint(chance: random.Random) -> str:
    return chance.choice([
        "", "", "", "force index (a, b)", "force index (a, b, c)", "force index (b, bd, c)",
        "force index (ab)", "use index (a, b, c)", "ignore index (ab, at, c2)",
        "force index (w, c)", "force index (bw, w)",
    ])


def statement(chance: random.Random, key: str) -> tuple[str, bool]:
    """A statement, and whether it has rows in an order."""
    where = condition(chance)
    kind = chance.choices(range(9), [5, 3, 2, 2, 2, 3, 2, 1, 1])[0]
    if kind == 0:
        return f"select {key}, a, b, v, w, pad from t {hint(chance)} where {where}", False
    if kind == 1:
        return f"select count(pad), sum(v) from t {hint(chance)} where {where}", True
    if kind == 2:
        index = chance.choice(["at", "ab", "a", "c2", "w"])
        order = "c" if index == "c2" else chance.choice(["", " desc"])
        if index != "c2":
            order = ("w" if index == "w" else "a") + order
        limit = chance.choice(["", "limit 7", "limit 300"])
        # The rows of one value may come in any order: only the value is asked for.
        shown = "lower(trim(c))" if index == "c2" else order.split()[0]
        if index == "w" and chance.random() < 0.5:
            shown = "w, a"
        return f"select {shown} from t force index ({index}) order by {order} {limit}", True
    if kind == 3:
        return (f"select a, count(*), min(b), max(b) from t force index (ab) where a <"
                f" {chance.randrange(25)} group by a order by a"), True
    if kind == 4:
        return (f"select x.b, count(t.pad), sum(t.v) from t {hint(chance)} join (select distinct b"
                f" from t where b < 4) x on t.b = x.b where t.a < {chance.randrange(3, 25)}"
                f" and t.c > 'c' group by x.b order by x.b"), True
    if kind == 5:
        change = chance.choice(["v = v + 1", "v = v + 1, a = a + 1", "b = b + 1, v = v + 1",
                                "c = 'white', t = concat('w', t)"])
        return f"update t {hint(chance)} set {change} where {where}", False
    if kind == 6:
        return f"delete from t where ({where}) and v > {chance.randrange(2)}", False
    if kind == 7:
        return f"update t {hint(chance)} set k = concat('n', k), v = v + 1 where {where}", False
    return f"select {key} from t where {where} order by {key} limit 40 for update", True


def answer(cursor: Any, text: str) -> tuple[Any, ...]:
    try:
        count = cursor.execute(text)
        return ("rows", count, list(cursor.fetchall()))
    except pymysql.err.Error as error:
        return ("error", error.args[0], [])


def compare(cursors: dict[str, Any], text: str, ordered: bool) -> bool:
    """Whether the statement was done; both engines have done the same."""
    # InnoDB's rows of partitions come in a wrong order by the index of a virtual column: it sorts.
    sorts = text.replace("force index (w) order", "ignore index (w, bw) order")
    found = {"shale": answer(cursors["shale"], text), "innodb": answer(cursors["innodb"], sorts)}
    ours, theirs = found["shale"], found["innodb"]
    same = ours[:2] == theirs[:2]
    here, there = ours[2], theirs[2]
    if not ordered:
        here, there = sorted(here, key=repr), sorted(there, key=repr)
    if not same or here != there:
        raise SystemExit(
            f"{text}\nSHALE: {ours[0]} {ours[1]}, InnoDB: {theirs[0]} {theirs[1]};"
            f" only here: {[row for row in here if row not in there][:3]};"
            f" only there: {[row for row in there if row not in here][:3]}")
    return ours[0] == "rows"


def make(server: servers.Server, chance: random.Random, name: str) -> None:
    columns, key, partition = KEYS[name]
    rows = rows_of(chance, columns)
    names = ("k, m" if " m " in columns else "k") + ", a, b, c, t, v, pad"
    places = ",".join(["%s"] * len(rows[0]))
    for engine in ENGINES:
        connection = server.connect(engine)
        with connection.cursor() as cursor:
            cursor.execute("drop table if exists t")
            cursor.execute(f"create table t ({columns}, {OTHERS}, {key}) engine={engine}"
                           f" {'partition ' + partition if partition else ''}")
            cursor.executemany(f"insert into t ({names}) values ({places})", rows)
            cursor.execute("analyze table t")
        connection.close()


def look_at_plan(cursor: Any, text: str, seen: dict[str, int]) -> None:
    kind, _, rows = answer(cursor, f"explain {text}")
    words = " ".join(repr(row) for row in rows) if kind == "rows" else ""
    for name, word in PLANS.items():
        seen[name] += word in words


def run_table(server: servers.Server, chance: random.Random, name: str, statements: int,
              seen: dict[str, int]) -> int:
    make(server, chance, name)
    columns = KEYS[name][0]
    cursors = {engine: server.connect(engine).cursor() for engine in ENGINES}
    done = 0
    for number in range(statements):
        if number % 8 == 0:
            switch = chance.choice(SWITCHES)
            then = chance.choice(["begin", "commit", "analyze table t"])
            for text in ("commit", f"set optimizer_switch={switch}", "flush tables", then):
                for cursor in cursors.values():
                    answer(cursor, text)
            answer(cursors["innodb"], "set optimizer_switch='mrr=off'")
        text, ordered = statement(chance, "k, m" if " m " in columns else "k")
        if is_numeric(columns):
            text = text.replace("concat('n', k)", "k + 100000")
        look_at_plan(cursors["shale"], text, seen)
        try:
            done += compare(cursors, text, ordered)
            if not text.startswith("select"):
                compare(cursors, "select * from t", False)
        except SystemExit as difference:
            switch = answer(cursors["shale"], "select @@optimizer_switch")[2][0][0]
            plan = answer(cursors["shale"], f"explain {text}")[2]
            raise SystemExit(
                f"table {name}: {KEYS[name]}: {difference}\n{plan}\n{switch}") from None
    for engine, cursor in cursors.items():
        answer(cursor, "commit")
        checked = answer(cursor, "check table t extended")[2]
        assert [row[3] for row in checked] == ["OK"], (name, engine, checked)
        cursor.connection.close()
    return done


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--statements", type=int, default=40, help="for each kind of primary key")
    parser.add_argument("--table", choices=list(KEYS), action="append")
    given = parser.parse_args()
    layout = servers.Layout()
    layout.environment["MALLOC_PERTURB_"] = "165"
    server = servers.Server(layout, "one", ["character-set-server=latin1"])
    server.start()
    seen = dict.fromkeys(PLANS, 0)
    done = 0
    try:
        for engine in ENGINES:
            server.run(f"create database {engine}")
        for name in given.table or KEYS:
            # Of each table the same statements, also if it is the only one.
            chance = random.Random(f"{given.seed} {name}")
            done += run_table(server, chance, name, given.statements, seen)
        server.stop()
    except BaseException:
        servers.say(f"plans: --seed {given.seed}; the data is in {layout.folder}")
        server.kill()
        raise
    told = ", ".join(f"{count} {name}" for name, count in seen.items())
    assert given.table or all(seen.values()), f"a plan was never chosen: {told}"
    servers.say(f"plans: {done} statements as InnoDB's; of their plans: {told}")
    layout.remove()


if __name__ == "__main__":
    sys.exit(main())
