"""`check`: run rules that a file passes or fails. A `Policy` defines the rules, the limits, and the
findings that make a file fail."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from sbbf_tool.display import redact
from sbbf_tool.errors import NoColumnError, RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.file.context import Context
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import FileName, TableFile
from sbbf_tool.frozen import opt, replace
from sbbf_tool.numbers import format_columns
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.reports.findings import (
    FAILS,
    NOT_RUN,
    NOTED,
    PASSED,
    CheckReport,
    Evidence,
    Finding,
    RuleOutcome,
    RuleReport,
)
from sbbf_tool.reports.rows import NOT_APPLICABLE
from sbbf_tool.rules.bare_chunks import (
    RULES_ABOUT_STATISTICS,
    unread_statistics,
    with_statistics,
)
from sbbf_tool.rules.baseline import read_baseline
from sbbf_tool.rules.catalog import (
    POLICY_NAMES,
    RULES,
    PathPolicies,
    Policy,
    all_rules,
    make_policy,
    report_rule,
)
from sbbf_tool.rules.facts import (
    ChunkFacts,
    ColumnFacts,
    Reads,
    StatisticsFacts,
    gather,
    locked_columns,
    unreadable_chunks,
)
from sbbf_tool.rules.file_facts import FileFacts, gather_file
from sbbf_tool.rules.filter_spec import (
    FilterSpec,
    RequestedFilters,
    request_filters,
    specs_for,
)
from sbbf_tool.rules.format import ENCRYPTION
from sbbf_tool.rules.policy import MISSING_FILTER
from sbbf_tool.rules.rule import Rule, ensure_valid, find_all
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, ReadOptions, Scanner

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.scan import ScannedFile
    from sbbf_tool.file.scan_kinds import KindJudgment

    class CheckOptions(ReadOptions, total=False):
        """The options of `check`: how a file is read, and the policy."""

        require: str | Iterable[str]
        max_fpp: float | None
        max_bytes_share: float | None
        min_ndv: int | None
        min_chunk_bytes: int | None
        filters: FilterSpec | Iterable[FilterSpec]
        engines: str | Iterable[str]
        select: str | Iterable[str]
        ignore: str | Iterable[str]
        quick: bool
        fail_on: str


_NONE_READABLE = "none of the filters, or of the pages of their chunks, can be read"


class Check(ReadingVerb[CheckReport]):
    """Run the rules of `policy` on a file.

    A required column that the file does not have is a finding (`ensure_columns` raises an error if
    no file has it), unless the file is one of a table or `strict` is not set. So is a page that
    states more bytes than the limit; such a page is not read. With `brief`, the report lists the
    rules with findings and, of all others, one per outcome. Raises UnreadableError (not a Parquet
    file), RefusedError (encrypted footer without a key).
    """

    name = "check"
    has_state = True
    report = CheckReport
    policy: Policy | PathPolicies = opt(
        "The rules and limits, for all files or by path", default=Policy()
    )
    brief: bool = opt("List rules without findings by their outcome alone", default=False)

    def needs(self) -> Needs:
        return Needs(
            data=not self.policy.quick,
            threads=True,
            columns=self.policy.required,
            filters=self.policy.required,
        )

    def named_columns(self) -> tuple[str, ...]:
        return self.policy.columns

    def table_specs(self) -> Iterable[FilterSpec]:
        return self.policy.declared

    def request(self, path: FileName) -> tuple[object, ...]:
        return (self.policy.of(os.fspath(path)),)

    def failed(self, path: FileName, error: SbbfError) -> CheckReport:
        name = os.fspath(path)
        return self._shorten(report_unreadable(name, self.policy.of(name), error))

    def on(self, file: ParquetFile) -> CheckReport:
        path = file.path
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else file.name
        return self._shorten(_check(file, self.policy.of(name)))

    def scanner(
        self, context: Context, in_table: TableFile | None = None, edit: Edit | None = None
    ) -> Scanner[CheckReport] | None:
        policy = self.policy
        if in_table is not None or context.keys or not isinstance(policy, Policy):
            return None
        if not policy.depends_on_kinds:
            return None
        from sbbf_tool.file.scan import FileScan, can_scan

        if not can_scan():
            return None
        scan = FileScan(self._judge_kind, context)
        return partial(scan.reports, _report_scanned)

    def _judge_kind(self, file: ParquetFile, key: bytes) -> KindJudgment | None:
        """Judge what files of the same kind as this one must be to be without findings."""
        from sbbf_tool.rules.fit import judge_kind

        policy = self.policy.of(file.name)
        try:
            report = self.on(file)
        except SbbfError:
            return None
        if report.findings or report.unreadable or report.locked_columns:
            return None
        return judge_kind(file, key, report, policy.limits)

    def _shorten(self, report: CheckReport) -> CheckReport:
        if not self.brief:
            return report
        rules_with_findings = {finding.rule for finding in report.findings}
        with_findings = []
        without_findings = []
        num_by_reason = Counter[str | None]()
        for outcome in report.rules:
            if outcome.rule in rules_with_findings:
                with_findings.append(outcome)
            else:
                without_findings.append(outcome)
                num_by_reason[outcome.reason] += 1
        # Of the rules that did not run, one has the reason of most.
        without_findings.sort(key=lambda outcome: num_by_reason[outcome.reason], reverse=True)
        kept = {}
        for outcome in reversed(without_findings):
            kept[outcome.outcome] = outcome
        return replace(report, rules=(*with_findings, *kept.values()))


def check(
    path: Readable,
    policy: Policy | None = None,
    *,
    baseline: str | os.PathLike[str] | None = None,
    **options: Unpack[CheckOptions],
) -> CheckReport:
    """Run the rules on one file; see `Check`, and `ReadingVerb` for the options.

    The policy is one object, or its fields and limits are given by the names that the command has
    for them; see `Policy` and `Limits`. Columns to `require` must have filters.
    Findings of `baseline`, the report of an earlier check, are left out.
    """
    settings = {name: value for name, value in options.items() if name in POLICY_NAMES}
    reading: Any = {name: value for name, value in options.items() if name not in settings}
    if policy is None:
        policy = make_policy(settings)
    elif settings:
        names = ", ".join(settings)
        raise UsageError(f"give the policy as one object or by its names, not both: {names}")
    report = Check(policy)(path, **reading)
    if baseline is None:
        return report
    return read_baseline(baseline).subtract(report)


def _report_scanned(path: str, file: ScannedFile) -> CheckReport:
    return CheckReport(**{**vars(file.judgment.report), "file": path})


def _check(file: ParquetFile, policy: Policy) -> CheckReport:
    running = [rule for rule in RULES if policy.why_not(rule) is None]
    name = file.path if isinstance(file.path, TableFile) else file.name
    specs = specs_for(policy.limits.filters, name)
    requests = request_filters(file, specs)
    facts = _gather_facts(file, policy, running, requests)
    whole_file = None
    has_filter = any(column.filters for column in facts)
    if has_filter and any(rule.look_at_file for rule in running):
        whole_file = gather_file(file, facts)
    findings = list(find_all(running, facts, policy.limits, whole_file))
    if any(rule.name == MISSING_FILTER for rule in running):
        missing = _find_missing_columns(file, policy.required, file.context.strict)
        findings = [*missing, *findings]
    rules_with_findings = {finding.rule for finding in findings}
    requires = bool(requests.required)
    outcomes = _Outcomes(policy, rules_with_findings, facts, whole_file, requires=requires)
    return CheckReport(
        file=file.name,
        failed=any(policy.fails(finding.severity) for finding in findings),
        fail_on=policy.fail_on,
        rules=tuple(_list_outcomes(policy, outcomes.of)),
        findings=tuple(findings),
        named_columns=requests.named_columns,
        unreadable=(*unreadable_chunks(facts), *unread_statistics(facts)),
        locked_columns=locked_columns(facts),
    )


def _gather_facts(
    file: ParquetFile, policy: Policy, running: Sequence[Rule], requests: RequestedFilters
) -> tuple[ColumnFacts, ...]:
    """Gather the facts that these rules judge, column by column, with the declarations."""
    reads = max(rule.reads for rule in running)
    max_fpp = policy.limits.max_fpp or 1
    sizes = {}
    for key, size in requests.sizes.items():
        sizes[key] = replace(size, fpp=min(size.fpp, max_fpp))
    facts = gather(
        file,
        file.footer.columns,
        reads,
        keeps_oversized=True,
        with_folds=policy.limits.max_bytes_share is not None,
        sizes=sizes,
    )
    if not RULES_ABOUT_STATISTICS.isdisjoint(policy.select):
        facts = with_statistics(file, facts)
    judged = list(facts)
    for index, judge in requests.judges.items():
        is_required = index in requests.required
        judged[index] = replace(facts[index], judge=judge, is_required=is_required)
    return tuple(judged)


def _has_filter(facts: Iterable[ColumnFacts]) -> bool:
    return any(column.filters for column in facts)


def _list_outcomes(
    policy: Policy, outcome_of: Callable[[Rule], tuple[str, str | None]]
) -> Iterator[RuleOutcome]:
    """Yield the outcome of each rule, also of those that the policy excludes."""
    for rule in RULES:
        reason = policy.why_not(rule)
        outcome = NOT_RUN
        if reason is None:
            outcome, reason = outcome_of(rule)
        severity = rule.severity_in(policy.limits)
        yield RuleOutcome(rule.name, severity, outcome, reason)


def ensure_columns(
    paths: Iterable[FileName], policies: Policy | PathPolicies, keys: KeysLike = None
) -> None:
    """Raise UsageError if a required column is in none of the files that require it. Footers are
    read until every column is found."""
    missing: dict[str, UsageError | None] = dict.fromkeys(policies.required)
    if not missing:
        return
    for path in paths:
        required = dict.fromkeys(policies.of(os.fspath(path)).required)
        names = [name for name in required if name in missing]
        try:
            _find_columns(path, names, missing, keys)
        except (UnreadableError, RefusedError):
            continue  # `check` reports it
        if not missing:
            return
    for reason in missing.values():
        if reason is not None:
            raise reason


def _find_columns(
    path: FileName, names: list[str], missing: dict[str, UsageError | None], keys: KeysLike
) -> None:
    """Remove from `missing` those of the names that the file has as columns, and keep the first
    error of the others."""
    if not names:
        return
    with ParquetFile.open(path, Context(keys)) as file:
        for column in names:
            try:
                find_column(file.footer.columns, column)
                del missing[column]
            except UsageError as error:
                missing[column] = missing[column] or UsageError(
                    error.message, file=os.fspath(path), place=error.place, hint=error.hint
                )


def report_unreadable(path: str, policy: Policy, error: SbbfError) -> CheckReport:
    """Return the report of a file that cannot be opened: no rule was run on it."""
    outcomes = _list_outcomes(policy, lambda rule: (NOT_RUN, error.message))
    return CheckReport(
        redact(path),
        failed=True,
        fail_on=policy.fail_on,
        rules=tuple(outcomes),
        findings=(),
        unreadable=(error.message,),
    )


def find_rule(name: str) -> RuleReport:
    """Return the rule of `check` or of an extension with this name. Raises UsageError."""
    rules = {rule.name: rule for rule in all_rules()}
    ensure_valid((name,), list(rules), "rule")
    return report_rule(rules[name])


def _find_missing_columns(
    file: ParquetFile, names: Iterable[str], strict: bool
) -> Iterator[Finding]:
    """Yield a finding for each required column that the file does not have.

    A file of a table need not have all columns of the table; unless `strict`, this holds for any
    file.
    """
    (rule,) = [rule for rule in RULES if rule.name == MISSING_FILTER]
    for name in names:
        try:
            find_column(file.footer.columns, name)
        except UsageError as error:
            may_be_missing = file.is_in_table or not strict
            if isinstance(error, NoColumnError) and may_be_missing:
                continue
            evidence = (Evidence(None, error.message),)
            yield Finding(rule.name, rule.severity, file.name, name, rule.message, evidence)


class _Outcomes:
    """The outcomes of rules on a file, apart from the rules that the policy excludes."""

    def __init__(
        self,
        policy: Policy,
        rules_with_findings: set[str],
        facts: Sequence[ColumnFacts],
        whole_file: FileFacts | None,
        *,
        requires: bool,
    ) -> None:
        self._policy = policy
        self._rules_with_findings = rules_with_findings
        self._whole_file = whole_file
        self._requires = requires
        """Whether the file has a column that must have filters."""
        self._filters: list[ChunkFacts] = []
        self._bare_statistics: list[StatisticsFacts] = []
        """What the pages of the chunks without a filter show of their statistics."""
        for column in facts:
            self._filters += column.filters
            for chunk in column.chunks:
                if chunk.statistics is not None:
                    self._bare_statistics.append(chunk.statistics)
        self._locked = _describe_locked(facts)

    def of(self, rule: Rule) -> tuple[str, str | None]:
        """Return the outcome of a rule, and why it did not run or not on all filters."""
        if rule.name in self._rules_with_findings:
            fails = self._policy.fails(rule.severity_in(self._policy.limits))
            return FAILS if fails else NOTED, None
        if rule.limit == "required" and not self._requires:
            columns = format_columns(self._policy.required)
            return NOT_RUN, f"{NOT_APPLICABLE}: the file does not have {columns}"
        if rule.name in RULES_ABOUT_STATISTICS and self._bare_statistics:
            return self._of_statistics()
        if not self._filters and rule.limit not in ("required", "judged"):
            return NOT_RUN, self._locked or "the file has no filter"
        if rule.look_at_file is not None and self._whole_file is not None:
            unknown = self._whole_file.unknown
            return PASSED if unknown is None else NOT_RUN, unknown
        if rule.reads is Reads.FOOTER or rule.group == ENCRYPTION or not self._filters:
            return PASSED, self._locked
        return self._of_filters(rule)

    def _of_statistics(self) -> tuple[str, str | None]:
        num_chunks = len(self._bare_statistics)
        num_unread = sum(statistics.problem is not None for statistics in self._bare_statistics)
        if num_unread == num_chunks and not self._filters:
            return NOT_RUN, "none of the pages can be read"
        if not num_unread:
            return PASSED, None
        return PASSED, f"{num_unread} of {num_chunks} chunks without a filter could not be read"

    def _of_filters(self, rule: Rule) -> tuple[str, str | None]:
        reads_data = rule.reads is Reads.DATA

        def is_unchecked(chunk: ChunkFacts) -> bool:
            return chunk.stored is None or (reads_data and chunk.is_unverified)

        unchecked = list(filter(is_unchecked, self._filters))
        if not unchecked:
            return PASSED, self._locked
        if len(unchecked) < len(self._filters):
            reason = f"{len(unchecked)} of {len(self._filters)} filters could not be checked"
            if self._locked:
                reason += f"; {self._locked}"
            return PASSED, reason
        first = unchecked[0]
        return NOT_RUN, first.encryption or first.oversized_page or _NONE_READABLE


def _describe_locked(facts: Iterable[ColumnFacts]) -> str | None:
    """Say which columns may have filters that cannot be located; None if none may."""

    def has_locked_chunk(column: ColumnFacts) -> bool:
        return any(chunk.meta.is_locked for chunk in column.chunks)

    names = [column.name for column in facts if has_locked_chunk(column)]
    if not names:
        return None
    return f"the filters of its locked columns cannot be located: {', '.join(names)}"
