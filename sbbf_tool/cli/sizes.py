"""Sizes on a command line: `65536`, `64KiB`, `1MB`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    _IntParameter = click.ParamType[int]
else:
    # The class is generic only since click 8.4.
    _IntParameter = click.ParamType

_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


class _Bytes(_IntParameter):
    name = "bytes"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", str(value).strip(), re.ASCII)
        if not match or match[2].upper() not in _UNITS:
            self.fail(f"{value!r} is not a size; write 65536, 64KiB or 1MB", param, ctx)
        return int(match[1]) * _UNITS[match[2].upper()]


SIZE = _Bytes()
