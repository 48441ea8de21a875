"""Which tests have been held against InnoDB, when, and what class each had: a file in the repository.

A run of everything takes hours, so it is done in parts, by several people on several machines. The file
adds the parts up, and `--missing` runs what is in none of them. Lines of one day, suite and class are:

    2026-11-25 main equal
        alias alter_table analyze
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import textwrap

WIDTH = 120
HEAD = [
    "# What `mariadb/mtr --against-innodb` gave for each test when it was last run: date, suite, worst class.",
    "# The program writes this file; `--missing` runs what is not in it.",
]


@dataclasses.dataclass(frozen=True)
class Entry:
    """The last run of a test, or of one combination of it."""

    test: str
    kind: str
    date: str
    features: tuple[str, ...] = ()


def read(file: pathlib.Path) -> dict[str, Entry]:
    """By the name of the test, with its combination."""
    entries: dict[str, Entry] = {}
    date = suite = kind = ""
    features: tuple[str, ...] = ()
    for line in file.read_text().splitlines() if file.exists() else []:
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            date, suite, kind, *rest = line.split(" ", 3)
            features = tuple(one.strip() for one in " ".join(rest).split(",") if one.strip())
            continue
        for name in line.split():
            test = f"{suite}.{name}"
            entries[test] = Entry(test, kind.replace("_", " "), date, features)
    return entries


def write(file: pathlib.Path, entries: dict[str, Entry]) -> None:
    def group(entry: Entry) -> tuple[str, str, str, tuple[str, ...]]:
        return entry.test.split(".")[0], entry.kind, entry.date, entry.features

    lines = list(HEAD)
    ordered = sorted(entries.values(), key=lambda entry: (group(entry), entry.test))
    for (suite, kind, date, features), some in itertools.groupby(ordered, group):
        head = f"{date} {suite} {kind.replace(' ', '_')} {', '.join(features)}"
        names = " ".join(entry.test.split(".", 1)[1] for entry in some)
        lines.append(head.rstrip())
        lines += textwrap.wrap(names, WIDTH, initial_indent="    ", subsequent_indent="    ",
                               break_long_words=False, break_on_hyphens=False)
    file.write_text("\n".join(lines) + "\n")


def renewed(entries: dict[str, Entry], ran: list[Entry]) -> dict[str, Entry]:
    """With what has been run now in place of earlier runs of the same tests, in any combination."""
    again = {one.test.split(",")[0] for one in ran}
    kept = {test: one for test, one in entries.items() if test.split(",")[0] not in again}
    return kept | {one.test: one for one in ran}
