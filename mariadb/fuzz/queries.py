"""Part (b): queries, UPDATE and DELETE on large tables, through every way of reading them.

A query runs on both engines; a part of them runs on SHALE once more without any index. EXPLAIN tells
which way it was read.
"""

from __future__ import annotations

import random
from typing import Any

import ways
import tables
import wire
from pair import Found, Pair, Step, compare
from tables import Big

SWITCHES = [
    "index_merge=on", "index_merge_union=on", "index_merge_sort_union=on", "index_merge_intersection=on",
    "index_merge_sort_intersection=on", "index_condition_pushdown=on", "mrr=on,mrr_cost_based=off",
    "mrr_sort_keys=on", "semijoin=on", "firstmatch=on", "loosescan=on", "materialization=on",
    "join_cache_bka=on", "join_cache_hashed=on", "optimize_join_buffer_size=on", "rowid_filter=on",
    "derived_with_keys=on", "derived_merge=on", "extended_keys=on", "subquery_cache=on",
    "in_to_exists=on", "split_materialized=on", "condition_pushdown_for_derived=on",
]
# Off: what hides another way of reading.
OFF = ["mrr=off", "semijoin=off", "firstmatch=off", "firstmatch=off,materialization=off",
       "loosescan=off,materialization=off,firstmatch=off", "firstmatch=off,loosescan=off",
       "materialization=off", "index_merge=off", "index_condition_pushdown=off", "derived_merge=off",
       "index_merge_intersection=off", "rowid_filter=off", "extended_keys=off", "mrr=off"]
VARIABLES = [
    "join_cache_level=8", "join_cache_level=6", "join_cache_level=4", "join_cache_level=0",
    "join_cache_level=2", "max_seeks_for_key=1", "optimizer_use_condition_selectivity=1",
    "optimizer_use_condition_selectivity=4", "mrr_buffer_size=8192", "join_buffer_size=4096",
    "sort_buffer_size=65536", "eq_range_index_dive_limit=2", "tmp_memory_table_size=0",
    "use_stat_tables=never", "use_stat_tables=preferably", "in_predicate_conversion_threshold=5",
    "optimizer_search_depth=1", "max_length_for_sort_data=8", "max_seeks_for_key=4294967295",
    "max_rowid_filter_size=1048576", "optimizer_switch=default",
]


