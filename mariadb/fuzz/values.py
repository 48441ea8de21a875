"""Types of columns, and values that are hard on them: at their ends, equal by collation, NULL."""

from __future__ import annotations

import dataclasses
import random

# Families decide which values and which expressions a column gets.
COLLATIONS = [
    "utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_nopad_bin", "utf8mb4_unicode_ci",
    "latin1_swedish_ci", "latin1_bin", "latin1_german2_ci", "utf8mb4_czech_ci", "utf8mb3_czech_ci",
    "latin2_czech_cs", "utf8mb4_danish_ci", "utf8mb4_uca1400_ai_ci",
    "utf8mb4_uca1400_nopad_as_cs", "utf8mb4_unicode_nopad_ci", "ucs2_general_ci", "utf16_bin",
    "utf32_unicode_ci", "gbk_chinese_ci", "sjis_japanese_ci", "tis620_thai_ci", "cp1250_czech_cs",
]
TEXTS = [
    "''", "'a'", "'A'", "'á'", "'b'", "'B'", "'ch'", "'CH'", "'c'", "'h'", "'ci'", "'ss'", "'ß'",
    "'a '", "'a  '", "' a'", "'ab'", "'aa'", "'å'", "'abcde'", "'abcdef'", "'abcdeg'", "'ABCDEF'",
    "'10'", "'1a'", "'z'", "'ž'", "'\\t'", "'a\\0'", "'zzzzzzzz'", "'ll'", "'ae'", "'æ'", "'x_y%'",
    "repeat('ab',20)", "repeat('q',255)",
]
LONG = ["repeat('xy',400)", "repeat('x',767)", "concat(repeat('x',800),'y')", "repeat('z',5000)",
        "repeat('ab',20000)"]
BYTES = ["''", "'a'", "'A'", "'a '", "x'00'", "x'61'", "x'6100'", "x'ff'", "x'ffff'", "x'00ff00'",
         "'abc'", "'abcdef'", "'abcdeg'", "x'80'", "repeat('b',20)"]


@dataclasses.dataclass
class Type:
    sql: str
    family: str
    values: list[str]
    collation: str = ""
    # What a key of it may need: the length of a prefix.
    prefix: int = 0
    key: bool = True
    # What such a column `g` is asked for, by the values `w` and `v`; else it is compared.
    asked: list[str] = dataclasses.field(default_factory=list)

    def declared(self) -> str:
        if not self.collation:
            return self.sql
        return f"{self.sql} character set {self.collation.split('_')[0]} collate {self.collation}"


def whole(name: str, low: int, high: int, unsigned: bool) -> Type:
    values = [str(n) for n in range(0 if unsigned else -3, 12)] + [str(low), str(high), str(high - 1)]
    return Type(name, "whole", values + ["5", "7", "7"])


def whole_type(chance: random.Random) -> Type:
    bits, name = chance.choice([(8, "tinyint"), (16, "smallint"), (24, "mediumint"), (32, "int"),
                                (32, "int"), (32, "int"), (64, "bigint"), (64, "bigint")])
    kind = chance.random()
    if kind < 0.25:
        return whole(f"{name} unsigned", 0, 2**bits - 1, True)
    if kind < 0.3:
        return whole(f"{name}(6) zerofill", 0, 2**bits - 1, True)
    return whole(name, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, False)


def number_type(chance: random.Random) -> Type:
    kind = chance.randrange(6)
    some = ["0", "1", "-1", "1.5", "2.25", "-0.01", "99.99", "7", "3", "0.5"]
    if kind == 0:
        return Type("decimal(10,2)", "decimal", some)
    if kind == 1:
        return Type("decimal(30,10)", "decimal", some + ["12345678901234567890.0123456789"])
    if kind == 2:
        return Type("decimal(5,0) unsigned", "decimal", ["0", "1", "2", "99999", "5.4", "7"])
    if kind == 3:
        return Type("float", "real", ["0", "1.5", "-1.5", "0.25", "1024", "-0.0", "3e10"])
    if kind == 4:
        return Type("double", "real", ["0", "1.5", "-1.5", "0.1", "1e300", "-1e-300", "-0.0"])
    width = chance.choice([1, 7, 8, 13, 64])
    values = ["b'0'", "b'1'"] + (["b'101'", "b'1111111'"] if width > 3 else [])
    return Type(f"bit({width})", "bit", values)


