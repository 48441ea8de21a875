"""Words, places and versions of crash.py: tables with FULLTEXT, SPATIAL and system versioning.

What a transaction does follows from its client and number alone, and it notes both in `note_log`.
So from the log follows which rows there are, and which there were. Each client has rows of its own:
`note` and `past` (system-versioned) go with their topic and follow its number, `scrap` has no
primary key.

`check` holds the tables against the log, MATCH against InnoDB's over a copy of the rows, relations
of shapes and AS OF against a scan of that copy.
"""

from __future__ import annotations

import collections
import pathlib
import random
from typing import Any

import server as servers
import words
from crash_families import expect

SLOTS = 30
TOPICS = 5
LINK = ("foreign key (client, topic) references topic (client, number)"
        " on delete cascade on update cascade")
TABLES = [
    "create table topic (client int, number int, primary key (client, number))",
    "create table note (client int, slot int, topic int, title varchar(400), body text,"
    " place geometry not null, primary key (client, slot), fulltext both_ (title, body),"
    f" fulltext (body), spatial (place), {LINK}) default charset utf8mb4",
    "create table past (client int, slot int, topic int, body text, primary key (client, slot),"
    f" fulltext (body), {LINK}) default charset utf8mb4 with system versioning",
    "create table scrap (client int, slot int, body text, key (client, slot), fulltext (body))"
    " default charset utf8mb4",
    "create table note_log (client int, number int, xa int, primary key (client, number))",
]
NAMES = ["topic", "note", "past", "scrap", "note_log"]
# Where a change of a topic's number finds no other topic.
KINDS = ["put"] * 4 + ["load", "words", "words", "move", "delete", "drop", "renumber"]

Step = tuple[str, dict[str, Any]]


def shape(chance: random.Random) -> str:
    """Of whole numbers, so that it reads as it was written."""
    x, y = chance.randrange(-50, 50), chance.randrange(-50, 50)
    if chance.random() < 0.5:
        return f"POINT({x} {y})"
    if chance.random() < 0.3:
        return f"LINESTRING({x} {y},{x + chance.randrange(9)} {y + 1 + chance.randrange(9)})"
    a, b = x + 1 + chance.randrange(9), y + 1 + chance.randrange(9)
    return f"POLYGON(({x} {y},{a} {y},{a} {b},{x} {b},{x} {y}))"


def step(chance: random.Random, tag: str) -> Step:
    first = chance.randrange(SLOTS)
    what: dict[str, Any] = {
        "slots": range(first, min(SLOTS, first + chance.choice([1, 1, 2, 12]))),
        "topic": chance.randrange(TOPICS), "place": shape(chance),
        "rows": [], "body": f"{tag} {words.text(chance, 20)}",
    }
    kind = chance.choice(KINDS)
    if kind in ("put", "load"):
        what["rows"] = [
            (slot, words.text(chance, 6).replace("\n", " ").replace("\t", " "),
             f"{tag} {words.text(chance, 30)}".replace("\n", " ").replace("\t", " "),
             shape(chance)) for slot in what["slots"]]
    what["other"] = (what["topic"] + 1 + chance.randrange(TOPICS - 1)) % TOPICS
    return kind, what


def steps(client: int, number: int, xa: bool) -> list[tuple[Step, bool]]:
    """What a transaction does, and whether each step is kept: others go back to a savepoint."""
    chance = random.Random(f"{client}/{number}")
    return [(step(chance, f"tag{client}x{number}x{part}"), xa or chance.random() < 0.75)
            for part in range(chance.choice([1, 1, 2, 3]))]


def index_of(table: str) -> str:
    """Of `scrap`, which has no primary key. Who reads all of it would wait for all clients: a
    replica, whose plan may be another than the primary's, for one who is prepared and is decided
    by what comes later. That is so of all engines."""
    return "force index (client)" if table == "scrap" else ""


