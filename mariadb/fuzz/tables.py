"""Part (b)'s tables: hundreds to thousands of rows, every kind of primary key, keys of all sorts.

Rows are made by expressions over a sequence, so that a script is short and says them all. Each table
has `n`, which numbers the rows, and `one`, which is 1: what a query needs to have one answer.
"""

from __future__ import annotations

import dataclasses
import random
import re


@dataclasses.dataclass
class Column:
    name: str
    type: str
    value: str
    # Values for conditions; low and high of those that are numbers.
    some: list[str]
    kind: str = "number"
    prefix: str = ""


@dataclasses.dataclass
class Big:
    name: str
    columns: dict[str, Column]
    keys: dict[str, list[str]]
    primary: list[str]
    rows: int
    partitioned: bool
    create: list[str]
    primary_kind: str


def mixed(salt: int, count: int) -> str:
    """A number below `count` that looks random, of the row's number."""
    return f"mod(crc32(concat(seq,'{salt}')),{count})"


def numbers(count: int) -> list[str]:
    return [str(n) for n in range(count)]


def columns_of(chance: random.Random, rows: int) -> dict[str, Column]:
    few, some, many = chance.choice([5, 10]), chance.choice([20, 50]), chance.choice([100, 300])
    collation = chance.choice(["utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_bin",
                               "utf8mb4_czech_ci", "utf8mb4_nopad_bin", "utf8mb4_uca1400_ai_ci"])
    text = f" character set {collation.split('_')[0]} collate {collation}"
    words = ["alpha", "Alpha", "beta", "betamax", "chleb", "cz", "gamma", "GAMMA", "delta ", "delta", ""]
    listed = ",".join(f"'{word}'" for word in words)
    word = f"elt(1+{mixed(5, len(words))},{listed})"
    texts = [f"'{one}'" for one in words]
    made = [
        Column("a", "int", f"nullif({mixed(1, few)},{few - 1})", numbers(few)),
        Column("b", "int not null", mixed(2, some), numbers(some)),
        Column("c", chance.choice(["bigint", "smallint unsigned", "int"]),
               f"nullif({mixed(3, many)},0)", numbers(many)),
        Column("d", chance.choice(["date", "datetime(6)", "timestamp(6) null"]),
               f"date_add('2001-01-01',interval {mixed(4, some)} day)",
               [f"'2001-01-{n:02}'" for n in range(1, 29)], "date"),
        Column("s", f"varchar({chance.choice([20, 20, 255])}){text}",
               f"concat({word},if({mixed(6, 3)}=0,{mixed(7, 9)},''))",
               texts + [f"'alpha{n}'" for n in range(4)], "text", "(4)"),
        Column("e", chance.choice(["bit(7)", "bit(12)", "decimal(8,2)", "year", "tinyint",
                                   "enum('0','1','2','3','4','5','6','7')", "double"]),
               f"1+{mixed(8, 7)}", numbers(8), "odd"),
        Column("x", chance.choice(["blob", "text", "varbinary(300)", "blob not null", "text not null"]),
               f"concat(elt(1+{mixed(9, 4)},'p','q','pq',''),{mixed(10, 50)})",
               ["'p1'", "'q2'", "'pq33'", "'7'", "'p'"], "text", "(3)"),
        Column("u", "int", f"if({mixed(11, 9)}=0,null,{rows}*3-seq*2)", numbers(2 * rows)[::37]),
        Column("w", "varchar(600) character set latin1", f"concat('w',seq,repeat('-',{mixed(12, 60)}))",
               ["'w1'", "'w2-'", "'w77---'"], "text", "(6)"),
    ]
    return {one.name: one for one in made}


GENERATED = [
    ("v", "int as (a + 1) virtual", "number"), ("v", "int as (b % 10) stored", "number"),
    ("v", "int as (coalesce(a, c)) virtual", "number"), ("v", "int as (b * 2) virtual", "number"),
]


