"""`check`: run rules that a file passes or fails. A `Policy` defines the rules, the limits, and the findings that make a file fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol

from sbbf_tool.arguments import as_names
from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.hints import Hint, join
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.reports.findings import ERROR, SEVERITIES, CheckReport, Evidence, Finding, RuleOutcome
from sbbf_tool.reports.rules import RuleReport
from sbbf_tool.rules.catalog import GROUPS, RENAMED, RULES, report_rule
from sbbf_tool.rules.encryption import GROUP as ENCRYPTION
from sbbf_tool.rules.facts import ColumnFacts, Reads, gather, locked_columns, unreadable_chunks
from sbbf_tool.rules.policy import MISSING_FILTER
from sbbf_tool.rules.rule import Limits, Rule, find_all
from sbbf_tool.storage.inputs import find_input

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.meter import Progress
    from sbbf_tool.storage.inputs import FileSystemLike, Readable

PASSED, NOTED, FAILED, NOT_RUN, IN_BASELINE = "passed", "noted", "failed", "not run", "known"


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules and limits to check. Raises UsageError if the policy contradicts itself, or names a rule that does not exist.

    `select` and `ignore` name rules or groups; a limit that is given applies regardless of `select`. `quick` skips the rules that read
    data. A finding of severity `fail_on` or worse makes a file fail.
    """

    limits: Limits = field(default_factory=Limits)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    quick: bool = False
    fail_on: str = ERROR

    def __post_init__(self) -> None:
        object.__setattr__(self, "select", as_names(self.select, "rule"))
        object.__setattr__(self, "ignore", as_names(self.ignore, "rule"))
        _ensure_valid((self.fail_on,), SEVERITIES, "severity", {})
        _ensure_valid((*self.select, *self.ignore), [*(rule.name for rule in RULES), *GROUPS], "rule", RENAMED)
        for rule in RULES:
            if rule.name in self.select and (reason := self.why_not(rule)) is not None:
                raise UsageError(join(f"rule {rule.name} is selected but cannot run: ", reason))
        if all(self.why_not(rule) for rule in RULES):
            raise UsageError("the policy runs no rule")

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must have a filter."""
        return self.limits.require

    def of(self, path: str) -> Policy:
        """Return the policy of a file, which is this one; the policies of paths have the same method."""
        return self

    def why_not(self, rule: Rule) -> str | None:
        """Return why a rule does not run; None if it does."""
        names = (rule.name, rule.group)
        if any(name in self.ignore for name in names):
            return "ignored"
        if rule.limit is not None:
            return None if self.limits.demands(rule.limit) else Hint(f"{{{rule.limit}}} is not given", **{rule.limit: ...})
        if self.select and not any(name in self.select for name in names):
            return "not selected"
        return "a quick check does not read the data" if self.quick and rule.reads is Reads.DATA else None


def check(
    path: Readable,
    policy: Policy | None = None,
    *,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    filesystem: FileSystemLike | None = None,
) -> CheckReport:
    """Run the rules on one file.

    A required column that the file does not have is a finding (`ensure_columns` raises an error if no file has it). So is a page whose
    header states more than `max_page_bytes` uncompressed bytes; such a page is not read. `jobs` chunks are read concurrently, one per core
    if None. Raises UnreadableError (not a Parquet file), RefusedError (encrypted footer without a key).
    """
    policy = policy or Policy()
    running = [rule for rule in RULES if policy.why_not(rule) is None]
    reads = max(rule.reads for rule in running)
    with ParquetFile.open(find_input(path, filesystem), keys, max_page_bytes) as file:
        limits, findings = _resolve(file, policy)
        if reads is Reads.DATA:
            from sbbf_tool.file.membership import verify_filter

            facts = gather(file, file.footer.columns, reads, verify_filter, keeps_oversized=True, jobs=jobs, progress=progress)
        else:
            facts = gather(file, file.footer.columns, reads)
        findings += find_all(running, facts, limits)
        return CheckReport(
            file=file.name,
            failed=any(SEVERITIES.index(finding.severity) <= SEVERITIES.index(policy.fail_on) for finding in findings),
            fail_on=policy.fail_on,
            rules=tuple(_outcome(rule, policy, facts, findings) for rule in RULES),
            findings=findings,
            unreadable=unreadable_chunks(facts),
            locked_columns=locked_columns(facts),
        )


class PolicyOfFiles(Protocol):
    """The policy of each file of a run: a `Policy`, or policies by path."""

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must have a filter in at least one file."""

    def of(self, path: str) -> Policy:
        """Return the policy of one file."""


