"""What two engines give is compared rightly: mariadb/against/compare.py and tree.py, without a server."""

from __future__ import annotations

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "against"))

import compare  # noqa: E402
import formats  # noqa: E402
import main  # noqa: E402
import record  # noqa: E402
import run  # noqa: E402
import tree  # noqa: E402

checked = 0


def gives(shale: str, innodb: str, *kinds: str) -> None:
    """The differences have these classes, in order."""
    global checked
    found = compare.compare(shale, innodb)
    assert [one.kind for one in found] == list(kinds), (kinds, [one.text() for one in found])
    checked += 1


def classes() -> None:
    select = "select a from t;\na\n"
    gives(f"{select}1\n2\n", f"{select}1\n2\n")
    gives("create table t (a int) engine=SHALE;\n", "create table t (a int) engine=innodb;\n")
    gives(f"{select}1\n2\n", f"{select}2\n1\n", "order")
    # A row too many, or another one, is no matter of order.
    gives(f"{select}1\n2\n2\n", f"{select}2\n1\n", "rest")
    gives(f"{select}1\n3\n", f"{select}2\n1\n", "rest")
    ordered = "select a, b from t order by a;\na\tb\n"
    gives(f"{ordered}1\t1\n1\t2\n2\t3\n", f"{ordered}1\t2\n1\t1\n2\t3\n", "order")
    gives(f"{ordered}2\t3\n1\t1\n1\t2\n", f"{ordered}1\t1\n1\t2\n2\t3\n", "rest")
    # By what the rows are ordered does not show: to be looked at.
    hidden = "select b from t order by a + 1;\nb\n"
    gives(f"{hidden}1\n2\n", f"{hidden}2\n1\n", "rest")
    # Numbers of a process, or of a statement, are no difference; another name is.
    shows = "show binlog events;\nXid = "
    gives(f"{shows}166 /* #sql-exchange-539f-4 */\n", f"{shows}17 /* #sql-exchange-aa-b */\n")
    gives(f"{shows}166 /* #sql-exchange-539f-4 */\n", f"{shows}166 /* #sql-alter-539f-4 */\n", "rest")
    gives("set shale_ft_enable_stopword=0;\n", "set innodb_ft_enable_stopword=0;\n")
    gives("show tables;\ngtid_slave_pos_SHALE\n", "show tables;\ngtid_slave_pos_InnoDB\n")
    explain = "explain select * from t;\nid\ttype\n"
    gives(f"{explain}1\tALL\n", f"{explain}1\tref\n", "plan")
    gives(f"{explain}1\tALL\n", "explain select * from t;\nERROR 42S02: no\n", "rest")
    keys = "show keys from t;\nKey\tCardinality\n"
    gives(f"{keys}a\t10\n", f"{keys}a\t9\n", "statistics")
    gives(f"{keys}a\t10\n", f"{keys}b\t9\n", "rest")
    alter = "alter table t add b int;\n"
    gives(f"{alter}affected rows: 0\n", f"{alter}affected rows: 3\n", "way")
    match = "select * from t where match (a) against ('*');\nERROR 42000: "
    gives(f"{match}syntax error in the text of MATCH ... AGAINST: an operator without a word\n",
          f"{match}syntax error, unexpected $end\n")
    gives(f"{match}syntax error in the text of MATCH ... AGAINST: an operator without a word\n",
          f"{match}no such column\n", "rest")
    deadlock = "update t set a = 1;\nERROR 40001: Deadlock found; try restarting transaction"
    gives(f"{deadlock}; deadlock: transaction 1 waits\n", f"{deadlock}\n")
    optimize = "optimize table t;\nTable\tMsg\n"
    note = "test.t\tTable does not support optimize, doing recreate + analyze instead\n"
    gives(optimize, f"{optimize}{note}", "engine")
    gives("insert into t values (1);\nERROR 23000: Duplicate entry\n", "insert into t values (1);\n",
          "rest")
    # A statement over lines is one, and what the test was told of it is no difference of its own.
    gives("update t\nset a = 1;\nmysqltest: At line 3: query 'update t\nset a = 1' succeeded...\n",
          "update t\nset a = 1;\nERROR 23000: no\n", "rest")
    # Where the test asked for an end at an error, the remark alone has it, and nothing behind it is lost.
    failed = "mysqltest: In included file \"./a.inc\": \nincluded from ./a.test at line 8:\n" \
        "At line 3: query 'create table t (a int)\n$options' failed: ER_"
    cant, option = "CANT_CREATE_TABLE (1005): Can't (errno: 140 \"X\")\n", "X (1478): not 'Y'\n"
    gives(f"{failed}{cant}{select}1\n", f"{failed}{cant}{select}1\n")
    gives(f"{failed}{cant}{select}1\n", f"{failed}{cant}{select}2\n", "rest")
    gives(f"{failed}{cant}{select}1\n", f"{failed}{option}{select}1\n", "rest")
    gives(f"{failed}{cant}", "", "rest")
    gives(f"mysqltest: At line 3: it has taken 17 s\n{select}1\n",
          f"mysqltest: At line 3: it has taken 16 s\n{select}2\n", "rest")


