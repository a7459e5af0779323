"""The public names of a package, each imported when it is first used. Its stub, `__init__.pyi`,
says from where."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def exports(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` of a package with a stub."""
    module: Any = sys.modules[package]

    @cache
    def homes() -> dict[str, str]:
        import re  # not at the top: the command line uses no public name, and should not load `re`

        # The loader reads the stub, since the package may be in a zip.
        path = os.path.join(os.path.dirname(module.__file__), "__init__.pyi")
        stub = module.__loader__.get_data(path).decode()
        imports = re.findall(r"^from (\S+) import (?:\(\s*)?(\w+) as \2\b", stub, re.MULTILINE)
        return {name: home for home, name in imports}

    def find(name: str) -> object:
        if name == "__all__":
            return list(homes())
        if name not in homes():
            from difflib import get_close_matches

            message = f"module {package!r} has no attribute {name!r}"
            for similar in get_close_matches(name, homes(), 1):
                message += f"; did you mean {similar}?"
            raise AttributeError(message)
        return getattr(import_module(homes()[name]), name)

    return find, lambda: sorted([*vars(module), *homes()])
