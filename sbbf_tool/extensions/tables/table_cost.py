"""The cost of a change of a table, before it starts: files, bytes, and the filters, estimated from a few footers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sbbf_tool.bloom.sizing import MAX_BYTES, MIN_BYTES, bytes_for
from sbbf_tool.editing.choice import choose_chunks
from sbbf_tool.errors import NoColumnError, SbbfError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import TableFiles
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.hints import Rebuild
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.running.selection import Selection

_SAMPLE_FILES = 8


@dataclass(frozen=True, slots=True)
class TableCost:
    """What a change of a table costs."""

    files: int
    """Number of files that a commit can replace."""
    bytes: int
    """Bytes of these files, as the table records them."""
    filter_bytes: int | None
    """Upper estimate of the bytes of the new filters: every value counts as distinct. None if it cannot be estimated."""
    sampled_files: int
    """Number of files of whose footers the estimate is made."""
    shares_blocks: bool
    """Whether a copy shares the blocks of the old file, as the file system can."""


def estimate_cost(selection: Selection, spec: FilterSpec | None = None, keys: KeysLike = None, rebuild: Rebuild | None = None) -> TableCost:
    """Estimate the cost of a change of the selected files of a table; `spec` is that of new filters."""
    files = [live for live in selection.live_files() if not live.unchangeable]
    total = sum(live.bytes or 0 for live in files)
    sample = files[:: max(1, len(files) // _SAMPLE_FILES)][:_SAMPLE_FILES]
    table_files = selection.table_files()
    estimate = None
    if spec is not None:
        sizes = [(live.bytes or 0, _filter_bytes(table_files, live.path, spec, keys, rebuild)) for live in sample]
        known_sizes = [(size, filter_bytes) for size, filter_bytes in sizes if filter_bytes is not None and size]
        if known_sizes:
            estimate = int(total * sum(filter_bytes for _, filter_bytes in known_sizes) / sum(size for size, _ in known_sizes))
    shares_blocks = bool(files) and places.shares_blocks(files[0].path)
    return TableCost(len(files), total, estimate, len(sample), shares_blocks)


def _filter_bytes(table_files: TableFiles, path: str, spec: FilterSpec, keys: KeysLike, rebuild: Rebuild | None) -> int | None:
    """Return the bytes of a file's new filters if all values are distinct; None if the file cannot have them."""
    try:
        with ParquetFile.open(table_files.file(path), keys) as file:
            total = 0
            for key, size in choose_chunks(file, spec, rebuild).sizes.items():
                values = size.ndv or file.footer.chunk_meta(*key).most_values or 0
                total += max(MIN_BYTES, min(bytes_for(max(values, 1), size.fpp), size.largest, MAX_BYTES))
            return total
    except NoColumnError:
        return 0
    except SbbfError:
        return None
