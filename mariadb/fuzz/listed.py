"""An entry of the list of known differences."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Callable


def spaced(sql: str) -> str:
    """A statement with one way to write it, as the shrinker leaves out blanks."""
    words = re.sub(r"/\*.*?\*/|`", " ", sql)
    return " ".join(re.sub(r"([()])", r" \1 ", words).replace(" )", ")").split())


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
    also: str = ""
    # What has to be so of the two answers.
    so: Callable[[str, str], bool] = lambda ours, theirs: True

    def fits(self, difference: Any, steps: list[Any]) -> bool:
        for before in (self.program, self.also):
            if before and not any(re.search(before, spaced(step.sql), re.IGNORECASE) for step in steps):
                return False
        if not self.so(difference.ours, difference.theirs):
            return False
        # A text with both kinds of quotes is shown with one of them escaped.
        ours, theirs = (text.replace("\\'", "'") for text in (difference.ours, difference.theirs))
        return all(
            re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None
            for pattern, text in (
                (self.kind, difference.kind), (self.statement, spaced(difference.step.sql)),
                (self.ours, ours), (self.theirs, theirs)))
