"""The fix of a finding as a value, which Python writes as a call and the command line as a command;
other hints are plain text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal, TypeAlias

from sbbf_tool.display import redact
from sbbf_tool.frozen import Frozen

Rebuild: TypeAlias = Literal["weak", "all"]
"""Existing filters to rebuild: those that do not satisfy the request (weaker, too large or broken),
or all."""


class Fix(Frozen):
    """The change that resolves a finding. It is made in place; parameters that are None, False or
    empty are omitted. Passwords and signatures in the names of the files are redacted.
    """

    verb: str
    """The function of `sbbf_tool` that makes the change: `add_filters`, `remove_filters`, `repair`
    or `resize_filters`, or one of an extension."""
    files: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rebuild: str | None = None
    compact: bool = False
    fpp: float | None = None
    ndv: int | None = None
    max_bytes: int | None = None
    keys: str | None = None
    """Path of the file with the keys of encrypted files."""

    def ensure_valid(self) -> None:
        object.__setattr__(self, "files", tuple(map(redact, self.files)))

    def parameters(self) -> dict[str, Parameter]:
        """Return the function's parameters but the files, by name, in the order of writing."""
        values: dict[str, Parameter] = {}
        for name in ("columns", "rebuild", "compact", "fpp", "ndv", "max_bytes"):
            value = getattr(self, name)
            if value not in (None, False, ()):
                values[name] = value
        if not self.verb.endswith("_index"):  # those of a table have no other place
            values["in_place"] = True
        if self.keys is not None:
            values["keys"] = self.keys
        return values

    def __str__(self) -> str:
        """Write the call in Python: of the function for a file, or of `run` for folders, tables and
        several files."""
        values = {
            name: repr(list(value) if isinstance(value, tuple) else value)
            for name, value in self.parameters().items()
        }
        if self.keys is not None:
            # The function takes the keys themselves, which must not appear in text.
            values["keys"] = "..."
        files = repr(list(self.files))
        is_file = False
        if len(self.files) == 1:
            files = repr(self.files[0])
            is_file = os.path.isfile(self.files[0])
        if is_file or self.verb not in _VERBS:
            return _call(self.verb, files, **values)
        edit = _call("Edit", **_take(values, "in_place", "keys"))
        if self.verb == "add_filters":
            rebuild = _take(values, "rebuild")
            values = {"spec": _call("FilterSpec", **values), **rebuild}
        return _call("run", _call(_VERBS[self.verb], **values), files, edit=edit)


_VERBS = {
    "add_filters": "AddFilter",
    "remove_filters": "RemoveFilter",
    "repair": "Repair",
    "resize_filters": "Resize",
}
"""The class of the verb of a function."""


def _take(values: dict[str, str], *names: str) -> dict[str, str]:
    """Return the values of these names, and remove them."""
    return {name: values.pop(name) for name in names if name in values}


def _call(function: str, *arguments: str, **named: str) -> str:
    words = [*arguments, *(f"{name}={value}" for name, value in named.items())]
    return f"{function}({', '.join(words)})"


Parameter: TypeAlias = str | float | bool | tuple[str, ...]
"""Value of a parameter of a fix."""


def suggest(name: str, names: Iterable[str], otherwise: str | None = None) -> str:
    """Return the hint for an unknown name: the first names that begin with it or are similar;
    without one, `otherwise` or all names."""
    from difflib import get_close_matches

    names = list(dict.fromkeys(names))
    near = []
    if name:
        start = name.casefold()
        near = [choice for choice in names if choice.casefold().startswith(start)]
    near = near or get_close_matches(name, names)
    if near:
        return f"did you mean {', '.join(near[:3])}?"
    return otherwise or f"choose from {', '.join(names)}"


def normal_form(text: str) -> str | None:
    """Return the Unicode normal form of text that another one writes with other characters: NFC,
    with composed letters, or else NFD; None if the text is the same in both."""
    if text.isascii():
        return None
    from unicodedata import normalize

    if normalize("NFC", text) != text:
        return "NFD"
    if normalize("NFD", text) != text:
        return "NFC"
    return None


def suggest_other_form(name: str, names: Iterable[str]) -> str | None:
    """Return the hint for an unknown name that one of the names looks like, because it is in
    another Unicode normal form."""
    form = normal_form(name)
    if form is None:
        return None
    from unicodedata import normalize

    for choice in names:
        if normalize("NFC", choice) == normalize("NFC", name):
            return f"did you mean {choice}, in Unicode normal form {normal_form(choice)}?"
    return None


ELSEWHERE = "write the result to another file"


def install_extra(*extras: str) -> str:
    """Return the command that installs an extra of this package, or one of several, from where the
    package is: its checkout, or the file from which it was installed."""
    package = _find_package()
    if package is None:
        return f"install the extra {' or '.join(extras)} of sbbf-tool"
    return "pip install " + " or ".join(f"'{package}[{extra}]'" for extra in extras)


def _find_package() -> str | None:
    """Return what pip can install: `.` in a checkout, the file or folder that pip has recorded
    (PEP 610); None if there is no record."""
    import json
    from importlib import metadata

    if os.path.isfile(os.path.join(os.path.dirname(__file__), os.pardir, "pyproject.toml")):
        return "."
    try:
        record = metadata.distribution("sbbf-tool").read_text("direct_url.json")
        url = str(json.loads(record or "{}").get("url", ""))
    except (metadata.PackageNotFoundError, ValueError, OSError):
        return None
    return _path_of(url) if url.startswith("file:") else None


def _path_of(url: str) -> str:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    return url2pathname(urlsplit(url).path)
