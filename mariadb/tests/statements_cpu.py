"""CPU of the server for single statements, SHALE beside InnoDB, on one server, in small turns.

    statements_cpu.py [--links 200000] [--rounds 30] [--only WORD] [--environment NAME=VALUE]

Tables are those of LinkBench (plain, and in 16 partitions), of sysbench and of the insert
benchmark. One connection for each engine sends statements as text, so many milliseconds each in
turn. What counts is the CPU of the thread that serves the connection, by the scheduler's account.
Shown are the 10th percentile of the turns and its ratio, first with all merged, then with writes
in the memtable.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import statistics
import sys
import time
from typing import Any, Callable

import server as servers

ENGINES = ["innodb", "shale"]
TURN = 0.03

LINKS = """(
    id1 bigint unsigned not null default 0, id2 bigint unsigned not null default 0,
    link_type bigint unsigned not null default 0, visibility tinyint not null default 0,
    data varchar(255) not null default '', time bigint unsigned not null default 0,
    version int unsigned not null default 0,
    primary key (link_type, id1, id2),
    key id1_type (id1, link_type, visibility, time, id2, version, data)
) default charset=latin1 collate latin1_bin"""
SYSBENCH = """(
    id int not null auto_increment, k int not null default 0, c char(120) not null default '',
    pad char(60) not null default '', primary key (id), key k_1 (k))"""
PURCHASES = """(
    transactionid bigint not null auto_increment, dateandtime datetime, cashregisterid int not null,
    customerid int not null, productid int not null, price float not null, data varchar(4000),
    primary key (transactionid),
    key marketsegment (price, customerid), key registersegment (cashregisterid, price, customerid),
    key pdc (price, dateandtime, customerid))"""


class Work:
    """The data, and a random statement of each kind."""

    def __init__(self, links: int) -> None:
        self.dice = random.Random(7)
        self.nodes = links // 10
        self.rows = links

    def link(self) -> tuple[int, int]:
        return self.dice.randrange(self.nodes), 123456789 + self.dice.randrange(2)

    def statements(self) -> dict[str, Callable[[], str]]:
        dice, rows = self.dice, self.rows

        def get(table: str) -> str:
            id1, kind = self.link()
            return (f"select id1, id2, link_type, visibility, data, time, version from {table} where"
                    f" id1 = {id1} and link_type = {kind} and id2 in ({dice.randrange(5)})")

        def listed(table: str, order: str) -> str:
            id1, kind = self.link()
            return (f"select id1, id2, link_type, visibility, data, time, version from {table} force"
                    f" index (id1_type) where id1 = {id1} and link_type = {kind} and time >= 0 and"
                    f" time <= 99999999999 and visibility = 1 order by time {order} limit 0, 10")

        def count(table: str) -> str:
            id1, kind = self.link()
            return (f"select count(*) from {table} where id1 = {id1} and link_type = {kind} and"
                    " visibility = 1")

        def update(table: str) -> str:
            id1, kind = self.link()
            return (f"update {table} set version = version + 1 where id1 = {id1} and"
                    f" link_type = {kind} and id2 > 0 limit 1")

        def insert(table: str) -> str:
            id1, kind = self.link()
            return (f"insert into {table} (id1, id2, link_type, visibility, data, time, version)"
                    f" values ({id1}, {dice.randrange(5)}, {kind}, 1, 'abcdefgh', 1700000000, 1) on"
                    " duplicate key update version = version + 1")

        def span(width: int) -> str:
            first = dice.randrange(rows - width)
            return f"id between {first} and {first + width - 1}"

        def market(index: str, columns: str, condition: str) -> str:
            return (f"select {columns} from purchases force index ({index}) where {condition}"
                    f" order by {columns} limit 10")

        made: dict[str, Callable[[], str]] = {}
        for table, name in [("links", ""), ("parts", ", 16 partitions")]:
            made[f"link by key{name}"] = lambda t=table: get(t)
            made[f"list of 10, descending{name}"] = lambda t=table: listed(t, "desc")
            made[f"count(*) of a list{name}"] = lambda t=table: count(t)
            made[f"update of one row{name}"] = lambda t=table: update(t)
            made[f"insert on duplicate key{name}"] = lambda t=table: insert(t)
        made["list of 10, ascending"] = lambda: listed("links", "asc")
        made["point select"] = lambda: f"select c from sb where id = {dice.randrange(1, rows)}"
        made["100 rows"] = lambda: f"select c from sb where {span(100)}"
        made["sum of 100 rows"] = lambda: f"select sum(k) from sb where {span(100)}"
        made["100 rows in order"] = lambda: f"select c from sb where {span(100)} order by c"
        made["distinct of 100 rows"] = lambda: (
            f"select distinct c from sb where {span(100)} order by c")
        made["10 rows behind an index"] = lambda: (
            f"select c from sb where k between {(k := dice.randrange(rows - 10))} and {k + 9}")
        made["update of no index"] = lambda: (
            f"update sb set c = '{dice.random()}' where id = {dice.randrange(1, rows)}")
        made["update of an index"] = lambda: (
            f"update sb set k = k + 1 where id = {dice.randrange(1, rows)}")
        made["price"] = lambda: market(
            "marketsegment", "price, customerid", f"price >= {dice.random() * 500:.2f}")
        made["register"] = lambda: market(
            "registersegment", "cashregisterid, price, customerid",
            f"cashregisterid = {dice.randrange(1000)} and price >= {dice.random() * 500:.2f}")
        return made

    def load(self, cursor: Any, engine: str) -> None:
        dice = random.Random(11)
        cursor.execute(f"create table links {LINKS} engine={engine}")
        cursor.execute(
            f"create table parts {LINKS} engine={engine} partition by key (id1) partitions 16")
        cursor.execute(f"create table sb {SYSBENCH} engine={engine}")
        cursor.execute(f"create table purchases {PURCHASES} engine={engine}")
        order = list(range(self.nodes * 2))
        dice.shuffle(order)
        data = "abcdefghijklmnopqrstuvwxyz"
        for begin in range(0, len(order), 100):
            some = [(at // 2, id2, 123456789 + at % 2, 1, data[:dice.randrange(4, 20)],
                     1700000000 + dice.randrange(10**8), 0)
                    for at in order[begin:begin + 100] for id2 in range(5)]
            for table in ["links", "parts"]:
                insert(cursor, table, "id1, id2, link_type, visibility, data, time, version", some)
        for begin in range(0, self.rows, 500):
            insert(cursor, "sb", "k, c, pad",
                   [(dice.randrange(self.rows), digits(dice, 119), digits(dice, 59))
                    for _ in range(500)])
            insert(cursor, "purchases",
                   "dateandtime, cashregisterid, customerid, productid, price, data",
                   [("2026-01-01 00:00:00", dice.randrange(1000), dice.randrange(100000),
                     dice.randrange(10000), round(dice.random() * 500, 2), data[:10])
                    for _ in range(500)])


def digits(dice: random.Random, length: int) -> str:
    return "-".join(f"{dice.randrange(10**11):011}" for _ in range(length // 12 + 1))[:length]


def insert(cursor: Any, table: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
    values = ",".join(str(row) for row in rows)
    cursor.execute(f"insert into {table} ({columns}) values {values}")


class Client:
    """A connection, and the thread of the server that serves it."""

    def __init__(self, server: servers.Server, engine: str) -> None:
        self.cursor = server.connect(engine).cursor()
        self.cursor.execute(
            "select tid from information_schema.processlist where id = connection_id()")
        thread = self.cursor.fetchone()[0]
        assert server.process is not None
        self.account = pathlib.Path(f"/proc/{server.process.pid}/task/{thread}/schedstat")

    def cpu(self) -> int:
        # The thread's account is brought up to date when it leaves the core, as it does to wait.
        return int(self.account.read_text().split()[0])

    def turn(self, statement: Callable[[], str]) -> float:
        """Microseconds of CPU a statement, of one turn."""
        done = 0
        before, began = self.cpu(), time.monotonic()
        while time.monotonic() - began < TURN:
            self.cursor.execute(statement())
            self.cursor.fetchall()
            done += 1
        time.sleep(0.0005)
        return (self.cpu() - before) / done / 1000


def compare(clients: dict[str, Client], work: Work, rounds: int, only: str) -> None:
    print(f"{'':38}{'SHALE us':>10}{'InnoDB us':>10}{'ratio':>7}")
    for title, statement in work.statements().items():
        if only not in title:
            continue
        spent: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        for round_ in range(rounds + 2):
            for engine in ENGINES if round_ % 2 == 0 else ENGINES[::-1]:
                took = clients[engine].turn(statement)
                if round_ >= 2:
                    spent[engine].append(took)
        tenth = {engine: statistics.quantiles(times, n=10)[0] for engine, times in spent.items()}
        print(f"{title:38}{tenth['shale']:10.1f}{tenth['innodb']:10.1f}"
              f"{tenth['shale'] / tenth['innodb']:7.2f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", default="")
    parser.add_argument("--environment", action="append", default=[])
    given = parser.parse_args()
    layout = servers.Layout()
    layout.environment.update(one.split("=", 1) for one in given.environment)
    server = servers.Server(layout, "cpu", ["innodb-buffer-pool-size=1G", "shale-memory=1G",
                                            "innodb-flush-log-at-trx-commit=2", "shale-durability=periodic"])
    server.start()
    work = Work(given.links)
    for engine in ENGINES:
        server.run(f"create database {engine}")
        connection = server.connect(engine)
        work.load(connection.cursor(), engine)
        connection.close()
        print(f"{engine} loaded", flush=True)
    server.run("set global shale_wait_idle=on")
    # What the load has left in memory lies where chance put it.
    server.stop()
    server.start()
    clients = {engine: Client(server, engine) for engine in ENGINES}
    for engine in ENGINES:
        for table in ["links", "parts", "sb", "purchases"]:
            clients[engine].cursor.execute(f"select count(*), min(version) from {table}"
                                           if table in ("links", "parts") else
                                           f"select count(*), max(length(c)) from {table}"
                                           if table == "sb" else
                                           f"select count(*), max(data) from {table}")
    print("merged, then with what the statements write")
    compare(clients, work, given.rounds, given.only)
    for _ in range(20_000):
        update = work.statements()["update of one row"]()
        for engine in ENGINES:
            clients[engine].cursor.execute(update)
    print("written: 20,000 updates in the memtable")
    compare(clients, work, given.rounds, given.only)
    server.stop()
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
