"""Random statements of two or three connections, on InnoDB and on SHALE: who waits, who goes on, who
fails with 1213.

    lock_compare.py --seconds 60 [--seed 7]

Scripts are run with short looks at who waits; what seems to be wrong is run again with long ones, and
counts if it is so again. What must hold: where InnoDB comes to the end of a script without a deadlock, so does SHALE. Waits that
only one of the two has are counted; they have their reasons in docs/decisions/0006-transactions.md.
A failing script is printed as statements.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import semantics
import semantics_cases
import server as servers

SETUP = [
    "create table t (id int primary key, k int, v int, key (k))",
    "insert into t select seq * 10, seq div 2, seq from seq_1_to_8",
    "analyze table t",
]
LEVELS = (semantics_cases.READ_COMMITTED, semantics_cases.REPEATABLE_READ,
          semantics_cases.SERIALIZABLE)


def statement(random_: random.Random) -> str:
    one = random_.randrange(1, 9) * 10
    two = min(one + random_.randrange(4) * 10, 80)
    where = random_.choice((
        f"id = {one}", f"id between {one} and {two}", f"id > {one}", f"k = {one // 20}",
        f"v = {one // 10}", f"id = {one + 5}",
    ))
    lock = random_.choice(("for update", "for update", "lock in share mode"))
    return random_.choice((
        f"select count(*) from (select id from t where {where} order by id"
        f" {random_.choice(('', 'limit 1'))} {lock}) s",
        f"update t set v = v + 0.6 where {where}",
        f"update t set k = k + 1 where {where}",
        f"delete from t where {where}",
        f"insert into t values ({one + random_.randrange(1, 10)}, {one // 20}, 0)",
    ))


def script(random_: random.Random) -> list[str]:
    names = "AB" if random_.randrange(3) else "ABC"
    lines = [f"{name} begin" for name in names]
    for _ in range(random_.randrange(3, 8)):
        lines.append(f"{random_.choice(names)}& {statement(random_)}")
    # Whoever waits is let go of by the others' ends.
    for name in random_.sample(names, len(names)):
        lines += [f"{name}& commit"]
    return lines + [f"{name}. " for name in names] + [f"{name}& commit" for name in names] + [
        f"{name}. " for name in names]


def run(server: servers.Server, engine: str, isolation: str, lines: list[str]) -> list[str]:
    semantics.prepare(server, engine, SETUP)
    case = semantics_cases.Script("random", isolation, "", lines, setup=SETUP)
    running = semantics.Case(server, engine, case)
    watcher = server.connect()
    try:
        told = [running.step(line, watcher) for line in lines]
        for name in running.sessions:
            # A commit may have been passed over while its connection waited.
            told.append(running.step(f"{name}. ", watcher))
            told.append(running.step(f"{name} commit", watcher))
        return told
    finally:
        watcher.close()
        for session in running.sessions.values():
            session.connection.close()


def compare(server: servers.Server, isolation: str, lines: list[str],
            looks: int) -> tuple[list[str], list[str], list[bool]]:
    semantics.LOOKS = looks
    theirs, ours = servers.all_of(
        (run, server, engine, isolation, lines) for engine in ("innodb", "shale"))
    return theirs, ours, ["error 1213" in told for told in (theirs, ours)]


def main() -> int:
    parser = argparse.ArgumentParser(description="locks of SHALE beside those of InnoDB")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    layout = servers.Layout()
    server = servers.Server(layout, "one", ["plugin-load-add=ha_rocksdb"])
    counts = {"scripts": 0, "as InnoDB": 0, "deadlocks of both": 0, "of InnoDB only": 0}
    failures = 0
    try:
        server.start()
        end = time.monotonic() + given.seconds
        seed = given.seed
        while time.monotonic() < end:
            random_ = random.Random(seed)
            isolation, lines = random_.choice(LEVELS), script(random_)
            theirs, ours, gave_way = compare(server, isolation, lines, 6)
            if gave_way == [False, True]:
                theirs, ours, gave_way = compare(server, isolation, lines, 24)
            counts["scripts"] += 1
            counts["as InnoDB"] += theirs == ours
            counts["deadlocks of both"] += all(gave_way)
            counts["of InnoDB only"] += gave_way == [True, False]
            if gave_way == [False, True]:
                failures += 1
                print(f"seed {seed}, {isolation}: SHALE reports a deadlock, InnoDB none")
                for number, line in enumerate(lines):
                    print(f"    {line:75} {theirs[number]:12} {ours[number]}")
            seed += 1
        server.stop()
    finally:
        server.kill()
    print(f"lock_compare from seed {given.seed}: "
          + ", ".join(f"{what} {count}" for what, count in counts.items())
          + f", of SHALE only {failures}")
    if failures == 0:
        layout.remove()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
