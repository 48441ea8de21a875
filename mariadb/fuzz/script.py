"""Programs as SQL scripts: with both answers at the end, and read again by --replay."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from pair import SESSION, Difference, Pair, Step

SESSION_LINE = re.compile(r"^-- session (\d+)$")


def comment(text: str) -> str:
    return "\n".join("--   " + line[:1500] for line in text.splitlines() or [""])


def written(steps: list[Step], found: Difference, origin: str) -> str:
    """For the server's client; the same on InnoDB with `innodb` for `shale` at the top."""
    lines = [f"-- {found.kind}" + (f" ({origin})" if origin else "")]
    lines += ["-- begin: create database fuzz; use fuzz;"]
    lines += [f"-- begin: {text};" for text in SESSION]
    session = 0
    for step in steps:
        if step.session != session:
            session = step.session
            lines.append(f"-- session {session}")
        lines.append(step.sql + ";")
    lines += ["-- At:", comment(found.step.sql), "-- SHALE answers:", comment(found.ours),
              "-- InnoDB answers:", comment(found.theirs)]
    return "\n".join(lines) + "\n"


def read(text: str) -> list[Step]:
    steps = []
    session = 0
    pending: list[str] = []
    for line in text.splitlines():
        if not pending and line.startswith("--"):
            found = SESSION_LINE.match(line)
            if found:
                session = int(found.group(1))
            continue
        pending.append(line)
        if line.endswith(";"):
            steps.append(Step("\n".join(pending)[:-1], session))
            pending = []
    return steps


def replay(pair: Pair, file: pathlib.Path) -> Difference | None:
    steps = read(file.read_text(errors="surrogateescape"))
    if any(step.session for step in steps):
        import sessions

        return sessions.replay(pair, steps)
    return pair.run(steps)


def numbered(steps: list[Any]) -> str:
    return "\n".join(f"{index}: {step.sql}" for index, step in enumerate(steps))
