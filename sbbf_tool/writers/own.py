"""This package, by the tables [[filters]] of its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.writers.writer import Request, Setting, Writer, write_text


def _write_sbbf(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    columns = ", ".join(write_text(setting.name) for setting in settings)
    for number, pattern in enumerate(request.patterns):
        if number:
            yield ""
        yield "[[filters]]"
        yield f"paths = {write_text(pattern)}"
        yield f"columns = [{columns}]"
        yield f"fpp = {request.fpp:g}"


SBBF = Writer(_write_sbbf, "#", uses_formula=False, takes_ndv=False)
