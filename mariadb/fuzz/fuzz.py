"""Differential fuzzing of SHALE against InnoDB on one server: run it by `mariadb/fuzz/run`.

    run [--seconds 300] [--statements N] [--queries N] [--seed N] [--jobs 2] [--parts abcdef]
    run --seed N --program a:17     one program again
    run --replay FILE               a script that was printed
    run --self-test                 finds differences that are planted

Parts: a, statements on small tables; b, queries on large ones, through every way of reading them; c,
transactions of two or three sessions; d, part a with foreign keys; e, part c with parents; f, part a
with words, shapes and versions. A difference that is not in allowed.py fails the run: the program is
made small and printed as a script with both answers. Ends with a table of counts, and as JSON.

With a fresh seed one of 100,000 statements has a difference that is not SHALE's, and not listed yet.
`--own-faults` is for who cannot look: it fails for what needs no other engine to be wrong (a server
that ends, an engine's error, CHECK TABLE, one plan against another), and shows the rest.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import queue
import random
import re
import sys
import time
import traceback
from typing import Any

import allowed
import pair as pairs
import script
import shrink
from pair import Difference, Found, Pair, Step, servers

LENGTH = {"a": 150, "b": 200, "c": 60, "d": 150, "e": 60, "f": 150}
# The programs of each round; one of queries takes the longest.
ROUND = "aaaaaabbccddddeffff"


def run_program(pair: Pair, part: str, seed: str) -> Difference | None:
    """One program; the difference that is not on the list, if it has one."""
    import families
    import features
    import sessions
    import queries
    import statements

    chance = random.Random(seed)
    try:
        pair.begin()
        if part in "ad":
            statements.program(pair, chance, LENGTH[part], part == "d")
        elif part == "b":
            queries.program(pair, chance, LENGTH["b"])
        elif part == "f":
            features.program(pair, chance, LENGTH["f"])
        elif part == "c":
            sessions.program(pair, chance, LENGTH["c"])
        else:
            families.program(pair, chance, LENGTH["e"])
    except Found as found:
        return found.difference
    except pairs.Stopped:
        pair.counts["ended early"] += 1
    except pairs.Gone as gone:
        try:
            return pair._lost(Step("-- the beginning of the program"), gone)
        except pairs.Stopped:
            pass
    pair.counts["programs"] += 1
    return None


def replayer(pair: Pair, part: str) -> Any:
    """What runs a list of steps again."""
    import sessions

    return (lambda steps: sessions.replay(pair, steps)) if part in "ce" else pair.run


def chanced(pair: Pair, part: str, found: Difference) -> bool:
    """Who waits for whom hangs on how far InnoDB's purge has come: such a difference has to come again.

    Wrong rows are told however seldom they come.
    """
    if part not in "ce" or not found.kind.startswith(("waits", "outcome", "error code")):
        return False
    steps = list(pair.steps)
    again = [replayer(pair, part)(steps) for _ in range(2)]
    pair.steps = steps
    return not any(one is not None and one.kind == found.kind for one in again)


def signature(difference: Difference) -> str:
    """By what two findings are taken for one."""
    words = re.sub(r"/\*.*?\*/|`[^`]*`|'[^']*'|\d+", "", difference.step.sql).split()
    codes = re.findall(r"error \d+|^\w+", difference.ours + " | " + difference.theirs)
    return f"{difference.kind} {' '.join(words[:3])} {' '.join(codes)}"


# Of an engine that has failed, whatever the other one says: of a handler, a row that is gone or
# changed, a damaged table, an error without a number of its own.
ENGINE_ERRORS = re.compile(r"^error (1020|1030|1032|1034|1035|1105|1180|1194|1296)\b")


def is_own_fault(found: Difference) -> bool:
    """Whether the difference shows by itself that SHALE is wrong, without a look at it: the server has
    ended, CHECK TABLE finds something, one plan gives other rows than another, the engine failed."""
    if found.kind.startswith("crash") or "/*same*/" in found.step.sql:
        return True
    if found.step.sql.startswith("check table"):
        return "'status', 'OK'" not in found.ours
    return ENGINE_ERRORS.search(found.ours) is not None and found.ours[:10] != found.theirs[:10]


class Worker:
    """Runs every n-th program on a server of its own."""

    def __init__(self, given: argparse.Namespace, layout: Any, number: int, out: Any) -> None:
        self.given, self.number, self.out = given, number, out
        rules = allowed.none if given.no_list else allowed.find
        self.pair = Pair(layout, f"w{number}", rules)
        self.pair.output = pathlib.Path(given.output)
        self.seen: collections.Counter[str] = collections.Counter()

    def run(self, until: float, totals: Any) -> None:
        number = self.given.first + self.number
        while time.monotonic() < until and not self.enough(totals):
            part = self.part(number)
            seed = f"{self.given.seed}:{part}:{number}"
            self.one(part, seed, number)
            self.report(totals)
            number += self.given.jobs
        fault = self.pair.stop()
        if fault:
            self.out.put(("found", "crash at the end", fault))

    def part(self, number: int) -> str:
        able = [part for part in ROUND if part in self.given.parts]
        return able[number % len(able)]

    def enough(self, totals: Any) -> bool:
        wanted = (self.given.statements, self.given.queries)
        if wanted == (0, 0):
            return False
        return all(total.value >= want for total, want in zip(totals, wanted))

    def one(self, part: str, seed: str, number: int) -> None:
        found = run_program(self.pair, part, seed)
        if found is None:
            return
        if chanced(self.pair, part, found):
            self.pair.counts["waits that did not come again"] += 1
            return
        sign = signature(found)
        if self.given.own_faults and not is_own_fault(found):
            where = f"--seed {self.given.seed} --program {part}:{number}"
            self.out.put(("to look at", sign, f"{where}: {found}"))
            return
        self.seen[sign] += 1
        steps = list(self.pair.lost_steps if found.kind == "crash" else self.pair.steps)
        if self.seen[sign] == 1:
            counts, listed = self.pair.counts.copy(), self.pair.listed.copy()
            small = shrink.Shrinker(replayer(self.pair, part), found, self.given.shrink)
            steps, found = small.shrink(steps), small.found
            self.pair.counts, self.pair.listed = counts, listed
        text = script.written(steps, found, f"--seed {self.given.seed} --program {part}:{number}")
        self.out.put(("found", sign, text))

    def report(self, totals: Any) -> None:
        counts, self.pair.counts = self.pair.counts, collections.Counter()
        listed, self.pair.listed = self.pair.listed, collections.Counter()
        for total, name in zip(totals, ("statements", "queries")):
            with total.get_lock():
                total.value += counts[name]
        self.out.put(("counts", dict(counts), dict(listed)))


def work(given: argparse.Namespace, layout: Any, number: int, out: Any, totals: Any) -> None:
    worker = None
    try:
        # Making the server takes time that is not the fuzzing's.
        worker = Worker(given, layout, number, out)
        worker.run(time.monotonic() + given.seconds, totals)
        out.put(("done", number, ""))
    except BaseException:
        out.put(("broken", number, traceback.format_exc()))
        raise
    finally:
        if worker is not None:
            worker.pair.server.kill()


class Run:
    """All workers, and what they told."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.counts: collections.Counter[str] = collections.Counter()
        self.listed: collections.Counter[str] = collections.Counter()
        self.found: dict[str, str] = {}
        self.times: collections.Counter[str] = collections.Counter()
        self.others: list[str] = []
        self.broken = ""

    def go(self) -> None:
        layout = servers.Layout(memory())
        out: Any = multiprocessing.Queue()
        totals = [multiprocessing.Value("q", 0), multiprocessing.Value("q", 0)]
        began = time.monotonic()
        processes = [multiprocessing.Process(target=work, args=(self.given, layout, n, out, totals))
                     for n in range(self.given.jobs)]
        for process in processes:
            process.start()
        running = len(processes)
        while running:
            try:
                kind, one, two = out.get(timeout=60)
            except queue.Empty:
                if any(one.is_alive() for one in processes):
                    continue
                self.broken += f"{running} workers were killed from outside\n"
                break
            if kind == "counts":
                self.counts.update(one)
                self.listed.update(two)
            elif kind == "found":
                self.take(one, two)
            elif kind == "to look at":
                self.others.append(two)
            else:
                running -= 1
                self.broken += two if kind == "broken" else ""
        for process in processes:
            process.join()
        self.counts["seconds"] = int(time.monotonic() - began)
        layout.remove()

    def take(self, sign: str, text: str) -> None:
        self.times[sign] += 1
        if sign in self.found:
            return
        self.found[sign] = text
        folder = pathlib.Path(self.given.output)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.given.seed}-{len(self.found)}.sql"
        file.write_text(text, errors="surrogateescape")
        servers.say(f"\nfuzz: a difference, in {file}\n{text}")

    def tell(self) -> bool:
        import ways

        missing = ways.missing(self.counts) if self.given.need_plans else []
        print(f"{'count':40} {'':>12}")
        for name, count in sorted(self.counts.items()):
            print(f"{name:40} {count:12}")
        for name, count in sorted(self.listed.items()):
            print(f"{'listed: ' + name:40} {count:12}")
        print(f"{'differences':40} {sum(self.times.values()):12}")
        for sign, count in self.times.most_common():
            print(f"  {count} x {sign}")
        for text in self.others:
            servers.say(f"fuzz: to be looked at, and no failure: {text}")
        report = {"seed": self.given.seed, "counts": self.counts, "listed": self.listed,
                  "differences": self.times, "to look at": len(self.others), "never used": missing}
        print(json.dumps(report, sort_keys=True))
        if missing:
            servers.say(f"fuzz: no query was read by way of: {', '.join(missing)}")
        if self.broken:
            servers.say(f"fuzz: a worker broke:\n{self.broken}")
        servers.say(f"fuzz: {self.counts['statements']} statements, {self.counts['queries']} queries,"
                    f" {sum(self.times.values())} differences, --seed {self.given.seed}")
        return not (missing or self.broken or self.found)


