"""Part (e): transactions of two or three sessions on parents `p` and their children `t`.

Compared are the answers, who waits, and what both tables have at the end, as in part (c).
"""

from __future__ import annotations

import random
from typing import Any

from pair import Pair
from sessions import Transactions

PARENTS = [
    "create table p (id int primary key, u int, k int, unique key u (u), key k (k))",
    "create table p (id int, u int, k int, primary key (id desc), unique key u (u), key k (k, u))",
    "create table p (id int not null, u int, k int, key id (id), unique key u (u), key k (k))",
]
CHILDREN = [
    "create table t (id int primary key, k int, u int, v int, key (k), unique key u (u), key v (v)",
    "create table t (id int, k int, u int, v int, primary key (id desc), key (k, v), key (u), key v (v)",
    "create table t (id int not null, k int not null, u int, v int, primary key (k, id), key (v)",
]
# A column of the child, and what it references.
KEYS = [("k", "p (id)"), ("k", "p (id)"), ("k", "p (id)"), ("v", "p (id)"), ("v", "p (k)"), ("u", "p (u)"),
        ("v", "t (id)")]
ACTIONS = ["restrict", "restrict", "cascade", "cascade", "set null"]


class Families(Transactions):
    """As in part (c); some statements are of parents, more meet a child's column."""

    def create(self) -> None:
        chance, sessions = self.chance, self.sessions
        sessions.do(chance.choice(PARENTS), 0)
        child = chance.choice(CHILDREN)
        for column, parent in chance.sample(KEYS, chance.choice([1, 1, 1, 2])):
            # A key that begins otherwise than by `id` is no key of parents.
            parent = parent.replace("t (id)", "t (k)") if "(k, id)" in child else parent
            actions = [one for one in ACTIONS
                       if one != "set null" or not (column == "k" and "k int not null" in child)]
            child += (f", foreign key ({column}) references {parent} on delete {chance.choice(actions)}"
                      f" on update {chance.choice(actions)}")
        sessions.do(f"{child})", 0)
        rows = ", ".join(f"({n}, {n}, {n})" for n in range(0, 8))
        sessions.do(f"insert into p values {rows}", 0)
        for number in range(0, 13, chance.choice([1, 2, 3])):
            sessions.do(f"insert ignore into t values ({number}, {chance.randrange(6)}, {number % 8},"
                        f" {chance.randrange(6)})", 0)

    def statement(self, session: int) -> str:
        chance = self.chance
        kind = chance.random()
        if session not in self.open or kind < 0.22:
            return super().statement(session)
        if kind < 0.5:
            return self.of_parents()
        if kind < 0.65:
            word = chance.choice(["insert", "insert", "insert", "insert ignore", "replace"])
            rows = ", ".join(self.row() for _ in range(chance.choice([1, 1, 2])))
            return f"{word} into t values {rows}"
        if kind < 0.75:
            return f"update t set {chance.choice('kuv')} = {chance.randrange(10)} where {self.key()}"
        return super().statement(session)

    def of_parents(self) -> str:
        chance = self.chance
        where = f"{chance.choice(['id', 'id', 'id', 'u', 'k'])} = {chance.randrange(9)}"
        kind = chance.randrange(10)
        if kind < 4:
            return f"delete from p where {where}"
        if kind < 6:
            column = chance.choice(["id", "id", "u", "k"])
            return f"update p set {column} = {column} + {chance.choice([1, 20])} where {where}"
        row = f"({chance.randrange(10)}, {chance.randrange(10)}, {chance.randrange(10)})"
        if kind < 8:
            return f"insert into p values {row}"
        if kind == 8:
            return f"replace into p values {row}"
        return f"select * from p where {where} {chance.choice(['for update', 'lock in share mode'])}"


def program(pair: Pair, chance: random.Random, length: int) -> None:
    one: Any = Families(pair, chance)
    try:
        one.program(length)
    finally:
        one.sessions.close()
