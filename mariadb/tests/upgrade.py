"""A catalog of before indexes had their parts in it is read, and gets them when tables are opened.

Tables are made and altered in all ways that change indexes or columns; what the catalog says of their
indexes is what new tables of the same definition have, and the server's log says nothing of it. Then
the definitions are written back in format 1 behind the server's back, by the command line tool, and
each table is opened once, by many at once: the definitions are what they were.
"""

from __future__ import annotations

import re
import subprocess

import pymysql

from server import Layout, Server, all_of, say, tool

SETUP = [
    "create table t (id int primary key, a int, b varchar(20) collate utf8mb4_bin, c char(5) not null,"
    " d decimal(5, 2), key a (a desc, b), unique u (c, d), key p (b(3)))",
    "create table hidden (a int, v int as (a + 1) virtual, key (v), key (a))",
    "create table long_hash (id int primary key, b blob, unique (b))",
    "create table parts (id int, A int, primary key (id), key by_a (A)) partition by hash (id)"
    " partitions 3",
    "create table other (ID int, a int, primary key (ID), key by_a (a))",
    "create table versioned (id int primary key, a int, key (a)) with system versioning",
]

CHANGES = [
    "alter table t rename column a to e",
    "alter table t change b f varchar(60) collate utf8mb4_bin",
    "alter table t modify c char(5) null",
    "alter table t rename index u to w",
    "alter table t add index x (d, f), drop index a",
    "alter table t add column g int after id, add unique y (g)",
    "alter table t drop column d, drop index w, drop index x",
    "alter table t change e E int",
    "alter table t add key z (c(2) desc, E)",
    "alter table t add column h int default 7, algorithm=instant",
    "truncate table t",
    "alter table t drop primary key, add primary key (id, E)",
    "alter table t convert to character set latin1",
    "create table copy like t",
    "rename table copy to moved",
    "alter table parts exchange partition p1 with table other",
    "alter table parts rename column A to n",
    "alter table parts add partition partitions 1",
    "alter table parts truncate partition p0",
    "alter table hidden add primary key (a)",
    "alter table hidden drop primary key",
    "optimize table t",
    "create or replace table selected (key (E)) select E, c from t",
    "create temporary table temporary (a int primary key)",
    "select * from temporary",
]


