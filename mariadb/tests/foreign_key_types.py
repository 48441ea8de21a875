"""Which types InnoDB lets reference which, and which of their values it finds.

    foreign_key_types.py [--record]

Each type is the child of each other. Of pairs that are accepted, the parent has one of the values
below, and each of the child's is tried: with many, InnoDB does not find some of those that it takes
for equal, since it searches for a DECIMAL as if VARBINARY were padded with spaces. Of NO PAD collations
no values of CHAR and VARCHAR are tried on each other: InnoDB's server crashes (10.11.18, row0ins.cc,
"cmp < 0"). The answers are held against `shale/tests/foreign_key_types.txt`, which
--record writes and the unit test key_shape_test compares the plugin with.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import pymysql

from server import Layout, Server, say

FILE = pathlib.Path(__file__).resolve().parent.parent / "shale/tests/foreign_key_types.txt"
MISSING_PARENT, REFUSED = 1452, 1005

SIGNED = ["-1", "0", "1", "7", "101"]
UNSIGNED = ["0", "1", "7", "101", "200"]
DAY = "1034273"  # as 2020-01-01 is kept
BYTES = ["''", "x'00'", "x'20'", "x'41'", "x'80'", "x'8000'", "x'8C22'", "x'800132'", "x'801000'",
         "x'00000001'", "x'000000000000000000000000000000'", "'a'", "'A'", "'a '",
         "x'00000000000000000000000000000001'", "x'00000000000100000000000000000000'"]
TEXTS = ["''", "'a'", "'A'", "'a '", "'abc'", "'ABC'", "'ab '", "'ab\\t'", "'\xe4'", "'\xdf'", "'ss'"]


def texts(charset: str, collation: str) -> list[tuple[str, list[str]]]:
    named = f"character set {charset} collate {collation}"
    return [(f"{kind} {named}", TEXTS) for kind in ("char(3)", "char(5)", "varchar(3)", "varchar(10)")]


def named(count: int) -> str:
    """So many names of an ENUM or a SET."""
    return ", ".join(f"'n{number}'" for number in range(count))


TYPES: list[tuple[str, list[str]]] = [
    *[(name, SIGNED) for name in ("tinyint", "smallint", "int", "bigint")],
    ("mediumint", [*SIGNED, DAY]),
    *[(f"{name} unsigned", UNSIGNED) for name in ("tinyint", "smallint", "int", "bigint")],
    ("mediumint unsigned", [*UNSIGNED, DAY]),
    ("int(3) unsigned zerofill", UNSIGNED),
    ("year", ["1901", "1907", "2001"]),
    ("enum('a', 'b')", ["'a'", "'b'"]),
    ("enum('c', 'd', 'e') character set latin1", ["'c'", "'e'"]),
    (f"enum({named(300)})", ["1", "7", "200"]),
    ("set('x', 'y')", ["'x'", "'x,y'"]),
    *[(f"set({named(n)})", ["1", "7"]) for n in (9, 17, 25, 64)],
    ("date", ["'2020-01-01'", "'0000-00-00'"]),
    ("float", ["0", "-0e0", "1.5", "-1.5"]),
    ("double", ["0", "-0e0", "1.5", "-1.5"]),
    ("float unsigned", ["0", "1.5"]),
    ("double(10, 2)", ["0", "1.5"]),
    *[(f"decimal({digits})", ["0", "1.5", "16", "-1"]) for digits in ("5, 2", "10, 2", "5, 0")],
    ("decimal(5, 2) unsigned", ["0", "1.5", "16"]),
    ("decimal(4, 0)", ["0", "3106", "12"]),
    ("decimal(4, 2)", ["0", "12.34", "12"]),
    ("bit(1)", ["0", "1"]),
    ("bit(5)", ["0", "1", "7"]),
    ("bit(8)", ["0", "1", "128", "65"]),
    ("bit(9)", ["0", "1", "256"]),
    ("bit(16)", ["0", "1", "35874", "32768"]),
    ("bit(32)", ["0", "1"]),
    ("bit(64)", ["0", "1"]),
    ("time", ["'00:00:00'", "'01:00:00'", "'-01:00:00'"]),
    ("time(1)", ["'00:00:00'", "'01:00:00.5'"]),
    ("time(3)", ["'00:00:00'", "'01:00:00.5'"]),
    ("time(4)", ["'00:00:00'", "'01:00:00.5'"]),
    ("time(6)", ["'00:00:00'", "'01:00:00.5'"]),
    *[(f"datetime{n}", ["'2020-01-01'", "'2020-01-01 00:00:00.5'"])
      for n in ("", "(1)", "(2)", "(3)", "(6)")],
    *[(f"timestamp{n} null", ["'1970-01-01 00:00:01'", "'2020-01-01 00:00:00.5'"])
      for n in ("", "(1)", "(2)", "(3)", "(6)")],
    *[(f"binary({n})", BYTES) for n in (1, 2, 3, 4, 16)],
    *[(f"varbinary({n})", BYTES) for n in (3, 16, 300)],
    ("inet4", ["'0.0.0.0'", "'0.0.0.1'"]),
    ("inet6", ["'::'", "'::1'"]),
    ("uuid", ["'00000000-0000-0000-0000-000000000000'", "'00000000-0000-0000-0000-000000000001'"]),
    *texts("latin1", "latin1_swedish_ci"),
    *texts("latin1", "latin1_german2_ci"),
    *texts("latin1", "latin1_bin"),
    *texts("latin1", "latin1_swedish_nopad_ci"),
    *texts("latin1", "latin1_nopad_bin"),
    *texts("utf8mb4", "utf8mb4_general_ci"),
    *texts("utf8mb4", "utf8mb4_bin"),
    *texts("utf8mb4", "utf8mb4_unicode_ci"),
    *texts("utf8mb4", "utf8mb4_unicode_nopad_ci"),
    *texts("utf8mb4", "uca1400_as_cs"),
    *texts("utf8mb3", "utf8mb3_general_ci"),
    *texts("utf16", "utf16_general_ci"),
    *texts("latin2", "latin2_czech_cs"),
    *texts("tis620", "tis620_thai_ci"),
]


class InnoDB:
    """The answers: a number for the types that may reference each other, and what was found."""

    def __init__(self, server: Server) -> None:
        self.connection = server.connect("test", charset="utf8mb4")
        self.cursor = self.connection.cursor()
        for statement in ("set sql_mode = '', time_zone = '+00:00'",
                          "set default_storage_engine = InnoDB"):
            self.cursor.execute(statement)

    def try_it(self, statement: str) -> int:
        try:
            self.cursor.execute(statement)
            return 0
        except pymysql.err.Error as error:
            return int(error.args[0])

    def make_parents(self) -> None:
        """A table of each type with each of its values, alone in it."""
        for number, (kind, values) in enumerate(TYPES):
            for place, value in enumerate(values):
                self.cursor.execute(f"create table p{number}_{place} (x {kind}, key (x))")
                self.cursor.execute(f"insert into p{number}_{place} values ({value})")

    def make_child(self, child: int, parent: int, place: int) -> bool:
        statement = (f"create table c (x {TYPES[child][0]}, key (x),"
                     f" foreign key (x) references p{parent}_{place} (x))")
        error = self.try_it(statement)
        if error not in (0, REFUSED):
            raise SystemExit(f"{error}: {statement}")
        return error == 0

    @staticmethod
    def crashes(child: int, parent: int) -> bool:
        names = (TYPES[child][0], TYPES[parent][0])
        return "nopad" in names[0] and len({name.startswith("varchar") for name in names}) == 2

    def found(self, child: int, parent: int) -> list[int]:
        """The child's values that equal one of the parent's. Other values, though they are deleted,
        would be in the way of InnoDB's search."""
        found: set[int] = set()
        for place in range(len(TYPES[parent][1])):
            assert self.make_child(child, parent, place)
            for number, value in enumerate(TYPES[child][1]):
                error = self.try_it(f"insert into c values ({value})")
                if error == 0:
                    found.add(number)
                elif error != MISSING_PARENT:
                    raise SystemExit(f"{error}: {value} in {TYPES[child][0]}")
            self.cursor.execute("drop table c")
        return sorted(found)

    def answers(self) -> list[str]:
        self.make_parents()
        accepted: list[set[int]] = [set() for _ in TYPES]
        matches = []
        for child in range(len(TYPES)):
            for parent in range(len(TYPES)):
                if not self.make_child(child, parent, 0):
                    continue
                self.cursor.execute("drop table c")
                accepted[child].add(parent)
                found = [] if self.crashes(child, parent) else self.found(child, parent)
                if found:
                    matches.append(f"found {child} {parent} {' '.join(map(str, found))}")
        lines = []
        for number, (kind, values) in enumerate(TYPES):
            lines.append(f"type {min(accepted[number])} {kind}")
            lines += [f"value {value}" for value in values]
            # The answers are of classes: whom one accepts all of its class accept.
            if any(accepted[other] != accepted[number] for other in accepted[number]):
                raise SystemExit(f"{kind}: not as the others of its class")
        return lines + matches


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", action="store_true")
    record = parser.parse_args().record
    layout = Layout()
    server = Server(layout, "innodb", ["innodb-flush-log-at-trx-commit=0",
                                       "innodb-flush-method=nosync"])
    server.start()
    server.run("create database if not exists test")
    text = "\n".join(InnoDB(server).answers()) + "\n"
    server.stop()
    if record:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        other = layout.folder / FILE.name
        other.write_text(text, encoding="utf-8")
        say(f"InnoDB answers otherwise than {FILE}: see {other}")
        sys.exit(1)
    layout.remove()
    print(f"foreign_key_types: {len(TYPES)} types, {text.count('found ')} pairs with rows")


main()
