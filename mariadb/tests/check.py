"""CHECK TABLE finds what is wrong, and tells table, index, key and file. Entries and rows are
changed behind the server's back, by the command line tool; then bytes of files are."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pymysql

from server import Layout, Server, say, tool

ER_CRASHED_ON_USAGE = 1194


def check(server: Server, table: str, option: str = "") -> tuple[str, list[str]]:
    """The result, and the findings."""
    rows = server.run(f"check table test.{table} {option}")
    return rows[-1][3], [row[3] for row in rows[:-1]]


def expect(server: Server, table: str, *findings: tuple[str, ...]) -> None:
    """CHECK TABLE finds just these, each given by words that its text has."""
    result, texts = check(server, table)
    assert result == "Corrupt" and len(texts) == len(findings), (result, texts)
    for words in findings:
        assert any(all(word in text for word in words) for text in texts), (words, texts)
    log = server.log.read_text(errors="replace")
    assert f"table test.{table}: {texts[0].removeprefix('SHALE: ')}" in log


def entries(server: Server, shale: str) -> None:
    """Entries that are not what the rows say."""
    server.run(
        "create table test.t (id int unsigned primary key, a int unsigned not null, "
        "key by_a (a), unique u (a, id)) engine=shale",
        "use test",
        "insert into t select seq, seq * 2 from seq_1_to_300",
    )
    assert check(server, "t") == ("OK", [])
    found = server.run(
        "select index_name, tree from information_schema.shale_trees where table_name = 't'"
    )
    trees = dict(found)
    server.stop()

    def change(command: str, key: str, *value: str, index: str) -> None:
        folder = str(server.data / "#shale")
        arguments = [shale, command, folder, key, *value, "--tree", trees[index], "--hex"]
        subprocess.run(arguments, check=True)

    # An entry of no row (a 7, row 999), a row without its entry (a 20, row 10): unsigned numbers
    # are four bytes, the highest first.
    change("put", "00000007000003e7", "", index="by_a")
    change("delete", "000000140000000a", index="by_a")
    server.start()
    expect(server, "t", ("index by_a", "0x0000000a", "no entry"),
           ("index by_a", "0x000003e7", "not there"))
    # As many entries as rows: a count alone does not see it.
    assert check(server, "t", "quick")[0] == "OK"
    server.stop()
    change("delete", "00000007000003e7", index="by_a")
    server.start()
    assert check(server, "t", "quick")[0] == "Corrupt"
    server.stop()

    # A row that does not decode. What it has in the indexes is not known, and not guessed.
    change("put", "000000140000000a", "", index="by_a")
    change("put", "00000005", "ffff", index="PRIMARY")
    server.start()
    expect(server, "t", ("row of primary key 0x00000005", "damaged"))


def entries_of_words(server: Server, shale: str) -> None:
    """A row has an entry for each of its words."""
    server.run(
        "create table test.w (id int unsigned primary key, a text, fulltext f (a)) engine=shale",
        "use test",
        "insert into w select seq, concat('common word', seq, ' other', seq) from seq_1_to_300",
    )
    assert check(server, "w", "extended") == ("OK", [])
    [(tree,)] = server.run("select tree from information_schema.shale_trees "
                           "where table_name = 'w' and index_name = 'f'")
    server.stop()
    folder = str(server.data / "#shale")
    lines = subprocess.run([shale, "scan", folder, "--tree", tree, "--hex", "--json"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    # Of row 7: the common word, then its number's.
    first, second, third = [row["key_hex"] for row in rows if row["key_hex"].endswith("00000007")]
    value = rows[0]["value_hex"]

    def change(command: str, *texts: str) -> None:
        subprocess.run([shale, command, folder, *texts, "--tree", tree, "--hex"], check=True)

    # Row 8 has the words of row 7, and so has a row 999 that is not there.
    change("put", second[:-8] + "00000008", value)
    change("put", third[:-8] + "00000008", value)
    change("put", first[:-8] + "000003e7", value)
    server.start()
    expect(server, "w", ("index f has 903 entries for 900",), (second[:-8], "does not have"),
           (third[:-8], "does not have"), ("0x000003e7", "not there"))
    server.stop()
    # One is wrong, one lacks.
    change("put", second, "63")
    change("delete", first)
    server.start()
    expect(server, "w", ("index f has 902 entries for 900",), (second[:-8], "does not have"),
           (third[:-8], "does not have"), ("0x000003e7", "not there"),
           ("0x00000007", "wrong entry"), ("0x00000007", "no entry"))
    server.run("drop table test.w")


def in_the_way(server: Server, shale: str) -> None:
    """Rows that a unique key should have kept apart, of which the server checks the rows: they are taken,
    with their entries, from a table of the same definition without the row that is in the way."""
    definitions = {
        "hashed": "id int unsigned primary key, v text, g int, unique u (v, g)",
        "period": "id int unsigned primary key, v varchar(20), b date, e date, period for p (b, e), "
                  "unique u (v(3), p without overlaps)",
    }
    values = {
        "hashed": ("(1, 'a', 1), (2, 'b', 1), (3, null, 1), (4, null, 1), (5, 'a', 2)", "(2, 'A', 1)"),
        "period": ("(1, 'abcd', '2020-01-01', '2020-02-01'), (2, 'x', '2020-01-01', '2020-02-01'), "
                   "(3, null, '2020-01-01', '2020-02-01'), (4, null, '2020-01-01', '2020-02-01'), "
                   "(5, 'abcd', '2020-02-01', '2020-02-05')",
                   "(2, 'abce', '2020-01-31', '2020-02-01')"),
    }
    for table, definition in definitions.items():
        server.run("use test", f"create table {table} ({definition}) engine=shale",
                   f"create table {table}_2 like {table}", f"insert into {table} values {values[table][0]}",
                   f"insert into {table}_2 values {values[table][1]}")
        assert check(server, table, "extended") == ("OK", [])
    trees = {(row[0], row[1]): row[2] for row in server.run(
        "select table_name, index_name, tree from information_schema.shale_trees")}
    server.stop()
    folder = str(server.data / "#shale")

    def entries_of(tree: str) -> dict[str, str]:
        command = [shale, "scan", folder, "--tree", tree, "--hex", "--json"]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        rows = [json.loads(line) for line in lines.splitlines()]
        return {row["key_hex"]: row.get("value_hex", "") for row in rows}

    def change(command: str, tree: str, *texts: str) -> None:
        subprocess.run([shale, command, folder, *texts, "--tree", tree, "--hex"], check=True)

    number = "00000002"
    for table in definitions:
        for index in ("PRIMARY", "u"):
            own, other = trees[table, index], trees[f"{table}_2", index]
            for key, value in entries_of(own).items():
                # Of the second row: by its number at the end of the key, or in the value.
                if key.endswith(number) or (table == "period" and value.startswith(f"04{number}")):
                    change("delete", own, key)
            (key, value), = entries_of(other).items()
            change("put", own, key, value)
    server.start()
    for table, words in {"hashed": "same for two rows", "period": "periods that overlap"}.items():
        found = check(server, table)
        assert found == ("OK", []), (table, found)
        result, texts = check(server, table, "extended")
        assert result == "Corrupt" and len(texts) == 1, (table, result, texts)
        assert "index u" in texts[0] and words in texts[0], (table, texts)
    server.run("drop table test.hashed, test.period, test.hashed_2, test.period_2")


def damage(file: pathlib.Path) -> None:
    with open(file, "r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        byte = opened.read(1)
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte[0] ^ 1]))


def files(server: Server) -> None:
    """A byte of a file is another."""
    folder = server.data / "#shale"

    def file_made_by(*statements: str) -> pathlib.Path:
        """The largest that is new: of the tree that the statements have filled."""
        before = set(folder.glob("*.table"))
        server.run("use test", *statements, "set global shale_wait_idle = on")
        return max(set(folder.glob("*.table")) - before, key=lambda file: file.stat().st_size)

    rows = file_made_by("create table d (id int primary key, a int, b int) engine=shale",
                        "insert into d select seq, seq * 7 % 1000, seq from seq_1_to_20000")
    index = file_made_by("alter table d add key by_a (a)")
    server.run("alter table test.d add key by_b (b)")
    assert check(server, "d", "extended") == ("OK", [])
    server.stop()
    damage(index)
    server.start()
    expect(server, "d", ("index by_a", "cannot be read", index.name))
    # The rows are there, and so is the other index; nothing wrong is served.
    assert server.run("select sum(b) from test.d force index (primary)") == [(200010000,)]
    assert server.run("select count(*) from test.d force index (by_b) where b > 0") == [(20000,)]
    try:
        wrong = server.run("select count(*) from test.d force index (by_a) where a >= 0")
        raise SystemExit(f"check: a damaged index answered {wrong}")
    except pymysql.Error as error:
        assert error.args[0] == ER_CRASHED_ON_USAGE and index.name in error.args[1], error
    # The way out that needs no backup.
    server.run("alter table test.d drop key by_a", "alter table test.d add key by_a (a)")
    assert check(server, "d") == ("OK", [])
    server.stop()
    damage(rows)
    server.start()
    expect(server, "d", ("rows (its primary key)", "cannot be read", rows.name))


def server_files(server: Server) -> None:
    """Files that the server keeps of tables are lost: no row goes with them, until DROP TABLE."""
    create = "create table test.{} (id int primary key, a int) engine=shale {}"
    partitioned = create.format("p", "partition by hash(id) partitions 3")
    plain = create.format("o", "")
    server.run("use test", partitioned, plain, "insert into p select seq, seq from seq_1_to_90",
               "insert into o select * from p")
    server.stop()
    names = ("test/p.frm", "test/p.par", "test/o.frm")
    kept = {name: (server.data / name).read_bytes() for name in names}

    def start_without(*lost: str) -> str:
        """What the log says of a start without these files."""
        for name in lost:
            (server.data / name).unlink()
        offset = server.log.stat().st_size
        server.start()
        return server.log.read_text(errors="replace")[offset:]

    def restore() -> None:
        for name, content in kept.items():
            (server.data / name).write_bytes(content)

    assert "SHALE: table" not in start_without("test/p.par"), "the .frm is there"
    server.stop()
    restore()
    assert start_without("test/p.frm", "test/p.par", "test/o.frm").count("no .frm file") == 2
    # Nothing is made over them, and what undoes that leaves them alone; so does the next start.
    refused = [partitioned, plain, plain.replace("table test.o", "or replace table test.o"),
               create.format("p", ""), create.format("p", "partition by key(id) partitions 5"),
               "rename table test.n to test.p", "rename table test.n to test.o"]
    server.run(create.format("n", ""))
    for again in range(2):
        for statement in refused:
            server.refuses(statement, "without its .frm")
        server.kill() if again == 0 else server.stop()
        if again == 0:
            server.start()
    restore()
    assert "SHALE: table" not in start_without()
    assert server.run("select count(*), sum(a) from test.p") == [(90, 4095)]
    assert server.run("select count(*), sum(a) from test.o") == [(90, 4095)]
    server.stop()
    # Restored while the server runs: it is a table as others from its first use on.
    start_without("test/p.frm", "test/p.par", "test/o.frm")
    restore()
    for table in "po":
        assert server.run(f"select count(*), sum(a) from test.{table}") == [(90, 4095)]
    server.run("alter table test.p drop column a, add b int default 3",
               "create or replace table test.o (id int primary key) engine=shale")
    assert server.run("select count(*), sum(b) from test.p") == [(90, 270)]
    server.stop()
    kept = {name: (server.data / name).read_bytes() for name in names}
    # The way out that the log names.
    start_without("test/p.frm")
    server.run("drop table test.p", partitioned)
    server.stop()
    start_without("test/p.frm", "test/p.par", "test/o.frm")
    server.run("drop table test.p, test.o", partitioned, plain)
    assert server.run("select count(*) from test.p union all select count(*) from test.o") == [
        (0,), (0,)]
    server.stop()
    assert "SHALE: table" not in start_without()
    # Now they are like any other, so that a CREATE or a DROP that is killed is undone or finished.
    server.run("drop table test.p, test.o, test.n")
    assert server.run("select count(*) from information_schema.shale_trees "
                      "where table_name in ('p', 'o')") == [(0,)]
    # They go with their database.
    server.run(partitioned, plain)
    server.stop()
    assert start_without("test/p.frm", "test/o.frm").count("no .frm file") == 2
    server.run("drop database test", "create database test", partitioned, plain)
    assert server.run("select count(*) from test.p union all select count(*) from test.o") == [
        (0,), (0,)]
    server.stop()
    assert "SHALE: table" not in start_without()


def main() -> None:
    layout = Layout()
    server = Server(layout, "check")
    shale = tool()
    server.start()
    server.run("create database if not exists test")
    entries(server, shale)
    entries_of_words(server, shale)
    in_the_way(server, shale)
    files(server)
    server_files(server)
    server.stop()
    say("check: each kind of damage was found, and told with table, index, key or file")
    layout.remove()


if __name__ == "__main__":
    main()
