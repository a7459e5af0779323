"""What each operation answers with: frozen dataclasses, plain values inside, ready for JSON by `dataclasses.asdict`.

Sizes are bytes, offsets are bytes from the start of the file, ratios and error rates are fractions from 0 to 1. `None` means
"not known" or "not there", never zero. Row groups count from 0. Columns are named with dots, and backticks where a part has a dot.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FilterReport:
    """One column chunk and its filter; every field from `offset` on is None where it has none, or where it is `broken`."""

    row_group: int
    column: str
    physical_type: str
    logical_type: str | None
    chunk_bytes: int
    """Compressed bytes of the chunk's pages."""
    num_values: int
    """Values of the chunk as its metadata counts them, nulls included."""
    has_filter: bool
    offset: int | None = None
    header_bytes: int | None = None
    bitset_bytes: int | None = None
    stated_length: int | None = None
    """`bloom_filter_length` of the footer."""
    blocks: int | None = None
    fill_ratio: float | None = None
    """Bits set, of all bits."""
    estimated_fpp: float | None = None
    """Share of absent values that the filter lets pass, from the bits that are set."""
    estimated_ndv: float | None = None
    """Distinct values, from the bits that are set; None where the filter is saturated."""
    bits_per_value: float | None = None
    share_of_chunk: float | None = None
    """Bytes of the filter for each byte of the chunk's pages."""
    oddities: tuple[str, ...] = ()
    broken: str | None = None
    """Why the filter cannot be read: its bytes contradict the format."""


@dataclass(frozen=True, slots=True)
class ColumnTotal:
    """A column over all row groups."""

    column: str
    row_groups_with_filter: int
    row_groups: int
    filter_bytes: int
    chunk_bytes: int
    mean_fpp: float | None
    """Mean over the row groups whose filter could be measured: of row groups without the value, the share still read."""


@dataclass(frozen=True, slots=True)
class UnusedRange:
    """Bytes that nothing in the footer leads to."""

    offset: int
    length: int
    what: str


@dataclass(frozen=True, slots=True)
class InspectReport:
    file: str
    file_bytes: int
    footer_bytes: int
    created_by: str | None
    rows: int
    row_groups: int
    filters: tuple[FilterReport, ...]
    columns: tuple[ColumnTotal, ...]
    unused: tuple[UnusedRange, ...]
    notes: tuple[str, ...] = ()

    @property
    def broken(self) -> tuple[FilterReport, ...]:
        return tuple(row for row in self.filters if row.broken)


@dataclass(frozen=True, slots=True)
class RowGroupAnswer:
    """What one row group's filter says of one value: `absent`, `maybe`, `no filter` or `cannot say`, with the reason for the last."""

    row_group: int
    answer: str
    reason: str | None = None

    @property
    def is_absent(self) -> bool:
        return self.answer == "absent"


@dataclass(frozen=True, slots=True)
class ValueAnswer:
    value: str
    row_groups: tuple[RowGroupAnswer, ...]
    note: str | None = None

    @property
    def is_absent(self) -> bool:
        """Certainly in no row group. True of a file without row groups."""
        return all(answer.is_absent for answer in self.row_groups)


@dataclass(frozen=True, slots=True)
class ProbeReport:
    file: str
    column: str
    type: str
    values: tuple[ValueAnswer, ...]
    bytes_read: int

    @property
    def is_absent(self) -> bool:
        """Every value is certainly absent from the whole file."""
        return all(value.is_absent for value in self.values)


@dataclass(frozen=True, slots=True)
class BuiltFilter:
    """One filter as it was written, or, of a dry run, as it would be."""

    row_group: int
    column: str
    values: int
    """Non-null values that were hashed; each once where a dictionary page holds them all."""
    estimated_ndv: float | None
    offset: int
    header_bytes: int
    bitset_bytes: int
    fpp: float
    """Error rate measured from the bits that are set."""


