"""Cascades over many rows: they stay within the memory that is set, can be killed, and are whole.

    cascade.py [--rows 60000] [--memory 64]

One parent has all children, each with a long value, and some of these have children of their own.
With `--rows 1000000` it takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
import time

import pymysql

from large import Memory
from server import Layout, Running, Server, say

PAD_BYTES = 640
# Of how many children one has a child of its own.
EVERY = 20
# What a statement may add to the server's resident memory: the engine's, of which some is in use
# already. The C library keeps what is freed in one of its arenas from other threads, which can be as
# much again as the block cache for each thread; it has one arena here, so that what the statement
# takes is seen.
GROWTH_MB = 60
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
KILLED = 1317
RESTRICTED = 1451
# From KILL to the statement's error, its undoing included.
KILL_SECONDS = 20

TABLES = [
    "create table parent (id int primary key)",
    "create table child (id int primary key, parent int, pad varchar(700), foreign key (parent)"
    " references parent (id) on delete cascade on update cascade)",
    "create table grand (id int primary key, child int, foreign key (child)"
    " references child (id) on delete cascade)",
    "create table loses (id int primary key, parent int, pad varchar(700), foreign key (parent)"
    " references parent (id) on delete set null)",
    "create table strict (id int primary key, child int, foreign key (child)"
    " references child (id))",
]


def fill(server: Server, rows: int) -> None:
    pad = f"repeat(md5(seq), {PAD_BYTES // 32})"
    server.run(
        "create database if not exists test", "use test", *TABLES,
        "insert into parent values (1), (3)",
        "set shale_bulk_load = 1",
        f"insert into child select seq, 1, {pad} from seq_1_to_{rows}",
        f"insert into loses select seq, 3, {pad} from seq_1_to_{rows}",
        f"insert into grand select seq, seq * {EVERY} from seq_1_to_{rows // EVERY}",
        # The last one that a cascade comes to.
        f"insert into strict values (1, {rows})",
    )


def counts(server: Server) -> list[int]:
    """Children of each number and grandchildren, by rows and by index."""
    found = []
    for index in ("use index ()", "force index (parent)"):
        found += [server.run(f"select count(*) from child {index} where parent = {parent}",
                             database="test")[0][0] for parent in (1, 2)]
    for where in ("grand", "loses where parent is null"):
        found.append(server.run(f"select count(*) from {where}", database="test")[0][0])
    return found


def expect(server: Server, one: int, two: int, grand: int, alone: int) -> None:
    found = counts(server)
    assert found == [one, two, one, two, grand, alone], found


def measured(server: Server, memory: Memory, statement: str, error: int = 0) -> float:
    """By how many megabytes the server grew; the statement ends as is said."""
    memory.forget_peak()
    before, began = memory.megabytes("VmRSS"), time.monotonic()
    try:
        server.run(statement, database="test")
        assert error == 0, f"not refused: {statement}"
    except pymysql.Error as found:
        assert found.args[0] == error, found
    grown = memory.megabytes("VmHWM") - before
    say(f"cascade: {before:.0f} MB, at most {grown:.0f} more, {time.monotonic() - began:.1f} s:"
        f" {statement}")
    assert grown <= GROWTH_MB, f"{grown:.0f} MB more than before for: {statement}"
    return grown


def killed(server: Server, statement: str) -> float:
    """Kills it when it has locked rows; how long that took."""
    connection = server.connect("test")
    with connection.cursor() as cursor:
        thread = Running(cursor.execute, statement)
        time.sleep(0.3)
        assert thread.is_alive(), f"too fast to be killed: {statement}"
        began = time.monotonic()
        server.run(f"kill query {connection.thread_id()}")
        try:
            thread.get()
            raise AssertionError(f"not killed: {statement}")
        except pymysql.Error as error:
            assert error.args[0] == KILLED, error
    connection.close()
    took = time.monotonic() - began
    assert took < KILL_SECONDS, f"{took:.1f} s until it was killed: {statement}"
    return took


def run(server: Server, rows: int) -> str:
    fill(server, rows)
    memory = Memory(server)
    grand = rows // EVERY
    expect(server, rows, 0, grand, 0)
    took = [killed(server, "update parent set id = 2 where id = 1")]
    expect(server, rows, 0, grand, 0)
    grown = [measured(server, memory, "update parent set id = 2 where id = 1")]
    expect(server, 0, rows, grand, 0)
    took.append(killed(server, "delete from parent where id = 2"))
    expect(server, 0, rows, grand, 0)
    grown.append(measured(server, memory, "delete from parent where id = 2", RESTRICTED))
    expect(server, 0, rows, grand, 0)
    server.run("delete from strict", database="test")
    grown.append(measured(server, memory, "delete from parent where id = 2"))
    expect(server, 0, 0, 0, 0)
    grown.append(measured(server, memory, "delete from parent where id = 3"))
    expect(server, 0, 0, 0, rows)
    for table in ("parent", "child", "grand", "loses"):
        told = server.run(f"check table {table}", database="test")
        assert told[-1][3] == "OK", told
    return f"took {max(grown):.0f} MB more at most, ended {max(took):.1f} s after KILL at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--memory", type=int, default=64, help="shale_memory in MB")
    given = parser.parse_args()
    layout = Layout()
    layout.environment.update(ONE_ARENA)
    server = Server(layout, "cascade")
    server.start(f"loose-shale-memory={given.memory}M")
    told = run(server, given.rows)
    server.stop()
    layout.remove()
    print(f"cascades over {given.rows} rows of {PAD_BYTES} bytes {told}")


if __name__ == "__main__":
    main()
