"""The filter spec: which columns get filters, with what FPP or size, and in which files. Options
and `[[filters]]` are read into it.

    [[filters]]
    paths = "events/**"
    columns = ["user_id", "session"]
    fpp = 0.01

In a `pyproject.toml` the table is `[[tool.sbbf.filters]]`. If several specs name a column of a
file, the last one holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.errors import NoColumnError, UsageError
from sbbf_tool.extension import is_table_name
from sbbf_tool.file.partitions import Predicate
from sbbf_tool.file.table_file import FileName, TableFile
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.hints import suggest
from sbbf_tool.numbers import parse_ratio, parse_size
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.storage.globs import literal_base, matches_any
from sbbf_tool.storage.places import is_url, local_path

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.parquet.footer import Footer

Judge = Literal["existence", "fpp", "size"]


class FilterSpec(Frozen):
    """The filters of files. It can be sent to other processes and machines. Raises UsageError."""

    columns: tuple[str, ...]
    fpp: float = DEFAULT_FPP
    """Target false-positive rate, above 0 and below 1."""
    ndv: int | None = None
    """Number of distinct values per row group to size filters for; if None, the number in the
    data."""
    max_bytes: int | Mapping[str, int] | None = None
    """Maximum bitset bytes per row group, for all columns or by column; 128 MiB if None, and for
    columns that are not named."""
    share_of_data: float | None = None
    """Maximum size of a filter, in bytes per byte of its column chunk; filters of 64 bytes are
    always allowed."""
    paths: tuple[str, ...] = ()
    """Files, folders, globs, URLs and names of tables; empty for every file. `**` matches any
    number of folders."""
    where: str | None = None
    """Predicate on the partitions of the files."""
    folder: str = ""
    """Folder that relative paths start from; the working folder if empty."""
    judge: Judge = "size"
    """What `check` demands of existing filters: nothing (`existence`), the FPP (`fpp`), or also a
    size that is not too large (`size`). With the first two, as for settings of writers, which state
    no size, every column chunk must have a filter.
    """

    def ensure_valid(self) -> None:
        object.__setattr__(self, "columns", as_names(self.columns))
        paths = tuple(local_path(os.fsdecode(path)) for path in as_iterable(self.paths))
        object.__setattr__(self, "paths", paths)
        if not self.columns:
            raise UsageError("no column was given")
        judges = get_args(Judge)
        if self.judge not in judges:
            raise UsageError(f"judge must be one of {', '.join(judges)}, not {self.judge!r}")
        if any("\0" in path for path in self.paths):
            raise UsageError("a path cannot have the character U+0000")
        if self.share_of_data is not None and not 0 < self.share_of_data <= 1:
            raise UsageError(
                f"the share of data must be above 0 and at most 1, not {self.share_of_data}"
            )
        if self.paths and not self.folder:
            object.__setattr__(self, "folder", os.getcwd())
        if isinstance(self.max_bytes, Mapping):
            for most in self.max_bytes.values():
                self._size(most, sizing.MAX_BYTES)
        else:
            self._size(self.max_bytes, sizing.MAX_BYTES)
        if self.where is not None:
            _predicate(self.where)

    def matches(self, file: FileName) -> bool:
        """Return whether the spec is for this file. Raises UsageError if the path lacks a partition
        column of `where`."""
        path = os.fspath(file)
        if self.paths and not matches_any(self.paths, self.folder, path):
            return False
        if self.where is None:
            return True
        predicate = _predicate(self.where)
        if isinstance(file, TableFile):
            return predicate.accepts_values(file.partition, file.unknown, file.partition_types)
        return predicate.accepts(path)

    def of_table(self, name: str) -> FilterSpec | None:
        """Return the spec for all files of the table with this name; None if it does not name the
        table."""
        names = {path.rstrip("/") for path in self.paths}
        is_named = not names or name.rstrip("/") in names
        if is_named or (not is_table_name(name) and matches_any(self.paths, self.folder, name)):
            return replace(self, paths=())
        return None

    def size_for(self, file: ParquetFile, key: ChunkKey) -> Sizing:
        """Return the size of the filter of a column chunk of this file. Raises UsageError for an
        ambiguous name."""
        most = self.max_bytes
        if isinstance(most, Mapping):
            by_column = {}
            for name, size in most.items():
                with suppress(NoColumnError):
                    column = find_column(file.footer.columns, name)
                    by_column[column.index] = size
            most = by_column.get(key[1])
        return self._size(most, file.footer.chunk_meta(*key).bytes)

    def _size(self, max_bytes: int | None, chunk_bytes: int) -> Sizing:
        limits = [sizing.MAX_BYTES if max_bytes is None else max_bytes]
        if self.share_of_data is not None:
            limits.append(max(sizing.MIN_BYTES, int(self.share_of_data * chunk_bytes)))
        return Sizing(self.fpp, self.ndv, min(limits))


def specs_for(specs: Iterable[FilterSpec], file: FileName) -> tuple[FilterSpec, ...]:
    """Return those of the specs that are for this file. Raises UsageError if the path lacks a
    partition column by which one of them selects files."""
    return tuple(spec for spec in specs if spec.matches(file))


def declared_columns(specs: Iterable[FilterSpec]) -> tuple[str, ...]:
    """Return the names of the columns of these specs, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(spec.columns for spec in specs)))


