"""A footer that contradicts itself or its pages: a reader would stop early, and a filter would miss the rest."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import UnreadableError, add_filters, probe
from sbbf_tool.parquet.idl.ttypes import Encoding, FileMetaData, PageType, Type
from support.corpus_edits import edit_footer
from support.samples import write_column
from support.tables import each
from verbs.bad_files import assert_refused


@each("num_values", [0, 99, 101, -100, 2**62])
def test_a_chunk_that_counts_other_values_than_rows(plain, tmp_path, num_values):
    def count(metadata: FileMetaData) -> None:
        metadata.row_groups[1].columns[0].meta_data.num_values = num_values

    edit_footer(plain, count)
    work = lambda: add_filters(plain, ["id"], in_place=True)  # noqa: E731
    message = f"the footer states {num_values:,} values in 100 rows"
    assert_refused(work, tmp_path, message=message, hint="", place="column id, row group 1", error=UnreadableError)


@each("physical_type, words", [(Type.INT32, "INT32"), (Type.BYTE_ARRAY, "BYTE_ARRAY"), (99, "type 99"), (None, "no type")])
def test_a_chunk_of_another_type_than_its_column(plain, tmp_path, physical_type, words):
    """From the footer, before a page is read: the pages of the first row group would be in order."""

    def change(metadata: FileMetaData) -> None:
        metadata.row_groups[1].columns[0].meta_data.type = physical_type

    edit_footer(plain, change)
    add_filters(plain, ["score"], in_place=True)
    message = f"the schema states INT64, but the column chunk states {words}"
    for work in (
        lambda: add_filters(plain, ["name", "id"], in_place=True),
        lambda: add_filters(plain, ["name", "id"], in_place=True, dry_run=True),
    ):
        assert_refused(work, tmp_path, message=message, hint="damaged", place="column id, row group 1", error=UnreadableError)


def test_a_chunk_that_ends_between_two_pages(tmp_path):
    """Some readers stop there silently; others read the values of the pages that follow, so the filter must hold them."""
    path = write_column(
        tmp_path / "v.parquet", pa.array(range(4000)), use_dictionary=False, data_page_size=1000, write_batch_size=100, compression="none"
    )
    chunk = pq.read_metadata(path).row_group(0).column(0)
    pages = chunk.total_compressed_size // 20

    def shrink(metadata: FileMetaData) -> None:
        metadata.row_groups[0].columns[0].meta_data.total_compressed_size = pages * 2

    edit_footer(path, shrink)
    assert pq.read_table(path).num_rows == 400
    add_filters(path, ["v"], in_place=True)
    assert not any(value.is_absent for value in probe(path, "v", range(4000)).values)
    assert probe(path, "v", [-1], filters_only=True).is_absent


def test_pages_that_the_footer_takes_for_dictionary_encoded(tmp_path):
    """Where a dictionary grew too large, the pages behind hold their values themselves; the pages know, not the footer."""
    path = write_column(tmp_path / "v.parquet", pa.array([f"{n:020d}" for n in range(3000)]), dictionary_pagesize_limit=1000)

    def claim(metadata: FileMetaData) -> None:
        for stats in metadata.row_groups[0].columns[0].meta_data.encoding_stats:
            if stats.page_type == PageType.DATA_PAGE:
                stats.encoding = Encoding.RLE_DICTIONARY

    edit_footer(path, claim)
    add_filters(path, ["v"], in_place=True)
    assert not any(value.is_absent for value in probe(path, "v", [f"{n:020d}" for n in range(3000)]).values)