def primary_of(chance: random.Random) -> tuple[str, str, list[str], str, str]:
    """Kind, declared columns, parts of the key, value, name of the key column for conditions."""
    digits = "lpad(conv(seq*7919%1000003,10,36),5,'0')"
    return chance.choice([
        ("int", "`n` int not null", ["n"], "", "n"),
        ("int", "`n` int not null", ["n"], "", "n"),
        ("int desc", "`n` int not null", ["n desc"], "", "n"),
        ("bigint unsigned", "`k` bigint unsigned not null", ["k"], "18446744073709551615 - seq*3", "k"),
        ("varchar", "`k` varchar(40) not null", ["k"], "concat('a',seq)", "k"),
        ("varchar", "`k` varchar(40) character set latin1 not null", ["k"], "concat('a',seq)", "k"),
        ("varchar desc", "`k` varchar(40) not null", ["k desc"], f"concat({digits},seq)", "k"),
        ("varchar nopad", "`k` varchar(30) collate utf8mb4_nopad_bin not null", ["k"],
         "concat(seq,if(seq%3,'',' '))", "k"),
        ("char", "`k` char(20) not null", ["k"], "concat('Z',seq*13%100003)", "k"),
        ("varbinary", "`k` varbinary(30) not null", ["k"], "concat(char(seq%256),seq)", "k"),
        ("binary", "`k` binary(8) not null", ["k"], "concat(seq,'')", "k"),
        ("varchar, int", "`k` varchar(20) not null", ["k", "n"], "concat('k',seq%50)", "k"),
        ("int, varchar", "`k` varchar(20) not null", ["b", "k", "n"], "concat('k',seq%5)", "k"),
        ("int, int", "`k` int not null", ["k", "n"], "seq%40", "k"),
        ("int, int", "`k` int not null", ["k desc", "n"], "seq%40", "k"),
        ("prefix", "`k` varchar(20) not null", ["k(5)"], f"concat({digits},repeat('x',seq%7))", "k"),
        ("prefix", "`k` text not null", ["k(6)", "n"], f"concat({digits},'y',seq)", "k"),
        ("prefix of blob", "`k` blob not null", ["k(5)"], f"concat({digits},seq)", "k"),
        ("int, prefix", "`k` varchar(30) not null", ["b", "k(3)", "n"], "concat('abcd',seq)", "k"),
        ("datetime", "`k` datetime(6) not null", ["k"],
         "timestampadd(microsecond,seq*1000003,'2001-01-01')", "k"),
        ("decimal", "`k` decimal(12,3) not null", ["k"], "seq*1.001-50", "k"),
        ("uuid", "`k` uuid not null", ["k"],
         "concat(lpad(hex(seq * 40503 % 65536), 8, '0'), '-0000-1000-8000-', lpad(hex(seq), 12, '0'))",
         "k"),
        ("hidden", "`k` int", [], "seq%1000", "k"),
        ("hidden", "`k` varchar(20)", [], "concat('k',seq%100)", "k"),
        ("unique promoted", "`k` varchar(20) not null", ["unique", "k"], "concat('k',seq)", "k"),
        ("unique promoted", "`k` bigint not null", ["unique", "k"], "seq*3", "k"),
    ])


KEYS = [["a"], ["b"], ["c"], ["d"], ["s"], ["e"], ["x"], ["u"], ["w"], ["v"], ["a", "b"], ["b", "a"],
        ["a", "x"], ["b", "s"], ["a", "b", "c"], ["c", "d"], ["s", "b"], ["b", "e"], ["e", "a"],
        ["k"], ["b", "k"], ["v", "b"], ["n"], ["a", "n"], ["d", "s", "a"], ["w", "c"]]


def keys_of(chance: random.Random, columns: dict[str, Column]) -> tuple[dict[str, list[str]], list[str]]:
    keys: dict[str, list[str]] = {}
    declared = []
    # Single columns side by side are what index_merge needs.
    wanted = [["a"], ["b"], ["c"]] if chance.random() < 0.6 else []
    # Partitions compare whole records, also those read from an index alone.
    wanted += [["a", "x"]] if chance.random() < 0.3 else []
    wanted += chance.sample(KEYS, chance.choice([3, 4, 5, 6]))
    for number, names in enumerate(wanted):
        parts = []
        for name in names:
            one = columns.get(name)
            prefix = ""
            if name == "x" and one is not None:
                prefix = "(3)"
            elif one is not None and one.prefix and chance.random() < 0.35:
                prefix = one.prefix
            elif name == "k" and one is not None and one.prefix:
                prefix = one.prefix
            parts.append(f"`{name}`{prefix}" + (" desc" if chance.random() < 0.15 else ""))
        unique = "unique " if names == ["u"] else ""
        keys[f"k{number}"] = names
        declared.append(f"{unique}key `k{number}` ({', '.join(parts)})")
    return keys, declared


