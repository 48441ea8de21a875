"""The server's tests laid out twice: as they are, for InnoDB, and with its name replaced, for SHALE.

Pure but for `lay_out`: `rewritten` is what a file becomes.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil

# What is read as a test, or as options of the server; of Perl only what copies tables' files.
TEXTS = {".test", ".inc", ".opt", ".cnf", ".combinations"}
COPIES = "innodb-util.pl"

# Where the name stands for the engine of tables: ENGINE=InnoDB, default-storage-engine=innodb,
# `let $engine_type= 'InnoDB'`, gtid_pos_auto_engines="innodb", if ($engine == innodb), also within two quotes.
NAMED = re.compile(
    # (A text may have "storage engine innodb".)
    rb"((?:(?<!storage )engines?[a-z_0-9]*['\"`]?\s*(?:=|==|!=|<>|\s)\s*|storage engine\s*=\s*|[=!]=\s*)"
    # Nor is its status another engine's: tests wait there for its purge.
    rb"['\"`]{0,2})innodb\b(?!\s+(?:status|mutex))", re.IGNORECASE
)
# The same of other engines, which are InnoDB too where `others` are asked for.
OTHERS = re.compile(
    NAMED.pattern.replace(rb"innodb\b(?!\s+(?:status|mutex))", rb"(?:myisam|aria|maria|heap|memory)\b"),
    re.IGNORECASE,
)
INNODB = re.compile(rb"innodb", re.IGNORECASE)
# What the two engines name differently.
VARIABLES = re.compile(
    rb"innodb(?=[_-](lock[_-]wait[_-]timeout|ft[_-](enable|user|server)[_-]stopword|ft[_-](min|max)[_-]token))",
    re.IGNORECASE,
)
# Where tests wait until somebody waits.
TRANSACTIONS = re.compile(rb"information_schema\.(innodb_lock_waits|innodb_trx)\b", re.IGNORECASE)
OURS = {
    b"innodb_lock_waits": b"(select 1 from information_schema.shale_transactions"
    b" where state = 'waiting') innodb_lock_waits",
    b"innodb_trx": b"(select transaction_id trx_id, thread_id trx_mysql_thread_id, query trx_query,"
    b" if(state = 'waiting', 'LOCK WAIT', 'RUNNING') trx_state,"
    # The one test that asks waits for an INSERT that waits.
    b" if(state = 'waiting', 'inserting', '') trx_operation_state"
    b" from information_schema.shale_transactions) innodb_trx",
}
# A list of engines, and the tables that the server names after them.
ENGINES = re.compile(rb"gtid_pos_auto_engines\s*=[^;\n]*|gtid_slave_pos_innodb", re.IGNORECASE)
# A table that is exported: InnoDB has two files for it. One that is copied twice is the same.
FILE_COMMAND = re.compile(
    rb"^\s*(?:--)?\s*(?:copy_file|move_file|remove_file|file_exists)\b.*$", re.IGNORECASE | re.MULTILINE
)
FILE = re.compile(rb"\.(?:ibd|cfg)\b")
FILE_OF_TABLE = re.compile(rb'(?<="%s)\.(?:ibd|cfg)(?=")')
REPLACED = re.compile(rb"^\s*(?:--)?\s*replace_result\b.*$", re.IGNORECASE | re.MULTILINE)
WORD = re.compile(rb"(?<=\s)(['\"]?)innodb(['\"]?\s+\S+)", re.IGNORECASE)


def rewritten(text: bytes) -> bytes:
    """A test, or options of one, for SHALE."""
    text = NAMED.sub(rb"\1SHALE", text)
    text = ENGINES.sub(lambda named: INNODB.sub(b"SHALE", named.group()), text)
    text = VARIABLES.sub(b"shale", text)
    text = TRANSACTIONS.sub(lambda name: OURS[name.group(1).lower()], text)
    text = FILE_COMMAND.sub(lambda line: FILE.sub(b".shale", line.group()), text)
    return REPLACED.sub(lambda line: WORD.sub(rb"\g<0> \1SHALE\2", line.group()), text)


def without_sections(text: bytes, names: set[bytes]) -> bytes:
    """Combinations without those of other engines, which would be run twice for nothing."""
    kept, keep = [], True
    for line in text.splitlines(keepends=True):
        if line.startswith(b"["):
            keep = line.strip().strip(b"[]") not in names
        if keep:
            kept.append(line)
    return b"".join(kept)


OTHER_ENGINES = {b"myisam", b"heap", b"aria", b"traditional"}
# How InnoDB stores pages, of which SHALE has none: its defaults are enough.
PAGES = {b"64k", b"32k", b"8k", b"4k", b"redundant", b"compact", b"strict_crc32", b"read-ahead"}


def content(path: pathlib.Path, engine: str, others: bool) -> bytes | None:
    """What a file is for an engine; nothing if it is as it was."""
    if engine == "SHALE" and path.name == COPIES:
        return FILE_OF_TABLE.sub(b".shale", path.read_bytes())
    if path.suffix not in TEXTS:
        return None
    text = given = path.read_bytes()
    if path.suffix == ".combinations" and b"innodb" in text:
        text = without_sections(text, OTHER_ENGINES | PAGES)
    if path.name == "default_mysqld.cnf":
        text = text.replace(
            b"default-storage-engine=myisam",
            f"default-storage-engine={engine}\nplugin-load-add=ha_shale\n"
            # Where only one engine waits for another session the test is to go on.
            "loose-shale-memory=64M\nlock-wait-timeout=10".encode(),
        )
    else:
        if others:
            text = OTHERS.sub(rb"\1InnoDB", text)
        if engine == "SHALE":
            text = rewritten(text)
    return None if text == given else text


def copy(source: pathlib.Path, into: pathlib.Path, engine: str, others: bool) -> None:
    """A folder with links to the files that stay as they are."""
    for folder, _, files in os.walk(source):
        here = into / pathlib.Path(folder).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        for name in files:
            path = pathlib.Path(folder, name)
            # Results are not compared with; without them the driver has less to read.
            if path.suffix in {".result", ".rdiff"}:
                continue
            text = content(path, engine, others)
            if text is None:
                (here / name).symlink_to(path.resolve())
            else:
                (here / name).write_bytes(text)


def link(source: pathlib.Path, into: pathlib.Path, but: set[str]) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if entry.name not in but:
            (into / entry.name).symlink_to(entry.resolve())


def lay_out(
    server: pathlib.Path, plugin: pathlib.Path, into: pathlib.Path, engine: str, suites: set[str],
    others: bool,
) -> None:
    """A server's folders with the tests for one engine; `suites` are those that may be run."""
    shutil.rmtree(into, ignore_errors=True)
    link(server, into, {"share", "bin", "lib", "laid-out"})
    link(server / "share/mysql", into / "share/mysql", {"mysql-test"})
    link(server / "lib", into / "lib", {"mysql"})
    plugins = into / "lib/mysql/plugin"
    link(server / "lib/mysql/plugin", plugins, {"ha_shale.so"})
    # A later build does not change this run.
    shutil.copy(plugin, plugins / "ha_shale.so")
    link(server / "bin", into / "bin", {"mariadb-test"})
    (into / "bin/mariadb-test").symlink_to(pathlib.Path(__file__).with_name("mysqltest"))
    tests = server / "share/mysql/mysql-test"
    here = into / "share/mysql/mysql-test"
    link(tests, here, {"main", "include", "suite", "plugin"})
    for name in ("main", "include"):
        copy((tests / name).resolve(), here / name, engine, others)
    for suite in sorted((tests / "suite").iterdir()):
        if suite.name in suites:
            copy(suite.resolve(), here / "suite" / suite.name, engine, others)
        else:
            (here / "suite").mkdir(exist_ok=True)
            (here / "suite" / suite.name).symlink_to(suite.resolve())
    # Of the plugins' suites only what suites of the server lean on.
    link(tests / "plugin", here / "plugin", {"shale", "rocksdb", "spider"})
