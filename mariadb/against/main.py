"""The server's suites held against InnoDB: `mariadb/mtr --against-innodb`, which has the options.

Results stay in target/mariadb/against: output/ENGINE/TEST.out and .how, differences/TEST. What has run
on this very plugin is not run again. A difference that is neither of a class that needs no reason
(compare.py) nor in shale/mysql-test/against-innodb.list is an error.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import fnmatch
import hashlib
import os
import pathlib
import re
import shutil
import signal
import sys
from collections import Counter

import compare
import formats
import record
import run
import tree

HERE = pathlib.Path(__file__).resolve().parent
LISTS = HERE.parent / "shale/mysql-test"
SUITES = ["main", "gcol", "vcol", "json", "period", "versioning", "sql_sequence", "parts",
          "handler", "rpl", "binlog", "compat/oracle", "innodb", "innodb_fts", "innodb_gis",
          "atomic", "funcs_1", "funcs_2", "jp", "multi_source", "plugins", "roles", "stress",
          "optimizer_unfixed_bugs", "federated", "heap", "sysschema",
          "perfschema", "sys_vars"]
# Of these only tests that make a table: the others have no engine to ask.
FEW_WITH_TABLES = {"plugins", "roles", "sysschema", "perfschema", "sys_vars"}
MAKES_TABLE = re.compile(rb"\bcreate\s+(or\s+replace\s+)?(temporary\s+)?table\b", re.IGNORECASE)
# Where other engines' names are replaced too: not where two engines beside each other are the point.
OTHERS_IN = ["main", "gcol", "vcol", "period", "versioning", "parts", "compat/oracle", "sql_sequence",
             "heap", "maria"]
# The worse of what a test has gives its class.
CLASSES = ["equal", "order", "engine", "way", "statistics", "plan", "refused", "listed", "unexplained"]


@dataclasses.dataclass(frozen=True)
class Reason:
    """A line of the list: how many differences a test has, which, and why."""

    count: int
    mark: str
    why: str


def read_list(file: pathlib.Path) -> tuple[dict[str, Reason], dict[str, str]]:
    """Differences with their reasons, and tests, or patterns of them, that are left out with theirs."""
    reasons: dict[str, Reason] = {}
    left_out: dict[str, str] = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        test, count, rest = line.split(None, 2)
        if count == "skip":
            left_out[test] = rest
        else:
            mark, _, why = rest.partition(" ")
            reasons[test] = Reason(int(count), mark, why.strip())
    return reasons, left_out


def is_left_out(test: str, left_out: dict[str, str]) -> bool:
    """Of a test, which may have its combination behind it: the list's patterns have none."""
    name = test.split(",")[0]
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in left_out)


def tests_of(folder: pathlib.Path, suite: str, others: bool) -> list[str]:
    """A suite's tests that may differ on another engine; with `others` those that name one of them."""
    tests = run.tests_of(folder, suite)
    wanted = tree.OTHERS if others else MAKES_TABLE if suite in FEW_WITH_TABLES else None
    if wanted is None:
        return tests
    place = run.suite_folder(folder, suite)
    return [test for test in tests if any(
        wanted.search(file.read_bytes())
        for file in formats.sourced(folder, place / f"{test.removeprefix(f'{suite}.')}.test")
    )]


@dataclasses.dataclass
class Outcome:
    test: str
    kind: str
    why: str
    differences: list[compare.Difference]
    features: set[str]

    @property
    def rest(self) -> list[compare.Difference]:
        return [one for one in self.differences if one.kind in ("rest", "ended")]


def judge(shale: run.Ran, innodb: run.Ran, texts: tuple[str, str], reason: Reason | None) -> Outcome:
    """What one test has shown."""
    test = shale.test
    if "skipped" in (shale.how, innodb.how) and shale.how == innodb.how:
        return Outcome(test, "skipped", shale.why, [], set())
    # Neither has come to an end: what a test gave until then depends on the machine.
    if shale.how == innodb.how and shale.how in ("lost", "timeout"):
        return Outcome(test, "not run", shale.why, [], set())
    differences = compare.compare(*texts, stopped=shale.how == "fail")
    features = {one.what for one in differences if one.kind == "refused"}
    bad = ("crash", "timeout", "lost")
    # A statement that is refused may leave the test nothing to go on with.
    if shale.how != innodb.how and (shale.how in bad or innodb.how in bad or not features):
        end = shale.how if shale.how == "pass" else f"{shale.how} {shale.why}"
        differences.append(compare.Difference("ended", "", "the end", end, innodb.how))
    outcome = Outcome(test, "equal", "", differences, features)
    kinds = {one.kind for one in differences}
    if "cascade" in kinds:
        kinds.add("refused")
    if outcome.rest:
        count, mark = len(outcome.rest), compare.mark(outcome.rest)
        known = reason is not None and reason.why not in ("", "?") and (
            (reason.count == count and reason.mark == mark)
            # What varies from run to run is bounded by its number.
            or (reason.mark == "varies" and count <= reason.count)
        )
        kinds.add("listed" if known else "unexplained")
        outcome.why = reason.why if reason and known else f"{count} {mark}"
    outcome.kind = max(kinds & set(CLASSES), key=CLASSES.index, default="equal")
    return outcome


