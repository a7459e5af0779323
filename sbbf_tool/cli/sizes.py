"""Sizes and ratios on a command line: `65536`, `64KiB`, `1MB`; `0.01`, `1%`."""

from __future__ import annotations

import click

from sbbf_tool.numbers import parse_ratio, parse_size


class _Bytes(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    name = "bytes"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        size = parse_size(str(value))
        if size is None:
            self.fail(f"{value!r} is not a size; write 65536, 64KiB or 1MB", param, ctx)
        return size


class _Ratio(click.types.FloatParamType):
    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        ratio = parse_ratio(str(value))
        return ratio if ratio is not None else self.fail(f"{value!r} is no number or percentage; write 0.01 or 1%", param, ctx)


SIZE, RATIO = _Bytes(), _Ratio()
