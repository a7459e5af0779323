"""The policy of `check`: which rules run, with which limits, and which findings make a file fail."""

from __future__ import annotations

from dataclasses import dataclass, field

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import UsageError
from sbbf_tool.reports.findings import ERROR, SEVERITIES
from sbbf_tool.rules.catalog import GROUPS, RULES
from sbbf_tool.rules.rule import Limits, Rule, ensure_valid, why_not_selected


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules and limits to check, and the filters that files must have (`limits.filters`), which `apply` takes.

    `select` and `ignore` name rules or groups; a limit that is given applies regardless of `select`. `quick` skips the rules that read
    data. A finding of severity `fail_on` or worse makes a file fail. Raises UsageError if the policy contradicts itself, or names a rule
    that does not exist.
    """

    limits: Limits = field(default_factory=Limits)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    quick: bool = False
    fail_on: str = ERROR

    def __post_init__(self) -> None:
        object.__setattr__(self, "select", as_names(self.select, "rule"))
        object.__setattr__(self, "ignore", as_names(self.ignore, "rule"))
        ensure_valid((self.fail_on,), SEVERITIES, "severity")
        ensure_valid((*self.select, *self.ignore), [*(rule.name for rule in RULES), *GROUPS], "rule")
        for rule in RULES:
            if rule.name in self.select and (reason := self.why_not(rule)) is not None:
                raise UsageError(f"rule {rule.name} is selected but cannot run: {reason}")
        if all(self.why_not(rule) for rule in RULES):
            raise UsageError("the policy runs no rule")

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must have a filter."""
        return self.limits.required

    def of(self, path: str) -> Policy:
        """Return the policy of a file, which is this one; the policies of paths have the same method."""
        return self

    def why_not(self, rule: Rule) -> str | None:
        """Return why a rule does not run; None if it does."""
        if rule.limit is not None and not {rule.name, rule.group} & {*self.ignore}:
            if getattr(self.limits, rule.limit) not in (None, ()):
                return None
            if rule.limit == "judged":
                return "the policy declares no filter"
            return f"no {'column to require' if rule.limit == 'required' else rule.limit.replace('_', ' ')} is given"
        return why_not_selected(rule.name, rule.group, rule.reads, self.select, self.ignore, self.quick)
