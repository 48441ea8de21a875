"""Compares what one test has given on SHALE and on InnoDB, statement by statement.

Pure: texts in, differences out, each with its class. A class that is not `rest` needs no reason of its
own, since its name is one:

order       the same rows in another order, which the statement does not ask for
plan        EXPLAIN, counters of handler calls: another plan, or other estimates
statistics  cardinalities, sizes and times of tables
engine      what only InnoDB has: its files, its tables in the schemas, its hints
way         how an ALTER is done: the counts it tells, what ALGORITHM= and LOCK= allow
refused     a feature that SHALE refuses with an error that says so; `what` is the feature
cascade     follows from a refused statement: of a table that it should have made or changed
rest        to be explained
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import re
from collections import Counter

REFUSED = [
    (r"doesn't support FULLTEXT indexes", "fulltext"),
    (r"doesn't support SPATIAL indexes", "spatial"),
    (r"must be of type TIMESTAMP\(6\) for system-versioned", "versioning by transaction"),
    (r"Transaction-precise system versioning for .* is not supported", "versioning by transaction"),
    (r"Unknown option '(ENCRYPT|PAGE_COMPRESS)", "option of InnoDB"),
    (r"Storage engine ENGINE of the table .* doesn't have this option", "flush for export"),
    (r"create option '(DATA|INDEX) DIRECTORY'", "data directory"),
]

START = re.compile(
    r"\s*\(*(select|insert|update|delete|replace|create|alter|drop|truncate|explain|analyze|"
    r"describe|desc|show|set|begin|start|commit|rollback|savepoint|release|call|prepare|execute|"
    r"deallocate|use|lock|unlock|flush|reset|handler|load|check|optimize|repair|checksum|rename|"
    r"grant|revoke|xa|with|values|do|kill|connect|disconnect|connection|change|stop|cache|purge|"
    r"signal|get|include|delimiter|help|install|uninstall|binlog|shutdown|backup|execute|"
    r"evaluating|table \w+;)\b(?!\t)",
    re.IGNORECASE,
)
# Lines that the driver gives by itself.
SINGLE = re.compile(r"include/|(dis)?connect(ion)? ", re.IGNORECASE)
DELIMITED = re.compile(r"(;|\||//|\$\$|\$)\s*$")
# A result of FORMAT=JSON has one of these as its column's name.
HEADER = re.compile(r"(ANALYZE|EXPLAIN)$")
FORMAT = re.compile(r"\s*(analyze|explain)\b.*\bformat\b", re.IGNORECASE | re.DOTALL)
COMMENT = re.compile(r"\s*(#|--|/\*)")
PLAN = re.compile(
    r"\s*(set\s+statement\b.*\bfor\s+explain|explain|analyze\s+(?!table)|describe\s+(select|extended|update|delete)|desc\s+select|"
    r"show\s+(session\s+|local\s+|global\s+)?status|flush\s+status|.*\boptimizer_trace\b|"
    r".*\bhandler_(read|tmp|update|write|delete|icp|mrr)|.*last_query_cost)",
    re.IGNORECASE | re.DOTALL,
)
STATISTICS = re.compile(
    r"\s*(show\s+(index|indexes|keys|table\s+status)\b|.*information_schema\.(statistics|tables|"
    r"partitions|table_statistics|index_statistics|files)\b|.*\bmysql\.(table|column|index)_stats|"
    r"show\s+(table_statistics|index_statistics)|.*\bstatus\s+like\s+'.*rows_)",
    re.IGNORECASE | re.DOTALL,
)
# Statements that ask InnoDB itself.
ASKS_ENGINE = re.compile(
    r"\b(from|join|table|into|update)\s+`?((information_schema|mysql)`?\.)?`?innodb_\w+|"
    r"\bshow\s+engines?\b|@@(global\.|session\.)?innodb_|\blike\s+['\"]%?innodb|"
    r"\bshow\s+(storage\s+)?(engines|plugins)\b|information_schema\.(engines|plugins|all_plugins)",
    re.IGNORECASE,
)
ALTER = re.compile(r"\s*(alter\s+(online\s+|ignore\s+)*table|create\s+(\w+\s+)*index|drop\s+index|"
                   r"optimize|rename)\b", re.IGNORECASE)
COUNTS = re.compile(r"affected rows: |info: Records: ")
NOT_SO = re.compile(r"ERROR 0A000: .*(ALGORITHM|LOCK)=")
# These name the tables in what they give.
ABOUT_TABLES = re.compile(r"\s*show\b|.*\binformation_schema\b", re.IGNORECASE | re.DOTALL)
# What comes of something that is not there.
MISSES = re.compile(
    r"(doesn't exist|[Uu]nknown (table|SEQUENCE|column|prepared statement|VIEW|trigger)|does not exist|"
    r"Can't DROP|Can't find|is not a SEQUENCE|is not SEQUENCE|Operation failed|not found in)"
)
# What was counted or told of the statement before.
AFTERWARDS = re.compile(r"\s*(select\s+(row_count|found_rows|last_insert_id)\(\)|show\s+(count\(\*\)\s+)?"
                        r"(warnings|errors)|get\s+diagnostics|select\s+@@(warning|error)_count|"
                        r"commit|rollback)\b", re.IGNORECASE)
VARIABLE = re.compile(r"(?:\binto\s+|\bset\s+)?(@\w+)\s*(?::?=|;|$|,)", re.IGNORECASE)
# Lines that InnoDB alone gives.
ONLY_ENGINE = re.compile(
    r"\.ibd\b|\.ibd'|\bibdata|\binnodb_|ib_logfile|doing recreate \+ analyze instead|"
    r"does not support optimize on partitions|\"(r_engine_stats|pages_\w+)\":|"
    r"#sql-ib|\bSYS_(TABLES|INDEXES|COLUMNS)\b|\.shale\b|\bshale_",
    re.IGNORECASE,
)
ENGINE = re.compile(r"\b(shale|innodb)\b", re.IGNORECASE)
SESSION = re.compile(
    r"(shale|innodb)(?=_(lock_wait_timeout|ft_(enable|user|server)_stopword|ft_(min|max)_token))|"
    r"(?<=gtid_slave_pos_)(shale|innodb)\b", re.IGNORECASE
)
# What SHALE adds to the message: who waited for what.
DEADLOCK = re.compile(r"(try restarting transaction); deadlock: [^\n]*")
# What is wrong with a text that MATCH is asked for, in each engine's words.
PARSE = re.compile(r"(?<=ERROR 42000: syntax error)(, unexpected | in the text of MATCH )[^\n]*")
# Where a remark of the driver tells its line, and how one on a query ends that has the error itself.
AT_LINE = re.compile(r"(?:mysqltest: )?At line \d+: (query ')?")
FAILED = re.compile(r"' failed: (\S+ \(\d+\): .*)$")
# Numbers of the server's process and of statements.
NUMBERS = re.compile(r"(#sql-[a-z]*-?)[0-9a-f]+-[0-9a-f]+|\b(Xid = )\d+")
FOLDER = re.compile(r"(/dev/shm/shale-against-\d+|\S*/mariadb/against)/(SHALE|InnoDB)(/\d+)?\b")


@dataclasses.dataclass(frozen=True)
class Difference:
    kind: str
    what: str
    statement: str
    shale: str
    innodb: str

    def text(self) -> str:
        return f"[{self.kind}{': ' if self.what else ''}{self.what}] {self.statement}\n" + "".join(
            difflib.unified_diff(
                [line + "\n" for line in self.innodb.splitlines()],
                [line + "\n" for line in self.shale.splitlines()],
                "InnoDB", "SHALE", n=1,
            )
        )


def lines_of(text: str) -> list[str]:
    """Lines with both engines' name as one, and without the driver's own remarks."""
    text = PARSE.sub("", NUMBERS.sub(r"\1\2N", DEADLOCK.sub(r"\1", text)))
    text = ENGINE.sub("ENGINE", SESSION.sub("ENGINE", FOLDER.sub("VARDIR", text)))
    lines = text.split("\n")
    return without_remarks(lines) if "mysqltest: " in text else lines


def without_remarks(lines: list[str]) -> list[str]:
    """A remark begins with the files that the line is in, if any. One on a query may go over lines."""
    kept: list[str] = []
    files = query = False
    for line in lines:
        at = AT_LINE.match(line) if files or line.startswith("mysqltest: At line ") else None
        files = line.startswith("mysqltest: In included file") or (
            files and line.startswith("included from ")
        )
        if at:
            query = at.group(1) is not None
        elif not query:
            if not files:
                kept.append(line)
            continue
        if query:
            # "query '...' failed with wrong errno ...": the error is beside it. Only where the test has
            # asked for an end at any error it is not: "query '...' failed: ER_X (1): why".
            failed = FAILED.search(line)
            if failed:
                kept.append(f"ERROR {failed.group(1)}")
            query = not (failed or line.endswith(("...", "'")))
    return kept


@dataclasses.dataclass
class Block:
    """A statement, as far as lines tell, and what came of it."""

    lines: list[str]

    @property
    def key(self) -> str:
        return self.lines[0]

    def split(self) -> tuple[str, list[str]]:
        """The statement, which ends with a delimiter at a line's end, and its output."""
        for at, line in enumerate(self.lines):
            if DELIMITED.search(line):
                return "\n".join(self.lines[: at + 1]), self.lines[at + 1 :]
        return self.lines[0], self.lines[1:]


    @property
    def open(self) -> bool:
        """Whether its statement goes on: no line has ended with a delimiter yet."""
        first = self.lines[0]
        if not START.match(first) or SINGLE.match(first) or len(self.lines) > 100:
            return False
        return not any(DELIMITED.search(line) for line in self.lines)


