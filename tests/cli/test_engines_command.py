"""`sbbf engines` on the command line."""

from __future__ import annotations

from sbbf_tool.cli import run
from support.tables import each


def printed(capfd, *arguments: str) -> str:
    assert run(["engines", *arguments]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out


class TestReleases:
    def test_a_release_that_was_not_run_is_named(self, capfd):
        first, *_ = printed(capfd, "duckdb-99,duckdb-1.4").splitlines()
        assert first == "duckdb-99 was not run; shown is DuckDB 2.0.0, the newest release up to it that was"

    @each(
        "names, message",
        [
            ("", "unknown engine ''"),
            ("duckdb-1.4.0-rc1", "'1.4.0-rc1' of 'duckdb-1.4.0-rc1' is no version; name one such as duckdb-2.0.0"),
            ("duckdb-1.4.-1", "'1.4.-1' of 'duckdb-1.4.-1' is no version; name one such as duckdb-2.0.0"),
            ("no-such-1", "unknown engine 'no-such'"),
        ],
    )
    def test_what_is_no_release_is_refused(self, capfd, names, message):
        assert run(["engines", names]) == 2
        assert message in capfd.readouterr().err
