"""Runs the test suites of frameworks on two servers and compares how each test ends. See `run`."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from server import Layout, Server, free_port, shell  # noqa: E402

ENGINES = ("SHALE", "InnoDB")


@dataclasses.dataclass(frozen=True)
class Framework:
    """A package, and what is run of it."""

    name: str
    package: str
    databases: tuple[str, ...]
    tests: tuple[str, ...]
    sample: tuple[str, ...]

    def told(self) -> str:
        """Its name, with the version."""
        return f"{self.name}=={self.package.partition('==')[2]}"

    def folder(self) -> pathlib.Path:
        """Where the package's source is, in the cache."""
        return pathlib.Path(os.environ["FRAMEWORKS_SOURCES"]) / self.package.replace("==", "-")

    def fetch(self) -> None:
        """Brings the source there, once, and what else it needs."""
        raise NotImplementedError

    def run(
        self, folder: pathlib.Path, port: int, report: pathlib.Path, sample: bool
    ) -> subprocess.Popen[bytes]:
        """Starts the tests of a copy of the source, against a server."""
        raise NotImplementedError


class Python(Framework):
    """Sources from PyPI, tests that pytest runs."""

    def fetch(self) -> None:
        folder = self.folder()
        if folder.exists():
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
             "--no-build-isolation", self.package, "--dest", str(folder.parent)],
            check=True,
        )
        with tarfile.open(folder.with_name(f"{folder.name}.tar.gz")) as packed:
            packed.extractall(folder.parent, filter="data")

    def run(
        self, folder: pathlib.Path, port: int, report: pathlib.Path, sample: bool
    ) -> subprocess.Popen[bytes]:
        options = ("--dburi", f"mariadb+pymysql://root@127.0.0.1:{port}/test?charset=utf8mb4",
                   "--backend-only", "--maxfail=1000000")
        path = f"{HERE}:{folder}:{folder}/lib"
        return self.pytest(folder, report, sample, options, {"PYTHONPATH": path})

    def pytest(
        self, folder: pathlib.Path, report: pathlib.Path, sample: bool, options: tuple[str, ...],
        environment: dict[str, str],
    ) -> subprocess.Popen[bytes]:
        """Starts the tests that are named, or the sample."""
        with open(report.with_suffix(".log"), "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q",
                 f"--junitxml={report}", *options, *(self.sample if sample else self.tests)],
                cwd=folder, env=os.environ | environment, stdout=log, stderr=log,
            )


class Django(Python):
    """Its own runner, all of the suite's folders that have models."""

    def run(
        self, folder: pathlib.Path, port: int, report: pathlib.Path, sample: bool
    ) -> subprocess.Popen[bytes]:
        work = folder / "tests"
        labels = self.sample if sample else self.tests or tuple(sorted(
            one.name for one in work.iterdir()
            if one.name not in self.LEFT_OUT and ((one / "models.py").exists() or (one / "models").exists())
        ))
        with open(report.with_suffix(".log"), "wb") as log:
            return subprocess.Popen(
                [sys.executable, "runtests.py", "--settings=django_report", "--parallel=1", "--noinput",
                 *labels],
                cwd=work, stdout=log, stderr=log, env=os.environ | {
                    "PYTHONPATH": f"{HERE}:{folder}", "DJANGO_PORT": str(port), "DJANGO_REPORT": str(report),
                    "DJANGO_BACKEND": self.BACKEND, "PYTHONHASHSEED": "0",
                },
            )

    BACKEND = "django.db.backends.mysql"
    # A framework of its own; of no database.
    LEFT_OUT = ("gis_tests", "postgres_tests")


class GeoDjango(Django):
    """Django's own tests of geometries. Its models have SPATIAL indexes, unless they say otherwise."""

    def fetch(self) -> None:
        shell("need libgdal32 libgeos-c1v5 libproj25")
        super().fetch()

    BACKEND = "django.contrib.gis.db.backends.mysql"


