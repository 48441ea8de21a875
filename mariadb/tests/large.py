"""Statements over all rows of a large table: they stay within the memory that is set, and one that
fails at its last row leaves nothing behind. What such a statement writes is several times what the
server may take more than before."""

from __future__ import annotations

import argparse

import pymysql

from server import Layout, Server, say

ROWS = 80_000
PAD_BYTES = 640
MEMORY_MB = 32
# What a statement may add to the server's resident memory: the engine's, of which some is in use
# already, and what the allocator does not give back. A statement writes 55 MB or more.
GROWTH_MB = 40
ER_DUP_ENTRY = 1062

COLUMNS = "id int primary key, k int, u int, pad varchar(700), key (k), unique (u)"
PAD = f"repeat(md5(%s), {PAD_BYTES // 32})"


class Memory:
    """The greatest resident memory of a server since the last statement began."""

    def __init__(self, server: Server) -> None:
        assert server.process is not None
        self._folder = f"/proc/{server.process.pid}"

    def forget_peak(self) -> None:
        with open(f"{self._folder}/clear_refs", "w") as file:
            file.write("5")

    def megabytes(self, name: str) -> float:
        with open(f"{self._folder}/status") as file:
            for line in file:
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) / 1024
        raise SystemExit(f"{self._folder}/status has no {name}")


def measured(server: Server, memory: Memory, *statements: str) -> float:
    """Runs statements, of which the last is the large one; by how many megabytes it grew."""
    memory.forget_peak()
    before = memory.megabytes("VmRSS")
    try:
        server.run(*statements, database="test")
    finally:
        grown = memory.megabytes("VmHWM") - before
        say(f"large: {before:.0f} MB, at most {grown:.0f} more: {statements[-1][:60]}")
    assert grown <= GROWTH_MB, f"{grown:.0f} MB more than before for: {statements[-1]}"
    return grown


def sums(server: Server, table: str) -> list[tuple[int, int]]:
    """Rows and sums by each index: all have to be the same."""
    found = []
    for index in ("primary", "k", "u"):
        [(count, total)] = server.run(
            f"select count(*), ifnull(sum({'k' if index == 'k' else 'id'}), 0)"
            f" from {table} force index ({index})", database="test",
        )
        found.append((int(count), int(total)))
    return found


def intact(server: Server, table: str, count: int) -> None:
    found = sums(server, table)
    assert [rows for rows, _ in found] == [count] * 3, (table, found)
    assert found[0] == found[2], (table, found)
    rows = server.run(f"check table {table}", database="test")
    assert [row[3] for row in rows] == ["OK"], rows


def run(server: Server) -> float:
    memory = Memory(server)
    server.run(
        "create database if not exists test", "use test",
        f"create table t ({COLUMNS})", "create table into_one like t", "create table parts like t",
    )
    grown = [measured(
        server, memory,
        f"insert into t select seq, seq * 7919 % {ROWS}, seq, {PAD % 'seq'} from seq_1_to_{ROWS}",
    )]
    intact(server, "t", ROWS)
    # The last row has the key, or the unique value, of one that is there.
    for key, unique in ((ROWS, 0), (0, ROWS)):
        server.run(f"insert into into_one values ({key}, 1, {unique}, '')", database="test")
        try:
            measured(server, memory, "insert into into_one select * from t")
        except pymysql.IntegrityError as error:
            assert error.args[0] == ER_DUP_ENTRY and str(ROWS) in error.args[1], error
        else:
            raise AssertionError("the last row is a duplicate")
        intact(server, "into_one", 1)
        server.run("delete from into_one", database="test")
    grown.append(measured(
        server, memory, "set shale_bulk_load = 1", "insert into parts select * from t"))
    intact(server, "parts", ROWS)
    grown.append(measured(server, memory, f"update t set pad = {PAD % 'pad'}, k = k + 1"))
    intact(server, "t", ROWS)
    grown.append(measured(server, memory, "delete from t"))
    intact(server, "t", 0)
    return max(grown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=int, default=MEMORY_MB,
                        help="shale_memory in MB; with much more than by default it has to fail")
    given = parser.parse_args()
    layout = Layout()
    server = Server(layout, "large")
    server.start(f"loose-shale-memory={given.memory}M")
    most = run(server)
    server.stop()
    layout.remove()
    print(f"statements over {ROWS} rows of {PAD_BYTES} bytes took {most:.0f} MB more at most")


if __name__ == "__main__":
    main()