def numbers(data: bytes, at: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


class Definition:
    """A definition's bytes of format 2 or 3, in pieces."""

    def __init__(self, data: bytes) -> None:
        assert data[0] in (2, 3), data
        self.data = data
        self.at = 1
        for _ in range(4):
            self.number()
        self.text(), self.text()
        for _ in range(self.number()):
            for _ in range(3 * self.number()):
                self.number()
        for _ in range(self.number()):
            self.number(), self.number(), self.text()
        self.before = data[1 : self.at]
        self.count = self.number()
        self.indexes = []
        for _ in range(self.count):
            begin = self.at
            self.number()
            name = self.text()
            named = data[begin : self.at]
            begin = self.at
            self.number()
            for _ in range(self.number()):
                self.text(), self.number(), self.text(), self.text(), self.number()
            self.indexes.append((name, named, data[begin : self.at]))
        self.without_row_end = data[1 : self.at]
        self.row_end = (b"", 0) if data[0] == 2 else (self.text(), self.number())
        assert self.at == len(data)

    def number(self) -> int:
        value, self.at = numbers(self.data, self.at)
        return value

    def text(self) -> bytes:
        size = self.number()
        self.at += size
        return self.data[self.at - size : self.at]

    def format_1(self) -> bytes:
        named = b"".join(named for _, named, _ in self.indexes)
        return b"\1" + self.before + bytes([self.count]) + named

    def format_2(self) -> bytes:
        return b"\2" + self.without_row_end

    def of_format(self, number: int) -> bytes:
        return self.format_1() if number == 1 else self.format_2()

    def described(self) -> tuple[tuple[bytes, int], dict[bytes, bytes]]:
        return self.row_end, {name: parts for name, _, parts in self.indexes}


class Catalog:
    """The definitions of a server that is stopped, by path."""

    def __init__(self, server: Server, shale: str) -> None:
        self.folder = str(server.data / "#shale")
        self.shale = shale

    def run(self, command: str, *arguments: str) -> str:
        return subprocess.run(
            [self.shale, command, self.folder, *arguments, "--tree", "catalog", "--hex"],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout

    def read(self) -> dict[str, bytes]:
        lines = self.run("scan", "--prefix", b"T./test/".hex()).splitlines()
        pairs = [line.split() for line in lines]
        return {bytes.fromhex(key).decode(): bytes.fromhex(value) for key, value in pairs}

    def write(self, key: str, value: bytes) -> None:
        self.run("put", key.encode().hex(), value.hex())


def tables(server: Server) -> list[str]:
    found = server.run("select table_name from information_schema.tables where table_schema = 'test'")
    return [row[0] for row in found]


def no_word_of_it(server: Server) -> None:
    log = server.log.read_text(errors="replace")
    found = re.findall(r".*\[(?:Warning|ERROR)\] SHALE.*|.*indexes is not in the catalog.*", log)
    assert not found, found


def same_as_new(server: Server, catalog: Catalog) -> None:
    """What the catalog says of each table is what it says of a new one of the same definition."""
    names = tables(server)
    for name in names:
        shown = server.run(f"show create table test.{name}")[0][1]
        new = shown.replace(f"CREATE TABLE `{name}`", f"CREATE TABLE test.`new_{name}`")
        server.run(new)
    server.stop()
    definitions = catalog.read()
    for name in names:
        paths = [path for path in definitions if re.fullmatch(f"T./test/{name}(#P#.*)?", path)]
        assert paths, name
        for path in paths:
            new = Definition(definitions[path.replace("/test/", "/test/new_")])
            assert Definition(definitions[path]).described() == new.described(), path
    say(f"{len(names)} tables are in the catalog as new ones")


def upgraded(server: Server, catalog: Catalog, number: int) -> None:
    definitions = catalog.read()
    for path, data in definitions.items():
        catalog.write(path, Definition(data).of_format(number))
    assert all(data[0] == number for data in catalog.read().values())
    server.start()
    names = tables(server)
    child = "create table test.child (a int, foreign key (a) references test.versioned (id))"
    try:
        server.run(child)
        raise AssertionError("a foreign key of a table whose history is not known")
    except pymysql.err.OperationalError as error:
        assert error.args[0] == 1005, error

    def open_all(client: int) -> None:
        for name in names[client:] + names[:client]:
            server.run(f"select * from test.{name}")

    all_of([(open_all, client) for client in range(4)])
    server.run(child, "drop table test.child")
    server.run("alter table test.t rename column h to i")
    server.run("alter table test.t rename column i to h")
    server.stop()
    now = catalog.read()
    assert now.keys() == definitions.keys()
    for path, data in definitions.items():
        was, is_now = Definition(data), Definition(now[path])
        assert was.described() == is_now.described(), path
        # One that is whole as it is stays.
        stays = number == 2 and was.row_end == (b"", 0)
        if path != "T./test/t":
            assert now[path] == (was.format_2() if stays else data), path
    versioned = Definition(now["T./test/versioned"]).row_end
    assert versioned[0] == b"row_end", versioned
    say(f"{len(now)} definitions of format {number} are whole")


def main() -> None:
    layout = Layout()
    server = Server(layout, "upgrade")
    server.start()
    catalog = Catalog(server, tool())
    server.run("create database if not exists test", "use test", *SETUP)
    connection = server.connect("test")
    with connection.cursor() as cursor:
        for statement in CHANGES:
            try:
                cursor.execute(statement)
            except pymysql.err.Error as error:
                raise AssertionError(f"{statement}: {error}") from error
            for name in tables(server):
                server.run(f"select * from test.{name}")
    connection.close()
    same_as_new(server, catalog)
    no_word_of_it(server)
    for number in (1, 2):
        upgraded(server, catalog, number)
    no_word_of_it(server)
    layout.remove()
    print("upgrade: definitions of formats 1 and 2 are read, and completed")


main()