def blocks_of(lines: list[str]) -> list[Block]:
    blocks = [Block([""])]
    for line in lines:
        last = blocks[-1]
        starts = START.match(line) and not (last.open and not SINGLE.match(line))
        if starts and HEADER.match(line) and FORMAT.match("\n".join(last.lines)):
            starts = False
        if starts or COMMENT.match(line):
            blocks.append(Block([line]))
        else:
            blocks[-1].lines.append(line)
    return blocks


def pairs(shale: list[Block], innodb: list[Block]) -> list[tuple[Block, Block]]:
    """Statements of both sides beside each other; what only one has is put to the one before."""
    # What both begin and end with in common needs no search, and is nearly all.
    same = 0
    while same < min(len(shale), len(innodb)) and shale[same].key == innodb[same].key:
        same += 1
    result = list(zip(shale[:same], innodb[:same]))
    shale, innodb = shale[same:], innodb[same:]
    same = 0
    while same < min(len(shale), len(innodb)) and shale[-same - 1].key == innodb[-same - 1].key:
        same += 1
    tail = list(zip(shale[len(shale) - same :], innodb[len(innodb) - same :]))
    shale, innodb = shale[: len(shale) - same], innodb[: len(innodb) - same]
    matcher = difflib.SequenceMatcher(None, [one.key for one in shale], [one.key for one in innodb])
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            result += list(zip(shale[a:a_end], innodb[b:b_end]))
            continue
        if not result:
            result.append((Block([""]), Block([""])))
        before_shale, before_innodb = result[-1]
        result[-1] = (
            Block(before_shale.lines + [line for one in shale[a:a_end] for line in one.lines]),
            Block(before_innodb.lines + [line for one in innodb[b:b_end] for line in one.lines]),
        )
    return result + tail


