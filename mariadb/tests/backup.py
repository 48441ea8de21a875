"""A backup made while clients write is, restored and with the binary log replayed, the original.

Clients move money between accounts and keep a journal; `mariadb/backup` runs meanwhile. The backup
alone is some state between transactions; with the log from its place on it is the state at the end.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from typing import Any

from server import HERE, Layout, Server, all_of, say

ACCOUNTS = 50
CLIENTS = 3
LOG = ["log-bin=log", "server-id=1", "sync-binlog=1"]


def work(server: Server, client: int, stop: threading.Event) -> int:
    """Transfers until told to stop; how many were committed."""
    chance = random.Random(client)
    connection = server.connect("bank", autocommit=False)
    done = 0
    with connection.cursor() as cursor:
        while not stop.is_set():
            one, other = sorted(chance.sample(range(ACCOUNTS), 2))
            amount = chance.randrange(-20, 20)
            for account, change in ((one, -amount), (other, amount)):
                cursor.execute(
                    "update account set balance = balance + %s where id = %s", (change, account)
                )
            done += 1
            cursor.execute("insert into journal values (%s, %s, %s)", (client, done, "j" * 100))
            connection.commit()
    connection.close()
    return done


def state(server: Server) -> list[Any]:
    checks = [server.run(f"checksum table bank.{name} extended") for name in ("account", "journal")]
    return [*checks, server.run("select sum(balance) from bank.account")]


def whole(server: Server) -> None:
    """What every state between transactions has."""
    assert server.run("select sum(balance) from bank.account") == [(ACCOUNTS * 100,)]
    for name in ("account", "journal"):
        found = server.run(f"check table bank.{name}")
        assert found[-1][3] == "OK", found
    gaps = server.run("select client, count(*), max(number) from bank.journal group by client")
    assert all(count == greatest for _, count, greatest in gaps), gaps


def backup(layout: Layout, *arguments: str) -> None:
    environment = dict(layout.environment, MARIADB=str(layout.server / "bin/mariadb"))
    command = [str(HERE.parent / "backup"), *arguments]
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)


def replay(layout: Layout, source: Server, to: Server, place: dict[str, str]) -> None:
    """The binary log from a place on, as its files lie in the source's folder."""
    logs = sorted(source.data.glob("log.0*"))
    files = [str(log) for log in logs if log.name >= place["file"]]
    read = subprocess.Popen(
        [str(layout.server / "bin/mariadb-binlog"), "--no-defaults",
         f"--start-position={place['position']}", *files],
        stdout=subprocess.PIPE, env=layout.environment,
    )
    client = [str(layout.server / "bin/mariadb"), "--no-defaults", f"--socket={to.socket}"]
    subprocess.run([*client, "--user=root"], check=True, stdin=read.stdout, env=layout.environment)
    assert read.wait() == 0


def main() -> None:
    layout = Layout()
    source = Server(layout, "source", LOG)
    source.start()
    source.run(
        "create database bank",
        "create table bank.account (id int primary key, balance int, key(balance)) engine=shale",
        "create table bank.journal (client int, number int, pad text, "
        "primary key (client, number)) engine=shale",
        f"insert into bank.account select seq, 100 from seq_0_to_{ACCOUNTS - 1}",
    )
    stop = threading.Event()
    folder = layout.folder / "backup"
    timer = threading.Timer(3, lambda: None)

    def back_up() -> None:
        timer.start()
        timer.join()  # some transactions before it, and some after
        backup(layout, str(folder), "--", f"--socket={source.socket}", "--user=root")
        timer.cancel()
        threading.Event().wait(2)
        stop.set()

    results = all_of([(back_up,), *((work, source, n, stop) for n in range(CLIENTS))])
    place = dict(line.split("=", 1) for line in (folder / "binlog-position").read_text().split())
    copy = Server(layout, "copy", ["server-id=2"])
    backup(layout, "--restore", str(folder), str(copy.data))
    copy.start()
    whole(copy)
    then = copy.run("select count(*) from bank.journal")[0][0]
    committed = sum(results[1:])
    assert 0 < then < committed, (then, committed)
    assert place["gtid"].split("-")[0] == "0", place
    replay(layout, source, copy, place)
    whole(copy)
    assert state(copy) == state(source)
    say(f"backup: {then} of {committed} transactions in the backup, all after the replay")
    source.stop()
    copy.stop()
    if not os.environ.get("KEEP"):
        shutil.rmtree(folder)
        layout.remove()


if __name__ == "__main__":
    main()
