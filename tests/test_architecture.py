"""Who may import whom. Data flows one way: storage, parquet and bloom know nothing of operations, operations nothing of a screen."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "sbbf_tool"
GENERATED = PACKAGE / "parquet" / "idl"

# The rooms from the lowest to the highest: each may import those before it, but for what FORBIDDEN says.
ORDER = (
    "display", "errors", "gregorian", "arguments", "bloom", "parquet", "paimon", "storage", "reports",
    "file", "query_engines", "rules", "advice", "editing", "operations", "runner", "spark", "cli",
)  # fmt: skip
FORBIDDEN = {
    "bloom": {"arguments", "gregorian"},
    "paimon": {"parquet"},
    "storage": {"bloom", "parquet", "paimon"},
    "reports": {"bloom", "parquet", "paimon", "storage"},
    "spark": {"bloom", "parquet", "paimon"},
    "cli": {"paimon"},
}
ROOMS = {room: set(ORDER[:at]) - FORBIDDEN.get(room, set()) for at, room in enumerate(ORDER)}
ROOMS |= {"__init__": set(ORDER) - {"cli"}, "__main__": {"display", "errors", "cli"}}

# Third-party package -> the only rooms that may know it.
HOMES = {
    "botocore": {"storage"},
    "click": {"cli"},
    "cryptography": {"parquet"},
    "obstore": {"storage"},
    "rich": {"cli"},
    "pyspark": {"spark"},
    "thrift": {"parquet"},
    "xxhash": {"bloom", "paimon"},
}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if GENERATED not in path.parents]


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports_of(path: Path) -> Iterator[str]:
    """Every module that is imported anywhere in the file, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            assert node.module is not None
            yield node.module
            if node.module == "sbbf_tool":
                yield from (f"sbbf_tool.{alias.name}" for alias in node.names)


def test_every_room_is_on_the_plan():
    assert {room_of(path) for path in modules()} <= ROOMS.keys()


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    room = room_of(path)
    for module in imports_of(path):
        parts = module.split(".")
        if parts[0] == "sbbf_tool":
            target = parts[1] if len(parts) > 1 else room
            assert target == room or target in ROOMS[room], f"{room} must not import {module}"
        elif parts[0] in HOMES:
            assert room in HOMES[parts[0]], f"{parts[0]} lives in {sorted(HOMES[parts[0]])}, not in {room}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_are_short_and_introduce_themselves(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 500
    if path.name != "__init__.py" or text.strip():
        assert ast.get_docstring(ast.parse(text)), "a module opens with what it is"
    assert path.stem not in {"utils", "common", "helpers", "base", "core", "misc"}


def loaded_after(code: str) -> set[str]:
    """Top-level modules loaded by a fresh interpreter that ran `code`."""
    program = f"{code}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}}, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["paimon", "--help"], ["paimon", "probe", "--help"]], ids=" ".join)
def test_help_loads_neither_numpy_nor_pyarrow(arguments):
    loaded = loaded_after(f"from sbbf_tool.cli import run; assert run({arguments!r}) == 0")
    assert "click" in loaded
    assert not loaded & {"numpy", "pyarrow", "pyspark", "rich", "thrift"}


def test_inspect_and_probe_do_not_load_pyarrow(fixtures):
    path = str(fixtures / "pyarrow-filters.parquet")
    for arguments in (["inspect", path], ["probe", path, "id", "1"]):
        loaded = loaded_after(f"from sbbf_tool.cli import run; assert run({arguments!r}) in (0, 1)")
        assert "thrift" in loaded
        assert not loaded & {"pyarrow", "pyspark", "rich", "pandas"}


def test_the_public_names_are_there():
    import sbbf_tool

    assert set(sbbf_tool.__all__) == set(sbbf_tool._HOMES)
    for name in sbbf_tool.__all__:
        assert getattr(sbbf_tool, name).__name__ == name
    with pytest.raises(AttributeError):
        sbbf_tool.no_such_name  # noqa: B018
