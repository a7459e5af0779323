"""parquet-java, alone and in Spark: its Hadoop configuration, which Spark and Hudi take as options.

parquet.bloom.filter.enabled#C = true           also fpp#C, expected.ndv#C and max.bytes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sbbf_tool.writers.properties import Properties
from sbbf_tool.writers.writer import DICTIONARIES, Request, Setting, Writer, specs_of, write_key, write_text

_PROPERTIES = Properties("parquet.bloom.filter.", "#", "expected.ndv", "max.bytes")
parse_properties, build_properties = _PROPERTIES.parse, _PROPERTIES.build
_USUAL_MOST = 1 << 20
"""The largest bitset that parquet-java builds unless it is set to build larger ones."""


def _build(settings: Sequence[Setting]) -> dict[str, str]:
    most = max(setting.num_bytes for setting in settings)
    return build_properties(specs_of(settings, most if most > _USUAL_MOST else None))


def _write_parquet_java(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    for name, value in _build(settings).items():
        yield f"{write_key(name)}={value}"


def _write_spark(settings: Sequence[Setting], request: Request) -> Iterator[str]:
    yield "("
    yield "    df.write"
    for name, value in _build(settings).items():
        yield f"    .option({write_text(name)}, {write_text(value)})"
    yield '    .parquet("data")'
    yield ")"


PARQUET_JAVA = Writer(_write_parquet_java, "#", (DICTIONARIES,))
SPARK = Writer(_write_spark, "#", (DICTIONARIES,))
