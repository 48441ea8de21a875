"""Runs the server's suites on SHALE and on InnoDB, each in its own layout, and keeps what they give.

What has been run stays in the folder of results, so that a run that was ended goes on where it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import formats

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ("SHALE", "InnoDB")
# Tests that one driver runs: it makes the system tables anew each time.
CHUNK = 40

# `main.insert 'innodb' w2 [ pass ]  12`, as the driver prints results.
RESULT = re.compile(r"^([a-z_0-9/]+\.[^ ]+)(?: '([^']*)')?\s+(?:w\d+ )?\[ (\S+) \]\s*(.*)$")


@dataclasses.dataclass(frozen=True)
class Ran:
    """How a test ended on an engine: pass, fail, skipped, crash, timeout, lost."""

    test: str
    how: str
    why: str


def suite_folder(tests: pathlib.Path, suite: str) -> pathlib.Path:
    if suite == "main":
        return tests / "main"
    folder = tests / "suite" / suite
    return folder / "t" if (folder / "t").is_dir() else folder


def tests_of(tests: pathlib.Path, suite: str) -> list[str]:
    """The names of a suite's tests that the server's people have not disabled."""
    folder = suite_folder(tests, suite)
    if not folder.is_dir():
        raise SystemExit(f"there is no suite {suite} in {tests}")
    disabled: set[str] = set()
    for place in (folder, folder.parent):
        if (place / "disabled.def").exists() and suite != "main" or place == folder:
            file = place / "disabled.def"
            if file.exists():
                disabled |= set(re.findall(r"^(\S+)\s*:", file.read_text(), re.MULTILINE))
    names = sorted(path.stem for path in folder.glob("*.test"))
    return [f"{suite}.{name}" for name in names if not {name, f"{suite}.{name}"} & disabled]


def read_results(log: str) -> list[Ran]:
    """What the driver said of each test; a failure's reason is in the lines after it."""
    results: list[Ran] = []
    lines = log.splitlines()
    for at, line in enumerate(lines):
        found = RESULT.match(line)
        if not found:
            continue
        test, combination, how, why = found.groups()
        name = f"{test},{combination}" if combination else test
        if how in ("retry-pass", "retry-fail"):
            how = how.removeprefix("retry-")
        if how == "fail":
            after = "\n".join(lines[at : at + 400])
            after = re.split(r"\n\S+\.\S+(?: '[^']*')?\s+(?:w\d+ )?\[ ", after)[0]
            how, why = failure(after)
        if how in ("pass", "fail", "skipped", "crash", "timeout", "check"):
            results.append(Ran(name, how, why.strip()))
    return results


def failure(text: str) -> tuple[str, str]:
    # Of a test that takes too long the driver aborts the server, which looks like a crash.
    if "timeout" in text.lower() and re.search(r"[Tt]est ?case timeout|Timeout", text):
        return "timeout", "the time limit"
    if re.search(r"failed during test run|\[ERROR\] mysqld got signal|got signal \d+ ;", text):
        return "crash", first(r"got signal.*|failed during test run.*", text)
    if re.search(r"MTR's internal check of the test case .* failed", text):
        return "check", "the test leaves something behind"
    return "fail", first(r"mysqltest:.*", text)


def first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found.group()[:200] if found else ""


