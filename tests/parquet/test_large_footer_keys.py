"""Of footers with very many key-values, only those that the package looks up are kept."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import sbbf_tool
from sbbf_tool.parquet import large_footers

KEY = re.compile(r"[A-Za-z][\w-]*([.:][\w-]+)+")
"""How programs write their keys; shorter ones, such as `geo`, are recognised by a comparison."""


def readers() -> Iterator[ast.Module]:
    """Parse each module that looks into the key-values of a footer."""
    for path in Path(sbbf_tool.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if "key_value_metadata or ()" in text and "idl" not in path.parts:
            yield ast.parse(text)


def keys_of(module: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that have the form of a key, or are compared with one."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if KEY.fullmatch(node.value):
                yield node.value
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).endswith(".key"):
            for compared in node.comparators:
                if isinstance(compared, ast.Constant):
                    yield str(compared.value)


def test_keys_that_are_looked_up_are_kept_in_large_footers() -> None:
    keys = {key for module in readers() for key in keys_of(module)}
    assert {"ARROW:schema", "drill-writer.version", "duckdb.interval_bloom_filter", "geo"} <= keys
    assert keys - set(large_footers._KEYS_READ) == set()
