#!/usr/bin/env python3
"""What values of sequences cost, beside InnoDB's: values a second, and the processor's time of each.

    mariadb/tests/sequences_rate.py [--values 300000] [--statements 3000] [--runs 3]

For caches of three sizes: many values of one statement, one value of each statement by two clients,
and rows whose key has NEXTVAL for its default. Engines in turn on one server, medians of the runs,
each with what it does for durability by default. By hand, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import time

from online_rate import processor_seconds
from server import Layout, Server, all_of, say

ENGINES = ("SHALE", "InnoDB")
# Of NOCACHE each value is a row written, so it gets fewer of them.
CACHES = {"cache 1000": 1, "cache 10": 10, "nocache": 100}


def ask(server: Server, statement: str, times: int) -> None:
    connection = server.connect("test")
    with connection.cursor() as cursor:
        for _ in range(times):
            cursor.execute(statement)
    connection.close()


def works(given: argparse.Namespace, share: int) -> dict[str, tuple[str, int, int, int]]:
    """By name: a statement, how often each client does it, by how many clients, its values."""
    many, each = given.values // share, max(given.statements * 3 // (share + 2), 100)
    return {
        "values of one statement": (f"select max(nextval(s)) from seq_1_to_{many}", 1, 1, many),
        "one value a statement": ("select nextval(s)", each, 2, 1),
        "rows of one statement": (f"insert into t (v) select seq from seq_1_to_{many // 3}", 1, 1,
                                  many // 3),
    }


def measure(server: Server, engine: str, cache: str, name: str,
            work: tuple[str, int, int, int]) -> tuple[float, float]:
    """Values a second, and microseconds of the processor for each."""
    statement, times, clients, values = work
    server.run("drop table if exists t", "drop sequence if exists s",
               f"create sequence s {cache} engine={engine}",
               f"create table t (id bigint primary key default nextval(s), v int) engine={engine}",
               database="test")
    assert server.process is not None
    process = pathlib.Path(f"/proc/{server.process.pid}")
    busy, began = processor_seconds(process), time.monotonic()
    all_of([(ask, server, statement, times) for _ in range(clients)])
    took, busy = time.monotonic() - began, processor_seconds(process) - busy
    count = values * times * clients
    [(last,)] = server.run("select nextval(s)", database="test")
    assert last > count, (engine, cache, name, last, count)
    return count / took, busy / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=300_000)
    parser.add_argument("--statements", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    layout = Layout()
    server = Server(layout, "sequences", ["performance-schema=off", "innodb-buffer-pool-size=256M",
                                          "loose-shale-memory=256M"])
    server.start()
    server.run("create database if not exists test")
    print("| cache | work | SHALE values/s | InnoDB | rate | SHALE us of CPU | InnoDB | CPU |")
    print("|---|---|---|---|---|---|---|---|")
    for cache, share in CACHES.items():
        for name, work in works(given, share).items():
            found: dict[str, list[tuple[float, float]]] = {engine: [] for engine in ENGINES}
            for run in range(given.runs):
                for engine in ENGINES if run % 2 == 0 else reversed(ENGINES):
                    found[engine].append(measure(server, engine, cache, name, work))
            rates = [statistics.median(one[0] for one in found[engine]) for engine in ENGINES]
            costs = [statistics.median(one[1] for one in found[engine]) for engine in ENGINES]
            share_of_cpu = f"{costs[0] / costs[1]:.2f}" if costs[1] > 0 else "?"
            print(f"| {cache} | {name} | {rates[0]:,.0f} | {rates[1]:,.0f} | {rates[0] / rates[1]:.2f}"
                  f" | {costs[0]:.1f} | {costs[1]:.1f} | {share_of_cpu} |", flush=True)
            say(f"sequences: {cache}, {name}")
    server.stop()
    layout.remove()


if __name__ == "__main__":
    main()
