"""The values in the table of engines: verdicts, effects, evidence, places in a schema."""

from __future__ import annotations

USED, UNUSED, HARM = "used", "unused", "harm"
EFFECTS = ("loses rows", "fails")
EVIDENCE = ("run", "source", "issue")
PLACES = {"top": "top-level columns", "struct": "fields of structs", "map": "values of maps", "list": "values inside lists and maps"}
