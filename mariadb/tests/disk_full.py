"""A full disk: statements fail and say so, nothing acknowledged is lost, and writes go on by
themselves once there is space. The tables are on a small file system in memory, so it has to run as
root and be allowed to mount; else it says so and is skipped."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time

import pymysql

from server import Layout, Server, say

BYTES = 96 << 20
BALLAST = 40 << 20
ER_RECORD_FILE_FULL = 1114
ROW = "r" * 20000


def mount(folder: pathlib.Path) -> bool:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={BYTES}", "shale-test", str(folder)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        say(f"disk_full: skipped, no file system can be mounted here: {done.stderr.strip()}")
    return done.returncode == 0


def fill(server: Server, first: int) -> tuple[list[int], pymysql.Error]:
    """Inserts until that fails: the rows that were acknowledged, and the error."""
    connection = server.connect("test")
    done = []
    with connection.cursor() as cursor:
        for key in range(first, first + 20000):
            try:
                # Nothing that a codec could shorten.
                text = os.urandom(len(ROW) // 2).hex()
                cursor.execute("insert into t values (%s, %s)", (key, text))
            except pymysql.Error as error:
                connection.close()
                return done, error
            done.append(key)
    raise SystemExit("the disk did not become full")


def test(layout: Layout, server: Server, disk: pathlib.Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(b"\0" * BALLAST)
    server.start()
    server.run(
        "create database if not exists test",
        "create table test.t (id int primary key, pad text) engine=shale compression='none'",
    )
    done, error = fill(server, 0)
    assert error.args[0] == ER_RECORD_FILE_FULL, error
    assert "no space left" in error.args[1] and "resume" in error.args[1], error
    # Reads go on.
    keys = [row[0] for row in server.run("select id from test.t order by id")]
    assert keys == done, (len(keys), len(done))
    ballast.unlink()
    for tries in range(200):
        try:
            server.run("insert into test.t values (1000000, 'after')")
            break
        except pymysql.Error as error:
            assert error.args[0] == ER_RECORD_FILE_FULL, error
            time.sleep(0.1)
    else:
        raise SystemExit("writes did not go on, though there is space")
    say(f"disk_full: {len(done)} rows until it was full; writes went on after {tries} tries")
    server.kill()
    server.start()
    keys = [row[0] for row in server.run("select id from test.t order by id")]
    assert keys == [*done, 1000000], (len(keys), len(done))
    assert server.run("check table test.t extended")[-1][3] == "OK"
    server.stop()


def main() -> None:
    layout = Layout()
    server = Server(layout, "full", ["shale-memory=16M"])
    disk = server.data / "#shale"
    if not mount(disk):
        layout.remove()
        return
    try:
        test(layout, server, disk)
    finally:
        server.kill()
        subprocess.run(["umount", str(disk)], check=True)
    layout.remove()


if __name__ == "__main__":
    main()