def ensure_columns(paths: Iterable[str], policies: PolicyOfFiles, keys: KeysLike = None) -> None:
    """Raise UsageError if a required column is in none of the files that require it. Footers are read until every column is found."""
    missing: dict[str, UsageError | None] = dict.fromkeys(policies.required)
    for path in paths if missing else ():
        names = [name for name in policies.of(path).required if name in missing]
        try:
            _find_columns(path, names, missing, keys)
        except (UnreadableError, RefusedError):
            continue  # `check` reports it
        if not missing:
            return
    for reason in missing.values():
        if reason is not None:
            raise reason


def _find_columns(path: str, names: list[str], missing: dict[str, UsageError | None], keys: KeysLike) -> None:
    """Remove from `missing` those of the names that the file has as columns, and keep the first error of the others."""
    if not names:
        return
    with ParquetFile.open(path, keys) as file:
        for column in names:
            try:
                find_column(file.footer.columns, column)
                del missing[column]
            except UsageError as error:
                missing[column] = missing[column] or UsageError(error.message, file=path, place=error.place, hint=error.hint)


def report_unreadable(path: str, policy: Policy, error: SbbfError) -> CheckReport:
    """Return the report of a file that cannot be opened: no rule was run on it."""
    outcomes = (RuleOutcome(rule.name, rule.severity, NOT_RUN, policy.why_not(rule) or error.message) for rule in RULES)
    return CheckReport(redact(path), failed=True, fail_on=policy.fail_on, rules=tuple(outcomes), findings=(), unreadable=(error.message,))


def find_rule(name: str) -> RuleReport:
    """Return the rule with this name. Raises UsageError; for a former name, the error has the new one."""
    _ensure_valid((name,), [rule.name for rule in RULES], "rule", RENAMED)
    return next(report_rule(rule) for rule in RULES if rule.name == name)


def _ensure_valid(names: Iterable[str], valid: Sequence[str], noun: str, renamed: Mapping[str, str]) -> None:
    """Raise UsageError if a name is not valid. The error for a renamed one gives the new name."""
    for name in names:
        if name in renamed:
            kind = "group" if renamed[name] in GROUPS else noun
            raise UsageError(f"{kind} {name!r} is now named {renamed[name]!r}")
        if name not in valid:
            near = get_close_matches(name, valid, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"choose from {', '.join(valid)}"
            raise UsageError(f"unknown {noun} {name!r}", hint=hint)


def _resolve(file: ParquetFile, policy: Policy) -> tuple[Limits, tuple[Finding, ...]]:
    """Return the limits with the full names of required columns, and a finding for each column that the file does not have."""
    columns, missing = [], []
    rule = next(rule for rule in RULES if rule.name == MISSING_FILTER)
    for name in policy.limits.require:
        try:
            columns.append(find_column(file.footer.columns, name).name)
        except UsageError as error:
            missing.append(Finding(rule.name, rule.severity, file.name, name, rule.message, (Evidence(None, error.message),)))
    return replace(policy.limits, require=tuple(columns)), tuple(missing) if policy.why_not(rule) is None else ()


def _outcome(rule: Rule, policy: Policy, facts: Sequence[ColumnFacts], findings: Sequence[Finding]) -> RuleOutcome:
    def outcome(result: str, reason: str | None = None) -> RuleOutcome:
        return RuleOutcome(rule.name, rule.severity, result, reason)

    if (reason := policy.why_not(rule)) is not None:
        return outcome(NOT_RUN, reason)
    if any(finding.rule == rule.name for finding in findings):
        return outcome(FAILED if SEVERITIES.index(rule.severity) <= SEVERITIES.index(policy.fail_on) else NOTED)
    filters = [chunk for column in facts for chunk in column.filters]
    hidden = [column.name for column in facts if any(chunk.meta.is_locked for chunk in column.chunks)]
    locked = f"the filters of its locked columns cannot be located: {', '.join(hidden)}" if hidden else None
    if not filters and rule.limit != "require":
        return outcome(NOT_RUN, locked or "the file has no filter")
    if rule.reads is Reads.FOOTER or rule.group == ENCRYPTION:
        return outcome(PASSED, locked)
    unreadable = [chunk for chunk in filters if chunk.stored is None or (rule.reads is Reads.DATA and chunk.is_unverified)]
    if len(unreadable) == len(filters):
        return outcome(
            NOT_RUN,
            unreadable[0].encryption or unreadable[0].oversized_page or "none of the filters, or of the pages of their chunks, can be read",
        )
    reasons = (f"{len(unreadable)} of {len(filters)} filters could not be checked" if unreadable else None, locked)
    return outcome(PASSED, "; ".join(filter(None, reasons)) or None)
