"""A failing program made small: first whole statements go, then rows, then parts of statements."""

from __future__ import annotations

import re
import time
from typing import Callable

from pair import Difference, Step

# Words, numbers and quoted texts; everything else is a token of its own.
TOKEN = re.compile(r"/\*\w+\*/|'(?:[^'\\]|\\.|'')*'|`[^`]*`|\w+|\s+|[^\w\s]", re.DOTALL)
ROWS = re.compile(r"seq_1_to_(\d+)")


class Shrinker:
    def __init__(self, run: Callable[[list[Step]], Difference | None], difference: Difference,
                 seconds: float) -> None:
        self.run, self.found = run, difference
        self.until = time.monotonic() + seconds
        self.trials = 0

    def fails(self, steps: list[Step]) -> bool:
        """Whether there is a difference of the same kind; the smaller program's is kept."""
        if time.monotonic() > self.until:
            return False
        self.trials += 1
        found = self.run(steps)
        if found is None or found.kind != self.found.kind:
            return False
        self.found = found
        return True

    def shrink(self, steps: list[Step]) -> list[Step]:
        steps = list(steps)
        if not self.fails(steps):
            return steps
        before = None
        while before != steps and time.monotonic() < self.until:
            before = list(steps)
            steps = self.cut(steps[: self.found.index + 1]
                             if self.found.index >= 0 else steps, self.fails)
            steps = self.fewer_rows(steps)
            for index in range(len(steps) - 1, -1, -1):
                steps = self.shorter(steps, index)
        return steps

    def cut(self, items: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
        """Leaves out as many as it can: halves, quarters, down to single ones."""
        size = max(len(items) // 2, 1)
        while True:
            at = len(items)
            while at > 0:
                # What is on the list hangs on the isolation level, who waits on the time-out.
                kept = [one for one in items[max(at - size, 0) : at]
                        if one.sql.startswith(("set session transaction", "set innodb_lock_wait_timeout"))]
                trial = items[: max(at - size, 0)] + kept + items[at:]
                if trial and len(trial) < len(items) and fails(trial):
                    items = trial
                    at = min(at, len(items) + size)
                at -= size
            if size == 1:
                return items
            size = max(size // 2, 1)

    def with_text(self, steps: list[Step], index: int, text: str) -> list[Step]:
        return [*steps[:index], Step(text, steps[index].session), *steps[index + 1 :]]

    def fewer_rows(self, steps: list[Step]) -> list[Step]:
        for index in range(len(steps)):
            for factor in (0.1, 0.3, 0.5, 0.7, 0.85):
                while True:
                    found = ROWS.search(steps[index].sql)
                    if found is None:
                        break
                    fewer = int(int(found.group(1)) * factor)
                    if fewer < 1:
                        break
                    text = ROWS.sub(f"seq_1_to_{fewer}", steps[index].sql)
                    trial = self.with_text(steps, index, text)
                    if not self.fails(trial):
                        break
                    steps = trial
        return steps

    def shorter(self, steps: list[Step], index: int) -> list[Step]:
        """Leaves out parts of a statement: elements of lists, groups in parentheses, runs of words."""
        tokens = TOKEN.findall(steps[index].sql)
        for spans in (elements, groups, runs):
            changed = True
            while changed and time.monotonic() < self.until:
                changed = False
                for first, last in spans(tokens):
                    # How a statement is compared is no part of it.
                    if any(token.startswith("/*") for token in tokens[first:last]):
                        continue
                    shorter = tokens[:first] + tokens[last:]
                    text = "".join(shorter).strip()
                    if not text:
                        continue
                    trial = self.with_text(steps, index, text)
                    if self.fails(trial):
                        steps, tokens, changed = trial, shorter, True
                        break
        return steps


def matching(tokens: list[str]) -> dict[int, int]:
    opened: list[int] = []
    pairs = {}
    for index, token in enumerate(tokens):
        if token == "(":
            opened.append(index)
        elif token == ")" and opened:
            pairs[opened.pop()] = index
    return pairs


def elements(tokens: list[str]) -> list[tuple[int, int]]:
    """Elements of comma lists, each with one comma, longest first."""
    found = []
    stack: list[list[int]] = [[-1]]
    for index, token in enumerate([*tokens, ")"]):
        if token == "(":
            stack.append([index])
        elif token == "," and stack:
            stack[-1].append(index)
        elif token == ")" and stack:
            commas = [*stack.pop(), index]
            if len(commas) > 2:
                for place in range(len(commas) - 1):
                    first, last = commas[place], commas[place + 1]
                    found.append((first, last) if place else (first + 1, last + 1))
    return sorted(found, key=lambda span: span[0] - span[1])


def groups(tokens: list[str]) -> list[tuple[int, int]]:
    return sorted(((first, last + 1) for first, last in matching(tokens).items()),
                  key=lambda span: span[0] - span[1])


def runs(tokens: list[str]) -> list[tuple[int, int]]:
    """Runs of up to eight tokens in which parentheses match."""
    pairs = matching(tokens)
    found = []
    for size in (16, 12, 8, 6, 5, 4, 3, 2, 1):
        for first in range(len(tokens)):
            index, count = first, 0
            while index < len(tokens) and count < size:
                if tokens[index] == ")":
                    break
                index = pairs.get(index, index) + 1
                count += 1
            if count == size:
                found.append((first, index))
    return found