def what_is_refused() -> None:
    create = "create table c (a text, fulltext (a));\n"
    error = "ERROR HY000: The storage engine SHALE doesn't support FULLTEXT indexes\n"
    missing = "ERROR 42S02: Table 'test.c' doesn't exist\n"
    other = "select * from other;\na\n"
    gives(f"{create}{error}select * from c;\n{missing}", f"{create}select * from c;\na\n1\n",
          "refused", "cascade")
    # What has nothing to do with the refused table is as much a difference as without it.
    gives(f"{create}{error}{other}2\n", f"{create}{other}1\n", "refused", "rest")
    # Nor is a table excused that was made anew on both sides.
    anew = "drop table if exists c;\ncreate table c (a int);\nselect * from c;\na\n"
    gives(f"{create}{error}{anew}2\n", f"{create}{anew}1\n", "refused", "rest")
    gives(f"select * from c;\n{missing}", "select * from c;\na\n1\n", "rest")
    # An index that both get makes no table anew.
    index = "create fulltext index i on c (b);\nselect * from c;\na\n"
    gives(f"{create}{error}{index}2\n", f"{create}{index}1\n", "refused", "cascade")


def files() -> None:
    global checked
    for text, becomes in [
        ("create table t (a int) engine=innodb;", "create table t (a int) engine=SHALE;"),
        ("alter table t engine = 'InnoDB'", "alter table t engine = 'SHALE'"),
        ("create table t (a int) engine innodb", "create table t (a int) engine SHALE"),
        ("alter table t storage engine = innodb", "alter table t storage engine = SHALE"),
        ("insert into t values ('storage engine innodb')", "insert into t values ('storage engine innodb')"),
        ("--default-storage-engine=innodb", "--default-storage-engine=SHALE"),
        ("set default_storage_engine= InnoDB;", "set default_storage_engine= SHALE;"),
        ("let $engine_type= InnoDB;", "let $engine_type= SHALE;"),
        ('if ($engine == "innodb")', 'if ($engine == "SHALE")'),
        ("""if ($engine == "'InnoDB'")""", """if ($engine == "'SHALE'")"""),
        ('set global gtid_pos_auto_engines="innodb,myisam,innodb";',
         'set global gtid_pos_auto_engines="SHALE,myisam,SHALE";'),
        ("select * from mysql.gtid_slave_pos_InnoDB", "select * from mysql.gtid_slave_pos_SHALE"),
        ("set innodb_lock_wait_timeout=1", "set shale_lock_wait_timeout=1"),
        ("--replace_result InnoDB ENGINE", "--replace_result InnoDB ENGINE SHALE ENGINE"),
        ("set global innodb_ft_server_stopword_table='test/t'", "set global shale_ft_server_stopword_table='test/t'"),
        ("--innodb-ft-min-token-size=2", "--shale-ft-min-token-size=2"),
        ("set global innodb_ft_aux_table='test/t'", "set global innodb_ft_aux_table='test/t'"),
        ("--copy_file $d/t.ibd $d/t.cfg.old", "--copy_file $d/t.shale $d/t.shale.old"),
        ("select 't.ibd'", "select 't.ibd'"),
        ("show engine innodb status", "show engine innodb status"),
        # Names that only have it in them stay.
        ("select * from t1_innodb", "select * from t1_innodb"),
        ("--source include/have_innodb.inc", "--source include/have_innodb.inc"),
        ("select * from mysql.innodb_table_stats", "select * from mysql.innodb_table_stats"),
    ]:
        assert tree.rewritten(text.encode()).decode() == becomes, (text, tree.rewritten(text.encode()))
        checked += 1
    combinations = b"[innodb]\nx\n[myisam]\ny\n[trx_id]\nz\n"
    assert tree.without_sections(combinations, {b"myisam"}) == b"[innodb]\nx\n[trx_id]\nz\n"
    with tempfile.TemporaryDirectory() as folder:
        sizes = pathlib.Path(folder) / "innodb_page_size.combinations"
        sizes.write_text("[64k]\ninnodb-page-size=64K\n[16k]\ninnodb-page-size=16K\n")
        copies = pathlib.Path(folder) / "innodb-util.pl"
        copies.write_text('$file = sprintf("%s.ibd", $table); print "$file: .ibd\\n";')
        for engine in run.ENGINES:
            assert tree.content(sizes, engine, False) == b"[16k]\ninnodb-page-size=16K\n"
        assert tree.content(copies, "InnoDB", False) is None
        assert tree.content(copies, "SHALE", False) == (
            b'$file = sprintf("%s.shale", $table); print "$file: .ibd\\n";')
        named = pathlib.Path(folder) / "named.test"
        named.write_text("create table t (a int) engine=MyISAM;\n")
        for engine in run.ENGINES:
            assert tree.content(named, engine, False) is None
            text = f"create table t (a int) engine={engine};\n".encode()
            assert tree.content(named, engine, True) == text
    checked += 4


