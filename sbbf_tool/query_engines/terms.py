"""The values in the table of engines: verdicts, effects, evidence, places in a schema."""

from __future__ import annotations

USED = "used"
UNUSED = "unused"
HARM = "harm"
LOSES_ROWS = "loses rows"
FAILS = "fails"
EFFECTS = (LOSES_ROWS, FAILS)
RUN = "run"
EVIDENCE = (RUN, "source", "issue")
PLACES = {
    "top": "top-level columns",
    "struct": "fields of structs",
    "map": "values of maps",
    "list": "values inside lists and maps",
}
EQUAL = "="
IN = "IN"
IN_MANY = "IN of 30 values"
NULL_SAFE = "IS NOT DISTINCT FROM"
PREDICATES = (EQUAL, IN, IN_MANY, NULL_SAFE)
CANNOT_COMPARE = "cannot compare"
"""The outcome where the engine has no such comparison, or cannot read the type, even without
filters."""
