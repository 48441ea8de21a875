#!/usr/bin/env python3
"""What statements over whole tables take: SHALE beside InnoDB and MyRocks.

    mariadb/tests/bulk_rate.py [--rows 2000000] [--memory 1024] [--runs 3] [--engines SHALE,InnoDB]

Each engine has a server of its own with the same memory (MB), and takes its turn at each statement;
commits are not synced, so that the disk does not hide the work. Per statement: seconds, the median
of the runs, and the ratios of the others' to SHALE's (above 1: SHALE is faster); then the same of
the processor time of the server. By hand, on a machine that does nothing else; only the second table
means something on another.

The table has an integer as primary key, a secondary index of two columns, and 150 bytes in words;
its rows were inserted in the order of the key. `load` makes it, by INSERT ... SELECT of a sequence.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

from online_rate import processor_seconds
from server import Layout, Server, say

# By the names that the server has for them.
ENGINES = {"SHALE": "SHALE", "InnoDB": "INNODB", "MyRocks": "ROCKSDB"}
COLUMNS = ("id int primary key, a int not null, b int not null, c varchar(200) not null, "
           "d datetime, key ab (a, b)")
SOURCE = ("select seq, seq * 7919 % 1000003, seq % 100, concat('row ', seq, ' ', repeat(md5(seq % 5000), 4)), "
          "'2026-01-01' + interval seq second from seq_1_to_{rows}")


def statements(engine: str, rows: int) -> list[tuple[str, list[str], list[str]]]:
    """Name, what is prepared and not measured, what is measured."""
    make = f"create or replace table u ({COLUMNS}) engine={engine}"
    return [
        ("load", [f"create or replace table t ({COLUMNS}) engine={engine}"],
         ["insert into t " + SOURCE.format(rows=rows)]),
        ("COUNT(*)", [], ["select count(*) from t"]),
        ("COUNT(*) by the index", [], ["select count(*) from t force index (ab) where a >= 0"]),
        ("SUM of a column, all rows", [], ["select sum(length(c)) from t force index (primary)"]),
        ("GROUP BY of the index", [], ["select count(*) from (select a, max(b) from t group by a) x"]),
        ("join of all rows by the key", [], ["select count(*), sum(t2.b) from t t1 straight_join t t2 "
                                             "on t2.id = t1.a + 1 where t1.id > 0"]),
        ("INSERT ... SELECT", [make], ["insert into u select * from t"]),
        ("UPDATE of all rows", [], ["update u set b = b + 1"]),
        ("DELETE of every third row", [], ["delete from u where id % 3 = 0"]),
        ("ALTER by copy", [make, f"insert into u select * from t where id <= {rows // 2}"],
         ["alter table u force, algorithm=copy"]),
        ("ADD INDEX", [], ["alter table u add index d (d)"]),
        ("CHECK TABLE", [], ["check table t"]),
        ("TRUNCATE", [], ["truncate table u"]),
    ]


def options(engine: str, memory: int) -> list[str]:
    """As mariadb/sysbench has them, in which the makers' advice is."""
    path = pathlib.Path(__file__).parent.parent / "sysbench"
    loader = importlib.machinery.SourceFileLoader("sysbench", str(path))
    spec = importlib.util.spec_from_loader("sysbench", loader)
    assert spec is not None
    sysbench = importlib.util.module_from_spec(spec)
    loader.exec_module(sysbench)
    given = argparse.Namespace(memory=memory, durability="periodic")
    told = [option.removeprefix("--") for option in sysbench.options(ENGINES[engine], given)]
    # The tests' server has the plugin already; a statement locks every row that it changes.
    told = [option for option in told if option != "plugin-load-add=ha_shale"]
    return told + (["rocksdb-max-row-locks=1073741824"] if engine == "MyRocks" else [])


def measured(server: Server, work: Any) -> tuple[float, float]:
    """Seconds, and seconds of the processor, of what is done."""
    assert server.process is not None
    place = pathlib.Path(f"/proc/{server.process.pid}")
    cpu, began = processor_seconds(place), time.monotonic()
    work()
    return time.monotonic() - began, processor_seconds(place) - cpu


def dump(layout: Layout, server: Server) -> None:
    program = layout.server / "bin/mariadb-dump"
    command = [str(program), "--no-defaults", "-uroot", f"--socket={server.socket}",
               "--single-transaction", "test", "t"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def settle(server: Server) -> None:
    """Until the server does nothing any more, 20 s at most: its merges are not another's."""
    assert server.process is not None
    place = pathlib.Path(f"/proc/{server.process.pid}")
    for _ in range(20):
        before = processor_seconds(place)
        time.sleep(1)
        if processor_seconds(place) - before < 0.05:
            return


def table(title: str, found: dict[str, dict[str, list[float]]], engines: list[str]) -> None:
    others = [engine for engine in engines if engine != "SHALE"]
    ratios = [f"{engine} / SHALE" for engine in others] if "SHALE" in engines else []
    print(f"\n{title}\n\n| statement | {' | '.join(engines + ratios)} |")
    print("|---|" + "---|" * (len(engines) + len(ratios)))
    for name, of in found.items():
        cells = [f"{statistics.median(of[engine]):.2f}" for engine in engines]
        if ratios:
            ours = statistics.median(of["SHALE"])
            cells += [f"{statistics.median(of[other]) / max(ours, 0.01):.2f}" for other in others]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--memory", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engines", default="SHALE,InnoDB,MyRocks")
    given = parser.parse_args()
    engines = given.engines.split(",")
    if set(engines) - set(ENGINES):
        parser.error(f"--engines {given.engines}: they are SHALE, InnoDB and MyRocks")
    layout = Layout()
    servers = {}
    for engine in engines:
        server = Server(layout, engine.lower(), ["performance-schema=off", *options(engine, given.memory)])
        server.start()
        server.run("create database if not exists test")
        servers[engine] = server
    seconds: dict[str, dict[str, list[float]]] = {}
    processor: dict[str, dict[str, list[float]]] = {}

    def note(name: str, engine: str, took: tuple[float, float]) -> None:
        seconds.setdefault(name, {}).setdefault(engine, []).append(took[0])
        processor.setdefault(name, {}).setdefault(engine, []).append(took[1])

    for number in range(given.runs):
        plans = {engine: statements(ENGINES[engine], given.rows) for engine in engines}
        for index in range(len(plans[engines[0]])):
            for engine in engines if number % 2 == 0 else reversed(engines):
                name, prepared, work = plans[engine][index]
                server = servers[engine]
                if prepared:
                    server.run(*prepared, database="test")
                    settle(server)
                took = measured(server, lambda: server.run(*work, database="test"))
                say(f"run {number + 1}, {engine}, {name}: {took[0]:.2f} s")
                note(name, engine, took)
                settle(server)
                if name == "CHECK TABLE":
                    note("mariadb-dump", engine, measured(server, lambda: dump(layout, server)))
    table("Seconds", seconds, engines)
    table("Seconds of the server's processor", processor, engines)
    for server in servers.values():
        server.stop()
    layout.remove()


if __name__ == "__main__":
    sys.exit(main())
