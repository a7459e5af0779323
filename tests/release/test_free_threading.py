"""Free-threaded Python has no limited API, so setuptools refuses to build `abi3` there: its extensions serve one version."""

from __future__ import annotations

import runpy
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import setuptools

from support.tables import each

REPOSITORY = Path(__file__).parents[2]


@each("has_gil", [True, False])
def test_the_limited_api_is_for_python_with_the_gil(has_gil: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {}
    monkeypatch.delenv("SBBF_WITHOUT_EXTENSIONS", raising=False)
    monkeypatch.setattr(setuptools, "setup", lambda **keywords: settings.update(keywords))
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": None if has_gil else 1}.get)
    runpy.run_path(str(REPOSITORY / "setup.py"))
    assert [extension.name for extension in settings["ext_modules"]] == ["sbbf_tool.bloom._kernel", "sbbf_tool.parquet._compact"]
    assert {bool(extension.py_limited_api) for extension in settings["ext_modules"]} == {has_gil}
    assert settings.get("options") == ({"bdist_wheel": {"py_limited_api": "cp311"}} if has_gil else None)
