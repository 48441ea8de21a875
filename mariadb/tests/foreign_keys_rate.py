#!/usr/bin/env python3
"""What foreign keys cost those who insert, beside InnoDB: orders of TPC-C's kind.

    mariadb/tests/foreign_keys_rate.py [--items 100000] [--customers 30000] [--memory 512M]
                                       [--seconds 10] [--runs 3] [--clients 1]

An order is a transaction: one row of `orders`, whose customer is looked up, and ten of `order_line`
by one INSERT, whose order and whose item in stock are looked up. Engines take turns, each with and
without the three foreign keys: orders per second, and what the server's threads of the clients took
of the processor for one. By hand, on a machine that does nothing else; commits are not synced, so
that the disk does not hide the work.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import statistics
import sys
import time
from typing import Any

import pymysql

from online_rate import NO_SYNC, cpu_of_clients
from server import Layout, Server, say

LINES = 10
KEYS = {
    "orders": "constraint oc foreign key (w, c) references customer (w, c)",
    "order_line": "constraint lo foreign key (w, o) references orders (w, o), "
                  "constraint ls foreign key (w, i) references stock (w, i)",
}


def memory_options(engine: str, memory: str) -> list[str]:
    if engine == "SHALE":
        return [f"loose-shale-memory={memory}"]
    return [f"innodb-buffer-pool-size={memory}", "innodb-log-file-size=256M"]


def make(server: Server, engine: str, options: Any, with_keys: bool) -> None:
    of = {name: f", {keys}" if with_keys else "" for name, keys in KEYS.items()}
    pad = "repeat(md5(seq), 4)"
    server.run(
        "drop table if exists order_line, orders, stock, customer",
        f"create table customer (w int, c int, pad varchar(200), primary key (w, c)) engine={engine}",
        f"create table stock (w int, i int, pad varchar(200), primary key (w, i)) engine={engine}",
        f"insert into customer select 1, seq, {pad} from seq_1_to_{options.customers}",
        f"insert into stock select 1, seq, {pad} from seq_1_to_{options.items}",
        "create table orders (w int, o int, c int, at datetime, primary key (w, o), key oc (w, c)"
        f"{of['orders']}) engine={engine}",
        "create table order_line (w int, o int, n int, i int, amount int, pad varchar(40), "
        f"primary key (w, o, n), key ls (w, i){of['order_line']}) engine={engine}",
        database="test")


def write(socket: str, options: Any, seed: int, stop: Any, results: Any) -> None:
    rng = random.Random(seed)
    connection = pymysql.connect(unix_socket=socket, user="root", database="test")
    order, done = seed * 100_000_000, 0
    with connection.cursor() as cursor:
        while not stop.is_set():
            order += 1
            customer = rng.randrange(options.customers) + 1
            cursor.execute(f"insert into orders values (1, {order}, {customer}, now())")
            lines = ", ".join(
                f"(1, {order}, {n}, {rng.randrange(options.items) + 1}, 7, 'some words of {n}')"
                for n in range(LINES))
            cursor.execute(f"insert into order_line values {lines}")
            connection.commit()
            done += 1
    results.put(done)


def rate(server: Server, options: Any) -> tuple[float, float]:
    """Orders per second, and microseconds of the processor for one."""
    context = multiprocessing.get_context("fork")
    stop, results = context.Event(), context.Queue()
    clients = [context.Process(target=write, args=(str(server.socket), options, n + 1, stop, results))
               for n in range(options.clients)]
    for client in clients:
        client.start()
    began = time.monotonic()
    time.sleep(options.seconds)
    cpu = cpu_of_clients(server)
    stop.set()
    done = sum(results.get() for _ in clients)
    took = time.monotonic() - began
    for client in clients:
        client.join()
    return done / took, cpu / done * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--customers", type=int, default=30_000)
    parser.add_argument("--memory", default="512M")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clients", type=int, default=1)
    options = parser.parse_args()
    layout = Layout()
    found: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    servers = {}
    for engine in ("SHALE", "InnoDB"):
        server = Server(layout, engine.lower(), ["performance-schema=off",
                                                 *memory_options(engine, options.memory)])
        server.start()
        server.run(NO_SYNC[engine], "create database if not exists test")
        servers[engine] = server
    for number in range(options.runs):
        for with_keys in (False, True):
            for engine, server in servers.items():
                say(f"{engine}, run {number + 1}, {'with' if with_keys else 'without'} foreign keys")
                make(server, engine, options, with_keys)
                found.setdefault((engine, with_keys), []).append(rate(server, options))
    print("| engine | foreign keys | orders/s | CPU us an order |\n|---|---|---|---|")
    median: dict[tuple[str, bool], tuple[float, float]] = {}
    for (engine, with_keys), runs in found.items():
        rates, cpus = [one[0] for one in runs], [one[1] for one in runs]
        median[engine, with_keys] = statistics.median(rates), statistics.median(cpus)
        print(f"| {engine} | {'yes' if with_keys else 'no'} | {median[engine, with_keys][0]:.0f} "
              f"({min(rates):.0f} to {max(rates):.0f}) | {median[engine, with_keys][1]:.0f} |")
    for with_keys in (False, True):
        ours, theirs = median["SHALE", with_keys], median["InnoDB", with_keys]
        print(f"{'with' if with_keys else 'without'}: rate {ours[0] / theirs[0]:.2f} of InnoDB's, "
              f"CPU {ours[1] / theirs[1]:.2f}")
    for server in servers.values():
        server.stop()
    layout.remove()


if __name__ == "__main__":
    sys.exit(main())
