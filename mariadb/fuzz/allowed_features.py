"""Known differences of words, shapes and versions: a part of the list in allowed.py."""

from __future__ import annotations

import re

from listed import Allowed

AFFECTED = re.compile(r"^(?:ok: )?(\d+) (?:rows|affected)")

WARNINGS = re.compile(r"(\d+) warnings")


def finds_more(ours: str, theirs: str) -> bool:
    """Whether SHALE's answer has rows that InnoDB's has not."""
    counts = [AFFECTED.search(one) for one in (ours, theirs)]
    return all(counts) and int(counts[0][1]) > int(counts[1][1])  # type: ignore[index]


def more_warnings(ours: str, theirs: str) -> bool:
    """Whether SHALE's answer counts or shows more of them."""
    counts = [WARNINGS.search(one) for one in (ours, theirs)]
    numbers = [int(found[1]) if found else one.count("('Warning'") for found, one in zip(counts, (ours, theirs))]
    return numbers[0] > numbers[1]


FEATURES: list[Allowed] = [
    Allowed("words of a syntax error in MATCH", "a parser of its own tells what is wrong in its own words", "^(error|warning) texts?( by two plans)?$", "match",
            "1064.*syntax error in the text of MATCH", "1064.*syntax error"),
    Allowed("a read by a SPATIAL index", "InnoDB refuses some outside of a transaction (docs/decisions/0022)", "^outcome( by a SPATIAL index| by two plans)?$",
            "^select", r"^\d+ rows", "^error 1207"),
    Allowed("a SPATIAL index of InnoDB's that lacks rows", "InnoDB finds SHALE's rows when it reads the table", "^rows by a SPATIAL index$",
            "^select", r"^\d+ rows", r"^\d+ rows; only here (0|1: \('\d+'\)$)"),
    Allowed("the order of InnoDB's FULLTEXT index", "the server scans it for the order of a column of the primary key, and InnoDB has no"
            " rows then", "^(rows|affected) in the order of a FULLTEXT index$", "^(select|update|delete)", r"^(ok|\d+ rows)",
            r"^(ok: 0|\d+ rows; only here 0)", parts=True, program="fulltext"),
    Allowed("no partitions left, of a period", "the server's UPDATE or DELETE reads no partition (see `no partitions left`); of a"
            " portion of a period it would have found a duplicate", "^outcome$", "^(update|delete) .*for portion of",
            "^error 1062", "^ok: 0 affected", parts=True, program="partition by"),
    Allowed("InnoDB's FULLTEXT index of a versioned table", "some ALTERs that store rows anew end with an error of the index of its numbers of"
            " documents", "^outcome$", "^alter ", "^ok", "^error 1034: Index for table", parts=True, program="fulltext",
            also="system versioning"),
    Allowed("words after a statement that was undone", "InnoDB loses the words of rows that a statement has changed in a transaction that"
            " goes on, if it fails at a later row, or is rolled back to a savepoint", "^(rows|affected)( by two plans)?$",
            "^(select|update|delete) .*match ", r"^(ok|\d+ rows)", r"^(ok|\d+ rows; only here 0)", parts=True,
            program="^(begin|start|xa start|set autocommit=0)", also="^(update|insert|replace)", so=finds_more),
    Allowed("history beyond its limit", "how many rows InnoDB counts in a partition by SYSTEM_TIME LIMIT: none, after it was rebuilt",
            "^(warnings|warning texts)$", "^(insert|replace|update|delete|load)", "[1-9]\\d* warnings|4114", "", parts=True,
            program="by system_time limit", also="^alter", so=more_warnings),
]
