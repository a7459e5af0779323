"""Footers without repetition types: the same values as in pyarrow and DuckDB, or a refusal."""

from __future__ import annotations

import duckdb
import fastparquet
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import UnreadableError, add_filters, probe
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from support.corpus_edits import edit_footer
from support.tables import each
from verbs.bad_files import assert_refused

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon"]


@each("page_version", ["1.0", "2.0"])
@each("use_dictionary", [False, True])
def test_every_value_of_a_column_without_a_repetition_type_is_found(tmp_path, page_version, use_dictionary):
    path = tmp_path / "f.parquet"
    x = pa.field("x", pa.int32(), nullable=False)
    schema = pa.schema([pa.field("s", pa.string(), nullable=False), pa.field("g", pa.struct([x]), nullable=False)])
    table = pa.table({"s": WORDS, "g": [{"x": number} for number in range(5)]}, schema)
    pq.write_table(table, path, use_dictionary=use_dictionary, data_page_version=page_version)

    def leave_out(metadata: FileMetaData) -> None:
        for element in metadata.schema:
            element.repetition_type = None

    edit_footer(path, leave_out)
    assert pq.read_table(path).column("s").to_pylist() == WORDS
    add_filters(path, ["s", "g.x"], in_place=True)
    assert not any(answer.is_absent for answer in probe(path, "s", WORDS).values + probe(path, "g.x", list(range(5))).values)
    assert probe(path, "s", ["zeta"], filters_only=True).is_absent
    assert [duckdb.sql(f"select count(*) from '{path}' where s = '{word}'").fetchall() for word in WORDS] == [[(1,)]] * 5


def test_files_of_fastparquet(tmp_path):
    """It leaves the field out for columns without nulls, but writes levels where the values are strings: every reader takes those for
    a value. Then the page holds as many values as it states, and bytes are left over.
    """
    path = tmp_path / "f.parquet"
    fastparquet.write(str(path), pd.DataFrame({"s": pd.Series(WORDS, dtype=object), "n": range(5)}), has_nulls="infer")
    with ParquetFile.open(path) as file:
        assert {element.repetition_type for element in file.footer.metadata.schema} == {None}
    assert pq.read_table(path).column("s").to_pylist() != WORDS
    work = lambda: add_filters(path, ["n", "s"], in_place=True)  # noqa: E731
    message = "the page has 19 bytes after its last value"
    assert_refused(work, tmp_path, message=message, hint="", place="column s, row group 0, page at byte 4", error=UnreadableError)
    add_filters(path, ["n"], in_place=True)
    assert all(not probe(path, "n", [number]).is_absent for number in range(5))


@each("words", [["", "null", None], [""], ["a", "bb", None, "\0" * 8], [None, ""]])
@each("compression", [None, "GZIP"])
def test_pages_of_fastparquet_are_padded(tmp_path, words, compression):
    """Eight zero bytes follow the values of each page: they are no values, and nothing is wrong with the page."""
    path = tmp_path / "f.parquet"
    frame = pd.DataFrame({"s": pd.Series(words * 50, dtype=object)})
    fastparquet.write(str(path), frame, row_group_offsets=50, compression=compression, has_nulls=True)
    assert pq.read_table(path).column("s").to_pylist() == words * 50
    add_filters(path, ["s"], in_place=True)
    assert not any(probe(path, "s", [word]).is_absent for word in words)
    assert probe(path, "s", ["zeta"], filters_only=True).is_absent
