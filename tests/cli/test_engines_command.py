"""`sbbf engines` on the command line."""

from __future__ import annotations

from sbbf_tool.cli import run


def printed(capfd, *arguments: str) -> str:
    assert run(["engines", *arguments]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out


class TestReleases:
    def test_a_release_that_was_not_run_is_named(self, capfd):
        first, *_ = printed(capfd, "duckdb-99,duckdb-1.4").splitlines()
        assert (
            first
            == "duckdb-99 was not run; shown is DuckDB 2.0.0, the newest release up to it that was"
        )
