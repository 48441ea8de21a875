"""Kills servers at random moments, and looks whether what they acknowledged is there.

    crash.py [--kills 30] [--seed N] [--clients 4] [--mode mixed]
             [--engine SHALE] [--xa primary]

A primary (binary log of rows, GTIDs, sync_binlog=1) and a replica with parallel appliers; every
table is SHALE's, those in which the servers keep their GTIDs too. Clients run transactions of
several tables and note what was acknowledged. Then SIGKILL of the primary, of the replica or of
both; restart; what must hold is checked: `check_primary`, `check_position` and `check_replica` say
what, and `crash_families.py` of foreign keys.

XA transactions run in the rounds in which the replica is not killed: the server applies XA PREPARE
and XA COMMIT in one transaction and notes its GTID in the next, so a replica that dies between the
two begins again with what it has done, and stops, whatever the engine (MDEV-32020). `--xa always`
shows that, also with `--engine InnoDB`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

from pymysql.cursors import DictCursor

import server as servers
import crash_families
import crash_words
from crash_clients import ACCOUNTS, START, TABLES, Client, Ledger
from crash_families import Wrong, expect
from crash_log import Logged, decide, last_file, recovered, resolve


def check_primary(server: servers.Server, ledgers: list[Ledger]) -> None:
    """Nothing acknowledged is lost, nothing is there in part, every index has the same rows."""
    run = lambda *sql: server.run(*sql, database="bank")  # noqa: E731
    journal = run("select client, number, source, target, amount from journal")
    there: dict[int, set[int]] = {}
    for client, number, *_ in journal:
        there.setdefault(client, set()).add(number)
    for ledger in ledgers:
        mine = there.get(ledger.client, set())
        lost = ledger.acknowledged - mine
        expect(not lost, f"client {ledger.client}: acknowledged and lost: {sorted(lost)[-5:]}"
               f" {[ledger.kinds[number] for number in sorted(lost)[-5:]]}")
        more = mine & ledger.undone
        expect(not more, f"client {ledger.client}: rolled back and there: {sorted(more)[-5:]}")
        expect(not mine - ledger.acknowledged - ledger.unknown, "rows of no known transaction")
        # What was unknown is known now.
        ledger.acknowledged |= mine & ledger.unknown
        ledger.undone |= ledger.unknown - mine
        ledger.unknown.clear()
    balance = {number: START for number in range(1, ACCOUNTS + 1)}
    for _, _, source, target, amount in journal:
        if source:
            balance[source] -= amount
            balance[target] += amount
    expect(dict(run("select id, balance from account")) == balance,
           "the accounts are not what the journal makes of them")
    expect(dict(run("select id, balance from account force index (owner) where owner >= 0"))
           == balance, "the index on owner is not what the journal makes of it")
    check_rows(run, ledgers)
    crash_families.check(run)


def check_rows(run: Any, ledgers: list[Ledger]) -> None:
    expect(not run("select grp from stamped group by grp having count(*) <> 40"
                   " or min(stamp) <> max(stamp)"), "a group is stamped in part")
    by_index = run("select count(*), sum(stamp) from stamped force index (stamp) where stamp >= 0")
    expect(by_index == run("select count(*), sum(stamp) from stamped use index ()"),
           "the index on stamp has other rows than the table")
    queues: dict[tuple[int, int], int] = {}
    for table in ("todo", "done"):
        for client, number in run(f"select client, number from {table}"):
            place = (client, number)
            queues[place] = queues.get(place, 0) + 1
    wanted = {(ledger.client, number * 10 + part): 1 for ledger in ledgers
              for number in ledger.acknowledged if ledger.kinds[number] == "queue"
              for part in range(3)}
    expect(queues == wanted, "the queue has other rows than were put in")
    parts = dict(((client, number), count) for client, number, count in run(
        "select client, number, count(*) from xa_rows group by client, number"))
    expect(parts == {(ledger.client, number): 2 for ledger in ledgers
                     for number in ledger.acknowledged if ledger.kinds[number] == "xa"},
           "the rows of XA transactions are not those that were committed")
    for table in ("account", "journal", "stamped", "todo", "done", "xa_rows", "heap"):
        told = run(f"check table {table}")
        expect(told[-1][3] == "OK" or told[-1][2] == "note", f"CHECK TABLE {table}: {told}")


def check_log(server: servers.Server, logged: Logged) -> None:
    """The tables hold what the binary log says is committed, and nothing else."""
    there = set(server.run(
        f"select client, number from journal where client >= {logged.first_client}",
        database="bank"))
    committed = logged.all_committed()
    expect(there == committed,
           f"in the tables and not in the binary log: {sorted(there - committed)[:5]},"
           f" in the log only: {sorted(committed - there)[:5]}")


# How far the replica is, by the table that is written with each transaction, by its own binary log
# and by its data.
Position = tuple[int, int]


def position(replica: servers.Server) -> Position:
    ((number,),) = replica.run(
        "select max(seq_no) from mysql.gtid_slave_pos where domain_id = 0")
    ((rows,),) = replica.run("select count(*) from bank.journal")
    return int(number), int(rows)


def check_position(replica: servers.Server, before: Position, server_id: int) -> None:
    """Before the appliers go on: the replica's data are those of the GTID that it has kept, and its
    binary log ends there. Each transaction since `before` has one GTID and one row in the journal.
    """
    number, rows = position(replica)
    expect(rows - before[1] == number - before[0],
           f"gtid_slave_pos says {number - before[0]} transactions since {before[0]}, the data have"
           f" {rows - before[1]}")
    ((logged,),) = replica.run("select @@gtid_binlog_pos")
    expect(logged == f"0-{server_id}-{number}",
           f"gtid_slave_pos is at {number}, the replica's binary log at {logged}")


def stopped_because(replica: servers.Server) -> str:
    """Why the appliers have stopped, if they have."""
    with replica.connect() as connection, connection.cursor(DictCursor) as cursor:
        cursor.execute("show slave status")
        (status,) = cursor.fetchall()
    return "" if status["Slave_SQL_Running"] == "Yes" else f"stopped: {status['Last_SQL_Error']}"


def check_replica(primary: servers.Server, replica: servers.Server, logged: Logged) -> None:
    """The replica gets to where the primary is, and has the same rows."""
    (position,) = primary.run("select @@gtid_binlog_pos")[0]
    # Their XA PREPARE is in the log and was not acknowledged; the primary did not come to do it.
    undecided = logged.undecided()
    ends = time.monotonic() + 120
    while replica.run(f"select master_gtid_wait('{position}', 0.5)")[0][0] != 0:
        for place in recovered(replica) & undecided:
            decide(replica, place, "rollback", False)
        stopped = stopped_because(replica)
        if stopped or time.monotonic() > ends:
            raise Wrong(f"the replica does not reach {position}: {stopped}")
    for place in recovered(replica) & undecided:
        decide(replica, place, "rollback", False)
    tables = ", ".join(["account", "journal", "stamped", "todo", "done", "xa_rows", "heap",
                        *crash_families.NAMES,
                        # A replica does cascades itself, and notes its own time of them.
                        *(name for name in crash_words.NAMES if name != "past")])
    ours, theirs = (one.run(f"checksum table {tables}", database="bank")
                    for one in (primary, replica))
    expect(ours == theirs, f"after {position} the replica has other rows:\n{ours}\n{theirs}")


class Pair:
    """A primary and its replica."""

    def __init__(self, layout: servers.Layout, port: int, mode: str, engine: str) -> None:
        common = ["log-bin=bin", "binlog-format=ROW", "sync-binlog=1", "gtid-strict-mode=1",
                  "log-slave-updates=1", "sync-master-info=1", "sync-relay-log=0",
                  f"default-storage-engine={engine}", f"gtid-pos-auto-engines={engine}",
                  "max-binlog-size=1M", "slave-net-timeout=10"]
        self.primary = servers.Server(layout, "primary", [
            *common, "server-id=1", f"port={port}", "bind-address=127.0.0.1"])
        self.replica = servers.Server(layout, "replica", [
            *common, "server-id=2", "slave-parallel-threads=4",
            "relay-log=relay", "slave-transaction-retries=1000",
            "skip-slave-start=1", "innodb-lock-wait-timeout=5", "loose-shale-lock-wait-timeout=5"])
        self.port = port
        self.engine = engine
        self.mode = mode

    def follow(self, chance: random.Random) -> None:
        """The replica's appliers begin."""
        mode = self.mode
        if mode == "mixed":
            mode = chance.choice(["optimistic", "optimistic", "aggressive", "conservative"])
        self.replica.run(f"set global slave_parallel_mode = {mode}", "start slave")

    def begin(self) -> None:
        servers.all_of([(self.primary.start,), (self.replica.start,)])
        for one in (self.primary, self.replica):
            one.run("stop slave", "set sql_log_bin=0",
                    f"alter table mysql.gtid_slave_pos engine={self.engine}")
        self.primary.run(
            "create user copy@localhost", "grant replication slave on *.* to copy@localhost",
            "create user copy@'127.0.0.1'", "grant replication slave on *.* to copy@'127.0.0.1'",
            "create database bank")
        self.primary.run(*TABLES, database="bank")
        self.replica.run(
            f"change master to master_host='127.0.0.1', master_port={self.port},"
            " master_user='copy', master_use_gtid=slave_pos, master_connect_retry=1")


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def await_work(clients: list[Client], count: int) -> None:
    """Until so many transactions have been acknowledged: a kill before any would show nothing."""
    for _ in range(1200):
        if sum(len(client.ledger.acknowledged) for client in clients) >= count:
            return
        for client in clients:
            expect(not client.wrong, str(client.wrong))
        time.sleep(0.05)
    raise Wrong(f"{count} transactions took longer than a minute")


