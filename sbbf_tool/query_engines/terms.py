"""The values in the table of engines: verdicts, effects, evidence, places in a schema."""

from __future__ import annotations

USED, UNUSED, HARM = "used", "unused", "harm"
EFFECTS = ("loses rows", "fails")
RUN, *_ = EVIDENCE = ("run", "source", "issue")
PLACES = {
    "top": "top-level columns",
    "struct": "fields of structs",
    "map": "values of maps",
    "list": "values inside lists and maps",
}
EQUAL, IN, IN_MANY, NULL_SAFE = PREDICATES = ("=", "IN", "IN of 30 values", "IS NOT DISTINCT FROM")
LOSES_ROWS, FAILS = EFFECTS
CANNOT_COMPARE = "cannot compare"
"""The outcome where the engine has no such comparison, or cannot read the type, even without
filters."""
