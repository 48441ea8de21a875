"""Which format of the binary log a test of replication is run with, if it is run with one only."""

from __future__ import annotations

import functools
import pathlib
import re
import zlib

SOURCE = re.compile(r"^\s*(?:--\s*)?source\s+([^\s;]+)", re.IGNORECASE | re.MULTILINE)
FIXED = re.compile(r"\bbinlog[-_]format\b")


@functools.cache
def sourced(tests: pathlib.Path, file: pathlib.Path) -> frozenset[pathlib.Path]:
    """A test's files: itself, and what it sources, and what that does."""
    found = {file}
    todo = [file]
    while todo:
        here = todo.pop()
        for name in SOURCE.findall(here.read_text(errors="replace")):
            for folder in (here.parent, tests, file.parent):
                path = folder / name
                if path.is_file():
                    if path not in found:
                        found.add(path)
                        todo.append(path)
                    break
    return frozenset(found)


def has_formats(file: pathlib.Path) -> bool:
    return file.is_file() and {"[row]", "[stmt]", "[mix]"} <= set(file.read_text().split())


def one(tests: pathlib.Path, test: str) -> str:
    """The test's name for the driver: with a format, unless it has no choice."""
    suite, name = test.split(".", 1)
    folder = tests / "main" if suite == "main" else tests / "suite" / suite
    place = folder / "t" if (folder / "t").is_dir() else folder
    files = sourced(tests, place / f"{name}.test")
    if not (has_formats(folder / "combinations")
            or any(has_formats(file.with_suffix(".combinations")) for file in files)):
        return test
    # Options that name a format leave one combination, or make all of them the same.
    options = [file.with_suffix(".opt") for file in files]
    options += [place / f"{name}-{server}.opt" for server in ("master", "slave")]
    if any(file.is_file() and FIXED.search(file.read_text()) for file in options):
        return test
    allowed = ["mix", "row"]
    names = {file.name for file in files}
    if "have_binlog_format_mixed_or_statement.inc" in names:
        allowed = ["mix"]
    if "have_binlog_format_row_or_statement.inc" in names:
        allowed = ["row"]
    # The same at each run, and about as many of the one as of the other.
    return f"{test},{allowed[zlib.crc32(test.encode()) % len(allowed)]}"