class Peewee(Python):
    """Its source of PyPI has no tests: Debian's source package has."""

    def fetch(self) -> None:
        shell(f"fetch_source '{DEBIAN_PEEWEE}' '{self.folder()}'")

    def run(
        self, folder: pathlib.Path, port: int, report: pathlib.Path, sample: bool
    ) -> subprocess.Popen[bytes]:
        # `tests` is a module that has all tests of the others.
        return self.pytest(folder, report, sample, (), {
            "PYTHONPATH": f"{HERE}:{folder}", "PEEWEE_TEST_BACKEND": "mysql",
            "PEEWEE_MYSQL_HOST": "127.0.0.1", "PEEWEE_MYSQL_PORT": str(port),
            "PEEWEE_MYSQL_USER": "root",
        })


class Ruby(Framework):
    """Rails from Debian's source package, whose version says that it is one, and Ruby from Debian too."""

    NEEDS = (
        "ruby", "ruby-activesupport", "ruby-activemodel", "ruby-mysql2", "ruby-sqlite3",
        "ruby-minitest", "ruby-mocha", "ruby-bcrypt", "ruby-byebug", "ruby-rack", "ruby-rack-test",
        "ruby-globalid", "ruby-builder", "ruby-erubi", "ruby-rails-dom-testing",
        "ruby-rails-html-sanitizer",
    )
    # All files in one process, one after the other; not by rake, which gives a command line too long.
    LOAD = "files, rest = ARGV.partition { |one| one.end_with?('_test.rb') }; ARGV.replace(rest); " \
        "files.each { |one| require File.expand_path(one) }"
    # The same order on both engines: some tests rely on what others leave.
    SEED = "1"

    def fetch(self) -> None:
        shell(f"need {' '.join(self.NEEDS)}; fetch_source '{DEBIAN_RAILS}' '{self.folder()}'")

    def run(
        self, folder: pathlib.Path, port: int, report: pathlib.Path, sample: bool
    ) -> subprocess.Popen[bytes]:
        work = folder / "activerecord"
        connection = f"username: root, host: 127.0.0.1, port: {port}, encoding: utf8mb4"
        (work / "test/config.yml").write_text(
            "connections:\n  mysql2:\n"
            f"    arunit: {{{connection}, collation: utf8mb4_unicode_ci}}\n"
            f"    arunit2: {{{connection}, collation: utf8mb4_general_ci}}\n"
        )
        # Those of other databases are left out.
        files = sorted(
            str(file.relative_to(work))
            for tests in (self.sample if sample else self.tests) for file in (work / tests).rglob("*_test.rb")
            if "adapters" not in file.parts or "mysql2" in file.parts
        )
        parts = ("activesupport", "activemodel", "actionpack", "actionview", "activejob")
        libraries = [f"-I../{one}/lib" for one in parts]
        with open(report.with_suffix(".log"), "wb") as log:
            return subprocess.Popen(
                ["ruby", "-W0", "-Itest", "-Ilib", *libraries, f"-r{HERE}/active_record.rb",
                 "-e", self.LOAD, "--", *files, "--seed", self.SEED],
                cwd=work, env=dict(os.environ, ARCONN="mysql2", REPORT=str(report)),
                stdout=log, stderr=log,
            )


DEBIAN_PEEWEE = "peewee=3.14.10+dfsg-1"
DEBIAN_RAILS = "rails=2:6.1.7.10+dfsg-1~deb12u2"
ALL = [
    Python(
        "sqlalchemy", "sqlalchemy==2.0.36", ("test_schema", "test_schema_2"),
        ("test/dialect/test_suite.py", "test/dialect/mysql", "test/sql", "test/engine", "test/orm"),
        ("test/dialect/test_suite.py", "test/dialect/mysql"),
    ),
    # Migrations: DDL, and what the schema tells of it.
    Python("alembic", "alembic==1.14.0", ("test_schema",), ("tests",), ()),
    Django(
        "django", "django==5.2.19", (), (),
        ("delete", "many_to_one", "transactions", "constraints"),
    ),
    GeoDjango(
        "geodjango", "django==5.2.19", (), ("gis_tests",),
        ("gis_tests.geoapp", "gis_tests.relatedapp", "gis_tests.distapp"),
    ),
    Peewee(
        "peewee", "peewee==3.14.10", ("peewee_test",), ("tests/__init__.py",),
        ("tests/__init__.py", "-k", "Transaction or Schema or Migrat or Field"),
    ),
    Ruby(
        "activerecord", "activerecord==6.1.7.10", ("activerecord_unittest", "activerecord_unittest2"),
        ("test/cases",), ("test/cases/adapters/mysql2",),
    ),
]


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
    shutil.copytree(framework.folder(), folder)
    process = framework.run(folder, port, report, sample)
    return server, process, report