VICTIMS = [["primary"], ["primary"], ["replica"], ["primary", "replica"]]


def rounds(pair: Pair, given: argparse.Namespace, chance: random.Random) -> dict[str, int]:
    ledgers: list[Ledger] = []
    counts = {"kills": 0, "transactions": 0, "prepared": 0, "answers": 0}
    pair.follow(chance)
    check_replica(pair.primary, pair.replica, Logged())
    while counts["kills"] < given.kills:
        victims = chance.choice(VICTIMS)
        xa = given.xa == "always" or victims == ["primary"]
        log, before = last_file(pair.primary), position(pair.replica)
        new = [Ledger(len(ledgers) + number) for number in range(1, given.clients + 1)]
        ledgers += new
        clients = [Client(pair.primary, one, chance.randrange(1 << 60), xa, given.words)
                   for one in new]
        await_work(clients, chance.randrange(8, 80))
        time.sleep(chance.random() * 0.2)
        if victims == ["replica"]:
            # The primary goes on; so it dies a little later, or the clients would never end.
            counts["kills"] += 1
            pair.replica.kill()
            restart(pair, ["replica"], before, xa, chance)
            time.sleep(chance.random() / 2)
            victims = ["primary"]
        for name in victims:
            getattr(pair, name).kill()
            counts["kills"] += 1
        for client in clients:
            client.join()
            expect(not client.wrong, str(client.wrong))
        restart(pair, victims, before, xa, chance)
        counts["prepared"] += resolve(
            pair.primary, ledgers, Logged.read(pair.primary, log, new[0].client), chance)
        logged = Logged.read(pair.primary, log, new[0].client)
        check_log(pair.primary, logged)
        check_primary(pair.primary, ledgers)
        check_replica(pair.primary, pair.replica, logged)
        for one in (pair.primary, pair.replica) if given.words else ():
            counts["answers"] += crash_words.check(
                one, chance, is_replica=one is pair.replica)
        counts["transactions"] = sum(len(ledger.acknowledged) for ledger in ledgers)
        servers.say(f"{counts['kills']:3} kills ({'+'.join(victims)}):"
                    f" {counts['transactions']} transactions, {counts['prepared']} found prepared")
    return counts


