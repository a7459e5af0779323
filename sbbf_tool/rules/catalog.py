"""All rules, in listing order, and the policy of `check`: which of them run, with which limits, and
which findings make a file fail."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import chain
from pkgutil import get_data
from typing import Any, ClassVar, NamedTuple

from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.errors import SbbfError, UsageError
from sbbf_tool.extension import load, named
from sbbf_tool.reports.findings import ERROR, SEVERITIES, RuleReport
from sbbf_tool.rules import correctness, efficiency, policy
from sbbf_tool.rules import format as format_rules
from sbbf_tool.rules.facts import Reads
from sbbf_tool.rules.filter_spec import FilterSpec, declared_columns
from sbbf_tool.rules.rule import AnyRule, Limits, Rule, ensure_valid
from sbbf_tool.storage.globs import matches_any

RULES: tuple[Rule, ...] = (
    *correctness.RULES,
    *format_rules.RULES,
    *format_rules.ENCRYPTION_RULES,
    *efficiency.RULES,
    *policy.RULES,
)
GROUPS = tuple(dict.fromkeys(rule.group for rule in RULES))
ABOUT_FILTERS = (correctness.GROUP, format_rules.GROUP, format_rules.ENCRYPTION)
"""The groups of rules for defects of filters, as opposed to their cost and to requirements of the
user."""

HARMED_READERS: Mapping[str, tuple[str, ...]] = {
    "empty-boolean-filter": ("DataFusion",),
    "interval-not-normalised": ("DuckDB",),
    "zero-form-missing": ("DataFusion", "parquet-java"),
    "unreadable-filter": ("Iceberg", "ClickHouse", "parquet-go"),
    "draft-dialect": ("ClickHouse", "DuckDB"),
    "missing-length": ("parquet-java 1.14.0 to 1.15.2", "Iceberg 1.8 and 1.9", "hyparquet"),
    "wrong-length": ("arrow-rs", "parquet-java", "Arrow C++", "DuckDB"),
    "partial-block": ("ClickHouse", "DuckDB", "Doris", "hyparquet"),
    "not-power-of-two": ("Arrow C++", "Velox", "Impala"),
    "under-64-bytes": ("Impala",),
    "over-128-mib": ("Trino", "parquet-java", "Arrow C++", "Velox", "Impala"),
    "larger-than-chunk": ("StarRocks",),
    "dictionary-encoded": ("parquet-java", "Impala"),
}
"""The readers that a rule's `why` names as harmed, by the rule's name; a rule that harms all or
unknown readers is not listed."""


def rules_of(schema: str) -> Sequence[AnyRule]:
    """Return the rules of a kind of report: `check`, or what an extension calls its own."""
    if schema == "check":
        return RULES
    rules: Sequence[AnyRule] = load(named("rules")[schema])
    return rules


def all_rules() -> list[AnyRule]:
    """Return the rules of `check` and of all extensions."""
    schemas = ("check", *named("rules"))
    return [*chain.from_iterable(map(rules_of, schemas))]


@lru_cache(maxsize=1)
def _examples() -> Mapping[str, Mapping[str, str | None]]:
    """Read the examples, which lie beside the rules: those of Parquet files are in the golden
    reports of the tests."""
    packages = [__package__]
    for name in named("rules").values():
        module, _, _ = name.partition(":")
        package, _, _ = module.rpartition(".")
        packages.append(package)
    examples: dict[str, Mapping[str, str | None]] = {}
    for package in packages:
        with suppress(FileNotFoundError):
            examples |= json.loads(get_data(package, "examples.json") or b"{}")
    return examples


def list_rules(schema: str = "check") -> tuple[RuleReport, ...]:
    """Return all rules of a kind of report as rows."""
    return tuple(map(report_rule, rules_of(schema)))


def report_rule(rule: AnyRule) -> RuleReport:
    """Return a rule as a row of a report, with its example."""
    example = _examples().get(rule.name, {})
    return RuleReport(
        rule.name,
        rule.group,
        rule.severity,
        rule.reads.name.lower(),
        rule.message,
        rule.why,
        readers=HARMED_READERS.get(rule.name, ()),
        example=example.get("example"),
        fix=example.get("fix"),
    )


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules and limits to check, and the filters that files must have (`limits.filters`), which
    `apply` takes.

    `select` and `ignore` name rules or groups; a limit that is given applies regardless of
    `select`. `quick` skips the rules that read data. A finding of severity `fail_on` or worse makes
    a file fail. Raises UsageError if the policy contradicts itself, or names a rule that does not
    exist.
    """

    rules: ClassVar[Sequence[AnyRule]] = RULES

    limits: Limits = field(default_factory=Limits)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    quick: bool = False
    fail_on: str = ERROR
    _reasons: Mapping[str, str | None] = field(init=False, repr=False, compare=False)
    """Why each rule does not run; None for one that does. A lake asks for each file."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "select", as_names(self.select, "rule"))
        object.__setattr__(self, "ignore", as_names(self.ignore, "rule"))
        ensure_valid((self.fail_on,), SEVERITIES, "severity")
        names = [rule.name for rule in self.rules]
        ensure_valid((*self.select, *self.ignore), [*names, *GROUPS], "rule")
        reasons = {}
        for rule in self.rules:
            reasons[rule.name] = self._find_reason(rule)
        object.__setattr__(self, "_reasons", reasons)
        for rule in self.rules:
            if rule.name not in self.select:
                continue
            reason = self.why_not(rule)
            if reason is not None:
                raise UsageError(f"rule {rule.name} is selected but cannot run: {reason}")
        if all(self.why_not(rule) for rule in self.rules):
            raise UsageError("the policy runs no rule")

    @property
    def declared(self) -> tuple[FilterSpec, ...]:
        """The filters that files must have."""
        return self.limits.filters

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must have a filter."""
        return self.limits.required

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that must have a filter, and those for which filters are declared."""
        return declared_columns(self.limits.filters)

    @property
    def depends_on_kinds(self) -> bool:
        """Whether a file without findings is judged by its kind and its filters, one by one."""
        limits = self.limits
        for limit in (limits.max_bytes_share, limits.min_ndv, limits.min_chunk_bytes):
            if limit is not None:
                return False
        for spec in limits.filters:
            if spec.judge != "existence" or spec.fpp < DEFAULT_FPP:
                return False
            if spec.paths or spec.where:
                return False
        for rule in self.rules:
            if rule.reads is Reads.DATA and self.why_not(rule) is None:
                return False
        return True

    def of(self, path: str) -> Policy:
        return self

    def fails(self, severity: str) -> bool:
        """Return whether a finding of this severity makes a file fail."""
        return SEVERITIES.index(severity) <= SEVERITIES.index(self.fail_on)

    def why_not(self, rule: AnyRule) -> str | None:
        """Return why a rule does not run; None if it does."""
        return self._reasons[rule.name]

    def _find_reason(self, rule: AnyRule) -> str | None:
        limit: str | None = getattr(rule, "limit", None)
        if limit is not None and not {rule.name, rule.group} & {*self.ignore}:
            if getattr(self.limits, limit) not in (None, ()):
                return None
            if limit == "judged":
                return "the policy declares no filter"
            if limit == "required":
                return "no column to require is given"
            return f"no {limit.replace('_', ' ')} is given"
        if rule.name in self.ignore or rule.group in self.ignore:
            return "ignored"
        if self.select and rule.name not in self.select and rule.group not in self.select:
            return "not selected"
        if self.quick and rule.reads is Reads.DATA:
            return "a quick check does not read the data"
        return None


Settings = Mapping[str, Any]
"""Fields of `Policy` and `Limits` by name."""


class PathEntry(NamedTuple):
    """Settings for the files that one of the globs matches."""

    folder: str
    """Absolute path that relative globs start from."""
    globs: tuple[str, ...]
    settings: Settings
    place: str
    """Where the entry is written, for errors."""

    def matches(self, path: str) -> bool:
        """Return whether a glob matches the path or one of the folders above it."""
        return matches_any(self.globs, self.folder, path)


class PathPolicies:
    """The policies of all files: `settings`, changed by each entry that matches the path, in order,
    and then by `overrides`.

    It has the interface of `Policy` that runs use. Raises UsageError if an entry contradicts itself
    or the other settings.
    """

    def __init__(
        self, settings: Settings, entries: Sequence[PathEntry], overrides: Settings
    ) -> None:
        self._settings = settings
        self._entries = tuple(entries)
        self._overrides = overrides
        policies = [self._policy(())]
        for entry in self._entries:
            try:
                policies.append(self._policy((entry,)))
            except SbbfError as error:
                raise error.at(file=entry.place) from None
        self.quick = all(policy.quick for policy in policies)
        required = chain.from_iterable(policy.required for policy in policies)
        columns = chain.from_iterable(policy.columns for policy in policies)
        self.declared: tuple[FilterSpec, ...] = tuple(overrides.get("filters", ()))
        self.required = tuple(dict.fromkeys(required))
        self.columns = tuple(dict.fromkeys(columns))

    def of(self, path: str) -> Policy:
        """Return the policy of one file. Raises UsageError if the entries that match it contradict
        each other."""
        return self._policy(tuple(entry for entry in self._entries if entry.matches(path)))

    def _policy(self, entries: tuple[PathEntry, ...]) -> Policy:
        settings = dict(self._settings)
        for entry in entries:
            settings.update(entry.settings)
        settings.update(self._overrides)
        return make_policy(settings)


_FIELDS = (*fields(Limits), *fields(Policy))
POLICY_NAMES = {"require", *(each.name for each in _FIELDS)} - {"limits"}
"""The names of the settings of a policy."""


def make_policy(settings: Settings) -> Policy:
    """Return the policy with these fields of `Policy` and `Limits`; `require` names columns. Raises
    UsageError."""
    settings = dict(settings)
    require = as_names(settings.pop("require", ()))
    if require:
        required = FilterSpec(require, judge="existence")
        settings["filters"] = (required, *as_iterable(settings.get("filters", ())))
    limits = {}
    others = {}
    for name, value in settings.items():
        if name in Limits.__dataclass_fields__:
            limits[name] = value
        else:
            others[name] = value
    return Policy(limits=Limits(**limits), **others)
