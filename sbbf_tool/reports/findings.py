"""What `check` and `verify` find: findings of rules, the rules themselves, and the membership
checks of filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sbbf_tool.frozen import Frozen
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.reports.tabular import Tabular

ERROR = "error"
WARNING = "warning"
INFO = "info"
SEVERITIES = (ERROR, WARNING, INFO)
"""Error: a filter contradicts its data or the format, discloses encrypted data, or breaks a given
limit. Warning: a filter is valid, but released readers lose rows, fail, or gain nothing. Info: a
filter costs a little, or does less than expected."""


class Evidence(Frozen):
    """Observation of a rule, and its row group; None if the observation concerns the whole
    column."""

    row_group: int | None
    fact: str


class Finding(Frozen):
    """What one rule found: a defect in the filters of one column, or in the index of a file."""

    rule: str
    severity: str
    """One of `SEVERITIES`."""
    file: str
    column: str | None
    """None if the finding concerns the whole file."""
    message: str
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    """The change that resolves the finding; None if no function of this package can resolve it."""

    @property
    def row_groups(self) -> tuple[int, ...]:
        """The row groups of the evidence; empty if it is about the whole column or file."""
        numbers = set()
        for evidence in self.evidence:
            if evidence.row_group is not None:
                numbers.add(evidence.row_group)
        return tuple(sorted(numbers))


PASSED = "passed"
NOTED = "noted"
FAILS = "failed"
NOT_RUN = "not run"
IN_BASELINE = "known"


class RuleOutcome(Frozen):
    """Outcome of one rule on one file: `passed`; `failed`; `noted`, if its findings are too mild to
    fail; or `not run` with the reason."""

    rule: str
    severity: str
    outcome: str
    reason: str | None = None


class FindingRow(Frozen):
    """Row of a table of findings."""

    file: str
    rule: str
    severity: str
    column: str | None
    message: str
    row_groups: tuple[int, ...]
    """Empty if the finding concerns the whole column or file."""
    fix: str | None
    """The change as a call in Python, or as a command on the command line."""


class CheckReport(Tabular):
    _row = FindingRow

    file: str
    failed: bool
    """Whether a finding is at least as severe as `fail_on`."""
    fail_on: str
    rules: tuple[RuleOutcome, ...]
    findings: tuple[Finding, ...]
    unreadable: tuple[str, ...] = ()
    """Parts that could not be read (the whole file, or pages of a chunk), and on which rules did
    not run: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    locked_columns: tuple[str, ...] = ()
    """Columns whose filters were not checked, because their keys were not given; whether such a
    column has filters may be unknown."""

    def _rows(self) -> Iterable[object]:
        return self.rows()

    def rows(self, write_fix: Callable[[Fix], str] = str) -> Iterator[FindingRow]:
        """Yield the rows of the table, with fixes as `write_fix` writes them."""
        for finding in self.findings:
            yield FindingRow(
                finding.file,
                finding.rule,
                finding.severity,
                finding.column,
                finding.message,
                row_groups=finding.row_groups,
                fix=None if finding.fix is None else write_fix(finding.fix),
            )

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.findings), 'finding')}"


class RuleReport(Frozen):
    """One rule."""

    name: str
    group: str
    severity: str
    reads: str
    """What the rule reads: `footer`, `filter` or `data`."""
    message: str
    why: str
    """Which writers make such filters, and which readers they harm."""
    readers: tuple[str, ...] = ()
    """Query engines and libraries that lose rows, fail or gain nothing; empty if that depends on
    more than the reader."""
    example: str | None = None
    """What the rule observes in a file with the defect."""
    fix: str | None = None
    """The command that fixes that file, named FILE; None if no command does."""

    @property
    def explanation(self) -> tuple[str, ...]:
        """Return the rule in sentences: what it finds, why, the readers, an example and the fix."""
        sentences = [self.message, self.why]
        if self.readers:
            sentences.append(f"readers: {', '.join(self.readers)}")
        if self.example:
            sentences.append(f"example: {self.example}")
        sentences.append(f"fix: {self.fix or 'none is proposed'}")
        return tuple(sentences)


class RulesReport(Tabular):
    rules: tuple[RuleReport, ...]

    _row = RuleReport

    def _summary(self) -> str:
        return format_count(len(self.rules), "rule")


class FilterVerification(Frozen):
    """Membership check of one filter with every value of its column chunk."""

    row_group: int
    column: str
    type: str
    offset: int
    header_bytes: int | None
    """Like all fields that depend on the bitset, None if the bytes at `offset` are not a readable
    filter."""
    bitset_bytes: int | None
    stated_length: int | None
    """`bloom_filter_length` in the footer."""
    verified_values: int = 0
    """Number of non-null values of the chunk that were checked."""
    false_negatives: int = 0
    """Number of false negatives among these values: a query loses their rows. NaN is counted
    separately."""
    examples: tuple[str, ...] = ()
    """Some of the false negatives, in the form that `probe` accepts."""
    cause: str | None = None
    """Form in which the filter holds the false negatives, if known: `text`, `width`, `block`,
    `draft`; `empty` for an empty filter."""
    explanation: str | None = None
    """The cause as a sentence."""
    excluded_nans: int = 0
    """NaN values that the filter excludes. This is no defect, since NaN is stored in many forms and
    equals nothing."""
    excluded_forms: tuple[str, ...] = ()
    """Values that the filter excludes although they equal a stored value in another form: the other
    zero; the canonical `nan`."""
    excluded_intervals: int = 0
    """INTERVAL values whose normalised form the filter lacks, although the metadata claims
    otherwise; DuckDB queries only that form."""
    excluded_instants: int = 0
    """INT96 instants that are stored in a form that is not rounded down, while the filter lacks the
    rounded-down form."""
    estimated_fpp: float | None = None
    """False-positive rate, estimated from the bits that are set."""
    measured_fpp: float | None = None
    """False-positive rate, measured with `absent_keys`."""
    absent_keys: int = 0
    """Number of random keys, as wide as the column's values, that the chunk does not hold."""
    problem: str | None = None
    """Why the filter could not be verified."""
    dialect: str | None = None
    """For a filter with the header of a draft: the dialect in which it holds the values, if any."""

    wrong_statistics: tuple[str, ...] = ()
    """Statistics in the footer (min_value, max_value, null_count) that the values contradict; this
    is no defect of the filter."""

    @property
    def is_verified(self) -> bool:
        """Whether the filter was verified and holds every value that it must."""
        return self.problem is None and not self.false_negatives and not self.excluded_intervals


class VerifyReport(Tabular):
    _row = FilterVerification
    _first = ("file",)

    file: str
    created_by: str | None
    filters: tuple[FilterVerification, ...]
    findings: tuple[Finding, ...]
    """Findings that a filter contradicts the data or the format, or that released readers lose rows
    or fail; never about its cost."""
    unreadable: tuple[str, ...]
    """Chunks whose filters were not verified, because pages could not be decoded: place and
    reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    locked_columns: tuple[str, ...] = ()
    """Columns whose filters were not verified, because their keys were not given; whether such a
    column has filters may be unknown."""

    @property
    def is_sound(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.severity == ERROR for finding in self.findings)

    def _summary(self) -> str:
        return (
            f"{self.file}: {format_count(len(self.filters), 'filter')}, "
            f"{format_count(len(self.findings), 'finding')}"
        )
