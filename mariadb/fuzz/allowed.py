"""The differences between SHALE and InnoDB that are known and explained. Short, and it stays so.

Each has a reason, and patterns of the statement and of both answers, as narrow as they can be. `parts`
means that the two databases are no longer the same, so that the program ends there.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from typing import Any

from allowed_features import FEATURES
from listed import Allowed


WARNINGS = re.compile(r"\d+ warnings|Warnings: \d+")
AT_ROW = re.compile(r" at row \d+")
# Of the rows that were shown, the second value of each.
SECOND = re.compile(r"(?<=, )('[^']*'|NULL)(?=, 'NONE')")
NUMBER = re.compile(r"'\d+'")


def without_rules(text: str) -> str:
    """An answer without RESTRICT and NO ACTION, which are the same to InnoDB."""
    plain = re.sub(r" ON (DELETE|UPDATE) (NO ACTION|RESTRICT)", "", text).replace("'NO ACTION'", "'RESTRICT'")
    return re.sub(r"fuzz_[si]\b", "fuzz", plain)


def equal_texts(ours: str, theirs: str) -> bool:
    """Whether two answers of one text each differ in case, accents and blanks at the end only."""
    found = [re.fullmatch(r"1 rows; only here 1: \('((?:[^'\\]|\\x[0-9a-f]{2})*)'\)", one) for one in (ours, theirs)]
    plain = []
    for one in found:
        if one is None:
            return False
        text = ast.literal_eval(f"b'{one[1]}'").decode("utf-8", "replace")
        letters = unicodedata.normalize("NFKD", text).casefold()
        plain.append("".join(letter for letter in letters if not unicodedata.combining(letter)).rstrip())
    return plain[0] == plain[1]


def given_number(text: str) -> int:
    found = re.search(r"insert id (\d+)", text)
    return int(found.group(1)) if found else 0


def affected_by(text: str) -> int:
    found = re.search(r"ok: (\d+) affected", text)
    return int(found.group(1)) if found else 0


def gives_higher_number(ours: str, theirs: str) -> bool:
    """Whether SHALE's number is above InnoDB's, by less than the rows of a statement."""
    return 0 < given_number(ours) - given_number(theirs) < 20


def shown_number(text: str) -> int:
    found = re.search(r"AUTO_INCREMENT=(\d+)", text)
    return int(found.group(1)) if found else 0


def rows_of(text: str) -> int:
    found = re.search(r"^(\d+) rows", text)
    return int(found.group(1)) if found else -1


def warnings_of(text: str) -> int:
    """How many warnings an answer counts or shows."""
    found = re.search(r"(\d+) warnings", text)
    return int(found.group(1)) if found else text.count("('Warning'")


def fewer_warnings(ours: str, theirs: str) -> bool:
    return warnings_of(ours) < warnings_of(theirs)


# What ALTER TABLE reports counts the rows that it copied.
COPIED = r"^ok: \d+ affected, insert id 0, \d+ warnings .Records: \d+  Duplicates: 0  Warnings: \d+$"

# A statement that waits, or gave up waiting, or was the victim of a deadlock.
LOCKED = r"^(waits|error 1205|error 1213)"
GAPS = ("at REPEATABLE READ and SERIALIZABLE: SHALE locks the range that was asked for, InnoDB up to the"
        " next entry; SHALE locks the place of a row that is not there (docs/semantics.md). What has"
        " been committed until then is compared")

# A copy that numbers rows says so.
DUPLICATE = ("^error 1062: (ALTER TABLE causes auto_increment resequencing, resulting in )?duplicate entry '.*' for key"
             " '[^']*'$")
ADDS_JSON = r"^alter table .*add (column )?(if not exists )?\w+ json not null"

UNDONE = r"^(waits|ok|\d+ rows|error 1(205|213|062|451|452|761))"


def one_is_locked(ours: str, theirs: str) -> bool:
    """Whether one side waits, or gave up waiting, or has other rows as it skipped some."""
    return any(re.search(LOCKED + r"|^\d+ rows", one) is not None for one in (ours, theirs))


ALLOWED: list[Allowed] = [
    Allowed("gap locks, SHALE waits", GAPS, "^(waits|outcome|error code)$", "^(select|insert|update|delete|replace)",
            LOCKED, "", parts=True, program="^set session transaction isolation level (rep|ser)"),
    Allowed("gap locks, InnoDB waits", GAPS, "^(waits|outcome|error code)$", "^(select|insert|update|delete|replace)",
            "", LOCKED, parts=True, program="^set session transaction isolation level (rep|ser)"),
    Allowed("rows copied", "which changes of a table are instant differs: mariadb/README.md has SHALE's",
            "^(affected|text)$", "^alter (ignore )?table", COPIED, COPIED),
    Allowed("which duplicate", "a key that is built names the first duplicate it meets: in the key's order,"
            " or in that of the rows", "^error text$", "^alter table .* (add|modify|engine|force|convert)",
            DUPLICATE, DUPLICATE),
    Allowed("SKIP LOCKED that commits by itself", "InnoDB fails at its commit when it has skipped a row",
            "^outcome$", "skip locked$", r"^\d+ rows", "^error 1180: Got error 1 ", parts=True),
    Allowed("deadlock in words", "SHALE's message says who waited for what",
            "^error text$", "", r"^error 1213: Deadlock found[^;]*; try restarting transaction; deadlock: ",
            r"^error 1213: Deadlock found[^;]*; try restarting transaction$"),
    Allowed("which of two keys is duplicate", "InnoDB looks WITHOUT OVERLAPS up in its snapshot, and misses rows"
            " that the row is then a duplicate of in another key", "^(error|warning) text", "^(insert|replace|load|update)",
            "Duplicate entry '.*' for key '[^']*'", "Duplicate entry '.*' for key '[^']*'",
            program="without overlaps"),
    Allowed("which of two keys is duplicate, after ALTER", "InnoDB goes through keys in the order in which they were made, SHALE"
            " in the table's", "^(error|warning) text", "^(insert|replace|load|update)",
            "Duplicate entry '.*' for key '[^']*'", "Duplicate entry '.*' for key '[^']*'",
            program="^alter table .*add (unique|primary)"),
    Allowed("which of two keys is duplicate, by hash", "at READ COMMITTED and below InnoDB looks hash-unique keys up after it"
            " has written the row, SHALE before", "^(error|warning) text", "^(insert|replace|load|update)",
            "Duplicate entry '.*' for key '[^']*'", "Duplicate entry '.*' for key '[^']*'",
            program="isolation level read (un)?committed"),
    Allowed("history of rows replaced by hash", "the same: at READ COMMITTED a row that the same REPLACE has written and replaced stays"
            " in the history; at REPEATABLE READ InnoDB has SHALE's rows", "^rows$", "^select.*for system_time", r"only here 0: $",
            r"only here [1-9]", parts=True, program="isolation level read (un)?committed", also="system versioning"),
    Allowed("computed again for a hash-unique key", "the same: for that it computes virtual columns once more, and a value that is cut"
            " is warned of twice", "^(text|warnings)$", "^(insert|replace|load|update)", "^ok", "^ok",
            program="isolation level read (un)?committed", also=r" as \(",
            so=lambda ours, theirs: WARNINGS.sub("", ours) == WARNINGS.sub("", theirs) and fewer_warnings(ours, theirs)),
    Allowed("computed again for history", "an UPDATE of a system-versioned table writes the old row too, for which InnoDB computes virtual"
            " columns once more", "^(text|warnings)$", "^update", "^ok", "^ok", program=r" as \(", also="system versioning",
            so=lambda ours, theirs: WARNINGS.sub("", ours) == WARNINGS.sub("", theirs) and fewer_warnings(ours, theirs)),
    Allowed("UPDATE IGNORE of hash-unique keys", "the server refuses it at READ COMMITTED and below for InnoDB, whose keys it looks up"
            " after it has written; SHALE looks them up itself", "^outcome$", "^update ignore", "^ok", "^error 1235", parts=True,
            program="isolation level read (un)?committed"),
    Allowed("which of two keys is replaced, by hash", "the same: a row that is the same is updated to nothing or replaced, by the"
            " key that it is found by", "^(affected|text)$", "^(replace|load data .* replace)", "^ok", "^ok",
            program="isolation level read (un)?committed"),
    Allowed("which of two rows is updated, by hash", "the same: ON DUPLICATE KEY UPDATE of a row that is a duplicate of two",
            "^(affected|text|rows)$", "^insert.* on duplicate key update", r"^ok|^\d+ rows", r"^ok|^\d+ rows", parts=True,
            program="isolation level read (un)?committed", also="unique"),
    Allowed("a new column that its own check refuses", "InnoDB adds a JSON column without asking json_valid of what old rows"
            " get, the empty text", "^outcome$", ADDS_JSON, "^error 4025", "^ok", parts=True),
    Allowed("a new column that its own check refuses, in InnoDB's copy", "a JSON column that is to be the first, or beside a"
            " column dropped that was added at once, is added by InnoDB in a copy, which asks json_valid; SHALE changes the"
            " definition, as InnoDB does elsewhere", "^outcome$", ADDS_JSON + ".*( first|, ?drop )", "^ok", "^error 4025", parts=True),
    Allowed("a second error", "InnoDB gives an error of its own after one of the server's, from an index that it builds",
            "^warning texts$", "^alter table .*add", "'Error', '1(264|265|406)'", "'Error', '1030', 'Got error 103 "),
    Allowed("a partition that InnoDB cannot open", "after REBUILD PARTITION of a table with a key added it answers with error 174",
            "^outcome$", "^(insert|replace|update|delete|select)", "", "^error 1030: Got error 174 ", parts=True,
            program="^alter table .*partition"),
    Allowed("undo record", "what InnoDB keeps to undo a change has to fit into a page", "^outcome( by two plans)?$",
            "^(alter table|update|insert|replace|delete|load)", r"^ok|^\d+ rows", "^error 1713", parts=True),
    Allowed("InnoDB's statistics are locked", "InnoDB cannot change its own statistics with autocommit=0, where it holds"
            " them itself", "^outcome$", "^alter table .*exchange partition", "^ok", "^error 1205", parts=True,
            program="^set autocommit=0"),
    Allowed("a row that does not match is passed", "at READ COMMITTED an UPDATE or DELETE that meets another's row looks at"
            " what is committed of it; InnoDB waits if the other has deleted it, for the entry of an index, and with"
            " innodb_lock_wait_timeout=0 always. What SHALE has passed can lead to another error",
            "^(waits|outcome|error code)$", "^(update|delete)", "^(ok|error (1062|1451|1452))", LOCKED, parts=True,
            program="^set session transaction isolation level read committed"),
    Allowed("the row beyond a range", "at READ COMMITTED InnoDB asks for the first row beyond the range too, and waits for it;"
            " SHALE for those of the range", "^(waits|outcome)$",
            "^select .* where (id|k|u) .*(for update|lock in share mode)( nowait)?$", r"^\d+ rows", LOCKED, parts=True,
            program="^set session transaction isolation level read committed"),
    Allowed("the row beyond a range, locked", "the same: the row is locked to the end for who has asked for such a range",
            "^(waits|outcome)$", "^(select|insert|replace|update|delete)", r"^waits|^\d+ rows|^ok|^error 1062", LOCKED, parts=True,
            program="^set session transaction isolation level read committed",
            also="^(update|delete|select) .* (id|k|u) (between|>|in)"),
    Allowed("the row beyond a range, skipped", "the same", "^rows$", "skip locked$", r"^\d+ rows; only here [1-9]",
            r"^\d+ rows; only here 0: $", parts=True,
            program="^set session transaction isolation level read committed",
            also="^(update|delete|select) .* (id|k|u) (between|>|in)"),
    Allowed("gaps beside a duplicate", "InnoDB locks the gap before a duplicate of a unique index at READ COMMITTED too: others"
            " who insert there wait", "^(waits|outcome|error code)$", "^(insert|replace)",
            "^ok|^error 1062", LOCKED, parts=True,
            program="^set session transaction isolation level read committed"),
    Allowed("a holder that passes who waits", "who holds a row shared, as a duplicate of his INSERT, gets it exclusively before"
            " those who wait for it; InnoDB queues him behind them, which is a deadlock", "^(waits|outcome)$",
            "^(select .* for update|insert|replace|update|delete)", r"^(waits|ok|\d+ rows)", "^error 1213", parts=True,
            program="^(insert|replace)|lock in share mode$"),
    Allowed("another victim", "both engines have the deadlock, and give up another session: InnoDB's weight counts its own"
            " locks, those of one page together", "^victim$", "", "", "", parts=True),
    Allowed("after an undone statement", "of a statement that has waited in vain, and was undone, other locks are left on the one"
            " engine than on the other; SHALE keeps a lock exclusive that an earlier statement had shared (decisions/0008)",
            "^(waits|outcome|rows|error code) after an undone statement$", "^(select|insert|replace|update|delete)",
            UNDONE, UNDONE, parts=True, so=one_is_locked),
    Allowed("another plan", "by the engines' statistics the server reads by another key on the one than on the other, so rows"
            " are locked in another order. What has been committed is compared", " of two plans$",
            "^(select|insert|update|delete|replace)", "", "", parts=True),
    Allowed("values met by another plan", "by the engines' statistics the server reads by another key on the one than on the"
            " other, so it meets other rows whose values it converts, or none", "^(outcome|error code|warning texts) by two plans$",
            "^(select|update|delete)", "", "", parts=True,
            so=lambda ours, theirs: re.search(r"\b1(264|265|292|365|366|411|690)\b", ours + theirs) is not None),
    Allowed("warnings met by another plan", "the same, where the warnings are counted only", "^(text|warnings) by two plans$",
            "^(select|update|delete)", "", "", so=lambda ours, theirs: WARNINGS.sub("", ours) == WARNINGS.sub("", theirs)),
    Allowed("the row of a warning", "the same, of the row that a warning names", "^warning texts", "^(select|update|delete)",
            " at row ", " at row ", so=lambda ours, theirs: AT_ROW.sub("", ours) == AT_ROW.sub("", theirs)),
    Allowed("the row of an error", "InnoDB makes a table anew in place and numbers its rows from 0; SHALE copies them, from 1",
            "^error text$", "^alter table", r"^error .* at row \d+$", "^error .* at row 0$",
            so=lambda ours, theirs: AT_ROW.sub("", ours) == AT_ROW.sub("", theirs)),
    Allowed("a collation that sorts otherwise than it compares", "cp1250_czech_cs sorts a text that ends in blanks otherwise than an"
            " index of either engine has it", "^(rows|order) by two plans$", "^select .*order by", "", "",
            program="collate (cp1250|latin2)_czech_cs"),
    Allowed("no partitions left", "after a statement that can match nothing (a NOT NULL column IS NULL) the server's UPDATE or DELETE"
            " over a whole index reads no partition, of either engine; by another plan it does", "^(outcome|affected|text|rows) by two plans$",
            "^(update|delete)", "", "", parts=True, program="partition by",
            so=lambda ours, theirs: any(one.startswith(("ok: 0 affected", "0 rows; only here 0")) for one in (ours, theirs))),
    Allowed("rows skipped for their gaps", GAPS, "^rows$", "skip locked$", r"^\d+ rows; only here [1-9]",
            r"^\d+ rows; only here 0: $", parts=True,
            program="^set session transaction isolation level (rep|ser)"),
    Allowed("hash-unique keys of two sessions", "the server looks them up in InnoDB's snapshot: it misses rows and lets"
            " duplicates in. That SHALE has none is asked instead", "^(waits|outcome|error|affected|text|rows)", "",
            "", "", parts=True, program=r"^create table t \(.*u blob.*unique key u"),
    Allowed("AUTO_INCREMENT at its end", "what the next number would be when there is none left",
            "^rows$", "^show create table", r"AUTO_INCREMENT=2147483648 ", r"AUTO_INCREMENT=21474836\d\d "),
    Allowed("numbers got and not used", "InnoDB forgets them when the table is closed, by RENAME or ALTER, and gives them again;"
            " SHALE does not", "^insert_id$", "^(insert|replace)", "^ok", "^ok", parts=True,
            program=r"^(rename|alter) table", so=gives_higher_number),
    Allowed("numbers got and not used, returned", "the same", "^rows$", "^(insert|replace) .* returning", "^1 rows; only here 1: ",
            "^1 rows; only here 1: ", parts=True, program=r"^(rename|alter) table", also="auto_increment",
            so=lambda ours, theirs: NUMBER.sub("N", ours) == NUMBER.sub("N", theirs)),
    Allowed("numbers that InnoDB leaves out", "once it has altered the table, InnoDB goes on after the number that its page has"
            " kept, which a row got that REPLACE has put in another's place, or that was a duplicate and is not there; a row of"
            " INSERT ... SELECT with a negative number takes one too", "^insert_id$",
            "^(insert|replace)", "^ok", "^ok", parts=True, program=r"^(rename|alter) table|^(insert|replace).* select ",
            so=lambda ours, theirs: 0 < given_number(ours) < given_number(theirs)),
    Allowed("numbers that InnoDB leaves out, shown", "the same", "^rows$", "^show create table", "", "", parts=True,
            program=r"^(rename|alter) table|^(insert|replace).* select ",
            so=lambda ours, theirs: 0 < shown_number(ours) < shown_number(theirs)),
    Allowed("numbers that InnoDB gives again", "numbers of rows that were undone: SHALE's next number stays where it was, InnoDB's"
            " is that of the rows it wrote, once ALTER TABLE has opened the table anew", "^rows$", "^show create table", "", "",
            parts=True, program="^alter table", also="^(insert|replace)",
            so=lambda ours, theirs: 0 < shown_number(theirs) < shown_number(ours) < shown_number(theirs) + 20),
    Allowed("a copy checks values", "SHALE makes a table anew by copying it, which checks the values by the session's sql_mode, as"
            " ALGORITHM=COPY does with InnoDB; InnoDB does it in place. And a NOT NULL date that is added to rows is a zero date, which"
            " InnoDB lets into a partitioned table only", "^(outcome|error code)$", "^alter table .*(engine|force|add)",
            "^error 1292", "^ok|^error 1062", parts=True, program="^set sql_mode=.*no_zero"),
    Allowed("a copy computes values", "the same, of virtual columns whose values are cut: a copy by a strict sql_mode refuses them",
            "^(outcome|error code)$", "^alter table .*(engine|force|drop primary)",
            "^error (1264|1265|1366|1406)", "^ok|^error 1062",
            parts=True, program=r" as \("),
    Allowed("-0 that a copy makes 0", "the same: a copy of the server's makes -0 of a FLOAT or DOUBLE to 0, also ALGORITHM=COPY of"
            " InnoDB, and an UPDATE to -0 changes it", "^(affected|text)$", "^update", "^ok", "^ok",
            program="^alter table .*(engine|force)", also=r"\b(float|double)\b",
            so=lambda ours, theirs: affected_by(ours) > affected_by(theirs)),
    Allowed("computed anew", "SHALE copies a versioned table to alter it, and a copy computes stored columns anew: what INSERT"
            " IGNORE has cut does not fit then. InnoDB changes it in place", "^outcome$", "^alter table",
            "^error (1264|1265|1292|1406)", "^ok", parts=True, program="system versioning"),
    Allowed("computed while InnoDB rebuilds", "InnoDB rebuilds or copies its table, and computes virtual columns for that, of"
            " which some do not fit what INSERT has let in; SHALE changes the definition", "^outcome$", "^alter table", "^ok",
            "^error (1264|1265|1366|1406)", parts=True, program=r" as \("),
    Allowed("checked while InnoDB copies", "the same, of zero dates by the session's sql_mode", "^outcome$", "^alter table", "^ok",
            "^error 1292", parts=True, program="^set sql_mode=.*no_zero"),
    Allowed("rows matched by overlaps", "the same: an UPDATE IGNORE has left out other rows", "^text$", "^update", "^ok", "^ok",
            program="without overlaps", also="^update ignore"),
    Allowed("overlaps that are none", "at READ COMMITTED and below InnoDB takes rows of other values for overlapping in a"
            " partitioned table", "^(outcome|affected|rows)$", "^(insert|replace|load|update|delete|alter table)", r"^ok|^\d+ rows",
            r"^error 1062|Duplicates: [1-9]|^\d+ rows; only here 0: $", parts=True, program="without overlaps", also="partition by"),
    Allowed("overlaps that InnoDB misses", "in a partitioned table InnoDB does not find all rows that overlap, and writes them or"
            " comes to a later error", "^(error code|outcome|affected|rows)$", "^(insert|replace|load|update)",
            r"^error 1062|Duplicates: [1-9]|^\d+ rows; only here 0: $", r"^error (?!1062)|^ok|^\d+ rows", parts=True,
            program=r"without overlaps\)", also="partition by"),
    Allowed("which row ALTER IGNORE keeps", "SHALE keeps the first of the rows that are duplicates and counts the others; InnoDB"
            " in its copy keeps a later one, and counts one less", "^text$", "^alter ignore table", "Duplicates: [1-9]",
            "Duplicates: [1-9]", parts=True),
    Allowed("rows that InnoDB's MRR misses", "a rowid-ordered scan, a filter or an index_merge of InnoDB does not compute a virtual column"
            " that the condition asks for and nothing else does, and finds nothing, or error 1032; without these it has SHALE's answer",
            "^(rows|outcome), but not by a plainer plan$", "^select", "", ""),
    Allowed("warnings of HANDLER's keys", "an ALTER by copy that fails leaves the server counting values that are cut, until the next"
            " statement that counts them ends; SHALE copies some tables that InnoDB changes in place", "^(warnings|warning texts)$",
            "^handler .* read", "", "", program="^alter table", so=lambda ours, theirs: warnings_of(ours) > warnings_of(theirs)),
    Allowed("InnoDB's versioned index", "InnoDB misses entries of a virtual column's index of a versioned table when it checks"
            " it, and marks it as corrupted from then on", "^rows$", "^check table",
            r"^1 rows; only here 1: .*'status', 'OK'\)$",
            r"'Warning', \"ENGINE: Index '\w+' contains \d+ entries", parts=True, program="system versioning"),
    Allowed("InnoDB's two indexes of a virtual column", "at READ UNCOMMITTED InnoDB's check finds no entries in one of two indexes of"
            " the same virtual column", "^rows$", "^check table", r"^1 rows; only here 1: .*'status', 'OK'\)$",
            r"'Warning', \"ENGINE: Index '\w+' contains \d+ entries", parts=True, program="read uncommitted", also=r" as ?\("),
    Allowed("skipped since it waited", "a DELETE at READ COMMITTED has waited for a row that came; InnoDB's SKIP LOCKED of the same"
            " transaction leaves it out then, though nobody else has it", "^rows$", "skip locked$", r"^\d+ rows; only here 1: ",
            r"^\d+ rows; only here 0: $", parts=True, program="read committed", also="^(update .*set id|insert|replace)"),
    Allowed("the greatest of equal texts", "texts that a collation takes for equal: any of them is the greatest", "^rows( by two plans)?$",
            r"^select .*\b(max|min) ?\(", "^1 rows; only here 1: ", "^1 rows; only here 1: ", parts=True, so=equal_texts),
    Allowed("InnoDB's index of a virtual column", "REPLACE gives a row that is equal in a unique key of virtual columns, but not to"
            " the byte: InnoDB changes the entry to what it was, finds its index corrupted and answers by it no more", "^rows$",
            "^check table", r"^1 rows; only here 1: .*'status', 'OK'\)$",
            r"'Warning', 'ENGINE: (Clustered index record not found for index|The B-tree of index)", parts=True,
            program=r" as ?\(.*unique", also="^(replace|update|insert .* on duplicate key update)"),
    Allowed("columns before triggers", "LOAD DATA computes virtual columns before it calls triggers, which may change what they are"
            " computed from: InnoDB writes what was computed into its indexes, SHALE computes anew", "^(rows|outcome|affected|text)",
            "^(check table|select|load data|update|delete|replace|insert)", r"^ok|^\d+ rows", r"^ok|^\d+ rows|^error 1032", parts=True,
            program=r"create trigger .* before insert", also="^load data"),
    Allowed("InnoDB's groups of partitions", "of a partitioned table with a key of a virtual column InnoDB gives rows out of order, so"
            " that a group comes twice; without the key it has SHALE's answer", "^rows$", "^select .*group by",
            r"^\d+ rows", r"^\d+ rows", program=r" as ?\(", also="partition by",
            so=lambda ours, theirs: rows_of(ours) < rows_of(theirs)),
    Allowed("a row that was waited for", "at READ COMMITTED a scan gives up the locks of rows that do not match. InnoDB keeps them"
            " if it has waited for them: who comes later waits there, and SHALE's later, with more locks", "^(waits|outcome)$",
            "^(select|insert|replace|update|delete)", "^error 1213", r"^ok|^\d+ rows|^error 1062", parts=True,
            program="^set session transaction isolation level read committed", also="^select .*(for update|lock in share mode)"),
    Allowed("texts that are equal", "texts that a collation takes for equal have no order, and a primary key of a prefix may hold"
            " both: utf32_unicode_ci does not count characters of code 0", "^(order|rows)", "^(select|update|delete) .*order by", "", "", parts=True,
            program=r"unicode_ci.*primary key .*\(\s*\d+\s*\)"),
    Allowed("which error is first", "a duplicate and a value that does not fit: SHALE copies rows until it meets either; InnoDB"
            " meets duplicates after all rows, or has no use for the value", "^error code$", "^alter (ignore )?table",
            "^error 1(062|264|265|292|366|406|916)", "^error 1(062|264|265|292|366|406|916)",
            so=lambda ours, theirs: ("error 1062" in ours) != ("error 1062" in theirs)),
    Allowed("numbers of a versioned table's copy", "SHALE copies a versioned table to alter it; a copy's partitions begin with"
            " the table's next number, each", "^(insert_id|rows)$", "^(insert|replace)", r"^ok|^\d+ rows", r"^ok|^\d+ rows", parts=True,
            program="^alter table .*system versioning|with system versioning.*partition by"),
    Allowed("a warning for the row beyond", "InnoDB reads the row before a range of a DESC key too, and warns of a virtual column"
            " that it computes for it", "^(warnings|warning texts)$", "^select", "", "", program=r" desc\b",
            so=fewer_warnings),
    Allowed("code 0 in a range", "the server compares an entry of a prefix with the end of a range so that a text with characters"
            " of code 0 is outside. Either engine gives that by a plan with a range, and the rows by another",
            "^(rows|affected) by two plans$", r"^(select|update|delete) .*\\0'", "", "", parts=True, program="unicode_ci"),
    Allowed("code 0 after LIKE", "the same of the range of LIKE 'a%'", 
            "^((rows|affected) by two plans|outcome)$", r"^(select|update|delete|insert|replace) .*\blike\b",
            r"^(ok|error|\d+ rows; only here 0)", r"^(ok|error|\d+ rows; only here [12]: [^;]*\\x00)", parts=True,
            program=r"\\0'"),
    Allowed("a row that came before the scan", "at READ COMMITTED: what InnoDB's scan has waited for is gone, and what came"
            " instead sorts before it. SHALE's waits for a writer and then reads the range anew", "^(affected|rows)$",
            "^(update|delete|select) .*where", r"^(ok|\d+ rows)", r"^(ok|\d+ rows)", parts=True,
            program="^set session transaction isolation level read committed", also="^replace",
            so=lambda ours, theirs: affected_by(ours) > affected_by(theirs) or rows_of(ours) > rows_of(theirs)),
    Allowed("warnings of a check", "InnoDB computes virtual columns to check their entries, and warns of what it converts",
            "^rows$", "^check table", "^1 rows; only here 0", "^\\d+ rows; only here \\d+: [(].*'Warning'", program=r" as ?\("),
    Allowed("warnings before the duplicate", "rows are copied until the first duplicate is met, which InnoDB meets after all of"
            " them", "^warning texts$", "^alter (ignore )?table", "'Error', '1062'", "'Error', '1062'"),
    Allowed("the child's name in ALTER", "InnoDB adds a foreign key in a copy, and names the copy where a row has no parent; SHALE"
            " compares the table's own indexes", "^error text", "^alter .*add (constraint [^ ]+ )?foreign key", "^error 1452",
            "^error 1452: .*#sql-alter"),
    Allowed("NULL that would cascade", "ON UPDATE CASCADE from a column that may be NULL to one that may not: SHALE refuses it; InnoDB"
            " in strict mode only, and not if ON DELETE does something too", "^(outcome|error code)$",
            "^(create|alter) .*on update cascade", "^error 1005", "^(ok|error 1452)", parts=True),
    Allowed("no parent, or a duplicate by overlaps", "InnoDB looks WITHOUT OVERLAPS up in its snapshot, misses the row that this statement"
            " has written, and then asks for the parent", "^(warning texts|error code|error text)$", "^(insert|replace|load|update)",
            "Duplicate entry", "1452.*foreign key constraint fails", program="without overlaps"),
    Allowed("the name of a foreign key that is refused", "InnoDB's message has the database before it, and what printf writes for none",
            "^(error|warning) texts?$", "^alter .*add .*foreign key", "1825.*FOREIGN KEY constraint '[^'/]*'",
            r"1825.*FOREIGN KEY constraint '([(]null[)]|\w+/\w+)'"),
    Allowed("which index of the parent", "of two indexes that fit InnoDB takes the one that was made first, SHALE the first of the"
            " table", "^rows$", "from information_schema.referential_constraints", r"^\d+ rows", r"^\d+ rows",
            program="^alter table .*(add|drop)", so=lambda ours, theirs: SECOND.sub("", ours) == SECOND.sub("", theirs)),
    Allowed("a foreign key that InnoDB loses", "without checks an ALTER can leave one that does not fit any more (its index is gone, SET"
            " NULL of a column that may not be NULL): InnoDB forgets it when it next reads the table, SHALE keeps it",
            "^rows$", "^show create table", "CONSTRAINT", "", parts=True, program="foreign_key_checks=0", also="^alter ",
            so=lambda ours, theirs: ours.count("CONSTRAINT") > theirs.count("CONSTRAINT")),
    Allowed("a foreign key that InnoDB loses, and then partitions", "the same", "^outcome$", "^alter .*partition", "^error 1217", "^ok",
            parts=True, program="foreign_key_checks=0", also="^alter "),
    Allowed("a foreign key that InnoDB loses, and then renames", "the same: a table whose foreign key has lost its parent's index", "^outcome$",
            "^rename table", "^ok", "^error 1025", parts=True, program="foreign_key_checks=0", also="^alter .*drop"),
    Allowed("an index of a foreign key, and system versioning", "SHALE copies for it, and the server's copy looks for indexes of foreign"
            " keys at its end only", "^error code$", "^alter .*drop .*system versioning", "^error 1025", "^error 1553"),
    Allowed("refused by another plan", "by the engines' statistics the server reads by another key on the one than on the other: a row"
            " that has children is met before or after them", "^(outcome|error code|error text|affected|text) by two plans$",
            "^(update|delete)", "", "", parts=True,
            so=lambda ours, theirs: re.search("^error 145[12]", ours) is not None or re.search("^error 145[12]", theirs) is not None),
    Allowed("IGNORE that InnoDB does not know in a versioned table", "InnoDB ends ALTER IGNORE of a system-versioned table with an error"
            " of foreign keys, of which there are none", "^outcome$", "^alter ignore table", "^ok", "^error 1761: .*#sql-alter",
            program="system versioning"),
    Allowed("a foreign key of an ALTER that SHALE does in place", "InnoDB copies the table for another change of the statement, and its"
            " copy takes no such change of a foreign key's column", "^(outcome|error code)$",
            r"^alter (ignore )?table .*, ?(add|drop|modify|change|rename|alter|engine|force|convert)\b",
            "^(ok|error (1553|4078|1048|1062|1265|1366|1452|1406))", "^error (1829|1834|1846|1025)", parts=True,
            program="foreign key|references"),
    Allowed("a longer column of a foreign key", "InnoDB copies where a column gets longer than 255 bytes, and a copy takes no such change",
            "^outcome$", r"^alter (ignore )?table .*\b(modify|change) [^,]*varchar ?\(\d{3,}\)", "^ok", "^error 183[23]", parts=True,
            program="foreign key|references"),
    Allowed("a foreign key of an ALTER that InnoDB copies for, told later", "the same: a copy finds values that do not fit before it looks"
            " for foreign keys", "^error code$", "^alter (ignore )?table", "^error (18(25|29|32|33|34|46)|1553)",
            "^error (1048|1062|1264|1265|1292|1366|1406|4078)", program="foreign key|references"),
    Allowed("a time by its whole seconds", "the server compares a time with one of more digits by whole seconds if it reads"
            " by a key, with either engine by the same plan", "^(rows|affected|text) by two plans$", r"'[-0-9: ]+:\d\d\.\d+'", "", "", parts=True,
            program=r"\b(time|datetime|timestamp)\b"),
    Allowed("a foreign key by its path", "InnoDB's messages of changes in place have the database before the name",
            "^(error|warning) texts?$", "^alter ", "constraint '", "constraint '",
            so=lambda ours, theirs: ours.replace("fuzz_s", "fuzz") == theirs.replace("'fuzz_i/", "'").replace("fuzz_i", "fuzz")),
    Allowed("RESTRICT that InnoDB shows as NO ACTION", "of a foreign key that is added in place", "^(rows$|(error|warning) text)", "",
            "CONSTRAINT|RESTRICT", "NO ACTION", parts=True, program="foreign_key_checks=0", also="^alter .*(restrict|set default)",
            so=lambda ours, theirs: without_rules(ours) == without_rules(theirs)),
    Allowed("a table that references itself by an index to come", "ALTER TABLE: InnoDB looks for the parent's index in the table as it"
            " was, SHALE in the table as it will be", "^(outcome|error code|warning texts)$",
            r"^alter (ignore )?table (\w+) .*foreign key .*references \2\b",
            r"^(ok|error (1825|1005|4078|1048|1062|1265|1366|1406|1452)|\('Warning', '150')",
            r"^(error (1005|1822|1025)|\('Warning', '150'.*There is no index in the referenced table)", parts=True),
    Allowed("an index that only a foreign key that goes needs", "InnoDB does not drop both by one ALTER", "^outcome$",
            "^alter .*(drop (index|key) .*drop foreign key|drop foreign key .*drop (index|key))", "^ok", "^error 1553", parts=True),
    Allowed("history of the same time", "what an action ends is a row of the past, unless there is one of that time already: then InnoDB"
            " ends with an error, where a statement deletes the row", "^outcome$", "^(delete|update|replace)", "^ok", "^error 1761",
            parts=True, program="system versioning"),
    # Last, since it says little of the rows: what another entry explains is not counted here.
    Allowed("deleted in InnoDB's order", "DELETE with ORDER BY a virtual column and LIMIT: InnoDB does not compute the column that it"
            " sorts by, and deletes others than the first rows", "^rows$", "^select", "", "", parts=True,
            program=r" as ?\(", also=r"^(delete|update) .*order by .*limit"),
]


def find(difference: Any, steps: list[Any]) -> Allowed | None:
    for one in [*ALLOWED, *FEATURES]:
        if one.fits(difference, steps):
            return one
    return None


def none(difference: Any, steps: list[Any]) -> None:
    return None
