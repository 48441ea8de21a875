"""Single tables come back out of a backup, beside those that go on, and the backup stays as it is.

    restore_table.py [--rows 3000] [--seed N]

Tables of many kinds are filled, `mariadb/backup` is made, and rows change. `IMPORT TABLESPACE` with
`shale_import_from` then has the rows of the backup: in the table itself, in another one beside it,
and of a partition in a table of its own. What is not as it should be is refused by name. The server
is killed in the middle: the table is discarded, or has all of the backup's rows.
"""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import random
import shutil
import subprocess
import sys
import time
from typing import Any

import pymysql

import server as servers

TABLES = {
    "plain": "(id int primary key auto_increment, a varchar(100), b decimal(20, 3), c text, key (a),"
             " unique (b)) compression='zstd:3'",
    "hidden": "(a int, b varchar(200), key (a)) dictionary='on'",
    "words": "(id int primary key, body text, fulltext (body))",
    "places": "(id int primary key, p geometry not null, spatial (p))",
    "past": "(id int primary key, a varchar(50)) with system versioning",
    "parts": "(id int primary key, a varchar(50)) partition by hash (id) partitions 3",
    "parent": "(id int primary key)",
    "child": "(id int primary key, parent int, foreign key (parent) references parent (id)"
             " on delete cascade)",
}
FILL = {
    "plain": "insert into plain (a, b, c) select concat('name ', seq), seq / 7 + seq,"
             " repeat(md5(seq), seq % 20) from seq_1_to_{rows}",
    "hidden": "insert into hidden select seq % 100, concat('row of no key ', seq) from seq_1_to_{rows}",
    "words": "insert into words select seq, concat('word', seq % 37, ' common number', seq % 5)"
             " from seq_1_to_{rows}",
    "places": "insert into places select seq, point(seq % 91, seq % 83) from seq_1_to_{rows}",
    "past": "insert into past select seq, 'first' from seq_1_to_{rows}",
    "parts": "insert into parts select seq, concat('part ', seq) from seq_1_to_{rows}",
    "parent": "insert into parent select seq from seq_1_to_50",
    "child": "insert into child select seq, seq % 50 + 1 from seq_1_to_{rows}",
}
MORE = ["update past set a = 'second' where id % 3 = 0", "delete from plain where id % 11 = 0",
        "delete from words where id % 7 = 0", "update hidden set b = 'changed' where a = 5"]
LATER = ["delete from plain where id % 2 = 0", "insert into plain (a, b) values ('late', -1)",
         "update hidden set b = 'later'", "delete from words", "insert into words values (1, 'new')",
         "delete from places where id > 5", "update past set a = 'third'", "delete from child"]
ASKED = ["select count(*), sum(id) from words where match (body) against ('word7')",
         "select count(*) from places where mbrwithin(p, st_geomfromtext("
         "'polygon((10 10, 30 10, 30 30, 10 30, 10 10))'))",
         "select count(*), sum(id) from past for system_time all where a = 'first'",
         "select count(*) from plain where a like 'name 1%'", "select count(*) from hidden where a = 5"]


def files_of(folder: pathlib.Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(folder.rglob("*")) if file.is_file()}


def state(server: servers.Server, database: str = "shop") -> dict[str, Any]:
    found: dict[str, Any] = {
        table: server.run(f"checksum table {table} extended", database=database)[0][1]
        for table in TABLES}
    found["past"] = server.run("select md5(group_concat(id, a, row_start, row_end order by id,"
                               " row_end)) from past for system_time all", database=database)
    return found | {words: server.run(words, database=database) for words in ASKED}


def backup(layout: servers.Layout, server: servers.Server, folder: pathlib.Path) -> None:
    environment = dict(layout.environment, MARIADB=str(layout.server / "bin/mariadb"))
    subprocess.run([str(servers.HERE.parent / "backup"), str(folder), "--", "--no-defaults",
                    f"--socket={server.socket}", "--user=root"], env=environment, check=True,
                   stdout=sys.stderr, stderr=subprocess.DEVNULL)


def bring_back(server: servers.Server, table: str, source: str) -> None:
    server.run(f"alter table {table} discard tablespace",
               f"set shale_import_from = '{source}'", f"alter table {table} import tablespace",
               database="shop")
    answer = server.run(f"check table {table} extended", database="shop")
    assert answer[-1][3] == "OK", answer


def refused(server: servers.Server, number: int, words: str, *statements: str) -> None:
    try:
        server.run(*statements, database="shop")
    except pymysql.err.MySQLError as error:
        assert error.args[0] == number and words in error.args[1], error
        return
    raise AssertionError(f"not refused: {statements[-1]}")


