"""The plugins of these tests: which skips are allowed, which heavy tests run first, and what is reported as not run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.allowed_skips import ALLOWED_SKIPS, find_excess, read_allowances
from support.heavy_order import draw_order, find_test_paths
from support.newer_pyarrow import WRONG

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

TESTS = Path(__file__).parent

NAMES = [f"tests/{room}/test_{n}.py::test_{n}" for room in ("bloom", "objects", "paimon", "storage") for n in range(5)]


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


def test_the_tests_of_changed_files() -> None:
    assert find_test_paths(["sbbf_tool/bloom/filter.py", "sbbf_tool/errors.py", "README.md"]) == {"tests/bloom"}
    assert find_test_paths(["sbbf_tool/storage/objects/s3.py"]) == {"tests/storage", "tests/objects", "tests/faults"}
    assert find_test_paths(["sbbf_tool/operations/paimon/verify.py"]) == {"tests/operations", "tests/paimon"}
    assert find_test_paths(["tests/runner/test_order.py"]) == {"tests/runner/test_order.py"}


def test_tests_of_changed_rooms_come_first() -> None:
    order = draw_order(NAMES, ["sbbf_tool/bloom/filter.py", "tests/paimon/test_3.py"], "c0ffee")
    first = {name for name in NAMES if name.startswith(("tests/bloom/", "tests/paimon/test_3"))}
    assert set(order[: len(first)]) == first
    assert set(order) == set(NAMES)


def test_no_test_is_always_last() -> None:
    """The order depends on the commit, and on nothing else."""
    orders = [draw_order(NAMES, [], str(commit)) for commit in range(200)]
    assert orders[7] == draw_order(reversed(NAMES), [], "7")
    assert {order[-1] for order in orders} == set(NAMES)
    assert {order[0] for order in orders} == set(NAMES)


def test_a_heavy_test_that_does_not_fit_is_not_run(pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    heavy\n    environment\n")
    pytester.makepyfile(
        """
        import pytest

        def test_light(): pass

        @pytest.mark.heavy(minutes=1)
        def test_short(): pass

        @pytest.mark.heavy(minutes=3)
        def test_long(): assert False

        @pytest.mark.environment(minutes=1)
        @pytest.mark.heavy(minutes=1)
        def test_installs(): assert False

        @pytest.mark.heavy
        def test_that_states_nothing(): assert False
        """
    )
    run = pytester.runpytest_inprocess("-p", "support.heavy_order", "--heavy-seconds", "90")
    assert run.ret == pytest.ExitCode.OK
    run.stdout.fnmatch_lines(["*3 not run, for want of time*", "*2 passed, 3 not run*"])
    assert not any("skipped" in line for line in run.outlines)


def test_fixtures_end_before_a_heavy_test_that_is_not_run(pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    heavy\n")
    module = """
        import pytest

        @pytest.fixture(scope="module")
        def server():
            yield 1

        @pytest.mark.heavy(minutes=1)
        def test_short_{name}(server): pass

        @pytest.mark.heavy(minutes=3)
        def test_long_{name}(server): assert False
        """
    pytester.makepyfile(**{f"test_{name}": module.format(name=name) for name in "abc"})
    run = pytester.runpytest_inprocess("-p", "support.heavy_order", "--heavy-seconds", "90")
    run.stdout.fnmatch_lines(["*3 passed, 3 not run*"])
    assert run.ret == pytest.ExitCode.OK
