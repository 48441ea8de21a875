"""A plugin of pytest: statements that PyMySQL sends have no foreign keys."""

from __future__ import annotations

import re
from typing import Any

from pymysql.cursors import Cursor

KEY = (
    r"(CONSTRAINT\s+\S+\s+)?FOREIGN\s+KEY\s*(`\w+`\s*)?\([^)]*\)\s*REFERENCES\s+[^(]+\([^)]*\)"
    r"(\s+(ON\s+(DELETE|UPDATE)\s+(CASCADE|SET\s+NULL|RESTRICT|NO\s+ACTION|SET\s+DEFAULT)|"
    r"MATCH\s+\w+|(NOT\s+)?DEFERRABLE|INITIALLY\s+\w+))*"
)
IN_TABLE = re.compile(rf",\s*{KEY}", re.IGNORECASE)
ADDED = re.compile(rf"\s*ALTER\s+TABLE\s+\S+\s+ADD\s+{KEY}\s*$", re.IGNORECASE)
DROPPED = re.compile(r"\s*ALTER\s+TABLE\s+\S+\s+DROP\s+FOREIGN\s+KEY\s+\S+\s*$", re.IGNORECASE)


def without(statement: str) -> str:
    if ADDED.match(statement) or DROPPED.match(statement):
        return "DO 0"
    if re.match(r"\s*CREATE\s+", statement, re.IGNORECASE):
        return IN_TABLE.sub("", statement)
    return statement


send = Cursor._query


def query(self: Any, statement: Any) -> Any:
    return send(self, without(statement) if isinstance(statement, str) else statement)


Cursor._query = query
