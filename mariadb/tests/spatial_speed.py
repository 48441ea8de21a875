"""What SPATIAL indexes cost in SHALE and in InnoDB, on one server: rows, searches, updates, ALTER.

    spatial_speed.py [--rows 200000] [--shapes points|polygons] [--pairs 9]

Searches are made by procedures, many in one call, so that the client costs nothing. Engines take
turns, with the same shapes and windows, and have to answer the same. Figures: docs/decisions/0022.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from typing import Any

import server as servers

ENGINES = ["innodb", "shale"]
# Relations, the sides of windows, and how many of them a call has. Of side 0 a window is a point.
SEARCHES = [
    ("mbrintersects", 0.5, 2000), ("mbrintersects", 5, 1000), ("mbrintersects", 30, 50),
    ("st_within", 2, 1500), ("mbrwithin", 0.5, 2000), ("st_contains", 0, 2000),
]
UPDATES = ("mbrintersects", 0.5, 500)
PROCEDURE = """create procedure {name}(k int, side double) begin
  declare r, total bigint default 12345; declare x, y double;
  set total = 0;
  while k > 0 do
    set r = (r * 1103515245 + 12345) & 0x7fffffff; set x = r / 0x7fffffff * (360 - side) - 180;
    set r = (r * 1103515245 + 12345) & 0x7fffffff; set y = r / 0x7fffffff * (180 - side) - 90;
    set @w = if(side = 0, point(x, y), st_geomfromtext(concat('polygon((', x, ' ', y, ',', x + side,
      ' ', y, ',', x + side, ' ', y + side, ',', x, ' ', y + side, ',', x, ' ', y, '))')));
    {work};
    set k = k - 1;
  end while;
  select total;
end"""


def shape(chance: random.Random, kind: str) -> str:
    x, y = chance.uniform(-180, 180), chance.uniform(-90, 90)
    if kind == "points":
        return f"point({x}, {y})"
    w = 10 ** chance.uniform(-3, -0.5)
    corners = [(x, y), (x + w, y), (x + w, y + w), (x, y + w), (x, y)]
    return f"st_geomfromtext('polygon(({','.join(f'{a} {b}' for a, b in corners)}))')"


def turns(number: int) -> list[str]:
    return ENGINES if number % 2 == 0 else ENGINES[::-1]


def timed(cursor: Any, *statements: str) -> tuple[float, Any]:
    began = time.perf_counter()
    for statement in statements:
        cursor.execute(statement)
        answer = cursor.fetchall()
        while cursor.nextset():
            pass
    return time.perf_counter() - began, answer


def tell(title: str, ratios: list[float]) -> None:
    print(f"{title:28}{statistics.median(ratios):6.2f}  ({min(ratios):.2f} to {max(ratios):.2f})",
          flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--shapes", choices=["points", "polygons"], default="points")
    parser.add_argument("--pairs", type=int, default=9)
    given = parser.parse_args()
    layout = servers.Layout()
    server = servers.Server(layout, "speed", [
        "innodb-buffer-pool-size=512M", "innodb-flush-log-at-trx-commit=2", "shale-memory=512M",
        "shale-durability=periodic"])
    server.start()
    cursors = {}
    for engine in ENGINES:
        server.run(f"create database {engine}")
        cursor = cursors[engine] = server.connect(engine).cursor()
        cursor.execute("create table t (id int primary key, g geometry not null, n int,"
                       f" pad varchar(60), spatial key g (g)) engine={engine}")
        for relation in {relation for relation, _, _ in SEARCHES}:
            where = f"{relation}(g, @w)"
            search = (f"select count(*) + ifnull(sum(n), 0) into @q from t where {where};"
                      " set total = total + @q")
            cursor.execute(PROCEDURE.format(name=f"find_{relation}", work=search))
            update = f"update t set n = n + 1 where {where}; set total = total + row_count()"
            cursor.execute(PROCEDURE.format(name=f"change_{relation}", work=update))
    print(f"{given.rows} {given.shapes}; SHALE's rate by InnoDB's: median (least to greatest)")
    chance = random.Random(5)
    spent = {engine: 0.0 for engine in ENGINES}
    for begin in range(0, given.rows, 100):
        rows = ",".join(f"({begin + i}, {shape(chance, given.shapes)}, {chance.randrange(1000)},"
                        f" '{'x' * 50}')" for i in range(100))
        for engine in turns(begin // 100):
            spent[engine] += timed(cursors[engine], f"insert into t values {rows}")[0]
    tell("INSERT, 100 rows each", [spent["innodb"] / spent["shale"]])
    for cursor in cursors.values():
        timed(cursor, "analyze table t")
    server.run("set global shale_wait_idle=on")
    calls = [(f"{relation}, {side}", f"call find_{relation}({count}, {side})")
             for relation, side, count in SEARCHES]
    relation, side, count = UPDATES
    calls.append((f"UPDATE, {side}", f"call change_{relation}({count}, {side})"))
    for title, call in calls:
        ratios = []
        for pair in range(given.pairs + 1):
            found = {engine: timed(cursors[engine], call) for engine in turns(pair)}
            assert found["innodb"][1] == found["shale"][1], (title, found)
            # The first is to warm up.
            if pair > 0:
                ratios.append(found["innodb"][0] / found["shale"][0])
        tell(title, ratios)
    found = {engine: timed(cursors[engine], "alter table t drop key g",
                           "alter table t add spatial key g (g)") for engine in ENGINES}
    tell("ADD SPATIAL", [found["innodb"][0] / found["shale"][0]])
    server.stop()
    layout.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
