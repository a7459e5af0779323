"""`sbbf size` on the command line."""

from __future__ import annotations

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