def read(report: pathlib.Path) -> dict[str, End]:
    """A report of pytest, or of that form. Names hold what differs from server to server: the port."""
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


def damaged(server: Server) -> list[str]:
    """What `CHECK TABLE ... EXTENDED` finds in the tables of SHALE that the tests have left."""
    bad = []
    for schema, table in server.run(
        "select table_schema, table_name from information_schema.tables where engine = 'SHALE'"
    ):
        for row in server.run(f"check table `{schema}`.`{table}` extended"):
            if (row[2], row[3]) != ("status", "OK"):
                bad.append(f"{schema}.{table}: {row[2]}: {row[3]}")
    return bad


def reasons(framework: str) -> dict[str, str]:
    """Tests that end otherwise, with the reason."""
    lines = (HERE / "differences.list").read_text().splitlines()
    words = [line.split(None, 2) for line in lines if line.strip() and not line.startswith("#")]
    return {test: why for name, test, why in words if name == framework}


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
        elif test in known:
            counts["with a reason"] += 1
        else:
            counts["unexplained"] += 1
            first = next((line for line in ours.why.splitlines() if line.strip()), "")
            unexplained.append(f"{test}: {ours.how}, on InnoDB {theirs.how}: {first[:200]}")
    return counts, unexplained


def count(lines: list[str]) -> None:
    """Writes down what this run gave; what it left out stays as it was."""
    file = HERE / "counts"
    kept = [line for line in file.read_text().splitlines() if line.startswith("20")]
    today = datetime.date.today()
    of = {line.split()[1]: line for line in [*kept, *(f"{today} {line}" for line in lines)]}
    ordered = [of[f"{one.told()}:"] for one in ALL if f"{one.told()}:" in of]
    file.write_text("# What mariadb/frameworks/run last gave, without --sample.\n" + "\n".join(ordered) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="mariadb/frameworks/run")
    parser.add_argument("names", nargs="*", choices=[[], *(one.name for one in ALL)])
    parser.add_argument("--sample", action="store_true")
    given = parser.parse_args()
    chosen = [one for one in ALL if not given.names or one.name in given.names]
    if given.sample:
        chosen = [one for one in chosen if one.sample]
    for one in chosen:
        one.fetch()
    # In memory: what a disk does is asked elsewhere.
    memory = pathlib.Path("/dev/shm")
    layout = Layout(memory if os.access(memory, os.W_OK) else None)
    failed = False
    lines = []
    for framework in chosen:
        running = [start(layout, framework, engine, given.sample) for engine in ENGINES]
        ends = []
        bad = []
        for server, process, report in running:
            process.wait()
            if server.process is None or server.process.poll() is not None:
                raise SystemExit(f"the server has ended: {server.errors()}")
            bad += damaged(server)
            server.stop()
            ends.append(read(report))
        counts, unexplained = compare(framework, *ends)
        unexplained += [f"CHECK TABLE: {line}" for line in bad]
        words = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        lines.append(f"{framework.told()}: {words}")
        print(lines[-1])
        for line in unexplained:
            print(f"  unexplained: {line}")
        failed |= bool(unexplained) or counts["passed on both"] == 0
    layout.remove()
    if not given.sample:
        count(lines)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