def do_step(server: servers.Server, cursor: Any, client: int, one: Step) -> None:
    kind, what = one
    slots, topic = what["slots"], what["topic"]
    where, these = "client = %s and slot between %s and %s", (client, slots[0], slots[-1])
    if kind in ("put", "load"):
        cursor.execute("insert ignore into topic values (%s, %s)", (client, topic))
    if kind == "put":
        rows = what["rows"]
        cursor.execute(
            "insert into note values "
            + ", ".join(["(%s, %s, %s, %s, %s, st_geomfromtext(%s))"] * len(rows))
            + " on duplicate key update topic = values(topic), title = values(title),"
            " body = values(body), place = values(place)",
            [value for slot, *rest in rows for value in (client, slot, topic, *rest)])
        cursor.execute(
            f"insert into past values {', '.join(['(%s, %s, %s, %s)'] * len(rows))}"
            " on duplicate key update topic = values(topic), body = values(body)",
            [value for slot, _, body, _ in rows for value in (client, slot, topic, body)])
        for slot, _, body, _ in rows:
            cursor.execute("insert into scrap values (%s, %s, %s)", (client, slot, body))
    elif kind == "load":
        file = pathlib.Path(server.data).with_name(f"{client}.load")
        file.write_text("".join(f"{client}\t{slot}\t{topic}\t{title}\t{body}\t{place}\n"
                                for slot, title, body, place in what["rows"]))
        cursor.execute(f"load data infile '{file}' replace into table note character set utf8mb4"
                       " fields escaped by ''"
                       " (client, slot, topic, title, body, @place)"
                       " set place = st_geomfromtext(@place)")
    elif kind == "words":
        for table in ("note", "past", "scrap"):
            cursor.execute(f"update {table} {index_of(table)} set body = %s where {where}",
                           (what["body"], *these))
    elif kind == "move":
        cursor.execute(f"update note set place = st_geomfromtext(%s) where {where}",
                       (what["place"], *these))
    elif kind == "delete":
        for table in ("note", "past", "scrap"):
            cursor.execute(f"delete {table} from {table} {index_of(table)} where {where}", these)
    else:
        gone = topic if kind == "drop" else what["other"]
        cursor.execute("delete from topic where client = %s and number = %s", (client, gone))
        if kind == "renumber":
            cursor.execute("update topic set number = %s where client = %s and number = %s",
                           (gone, client, topic))


def run_steps(
    server: servers.Server, cursor: Any, client: int, number: int, xa: bool = False
) -> None:
    """The statements of a transaction, without its end."""
    for one, kept in steps(client, number, xa):
        if not kept:
            cursor.execute("savepoint before_step")
        do_step(server, cursor, client, one)
        if not kept:
            cursor.execute("rollback to savepoint before_step")
    cursor.execute("insert into note_log values (%s, %s, %s)", (client, number, int(xa)))


class Model:
    """The rows that transactions make, and those of `past` that have been."""

    def __init__(self) -> None:
        self.topics: set[tuple[int, int]] = set()
        self.note: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.past: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.scrap: dict[tuple[int, int], list[str]] = {}
        self.ended: collections.Counter[tuple[Any, ...]] = collections.Counter()

    def end(self, key: tuple[int, int]) -> None:
        if key in self.past:
            self.ended[(*key, *self.past[key])] += 1

    def apply(self, client: int, one: Step) -> None:
        kind, what = one
        topic, keys = what["topic"], [(client, slot) for slot in what["slots"]]
        if kind in ("put", "load"):
            self.topics.add((client, topic))
        for slot, title, body, place in what["rows"]:
            key = (client, slot)
            self.note[key] = (topic, title, body, place)
            if kind == "put":
                self.end(key)
                self.past[key] = (topic, body)
                self.scrap.setdefault(key, []).append(body)
        for key in keys:
            if kind == "words":
                body = what["body"]
                if key in self.note:
                    topic_, title, _, place = self.note[key]
                    self.note[key] = (topic_, title, body, place)
                if key in self.past:
                    self.end(key)
                    self.past[key] = (self.past[key][0], body)
                if key in self.scrap:
                    self.scrap[key] = [body] * len(self.scrap[key])
            elif kind == "move" and key in self.note:
                self.note[key] = (*self.note[key][:3], what["place"])
            elif kind == "delete":
                self.note.pop(key, None)
                self.end(key)
                self.past.pop(key, None)
                self.scrap.pop(key, None)
        if kind in ("drop", "renumber"):
            gone = topic if kind == "drop" else what["other"]
            self.of_topic(client, gone, None)
            if kind == "renumber":
                self.of_topic(client, topic, gone)

    def of_topic(self, client: int, topic: int, becomes: int | None) -> None:
        """Its cascades: gone, or of another number."""
        if (client, topic) not in self.topics:
            return
        self.topics.remove((client, topic))
        if becomes is not None:
            self.topics.add((client, becomes))
        for table in (self.note, self.past):
            for key in [key for key, row in table.items() if key[0] == client and row[0] == topic]:
                if table is self.past:
                    self.end(key)
                row = table.pop(key)
                if becomes is not None:
                    table[key] = (becomes, *row[1:])


COPY = [
    "create or replace database copied",
    "create table copied.note (client int, slot int, title varchar(400), body text,"
    " place geometry not null, primary key (client, slot), fulltext both_ (title, body),"
    " fulltext (body)) default charset utf8mb4 engine=innodb",
    # With ADD FULLTEXT InnoDB loses phrases behind an empty title.
    "insert into copied.note select client, slot, title, body, place from note use index ()",
    "create table copied.past (client int, slot int, starts timestamp(6) null,"
    " ends timestamp(6) null, body text, key (client)) default charset utf8mb4 engine=innodb",
    "insert into copied.past select client, slot, row_start, row_end, body"
    " from past for system_time all use index ()",
    "alter table copied.past add fulltext (body)",
    "create table copied.scrap (client int, slot int, body text) default charset utf8mb4"
    " engine=innodb",
    "insert into copied.scrap select client, slot, body from scrap use index ()",
    "alter table copied.scrap add fulltext (body)",
    # From its cache InnoDB gives answers that it does not give after a restart.
    "set global innodb_optimize_fulltext_only = 1",
    "optimize table copied.note",
    "set global innodb_optimize_fulltext_only = 0",
]


