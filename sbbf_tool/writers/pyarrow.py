"""pyarrow, alone and in Polars, which writes no filters itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.writers.writer import Request, Setting, Writer, write_text


def _options_of_arrow(settings: Sequence[Setting], indent: str) -> Iterator[str]:
    for setting in settings:
        yield f'{indent}{write_text(setting.path)}: {{"ndv": {setting.ndv}, "fpp": {setting.fpp:g}}},'


def _write_pyarrow(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "import pyarrow.parquet as pq"
    yield ""
    yield "pq.write_table("
    yield "    table,"
    yield '    "data.parquet",'
    yield "    bloom_filter_options={"
    yield from _options_of_arrow(settings, " " * 8)
    yield "    },"
    yield ")"


def _write_polars(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "frame.write_parquet("
    yield '    "data.parquet",'
    yield "    use_pyarrow=True,"
    yield "    pyarrow_options={"
    yield '        "bloom_filter_options": {'
    yield from _options_of_arrow(settings, " " * 12)
    yield "        },"
    yield "    },"
    yield ")"


PYARROW = Writer(_write_pyarrow, "#", ("pyarrow writes filters since version 24",))
POLARS = Writer(
    _write_polars,
    "#",
    (
        "Polars writes no filters itself; with use_pyarrow=True, pyarrow (24 or newer) writes the file",
        "add filters to files of sink_parquet and of other ways to write when they are finished",
    ),
)
