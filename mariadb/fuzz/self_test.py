"""Whether the fuzzer finds what is planted, and nothing where nothing is.

A layer that rewrites what one side is sent plays the engine that is wrong; both sides are InnoDB, so that this
asks about the fuzzer only.
"""

from __future__ import annotations

import re
from typing import Any

import allowed
import fuzz
import script
import shrink
from pair import Difference, Pair, Step, is_end_in, is_innodbs_end, servers

SEED = 20261123


def wrong_comparison(text: bytes) -> bytes:
    """`<=` is `<` in what deletes."""
    return text.replace(b" <= ", b" < ") if text.startswith(b"delete") else text


def lost_rows(text: bytes) -> bytes:
    """A forced index does not have every row."""
    return re.sub(rb"(force index [^w]*\) where )", rb"\1 n % 7 <> 3 and ", text)


def lost_update(text: bytes) -> bytes:
    """An UPDATE of another session has no effect."""
    return text.replace(b"v = v + 1", b"v = v") if text.startswith(b"update") else text


def unchecked(text: bytes) -> bytes:
    """Foreign keys are not checked, and nothing cascades."""
    words = (b"insert", b"replace", b"update", b"delete", b"load")
    return b"set statement foreign_key_checks=0 for " + text if text.startswith(words) else text


def other_words(text: bytes) -> bytes:
    """A search finds the rows that do not match."""
    return text.replace(b" where match (", b" where not match (") if text.startswith(b"select") else text


def search(pair: Pair, part: str, programs: int) -> Difference | None:
    for number in range(programs):
        found = fuzz.run_program(pair, part, f"{SEED}:{part}:{number}")
        if found is not None and not fuzz.chanced(pair, part, found):
            return found
    return None


def planted(layout: Any, part: str, rewrite: Any) -> None:
    """It is found, made small, written, read again and found again; not without the plant."""
    # A transaction's own words InnoDB does not find, which part (f) asks for.
    words = part == "f"
    pair = Pair(layout, f"planted-{part}", allowed.find if words else allowed.none,
                ("shale" if words else "innodb", "innodb"), rewrite)
    found = search(pair, part, 40)
    assert found is not None, f"the difference planted for part {part} was not found"
    before = list(pair.steps)
    again = fuzz.replayer(pair, part)
    small = shrink.Shrinker(again, found, 60)
    steps = small.shrink(before)
    assert len(steps) < len(before), (len(steps), len(before))
    assert script.read(script.written(steps, small.found, "")) == steps, steps
    second = again(steps)
    assert second is not None and second.kind == found.kind, (found, second)
    pair.rewrite = None
    assert again(steps) is None, "the difference is there without the plant"
    servers.say(f"self-test: part {part}: {found.kind} after {len(before)} statements,"
                f" made {len(steps)}: {steps[-1].sql[:120]}")
    pair.server.kill()


def nothing(layout: Any) -> None:
    """One engine on both sides: no difference; and a seed gives the same program again."""
    pair = Pair(layout, "nothing", allowed.none, ("innodb", "innodb"))
    for part, programs in (("a", 8), ("b", 1), ("c", 8), ("d", 6), ("e", 6)):
        found = search(pair, part, programs)
        assert found is None, f"InnoDB differs from itself:\n{script.written(pair.steps, found, '')}"
    programs = []
    for _ in range(2):
        fuzz.run_program(pair, "a", f"{SEED}:a:1")
        programs.append(list(pair.steps))
    assert programs[0] == programs[1], "a seed gave two programs"
    pair.server.kill()


def engines(layout: Any) -> None:
    """An engine without transactions is told from one with them."""
    pair = Pair(layout, "engines", allowed.none, ("myisam", "innodb"))
    for part in ("a", "c"):
        assert search(pair, part, 20) is not None, f"MyISAM passes for InnoDB in part {part}"
    pair.server.kill()


def own_faults() -> None:
    """What fails without a look at it."""
    ok = "1 rows; only here 1: ('t', 'check', 'status', 'OK')"
    damaged = "1 rows; only here 1: ('t', 'check', 'error', 'Corrupt')"
    for kind, sql, ours, theirs, wanted in [
        ("crash", "select 1", "the server ended", "", True),
        ("rows of two plans", "select * from t /*same*/", "1 rows", "2 rows", True),
        ("waits of two plans", "select * from t for update", "waits", "2 rows", False),
        ("rows", "select * from t", "1 rows; only here 0: ", "2 rows; only here 1: (1)", False),
        ("outcome", "insert into t values (1)", "error 1296: Got error 3000", "ok: 1 affected", True),
        ("error text", "delete from t", "error 1032: one", "error 1032: other", False),
        ("outcome", "insert into t values (1)", "error 1062: Duplicate", "ok: 1 affected", False),
        ("rows", "check table t extended", damaged, ok, True),
        ("rows", "check table t extended", ok, damaged, False),
    ]:
        found = Difference(kind, Step(sql), ours, theirs)
        assert fuzz.is_own_fault(found) == wanted, found


def ends() -> None:
    """Whose end of the server it is."""
    signal = "got signal 11 ;\nAttempting backtrace. Include this in the bug report.\n"
    server, shale = "/sbin/mariadbd", "/plugins/ha_shale.so"
    purge = f"{server}(_Z16open_purge_tableP3THDPKcmS2_mP10MDL_ticket+0xff)[0x1]"
    update = f"{server}(_ZN7handler13ha_update_rowEPKhS1_+0xe2)[0x1]"
    for frames, wanted in [
        ([f"{server}(+0xd866fe)[0x1]", update, f"{server}(_Z12mysql_update+0x1c99)[0x1]"], True),
        ([f"{shale}(+0x66fe)[0x1]", update], False),
        ([f"{server}(+0xd866fe)[0x1]", f"{shale}(+0x66fe)[0x1]", update], False),
        ([f"{server}(_Z12mysql_update+0x1c99)[0x1]"], False),
        ([f"{server}(+0xd866fe)[0x1]", f"{server}(_Z12mysql_update+0x1c99)[0x1]"], False),
        ([f"{server}(_Z10open_tableP3THD+0xaea)[0x1]", purge], True),
        ([f"{shale}(+0x66fe)[0x1]", f"{server}(_Z10open_tableP3THD+0xaea)[0x1]", purge], False),
    ]:
        log = "\n".join([signal, *frames, "Connection ID (thread ID): 5", shale])
        assert is_innodbs_end(log) == wanted, frames
        assert is_end_in(log, {4, 5}) == (not any(shale in frame for frame in frames)), frames
        assert not is_end_in(log, {4, 6})
        assert not is_innodbs_end(f"thread panicked\n{log}")
        assert not is_end_in(f"thread panicked\n{log}", {5})


def main() -> int:
    own_faults()
    ends()
    layout = servers.Layout(fuzz.memory())
    nothing(layout)
    for part, rewrite in (("a", wrong_comparison), ("b", lost_rows), ("c", lost_update),
                          ("d", unchecked), ("e", unchecked), ("f", other_words)):
        planted(layout, part, rewrite)
    engines(layout)
    layout.remove()
    servers.say("self-test: planted differences were found, and no others")
    return 0