def check(
    server: servers.Server, chance: random.Random, database: str = "bank", is_replica: bool = False
) -> int:
    """All of the above; how many answers have been compared. Of several cascades in one second a
    replica may keep one version: its row events have no parts of seconds."""
    connection = server.connect(database)
    try:
        with connection.cursor() as cursor:
            # The copy is no work of the primary's.
            cursor.execute("set sql_log_bin = 0, names utf8mb4")
            check_rows(cursor, is_replica)
            for table in NAMES:
                cursor.execute(f"check table {table} extended")
                told = cursor.fetchall()
                expect(told[-1][3] == "OK", f"CHECK TABLE {table} EXTENDED: {told}")
            for statement in COPY:
                cursor.execute(statement)
            return check_answers(cursor, chance)
    finally:
        connection.close()


def rows_of(cursor: Any, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
    cursor.execute(statement, arguments)
    return list(cursor.fetchall())


def check_rows(cursor: Any, is_replica: bool) -> None:
    model = Model()
    for client, number, xa in rows_of(cursor, "select * from note_log order by client, number"):
        for one, kept in steps(client, number, bool(xa)):
            if kept:
                model.apply(client, one)
    note, past, scrap = (collections.Counter(rows_of(cursor, f"select {columns} use index ()"))
                         for columns in (
                             "client, slot, topic, title, body, st_astext(place) from note",
                             "client, slot, topic, body from past",
                             "client, slot, body from scrap"))
    same("topic", collections.Counter(rows_of(cursor, "select * from topic")),
         collections.Counter(model.topics))
    same("note", note, collections.Counter((*key, *row) for key, row in model.note.items()))
    same("past", past, collections.Counter((*key, *row) for key, row in model.past.items()))
    same("scrap", scrap, collections.Counter(
        (*key, body) for key, bodies in model.scrap.items() for body in bodies))
    ended = collections.Counter(rows_of(
        cursor, "select client, slot, topic, body from past for system_time all"
        " use index () where row_end < now(6)"))
    expect(not ended - model.ended or not is_replica, "past has versions that never were")
    if not is_replica:
        same("past as it was", ended, model.ended)


def same(name: str, found: Any, wanted: Any) -> None:
    expect(found == wanted, f"{name} is not what its log makes of it: there and not wanted"
           f" {list((found - wanted).items())[:3]}, missing {list((wanted - found).items())[:3]}")


def check_answers(cursor: Any, chance: random.Random) -> int:
    asked = 0
    tags = [f"tag{client}x{number}x0" for client, number in rows_of(
        cursor, "select client, number from note_log order by rand() limit 5")]
    for text, mode in [*((tag, "") for tag in tags), *(words.query(chance) for _ in range(12))]:
        if '"' in text and "*" in text:
            # What is in its cache InnoDB does not find by a beginning behind a phrase.
            continue
        for columns, of, match, all_ in [
            ("client, slot", "note", "title, body", ""), ("client, slot", "note", "body", ""),
            ("client, slot, body", "scrap", "body", ""),
            ("client, slot, row_start, row_end", "past", "body", "for system_time all"),
        ]:
            there = f" where match ({match}) against (%s {mode})"
            ours = words.ask(cursor, f"select {columns} from {of} {all_}{there}", (text,))
            theirs = columns.replace("row_start", "starts").replace("row_end", "ends")
            innodb = words.ask(cursor, f"select {theirs} from copied.{of}{there}", (text,))
            expect(sorted(ours) == sorted(innodb),
                   f"{of}{there} [{text!r}]: {len(ours)} answers, InnoDB {len(innodb)}:"
                   f" {str(ours)[:300]} {str(innodb)[:300]}")
            asked += 1
    for _ in range(8):
        relation = chance.choice(["mbrintersects", "mbrwithin", "mbrequal", "st_intersects"])
        where = f"where {relation}(place, st_geomfromtext(%s))"
        window = shape(chance)
        ours = rows_of(cursor, f"select client, slot from note force index (place) {where}", window)
        theirs = rows_of(cursor, f"select client, slot from copied.note {where}", window)
        expect(sorted(ours) == sorted(theirs), f"{where} [{window}]: {ours[:9]}, not {theirs[:9]}")
        asked += 1
    for (moment,) in rows_of(cursor, "select starts from copied.past order by rand() limit 6"):
        ours = rows_of(cursor, "select client, slot, body from past"
                       " for system_time as of timestamp %s", moment)
        theirs = rows_of(cursor, "select client, slot, body from copied.past"
                         " where starts <= %s and ends > %s", moment, moment)
        expect(sorted(ours) == sorted(theirs), f"as of {moment}: {len(ours)}, not {len(theirs)}")
        asked += 1
    return asked
