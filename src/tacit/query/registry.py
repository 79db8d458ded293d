"""Every query by name, one line each. A query is imported when it is first asked for."""

from __future__ import annotations

from tacit.query.query import Query
from tacit.registry import Registry

QUERIES: Registry[type[Query]] = Registry("query", {
    "gradient": "tacit.query.gradient:Gradient",
    "moments": "tacit.query.moments:Moments",
    "counts": "tacit.query.counts:Counts",
})  # fmt: skip


def name_of(query: Query) -> str:
    """Return the name of a query's kind."""
    return next(name for name in QUERIES if QUERIES[name] is type(query))
