"""Scaling out, on one machine: two servers that hold shards, one in front of them, and a replica.

The front has a table of the engine Spider, cut by a hash of the key; each part is a table of Shale
on one of the shards. Loads rows, asks for them by key, range and aggregate, changes rows of both
shards in one transaction (Spider prepares and commits it on each by XA), kills a shard between two
transactions, and has a replica of a shard follow. docs/scale-out.md explains the statements.
"""

from __future__ import annotations

import socket
import sys

import server as servers

ROWS = 2000


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("0.0.0.0", 0))
        return int(one.getsockname()[1])


def spider_plugin() -> str:
    """Fetches the engine Spider beside the unpacked server, if it is not there."""
    return servers.shell('fetch_extra mariadb-plugin-spider usr/lib/mysql/plugin/ha_spider.so')


def expect(holds: bool, text: str) -> None:
    if not holds:
        raise SystemExit(f"spider: {text}")


class Cluster:
    def __init__(self, layout: servers.Layout) -> None:
        (layout.plugins / "ha_spider.so").symlink_to(spider_plugin())
        self.ports = [free_port() for _ in range(2)]
        # Addresses of their own: Spider tells the members of a transaction apart by them.
        self.hosts = ["127.0.0.2", "127.0.0.3"]
        common = ["log-bin=bin", "binlog-format=ROW", "sync-binlog=1", "skip-name-resolve"]
        self.shards = [
            servers.Server(layout, f"shard{number}", [
                *common, f"port={port}", f"server-id={number + 1}",
                f"bind-address={self.hosts[number]}"])
            for number, port in enumerate(self.ports)
        ]
        self.front = servers.Server(layout, "front", [
            "plugin-load-add=ha_spider", "spider-internal-xa=1", "spider-support-xa=1",
            "spider-remote-sql-log-off=0"])
        self.replica = servers.Server(layout, "copy", [
            "server-id=9", "gtid-pos-auto-engines=SHALE"])
        self.all = [*self.shards, self.front, self.replica]

    def begin(self) -> None:
        servers.all_of((one.start,) for one in self.all)
        for number, shard in enumerate(self.shards):
            shard.run(
                "create user front@'127.%' identified by 'secret'",
                "grant all on shop.* to front@'127.%'",
                "grant replication slave on *.* to front@'127.%'",
                "create database shop")
            shard.run("create table orders (id bigint primary key, customer int, amount bigint,"
                      " key (customer)) engine=SHALE", database="shop")
            self.front.run(
                f"create server shard{number} foreign data wrapper mysql options"
                f" (host '{self.hosts[number]}', port {self.ports[number]}, database 'shop',"
                " user 'front', password 'secret')")
        self.front.run("create database shop")
        self.front.run(
            "create table orders (id bigint primary key, customer int, amount bigint,"
            " key (customer)) engine=SPIDER comment='wrapper \"mysql\", table \"orders\"'"
            " partition by hash (id) ("
            " partition p0 comment = 'srv \"shard0\"', partition p1 comment = 'srv \"shard1\"')",
            database="shop")
        self.replica.run(
            f"change master to master_host='{self.hosts[0]}', master_port={self.ports[0]},"
            " master_user='front', master_password='secret', master_use_gtid=slave_pos",
            "start slave")


def check(cluster: Cluster) -> None:
    front = cluster.front
    ask = lambda *sql: front.run(*sql, database="shop")  # noqa: E731
    ask(f"insert into orders select seq, seq % 50, 100 from seq_1_to_{ROWS}")
    held = [shard.run("select count(*) from orders", database="shop")[0][0]
            for shard in cluster.shards]
    expect(sum(held) == ROWS and min(held) > 0, f"the shards hold {held} rows")
    expect(ask("select amount from orders where id = 77") == [(100,)], "a row by its key")
    expect(len(ask("select id from orders where customer = 7")) == ROWS // 50, "rows by an index")
    expect([row[0] for row in ask("select id from orders where id between 10 and 19 order by id")]
           == list(range(10, 20)), "a range over both shards, in order")
    # A transfer from one shard to the other, and one that is undone.
    ask("begin", "update orders set amount = amount - 30 where id = 1",
        "update orders set amount = amount + 30 where id = 2", "commit")
    ask("begin", "update orders set amount = 0 where id = 1",
        "update orders set amount = 0 where id = 2", "rollback")
    expect(ask("select id, amount from orders where id in (1, 2) order by id")
           == [(1, 70), (2, 130)], "a transaction over both shards")
    expect(ask("select sum(amount), count(*) from orders") == [(100 * ROWS, ROWS)], "sums")
    by_xa = [shard.status("Com_xa_prepare") for shard in cluster.shards]
    expect(min(by_xa) >= 1, f"prepared on the shards: {by_xa}")
    # A shard that dies has lost nothing, and is used again once it is back.
    cluster.shards[1].kill()
    cluster.shards[1].start()
    for shard in cluster.shards:
        expect(shard.run("xa recover") == [], "no transaction is left prepared")
    expect(ask("select sum(amount), count(*) from orders") == [(100 * ROWS, ROWS)],
           "after a shard's death")
    (position,) = cluster.shards[0].run("select @@gtid_binlog_pos")[0]
    (reached,) = cluster.replica.run(f"select master_gtid_wait('{position}', 60)")[0]
    expect(reached == 0, f"the replica of a shard does not reach {position}")
    sums = [one.run("checksum table orders", database="shop")
            for one in (cluster.shards[0], cluster.replica)]
    expect(sums[0] == sums[1], f"the replica of a shard has other rows: {sums}")
    print(f"spider: {ROWS} rows on two shards ({held[0]} and {held[1]}); rows, ranges and sums;"
          f" {sum(by_xa)} prepares by XA; a shard killed; its replica equal")


def main() -> int:
    layout = servers.Layout()
    cluster = Cluster(layout)
    try:
        cluster.begin()
        check(cluster)
        servers.all_of((one.stop,) for one in cluster.all)
    finally:
        for one in cluster.all:
            one.kill()
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
