"""Installs and uses web applications on SHALE and on InnoDB, and compares. See `run`."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import difflib
import os
import pathlib
import re
import shutil
import sys
from collections import Counter
from types import ModuleType

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import mediawiki  # noqa: E402
import tables  # noqa: E402
import wordpress  # noqa: E402
from browse import Browser  # noqa: E402
from server import Layout, Server, free_port  # noqa: E402
from webapp import Php, Site, lay_out, picture, relink  # noqa: E402

ENGINES = ("SHALE", "InnoDB")
APPLICATIONS: tuple[ModuleType, ...] = (wordpress, mediawiki)


@dataclasses.dataclass
class Outcome:
    """All that is compared of one engine."""

    said: list[tuple[str, str]]
    engines: dict[str, str]
    definitions: dict[str, str]
    contents: dict[str, list[tuple[str, ...]]]
    bad: list[str]
    errors: list[str]


def walk(application: ModuleType, engine: str, layout: Layout, port: int, database_port: int) -> Outcome:
    """One application on one engine, from its installation to its end. The ports are the same of both, as
    applications write their address into their tables."""
    work = pathlib.Path(os.environ["APPS_WORK"]) / f"{application.NAME}-{engine}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    server = Server(
        layout, f"{application.NAME}-{engine.lower()}",
        [f"port={database_port}", "bind-address=127.0.0.1", f"default-storage-engine={engine}",
         "character-set-server=utf8mb4"],
    )
    server.start()
    site = Site(engine, server, work / "site", work, database_port, port)
    server.run(
        f"create database {site.database} character set utf8mb4",
        *(
            statement for host in ("localhost", "127.0.0.1") for statement in (
                f"create user {site.user}@'{host}' identified by '{site.password}'",
                f"grant all on {site.database}.* to {site.user}@'{host}'",
            )
        ),
    )
    lay_out(pathlib.Path(os.environ["APPS_PACKAGES"]), application.FOLDERS, application.REMOVED, site.folder)
    application.prepare(site)
    image = picture(work / "Fröschchen.png")
    php = Php(site)
    browser = None
    try:
        browser = Browser(site.address, work / "profile")
        application.install(site, browser)
        application.use(site, browser, image)
    finally:
        if browser is not None:
            for number, (step, text) in enumerate(browser.said):
                (work / f"{number:03} {re.sub('[^A-Za-z0-9 ]', '_', step)}.txt").write_text(text)
            browser.driver.save_screenshot(str(work / "last.png"))
            browser.close()
        php.stop()
    outcome = Outcome(
        browser.said, tables.tables(server, site.database), tables.definitions(server, site.database),
        tables.contents(server, site.database, application.IGNORED, application.IGNORED_ROWS),
        tables.checked(server, site.database), errors(site, php),
    )
    if server.process is None or server.process.poll() is not None:
        raise SystemExit(f"the server has ended: {server.errors()}")
    server.stop()
    return outcome


def errors(site: Site, php: Php) -> list[str]:
    """Errors of the database, and PHP's own, wherever the application wrote them."""
    found = []
    for file in (php.log, site.folder / "wp-content/debug.log", site.work / "database-errors.log"):
        if file.exists():
            for line in file.read_text(errors="replace").splitlines():
                if re.search(r"WordPress database error|Fatal error|DBQueryError|\bError \d{4}\b", line):
                    found.append(re.sub(r"^\[[^]]*\] (\[[^]]*\] )?", "", tables.plain(line)))
    return found


def said(text: str) -> list[str]:
    return tables.plain(text).splitlines()


def compare(application: ModuleType, ours: Outcome, theirs: Outcome) -> tuple[Counter[str], list[str]]:
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
    named = getattr(application, "OTHER_ENGINES", {})
    for table, engine in ours.engines.items():
        if engine != named.get(table, "SHALE"):
            wrong.append(f"table {table} is {engine}")
    wrong.extend(f"CHECK TABLE: {line}" for line in ours.bad)
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
    relink(pathlib.Path(os.environ["APPS_PACKAGES"]))
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
        counts, wrong = compare(application, *outcomes)
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
    """Of the package that was unpacked."""
    return (pathlib.Path(os.environ["APPS_PACKAGES"]) / f"{application.NAME}.version").read_text().strip()


if __name__ == "__main__":
    sys.exit(main())
