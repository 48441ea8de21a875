"""The client's side of the server's protocol, as little of it as the fuzzer needs, and fast.

A connection is PyMySQL's until it is made; from then on packets are read here: rows stay bytes, since
equal bytes are all that is asked for, and a statement can be sent to two servers' sessions before
either answer is read.
"""

from __future__ import annotations

import dataclasses
import select
import socket
import struct
from typing import Any

MORE_RESULTS = 8
# Of a column's definition: what the server's plan and the engine have no say in.
COLUMN_TAIL = struct.Struct("<HIBHB")
# No statement takes so long, which the server ends after 30: one that crashes may wait for itself, as
# when its report of that asks for memory.
SILENCE = 150


class Gone(Exception):
    """The connection broke: the server ended, or ended the connection, or says nothing any more."""


@dataclasses.dataclass
class Result:
    """One result of a statement: rows, or what it has done, or an error."""

    kind: str
    affected: int = 0
    insert_id: int = 0
    warnings: int = 0
    code: int = 0
    text: bytes = b""
    columns: tuple[Any, ...] = ()
    rows: list[bytes] = dataclasses.field(default_factory=list)


def length_coded(data: bytes, at: int) -> tuple[int | None, int]:
    first = data[at]
    if first < 251:
        return first, at + 1
    if first == 251:
        return None, at + 1
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def fields(row: bytes) -> list[bytes | None]:
    """The values of a row, as text."""
    values: list[bytes | None] = []
    at = 0
    while at < len(row):
        length, at = length_coded(row, at)
        if length is None:
            values.append(None)
        else:
            values.append(row[at : at + length])
            at += length
    return values


def column(data: bytes) -> tuple[Any, ...]:
    """Name, character set, length, type and decimals."""
    at = 0
    names = []
    for _ in range(6):
        length, at = length_coded(data, at)
        assert length is not None
        names.append(data[at : at + length])
        at += length
    charset, length, kind, _, decimals = COLUMN_TAIL.unpack_from(data, at + 1)
    return names[4], charset, length, kind, decimals


class Wire:
    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.thread = connection.thread_id()
        self.socket: socket.socket = connection._sock
        self.socket.settimeout(SILENCE)
        self.buffer = b""
        self.at = 0

    def send(self, statement: bytes, command: int = 3) -> None:
        try:
            self.socket.sendall(struct.pack("<IB", len(statement) + 1, command) + statement)
        except OSError as error:
            raise Gone(str(error)) from error

    def ready(self, seconds: float) -> bool:
        """Whether an answer has begun to come."""
        return self.at < len(self.buffer) or bool(select.select([self.socket], [], [], seconds)[0])

    def _more(self, size: int) -> None:
        parts = [self.buffer[self.at :]]
        have = len(parts[0])
        while have < size:
            try:
                part = self.socket.recv(max(65536, size - have))
            except OSError as error:
                raise Gone(str(error)) from error
            if not part:
                raise Gone("the server closed the connection")
            parts.append(part)
            have += len(part)
        self.buffer = b"".join(parts)
        self.at = 0

    def _packet(self) -> bytes:
        if len(self.buffer) - self.at < 4:
            self._more(4)
        size = int.from_bytes(self.buffer[self.at : self.at + 3], "little")
        assert size < 0xFFFFFF, "packets of 16 MiB are not read"
        if len(self.buffer) - self.at < size + 4:
            self._more(size + 4)
        start = self.at + 4
        self.at = start + size
        return self.buffer[start : self.at]

    def receive(self) -> list[Result]:
        """All results of one statement."""
        results = []
        while True:
            one, status = self._result()
            results.append(one)
            if not status & MORE_RESULTS:
                return results

    def _result(self) -> tuple[Result, int]:
        first = self._packet()
        if first[0] == 0:
            affected, at = length_coded(first, 1)
            insert_id, at = length_coded(first, at)
            status, warnings = struct.unpack_from("<HH", first, at)
            info = first[at + 4 :]
            return Result("ok", affected or 0, insert_id or 0, warnings, 0, info), status
        if first[0] == 0xFF:
            return Result("error", code=first[1] + 256 * first[2], text=first[9:]), 0
        assert first[0] != 0xFB, "the server asks for a local file"
        return self._rows(first)

    def _rows(self, first: bytes) -> tuple[Result, int]:
        count, _ = length_coded(first, 0)
        columns = tuple(column(self._packet()) for _ in range(count or 0))
        self._packet()
        rows = []
        while True:
            packet = self._packet()
            if packet[0] == 0xFE and len(packet) < 9:
                warnings, status = struct.unpack_from("<HH", packet, 1)
                return Result("rows", warnings=warnings, columns=columns, rows=rows), status
            if packet[0] == 0xFF:
                return Result("error", code=packet[1] + 256 * packet[2], text=packet[9:]), 0
            rows.append(packet)

    def ask(self, statement: str) -> list[Result]:
        self.send(statement.encode())
        return self.receive()

    def must(self, *statements: str) -> list[list[bytes | None]]:
        """Statements that cannot fail; the rows of the last."""
        last: list[Result] = []
        for statement in statements:
            last = self.ask(statement)
            if last[-1].kind == "error":
                raise SystemExit(f"fuzz: {statement}: {last[-1].text.decode(errors='replace')}")
        return [fields(row) for row in last[0].rows]

    def reset(self) -> None:
        """The session as it was made: variables, temporary tables, the transaction."""
        self.send(b"", 31)
        if self.receive()[-1].kind != "ok":
            raise Gone("the session was not reset")

    def close(self) -> None:
        try:
            self.connection._force_close()
        except OSError:
            pass