class Queries:
    def __init__(self, pair: Pair, chance: random.Random) -> None:
        self.pair, self.chance = pair, chance
        self.big: list[Big] = []
        self.changed = 0

    def do(self, sql: str) -> list[wire.Result]:
        return self.pair.do(sql)

    def make(self) -> None:
        for number in range(self.chance.choice([1, 1, 2])):
            big = tables.make(self.chance, f"t{number}")
            for statement in big.create:
                answer = self.do(statement)[-1]
                if answer.kind == "error":
                    raise SystemExit(f"fuzz: {statement[:3000]}: {answer.text.decode()}")
            if self.chance.random() < 0.5:
                self.do(f"update `{big.name}` set c = c + 1, s = concat(s, 'u') where n % 13 = 0")
                self.do(f"delete from `{big.name}` where n % 17 = 0")
            if self.chance.random() < 0.3:
                self.pair.do("set global shale_wait_idle=1 /*only*/")
            self.do(f"analyze table `{big.name}`{self.chance.choice(['', '', ' persistent for all'])}"
                    " /*meta*/")
            self.big.append(big)
            self.pair.counts[f"primary key: {big.primary_kind}"] += 1
        self.do("create table small (i int primary key, j int, k int, s varchar(20), b bit(7), key (j))")
        self.do("insert into small select seq, seq % 20, nullif(seq % 7, 3), elt(1 + seq % 5, 'alpha',"
                " 'beta', 'gamma', 'zeta', 'delta'), seq % 100 from seq_1_to_100")

    def switch(self) -> None:
        chance = self.chance
        words = chance.sample(SWITCHES, chance.randrange(4, 12))
        if chance.random() < 0.5:
            words += chance.choice(OFF).split(",")
        # A flag may be named once; the last one counts.
        flags = dict(word.split("=") for word in ",".join(words).split(","))
        self.do("set optimizer_switch='" + ",".join("=".join(one) for one in flags.items()) + "'")
        for variable in chance.sample(VARIABLES, chance.choice([0, 1, 2])):
            self.do(f"set {variable}")

    # Conditions: of columns with keys mostly.

    def column(self, big: Big) -> str:
        if self.chance.random() < 0.9:
            return self.chance.choice(self.chance.choice(list(big.keys.values())))
        return self.chance.choice(list(big.columns))

    def term(self, big: Big, name: str, prefix: str = "") -> str:
        chance = self.chance
        column = big.columns[name]
        field = f"{prefix}`{name}`"
        kind = chance.randrange(12)
        one, two = chance.choice(column.some), chance.choice(column.some)
        if kind < 5:
            return f"{field} = {one}"
        if kind < 7:
            if column.kind == "number" and int(two) < int(one):
                one, two = two, one
            return f"{field} between {one} and {two}"
        if kind == 7:
            return f"{field} in ({', '.join(chance.choice(column.some) for _ in range(chance.choice([2, 3, 9, 30])))})"
        if kind == 8:
            return f"{field} {chance.choice(['<', '>', '<=', '>='])} {one}"
        if kind == 9:
            return f"({field} = {one} or {field} is null)"
        if kind == 10 and column.kind == "text":
            return f"{field} like {chance.choice(['%a', 'al%', 'w1%', 'p%', '_l%', 'k1%', 'a1%', 'GAM%'])!r}"
        return f"{field} is not null" if chance.random() < 0.3 else f"{field} = {one}"

    def where(self, big: Big, prefix: str = "") -> str:
        chance = self.chance
        kind = chance.random()
        names = [self.column(big) for _ in range(chance.choice([1, 2, 2, 3]))]
        terms = [self.term(big, name, prefix) for name in names]
        if kind < 0.25:
            # Equal on single columns: what index_merge is made of.
            singles = [parts[0] for parts in big.keys.values() if len(parts) == 1]
            if len(singles) > 1:
                chosen = chance.sample(singles, min(len(singles), chance.choice([2, 2, 3])))
                terms = [f"{prefix}`{name}` = {chance.choice(big.columns[name].some)}" for name in chosen]
                word = chance.choice([" and ", " or "])
                return "(" + word.join(terms) + ")"
        if kind < 0.6:
            return " and ".join(terms)
        if kind < 0.85:
            return "(" + " or ".join(terms) + ")"
        more = self.term(big, self.column(big), prefix)
        return f"({' or '.join(terms)}) and {more}"

    def hint(self, big: Big) -> str:
        chance = self.chance
        kind = chance.random()
        if kind < 0.4:
            return ""
        names = chance.sample(list(big.keys), min(len(big.keys), chance.choice([1, 1, 2, 3])))
        word = chance.choice(["force index", "force index", "use index", "force index for order by"])
        return f" {word} ({', '.join(f'`{name}`' for name in names)})"

    def without(self, big: Big) -> str:
        return f" ignore index ({', '.join(f'`{name}`' for name in big.keys)})"

    # Queries: text with {0} and {1} where the tables' hints are, and the tables.

    def plain(self, big: Big) -> str:
        what = self.chance.choice(
            ["n", "count(*)", "count(*), sum(n)", "*", "count(x), sum(n)", "n, s", "sum(length(w))",
             ", ".join(f"`{name}`" for name in self.chance.choice(list(big.keys.values())))])
        lock = self.chance.choice(["", "", "", "", "", " for update", " lock in share mode"])
        if self.chance.random() < 0.3 and what in ("*", "n", "n, s"):
            order = self.chance.choice(list(big.columns))
            limit = self.chance.choice(["", " limit 5", " limit 3, 20"])
            if order != "s" and order != "x" and order != "w":
                way = self.chance.choice(["", " desc"])
                return (f"select /*ordered*/ {what} from `{big.name}`{{0}} where {self.where(big)}"
                        f" order by `{order}`{way}, n{way}{limit}{lock}")
        return f"select {what} from `{big.name}`{{0}} where {self.where(big)}{lock}"

    def ordered(self, big: Big) -> str:
        """ORDER BY a key; columns of which all rows that are equal in it have the same."""
        chance = self.chance
        able = [parts for parts in big.keys.values()
                if not {"s", "x", "w", "k", "e"} & set(parts)] or [["n"]]
        parts = chance.choice(able)
        parts = parts[: chance.randrange(1, len(parts) + 1)]
        way = chance.choice(["", "", " desc"])
        order = ", ".join(f"`{name}`{way}" for name in parts)
        what = ", ".join(f"`{name}`" for name in parts) + chance.choice(["", ", one"])
        where = f" where {self.where(big)}" if chance.random() < 0.6 else ""
        limit = chance.choice([" limit 1", " limit 5", " limit 50", " limit 3 offset 10", ""])
        return f"select /*ordered*/ {what} from `{big.name}`{{0}}{where} order by {order}{limit}"

    def grouped(self, big: Big) -> str:
        chance = self.chance
        parts = [name for name in chance.choice(list(big.keys.values()))]
        first = parts[0]
        shown = first if first in ("a", "b", "c", "u", "v", "n") else "count(*)"
        where = f" where {self.where(big)}" if chance.random() < 0.4 else ""
        second = parts[1] if len(parts) > 1 and parts[1] in ("a", "b", "c", "n", "v") else "n"
        kind = chance.randrange(5)
        if kind == 0 and shown == first:
            return f"select distinct `{first}` from `{big.name}`{{0}}{where}"
        if kind == 1 and len(parts) > 1 and shown == first and second != "n":
            low = f" where `{first}` > 1" if chance.random() < 0.3 else ""
            what = chance.choice([f"min(`{second}`)", f"max(`{second}`)",
                                  f"min(`{second}`), max(`{second}`)"])
            return f"select `{first}`, {what} from `{big.name}`{{0}}{low} group by `{first}`"
        if kind == 2:
            return f"select count(distinct `{first}`) from `{big.name}`{{0}}{where}"
        if kind == 3:
            return f"select min(`{second}`), max(`{second}`), count(*) from `{big.name}`{{0}}{where}"
        return f"select {shown}, count(*), sum(n) from `{big.name}`{{0}}{where} group by `{first}`"

    def joined(self, big: Big) -> str:
        chance = self.chance
        other = chance.choice(self.big)
        name = self.column(big)
        column = big.columns[name]
        pairs = {"number": ["j", "k", "i"], "text": ["s"], "odd": ["j", "b"], "date": ["s"]}
        if column.kind in ("number", "text") and name != "k":
            small = chance.choice(pairs[column.kind])
        elif name == "e":
            small = chance.choice(["j", "b"])
        else:
            name, small = "b", "j"
        what = chance.choice(["count(*), sum(y.n)", "x.i, y.n", "count(y.w)"])
        kind = chance.randrange(4)
        on = f"y.`{name}` = x.`{small}`"
        few = f"x.i < {chance.choice([5, 20, 60])}"
        if kind == 0:
            return (f"select {what} from small x join `{big.name}` y{{0}} on {on} where {few} and"
                    f" {self.term(big, self.column(big), 'y.')}")
        if kind == 1:
            return f"select {what} from small x left join `{big.name}` y{{0}} on {on} where {few}"
        if kind == 2:
            return (f"select count(*), sum(y.n), sum(z.n) from `{other.name}` z{{1}} join `{big.name}`"
                    f" y{{0}} on y.`n` = z.`c` where z.n < 300 and {self.where(other, 'z.')}")
        return f"select {what} from small x straight_join `{big.name}` y{{0}} on {on} where {few}"

    def within(self, big: Big) -> str:
        """Semi-joins and their like."""
        chance = self.chance
        # A subquery that is run again, by merging scans whose row references went to disk before, ends the
        # server with any engine: Unique::merge writes to what it has last read from.
        self.do("set sort_buffer_size=16777216")
        other = chance.choice(self.big)
        inner = chance.choice(["a", "b", "c", "v"])
        # Each strategy in turn: left alone, the optimizer takes one or two of them.
        one = chance.choice(["firstmatch", "loosescan", "materialization", "none", ""])
        if one:
            ways = ",".join(f"{way}={'on' if way == one else 'off'}"
                            for way in ("firstmatch", "loosescan", "materialization"))
            self.do(f"set optimizer_switch='semijoin=on,{ways}'")
        outer = chance.choice(["b", "c", "n", "u"])
        kind = chance.randrange(6)
        if kind == 0:
            return (f"select count(*), sum(x.n) from `{other.name}` x{{1}} where x.`{outer}` in (select"
                    f" `{inner}` from `{big.name}`{{0}} where {self.where(big)})")
        if kind == 1:
            where = f" where {self.where(big)}" if chance.random() < 0.6 else ""
            return (f"select x.i, x.j from small x where x.j in (select `{inner}` from `{big.name}`{{0}}"
                    f"{where})")
        if kind == 2:
            word = chance.choice(["exists", "not exists"])
            return (f"select x.i from small x where {word} (select 1 from `{big.name}` y{{0}} where"
                    f" y.`{inner}` = x.j and {self.term(big, self.column(big), 'y.')})")
        if kind == 3:
            return (f"select x.i from small x where x.j not in (select `b` from `{big.name}`{{0}} where"
                    f" {self.where(big)})")
        if kind == 4:
            return (f"select count(*), sum(x.n) from `{big.name}` x{{0}} where x.n in (select y.n from"
                    f" `{big.name}` y{{0}}, small z where y.`{inner}` = z.j and z.i < 9)")
        return (f"select x.i, x.s from small x where x.i in (select n from `{big.name}`{{0}} where"
                f" {self.where(big)}) or x.j = 3")

    def derived(self, big: Big) -> str:
        chance = self.chance
        name = chance.choice(["a", "b", "c", "e", "d", "v"])
        other = chance.choice(["a", "b", "c"]) if name not in ("d", "e") else name
        kind = chance.randrange(3)
        if kind == 0:
            return (f"select count(*), sum(x.n), sum(y.m) from `{big.name}` x{{0}} join (select `{name}`,"
                    f" count(*) m from `{big.name}`{{0}} group by `{name}`) y on y.`{name}` = x.`{other}`"
                    f" where {self.where(big, 'x.')}")
        if kind == 1:
            return (f"select x.i, y.m from small x join (select b, max(n) m from `{big.name}`{{0}} where"
                    f" {self.where(big)} group by b) y on y.b = x.j")
        return (f"select n from `{big.name}`{{0}} where {self.where(big)} union select n from"
                f" `{big.name}`{{0}} where {self.where(big)}")

    def query(self) -> None:
        big = self.chance.choice(self.big)
        make = self.chance.choices(
            [self.plain, self.ordered, self.grouped, self.joined, self.within, self.derived],
            [40, 20, 14, 12, 8, 6])[0]
        template = make(big)
        hints = [self.hint(big), self.hint(self.big[0]) if len(self.big) == 1 else ""]
        text = template.format(*hints)
        ways = self.explain(text, big, " order by " in text)
        try:
            self.do(text)
        except Found as found:
            if found.difference.kind == "crash" or not self.innodb_is_wrong(template.format(self.without(big), "")):
                raise
            return
        self.pair.counts["queries"] += 1
        slow = make == self.joined or make == self.within
        if self.chance.random() < (0.08 if slow else 0.35 if ways else 0.1):
            none = [self.without(big), ""]
            self.do(f"{template.format(*none)} /*only*/ /*same*/")
            self.pair.counts["queries without an index"] += 1

    def innodb_is_wrong(self, without: str) -> bool:
        """Whether all others agree: SHALE by the same way, and both engines without any index.

        On partitions with virtual columns the server's MRR is known to lose InnoDB's rows.
        """
        ours, theirs = self.pair.answers
        plain_ours, plain_theirs = self.pair.ask(Step(without))
        sides = (ours, plain_ours, plain_theirs)
        wrong = (all(compare("/*loose*/" + without, one, ours) is None for one in sides)
                 and compare("/*loose*/" + without, theirs, ours) is not None)
        self.pair.counts["InnoDB's answer differs from its own without an index"] += wrong
        return wrong

    def explain(self, text: str, big: Big, ordered: bool) -> list[str]:
        answer = self.pair.peek(f"explain format=json {text}")
        if answer[0].kind != "rows":
            return []
        plan = (wire.fields(answer[0].rows[0])[0] or b"").decode(errors="replace")
        return ways.count(self.pair.counts, plan, big.partitioned, ordered)

    def change(self) -> None:
        """UPDATE or DELETE through a plan; then the tables are compared, and looked through."""
        chance = self.chance
        big = chance.choice(self.big)
        where = self.where(big)
        kept = chance.random() < 0.35
        if big.partitioned:
            # After a query that could match nothing the server's open table reads no partition.
            self.do(f"flush tables `{big.name}`")
        if not kept:
            self.do("begin")
        order = chance.choice(["", "", "", " order by n limit 20", " order by b, n limit 7"])
        if chance.random() < 0.3:
            text = f"delete from `{big.name}` where {where}{order}"
            if kept and not order:
                text += f" and n % {chance.choice([3, 5])} = 0"
        else:
            sets = chance.choice([
                "b = b + 1", "a = 3", "c = c + 1", "s = concat(left(s, 9), 'y')",
                "x = concat(left(x, 40), 'z')", "a = b, b = b + 7", "u = null", "n = n + 100000",
                "d = '2001-01-05'", "e = 3", "w = concat('v', left(w, 500))",
                self.primary_change(big), self.primary_change(big)])
            hint = self.hint(big).replace(" for order by", "") if chance.random() < 0.7 else ""
            text = f"update `{big.name}`{hint} set {sets} where {where}{order}"
        self.explain(text, big, False)
        self.pair.counts["changes through a plan"] += 1
        self.pair.counts["queries"] += 1
        self.do(text + " /*loose*/")
        self.whole(big)
        if kept:
            if chance.random() < 0.3:
                self.do(f"check table `{big.name}` /*meta*/")
        else:
            self.do("rollback")
            if chance.random() < 0.2:
                self.whole(big)

    def primary_change(self, big: Big) -> str:
        if "k" not in big.columns:
            return "n = n + 50000"
        column = big.columns["k"]
        if column.kind == "text":
            return "k = concat(k, 'q')"
        if "uuid" in column.type:
            return "k = concat(left(k, 24), lpad(hex(n + 100000), 12, '0'))"
        if "datetime" in column.type:
            return "k = k + interval 100 day"
        return "k = k - 1000000" if "unsigned" in column.type else "k = k + 1000000"

    def whole(self, big: Big) -> None:
        listed = ", ".join(f"`{name}`" for name in big.columns)
        self.do(f"select count(*), sum(crc32(concat_ws('|', {listed}, one))), sum(n), count(a), count(u)"
                f" from `{big.name}`")

    def program(self, length: int) -> None:
        self.make()
        for number in range(length):
            if number % 6 == 0:
                self.switch()
            # Records of tables that are opened anew hold nothing of earlier reads.
            if number % 20 == 10:
                self.do(f"flush tables `{self.big[0].name}`")
            if number % 8 == 5:
                self.change()
            else:
                self.query()
        for big in self.big:
            self.do(f"select * from `{big.name}`")
            self.do(f"check table `{big.name}` extended /*meta*/")


def program(pair: Pair, chance: random.Random, length: int) -> None:
    Queries(pair, chance).program(length)


__all__: list[Any] = ["program"]