def memory() -> pathlib.Path | None:
    """A folder in memory, as nothing here asks what a disk does; None if there is none."""
    folder = pathlib.Path("/dev/shm")
    return folder if os.access(folder, os.W_OK) else None


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--statements", type=int, default=0, help="end after so many, and --queries")
    parser.add_argument("--queries", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--parts", default="abcdef")
    parser.add_argument("--shrink", type=int, default=60, help="seconds to make a program small")
    parser.add_argument("--program", help="one program of a seed, as a:17")
    parser.add_argument("--replay", help="a script")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--no-list", action="store_true", help="differences of allowed.py fail too")
    parser.add_argument("--own-faults", action="store_true",
                        help="only what shows by itself that SHALE is wrong fails; the rest is shown")
    parser.add_argument("--need-plans", action="store_true",
                        help="fail if an important way of reading was never used")
    parser.add_argument("--output", default=str(servers.REPOSITORY / "target/mariadb/fuzz"))
    return parser.parse_args()


def single(given: argparse.Namespace) -> int:
    """One program, or one script."""
    layout = servers.Layout(memory())
    pair = Pair(layout, "one", allowed.none if given.no_list else allowed.find)
    if given.replay:
        found = script.replay(pair, pathlib.Path(given.replay))
    else:
        part, number = given.program.split(":")
        found = run_program(pair, part, f"{given.seed}:{part}:{number}")
    if found is not None:
        print(script.written(pair.steps, found, "") if not given.replay else found)
    pair.server.kill()
    layout.remove()
    ended = pair.counts["InnoDB ended the server"] and ", but InnoDB ended the server"
    servers.say("fuzz: " + ("a difference" if found else f"no difference{ended or ''}"))
    return 1 if found else 0


def main() -> int:
    given = arguments()
    if given.self_test:
        import self_test

        return self_test.main()
    if given.replay or given.program:
        return single(given)
    servers.say(f"fuzz: --seed {given.seed}, {given.jobs} at once, {given.seconds} s")
    run = Run(given)
    run.go()
    return 0 if run.tell() else 1


if __name__ == "__main__":
    sys.exit(main())
