"""The plugins of these tests: stages of CI, and what an old pyarrow lacks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.newer_pyarrow import WRONG
from support.tables import each

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

TESTS = Path(__file__).parent


@each("start", list(WRONG))
def test_tests_that_an_old_pyarrow_fails_have_their_present_names(start) -> None:
    path, _, name = start.partition("::")
    name, _, page = name.partition("[")
    assert (
        not page or not path.endswith("test_docs.py") or (TESTS.parent / page.rstrip("]")).exists()
    )
    assert re.search(rf"(?:def|class) {name}\b", (TESTS.parent / path).read_text())


@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.heavy)])
def test_a_stage_fails_for_a_skip_that_is_not_expected(pytester, monkeypatch, workers) -> None:
    monkeypatch.setattr("support.stages.ALLOWED_SKIPS", pytester.path / "skips.toml")
    monkeypatch.setenv("SBBF_STAGES", str(pytester.path / "stages"))
    (pytester.path / "skips.toml").write_text("always = ['no .*']\nmodules = ['a whole .*']\n")
    pytester.makepyfile(
        test_skips="""
        import pytest

        @pytest.mark.parametrize("what", ["gcc", "node"])
        def test_skipped(what):
            pytest.skip(f"no {what}")

        @pytest.mark.xfail(reason="never mind")
        def test_expected_failure():
            assert False

        def test_passed():
            pass
        """,
        test_module="import pytest\npytest.skip('a whole module', allow_module_level=True)",
    )
    options = ["-p", "support.stages", "-n", workers]
    short = pytester.runpytest_inprocess(*options, "--stage", "other")
    assert short.ret == pytest.ExitCode.TESTS_FAILED
    short.stdout.fnmatch_lines(
        ["*skips that stage other does not expect*", "1 skipped: a whole module"]
    )
    assert pytester.runpytest_inprocess(*options, "--stage", "modules").ret == pytest.ExitCode.OK
    assert pytester.runpytest_inprocess(*options).ret == pytest.ExitCode.OK
    lines = [line.split() for line in (pytester.path / "stages").read_text().splitlines()]
    assert [(line[0], line[1], line[3], line[5]) for line in lines] == [
        ("other", "4", "s", "MB"),
        ("modules", "4", "s", "MB"),
    ]


def test_a_table_names_each_row_that_fails_and_each_finds_the_files_of_the_fixtures(
    pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        from support.tables import each

        @pytest.fixture
        def path(tmp_path):
            (tmp_path / "a").write_text("as it was")
            return tmp_path / "a"

        @each("number", {"one": 1, "two": 2, "three": 3})
        def test_a_table(number, path, tmp_path):
            assert path.read_text() == "as it was"
            assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
            (tmp_path / "b").mkdir()
            path.write_text("changed") if number == 1 else path.unlink()
            assert number == 1
        """
    )
    result = pytester.runpytest("-n", "0")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*2 of 3 rows*", "*row: two*", "*row: three*"])


def test_rows_that_are_heavy_are_another_case(pytester) -> None:
    pytester.makepyfile(
        """
        from support.tables import each

        @each("outer", "ab")
        @each("number", range(5), every=2)
        def test_a_table(number, outer, request):
            print("row", outer, number)
        """
    )
    (pytester.path / "conftest.py").write_text(
        "def pytest_configure(config):\n    config.addinivalue_line('markers', 'heavy: minutes')\n"
    )
    for marker, rows in (("not heavy", "024"), ("heavy", "01234")):
        result = pytester.runpytest_inprocess("-n", "0", "-s", "-m", marker)
        result.assert_outcomes(passed=1, deselected=1)
        assert re.findall(r"row (\w) (\d)", str(result.stdout)) == [
            (outer, number) for outer in "ab" for number in rows
        ]