def check_refusals(layout: servers.Layout, server: servers.Server, folder: pathlib.Path) -> None:
    server.run("create table lonely (id int primary key) engine=shale",
               "alter table lonely discard tablespace", database="shop")
    lonely = "alter table lonely import tablespace"
    refused(server, 1812, "has no table shop/lonely", f"set shale_import_from = '{folder}'", lonely)
    refused(server, 1812, "/nowhere", "set shale_import_from = '/nowhere'", lonely)
    refused(server, 1808, "parent", f"set shale_import_from = '{folder}/definitions/shop/child'", lonely)
    server.run("create user plain@localhost", "grant all on shop.* to plain@localhost")
    plain = pymysql.connect(unix_socket=str(server.socket), user="plain", database="shop")
    try:
        plain.cursor().execute(f"set shale_import_from = '{folder}'")
        raise AssertionError("FILE is not asked for")
    except pymysql.err.MySQLError as error:
        assert error.args[0] == 1227, error
    plain.close()
    # A backup with a damaged file: the error names it, the table stays discarded.
    damaged = folder.with_name("damaged")
    shutil.copytree(folder, damaged)
    for file in (damaged / "shale").iterdir():
        if file.stat().st_size > 20000:
            data = bytearray(file.read_bytes())
            for at in range(2000, len(data) - 2000, 3000):
                data[at] ^= 0x55
            file.write_bytes(data)
    before = state(server)
    server.run("create table again like plain", "alter table again discard tablespace",
               database="shop")
    refused(server, 1816, "damaged", f"set shale_import_from = '{damaged}/definitions/shop/plain'",
            "alter table again import tablespace")
    refused(server, 1814, "discarded", "select * from again")
    shutil.rmtree(damaged)
    assert state(server) == before, "a refusal has changed another table"
    server.run("drop table again, lonely", database="shop")


def kill_meanwhile(server: servers.Server, folder: pathlib.Path, chance: random.Random) -> int:
    """How often the table was whole afterwards."""
    whole = 0
    wanted = server.run("checksum table plain extended", database="shop")[0][1]
    for _ in range(4):
        server.run("alter table plain discard tablespace", database="shop")
        connection = server.connect("shop")
        work = servers.Running(lambda: [connection.cursor().execute(one) for one in (
            f"set shale_import_from = '{folder}'", "alter table plain import tablespace")])
        time.sleep(chance.random() * 0.1)
        server.kill()
        try:
            work.get()
        except pymysql.err.MySQLError:
            pass
        server.start()
        try:
            found = server.run("checksum table plain extended", database="shop")[0][1]
        except pymysql.err.MySQLError as error:
            assert error.args[0] == 1814, error
            found = None
        if found is not None:
            assert found == wanted, "rows are missing after the kill"
            whole += 1
        else:
            server.run(f"set shale_import_from = '{folder}'", "alter table plain import tablespace",
                       database="shop")
        assert server.run("checksum table plain extended", database="shop")[0][1] == wanted
    return whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    layout = servers.Layout()
    server = servers.Server(layout, "shop", [
        "default-storage-engine=SHALE", "group-concat-max-len=1073741824"])
    server.start()
    folder = layout.folder / "definitions" / "monday"
    folder.parent.mkdir()
    try:
        server.run("create database shop")
        for table, columns in TABLES.items():
            server.run(f"create table {table} {columns}",
                       FILL[table].format(rows=given.rows), database="shop")
        server.run("set global shale_wait_idle = on")
        server.run(*MORE, database="shop")
        was = state(server)
        backup(layout, server, folder)
        files = files_of(folder)
        server.run(*LATER, database="shop")
        assert state(server) != was
        for table in TABLES:
            if table not in ("parent", "parts"):
                bring_back(server, table, str(folder))
        assert state(server) == was, "not the backup's rows"
        number = server.run("insert into plain (a, b) values ('next', -5)",
                            "select max(id) from plain", database="shop")[0][0]
        assert number > given.rows, number
        server.run("delete from plain where a = 'next'", database="shop")
        # Beside the table, and out of a partition.
        server.run("create table beside like plain", "create table part1 (id int primary key,"
                   " a varchar(50))", "drop table words", database="shop")
        bring_back(server, "beside", f"{folder}/definitions/shop/plain.frm")
        assert server.run("checksum table beside extended", database="shop")[0][1] == was["plain"]
        bring_back(server, "part1", f"{folder}/definitions/shop/parts#P#p1")
        assert server.run("select * from part1 except select * from parts partition (p1)",
                          database="shop") == []
        assert server.run("select count(*) from part1", database="shop") == server.run(
            "select count(*) from parts partition (p1)", database="shop")
        # A table that was dropped.
        server.run(f"create table words {TABLES['words']}", database="shop")
        bring_back(server, "words", str(folder))
        assert state(server) == was
        check_refusals(layout, server, folder)
        whole = kill_meanwhile(server, folder, random.Random(given.seed))
        assert files_of(folder) == files, "the backup has changed"
        server.stop()
        server.start()
        assert state(server) == was
        server.stop()
    except BaseException:
        servers.say(f"--seed {given.seed}: the servers' data and logs: {layout.folder}")
        raise
    servers.say(f"restore_table: {len(TABLES) + 2} tables out of a backup; after 4 kills meanwhile"
                f" {whole} were whole, the others discarded")
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
