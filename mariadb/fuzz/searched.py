"""Columns of words and of shapes for part (f), their indexes, and what they are searched for.

Texts and queries are those of tests/words.py, shapes and relations those of tests/spatial.py.
"""

from __future__ import annotations

import pathlib
import random
import sys

import schema
from schema import Column, Key, Table, quoted
from values import Type

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import spatial  # noqa: E402
import words  # noqa: E402

COLLATIONS = [
    "utf8mb4_general_ci", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "latin1_swedish_ci",
    "utf8mb4_bin", "utf8mb4_unicode_nopad_ci", "utf8mb4_uca1400_ai_ci", "utf8mb4_czech_ci",
    "latin2_general_ci", "cp1250_general_ci", "utf8mb3_general_ci", "utf8mb4_uca1400_as_cs",
]
# A scan finds these by a regular expression: no other word is equal to one by any collation.
PLAIN = ["storage", "engine", "compaction", "memtable", "snapshot", "sequence", "levels", "block",
         "merge", "disk", "flash", "banana", "2024", "data", "table", "row", "log", "tree"]
PLACES = ["grid", "grid", "grid", "degrees", "clusters", "zero", "tiny", "mixed"]
SHAPES = ["geometry", "geometry", "geometry", "point", "point", "polygon", "linestring", "multipoint",
          "multipolygon", "multilinestring", "geometrycollection"]
# Without an index a comparison of whole values only.
EQUAL = ["{g} = {w}", "{g} in ({w}, {v})"]
RELATIONS = [one.replace("(g,", "({g},").replace(", g)", ", {g})") for one in spatial.RELATIONS
             if " n " not in one]


def text_literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\t", "\\t") + "'"


def fitting(text: str, collation: str) -> str:
    """The text in letters that the character set has."""
    codec = {"latin1": "latin1", "latin2": "iso8859-2", "cp1250": "cp1250"}.get(collation.split("_")[0])
    return text if codec is None else text.encode(codec, "ignore").decode(codec)


def words_type(chance: random.Random, collation: str) -> Type:
    width, sql = chance.choice([(200, "varchar(200)"), (500, "varchar(500)"), (9999, "text"),
                                (9999, "text"), (9999, "mediumtext"), (100, "char(100)")])
    texts = [words.text(chance, chance.choice([3, 8, 20])) for _ in range(14)]
    texts += ["", chance.choice(words.WORDS), " ".join(chance.sample(PLAIN, 3))]
    return Type(sql, "text", [text_literal(fitting(text[:width], collation)) for text in texts],
                collation, 10)


def shape_type(chance: random.Random) -> Type:
    kind = chance.choice(SHAPES)
    made = spatial.Shapes(chance, chance.choice(PLACES), kind)
    shapes = [made.shape() for _ in range(12)]
    known = list(shapes)
    windows = [made.window(known) for _ in range(6)]
    number = chance.choice([0, 0, 0, 0, 0, 4326, 101])
    tail = f", {number}" if number else ""

    def literal(shape: str) -> str:
        return f"st_geomfromtext('{shape}'{tail})"

    sql = kind + (f" ref_system_id={number}" if number and chance.random() < 0.5 else "")
    relations = [one for one in RELATIONS if chance.random() < 0.5]
    near = [literal(one) for one in windows]
    relations = [one for one in relations if "disjoint" not in one]
    asked = [*EQUAL, *(one.replace("{w}", chance.choice(near)) for one in relations), *relations]
    return Type(sql, "shape", [literal(one) for one in shapes], prefix=32, asked=asked)


def words_column(chance: random.Random, table: Table, collation: str) -> Column:
    return Column(table.new_name(), words_type(chance, collation), null=chance.random() < 0.6)


def shape_column(chance: random.Random, table: Table) -> Column:
    return Column(table.new_name(), shape_type(chance), null=chance.random() < 0.15)


def words_key(chance: random.Random, table: Table) -> Key | None:
    """A FULLTEXT index; most are of columns of one collation, as all have to be."""
    able = [one for one in table.columns if one.type.family == "text" and one.base]
    if not able:
        return None
    first = chance.choice(able)
    same = [one for one in able if one is not first and one.type.collation == first.type.collation]
    if chance.random() < 0.03:
        same = [one for one in table.columns if one is not first]
    chosen = [first, *chance.sample(same, min(len(same), chance.choice([0, 0, 1, 2])))]
    table.serial += 1
    return Key(f"k{table.serial}", "fulltext key", [(one.name, 0, False) for one in chosen])