def without_numbers(lines: list[str]) -> list[str]:
    return [re.sub(r"\d+(\.\d+)?", "0", line) for line in lines]


def ordered(statement: str, lines: list[str]) -> list[tuple[str, ...]] | None:
    """The columns of a result by which its statement orders it, if both are told by name or place."""
    found = re.search(
        r"\border\s+by\s+((?:[\w.`]+(?:\s+(?:asc|desc))?\s*,?\s*)+?)(?:\blimit\b.*)?;?\s*$",
        statement, re.IGNORECASE | re.DOTALL,
    )
    if not found or not lines:
        return None
    header = [name.lower() for name in lines[0].split("\t")]
    places = []
    for word in found.group(1).split(","):
        name = re.sub(r"\s+(asc|desc)\s*$", "", word.strip(), flags=re.IGNORECASE)
        name = name.replace("`", "").split(".")[-1].strip().lower()
        if name.isdigit() and 0 < int(name) <= len(header):
            places.append(int(name) - 1)
        elif name in header:
            places.append(header.index(name))
        else:
            return None
    rows = [line.split("\t") for line in lines[1:]]
    return [tuple(row[place] for place in places if place < len(row)) for row in rows]


def reordered(statement: str, shale: list[str], innodb: list[str]) -> bool:
    if Counter(shale) != Counter(innodb):
        return False
    if not re.search(r"\border\s+by\b", statement, re.IGNORECASE):
        return True
    keys = ordered(statement, shale)
    return keys is not None and keys == ordered(statement, innodb)