class Side:
    """One engine: its layout, its outputs, its driver."""

    def __init__(
        self, engine: str, work: pathlib.Path, jobs: int, options: tuple[str, ...] = ()
    ) -> None:
        self.engine = engine
        self.jobs = jobs
        self.options = options
        self.layout = work / engine
        self.tests = self.layout / "share/mysql/mysql-test"
        self.output = work / "output" / engine
        self.log = work / f"{engine}.log"
        # In memory, if there is such a folder: the tests are many, and none is about the disk.
        memory = pathlib.Path("/dev/shm")
        self.var = (memory / f"shale-against-{os.getpid()}" if memory.is_dir() else work) / engine
        self.output.mkdir(parents=True, exist_ok=True)

    def done(self) -> dict[str, Ran]:
        """What has been run, by a test's name with its combination."""
        results: dict[str, Ran] = {}
        for file in self.output.glob("*.how"):
            how, _, why = file.read_text().rstrip("\n").partition(" ")
            test = file.name.removesuffix(".how").replace("|", "/")
            results[test] = Ran(test, how, why)
        return results

    def given(self, test: str) -> str:
        file = self.output / f"{test.replace('/', '|')}.out"
        return file.read_text(errors="surrogateescape") if file.exists() else ""

    def forget(self, test: str) -> None:
        """A test with all its combinations, so that it is run again."""
        name = test.split(",")[0].replace("/", "|")
        for file in self.output.iterdir():
            if file.name.split(",")[0].removesuffix(file.suffix) == name or (
                file.name.startswith(f"{name},")
            ):
                file.unlink()

    def keep(self, ran: Ran) -> None:
        file = self.output / f"{ran.test.replace('/', '|')}.how"
        file.write_text(f"{ran.how} {ran.why}\n")

    def clear(self) -> None:
        shutil.rmtree(self.var, ignore_errors=True)
        if self.var.parent.is_dir() and not any(self.var.parent.iterdir()):
            self.var.parent.rmdir()

    def start(self, tests: list[str]) -> subprocess.Popen[bytes]:
        environment = dict(
            os.environ,
            AGAINST_BIN=str((self.layout / "bin/mariadb").resolve().parent),
            AGAINST_OUTPUT=str(self.output),
            AGAINST_PROLOGUE=str(HERE / "prologue.inc"),
        )
        self.clear()
        self.var.parent.mkdir(parents=True, exist_ok=True)
        command = [
            "perl", "mysql-test-run.pl", f"--vardir={self.var}", f"--parallel={self.jobs}",
            # Twice: a test goes on after statements that end otherwise than it says.
            "--force", "--force", "--max-test-fail=0", "--retry=0", "--testcase-timeout=4",
            "--mysqld=--loose-innodb", "--suite-timeout=1000", "--max-save-core=0", "--max-save-datadir=0", "--nowarnings",
            *self.options, *tests,
        ]
        with open(self.log, "wb") as log:
            return subprocess.Popen(
                command, cwd=self.tests, env=environment, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )

    def collect(self, tests: list[str]) -> None:
        """Keeps what the driver has said; a test that it said nothing of is lost."""
        log = self.log.read_text(errors="replace")
        seen = set()
        for ran in read_results(log):
            self.keep(ran)
            seen.add(ran.test.split(",")[0])
        for test in tests:
            if test not in seen:
                self.keep(Ran(test, "lost", f"the driver did not run it: {log[-200:]!r}"))


def run(sides: list[Side], tests: list[str], one_format: bool = False) -> None:
    """Runs what has not been run yet, on both engines at once."""
    left = {}
    for side in sides:
        done = {name.split(",")[0] for name in side.done()}
        left[side.engine] = [test for test in tests if test not in done]
    wanted = [test for test in tests if any(test in names for names in left.values())]
    for at in range(0, len(wanted), CHUNK):
        chunk = wanted[at : at + CHUNK]
        running = []
        for side in sides:
            some = [test for test in chunk if test in left[side.engine]]
            if some:
                named = [formats.one(side.tests, test) for test in some] if one_format else some
                running.append((side, some, side.start(named)))
        try:
            for _, _, process in running:
                process.wait()
        except BaseException:
            for _, _, process in running:
                # The driver's workers too: they have servers, and outlive it.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
            for side, _, process in running:
                process.wait()
                # What has come to its end is kept; the rest is run by the next run.
                side.collect([])
            raise
        for side, some, _ in running:
            side.collect(some)
        for side in sides:
            side.clear()
        print(f"{min(at + CHUNK, len(wanted))} of {len(wanted)} tests", file=sys.stderr, flush=True)
