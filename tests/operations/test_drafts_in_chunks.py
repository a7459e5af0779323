"""Filters where the first draft has them: at the beginning of their column chunks, before the first page."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool.bloom.dialects import DRAFTS
from sbbf_tool.errors import RefusedError
from sbbf_tool.operations.add import add_filters
from sbbf_tool.operations.check import check
from sbbf_tool.operations.explain import explain
from sbbf_tool.operations.inspect import inspect
from sbbf_tool.operations.probe import probe
from sbbf_tool.operations.prune import prune
from sbbf_tool.operations.remove import remove_filters
from sbbf_tool.operations.repair import repair
from sbbf_tool.operations.resize import resize_filters
from sbbf_tool.operations.verify import verify
from sbbf_tool.rules.check_policy import Policy
from support.corpus_edits import edit_footer
from support.draft_files import write_draft_in_chunks
from support.tables import each

pytestmark = pytest.mark.slow

COLUMNS = ("id", "k", "name", "maybe")
"""Among them the first two and the last two but one of the file, so that filters follow pages directly."""
FIRST_DRAFTS = [dialect.name for dialect in DRAFTS if dialect.name.startswith("draft1")]
SIZES = pytest.mark.parametrize("in_size", [False, True], ids=["size of the pages", "size with the filter"])


@pytest.fixture(scope="module")
def plain(fixtures: Path) -> Path:
    return fixtures / "pyarrow-plain.parquet"


def write(plain: Path, folder: Path, dialect: str, in_size: bool) -> Path:
    path = folder / "first.parquet"
    write_draft_in_chunks(plain, COLUMNS, path, dialect, in_size=in_size)
    return path


@SIZES
@each("dialect", FIRST_DRAFTS)
def test_inspect_verify_and_check(plain: Path, tmp_path: Path, dialect: str, in_size: bool):
    path = write(plain, tmp_path, dialect, in_size)
    report = inspect(path)
    assert [row.dialect for row in report.filters] == [dialect] * 16
    assert report.unreferenced == ()
    assert all(row.unreadable is None for row in report.filters)
    results = verify(path)
    assert [result.dialect for result in results.filters if result.is_verified] == [dialect] * 16
    assert {finding.rule for finding in results.findings} == {"draft-dialect", "missing-length"}
    assert {finding.rule for finding in check(path).findings} == {"draft-dialect", "missing-length", "large-for-chunk"}
    assert pq.read_table(path).equals(pq.read_table(plain))


@SIZES
@each("dialect", FIRST_DRAFTS)
def test_queries_in_the_dialect_and_without(plain: Path, tmp_path: Path, dialect: str, in_size: bool):
    path = write(plain, tmp_path, dialect, in_size)
    for column in COLUMNS:
        values = pq.read_table(plain)[column].drop_null().unique().to_pylist()[::9]
        assert not any(value.is_absent for value in probe(path, column, values, dialect=dialect).values)
    assert {row.answer for row in probe(path, "id", [-1], dialect=dialect).values[0].row_groups} == {"absent"}
    assert {row.answer for row in probe(path, "id", [-1]).values[0].row_groups} == {"cannot say"}
    assert {row.filter for row in explain(path, "name", "nobody").row_groups} == {"cannot say"}
    assert prune([path], "name", ["nobody"]).skipped_by_filter == 0


@SIZES
@each("dialect", FIRST_DRAFTS)
def test_replace_and_rebuild_give_todays_filters(plain: Path, tmp_path: Path, dialect: str, in_size: bool):
    path = write(plain, tmp_path, dialect, in_size)
    add_filters(path, COLUMNS, rebuild="all", output=tmp_path / "replaced.parquet")
    repair(path, output=tmp_path / "repaired.parquet")
    for name in ("replaced", "repaired"):
        path = tmp_path / f"{name}.parquet"
        assert verify(path).is_sound
        assert [result.dialect for result in verify(path).filters] == [None] * 16
        assert probe(path, "name", ["nobody"]).is_absent
        assert pq.read_table(path).equals(pq.read_table(plain))
        assert not {finding.rule for finding in check(path).findings} - {"large-for-chunk"}


@SIZES
@each("compact", [False, True])
@each("columns", {"all": (), "one": ("id",)})
def test_remove(plain: Path, tmp_path: Path, columns: tuple[str, ...], compact: bool, in_size: bool):
    """The bytes of a filter between pages stay in the file, since pages do not move, and are in_size as unreferenced."""
    path = write(plain, tmp_path, "draft1-page", in_size)
    report = remove_filters(path, columns, compact=compact, in_place=True)
    assert report.unreferenced_bytes
    assert {row.column for row in inspect(path).filters} == set(COLUMNS) - set(columns or COLUMNS)
    assert "overlapping-filter" not in {finding.rule for finding in check(path).findings}
    assert pq.read_table(path).equals(pq.read_table(plain))


def test_repair_can_drop_and_resize_is_refused(plain: Path, tmp_path: Path):
    path = write(plain, tmp_path, "draft1-raw", in_size=False)
    content = path.read_bytes()
    with pytest.raises(RefusedError, match=r"is that of a draft of the format: draft1-raw or branch-12; repair can rebuild it"):
        resize_filters(path, fpp=0.1, in_place=True)
    assert path.read_bytes() == content
    assert {step.fix for step in repair(path, drop=True, in_place=True).steps} == {"drop"}
    assert inspect(path).filters == ()


def test_a_filter_is_not_taken_for_a_page(plain: Path, tmp_path: Path):
    """parquet-mr's first commit with filters (d473d17) stated the filter's offset as that of the first page."""
    path = write(plain, tmp_path, "draft1-raw", in_size=False)

    def state_the_filter(metadata) -> None:
        for row_group in metadata.row_groups:
            for chunk in row_group.columns:
                chunk.meta_data.data_page_offset = chunk.meta_data.bloom_filter_offset or chunk.meta_data.data_page_offset

    edit_footer(path, state_the_filter)
    assert all("does not state the size of its page" in (result.problem or "") for result in verify(path).filters)
    report = probe(path, "id", [-1], dialect="draft1-raw")
    assert {row.answer for row in report.values[0].row_groups} == {"cannot say"}
    assert "overlapping-filter" in {finding.rule for finding in check(path, Policy(quick=True)).findings}
