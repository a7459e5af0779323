"""`spark.read.format("sbbf")`: see `SbbfDataSource`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from sbbf_tool.errors import UsageError
from sbbf_tool.running.discover import pack, path_of
from sbbf_tool.spark.listing import ensure_exists
from sbbf_tool.spark.views import VIEW, ReadRequest, column_names, parse_options, schema_of_view
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceWriter
    from pyspark.sql.types import StructType

    from sbbf_tool.reports.rows import ListedFile


class SbbfDataSource(DataSource):
    """The Bloom filters of Parquet files as a table.

    The table has one row per filter (file, row group and column), with everything that `sbbf
    inspect` reports:

        filters = spark.read.format("sbbf").load("/lake/events")
        filters.groupBy("column").agg({"estimated_fpp": "avg", "bitset_bytes": "sum"}).show()

    Spark finds the format if the package is installed; otherwise `sbbf_tool.spark.register(spark)`
    registers it in a session. A path is a Parquet file, a folder (all Parquet files below it) or a
    glob, and `load` takes one or more. Executors read the files, so they need the same paths, and
    the package.

    Columns: `file`; for the chunk, `row_group`, `column`, types, bytes, values and `has_filter`;
    for the filter, offset, sizes, `fill_ratio`, `estimated_fpp`, `estimated_ndv`, warnings and, if
    it contradicts the format, why it is `unreadable`; for the file, `file_bytes`, `created_by`,
    `rows`, `row_groups`, ...; and `status`: `ok`, or, for a file that could not be read (damaged,
    empty, encrypted), `failed` or `refused`, with the `reason`. Such a file has one row, and by
    default does not fail the query.

    A query reads only what it needs. Files are listed on the driver, and only footers and filters
    are read, never data:

    - `.option("columns", "user_id,session")` reads only these columns; a file that lacks one has a
      row with the reason.
    - `.option("where", "dt >= '2026-01-01' and region = 'eu'")` selects files by their partition
      folders.
    - `.schema("file string, column string, bitset_bytes long")` requests only these columns;
      bitsets are read only for the fill ratio, the estimates and `unreferenced`.

    A path that does not exist ends `load` with PATH_NOT_FOUND. In SQL, the format is a view,
    because Spark passes no options to the tables of a catalog:

        CREATE TEMPORARY VIEW filters USING sbbf OPTIONS (path '/lake/events')

    Further options:

    - `bitsets` (`false`): read only footers and headers; the fill ratio, the estimates and
      `unreferenced` stay empty.
    - `all` (`true`): also one row for every column chunk without a filter, and for files without
      row groups.
    - `rules` (`true`): instead, one row per finding of `sbbf check`: `rule`, `severity`, `file`,
      `column`, `message`, `evidence`, and the `fix`: the function of `sbbf_tool` that makes it
      (`verb`), the `files`, and the parameters. `select` and `ignore` name rules or groups; `quick`
      skips the rules that read data; `require`, `maxFpp`, `maxBytesShare`, `minNdv` and
      `minChunkBytes` are the limits of `sbbf check`; `maxPageBytes` is the maximum decompressed
      size of a page.
    - The name of a view of an extension (`true`): instead, the rows of that view.
    - `errors`: `row` (default), or `fail`: a file that cannot be read fails the query.
    - `filesPerTask`: the maximum number of files per task; a task has fewer if they are large and
      their data is read.

    Write lists as `a,b`, or as `["a", "b,c"]` if a name contains a comma.
    """

    @classmethod
    def name(cls) -> str:
        return "sbbf"

    def schema(self) -> str:
        return schema_of_view(self._request().view)

    def reader(self, schema: StructType) -> DataSourceReader:
        request = self._request()
        # Names of columns do not depend on case, as elsewhere in Spark.
        names = {name.lower(): name for name in column_names(request.view)}
        for name in schema.fieldNames():
            if name.lower() not in names:
                raise UsageError(
                    f"there is no column {name!r}",
                    hint=f"the columns are {', '.join(names.values())}",
                )
        return _Reader(request, tuple(names[name.lower()] for name in schema.fieldNames()))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        raise UsageError(
            "sbbf cannot be written, only read",
            hint=f"{VIEW}, or add filters with `sbbf_tool.spark.run`",
        )

    def _request(self) -> ReadRequest:
        request = parse_options(self.options)
        for name in request.names:
            ensure_exists(places.absolute(path_of(name)))
        return request


@dataclass
class FilesPartition(InputPartition):
    """The files of one task."""

    paths: tuple[str, ...]


class _Reader(DataSourceReader):
    """Reader that lists files on the driver and reads them on executors.

    It takes no conditions from Spark: a DataFrame that is filtered again, by a condition that Spark
    does not push, would get the rows of the condition that it pushed before.
    """

    def __init__(self, request: ReadRequest, columns: tuple[str, ...]) -> None:
        self._request = request
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        # Executors would resolve relative paths against a different folder.
        names = [places.absolute(path_of(name)) for name in self._request.names]
        files = self._request.view.files(names, self._request.where)
        reads_data = self._request.view.reads_data

        def cost_of(file: ListedFile) -> int:
            return (file.bytes or 0) if reads_data else 0

        tasks = pack(files, cost_of, most=self._request.files_per_task)
        return [FilesPartition(tuple(file.path for file in task)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        if not isinstance(partition, FilesPartition):
            return  # Spark creates a task without files for a query that needs no file.
        view = self._request.view
        rows = view.rows if self._request.fails else view.rows_or_reason
        for path in partition.paths:
            for row in rows(path, self._columns):
                yield tuple(row.get(column) for column in self._columns)
