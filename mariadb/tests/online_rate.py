#!/usr/bin/env python3
"""What ALTER TABLE costs those who write meanwhile: the longest stall, and the rate beside it.

    mariadb/tests/online_rate.py [--rows 2000000] [--clients 4] [--seconds 10] [--runs 1] [--sync]

Clients, a process each, insert, update and delete rows of a table one by one. After some seconds an
index is added with LOCK=NONE, then dropped, then one of two columns is, then a unique one; then the
table is rebuilt, and a column gets another type (InnoDB does that with writers held off, so not
here). For each engine, in turn on one server each: writes per second without and beside, their
ratio, the longest that one statement took in either, what the server's threads of the clients took
of the processor for a write, and how long the ALTER took. By hand, on a machine that does nothing else (only the
third figure means something on another); without --sync commits are not synced, so that the disk
does not hide the work.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pathlib
import random
import sys
import time
from typing import Any

import pymysql

from server import Layout, Server, say

ENGINES = {
    "SHALE": ["loose-shale-memory=512M"],
    "InnoDB": ["innodb-buffer-pool-size=512M", "innodb-log-file-size=256M",
               "innodb-online-alter-log-max-size=1G"],
}
NO_SYNC = {"SHALE": "set global shale_durability = 'periodic'",
           "InnoDB": "set global innodb_flush_log_at_trx_commit = 2"}
# What is done, and what undoes it.
CHANGES = {
    "add index x (a)": "drop index x",
    "add index x (b, a)": "drop index x",
    "add unique index x (b, id)": "drop index x",
    "force": "",
    "modify c bigint": "",
}
NOT_OF = {"InnoDB": ["modify c bigint"]}
# A statement as (when it began, when it ended), in seconds of the machine's clock.
Times = list[tuple[float, float]]


def write(socket: str, rows: int, seed: int, stop: Any, results: Any) -> None:
    rng = random.Random(seed)
    connection = pymysql.connect(
        unix_socket=socket, user="root", database="test", autocommit=True)
    times: Times = []
    number = rows + seed * 10_000_000
    with connection.cursor() as cursor:
        while not stop.is_set():
            choice = rng.randrange(4)
            key = rng.randrange(rows)
            if choice == 0:
                number += 1
                statement = f"insert into t values ({number}, {key}, 'new {number}', {key})"
            elif choice == 1:
                statement = f"delete from t where id = {key}"
            else:
                statement = f"update t set a = {rng.randrange(rows)}, c = c + 1 where id = {key}"
            began = time.monotonic()
            try:
                cursor.execute(statement)
            except pymysql.err.OperationalError as error:
                if error.args[0] not in (1205, 1213):
                    raise
            times.append((began, time.monotonic()))
    results.put(times)


def processor_seconds(process: pathlib.Path) -> float:
    """What a process or a thread, by its folder in /proc, has taken of the processor."""
    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_clients(server: Server) -> float:
    """The seconds of the processor that the clients' threads have taken."""
    assert server.process is not None
    tasks = pathlib.Path(f"/proc/{server.process.pid}/task")
    threads = server.run("select tid from information_schema.processlist where db = 'test'")
    return sum(processor_seconds(tasks / str(thread)) for (thread,) in threads)


def of_period(times: Times, began: float, ended: float) -> tuple[float, float]:
    """Statements per second that ended in a period, and the longest that was under way in it."""
    inside = sum(1 for _, end in times if began <= end < ended)
    longest = max((end - begin for begin, end in times if end >= began and begin < ended),
                  default=0.0)
    return inside / (ended - began), longest


def run(layout: Layout, engine: str, options: Any, name: str) -> list[str]:
    server = Server(layout, name, ["performance-schema=off", *ENGINES[engine]])
    server.start()
    if not options.sync:
        server.run(NO_SYNC[engine])
    server.run("create database if not exists test")
    server.run(
        f"create table t (id int primary key, a int, b varchar(40), c int) engine={engine} "
        f"select seq as id, seq * 7919 % {options.rows} as a, concat('some words and ', seq % 9973) "
        f"as b, seq as c from seq_1_to_{options.rows}", database="test")
    context = multiprocessing.get_context("fork")
    stop, results = context.Event(), context.Queue()
    clients = [context.Process(target=write, args=(str(server.socket), options.rows, n, stop, results))
               for n in range(options.clients)]
    for client in clients:
        client.start()
    time.sleep(2)
    periods = []
    for change, back in CHANGES.items():
        if change in NOT_OF.get(engine, []):
            continue
        began = time.monotonic()
        cpu = [cpu_of_clients(server)]
        time.sleep(options.seconds)
        cpu.append(cpu_of_clients(server))
        altered = time.monotonic()
        server.run(f"alter table test.t {change}, lock=none")
        ended = time.monotonic()
        cpu.append(cpu_of_clients(server))
        # Statements that waited for its end count.
        time.sleep(1)
        if back:
            server.run(f"alter table t {back}, lock=none", database="test")
        periods.append((change, began, altered, ended, cpu))
    stop.set()
    times = [one for _ in clients for one in results.get()]
    for client in clients:
        client.join()
    check = server.run("check table test.t")
    assert check[-1][3] == "OK", check
    server.stop()
    lines = []
    for change, began, altered, ended, cpu in periods:
        before, longest_before = of_period(times, began, altered)
        beside, longest = of_period(times, altered, ended)
        lines.append(
            f"| {engine} | {change} | {before:.0f} | {beside:.0f} | {beside / before:.2f} | "
            f"{longest_before * 1000:.0f} | {longest * 1000:.0f} | "
            f"{(cpu[1] - cpu[0]) / before / (altered - began) * 1e6:.0f} | "
            f"{(cpu[2] - cpu[1]) / beside / (ended - altered) * 1e6:.0f} | {ended - altered:.1f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--engines", nargs="*", default=list(ENGINES))
    options = parser.parse_args()
    layout = Layout()
    print("| engine | ALTER TABLE | writes/s without | beside | ratio | longest ms without | beside | "
          "CPU us a write without | beside | ALTER s |\n|---|---|---|---|---|---|---|---|---|---|",
          flush=True)
    for number in range(options.runs):
        for engine in options.engines:
            say(f"{engine}, run {number + 1}")
            for line in run(layout, engine, options, f"{engine.lower()}{number}"):
                print(line, flush=True)
    layout.remove()


if __name__ == "__main__":
    sys.exit(main())
