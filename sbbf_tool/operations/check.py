"""`check`: the rules as a gate. A `Policy` states which rules run, which limits apply, and which findings make a file fail."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.reports.findings import ERROR, SEVERITIES, CheckReport, Evidence, Finding, RuleOutcome
from sbbf_tool.rules.catalog import RULES, THEMES
from sbbf_tool.rules.facts import ColumnFacts, Reads, gather, unread_chunks
from sbbf_tool.rules.limits import REQUIRED_FILTER
from sbbf_tool.rules.rule import Limits, Rule, find_all
from sbbf_tool.rules.secrecy import THEME as SECRECY

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules and limits to check. Raises UsageError where it contradicts itself, or names a rule that does not exist.

    `select` and `ignore` name rules or themes; a given limit applies whatever `select` says. `quick` skips the rules that read data. A
    finding of the severity `fail_on`, or a worse one, makes a file fail.
    """

    limits: Limits = field(default_factory=Limits)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    quick: bool = False
    fail_on: str = ERROR

    def __post_init__(self) -> None:
        object.__setattr__(self, "select", as_names(self.select, "rule"))
        object.__setattr__(self, "ignore", as_names(self.ignore, "rule"))
        _among((self.fail_on,), SEVERITIES, "severity")
        _among((*self.select, *self.ignore), [*(rule.name for rule in RULES), *THEMES], "rule")
        for rule in RULES:
            if rule.name in self.select and (reason := self.why_not(rule)) is not None:
                raise UsageError(f"rule {rule.name} was selected and cannot run: {reason}")
        if all(self.why_not(rule) for rule in RULES):
            raise UsageError("no rule is left to run")

    def why_not(self, rule: Rule) -> str | None:
        """Return why a rule does not run; None where it does."""
        names = (rule.name, rule.theme)
        if any(name in self.ignore for name in names):
            return "ignored"
        if rule.limit is not None:
            return None if self.limits.demands(rule.limit) else f"no --{rule.limit.replace('_', '-')} was given"
        if self.select and not any(name in self.select for name in names):
            return "not selected"
        return "it reads the data, which a quick check leaves out" if self.quick and rule.reads is Reads.DATA else None


def check(
    path: str | os.PathLike[str],
    policy: Policy | None = None,
    *,
    keys: KeysGiven = None,
    max_page_bytes: MaxPageBytes = None,
    jobs: int | None = None,
) -> CheckReport:
    """Run the rules on one file.

    A required column that the file does not have is a finding (`ensure_columns` raises where no file has it), and so is a page that states
    more than `max_page_bytes` uncompressed bytes, which is not read. `jobs` chunks are read concurrently, one per core where None.
    Raises UnreadableError (not a Parquet file), RefusedError (encrypted footer without a key).
    """
    policy = policy or Policy()
    running = [rule for rule in RULES if policy.why_not(rule) is None]
    reads = max(rule.reads for rule in running)
    with ParquetFile.open(path, keys, max_page_bytes) as file:
        limits, findings = _resolve(file, policy)
        if reads is Reads.DATA:
            from sbbf_tool.file.membership import prove

            facts = gather(file, file.footer.columns, reads, prove, keeps_oversized=True, jobs=jobs)
        else:
            facts = gather(file, file.footer.columns, reads)
        findings += find_all(running, facts, limits)
        return CheckReport(
            file=file.name,
            failed=any(SEVERITIES.index(finding.severity) <= SEVERITIES.index(policy.fail_on) for finding in findings),
            fail_on=policy.fail_on,
            rules=tuple(_outcome(rule, policy, facts, findings) for rule in RULES),
            findings=findings,
            unread=unread_chunks(facts),
        )


def ensure_columns(paths: Iterable[str], policy: Policy, keys: KeysGiven = None) -> None:
    """Raise UsageError where a required column is in none of these files. Read footers until every column was found."""
    unseen: dict[str, UsageError | None] = dict.fromkeys(policy.limits.require)
    for path in paths if unseen else ():
        try:
            with ParquetFile.open(path, keys) as file:
                for column in list(unseen):
                    try:
                        find_column(file.footer.columns, column)
                        del unseen[column]
                    except UsageError as error:
                        unseen[column] = unseen[column] or UsageError(error.message, file=path, place=error.place, hint=error.hint)
        except (UnreadableError, RefusedError):
            continue  # `check` reports it
        if not unseen:
            return
    for reason in unseen.values():
        if reason is not None:
            raise reason


def report_unreadable(path: str, policy: Policy, error: SbbfError) -> CheckReport:
    """Return the report of a file that cannot be opened: no rule was run on it."""
    outcomes = (RuleOutcome(rule.name, rule.severity, NOT_RUN, policy.why_not(rule) or error.message) for rule in RULES)
    return CheckReport(redact(path), failed=True, fail_on=policy.fail_on, rules=tuple(outcomes), findings=(), unread=(error.message,))


def _among(names: Iterable[str], known: Sequence[str], what: str) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=3)
            raise UsageError(f"no {what} {name!r}", hint=f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(known)}")


def _resolve(file: ParquetFile, policy: Policy) -> tuple[Limits, tuple[Finding, ...]]:
    """Return the limits with the full names of required columns, and a finding for each column that the file does not have."""
    found, missing = [], []
    rule = next(rule for rule in RULES if rule.name == REQUIRED_FILTER)
    for name in policy.limits.require:
        try:
            found.append(find_column(file.footer.columns, name).name)
        except UsageError as error:
            missing.append(Finding(rule.name, rule.severity, file.name, name, rule.message, (Evidence(None, error.message),)))
    return replace(policy.limits, require=tuple(found)), tuple(missing) if policy.why_not(rule) is None else ()


def _outcome(rule: Rule, policy: Policy, facts: Sequence[ColumnFacts], findings: Sequence[Finding]) -> RuleOutcome:
    def outcome(what: str, reason: str | None = None) -> RuleOutcome:
        return RuleOutcome(rule.name, rule.severity, what, reason)

    if (reason := policy.why_not(rule)) is not None:
        return outcome(NOT_RUN, reason)
    if any(finding.rule == rule.name for finding in findings):
        return outcome(FAILED)
    filters = [chunk for column in facts for chunk in column.filters]
    if not filters and rule.limit != "require":
        return outcome(NOT_RUN, "the file has no filter")
    if rule.reads is Reads.FOOTER or rule.theme == SECRECY:
        return outcome(PASSED)
    unseen = [chunk for chunk in filters if chunk.stored is None or (rule.reads is Reads.DATA and chunk.is_unproven)]
    if len(unseen) == len(filters):
        return outcome(NOT_RUN, unseen[0].encryption or unseen[0].oversized or "no filter, or no chunk's pages, can be read")
    return outcome(PASSED, f"{len(unseen)} of {len(filters)} filters could not be seen" if unseen else None)
