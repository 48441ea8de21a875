"""The differences between SHALE and InnoDB that are known and explained. Short, and it stays so.

Each has a reason, and patterns of the statement and of both answers, as narrow as they can be. `parts`
means that the two databases are no longer the same, so that the program ends there.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any


@dataclasses.dataclass(frozen=True)
class Allowed:
    name: str
    reason: str
    kind: str
    statement: str
    ours: str
    theirs: str
    parts: bool = False
    # Of the program, what has to be in one of its statements before.
    program: str = ""

    def fits(self, difference: Any, steps: list[Any]) -> bool:
        if self.program and not any(re.search(self.program, step.sql) for step in steps):
            return False
        return all(
            re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None
            for pattern, text in (
                (self.kind, difference.kind), (self.statement, difference.step.sql),
                (self.ours, difference.ours), (self.theirs, difference.theirs)))


# What ALTER TABLE reports counts the rows that it copied.
COPIED = r"^ok: \d+ affected, insert id 0, \d+ warnings .Records: \d+  Duplicates: 0  Warnings: \d+$"

# A statement that waits, or gave up waiting, or was the victim of a deadlock.
LOCKED = r"^(waits|error 1205|error 1213)"
GAPS = ("at REPEATABLE READ and SERIALIZABLE: SHALE locks the range that was asked for, InnoDB up to the"
        " next entry; SHALE locks the place of a row that is not there (docs/semantics.md). What has"
        " been committed until then is compared")

ALLOWED: list[Allowed] = [
    Allowed("gap locks, SHALE waits", GAPS, "^(waits|outcome|error code)$", "^(select|insert|update|delete|replace)",
            LOCKED, "", parts=True, program="^set session transaction isolation level (rep|ser)"),
    Allowed("gap locks, InnoDB waits", GAPS, "^(waits|outcome|error code)$", "^(select|insert|update|delete|replace)",
            "", LOCKED, parts=True, program="^set session transaction isolation level (rep|ser)"),
    Allowed("rows copied", "which changes of a table are instant differs: mariadb/README.md has SHALE's",
            "^(affected|text)$", "^alter (ignore )?table", COPIED, COPIED),
    Allowed("which duplicate", "a key that is built names the first duplicate it meets: in the key's order,"
            " or in that of the rows", "^error text$", "^alter table .* (add|modify|engine|force)",
            "^error 1062: Duplicate entry '.*' for key '[^']*'$",
            "^error 1062: Duplicate entry '.*' for key '[^']*'$"),
    Allowed("SKIP LOCKED that commits by itself", "InnoDB fails at its commit when it has skipped a row",
            "^outcome$", "skip locked$", r"^\d+ rows", "^error 1180: Got error 1 ", parts=True),
    Allowed("deadlock in words", "SHALE's message says who waited for what",
            "^error text$", "", r"^error 1213: Deadlock found[^;]*; try restarting transaction; deadlock: ",
            r"^error 1213: Deadlock found[^;]*; try restarting transaction$"),
    Allowed("which of two keys is duplicate", "InnoDB looks WITHOUT OVERLAPS up in its snapshot, and misses rows"
            " that the row is then a duplicate of in another key", "^(error|warning) text", "^(insert|replace|load|update)",
            "Duplicate entry '.*' for key '[^']*'", "Duplicate entry '.*' for key '[^']*'",
            program="without overlaps"),
    Allowed("a row that does not match is passed", "at READ COMMITTED an UPDATE or DELETE that meets another's row looks at"
            " what is committed of it; InnoDB waits if the other has deleted it, or for the entry of an index",
            "^(waits|outcome)$", "^(update|delete)", "^ok", LOCKED, parts=True,
            program="^set session transaction isolation level read committed"),
    Allowed("the row beyond a range", "at READ COMMITTED InnoDB asks for the first row beyond the range too, and waits for it;"
            " SHALE for those of the range", "^(waits|outcome)$",
            "^select .* where (id|k|u) .*(for update|lock in share mode)( nowait)?$", r"^\d+ rows", LOCKED, parts=True,
            program="^set session transaction isolation level read committed"),
    Allowed("gaps beside a duplicate", "InnoDB locks the gap before a duplicate of a unique index at READ COMMITTED too: others"
            " who insert there wait", "^(waits|outcome|error code)$", "^(insert|replace)",
            "^ok|^error 1062", LOCKED, parts=True,
            program="^set session transaction isolation level read committed"),
    Allowed("a duplicate that a scan has met", "a lock that was shared for a duplicate stays exclusive when a later scan has met"
            " the row, and had no use for it; in InnoDB these are two locks", "^(waits|outcome|error code)$", "^insert",
            LOCKED, "^ok|^error 1062", parts=True, program="^(delete|update|select .* for update)"),
    Allowed("InnoDB's victim", "of a deadlock InnoDB gives up the one with the least writes and locks, SHALE the one with the"
            " least writes. The other way round is not listed: it could be a deadlock that only SHALE has",
            "^waits$", "^(update|delete)", "^(waits|ok)", "^error 1213", parts=True,
            program="^set session transaction isolation level read committed"),
    Allowed("rows skipped for their gaps", GAPS, "^rows$", "skip locked$", r"^\d+ rows; only here [1-9]",
            r"^\d+ rows; only here 0: $", parts=True,
            program="^set session transaction isolation level (rep|ser)"),
    Allowed("hash-unique keys of two sessions", "the server looks them up in InnoDB's snapshot: it misses rows and lets"
            " duplicates in. That SHALE has none is asked instead", "^(waits|outcome|error|affected|text|rows)", "",
            "", "", parts=True, program=r"^create table t \(.*u blob.*unique key u"),
    Allowed("AUTO_INCREMENT at its end", "what the next number would be when there is none left",
            "^rows$", "^show create table", r"AUTO_INCREMENT=2147483648 ", r"AUTO_INCREMENT=21474836\d\d "),
    Allowed("column made NOT NULL, in place", "InnoDB does it in place and warns once more",
            "^warning texts$", "^alter (ignore )?table .*modify",
            r"^\('Error', '1265', .Data truncated for column '\w+' at row \d+.\)$",
            r"^\('Error', '1265', .*\('Error', '1138', 'Invalid use of NULL value'\)$"),
    Allowed("column made NOT NULL, its name", "InnoDB counts columns past virtual ones, and names another",
            "^error text$", "^alter (ignore )?table .*modify",
            r"^error 1265: Data truncated for column '\w+' at row \d+$",
            r"^error 1265: Data truncated for column '\w+' at row \d+$"),
]


def find(difference: Any, steps: list[Any]) -> Allowed | None:
    for one in ALLOWED:
        if one.fits(difference, steps):
            return one
    return None


def none(difference: Any, steps: list[Any]) -> None:
    return None