def time_type(chance: random.Random) -> Type:
    kind = chance.randrange(8)
    dates = ["'2000-01-01'", "'2001-02-03'", "'2001-02-04'", "'1999-12-31'", "'2024-02-29'",
             "'9999-12-31'", "'2001-02-03'"]
    moments = ["'2000-01-01 00:00:00'", "'2001-02-03 04:05:06'", "'2001-02-03 04:05:06.789012'",
               "'2010-10-10 10:10:10.5'", "'2037-12-31 23:59:59'", "'2001-02-03'"]
    if kind == 0:
        return Type("date", "date", dates + ["'1000-01-01'"])
    if kind == 1:
        part = chance.choice(["", "(3)", "(6)"])
        return Type("time" + part, "time", ["'00:00:00'", "'-01:00:00'", "'12:34:56.789'",
                                            "'838:59:59'", "'-838:59:59'", "'01:02:03'"])
    if kind in (2, 3):
        return Type("datetime" + chance.choice(["", "(1)", "(6)"]), "datetime", moments)
    if kind in (4, 5):
        part = chance.choice(["", "(2)", "(6)"])
        return Type(f"timestamp{part} null", "timestamp", moments)
    if kind == 6:
        return Type("year", "year", ["2000", "1999", "2155", "1901", "0", "2024"])
    return Type("date", "date", dates)


def text_type(chance: random.Random) -> Type:
    collation = chance.choice(COLLATIONS) if chance.random() < 0.75 else ""
    kind = chance.random()
    if kind < 0.12:
        return Type("char(0)", "text", ["''"], collation, key=False)
    if kind < 0.7:
        word, width = chance.choice([("char", 5), ("char", 20), ("char", 1), ("varchar", 1), ("varchar", 5),
                                     ("varchar", 20), ("varchar", 20), ("varchar", 100),
                                     ("varchar", 255)])
        fits = [one for one in TEXTS if len(eval_text(one)) <= width]
        return Type(f"{word}({width})", "text", fits, collation)
    if kind < 0.8:
        return Type("varchar(2000)", "text", TEXTS + LONG[:3], collation, 20)
    name = chance.choice(["tinytext", "text", "text", "mediumtext", "longtext"])
    return Type(name, "text", TEXTS + (LONG[:3] if name == "tinytext" else LONG), collation, 10)


def other_type(chance: random.Random) -> Type:
    kind = chance.randrange(11)
    if kind == 0:
        return Type("binary(4)", "bytes", BYTES[:11] + BYTES[13:14])
    if kind in (1, 2):
        return Type("varbinary(20)", "bytes", BYTES)
    if kind in (3, 4):
        return Type(chance.choice(["tinyblob", "blob", "mediumblob", "longblob"]), "bytes",
                    BYTES + ["repeat(x'ff',300)", "repeat('b',9000)"], prefix=8)
    if kind == 5:
        return Type("enum('a','b','C','longer one','')", "enum",
                    ["'a'", "'b'", "'c'", "'longer one'", "''", "1", "3"])
    if kind == 6:
        return Type("set('a','b','c','d')", "set", ["''", "'a'", "'a,b'", "'d'", "'b,d'", "7"])
    if kind == 7:
        return Type("inet6", "inet6", ["'::1'", "'::ffff:1.2.3.4'", "'2001:db8::ff00:42:8329'", "'::'"])
    if kind == 8:
        return Type("uuid", "uuid", ["'123e4567-e89b-12d3-a456-426655440000'",
                                     "'00000000-0000-0000-0000-000000000001'",
                                     "'ffffffff-ffff-ffff-ffff-ffffffffffff'"])
    if kind == 9:
        return Type("json", "json", ["'{}'", "'[1,2]'", "'{\"a\":1}'", "'\"x\"'", "'null'", "'1'"],
                    prefix=10)
    return Type("boolean", "whole", ["0", "1", "true"])


def eval_text(literal: str) -> str:
    """About what a literal stands for; its length is what counts."""
    if literal.startswith("repeat"):
        return "x" * (40 if "ab" in literal else 255)
    return literal[1:-1].replace("\\", "")


def any_type(chance: random.Random) -> Type:
    kind = chance.random()
    if kind < 0.32:
        return whole_type(chance)
    if kind < 0.44:
        return number_type(chance)
    if kind < 0.56:
        return time_type(chance)
    if kind < 0.8:
        return text_type(chance)
    return other_type(chance)


def literal(chance: random.Random, kind: Type, null: bool, odd: float = 0.02) -> str:
    if null and chance.random() < 0.15:
        return "NULL"
    if chance.random() < odd:
        return chance.choice(["'x'", "-1", "1e20", "''", "NULL", "'2001-02-30'", "0x41"])
    return chance.choice(kind.values)
