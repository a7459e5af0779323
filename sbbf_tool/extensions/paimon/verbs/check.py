"""`check_paimon`: run rules on the indexes of a table, as `check` does on the filters of a Parquet
file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from sbbf_tool.arguments import as_names
from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon import rules
from sbbf_tool.extensions.paimon.bloom64 import KIND
from sbbf_tool.extensions.paimon.fast_hash import key_of
from sbbf_tool.extensions.paimon.file_in_table import request_in_file
from sbbf_tool.extensions.paimon.files import FileIO
from sbbf_tool.extensions.paimon.index_options import IndexRequest, parse_bloom_columns
from sbbf_tool.extensions.paimon.reports import VerifiedColumn
from sbbf_tool.extensions.paimon.rules import BY_NAME, INDEX_RULES, IndexRule
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable, open_table
from sbbf_tool.extensions.paimon.table_schema import (
    current_name,
    parse_indexed_column,
    resolve_column,
)
from sbbf_tool.extensions.paimon.verbs.inspect import IndexInspector, InspectedIndex, Note
from sbbf_tool.extensions.paimon.verbs.verify import verify_index
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.findings import (
    ERROR,
    FAILS,
    NOT_RUN,
    NOTED,
    PASSED,
    SEVERITIES,
    CheckReport,
    Evidence,
    Finding,
    RuleOutcome,
)
from sbbf_tool.rules.catalog import Policy
from sbbf_tool.rules.facts import Reads


class _IndexPolicy(Policy):
    """The rules for indexes that run, and the findings that make the table fail."""

    rules = INDEX_RULES


def check_paimon(  # noqa: PLR0913  one keyword for each option of the command
    table: str | os.PathLike[str],
    *,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    quick: bool = False,
    fail_on: str = ERROR,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
    max_page_bytes: MaxPageBytes = None,
    files: FileIO | None = None,
) -> CheckReport:
    """Run the rules on the indexes of a table, by default at its latest snapshot; a finding names
    the data file.

    `select` and `ignore` name rules or groups. `quick` skips the rules that read data files. A
    finding of severity `fail_on` or worse makes the table fail. Files outside the directory of the
    table are read only with `allow_outside`. Raises UsageError for a rule that does not exist, and
    UnreadableError if the table cannot be read; data files that cannot be read are reported as
    `unreadable`.
    """
    selection = _IndexPolicy(
        select=as_names(select), ignore=as_names(ignore), quick=quick, fail_on=fail_on
    )
    paimon_table = open_table(
        files, table, snapshot=snapshot, branch=branch, allow_outside=allow_outside
    )
    return _Check(paimon_table, selection, max_page_bytes).run()


@dataclass
class _Check:
    """The check of one table, file by file; only columns and notes of each file are kept."""

    table: PaimonTable
    selection: _IndexPolicy
    max_page_bytes: MaxPageBytes
    findings: list[Finding] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    indexed_columns: dict[str, int] = field(default_factory=dict)
    """Number of data files with a Bloom filter, by current name of the column."""
    columns_by_file: list[tuple[IndexedFile, frozenset[str]]] = field(default_factory=list)
    """The columns with a Bloom filter in each data file whose index can be read."""

    def run(self) -> CheckReport:
        running = [rule for rule in INDEX_RULES if self.selection.why_not(rule) is None]
        reads_data = any(rule.reads is Reads.DATA for rule in running)
        inspector = IndexInspector(self.table)
        for live in self.table.live_files:
            inspected = inspector.inspect(live)
            self._add(live, inspected.notes)
            if inspected.index.container is not None:
                if reads_data:
                    self._add(live, self._verify(live, inspected))
                self._count_columns(live, inspected)
            elif inspected.index.problem is None and live.outside is None:
                self.columns_by_file.append((live, frozenset()))
        if any(rule.name == rules.MISSING_INDEX for rule in running):
            for live, columns in self.columns_by_file:
                self._add(live, self._find_missing(live, columns))
        self.findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
        failed = any(self.selection.fails(finding.severity) for finding in self.findings)
        return CheckReport(
            file=redact(self.table.path),
            failed=failed,
            fail_on=self.selection.fail_on,
            rules=tuple(map(self._outcome, INDEX_RULES)),
            findings=tuple(self.findings),
            unreadable=tuple(self.unreadable),
        )

    def _add(self, live: IndexedFile, notes: Iterable[Note]) -> None:
        """Add the findings of these notes, if their rules run."""
        for note in notes:
            rule = BY_NAME[note.rule]
            if self.selection.why_not(rule) is not None:
                continue
            finding = Finding(
                rule.name,
                rule.severity,
                redact(live.path),
                note.column,
                rule.message,
                (Evidence(None, note.fact),),
                self._find_fix(live, rule, note.column),
            )
            self.findings.append(finding)

    def _find_fix(self, live: IndexedFile, rule: IndexRule, column: str | None) -> Fix | None:
        """Return the change that resolves a finding.

        Return None if this package cannot change the indexes of the table, or the column is gone.
        """
        if rule.verb is None or column is None:
            return None
        if self.table.schema.primary_keys or self.table.branch is not None:
            return None
        name: str | None = column
        if rule.name != rules.MISSING_INDEX:
            schema = self.table.schema_of(live.file)
            name = current_name(schema, self.table.schema, parse_indexed_column(column))
        if name is None:
            return None
        verb, rebuild = rule.verb
        return Fix(verb, (self.table.path,), (name,), rebuild=rebuild)

    def _verify(self, live: IndexedFile, inspected: InspectedIndex) -> Iterator[Note]:
        """Yield the columns with false negatives; record what could not be read."""
        result = verify_index(self.table, live, inspected.index, self.max_page_bytes)
        if result.problem is not None and live.outside is None:
            self.unreadable.append(f"{redact(live.path)}: {result.problem}")
        columns_with_notes = {note.column for note in inspected.notes}
        for column in result.columns:
            if column.false_negatives:
                rule = rules.FALSE_NEGATIVES if column.cause is None else rules.WRONG_HASH
                yield Note(rule, _describe(column), column.column)
            elif column.problem is not None and column.column not in columns_with_notes:
                self.unreadable.append(
                    f"{redact(live.path)}: column {column.column}: {column.problem}"
                )

    def _count_columns(self, live: IndexedFile, inspected: InspectedIndex) -> None:
        """Count the columns with a Bloom filter, or with an index that excludes every value."""
        columns = set[str]()
        for index in inspected.file.indexes:
            if index.current_column is not None and (index.kind == KIND or index.empty):
                columns.add(index.current_column)
        self.columns_by_file.append((live, frozenset(columns)))
        for column in columns:
            self.indexed_columns[column] = self.indexed_columns.get(column, 0) + 1

    def _find_missing(self, live: IndexedFile, present: Collection[str]) -> Iterator[Note]:
        """Yield the columns without a Bloom filter in a data file that has the column."""
        requests = parse_bloom_columns(self.table.schema.options)
        for column in dict.fromkeys((*requests, *self.indexed_columns)):
            if column not in present and self._can_index(live, column):
                num_files = self.indexed_columns.get(column, 0)
                fact = _describe_missing(num_files, is_requested=column in requests)
                yield Note(rules.MISSING_INDEX, fact, column)

    def _can_index(self, live: IndexedFile, column: str) -> bool:
        try:
            _, _, data_type = resolve_column(self.table.schema, column)
            if key_of(data_type) is None:
                return False
            return request_in_file(self.table, live, IndexRequest(column)) is not None
        except UsageError:
            return False  # an option for a column that the table does not have

    def _outcome(self, rule: IndexRule) -> RuleOutcome:
        reads_data = rule.reads is Reads.DATA
        reason = self.selection.why_not(rule)
        if reason is not None:
            outcome = NOT_RUN
        elif any(finding.rule == rule.name for finding in self.findings):
            outcome = FAILS if self.selection.fails(rule.severity) else NOTED
        elif reads_data and not self.indexed_columns:
            outcome = NOT_RUN
            reason = "no data file has a Bloom filter"
        else:
            outcome = PASSED
            if reads_data and self.unreadable:
                reason = "some data files could not be read"
        return RuleOutcome(rule.name, rule.severity, outcome, reason)


def _describe(column: VerifiedColumn) -> str:
    values = format_count(column.rows - column.nulls, "value")
    text = f"{column.false_negatives:,} of {values} are excluded"
    if column.examples:
        text += f", such as {', '.join(column.examples)}"
    if column.cause:
        text += f"; {column.cause}"
    return text


def _describe_missing(num_files: int, *, is_requested: bool) -> str:
    reasons = []
    if num_files:
        verb = "has" if num_files == 1 else "have"
        reasons.append(f"{format_count(num_files, 'other data file')} {verb} a filter")
    if is_requested:
        reasons.append("the options of the table name the column")
    return ", and ".join(reasons)
