"""`sbbf size` on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest

from sbbf_tool.cli import run


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["size", *arguments]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out


def test_the_table_shows_the_sizes_and_the_formula(capfd: pytest.CaptureFixture[str]) -> None:
    title, header, *lines = printed(capfd, "--ndv", "1000000", "--fpp", "0.01").splitlines()
    assert title == "1,000,000 values at 1 %: a bitset of 2,097,152 bytes"
    assert header.split()[:3] == ["size", "bitset", "header"]
    assert [line[:12].strip() for line in lines[:3]] == ["next smaller", "chosen", "next larger"]
    formula = "the closed formula of the first draft gives 9.68, with which the FPP is 1.463 %"
    assert lines[3] == f"1 % takes 10.53 bits per value; {formula}"
    assert lines[5].startswith("current ")


def test_a_size_may_have_a_unit(capfd: pytest.CaptureFixture[str]) -> None:
    assert printed(capfd, "--bytes", "64KiB").startswith("49,793 values at 1 %: a bitset of 65,536 bytes\n")


def test_too_many_values_are_a_warning(capfd: pytest.CaptureFixture[str]) -> None:
    headline = printed(capfd, "--ndv", "9999999999999").splitlines()[0]
    assert headline.endswith(": not reached; a bitset of 134,217,728 bytes, the largest that readers accept, has 100 %")


def test_writers_with_another_size_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert "\nwriters that use this formula choose 131,072 bytes for 100,000 values\n" in printed(capfd, "--ndv", "100000")


def test_formats_of_rows_have_the_sizes(capfd: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(capfd, "--ndv", "1000", "--format", "csv"))))
    assert [row["choice"] for row in rows] == ["next smaller", "chosen", "next larger"]
    document = json.loads(printed(capfd, "--ndv", "1000", "--format", "json"))
    assert (document["schema"], document["ndv"], document["fpp"]) == ("sbbf.size", 1000, 0.01)


def test_errors_name_the_options(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["size"]) == 2
    assert capfd.readouterr().err == "sbbf: give ndv, a size in bytes, or both\n"
    assert run(["size", "--ndv", "5", "--bytes", "64", "--fpp", "0.1"]) == 2
    assert capfd.readouterr().err == "sbbf: ndv and size determine fpp: give two of them\n"
