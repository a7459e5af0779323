"""The table of engines: what each does with a filter on a column of each family."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnFamily:
    """Columns that no engine tells apart. `types` are their names, physical and logical, with * for anything."""

    id: str
    name: str
    types: tuple[str, ...]
    precision: tuple[int, int] | None = None
    """Fewest and most digits of its DECIMALs."""
    padded: bool | None = None
    """Whether its fixed-length DECIMALs are longer than their digits need."""


@dataclass(frozen=True)
class EngineVerdict:
    """What one engine does with a filter on a column of one family."""

    engine: str
    name: str
    """The engine's name as people write it."""
    family: str
    verdict: str
    """`used`, `unused`, or `harm`: with the filter a query loses rows or fails."""
    says: str
    source: str
    """Where one can read it: a public address."""
    evidence: str
    """How it is known: `run`, `source` (read in the source, not run) or `issue` (told there)."""
    effect: str | None = None
    """Of a harm: `loses rows` or `fails`."""
    cure: str | None = None
    """Of a harm: what to do."""
    since: str | None = None
    """First release of which this is true, where it is known and not the first that reads filters."""
    until: str | None = None
    """Last release of which this is true; None where it is true of today's."""
    past: EngineVerdict | None = None
    """What older releases did, where that was harm."""

    @property
    def sentence(self) -> str:
        """It all in one line, such as a warning needs."""
        if self.effect is None:
            return f"{self.name}: {self.says}"
        releases = f" {self.since} to {self.until}" if self.since and self.until else f" up to {self.until}" if self.until else ""
        unproven = " (read in its source, not run)" if self.evidence == "source" else ""
        return f"{self.name}{releases} {self.effect}: {self.says}{unproven}; {self.cure}"


@dataclass(frozen=True)
class EngineReport:
    """An engine: what holds for all columns, then a verdict for each family of columns, in the table's order."""

    id: str
    name: str
    aliases: tuple[str, ...]
    """Systems that read Parquet through it."""
    version: str
    """The release, or the state of its source, that the verdicts speak of."""
    source: str
    evidence: str
    otherwise: str
    verdicts: tuple[EngineVerdict, ...]
    since: str | None = None
    """First release that reads filters."""
    predicates: str | None = None
    """Comparisons that ask a filter; None for an engine that never does."""
    default: str | None = None
    """On or off, and by what setting."""
    places: tuple[str, ...] = ()
    """Where in the schema a filtered column may stand: `top`, `struct` (a field of structs), `map` (its values), `list`."""
    unused_arrow_types: tuple[str, ...] = ()
    """Types in a file's ARROW:schema of whose columns it uses no filter."""
    min_bytes: int | None = None
    max_bytes: int | None = None
    power_of_two: bool = False
    whole_blocks: bool = False
    bad_size: str | None = None
    """What becomes of bitsets of other sizes: `ignored`, `loses rows` or `fails`."""
    dictionary_first: bool = False
    """A chunk whose pages all use a dictionary is decided by the dictionary."""
    length: str | None = None
    """What it makes of `bloom_filter_length`."""
    needs_length: bool = False
    shows: str | None = None
    """How one sees that it skipped row groups."""
    caution: str | None = None

    @property
    def uses_filters(self) -> bool:
        return bool(self.places)


@dataclass(frozen=True)
class EnginesReport:
    """The table of `sbbf engines`."""

    families: tuple[ColumnFamily, ...]
    engines: tuple[EngineReport, ...]
