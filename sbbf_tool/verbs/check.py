"""`check`: run rules that a file passes or fails. A `Policy` defines the rules, the limits, and the
findings that make a file fail."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Unpack

from sbbf_tool.display import redact
from sbbf_tool.errors import NoColumnError, RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import FileName, TableFile
from sbbf_tool.frozen import opt, replace
from sbbf_tool.numbers import format_columns
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.reports.findings import CheckReport, Evidence, Finding, RuleOutcome, RuleReport
from sbbf_tool.reports.rows import NOT_APPLICABLE
from sbbf_tool.rules.bare_chunks import (
    RULES_ABOUT_STATISTICS,
    unread_statistics,
    with_statistics,
)
from sbbf_tool.rules.catalog import RULES, PathPolicies, Policy, all_rules, report_rule
from sbbf_tool.rules.facts import (
    ColumnFacts,
    Reads,
    Verify,
    gather,
    locked_columns,
    unreadable_chunks,
)
from sbbf_tool.rules.file_facts import FileFacts, gather_file
from sbbf_tool.rules.filter_spec import FilterSpec, request_filters
from sbbf_tool.rules.format import ENCRYPTION
from sbbf_tool.rules.policy import MISSING_FILTER
from sbbf_tool.rules.rule import Rule, ensure_valid, find_all
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.verbs.verb import ReadOptions

PASSED = "passed"
NOTED = "noted"
FAILED = "failed"
NOT_RUN = "not run"
IN_BASELINE = "known"

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

    def table_specs(self) -> Iterable[FilterSpec]:
        return self.policy.limits.filters if isinstance(self.policy, Policy) else ()

    def request(self, path: FileName) -> tuple[object, ...]:
        return (self.policy.of(os.fspath(path)),)

    def failed(self, path: FileName, error: SbbfError) -> CheckReport:
        name = os.fspath(path)
        return self._shorten(report_unreadable(name, self.policy.of(name), error))

    def on(self, file: ParquetFile) -> CheckReport:
        path = file.run.path
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else file.name
        return self._shorten(_check(file, self.policy.of(name)))

    def _shorten(self, report: CheckReport) -> CheckReport:
        if not self.brief:
            return report
        found = {finding.rule for finding in report.findings}
        others = [outcome for outcome in report.rules if outcome.rule not in found]
        # Of the rules that did not run, one has the reason of most.
        by_reason = Counter(outcome.reason for outcome in others)
        others.sort(key=lambda outcome: by_reason[outcome.reason], reverse=True)
        kept = {outcome.outcome: outcome for outcome in reversed(others)}
        with_findings = (outcome for outcome in report.rules if outcome.rule in found)
        return replace(report, rules=(*with_findings, *kept.values()))


def check(
    path: Readable, policy: Policy | None = None, **options: Unpack[ReadOptions]
) -> CheckReport:
    """Run the rules on one file; see `Check`, `Limits` for what files must have, and `ReadingVerb`
    for the options."""
    return Check(policy or Policy())(path, **options)


def _check(file: ParquetFile, policy: Policy) -> CheckReport:
    run = file.run
    excluded = [policy.why_not(rule) for rule in RULES]
    running = [rule for rule, reason in zip(RULES, excluded, strict=True) if reason is None]
    reads = max(rule.reads for rule in running)
    name = run.path if isinstance(run.path, TableFile) else file.name
    specs = [spec for spec in policy.limits.filters if spec.matches(name)]
    requests = request_filters(file, specs)
    verify: Verify | None = None
    if reads is Reads.DATA:
        from sbbf_tool.file.membership import verify_filter as verify

    max_fpp = policy.limits.max_fpp or 1
    sizes = {key: replace(size, fpp=min(size.fpp, max_fpp)) for key, size in requests.sizes.items()}
    facts = gather(
        file,
        file.footer.columns,
        reads,
        verify,
        keeps_oversized=True,
        with_folds=policy.limits.max_bytes_share is not None,
        sizes=sizes,
        jobs=run.jobs,
        progress=run.progress,
    )
    if not RULES_ABOUT_STATISTICS.isdisjoint(policy.select):
        facts = with_statistics(file, facts)
    for index, judge in requests.judges.items():
        judged = replace(facts[index], judge=judge, is_required=index in requests.required)
        facts = (*facts[:index], judged, *facts[index + 1 :])
    whole_file = None
    has_filter = any(column.filters for column in facts)
    if has_filter and any(rule.look_at_file for rule in running):
        whole_file = gather_file(file, facts)
    findings = list(find_all(running, facts, policy.limits, whole_file))
    if any(rule.name == MISSING_FILTER for rule in running):
        findings = [*_find_missing_columns(file, policy.required, run.strict), *findings]
    failed_rules = {finding.rule for finding in findings}
    requires = bool(requests.required)
    outcomes = _Outcomes(policy, failed_rules, facts, whole_file, requires=requires)
    rows = []
    for rule, why_not in zip(RULES, excluded, strict=True):
        severity = rule.severity_in(policy.limits)
        outcome, reason = outcomes.of(rule) if why_not is None else (NOT_RUN, why_not)
        rows.append(RuleOutcome(rule.name, severity, outcome, reason))
    return CheckReport(
        file=file.name,
        failed=any(policy.fails(finding.severity) for finding in findings),
        fail_on=policy.fail_on,
        rules=tuple(rows),
        findings=tuple(findings),
        named_columns=requests.named_columns,
        unreadable=(*unreadable_chunks(facts), *unread_statistics(facts)),
        locked_columns=locked_columns(facts),
    )


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
    with ParquetFile.open(path, keys) as file:
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
    outcomes = []
    for rule in RULES:
        reason = policy.why_not(rule) or error.message
        severity = rule.severity_in(policy.limits)
        outcomes.append(RuleOutcome(rule.name, severity, NOT_RUN, reason))
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
    rules = all_rules()
    ensure_valid((name,), [rule.name for rule in rules], "rule")
    return next(report_rule(rule) for rule in rules if rule.name == name)


def _find_missing_columns(
    file: ParquetFile, names: Iterable[str], strict: bool
) -> Iterator[Finding]:
    """Yield a finding for each required column that the file does not have.

    A file of a table need not have all columns of the table; unless `strict`, this holds for any
    file.
    """
    rule = next(rule for rule in RULES if rule.name == MISSING_FILTER)
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
        failed_rules: set[str],
        facts: Sequence[ColumnFacts],
        whole_file: FileFacts | None,
        *,
        requires: bool,
    ) -> None:
        self._policy = policy
        self._failed_rules = failed_rules
        self._whole_file = whole_file
        self._requires = requires
        """Whether the file has a column that must have filters."""
        self._filters = [*chain.from_iterable(column.filters for column in facts)]
        chunks = chain.from_iterable(column.chunks for column in facts)
        self._bare = [chunk.statistics for chunk in chunks if chunk.statistics is not None]
        self._locked = _describe_locked(facts)

    def of(self, rule: Rule) -> tuple[str, str | None]:
        """Return the outcome of a rule, and why it did not run or not on all filters."""
        if rule.name in self._failed_rules:
            fails = self._policy.fails(rule.severity_in(self._policy.limits))
            return FAILED if fails else NOTED, None
        if rule.limit == "required" and not self._requires:
            columns = format_columns(self._policy.required)
            return NOT_RUN, f"{NOT_APPLICABLE}: the file does not have {columns}"
        if rule.name in RULES_ABOUT_STATISTICS and self._bare:
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
        unread = sum(statistics.problem is not None for statistics in self._bare)
        if unread == len(self._bare) and not self._filters:
            return NOT_RUN, "none of the pages can be read"
        if not unread:
            return PASSED, None
        return PASSED, f"{unread} of {len(self._bare)} chunks without a filter could not be read"

    def _of_filters(self, rule: Rule) -> tuple[str, str | None]:
        reads_data = rule.reads is Reads.DATA
        unreadable = [
            chunk
            for chunk in self._filters
            if chunk.stored is None or (reads_data and chunk.is_unverified)
        ]
        if not unreadable:
            return PASSED, self._locked
        if len(unreadable) < len(self._filters):
            reason = f"{len(unreadable)} of {len(self._filters)} filters could not be checked"
            if self._locked:
                reason += f"; {self._locked}"
            return PASSED, reason
        first = unreadable[0]
        return NOT_RUN, first.encryption or first.oversized_page or _NONE_READABLE


def _describe_locked(facts: Iterable[ColumnFacts]) -> str | None:
    """Say which columns may have filters that cannot be located; None if none may."""
    hidden = [column for column in facts if any(chunk.meta.is_locked for chunk in column.chunks)]
    names = [column.name for column in hidden]
    if not names:
        return None
    return f"the filters of its locked columns cannot be located: {', '.join(names)}"