MAKES = re.compile(
    r"\b(?:table|view|sequence|procedure|function|trigger|event)\s+(?:if\s+(?:not\s+)?exists\s+)?"
    r"((?:`[^`]+`|[\w.$#@-]+)(?:\s*,\s*(?:`[^`]+`|[\w.$#@-]+))*)",
    re.IGNORECASE,
)
# The other table of a foreign key is changed, or is not, because of it.
REFERS = re.compile(r"\breferences\s+((?:`[^`]+`|[\w$]+)(?:\.(?:`[^`]+`|[\w$]+))?)", re.IGNORECASE)
CHANGES = re.compile(r"\b(?:insert|replace)\b.*?\binto\s+(`[^`]+`|[\w.$]+)|\bupdate\s+(`[^`]+`|[\w.$]+)"
                     r"|\bdelete\s+from\s+(`[^`]+`|[\w.$]+)|\bon\s+(`[^`]+`|[\w.$]+)\s*\(", re.I)


def names_in(text: str) -> set[str]:
    """What a statement makes or changes, without schemas and quotes."""
    found: set[str] = set()
    for match in MAKES.finditer(text):
        found |= {name for name in match.group(1).split(",")}
    for match in CHANGES.finditer(text):
        found |= {name for name in match.groups() if name}
    found |= set(VARIABLE.findall(text))
    return {name.strip().strip("`").split(".")[-1].strip("`").lower() for name in found} - {""}


def mentions(statement: str, names: set[str]) -> bool:
    return bool(names & set(re.findall(r"@?[\w$]+", statement.lower())))


