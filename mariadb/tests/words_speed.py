"""What FULLTEXT indexes cost in SHALE and in InnoDB, on one server: to load documents, to search.

    words_speed.py [--copies 1] [--rounds 15] [--seconds 4]

The documents are what apt knows of Debian's packages, some 60,000 of a few hundred bytes, each so
many times. Engines take turns: at a query so many rounds, and more for so many seconds, up to 300.
Times are the client's: the median, and of all rounds the slowest hundredth (with fewer than a
hundred the slowest one). CPU is the server's, all its threads.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import time
from typing import Any, Callable

import server as servers

ENGINES = ["innodb", "shale"]
ROUNDS_MAX = 300
QUERIES = {
    "rare word": ("zstandard", ""),
    "word of many rows": ("library", ""),
    "three words": ("compression library python", ""),
    "rare and common": ("+zstandard +library", "in boolean mode"),
    "common and rare": ("+library +zstandard", "in boolean mode"),
    "two common": ("+library +development", "in boolean mode"),
    "without a common word": ("+compression -library", "in boolean mode"),
    "phrase": ('"shared library"', "in boolean mode"),
    "beginning": ("compres*", "in boolean mode"),
    "distance": ('"compression library" @8', "in boolean mode"),
}


def documents(copies: int) -> list[tuple[str, str]]:
    text = subprocess.run(["apt-cache", "dumpavail"], check=True, stdout=subprocess.PIPE).stdout
    found = []
    for record in text.decode(errors="replace").split("\n\n"):
        name = re.search(r"^Package: (.*)$", record, re.M)
        if name is not None:
            found.append((name[1], record))
    return found * copies


def p99(times: list[float]) -> float:
    return sorted(times)[math.ceil(0.99 * len(times)) - 1]


def slow_of(times: dict[str, list[float]]) -> str:
    ours, theirs = 1000 * p99(times["shale"]), 1000 * p99(times["innodb"])
    return f"{ours:15.1f}{theirs:9.1f}{len(times['shale']):7}"


def cpu_of(server: servers.Server) -> float:
    assert server.process is not None
    fields = open(f"/proc/{server.process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(server: servers.Server, work: Callable[[], Any]) -> tuple[float, float, Any]:
    before, began = cpu_of(server), time.monotonic()
    result = work()
    return time.monotonic() - began, cpu_of(server) - before, result


def load(cursor: Any, rows: list[tuple[str, str]]) -> list[float]:
    """How long each statement of 500 rows took."""
    times = []
    for begin in range(0, len(rows), 500):
        began = time.monotonic()
        cursor.executemany("insert into d (name, body) values (%s, %s)", rows[begin:begin + 500])
        times.append(time.monotonic() - began)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=4)
    given = parser.parse_args()
    layout = servers.Layout()
    server = servers.Server(layout, "speed", ["innodb-buffer-pool-size=512M", "shale-memory=512M"])
    server.start()
    rows = documents(given.copies)
    cursors = {}
    for engine in ENGINES:
        server.run(f"create database {engine}")
        cursors[engine] = server.connect(engine).cursor()
        cursors[engine].execute(
            "create table d (id int primary key auto_increment, name varchar(100), body mediumtext,"
            f" fulltext (body)) engine={engine} charset=utf8mb4")
    print(f"{len(rows)} documents, {sum(len(body) for _, body in rows) / 1e6:.0f} MB")
    print(f"{'':24}{'SHALE s':>10}{'InnoDB s':>10}{'rate':>7}{'SHALE CPU':>11}{'InnoDB CPU':>11}"
          f"{'ratio':>7}{'p99 ms: SHALE':>15}{'InnoDB':>9}{'times':>7}")

    def tell(title: str, spent: dict[str, tuple[float, float]], slow: str = "") -> None:
        (ours, our_cpu), (theirs, their_cpu) = spent["shale"], spent["innodb"]
        print(f"{title:24}{ours:10.4f}{theirs:10.4f}{theirs / ours:7.2f}{our_cpu:11.4f}"
              f"{their_cpu:11.4f}{our_cpu / max(their_cpu, 1e-9):7.2f}{slow}", flush=True)

    # In parts, taking turns.
    spent = {engine: [0.0, 0.0] for engine in ENGINES}
    loads: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    part = len(rows) // 8 + 1
    for begin in range(0, len(rows), part):
        for engine in ENGINES if begin // part % 2 == 0 else ENGINES[::-1]:
            some = rows[begin:begin + part]
            seconds, cpu, each = measured(server, lambda: load(cursors[engine], some))
            loads[engine] += each
            spent[engine][0] += seconds
            spent[engine][1] += cpu
    tell("load", {engine: (seconds, cpu) for engine, (seconds, cpu) in spent.items()},
         slow_of(loads))
    server.run("set global innodb_optimize_fulltext_only=on", "optimize table innodb.d",
               "set global shale_wait_idle=on")
    for title, (words, mode) in QUERIES.items():
        times: dict[str, list[float]] = {engine: [] for engine in ENGINES}
        cpus = {engine: 0.0 for engine in ENGINES}
        found = {}
        for round_ in range(ROUNDS_MAX + 1):
            if round_ > given.rounds and sum(map(sum, times.values())) > given.seconds:
                break
            for engine in ENGINES if round_ % 2 == 0 else ENGINES[::-1]:
                seconds, cpu, found[engine] = measured(
                    server, lambda: ask(cursors[engine], words, mode))
                if round_ > 0:
                    times[engine].append(seconds)
                    cpus[engine] += cpu
        assert found["shale"][0] == found["innodb"][0], (title, found)
        rounds = len(times["shale"])
        tell(f"{title} ({found['shale'][0]})",
             {engine: (statistics.median(times[engine]), cpus[engine] / rounds)
              for engine in ENGINES},
             slow_of(times))
    server.stop()
    layout.remove()
    return 0


def ask(cursor: Any, words: str, mode: str) -> tuple[int, Any]:
    """How many match, and the ten most relevant."""
    match = f"match (body) against (%s {mode})"
    cursor.execute(f"select count(*) from d where {match}", (words,))
    count = cursor.fetchone()[0]
    cursor.execute(f"select id, {match} as r from d where {match} order by r desc limit 10",
                   (words, words))
    return count, cursor.fetchall()


if __name__ == "__main__":
    sys.exit(main())
