"""Commands over many objects of a store, on each runner: one URL, a prefix, a glob of URLs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from support.buckets import forget_clients

NAMES = ("lake/day=1/a.parquet", "lake/day=1/b.parquet", "lake/day=2/c.parquet")

Sbbf = Callable[..., tuple[int, list[dict], dict | None, str]]


@pytest.fixture
def lake(moto_bucket, tmp_path):
    """Three objects with the values 0 to 9, 10 to 19 and 20 to 29, and one that is broken."""
    path = tmp_path / "one.parquet"
    for number, name in enumerate(NAMES):
        pq.write_table(
            pa.table({"id": list(range(10 * number, 10 * number + 10)), "x": [number] * 10}), path
        )
        moto_bucket.put(name, path.read_bytes())
    moto_bucket.put("lake/day=3/torn.parquet", path.read_bytes()[:-20])
    return moto_bucket


@pytest.fixture(
    params=["local", pytest.param("spark", marks=[pytest.mark.engines, pytest.mark.heavy])]
)
def sbbf(request, lake, capfd) -> Sbbf:
    """Run a command on a runner; return its exit code, the documents of files in order, the
    summary, and standard error."""
    runner: tuple[str, ...] = ()
    if request.param == "spark":
        request.getfixturevalue("spark_with_store")
        runner = ("--on", "spark")

    def sbbf(command: str, *arguments: object) -> tuple[int, list[dict], dict | None, str]:
        forget_clients()
        capfd.readouterr()
        code = run([command, *map(str, arguments), *runner, "--format", "json"])
        output = capfd.readouterr()
        documents = list(map(json.loads, output.out.splitlines()))
        files = sorted(
            (document for document in documents if document["schema"] != "sbbf.summary"),
            key=lambda document: str(document.get("file")),
        )
        return (
            code,
            files,
            next(
                (document for document in documents if document["schema"] == "sbbf.summary"), None
            ),
            output.err,
        )

    return sbbf


@pytest.fixture
def spark_with_store(moto_bucket, spark) -> Iterator[None]:
    """Spark, whose Python processes get the environment by which this one finds the store."""
    names = [name for name in os.environ if name.startswith("AWS_")]
    spark.sparkContext.environment.update({name: os.environ[name] for name in names})
    yield
    for name in names:
        del spark.sparkContext.environment[name]


def urls(lake, *names: str) -> list[str]:
    return [lake.url(name) for name in names]


@pytest.mark.heavy
def test_prefixes_globs_and_urls(lake, sbbf):
    for patterns, expected in (
        ([lake.url("lake/")], [*NAMES, "lake/day=3/torn.parquet"]),
        ([lake.url("lake")], [*NAMES, "lake/day=3/torn.parquet"]),
        ([lake.url("lake/day=1/*.parquet")], NAMES[:2]),
        ([lake.url("lake/day=[12]/*.parquet")], NAMES),
        (urls(lake, NAMES[2], NAMES[0]), [NAMES[0], NAMES[2]]),
        ([lake.url("lake/day=1/"), lake.url(NAMES[2])], NAMES),
    ):
        code, files, summary, _ = sbbf("inspect", *patterns)
        assert [document["file"] for document in files] == urls(lake, *expected)
        assert summary is not None
        assert (code, summary["files"]) == (
            3 if "lake/day=3/torn.parquet" in expected else 0,
            len(expected),
        )
    code, files, summary, _ = sbbf("inspect", lake.url(NAMES[0]))
    assert (code, [document["file"] for document in files], summary) == (
        0,
        [lake.url(NAMES[0])],
        None,
    )
    code, files, summary, _ = sbbf("inspect", lake.url("lake/"), "--where", "day < 2")
    assert (code, [document["file"] for document in files]) == (0, urls(lake, *NAMES[:2]))
    code, files, _, output = sbbf("inspect", lake.url("none/*.parquet"))
    assert (code, files) == (3, [])
    assert output.count("\n") == 1


def test_what_is_done_to_files_is_done_to_objects(lake, sbbf):
    good = lake.url("lake/day=[12]/*.parquet")
    before = [lake.get(name) for name in NAMES]
    code, files, summary, output = sbbf("add-filter", lake.url("lake/"), "-c", "id", "--in-place")
    assert (code, summary and summary["totals"]["filters"]) == (3, 3), output
    assert f"{lake.url('lake/day=3/torn.parquet')}: " in output
    assert [len(document.get("filters", ())) for document in files] == [1, 1, 1, 0]
    assert all(sbbf_tool.verify(url).is_sound for url in urls(lake, *NAMES))

    code, files, summary, _ = sbbf("add-filter", good, "-c", "id", "--in-place")
    assert (code, [document["skipped"] for document in files], summary and summary["skipped"]) == (
        0,
        [1] * 3,
        3,
    )
    code, files, _, _ = sbbf("verify", good)
    assert (
        code,
        [[result["false_negatives"] for result in document["filters"]] for document in files],
    ) == (0, [[0]] * 3)
    code, files, _, _ = sbbf("check", good, "--require", "id")
    assert (code, [document["failed"] for document in files]) == (0, [False] * 3)
    code, files, _, _ = sbbf("probe", good, "-c", "id", "--value", "15", "--value", "25")
    assert code == 0
    assert [
        {"15", "25"} & {hit["value"] for hit in document["hits"]} >= values
        for document, values in zip(files, (set(), {"15"}, {"25"}), strict=True)
    ]
    code, files, _, _ = sbbf("explain", good, "-c", "id", "--value", "15")
    assert (code, [document["absent"] for document in files]) == (0, [True, False, True])
    code, _, summary, _ = sbbf("remove-filter", good, "--in-place")
    assert (code, summary and summary["done"]) == (0, 3)
    assert [lake.get(name) for name in NAMES] == before


def test_a_second_run_with_a_state_lists_the_objects_and_reads_none(lake, sbbf, tmp_path):
    good = lake.url("lake/day=[12]/*.parquet")
    for arguments in (
        ["add-filter", good, "-c", "id", "--in-place"],
        ["verify", good],
        ["check", good],
    ):
        code, first, summary, output = sbbf(*arguments, "--state", tmp_path / "state.sqlite")
        assert (code, summary and summary["unchanged"]) == (0, 0), output
        lake.proxy.forget()
        code, second, summary, _ = sbbf(*arguments, "--state", tmp_path / "state.sqlite")
        assert (code, summary and summary["unchanged"]) == (0, 3)
        # One request finds out whether the name is a table or an object, the other lists.
        assert set(lake.proxy.operations()) == {"ListObjectsV2"}
        assert arguments[0] == "add-filter" or first == second