def shape_key(chance: random.Random, table: Table) -> Key | None:
    able = [one for one in table.columns if one.type.family == "shape"
            and (not one.null or chance.random() < 0.1)]
    if not able:
        return None
    table.serial += 1
    return Key(f"k{table.serial}", "spatial key", [(chance.choice(able).name, 0, False)])


def enrich(chance: random.Random, table: Table) -> None:
    """Words, shapes and versions for a new table; not all of them."""
    kind = chance.random()
    if kind < 0.75:
        collation = chance.choice(COLLATIONS)
        for _ in range(chance.choice([1, 1, 2, 3])):
            if chance.random() < 0.1:
                collation = chance.choice(COLLATIONS)
            table.columns.append(words_column(chance, table, collation))
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            key = words_key(chance, table)
            if key is not None:
                table.keys.append(key)
    if kind > 0.5 and (not table.partition or chance.random() < 0.05):
        for _ in range(chance.choice([1, 1, 2])):
            table.columns.append(shape_column(chance, table))
        for _ in range(chance.choice([0, 1, 1, 2])):
            key = shape_key(chance, table)
            if key is not None:
                table.keys.append(key)
    version(chance, table)


def version(chance: random.Random, table: Table) -> None:
    if not table.versioned and chance.random() < (0.05 if table.partition else 0.35):
        table.versioned = True
    if not table.versioned:
        return
    for one in table.base:
        if not one.numbers and chance.random() < 0.12:
            one.tail = " without system versioning"
    if not table.partition and chance.random() < 0.25:
        table.partition = " partition by system_time " + chance.choice([
            "(partition p0 history, partition p2 current)", "limit 5 partitions 3",
            "(partition p0 history, partition p1 history, partition p2 current)",
            "interval 1 hour starts '2023-11-14 22:00:00' partitions 3"])
        table.partitions = ["p0", "p1"]


# Queries.


def word_columns(chance: random.Random, table: Table) -> list[str]:
    """The columns of a FULLTEXT index, seldom others."""
    keys = [key for key in table.keys if key.kind == "fulltext key"]
    if keys and chance.random() < 0.97:
        return chance.choice(keys).columns
    return [chance.choice(table.columns).name]


def tells_apart(table: Table) -> bool:
    """Whether a collation tells small letters from capital ones. An index that InnoDB builds of rows that
    are there has small ones only, of a phrase it does not make them small."""
    return any(one.type.collation.endswith(("_bin", "_cs")) for key in table.keys if key.kind == "fulltext key"
               for one in table.columns if one.name in key.columns)


def match(chance: random.Random, table: Table, prefix: str = "", ranks: bool = False) -> str:
    """`ranks`: those of both engines are equal. Else none is brought near 0, which would be no match."""
    names = word_columns(chance, table)
    while True:
        text, mode = words.query(chance)
        # What is in its cache InnoDB does not find by a beginning behind a phrase. Words of the past,
        # which InnoDB's indexes do not have, expand SHALE's queries.
        if ('"' in text and "*" in text) or (table.versioned and "expansion" in mode):
            continue
        if ranks or not ("<" in text or "~" in text):
            break
    listed = ", ".join(prefix + quoted(name) for name in names)
    return f"match ({listed}) against ({text_literal(text)}{' ' if mode else ''}{mode})"


def plain_match(chance: random.Random, table: Table, names: list[str]) -> tuple[str, str]:
    """A search by the index, and the same by a read of the whole table."""
    count = chance.choice([1, 1, 2, 3])
    signs = [chance.choice("+++-") for _ in range(count)]
    if "+" not in signs:
        signs[0] = "+"
    chosen = chance.sample(PLAIN, count)
    text = f"concat_ws(' ', {', '.join(map(quoted, names))})"
    asked = " ".join(sign + one for sign, one in zip(signs, chosen))
    scan = " and ".join(f"{text} {'' if sign == '+' else 'not '}regexp '\\\\b{one}\\\\b'"
                        for sign, one in zip(signs, chosen))
    return f"match ({', '.join(map(quoted, names))}) against ('{asked}' in boolean mode)", scan


def has_words(table: Table) -> bool:
    return any(key.kind == "fulltext key" for key in table.keys)


def has_shapes(table: Table) -> bool:
    return any(one.type.family == "shape" for one in table.columns)


def any_condition(chance: random.Random, table: Table) -> str:
    """Of the columns that are neither words nor shapes, mostly."""
    return schema.condition(chance, table, 1)


