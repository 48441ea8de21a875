"""Installs and uses web applications on SHALE and on InnoDB, and compares. See `run`."""

from __future__ import annotations

import argparse
import datetime
import difflib
import os
import pathlib
import sys
from collections import Counter
from types import ModuleType

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import django_oscar  # noqa: E402
import mediawiki  # noqa: E402
import redmine  # noqa: E402
import roundcube  # noqa: E402
import roundcube_upgraded  # noqa: E402
import tables  # noqa: E402
import wordpress  # noqa: E402
import zabbix  # noqa: E402
import zabbix_upgraded  # noqa: E402
from server import Layout, free_port  # noqa: E402
from walk import Outcome, walk  # noqa: E402

ENGINES = ("SHALE", "InnoDB")
APPLICATIONS: tuple[ModuleType, ...] = (
    wordpress, mediawiki, django_oscar, roundcube, roundcube_upgraded, zabbix, zabbix_upgraded, redmine,
)


def said(text: str) -> list[str]:
    return tables.plain(text).splitlines()


def compare(ours: Outcome, theirs: Outcome) -> tuple[Counter[str], list[str]]:
    """Counts, and what differs."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []

    def differ(what: str, one: list[str], other: list[str]) -> None:
        wrong.append(f"{what} differs (- InnoDB, + SHALE):")
        lines = list(difflib.unified_diff(other, one, lineterm="", n=0))[2:]
        wrong.extend(f"    {line[:300]}" for line in lines[:20])

    for (step, text), (step_there, text_there) in zip(ours.said, theirs.said, strict=True):
        assert step == step_there, (step, step_there)
        counts["pages"] += 1
        if said(text) != said(text_there):
            differ(f"page {step!r}", said(text), said(text_there))
    for table in sorted(ours.engines.keys() | theirs.engines.keys()):
        engine = ours.engines.get(table, "missing")
        expected = {"InnoDB": "SHALE"}.get(theirs.engines.get(table, "missing"), theirs.engines.get(table))
        counts[f"tables on {engine}"] += 1
        if engine != expected:
            wrong.append(f"table {table}: {engine}, on InnoDB {theirs.engines.get(table)}")
            continue
        if ours.definitions[table] != theirs.definitions[table]:
            made, made_there = ours.definitions[table], theirs.definitions[table]
            differ(f"definition of {table}", made.splitlines(), made_there.splitlines())
        rows, rows_there = ours.contents[table], theirs.contents[table]
        counts["rows"] += len(rows)
        if rows != rows_there:
            differ(f"{table}", ["\t".join(row) for row in rows], ["\t".join(row) for row in rows_there])
    for table, engine in ours.engines.items():
        if engine != "SHALE":
            wrong.append(f"table {table} is {engine}")
    counts["foreign keys"] = len({key[:2] for key in ours.keys})
    if ours.keys != theirs.keys:
        differ("foreign keys", ["\t".join(key) for key in ours.keys], ["\t".join(key) for key in theirs.keys])
    wrong.extend(ours.bad)
    wrong.extend(f"on InnoDB: {line}" for line in theirs.bad)
    counts["errors of the database on both"] = sum((Counter(ours.errors) & Counter(theirs.errors)).values())
    if sorted(ours.errors) != sorted(theirs.errors):
        differ("the log of errors", sorted(ours.errors), sorted(theirs.errors))
    return counts, wrong


def count(lines: list[str]) -> None:
    """Writes down what this run gave; what it left out stays as it was."""
    file = HERE / "counts"
    kept = [line for line in file.read_text().splitlines() if line.startswith("20")] if file.exists() else []
    today = datetime.date.today()
    of = {line.split()[1]: line for line in [*kept, *(f"{today} {line}" for line in lines)]}
    file.write_text("# What mariadb/apps/run last gave.\n" + "\n".join(of[name] for name in sorted(of)) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="mariadb/apps/run")
    names = [one.NAME for one in APPLICATIONS]
    parser.add_argument("names", nargs="*", choices=[[], *names])
    parser.add_argument("--engine", choices=ENGINES, help="one engine only, nothing is compared")
    given = parser.parse_args()
    # In memory: what a disk does is asked elsewhere.
    memory = pathlib.Path("/dev/shm")
    layout = Layout(memory if os.access(memory, os.W_OK) else None)
    lines = []
    failed = False
    for application in APPLICATIONS:
        if given.names and application.NAME not in given.names:
            continue
        ports = free_port(), free_port()
        engines = [given.engine] if given.engine else ENGINES
        outcomes = [walk(application, engine, layout, *ports) for engine in engines]
        if given.engine:
            continue
        counts, wrong = compare(*outcomes)
        words = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        differences = sum(not line.startswith(" ") for line in wrong)
        lines.append(f"{application.NAME} {version(application)}: {words}, {differences} differences")
        print(lines[-1])
        for line in wrong:
            print(f"  {line}")
        failed |= bool(wrong)
    layout.remove()
    if not given.engine:
        count(lines)
    return 1 if failed else 0


def version(application: ModuleType) -> str:
    """Of the package that was unpacked, or what the module says."""
    if hasattr(application, "VERSION"):
        return str(application.VERSION)
    folder = pathlib.Path(os.environ["APPS_PACKAGES"]) / application.NAME
    file = folder / f"{application.PACKAGES[0]}.version"
    return file.read_text().strip()


if __name__ == "__main__":
    sys.exit(main())
