"""Why no application can depend on the answers of InnoDB that SHALE does not give.

For each reason (semantics_cases.py) some sentences; a title in brackets is that of a case which
shows it. semantics.py writes them to docs/semantics.md.
"""

from __future__ import annotations

import re

from semantics_cases import ASKED, DIRTY, HOLDER, MISSING

WHY: dict[str, list[str]] = {
    DIRTY: [
        "The SQL standard lets an implementation be stricter, and the server's manual promises no"
        " uncommitted row: at this level \"a possible earlier version of a row might be used\".",
        "A read that comes a moment earlier has SHALE's answer on InnoDB too"
        " ([Dirty read a moment earlier]).",
        "What the level is used for is kept: reads do not wait and stop nobody"
        " ([READ UNCOMMITTED waits for nobody and stops nobody]), they see each commit at once"
        " ([READ UNCOMMITTED sees each commit at once]) and one's own writes"
        " ([READ UNCOMMITTED sees one's own writes]).",
        "What is lost: counting rows does not show how far another's transaction is. `WRITES` in"
        " `information_schema.SHALE_TRANSACTIONS` does.",
        "An application that tells its second connection by other means what the first has written"
        " and not committed, and has it read that, works on InnoDB only.",
    ],
    MISSING: [
        "Where the row is there the second waits on both"
        " ([Look for a row that is there, then change it]), so an application has to be ready for"
        " that.",
        "InnoDB's second waits too where the row was deleted and an older snapshot, anybody's,"
        " still needs it ([Insert where a locking read found a row deleted before]).",
        "An application that does all of it again after error 1213, as it has to on InnoDB, comes"
        " to the same end ([Insert where a locking read found nothing, then again]).",
        "What the look promises is kept by both: nobody else adds the row"
        " ([Insert of a row that another has looked for]). Who wants others to look too has LOCK"
        " IN SHARE MODE ([Insert where a shared read found nothing]).",
    ],
    ASKED: [
        "InnoDB's gap ends at the next row, and with another row there its answer is SHALE's:"
        " [Insert beside a range that was read, behind a neighbour],"
        " [Update of the row after a range that was read, with a neighbour],"
        " [Insert next to equal keys, behind a neighbour],"
        " [Insert of two missing rows of two gaps after a look at each].",
        "Between equal keys of an index it depends on the primary key of the new row:"
        " [Insert of the next key, with a smaller primary key] and"
        " [Insert of the next key, with a greater primary key].",
        "What was asked for is kept free by both, to its very ends:"
        " [Insert at the very ends of a range that was read],"
        " [Insert into a range without rows, below all others],"
        " [Insert into a range without rows, above all others],"
        " [Insert among equal keys, below all of them],"
        " [Insert among equal keys, above all of them].",
    ],
    HOLDER: [
        "InnoDB's answer depends on which statement comes first: a moment earlier A's INSERT makes"
        " no deadlock, and B gets the new row, as on SHALE"
        " ([The holder adds rows before another asks]).",
        "It depends on what else the two have changed: then A is the victim"
        " ([The holder adds rows while one who has changed more waits]).",
        "An application has to do all of it again after error 1213. What it then gets is what SHALE"
        " has given it ([The holder adds rows while another waits, who then asks again]).",
    ],
}


def named() -> list[str]:
    """The titles that are named."""
    return [title for lines in WHY.values() for line in lines
            for title in re.findall(r"\[(.*?)\]", line)]
