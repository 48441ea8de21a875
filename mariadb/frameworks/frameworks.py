"""Runs the test suites of frameworks on two servers and compares how each test ends. See `run`."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from server import Layout, Server, free_port  # noqa: E402

ENGINES = ("SHALE", "InnoDB")
# What SHALE refuses with an error that says so: such a test needs no reason of its own.
REFUSED = {
    r"create option 'FOREIGN KEY'": "foreign key",
    r"doesn't support FULLTEXT": "fulltext",
    r"doesn't support SPATIAL": "spatial",
    r"create option 'SEQUENCE'": "sequence",
}


@dataclasses.dataclass(frozen=True)
class Framework:
    """A package, and what is run of it."""

    name: str
    package: str
    databases: tuple[str, ...]
    tests: tuple[str, ...]
    sample: tuple[str, ...]
    options: tuple[str, ...]


ALL = [
    Framework(
        "sqlalchemy", "sqlalchemy==2.0.36", ("test_schema", "test_schema_2"),
        ("test/dialect/test_suite.py", "test/dialect/mysql", "test/sql", "test/engine", "test/orm"),
        ("test/dialect/test_suite.py", "test/dialect/mysql"),
        ("--dburi", "mariadb+pymysql://root@127.0.0.1:{port}/test?charset=utf8mb4",
         "--backend-only", "--maxfail=1000000"),
    ),
    # Migrations: DDL, and what the schema tells of it.
    Framework(
        "alembic", "alembic==1.14.0", ("test_schema",), ("tests",), (),
        ("--dburi", "mariadb+pymysql://root@127.0.0.1:{port}/test?charset=utf8mb4",
         "--backend-only", "--maxfail=1000000"),
    ),
]


def sources(framework: Framework) -> pathlib.Path:
    """The package's source, unpacked once into the cache."""
    cache = pathlib.Path(os.environ["FRAMEWORKS_SOURCES"])
    folder = cache / framework.package.replace("==", "-")
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
             "--no-build-isolation", framework.package, "--dest", str(cache)],
            check=True,
        )
        archive = cache / f"{framework.package.replace('==', '-')}.tar.gz"
        with tarfile.open(archive) as packed:
            packed.extractall(cache, filter="data")
    return folder


@dataclasses.dataclass(frozen=True)
class End:
    """How a test ended: passed, failed, error, skipped."""

    how: str
    why: str


def start(layout: Layout, framework: Framework, engine: str, sample: bool) -> tuple[
    Server, subprocess.Popen[bytes], pathlib.Path
]:
    port = free_port()
    server = Server(
        layout, f"{framework.name}-{engine.lower()}",
        [f"port={port}", "bind-address=127.0.0.1", f"default-storage-engine={engine}",
         "character-set-server=utf8mb4", "max-connections=300"],
    )
    server.start()
    for database in ("test", *framework.databases):
        # One that the installation has made is not of the server's character set.
        server.run(f"create or replace database {database} character set utf8mb4")
    work = pathlib.Path(os.environ["FRAMEWORKS_WORK"])
    report = work / f"{framework.name}-{engine}.xml"
    report.unlink(missing_ok=True)
    # A copy of its own: tests write beside themselves.
    folder = work / f"{framework.name}-{engine}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sources(framework), folder)
    environment = dict(os.environ, PYTHONPATH=f"{HERE}:{folder}:{folder}/lib")
    options = [option.format(port=port) for option in framework.options]
    with open(work / f"{framework.name}-{engine}.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "without_foreign_keys", "-p", "no:cacheprovider",
             "-q", f"--junitxml={report}", *options,
             *(framework.sample if sample else framework.tests)],
            cwd=folder, env=environment, stdout=log, stderr=log,
        )
    return server, process, report


def read(report: pathlib.Path) -> dict[str, End]:
    """A report of pytest. Names hold what differs from server to server: the port."""
    ends: dict[str, End] = {}
    if not report.exists():
        raise SystemExit(f"there are no results: see {report.with_suffix('.log')}")
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        how, why = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                how = child.tag
                why = f"{child.get('message') or ''}\n{child.text or ''}"
        ends[name] = End(how, why)
    return ends


def reasons(framework: str) -> dict[str, str]:
    """Tests that end otherwise, with the reason."""
    lines = (HERE / "differences.list").read_text().splitlines()
    words = [line.split(None, 2) for line in lines if line.strip() and not line.startswith("#")]
    return {test: why for name, test, why in words if name == framework}


def refused(end: End) -> str | None:
    return next((what for words, what in REFUSED.items() if re.search(words, end.why)), None)


def compare(framework: Framework, shale: dict[str, End], innodb: dict[str, End]) -> tuple[
    Counter[str], list[str]
]:
    """Counts, and what has no reason."""
    counts: Counter[str] = Counter()
    unexplained = []
    known = reasons(framework.name)
    for test in sorted(shale.keys() | innodb.keys()):
        missing = End("missing", "")
        ours, theirs = shale.get(test, missing), innodb.get(test, missing)
        if ours.how == theirs.how:
            counts[f"{ours.how} on both"] += 1
        elif ours.how in ("failure", "error") and (what := refused(ours)):
            counts[f"refused: {what}"] += 1
        elif test in known:
            counts["with a reason"] += 1
        else:
            counts["unexplained"] += 1
            first = next((line for line in ours.why.splitlines() if line.strip()), "")
            unexplained.append(f"{test}: {ours.how}, on InnoDB {theirs.how}: {first[:200]}")
    return counts, unexplained


def main() -> int:
    parser = argparse.ArgumentParser(prog="mariadb/frameworks/run")
    parser.add_argument("names", nargs="*", choices=[[], *(one.name for one in ALL)])
    parser.add_argument("--sample", action="store_true")
    given = parser.parse_args()
    chosen = [one for one in ALL if not given.names or one.name in given.names]
    if given.sample:
        chosen = [one for one in chosen if one.sample]
    for one in chosen:
        sources(one)
    layout = Layout()
    failed = False
    lines = []
    for framework in chosen:
        running = [start(layout, framework, engine, given.sample) for engine in ENGINES]
        ends = []
        for server, process, report in running:
            process.wait()
            if server.process is None or server.process.poll() is not None:
                raise SystemExit(f"the server has ended: {server.errors()}")
            server.stop()
            ends.append(read(report))
        counts, unexplained = compare(framework, *ends)
        words = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        lines.append(f"{framework.package}: {words}")
        print(lines[-1])
        for line in unexplained:
            print(f"  unexplained: {line}")
        failed |= bool(unexplained) or counts["passed on both"] == 0
    layout.remove()
    if not given.sample and not given.names:
        text = "# What mariadb/frameworks/run last gave.\n"
        (HERE / "counts").write_text(f"{text}{datetime.date.today()}\n" + "\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