def fingerprint(*files: pathlib.Path) -> str:
    text = hashlib.sha256()
    for file in files:
        text.update(file.read_bytes())
    return text.hexdigest()


def prepare(
    work: pathlib.Path, server: pathlib.Path, jobs: int, options: tuple[str, ...], others: bool
) -> list[run.Side]:
    """Lays both engines out, and removes results that are of another plugin or server."""
    plugin = pathlib.Path(os.environ["SHALE_PLUGIN"]).resolve()
    tools = [HERE / name for name in ("tree.py", "mysqltest", "prologue.inc")]
    server_itself = (server / "sbin/mariadbd").resolve()
    suites = {suite.split("/")[0] for suite in (OTHERS_IN if others else SUITES)}
    sides = []
    for engine in run.ENGINES:
        side = run.Side(engine, work, max(1, jobs // 2), options)
        of = [*tools, server_itself, *([plugin] if engine == "SHALE" else [])]
        made_by = fingerprint(*of)
        stamp = side.output / "made-by"
        if not stamp.exists() or stamp.read_text() != made_by:
            shutil.rmtree(side.output, ignore_errors=True)
            tree.lay_out(server, plugin, side.layout, engine, suites, others)
            side.output.mkdir(parents=True)
            stamp.write_text(made_by)
        sides.append(side)
    return sides


def outcomes(sides: list[run.Side], tests: list[str], reasons: dict[str, Reason]) -> list[Outcome]:
    shale, innodb = (side.done() for side in sides)
    wanted = set(tests)
    results = []
    for test in sorted(shale.keys() | innodb.keys()):
        if test.split(",")[0] not in wanted:
            continue
        lost = run.Ran(test, "lost", "did not run")
        results.append(judge(
            shale.get(test, lost), innodb.get(test, lost),
            (sides[0].given(test), sides[1].given(test)), reasons.get(test),
        ))
    return results


def write_differences(folder: pathlib.Path, results: list[Outcome]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for one in results:
        file = folder / one.test.replace("/", "|")
        if one.differences:
            first = sorted(one.differences, key=lambda each: each.kind not in ("rest", "ended"))
            text = "\n".join(each.text() for each in first)
            file.write_text(text, errors="surrogateescape")
        else:
            file.unlink(missing_ok=True)


def entries_of(results: list[Outcome], date: str) -> list[record.Entry]:
    return [record.Entry(one.test, one.kind, date, tuple(sorted(one.features))) for one in results]


def table(results: list[record.Entry]) -> list[str]:
    """Counts of tests by suite and class, and of tests by refused feature."""
    columns = [*CLASSES, "skipped", "not run"]
    counts: dict[str, Counter[str]] = {}
    for one in results:
        counts.setdefault(one.test.split(".")[0], Counter())[one.kind] += 1
    total = sum(counts.values(), Counter())
    lines = ["".join([f"{'':<16}{'all':>6}", *(f"{name:>12}" for name in columns)])]
    for suite, count in [*sorted(counts.items()), ("all", total)]:
        row = [f"{suite:<16}{sum(count.values()):>6}", *(f"{count[name]:>12}" for name in columns)]
        lines.append("".join(row))
    features = Counter(feature for one in results for feature in one.features)
    if features:
        words = (f"{feature} {count}" for feature, count in features.most_common())
        lines.append(f"refused, tests: {', '.join(words)}")
    return lines


def said_of(tests: list[str], entries: list[record.Entry]) -> str:
    ran = {one.test.split(",")[0] for one in entries}
    return f"{sum(test in ran for test in tests)} of {len(tests)} tests have been run"


def keep(entries: dict[str, record.Entry], everything: list[str], files: str,
         left_out: dict[str, str]) -> None:
    """Writes what each test last gave, and the counts of all of them. What is left out by now has none."""
    entries = {test: one for test, one in entries.items() if not is_left_out(test, left_out)}
    record.write(LISTS / f"{files}.results", entries)
    of = list(entries.values())
    dates = sorted({one.date for one in of})
    lines = [
        "# What `mariadb/mtr --against-innodb` last gave for each test, counted: tests by their worst class.",
        f"# Runs from {dates[0]} to {dates[-1]}; {files}.results has the tests.",
        *table(of), said_of(everything, of),
    ]
    (LISTS / f"{files}.counts").write_text("\n".join(lines) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mariadb/mtr --against-innodb")
    parser.add_argument("names", nargs="*", metavar="SUITE", help="suites, or tests as SUITE.NAME")
    parser.add_argument("--sample", action="store_true", help="what ./test runs")
    parser.add_argument("--one-format", action="store_true",
                        help="of tests that run once for each format of the binary log, one of them")
    parser.add_argument("--others", action="store_true",
                        help="of tests that name MyISAM, Aria or MEMORY, with the engine in its place")
    parser.add_argument("--missing", action="store_true",
                        help="of these tests, those that against-innodb.results does not have")
    parser.add_argument("--again", action="store_true",
                        help="run those once more on SHALE that had differences with a reason or none")
    parser.add_argument("--bless", action="store_true", help="write the list anew; reasons stay")
    parser.add_argument("--with", action="append", default=[], dest="options", metavar="OPTION",
                        help="run with this option of the driver, as --with=--ps-protocol; what is given"
                             " so is kept apart and not recorded")
    parser.add_argument("--report", action="store_true", help="compare what has been run, run nothing")
    return parser.parse_args()


def bless(file: pathlib.Path, results: list[Outcome], reasons: dict[str, Reason],
          left_out: dict[str, str]) -> None:
    """Writes the list with what these tests give now; what has no reason yet has a question mark."""
    lines = [line for line in file.read_text().splitlines() if line.startswith("#")]
    lines += [f"{test} skip {why}" for test, why in sorted(left_out.items())]
    ran = {one.test: one for one in results}
    for test in sorted(ran.keys() | reasons.keys()):
        one, reason = ran.get(test), reasons.get(test)
        # What varies may be none this time.
        if reason is not None and (
            one is None or (reason.mark == "varies" and len(one.rest) <= reason.count)
        ):
            lines.append(f"{test} {reason.count} {reason.mark} {reason.why}")
        elif one is not None and one.rest:
            why = reason.why if reason else "?"
            lines.append(f"{test} {len(one.rest)} {compare.mark(one.rest)} {why}")
    file.write_text("\n".join(lines) + "\n")


def main() -> int:
    given = arguments()
    # Told to end, it ends as by an error: with its servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server = pathlib.Path(os.environ["AGAINST_SERVER"])
    work = pathlib.Path(os.environ["AGAINST_WORK"])
    files = "against-innodb"
    _, never = read_list(LISTS / f"{files}.list")
    if given.others:
        work, files = work / "others", "against-others"
    options = tuple(given.options)
    if options:
        if given.bless:
            raise SystemExit("what tests give with options is not blessed: leave --bless or --with out")
        work /= f"with-{hashlib.sha256(repr(options).encode()).hexdigest()[:8]}"
    work.mkdir(parents=True, exist_ok=True)
    jobs = int(os.environ.get("SHALE_JOBS") or os.cpu_count() or 2)
    list_file = LISTS / f"{files}.list"
    reasons, here = read_list(list_file)
    left_out = never | here
    sides = prepare(work, server, jobs, options, given.others) if not given.report else [
        run.Side(engine, work, 1) for engine in run.ENGINES
    ]
    suites = OTHERS_IN if given.others else SUITES
    names = given.names or suites
    if given.sample:
        text = (LISTS / "against-innodb.sample").read_text()
        names = [line for line in text.splitlines() if line and not line.startswith("#")]
    # Another one is not laid out for SHALE: it would run on InnoDB twice.
    if strange := sorted({name.split(".")[0] for name in names} - set(suites)):
        raise SystemExit(f"not among the suites that are compared: {', '.join(strange)}")
    # As the server has them: those that are laid out no longer name other engines.
    folder = server / "share/mysql/mysql-test"
    tests = []
    for name in names:
        some = [name] if "." in name else tests_of(folder, name, given.others)
        tests += [test for test in some if not is_left_out(test, left_out)]
    known = record.read(LISTS / f"{files}.results")
    if given.missing:
        recorded = {test.split(",")[0] for test, entry in known.items() if entry.kind != "not run"}
        tests = [test for test in tests if test not in recorded]
    if given.again:
        for one in outcomes(sides, tests, reasons):
            if one.kind in ("listed", "unexplained"):
                sides[0].forget(one.test)
    if not given.report:
        run.run(sides, tests, given.one_format)
    results = outcomes(sides, tests, reasons)
    write_differences(work / "differences", results)
    if given.bless:
        bless(list_file, results, reasons, here)
    ran = entries_of(results, datetime.date.today().isoformat())
    print("\n".join([*table(ran), said_of(tests, ran)]))
    unexplained = [one for one in results if one.kind == "unexplained"]
    for one in unexplained:
        print(f"unexplained: {one.test} {one.why}: {work}/differences/{one.test.replace('/', '|')}")
    if ran and not given.sample and not options:
        everything = [test for suite in suites for test in tests_of(folder, suite, given.others)
                      if not is_left_out(test, left_out)]
        keep(record.renewed(known, ran), everything, files, left_out)
    passed = sum(one.kind in CLASSES[:-1] for one in results)
    if passed == 0:
        print("no test has run on both engines", file=sys.stderr)
    return 1 if unexplained or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