def verdicts() -> None:
    """What the list excuses, and what it does not."""
    global checked
    one, other = "select a from t;\na\n1\n", "select a from t;\na\n2\n"
    passed = run.Ran("main.x", "pass", "")
    mark = compare.mark(compare.compare(one, other))
    for reason, kind in [
        (None, "unexplained"),
        (main.Reason(1, mark, "so it is"), "listed"),
        (main.Reason(1, mark, "?"), "unexplained"),
        (main.Reason(1, "0000000000", "so it is"), "unexplained"),
        (main.Reason(1, "varies", "so it is"), "listed"),
        (main.Reason(0, "varies", "so it is"), "unexplained"),
    ]:
        outcome = main.judge(passed, passed, (one, other), reason)
        assert outcome.kind == kind, (reason, outcome)
        checked += 1
    for how in ("crash", "timeout", "lost", "fail"):
        outcome = main.judge(run.Ran("main.x", how, ""), passed, (one, one), None)
        assert outcome.kind == "unexplained", (how, outcome)
        checked += 1
    # The reason of a pass is how long it took, which is no difference.
    crashed = run.Ran("main.x", "crash", "got signal 6")
    marks = {main.judge(run.Ran("main.x", "pass", took), crashed, (one, one), None).why for took in "12"}
    assert len(marks) == 1, marks
    checked += 1
    late = run.Ran("main.x", "timeout", "the time limit")
    assert main.judge(late, late, (one, one[:-2]), None).kind == "not run"
    left_out = {"main.x": "slow", "innodb.log_*": "of InnoDB"}
    for test, out in [
        ("main.x", True), ("main.xy", False), ("main.x,stmt", True), ("main.xy,stmt", False),
        ("innodb.log_file", True), ("innodb.mvcc", False),
    ]:
        assert main.is_left_out(test, left_out) is out, test
    checked += 2


def blessed() -> None:
    """The list has what the tests give now, keeps what was not run, and what varies to nothing at times."""
    global checked
    one, other = "select a from t;\na\n1\n", "select a from t;\na\n2\n"
    mark = compare.mark(compare.compare(one, other))
    given = {"new": (one, other), "gone": (one, one), "varies": (one, one), "known": (one, other)}
    reasons = {
        "main.gone": main.Reason(1, mark, "was so"), "main.varies": main.Reason(2, "varies", "at times"),
        "main.known": main.Reason(1, mark, "so it is"), "main.not": main.Reason(3, mark, "not run"),
    }
    ran = []
    for name, texts in given.items():
        passed = run.Ran(f"main.{name}", "pass", "")
        ran.append(main.judge(passed, passed, texts, reasons.get(passed.test)))
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "list"
        file.write_text("# head\n")
        main.bless(file, ran, reasons, {"main.slow": "is slow"})
        assert file.read_text().splitlines() == [
            "# head", "main.slow skip is slow", f"main.known 1 {mark} so it is", f"main.new 1 {mark} ?",
            f"main.not 3 {mark} not run", "main.varies 2 varies at times",
        ], file.read_text()
    checked += 1