def restart(
    pair: Pair, victims: list[str], before: Position, xa: bool, chance: random.Random
) -> None:
    servers.all_of((getattr(pair, name).start,) for name in victims)
    if "replica" in victims:
        if not xa:
            check_position(pair.replica, before, 1)
        pair.follow(chance)


def main() -> int:
    parser = argparse.ArgumentParser(description="kills servers, and checks what is left")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--mode", default="mixed",
                        help="slave_parallel_mode; mixed: another one at each start of a replica")
    parser.add_argument("--engine", default="SHALE")
    parser.add_argument("--words", action="store_true",
                        help="rows with FULLTEXT, SPATIAL and versions too, and what they answer")
    parser.add_argument("--xa", choices=["primary", "always"], default="primary")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    layout = servers.Layout()
    alone = servers.Server(layout, "alone", [f"default-storage-engine={given.engine}"])
    pair = Pair(layout, free_port(), given.mode, given.engine)
    try:
        asked = crash_families.prepared(alone)
        pair.begin()
        counts = rounds(pair, given, random.Random(given.seed))
        servers.all_of([(pair.primary.stop,), (pair.replica.stop,)])
    except (Wrong, SystemExit) as error:
        print(f"--seed {given.seed}: {error}\nthe servers' data and logs: {layout.folder}")
        return 1
    finally:
        alone.kill()
        pair.primary.kill()
        pair.replica.kill()
    print(f"crash: {counts['kills']} kills, {counts['transactions']} acknowledged transactions,"
          f" {counts['prepared']} prepared ones found and decided; {asked} foreign keys of prepared"
          f" ones are right; {counts['answers']} answers about words, places and versions")
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