def declare_for_table(declarations: Iterable[FilterSpec], name: str) -> tuple[FilterSpec, ...]:
    """Return the declarations that name this table, for all its files."""
    if not is_url(name) and not is_table_name(name):
        name = os.path.abspath(name)
    specs = (declaration.of_table(name) for declaration in declarations)
    return tuple(spec for spec in specs if spec is not None)


class RequestedFilters(NamedTuple):
    """The filters that specs request for one file."""

    sizes: dict[ChunkKey, Sizing]
    named_columns: tuple[NamedColumn, ...]
    """What the file has under each of the declared names."""
    judges: dict[int, Judge]
    """What is demanded of existing filters, by column."""
    required: frozenset[int]
    """The columns of which every chunk with values must have a filter."""
    without_values: int
    """Number of column chunks that need no filter, and have none, because the footer shows no value
    in them."""


def request_filters(file: ParquetFile, specs: Iterable[FilterSpec]) -> RequestedFilters:
    """Return the filters that these specs, all of which are for the file, request: one for each
    chunk of their columns that has a value, or has a filter already. Raises UsageError for an
    ambiguous name."""
    specs = tuple(specs)
    spec_by_column, required = _choose_specs(file, specs)
    footer = file.footer
    sizes = {}
    without_values = 0
    for key in product(range(footer.num_row_groups), sorted(spec_by_column)):
        row_group, column = key
        has_filter = footer.filter_place(row_group, column) is not None
        if not has_filter and has_no_value(footer, row_group, column):
            without_values += 1
        else:
            sizes[key] = spec_by_column[column].size_for(file, key)
    judges = {column: spec.judge for column, spec in spec_by_column.items()}
    named_columns = file.name_columns(declared_columns(specs))
    return RequestedFilters(sizes, named_columns, judges, required, without_values)


def _choose_specs(
    file: ParquetFile, specs: Iterable[FilterSpec]
) -> tuple[dict[int, FilterSpec], frozenset[int]]:
    """Return the spec that holds for each column of the file that the specs name, by the index of
    the column, and the indexes of those that must have filters.

    The last spec of a column holds, but one that demands only the existence of filters never
    replaces another, which may demand an FPP or a size. Names that the file lacks are left out.
    Raises UsageError for an ambiguous name.
    """
    spec_by_column = {}
    required = set()
    for spec in specs:
        is_required = spec.judge != "size"
        # A required name that is ambiguous is no error here, but a finding of `check`.
        left_out = UsageError if is_required else NoColumnError
        for name in spec.columns:
            with suppress(left_out), file.locate_errors():
                column = find_column(file.footer.columns, name).index
                if column not in spec_by_column or spec.judge != "existence":
                    spec_by_column[column] = spec
                if is_required:
                    required.add(column)
    return spec_by_column, frozenset(required)


def has_no_value(footer: Footer, row_group: int, column: int) -> bool:
    """Return whether the footer shows that a chunk has no value, but at most nulls.

    A footer with rows but no entry, not even nulls, contradicts itself, and shows nothing.
    """
    meta = footer.chunk_meta(row_group, column)
    is_null = meta.has_only_nulls
    if footer.columns[column].is_null_typed and not meta.non_null_values:
        is_null = True
    return is_null and (bool(meta.values) or not footer.num_rows(row_group))


@cache
def _predicate(text: str) -> Predicate:
    return Predicate(text)


class _Key(NamedTuple):
    """A key of a spec in a file: what its values are, and how one is read; None for a value of
    another kind."""

    description: str
    parse: Callable[[object], object]


def _parse_names(value: object) -> tuple[str, ...] | None:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        return None
    if not all(isinstance(name, str) and name for name in names):
        return None
    return tuple(names)


