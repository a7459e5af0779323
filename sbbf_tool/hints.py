"""Hints for an error or a finding, as values: the Python API writes them as parameters and calls, the command line as options.

Hint   text that contains parameters of an operation, or a fix
Fix    a change to files: a function of this package and its arguments
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import TypeAlias

from sbbf_tool.display import redact


@dataclass(frozen=True)
class Fix:
    """The change that resolves a finding. It is made in place; parameters that are None, False or empty are omitted. Passwords and
    signatures in the names of the files are redacted.
    """

    verb: str
    """The function of `sbbf_tool` that makes the change: `add_filters`, `remove_filters`, `repair` or `resize_filters`; for the indexes of
    Paimon's tables, `add_paimon_index` or `remove_paimon_index`."""
    files: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rebuild: bool = False
    replace: bool = False
    ensure: bool = False
    compact: bool = False
    fpp: float | None = None
    ndv: int | None = None
    max_bytes: int | None = None
    num_bytes: int | None = None
    keys: str | None = None
    """Path of the file with the keys of encrypted files."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(map(redact, self.files)))

    def parameters(self) -> dict[str, Parameter]:
        """Return the parameters of the function except the files, by name, in the order in which they are written."""
        names = ("rebuild", "columns", "replace", "ensure", "compact", "fpp", "ndv", "max_bytes", "num_bytes")
        values = {name: value for name in names if (value := getattr(self, name)) not in (None, False, ())}
        if not self.verb.endswith("_paimon_index"):  # a table has no other place
            values["in_place"] = True
        return {**values, **({} if self.keys is None else {"keys": self.keys})}

    def __str__(self) -> str:
        """Write the call in Python."""
        files = repr(self.files[0]) if len(self.files) == 1 else repr(list(self.files))
        # The function takes the keys themselves, which must not appear in text.
        values = {**self.parameters(), **({} if self.keys is None else {"keys": ...})}
        return f"{self.verb}({', '.join([files, *(_spell(name, value) for name, value in values.items())])})"


Parameter: TypeAlias = str | float | bool | tuple[str, ...] | EllipsisType | None
"""Value of a parameter; `...` stands for a value that the caller chooses, None for no value: only the parameter's name."""


class Hint(str):
    """Text with a template that has `{name}` for each of `values`: a parameter with its value, or a `Fix`.

                                                        as a string                            on a command line
        Hint("give its key with {keys}", keys=...)      give its key with keys=...             give its key with --keys
        Hint("set {replace}", replace=True)             set replace=True                       set --replace
        Hint("{max_bytes} is too low", max_bytes=None)  max_bytes is too low                   --max-bytes is too low
        Hint("try {fix}", fix=Fix("repair", ("a",)))    try repair('a', in_place=True)         try sbbf repair a --in-place

    The string itself has the Python form, so that a hint can be used and sent as text; `spell` returns other forms.
    """

    template: str
    values: dict[str, Parameter | Fix]

    def __new__(cls, template: str, **values: Parameter | Fix) -> Hint:
        hint = super().__new__(cls, _fill(template, values, _spell))
        hint.template, hint.values = template, values
        return hint

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Parameter | Fix]]:
        return (self.template,), self.values

    def spell(self, spell_value: Callable[[str, Parameter | Fix], str]) -> str:
        """Return the text with each value written as `spell_value(name, value)`."""
        return _fill(self.template, self.values, spell_value)


def join(*texts: str) -> str:
    """Concatenate texts; the result is a `Hint` if one of them is."""
    hints = [text for text in texts if isinstance(text, Hint)]
    if not hints:
        return "".join(texts)
    templates = (text.template if isinstance(text, Hint) else text.replace("{", "{{").replace("}", "}}") for text in texts)
    return Hint("".join(templates), **{name: value for hint in hints for name, value in hint.values.items()})


def _fill(template: str, values: dict[str, Parameter | Fix], spell_value: Callable[[str, Parameter | Fix], str]) -> str:
    return template.format(**{name: spell_value(name, value) for name, value in values.items()})


def _spell(name: str, value: Parameter | Fix) -> str:
    if isinstance(value, Fix):
        return str(value)
    if value is None:
        return name
    return f"{name}={'...' if value is ... else repr(list(value) if isinstance(value, tuple) else value)}"


ELSEWHERE = Hint("write elsewhere with {output}", output=...)
