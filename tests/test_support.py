"""The plugins of these tests: which skips are allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.allowed_skips import ALLOWED_SKIPS, find_excess, read_allowances
from support.newer_pyarrow import WRONG

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

TESTS = Path(__file__).parent


def test_one_skip_more_than_allowed_is_excess() -> None:
    allowances = {"no .*": 2, "slow": 1}
    assert find_excess({"no gcc": 1, "no node": 1, "slow": 1}, allowances) == []
    assert find_excess({"no gcc": 1, "no node": 2}, allowances) == ["3 skipped, 2 allowed: no .*"]
    assert find_excess({"too slow": 1}, allowances) == ["1 skipped, none allowed: too slow"]


def test_tables_of_allowances_add_up(tmp_path) -> None:
    path = tmp_path / "skips.toml"
    path.write_text("[one]\n'a' = 1\n'b' = 1\n[more]\n'a' = 2\n")
    assert read_allowances(path, ["one", "more"]) == {"a": 3, "b": 1}
    with pytest.raises(pytest.UsageError, match="has no table other; it has one, more"):
        read_allowances(path, ["one", "other"])


def test_the_tables_of_this_repository_can_be_read() -> None:
    for table in ("readme", "numpy", "oldest", "without-extension", "heavy"):
        assert read_allowances(ALLOWED_SKIPS, [table])


@pytest.mark.parametrize("start", WRONG)
def test_tests_that_an_old_pyarrow_fails_have_their_present_names(start) -> None:
    path, _, name = start.partition("::")
    name, _, page = name.partition("[")
    assert not page or not path.endswith("test_docs.py") or (TESTS.parent / page.rstrip("]")).exists()
    assert re.search(rf"(?:def|class) {name}\b", (TESTS.parent / path).read_text())


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_with_one_skip_too_many_fails(pytester, monkeypatch, workers) -> None:
    monkeypatch.setattr("support.allowed_skips.ALLOWED_SKIPS", pytester.path / "skips.toml")
    (pytester.path / "skips.toml").write_text("[two]\n'no .*' = 2\n[three]\n'no .*' = 2\n'a whole module' = 1\n")
    pytester.makepyfile(
        test_skips="""
        import pytest

        @pytest.mark.parametrize("what", ["gcc", "node"])
        def test_skipped(what):
            pytest.skip(f"no {what}")

        @pytest.mark.xfail(reason="no matter")
        def test_expected_failure():
            assert False

        def test_passed():
            pass
        """,
        test_module="import pytest\npytest.skip('a whole module', allow_module_level=True)",
    )
    options = ["-p", "support.allowed_skips", "-n", workers]
    short = pytester.runpytest_inprocess(*options, "--allowed-skips", "two")
    assert short.ret == pytest.ExitCode.TESTS_FAILED
    short.stdout.fnmatch_lines(["*more skips than *", "1 skipped, none allowed: a whole module"])
    assert pytester.runpytest_inprocess(*options, "--allowed-skips", "three").ret == pytest.ExitCode.OK
    assert pytester.runpytest_inprocess(*options).ret == pytest.ExitCode.OK
