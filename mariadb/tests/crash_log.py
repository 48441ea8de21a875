"""What a binary log says of transactions, and XA transactions decided by it after a kill.

The server writes XA PREPARE and XA COMMIT to the binary log before the engine does them, and after
a crash does not compare the two (it does for all other transactions). So whoever decides what XA
RECOVER lists has to look at the log first: deciding twice would stop the replicas.
"""

from __future__ import annotations

import dataclasses
import random
import re
import subprocess

import server as servers
from crash_clients import Ledger
from crash_families import expect

# A transaction by its client and number; an XA transaction is named x<client>-<number>.
Place = tuple[int, int]

INSERT = re.compile(r"^#Q> insert into journal values \((\d+), (\d+),")
NAMED = re.compile(r"XA (PREPARE|COMMIT|ROLLBACK) X'([0-9a-f]+)'")


def place_of(name: str) -> Place:
    client, number = map(int, name[1:].split("-"))
    return client, number


def name_of(place: Place) -> str:
    return f"x{place[0]}-{place[1]}"


def last_file(server: servers.Server) -> str:
    return str(server.run("show binary logs")[-1][0])


@dataclasses.dataclass
class Logged:
    """What the log's files from one on have of clients from one on: those of a round. What was
    decided for the round before may be in the first file."""

    first_client: int = 0
    committed: set[Place] = dataclasses.field(default_factory=set)
    prepared: set[Place] = dataclasses.field(default_factory=set)
    decided: dict[Place, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, server: servers.Server, first_file: str, first_client: int) -> Logged:
        logged = cls(first_client)
        for file, *_ in server.run("show binary logs"):
            if file >= first_file:
                logged._read_file(server, file)
        return logged

    def _read_file(self, server: servers.Server, file: str) -> None:
        # SHOW BINLOG EVENTS refuses a file that ends within an event; this tells what is before it.
        lines = subprocess.run(
            [str(server.layout.server / "bin/mariadb-binlog"), "--no-defaults",
             "--base64-output=decode-rows", str(server.data / file)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
            env=server.layout.environment).stdout.splitlines()
        group: set[Place] = set()
        for line in lines:
            if line.startswith("#"):
                if "\tGTID " in line:
                    group = set()
                elif "\tXid = " in line:
                    self.committed |= group
                group |= {(int(one), int(two)) for one, two in INSERT.findall(line)
                          if int(one) >= self.first_client}
            elif named := NAMED.match(line):
                place = place_of(bytes.fromhex(named[2]).decode())
                if place[0] < self.first_client:
                    continue
                if named[1] == "PREPARE":
                    self.prepared.add(place)
                else:
                    expect(place not in self.decided, f"{line} is in the log twice")
                    self.decided[place] = named[1].lower()

    def all_committed(self) -> set[Place]:
        return self.committed | {
            place for place, decision in self.decided.items() if decision == "commit"}

    def undecided(self) -> set[Place]:
        """What replicas hold as prepared, with its locks."""
        return self.prepared - self.decided.keys()


def recovered(server: servers.Server) -> set[Place]:
    """What XA RECOVER lists."""
    return {place_of(data if isinstance(data, str) else data.decode())
            for *_, data in server.run("xa recover")}


def decide(server: servers.Server, place: Place, decision: str, logged: bool) -> None:
    server.run(f"set sql_log_bin={int(logged)}", f"xa {decision} '{name_of(place)}'")


def resolve(
    server: servers.Server, ledgers: list[Ledger], logged: Logged, chance: random.Random
) -> int:
    """Decides what XA RECOVER lists, and checks that what was prepared is there or decided."""
    by_client = {ledger.client: ledger for ledger in ledgers}
    listed = recovered(server)
    for place in sorted(listed):
        ledger, number = by_client[place[0]], place[1]
        expect(number not in ledger.acknowledged | ledger.undone,
               f"{name_of(place)} was decided, and XA RECOVER lists it")
        wanted = ledger.prepared.get(number)
        if place in logged.all_committed():
            decision, log = "commit", False
        elif place in logged.decided:
            decision, log = "rollback", False
        elif place in logged.prepared:
            decision, log = wanted or chance.choice(["commit", "rollback"]), True
        else:
            expect(wanted is None, f"{name_of(place)} is prepared, and not in the binary log")
            decision, log = "rollback", False
        expect(wanted in (None, decision), f"{name_of(place)}: {decision} is in the binary log")
        decide(server, place, decision, log)
        (ledger.acknowledged if decision == "commit" else ledger.undone).add(number)
        ledger.unknown.discard(number)
    for ledger in ledgers:
        for number, wanted in ledger.prepared.items():
            if number in ledger.unknown and (ledger.client, number) not in listed:
                # Its prepare was acknowledged: gone only by the decision that was sent.
                there = bool(server.run(
                    f"select 1 from journal where client = {ledger.client}"
                    f" and number = {number}", database="bank"))
                expect(there == (wanted == "commit"),
                       f"x{ledger.client}-{number} was prepared, is neither listed nor decided")
        ledger.prepared.clear()
    return len(listed)