def results() -> None:
    """What the driver prints is read."""
    global checked
    log = (
        "main.insert                              w1 [ pass ]   1992\n"
        "rpl.rpl_alter 'row'                      w2 [ skipped ]  not now\n"
        "compat/oracle.sp                         w2 [ fail ]\n"
        "mysqltest: At line 5: it is not there\n"
        "main.join                                w1 [ fail ]\n"
        "Server [mysqld.1 - pid: 1, winpid: 1, exit: 256] failed during test run\n"
        "main.xa                                  w1 [ fail ]  timeout after 240 seconds\n"
        "Test case timeout after 240 seconds\n"
        "231123 [ERROR] mysqld got signal 6 ;\n"
    )
    found = [(one.test, one.how) for one in run.read_results(log)]
    assert found == [
        ("main.insert", "pass"), ("rpl.rpl_alter,row", "skipped"), ("compat/oracle.sp", "fail"),
        ("main.join", "crash"), ("main.xa", "timeout"),
    ], found
    checked += 1


def disabled() -> None:
    """Tests that the server's people have disabled are left out, however their list names them."""
    global checked
    with tempfile.TemporaryDirectory() as folder:
        suite = pathlib.Path(folder) / "suite/gcol"
        (suite / "t").mkdir(parents=True)
        for name in ("one", "two", "three"):
            (suite / f"t/{name}.test").touch()
        (suite / "disabled.def").write_text("# two: not\ngcol.one: fails\nthree : fails\n")
        assert run.tests_of(pathlib.Path(folder), "gcol") == ["gcol.two"]
    checked += 1


def one_format() -> None:
    """A test that has a choice of formats gets one of them, the others none."""
    global checked
    with tempfile.TemporaryDirectory() as folder:
        tests = pathlib.Path(folder)
        for name, text in {
            "suite/rpl/t/any.test": "--source include/all.inc\n",
            "suite/rpl/t/row.test": "--source include/all.inc\nsource include/have_row.inc;\n",
            "suite/rpl/t/own.test": "source include/all.inc;\n",
            "suite/rpl/t/own-master.opt": "--binlog_format=mixed",
            "suite/rpl/t/mixed.test": "--source include/all.inc\n"
            "--source include/have_binlog_format_mixed_or_statement.inc\n",
            "suite/rpl/t/none.test": "select 1;\n",
            "include/all.inc": "", "include/have_row.inc": "",
            "include/have_row.opt": "--binlog-format=row",
            "include/have_binlog_format_mixed_or_statement.inc": "",
            "include/all.combinations": "[row]\nbinlog-format=row\n\n[stmt]\nx\n[mix]\ny\n",
        }.items():
            (tests / name).parent.mkdir(parents=True, exist_ok=True)
            (tests / name).write_text(text)
        for name, formatted in [
            ("row", ["rpl.row"]), ("own", ["rpl.own"]), ("none", ["rpl.none"]),
            ("mixed", ["rpl.mixed,mix"]), ("any", ["rpl.any,mix", "rpl.any,row"]),
        ]:
            assert formats.one(tests, f"rpl.{name}") in formatted, (name, formats.one(tests, f"rpl.{name}"))
            checked += 1


def records() -> None:
    """Runs in parts add up, and a test that ran again is there once, in the combinations it has now."""
    global checked
    entries = {
        one.test: one for one in [
            record.Entry("main.a", "equal", "2026-11-01"),
            record.Entry("rpl.b,row", "not run", "2026-11-01"),
            record.Entry("rpl.b,mix", "equal", "2026-11-01"),
            record.Entry("compat/oracle.c", "refused", "2026-11-02", ("data directory", "fulltext")),
            *(record.Entry(f"main.{'long_' * 6}{n}", "plan", "2026-11-01") for n in range(20)),
        ]
    }
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "results"
        assert record.read(file) == {}
        record.write(file, entries)
        assert max(map(len, file.read_text().splitlines())) <= record.WIDTH
        assert record.read(file) == entries
    again = record.renewed(entries, [record.Entry("rpl.b,row", "equal", "2026-11-03")])
    assert len(again) == len(entries) - 1 and "rpl.b,mix" not in again
    assert again["rpl.b,row"].date == "2026-11-03" and again["main.a"] == entries["main.a"]
    checked += 1


for part in (classes, what_is_refused, files, verdicts, blessed, results, disabled, one_format, records):
    part()
print(f"{checked} checks")