class Comparison:
    """Goes through the pairs in order: what a refused statement leaves undone is remembered."""

    def __init__(self) -> None:
        self.tainted: set[str] = set()
        self.features: list[str] = []
        # Whether the statement before was one that a refused one has changed.
        self.missed = False
        self.differences: list[Difference] = []

    def pair(self, shale: Block, innodb: Block) -> None:
        statement, given = shale.split()
        other_statement, expected = innodb.split()
        if given == expected and statement == other_statement:
            # Made anew, or gone, on both sides: what was not there before is no longer missed.
            if self.tainted and not any(line.startswith("ERROR") for line in given):
                if re.match(r"\s*(create|drop)\s+(?!(\w+\s+)?index\b)", statement, re.IGNORECASE):
                    self.tainted -= names_in(statement)
            if self.missed and AFTERWARDS.match(statement):
                # What it was told of the refused statement, it has in variables from here on.
                self.tainted |= {name.lower() for name in VARIABLE.findall(statement)}
            elif not COMMENT.match(statement) and statement.strip():
                self.missed = False
            return
        # A statement that the test itself builds may differ too.
        if statement != other_statement:
            given, expected = shale.lines, innodb.lines
        kind, what = self.classify(statement, given, expected)
        self.missed = kind in ("refused", "cascade")
        self.differences.append(
            Difference(kind, what, statement, "\n".join(given), "\n".join(expected))
        )

    def classify(self, statement: str, given: list[str], expected: list[str]) -> tuple[str, str]:
        if kind := self.harmless(statement, given, expected):
            return kind, ""
        text = "\n".join(line for line in given if line not in expected)
        for pattern, feature in REFUSED:
            if re.search(f"^ERROR .*(?:{pattern})", text, re.MULTILINE):
                self.features.append(feature)
                self.tainted |= names_in(statement) | {
                    name.split(".")[-1].strip("`").lower() for name in REFERS.findall(statement)
                }
                return "refused", feature
        if ALTER.match(statement):
            if (way := self.way(statement, given, expected)) is not None:
                return way
        if self.missed and AFTERWARDS.match(statement):
            return "cascade", self.features[-1]
        if ABOUT_TABLES.match(statement):
            text += "\n".join(line for line in expected if line not in given)
        if self.tainted and mentions(f"{statement}\n{text}", self.tainted):
            drops = re.match(r"\s*drop\s+(table|view|database|sequence)\b", statement, re.IGNORECASE)
            if drops:
                self.tainted -= names_in(statement)
            elif re.match(r"\s*(create|alter|rename|insert|update|delete|replace)\b", statement,
                          re.IGNORECASE):
                self.tainted |= names_in(statement)
            return "cascade", self.features[-1]
        more = Counter(given) - Counter(expected)
        if self.features and more and all(MISSES.search(line) or line == "Warnings:" for line in more):
            return "cascade", self.features[-1]
        return "rest", ""

    def way(
        self, statement: str, given: list[str], expected: list[str]
    ) -> tuple[str, str] | None:
        """Whether the two only differ in how the change is made."""
        ours = [line for line in given if not COUNTS.match(line)]
        theirs = [line for line in expected if not COUNTS.match(line)]
        refuses = [any(NOT_SO.match(line) for line in lines) for lines in (ours, theirs)]
        if ours == theirs or all(refuses):
            return "way", ""
        if refuses[1] and not any(line.startswith("ERROR") for line in ours):
            # From here on SHALE's table is changed and InnoDB's is not.
            self.features.append("only InnoDB refuses")
            self.tainted |= names_in(statement)
            return "way", ""
        if refuses[0]:
            self.features.append("algorithm or lock")
            self.tainted |= names_in(statement)
            return "refused", "algorithm or lock"
        return None

    def harmless(self, statement: str, given: list[str], expected: list[str]) -> str | None:
        ours = [line for line in given if not ONLY_ENGINE.search(line)]
        theirs = [line for line in expected if not ONLY_ENGINE.search(line)]
        if ours == theirs or ASKS_ENGINE.search(statement):
            return "engine"
        errors = [line for line in ours if line.startswith("ERROR")]
        if errors != [line for line in theirs if line.startswith("ERROR")]:
            return None
        if PLAN.match(statement):
            return "plan"
        if STATISTICS.match(statement) and without_numbers(ours) == without_numbers(theirs):
            return "statistics"
        if reordered(statement, ours, theirs):
            return "order"
        return None


def compare(shale: str, innodb: str, stopped: bool = False) -> list[Difference]:
    """`stopped`: the test did not come to its end on SHALE, so that the last difference is that."""
    # Most are equal but for the engine's name, and this is told without looking at lines.
    if shale.lower().replace("shale", "innodb") == innodb.lower().replace("shale", "innodb"):
        return []
    comparison = Comparison()
    ours, theirs = lines_of(shale), lines_of(innodb)
    if ours == theirs:
        return []
    for one, other in pairs(blocks_of(ours), blocks_of(theirs)):
        comparison.pair(one, other)
    found = comparison.differences
    if stopped and comparison.features and found and found[-1].kind == "rest":
        found[-1] = dataclasses.replace(found[-1], kind="cascade", what=comparison.features[-1])
    return found


def mark(differences: list[Difference]) -> str:
    """A few digits that change with any of these differences."""
    text = "\0".join(f"{one.statement}\0{one.shale}\0{one.innodb}" for one in differences)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:10]
