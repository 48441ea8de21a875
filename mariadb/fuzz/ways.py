"""Which ways of reading the optimizer chose on SHALE, from EXPLAIN FORMAT=JSON."""

from __future__ import annotations

import collections
import json
from typing import Any, Iterator

# What a run with queries has to use; the others are counted only.
IMPORTANT = [
    "ref", "range", "index", "ALL", "const", "eq_ref", "ref_or_null",
    "index_merge intersect", "index_merge union", "index_merge sort_union",
    "index condition", "batched reads", "covering", "loose index scan", "backward or ordered scan",
    "ordered partition scan", "semi-join first match", "semi-join loose scan",
    "semi-join materialization", "semi-join duplicate weedout", "derived with keys",
    "join buffer", "join buffer with keys", "filesort",
]


def tables(plan: Any) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """All tables of a plan, each with the names of what it is in."""
    pending: list[tuple[Any, list[str]]] = [(plan, [])]
    while pending:
        one, path = pending.pop()
        if isinstance(one, list):
            pending += [(item, path) for item in one]
        elif isinstance(one, dict):
            if "table_name" in one:
                yield one, path
            pending += [(item, [*path, name]) for name, item in one.items()]


def of_table(table: dict[str, Any], path: list[str]) -> Iterator[str]:
    yield str(table.get("access_type", "none"))
    merge = table.get("index_merge")
    if isinstance(merge, dict):
        for name in ("intersect", "union", "sort_union", "sort_intersect"):
            if name in json.dumps(list(merge)):
                yield f"index_merge {name}"
    if table.get("key", "").startswith("key") and str(table["table_name"]).startswith("<derived"):
        yield "derived with keys"
    if "index_condition" in table:
        yield "index condition"
    if "mrr_type" in table or "mrr_type" in json.dumps(table):
        yield "batched reads"
    if table.get("using_index"):
        yield "covering"
    if "using_index_for_group_by" in table:
        yield "loose index scan"
    if "rowid_filter" in table:
        yield "rowid filter"
    if "first_match" in table:
        yield "semi-join first match"
    if "loose_scan" in table or "loosescan" in table:
        yield "semi-join loose scan"
    if "duplicates_removal" in path:
        yield "semi-join duplicate weedout"
    if "materialized" in path:
        yield "semi-join materialization"
    if "unique_subquery" in str(table.get("access_type")):
        yield "unique subquery"


def count(counts: collections.Counter[str], text: str, partitioned: bool, ordered: bool) -> list[str]:
    """Adds the ways of one query, each once; gives their names."""
    # Conditions are in it as they are, whatever characters they have.
    try:
        plan = json.loads(text, strict=False)
    except json.JSONDecodeError:
        counts["plans that are no JSON"] += 1
        return []
    found: set[str] = set()
    sorts = '"filesort"' in text
    for table, path in tables(plan):
        found.update(of_table(table, path))
        if ordered and not sorts and table.get("access_type") in ("index", "range", "ref"):
            found.add("backward or ordered scan")
            if partitioned:
                found.add("ordered partition scan")
    if sorts:
        found.add("filesort")
    if '"buffer_type"' in text:
        found.add("join buffer")
        if "BKA" in text or "BNLH" in text:
            found.add("join buffer with keys")
    for name in found:
        counts[f"plan: {name}"] += 1
    return sorted(found)


def missing(counts: collections.Counter[str]) -> list[str]:
    return [name for name in IMPORTANT if counts[f"plan: {name}"] == 0]