def partitions(chance: random.Random, primary: list[str], kind: str, rows: int) -> str:
    names = [part.split("(")[0].split(" ")[0] for part in primary if part != "unique"]
    whole = [name for name in names if name in ("n", "b") or (name == "k" and kind == "int, int")]
    plain = [part for part in primary if "(" not in part and part != "unique"]
    if not primary:
        whole = ["n", "b"]
        plain = ["n", "b"]
    if whole and chance.random() < 0.7:
        name = chance.choice(whole)
        step = rows // 3 if name == "n" else 7
        return chance.choice([
            f" partition by hash (`{name}`) partitions {chance.choice([2, 3, 7])}",
            f" partition by linear hash (`{name}`) partitions 3",
            f" partition by key (`{name}`) partitions 4",
            f" partition by range (`{name}`) (partition p0 values less than ({step}), partition p1"
            f" values less than ({2 * step}), partition p2 values less than maxvalue)",
            f" partition by range (`{name}`) subpartition by key (`{name}`) subpartitions 2"
            f" (partition p0 values less than ({step}), partition p2 values less than maxvalue)",
            f" partition by list (`{name}`) (partition p0 values in (1,2,3,4,5), partition p1"
            " default)",
        ])
    if plain:
        name = chance.choice(plain).split(" ")[0]
        return f" partition by key (`{name}`) partitions {chance.choice([2, 3, 5])}"
    return ""


def make(chance: random.Random, name: str) -> Big:
    rows = chance.choice([600, 600, 700, 800, 1000, 1000, 1200, 1500, 2000, 4000])
    if chance.random() < 0.03:
        rows = chance.choice([8000, 20000])
    columns = columns_of(chance, rows)
    kind, declared, primary, value, _ = primary_of(chance)
    head = ["`one` int not null default 1"]
    inserted = {"n": "seq"}
    if primary != ["n"] and primary != ["n desc"]:
        head.append("`n` int not null")
        text = any(word in declared for word in ("char", "binary", "blob", "text"))
        key = Column("k", declared, value, [re.sub(r"\bseq\b", str(n), value) for n in (7, 99, 500, 41, 1)],
                     "text" if text else "odd", "(6)" if "text" in declared or "blob" in declared else "")
        columns["k"] = key
        inserted["k"] = value
    columns["n"] = Column("n", "int", "seq", numbers(rows)[::19])
    head.append(declared)
    for one in columns.values():
        if one.name not in ("n", "k"):
            head.append(f"`{one.name}` {one.type}")
            inserted[one.name] = one.value
    made_by = chance.choice(GENERATED)
    head.append(f"`v` {made_by[1]}")
    columns["v"] = Column("v", made_by[1], "", numbers(20))
    if "k" not in columns:
        columns["k"] = columns["c"]
    keys, listed = keys_of(chance, columns)
    if primary[:1] == ["unique"]:
        head.append(f"unique key `pk` ({', '.join(primary[1:])})")
        keys["pk"] = primary[1:]
    elif primary:
        head.append(f"primary key ({', '.join(primary)})")
    partitioned = ""
    if chance.random() < 0.3:
        partitioned = partitions(chance, primary, kind, rows)
        if partitioned:
            listed = [one.replace("unique ", "") for one in listed]
    listed = [one.replace("`k`", "`c`") if columns["k"] is columns["c"] else one for one in listed]
    names = ", ".join(f"`{one}`" for one in inserted)
    create = [
        f"create table `{name}` ({', '.join([*head, *listed])}){partitioned}",
        f"insert into `{name}` ({names}) select {', '.join(inserted.values())} from seq_1_to_{rows}",
    ]
    keys = {key: ["c" if n == "k" and columns["k"] is columns["c"] else n for n in parts]
            for key, parts in keys.items()}
    if columns["k"] is columns["c"]:
        del columns["k"]
    if primary and primary[0] != "unique":
        keys["primary"] = [part.split("(")[0].split(" ")[0] for part in primary]
    return Big(name, columns, keys, primary, rows, bool(partitioned), create, kind)
