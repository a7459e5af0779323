"""The log: silent by default, readable with `logging`, on one printable line each, and without
secrets."""

from __future__ import annotations

import io
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sbbf_tool
from sbbf_tool import log
from sbbf_tool.errors import SbbfError
from sbbf_tool.storage.objects.retries import Retries
from sbbf_tool.verbs import AddFilter

DATA = Path(__file__).parent.parent / "fixtures" / "pyarrow-filters.parquet"
PLAIN = DATA.with_name("pyarrow-plain.parquet")


def test_it_says_what_is_opened_built_and_published(tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    shutil.copy(PLAIN, path)
    lines: list[str] = []
    with log.show_log(lines.append):
        sbbf_tool.add_filters(path, ["id"], in_place=True)
    size = path.stat().st_size
    assert [line.split(": ")[0].split(" from ")[0] for line in lines] == [
        f"opened {path}",
        f"built 4 filters for {path}",
        f"published {path}",
    ]
    assert lines[-1].endswith(f": {size:,} bytes")
    lines.clear()
    sbbf_tool.inspect(path)
    assert lines == [], "the handler is gone after the block"


def test_it_is_silent_by_default() -> None:
    program = (
        "import sys, logging, sbbf_tool\n"
        f"sbbf_tool.inspect({str(DATA)!r})\n"
        "handlers = logging.getLogger('sbbf_tool').handlers\n"
        "assert [type(handler) for handler in handlers] == [logging.NullHandler], handlers\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_callers_configure_it_as_any_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="sbbf_tool"):
        sbbf_tool.inspect(DATA)
    (record,) = caplog.records
    assert (record.name, record.levelname, record.filename) == (
        "sbbf_tool",
        "INFO",
        "parquet_file.py",
    )
    assert record.getMessage() == f"opened {DATA}: {DATA.stat().st_size:,} bytes, 4 row groups"


def test_names_are_shown_on_one_printable_line() -> None:
    stream = io.BytesIO(DATA.read_bytes())
    stream.name = "a\n\x1b[31m\u202eb"  # type: ignore[misc]
    lines: list[str] = []
    with log.show_log(lines.append):
        sbbf_tool.inspect(stream)
    assert lines[0].startswith("opened a\\n\\x1b[31m\\u202eb: ")


def test_a_repeated_request_is_logged_without_secrets() -> None:
    attempts = iter([SbbfError("https://user:s3cret@host/x?X-Amz-Signature=s3cret was reset")])

    def request() -> int:
        for error in attempts:
            raise error
        return 7

    lines: list[str] = []
    with log.show_log(lines.append):
        assert Retries(sleep=lambda seconds: None).call(request, lambda error: True) == 7
    assert len(lines) == 1
    assert lines[0].startswith("repeating a request that failed: https://...@host/x?...")
    assert "s3cret" not in lines[0]


def test_processes_of_a_run_log_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in "abcd":
        shutil.copy(PLAIN, tmp_path / f"{name}.parquet")
    with log.show_log(lambda line: print(line, file=sys.stderr, flush=True)):
        sbbf_tool.run(
            AddFilter(sbbf_tool.FilterSpec("id")),
            tmp_path,
            edit=sbbf_tool.Edit(in_place=True),
            jobs=2,
        )
    messages = capfd.readouterr().err
    assert {f"{tmp_path / name}.parquet" for name in "abcd"} <= {
        line.split(" ")[1].rstrip(":") for line in messages.splitlines()
    }