@dataclass(frozen=True, slots=True)
class AddReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    filters: tuple[BuiltFilter, ...]
    data_bytes_read: int
    """Bytes of the chunks that were read to build them: of one that is all dictionary-encoded, that page and the headers of the others."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoveReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    removed: tuple[tuple[int, str], ...]
    """(row group, column) of each filter taken away."""
    way: str
    """`cut back` to the footer before, `compacted`, or `new footer`."""
    unreferenced_bytes: int
    """Bytes left in the file that nothing leads to any more."""
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class FilterProof:
    """One filter, asked for every value of its column chunk."""

    row_group: int
    column: str
    type: str
    offset: int
    header_bytes: int | None
    """None, like all that follows from the bitset, where the bytes at `offset` cannot be read as a filter."""
    bitset_bytes: int | None
    stated_length: int | None
    """`bloom_filter_length` of the footer."""
    values: int
    """Non-null values of the chunk that were asked for."""
    missed: int
    """Of those, the ones that the filter calls absent: rows that a query loses. NaN is counted apart."""
    examples: tuple[str, ...]
    """Some of the missed values, as `probe` takes them."""
    cause: str | None
    """How the missed values got in instead, where that could be found: `text`, `width` or `block`; `empty` where nothing got in."""
    explanation: str | None
    """The cause in words."""
    nans_missed: int
    """NaN values that the filter calls absent: not a fault, since NaN is stored in many forms and equals nothing."""
    equals_missed: tuple[str, ...]
    """Values that are not stored, equal one that is, and are called absent: the other zero; `nan` in its canonical form."""
    intervals_missed: int
    """INTERVAL values of which the filter lacks the normalised form that the file says it holds, the only one DuckDB asks for."""
    estimated_fpp: float | None
    """Share of absent values that pass, from the bits that are set."""
    measured_fpp: float | None
    """The same share, measured with `absent_keys`."""
    absent_keys: int
    """Random keys of the column's width that the chunk does not hold."""
    unproven: str | None = None
    """Why the filter could not be asked."""

    @property
    def is_proven(self) -> bool:
        """The filter was asked, and knows every value that it owes."""
        return self.unproven is None and not self.missed and not self.intervals_missed


ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""Error: a filter contradicts its data or the format, gives data away, or breaks a limit that was asked for. Warning: it is legal, and
released readers lose rows, fail, or gain nothing by it. Info: it costs a little, or promises less than one may think."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a rule saw, and in which row group; None where it is about the column as a whole."""

    row_group: int | None
    fact: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found wrong with the filters of one column."""

    rule: str
    severity: str
    """One of `SEVERITIES`."""
    file: str
    column: str
    message: str
    evidence: tuple[Evidence, ...]
    cure: tuple[str, ...] | None
    """The command that cures it, program and arguments; None where no command does."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    file: str
    created_by: str | None
    filters: tuple[FilterProof, ...]
    findings: tuple[Finding, ...]
    """What contradicts the data or the format, or makes released readers lose rows or fail. Never whether a filter is worth its bytes."""
    unread: tuple[str, ...]
    """Chunks whose pages could not be decoded, so that nothing is proven of their filters: place and reason."""

    @property
    def is_sound(self) -> bool:
        """No finding is an error."""
        return not any(finding.severity == ERROR for finding in self.findings)


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What became of one rule on one file: `passed`, `failed` or `not run`, with the reason for the last."""

    rule: str
    severity: str
    outcome: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CheckReport:
    file: str
    failed: bool
    """Some finding is at least as bad as `fail_on`."""
    fail_on: str
    rules: tuple[RuleOutcome, ...]
    findings: tuple[Finding, ...]
    unread: tuple[str, ...] = ()
    """What could not be read, the whole file or a chunk's pages, so that rules could not be run on it: place and reason."""


@dataclass(frozen=True, slots=True)
class ColumnFamily:
    """Columns that no engine tells apart. `types` are their names, physical and logical, with * for anything."""

    id: str
    name: str
    types: tuple[str, ...]
    precision: tuple[int, int] | None = None
    """Fewest and most digits of its DECIMALs."""
    padded: bool | None = None
    """Whether its fixed-length DECIMALs are longer than their digits need."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class EnginesReport:
    """The table of `sbbf engines`."""

    families: tuple[ColumnFamily, ...]
    engines: tuple[EngineReport, ...]


@dataclass(frozen=True, slots=True)
class RepairStep:
    """What was done with the filter of one column chunk, or, of a dry run, would be."""

    row_group: int
    column: str
    treatment: str
    """`state length`, `drop` or `rebuild`."""
    rules: tuple[str, ...]
    """Those that found something wrong with it."""
    facts: tuple[str, ...]
    """What each of them saw."""
    built: BuiltFilter | None = None
    """The filter that takes its place."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    steps: tuple[RepairStep, ...] = ()
    left: tuple[Finding, ...] = ()
    """What the rules found and nothing was done about: it takes rebuilding, or a key."""
    unproven: tuple[str, ...] = ()
    """Chunks whose pages cannot be decoded, so that nothing is known of their filters: place and reason."""
    cut_back_to: int | None = None
    """The length that the file had before an append to it was interrupted, and has again. A dry run then looks no further."""
    warnings: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """There was nothing to do."""
        return not self.steps and self.cut_back_to is None

    @property
    def is_sound(self) -> bool:
        """Nothing is left that is an error."""
        return not any(finding.severity == ERROR for finding in self.left)


@dataclass(frozen=True, slots=True)
class ResizedFilter:
    """One filter that was made smaller, or built anew, or, of a dry run, would be."""

    row_group: int
    column: str
    way: str
    """`folded`, or `rebuilt` from the data."""
    offset: int
    old_bytes: int
    """Of the bitset, like `new_bytes`."""
    new_bytes: int
    old_fpp: float
    new_fpp: float


@dataclass(frozen=True, slots=True)
class ResizeReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    filters: tuple[ResizedFilter, ...]
    unchanged: int
    """Filters that already have the size."""
    left: tuple[str, ...]
    """Filters that folding does not bring to the size: place and reason."""
    data_bytes_read: int = 0
    """Bytes of the chunks that were read to rebuild filters."""
    warnings: tuple[str, ...] = ()
