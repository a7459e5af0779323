"""`engines`: list which query engines use Bloom filters, and on which columns; see `query_engines.verdicts`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sbbf_tool.errors import UsageError
from sbbf_tool.query_engines.verdicts import engine, is_named, near_names, table

if TYPE_CHECKING:
    from sbbf_tool.reports.engines import ColumnFamily, EnginesReport


def engines(type_name: str | None = None, engine_name: str | None = None) -> EnginesReport:
    """Return the table of query engines, or only the families of columns of `type_name` and the engine `engine_name`.

    A type is named as `inspect` prints it, or by a part of that: `INT64 TIMESTAMP(MILLIS,UTC)`, `timestamp`, `float16`. Raises
    UsageError, with similar names, for an unknown name.
    """
    everything = table()
    chosen = [everything.families.index(family) for family in _families_named(type_name)]
    asked = everything.engines if engine_name is None else (engine(engine_name),)
    return replace(
        everything,
        families=tuple(everything.families[at] for at in chosen),
        engines=tuple(replace(one, verdicts=tuple(one.verdicts[at] for at in chosen)) for one in asked),
    )


def _families_named(name: str | None) -> list[ColumnFamily]:
    families = table().families
    if name is None:
        return list(families)
    wanted = " ".join(name.split()).casefold()
    candidates = families if wanted else ()
    exact = [family for family in candidates if wanted in (family.id, family.name.casefold(), *(kind.casefold() for kind in family.types))]
    part = [family for family in candidates if any(wanted in kind.casefold() for kind in (family.id, family.name, *family.types))]
    if not exact and not part:
        # A type with parameters, such as INT32 DECIMAL(9,2) or DECIMAL(9,2). The last family is left out: its types would match any name.
        part = [family for family in families[:-1] if any(_means(wanted, kind.casefold()) for kind in family.types)]
    if not exact and not part:
        names = {spelling.casefold() for family in families for spelling in (family.name, family.id)}
        raise UsageError(f"no type {name!r}", hint=near_names(name, names, (family.name for family in families)))
    return exact or part


def _means(wanted: str, pattern: str) -> bool:
    logical = pattern.partition(" ")[2]
    return is_named(pattern, wanted) or (logical not in ("", "*") and is_named(logical, wanted))
