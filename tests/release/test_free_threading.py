"""Free-threaded Python has no limited API, so setuptools refuses to build `abi3` there: its
extensions serve one version."""

from __future__ import annotations

import re
import runpy
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import setuptools

from support.tables import each

REPOSITORY = Path(__file__).parents[2]


@each("has_gil", [True, False])
def test_the_limited_api_is_for_python_with_the_gil(
    has_gil: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {}
    monkeypatch.delenv("SBBF_WITHOUT_EXTENSIONS", raising=False)
    monkeypatch.setattr(setuptools, "setup", lambda **keywords: settings.update(keywords))
    monkeypatch.setattr(
        sysconfig, "get_config_var", {"Py_GIL_DISABLED": None if has_gil else 1}.get
    )
    runpy.run_path(str(REPOSITORY / "setup.py"))
    assert [extension.name for extension in settings["ext_modules"]] == [
        "sbbf_tool.bloom._kernel",
        "sbbf_tool.parquet._compact",
        "sbbf_tool.parquet._pages",
        "sbbf_tool.parquet._scan",
    ]
    assert {bool(extension.py_limited_api) for extension in settings["ext_modules"]} == {has_gil}
    assert settings.get("options") == (
        {"bdist_wheel": {"py_limited_api": "cp311"}} if has_gil else None
    )


def test_no_format_of_the_limited_api_has_a_length() -> None:
    """Headers of Python 3.13 compile `y#` to a call that fails in 3.11 and 3.12, so a wheel built
    with 3.13 does not work there."""
    sources = [path.read_text() for path in (REPOSITORY / "sbbf_tool").rglob("*.[ch]")]
    assert sources
    assert not any(
        re.search(r'(?:BuildValue|Arg_Parse\w*)\([^;]*?"[^";]*#', text) for text in sources
    )
