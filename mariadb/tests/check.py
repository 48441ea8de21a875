"""CHECK TABLE finds what is wrong: entries and rows are changed behind the server's back, by the
command line tool on the stopped database, and each kind of damage is told with index and key."""

from __future__ import annotations

import os
import pathlib
import subprocess

from server import REPOSITORY, Layout, Server, say


def tool() -> str:
    """The `shale` command of this checkout."""
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "-p", "shale-cli"], check=True, cwd=REPOSITORY
    )
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return str((REPOSITORY / target / "debug" / "shale").resolve())


def check(server: Server, *options: str) -> tuple[str, list[str]]:
    rows = server.run(f"check table test.t {' '.join(options)}")
    return rows[-1][3], [row[3] for row in rows[:-1]]


def main() -> None:
    layout = Layout()
    server = Server(layout, "check")
    shale = tool()
    server.start()
    server.run(
        "create database if not exists test",
        "create table test.t (id int unsigned primary key, a int unsigned not null, "
        "key by_a (a), unique u (a, id)) engine=shale",
        "insert into test.t select seq, seq * 2 from seq_1_to_300",
    )
    assert check(server) == ("OK", [])
    found = server.run(
        "select index_name, tree from information_schema.shale_trees where table_name = 't'"
    )
    trees = dict(found)
    server.stop()

    def change(*arguments: str) -> None:
        folder = str(server.data / "#shale")
        subprocess.run([shale, arguments[0], folder, *arguments[1:], "--hex"], check=True)

    # An entry of no row (a 7, row 999), a row without its entry (a 20, row 10): unsigned numbers
    # are four bytes, the highest first.
    change("put", "00000007000003e7", "", "--tree", trees["by_a"])
    change("delete", "000000140000000a", "--tree", trees["by_a"])
    server.start()
    result, texts = check(server)
    assert result == "Corrupt", (result, texts)
    assert any("by_a" in text and "0x0000000a" in text and "no entry" in text for text in texts), (
        texts
    )
    assert any("by_a" in text and "0x000003e7" in text and "not there" in text for text in texts), (
        texts
    )
    assert not any(" u " in text for text in texts), texts
    # As many entries as rows: a count alone does not see it.
    assert check(server, "quick")[0] == "OK"
    server.stop()

    # A row that does not decode.
    change("put", "00000005", "ffff", "--tree", trees["PRIMARY"])
    server.start()
    result, texts = check(server)
    assert result == "Corrupt" and any("0x00000005" in text for text in texts), texts
    server.stop()
    say("check: each kind of damage was found")
    layout.remove()


if __name__ == "__main__":
    main()
