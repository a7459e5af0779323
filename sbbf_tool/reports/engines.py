"""The table of query engines: how each uses a filter on a column of each family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular


class ColumnFamily(Frozen):
    """Columns that all query engines treat alike; `types` are their physical and logical types,
    with * for any."""

    id: str
    name: str
    types: tuple[str, ...]
    precision: tuple[int, int] | None = None
    """Minimum and maximum precision of DECIMAL columns."""
    padded: bool | None = None
    """Whether fixed-length DECIMALs have more bytes than their precision needs."""


class EngineVerdict(Frozen):
    """How one query engine uses a filter on a column of one family."""

    engine: str
    name: str
    """The name of the query engine for display."""
    family: str
    verdict: str
    """`used`, `unused`, or `harm`: a query loses rows or fails because of the filter."""
    explanation: str
    source: str
    """Public URL of the evidence."""
    evidence: str
    """`run` (tested with this version), `source` (read in the source code, not tested) or `issue`
    (reported in an issue)."""
    effect: str | None = None
    """For `harm`: `loses rows` or `fails`."""
    fix: str | None = None
    """For `harm`: how to avoid it."""
    since: str | None = None
    """First release to which this applies; None if unknown, or if it is the first release that
    reads filters."""
    until: str | None = None
    """Last release to which this applies; None if it applies to the current one."""
    predicates: tuple[str, ...] = ()
    """Predicates that were run and query the filter: `=`, `IN`, `IN of 30 values`, `IS NOT DISTINCT
    FROM`; empty if none was run."""
    older_verdict: EngineVerdict | None = None
    """Verdict for older releases, if a filter is harmful there."""

    @property
    def is_harmful(self) -> bool:
        """Whether a filter is harmful in this release or in an older one."""
        if self.effect is not None:
            return True
        return self.older_verdict is not None and self.older_verdict.effect is not None

    @property
    def sentence(self) -> str:
        """Format the verdict as one line, for a warning."""
        if self.effect is None:
            return f"{self.name}: {self.explanation}"
        releases = ""
        if self.since and self.until:
            releases = f" {self.since} to {self.until}"
        elif self.until:
            releases = f" up to {self.until}"
        explanation = self.explanation
        if self.evidence == "source":
            explanation += " (according to its source code, not tested)"
        return f"{self.name}{releases} {self.effect}: {explanation}; {self.fix}"


class TestedRelease(Frozen):
    """A release of a query engine that was run."""

    version: str
    package: str
    """Name and release of the package that was installed."""
    date: str
    """Day of the run, YYYY-MM-DD."""


class EngineBounds(Frozen):
    """The families of columns whose min and max a query engine compares with values, by the form in
    which a footer states them; each form was run."""

    newer: tuple[str, ...] = ()
    """`min_value` and `max_value`, in a footer that states the order of the column."""
    newer_unordered: tuple[str, ...] = ()
    """The same in a footer without the order."""
    older: tuple[str, ...] = ()
    """`min` and `max` alone, in a footer without the order."""
    older_ordered: tuple[str, ...] = ()
    """The same in a footer with the order."""
    older_equal: tuple[str, ...] = ()
    """The same, if both are equal."""
    older_reused: tuple[str, ...] = ()
    """The same, if both are equal, and the writer may have stated its last value as both
    (PARQUET-251)."""
    older_crossed: tuple[str, ...] = ()
    """The same, if the minimum is above the maximum: the row group is always skipped."""


class EngineReport(Frozen):
    """A query engine: facts about all columns, and one verdict per family of columns, in the order
    of the table."""

    id: str
    name: str
    aliases: tuple[str, ...]
    """Systems that read Parquet with this query engine."""
    version: str
    """The release, or the state of the source, that the verdicts apply to."""
    source: str
    evidence: str
    default_explanation: str
    verdicts: tuple[EngineVerdict, ...]
    since: str | None = None
    """First release that reads filters."""
    predicates: str | None = None
    """Predicates that query a filter; None for an engine that never does."""
    default: str | None = None
    """Whether the use of filters is on by default, and the setting that controls it."""
    places: tuple[str, ...] = ()
    """Where in the schema a filtered column may be: `top`, `struct` (a field of structs), `map`
    (its values), `list`."""
    unused_arrow_types: tuple[str, ...] = ()
    """Types in a file's ARROW:schema; filters of such columns are not used."""
    min_bytes: int | None = None
    max_bytes: int | None = None
    power_of_two: bool = False
    whole_blocks: bool = False
    bad_size: str | None = None
    """Effect of bitsets of other sizes: `ignored`, `loses rows` or `fails`."""
    dictionary_first: bool = False
    """Whether the engine uses the dictionary instead of the filter if all pages of a chunk use the
    dictionary."""
    length: str | None = None
    """How `bloom_filter_length` is used."""
    needs_length: bool = False
    metrics: str | None = None
    """Where the engine reports skipped row groups."""
    caution: str | None = None
    bounds: EngineBounds | None = None
    """The bounds that it compares; None if that was not run: then it is assumed to compare those
    that the format declares reliable."""
    releases: tuple[TestedRelease, ...] = ()
    """The releases that were run, from the oldest on; empty if none was."""

    def __hash__(self) -> int:
        return hash((self.id, self.version))

    @property
    def uses_filters(self) -> bool:
        return bool(self.places)


class EngineRow(Frozen):
    """Row of a table of engines: one engine and one family of columns. The fields are those of
    `EngineVerdict`."""

    engine: str
    name: str
    version: str
    family: str
    family_name: str
    verdict: str
    effect: str | None
    explanation: str
    fix: str | None
    since: str | None
    until: str | None
    older_releases: str | None
    """What older releases do, if a filter is harmful there."""
    evidence: str
    source: str


class EnginesReport(Tabular):
    """The table of `sbbf engines`."""

    _row = EngineRow

    families: tuple[ColumnFamily, ...]
    engines: tuple[EngineReport, ...]

    def _rows(self) -> Iterable[object]:
        families = {family.id: family.name for family in self.families}
        for engine in self.engines:
            for verdict in engine.verdicts:
                fields: dict[str, Any] = {
                    "version": engine.version,
                    "family_name": families[verdict.family],
                    "older_releases": None,
                }
                for name in EngineRow._fields:
                    if hasattr(verdict, name):
                        fields[name] = getattr(verdict, name)
                if verdict.older_verdict is not None:
                    fields["older_releases"] = verdict.older_verdict.sentence
                yield EngineRow(**fields)

    def _summary(self) -> str:
        types = format_count(len(self.families), "type")
        return f"{format_count(len(self.engines), 'engine')}, {types}"