def _parse_number(value: object) -> float | None:
    if isinstance(value, str):
        return parse_ratio(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None


def _parse_count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return None


def _parse_bytes(value: object) -> int | None:
    if isinstance(value, str):
        return parse_size(value)
    return _parse_count(value)


def _parse_sizes(value: object) -> int | dict[str, int] | None:
    if not isinstance(value, dict):
        return _parse_bytes(value)
    sizes = {}
    for name, text in value.items():
        size = _parse_bytes(text)
        if size is None:
            return None
        sizes[name] = size
    return sizes


def _parse_text(value: object) -> str | None:
    if isinstance(value, str) and value:
        return value
    return None


_KEYS = {
    "paths": _Key("a path or glob, or a list of them", _parse_names),
    "columns": _Key("a column or a list of columns", _parse_names),
    "fpp": _Key("a number", _parse_number),
    "ndv": _Key("an integer", _parse_count),
    "max-bytes": _Key(
        "an integer, a size such as 1MiB, or a table of them by column", _parse_sizes
    ),
    "share-of-data": _Key("a number", _parse_number),
    "where": _Key("a predicate in a string", _parse_text),
}
_REQUIRED = ("paths", "columns")


def parse_specs(
    tables: object, path: str, place: str, *, is_named: bool = True
) -> tuple[FilterSpec, ...]:
    """Return the specs in the tables `place`, such as `[[filters]]`, of the file `path`.

    In a file that the user did not name, their paths must be below its folder. Raises UsageError
    with file, table and key.
    """
    if not isinstance(tables, Sequence) or not all(isinstance(table, Mapping) for table in tables):
        raise UsageError(f"filters must be written as tables {place}", file=path)
    folder = os.path.dirname(os.path.abspath(path))
    specs = []
    for number, table in enumerate(tables, start=1):
        try:
            spec = _parse_table(table, folder)
            if not is_named:
                _ensure_below(spec.paths, folder)
        except UsageError as error:
            table_place = f"{place} {number}"
            raise UsageError(error.message, file=path, place=table_place, hint=error.hint) from None
        specs.append(spec)
    return tuple(specs)


def _parse_table(table: Mapping[str, Any], folder: str) -> FilterSpec:
    for key in table:
        if key not in _KEYS:
            raise UsageError(f"unknown key {key!r}", hint=suggest(key, _KEYS))
    for key in _REQUIRED:
        if key not in table:
            raise UsageError(f"key {key!r} is missing")
    values: dict[str, Any] = {}
    for key, value in table.items():
        parsed = _KEYS[key].parse(value)
        if parsed is None:
            raise UsageError(f"{key} must be {_KEYS[key].description}, not {value!r}")
        values[key.replace("-", "_")] = parsed
    return FilterSpec(**values, folder=folder)


def _ensure_below(globs: Iterable[str], folder: str) -> None:
    for glob in globs:
        is_elsewhere = is_url(glob) or is_table_name(glob) or ".." in glob.split("/")
        if is_elsewhere or not _is_below(literal_base(glob, folder), folder):
            reason = (
                f"paths must lie below {folder}, not {glob!r}, because the "
                "configuration file was found, not named"
            )
            raise UsageError(reason, hint="name the file, or move it")


def _is_below(path: str, folder: str) -> bool:
    """Return whether a path is below a folder, as it is written and where its links lead."""
    if os.path.commonpath((path, folder)) != folder:
        return False
    real_folder = os.path.realpath(folder)
    return os.path.commonpath((os.path.realpath(path), real_folder)) == real_folder


def read_specs(path: str | os.PathLike[str]) -> tuple[FilterSpec, ...]:
    """Read the declared filters of a TOML file. Raises UsageError if the file cannot be read, or
    declares no filter."""
    import tomllib

    name = os.fsdecode(path)
    try:
        with open(path, "rb") as stream:
            document = tomllib.loads(stream.read().decode("utf-8-sig"))
    except OSError as error:
        raise UsageError((error.strerror or "unreadable").lower(), file=name) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"not TOML: {error}", file=name) from None
    keys: tuple[str, ...] = ("filters",)
    if os.path.basename(name) == "pyproject.toml":
        keys = ("tool", "sbbf", "filters")
    tables: Any = document
    for key in keys:
        tables = tables.get(key) if isinstance(tables, Mapping) else None
    place = f"[[{'.'.join(keys)}]]"
    if tables is None:
        raise UsageError(f"the file has no table {place}", file=name)
    return parse_specs(tables, name, place)
