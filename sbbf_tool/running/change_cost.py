"""What the change of a table costs, estimated before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sbbf_tool.bloom.sizing import MAX_BYTES, MIN_BYTES, bytes_for
from sbbf_tool.editing.choice import choose_chunks
from sbbf_tool.errors import NoColumnError, SbbfError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.table_file import TableFile
    from sbbf_tool.hints import Rebuild
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.running.plan import PlanPart
    from sbbf_tool.running.table import LiveFile

_SAMPLE_FILES = 8
"""Number of files from whose footers the bytes of new filters are estimated, as if every value were
distinct."""


class ChangeCost(Frozen):
    """The files of a table that a change may replace, and what it adds."""

    files: int
    bytes: int
    """Bytes of these files, which their copies may take again."""
    filter_bytes: int | None
    """Bytes of new filters, at most; None if that is unknown."""
    sampled_files: int
    """Number of files from which they are estimated."""
    shares_blocks: bool
    """Whether copies share the blocks of the old files on the disk."""


def estimate_cost(part: PlanPart) -> ChangeCost:
    """Estimate what a part of a run costs that changes a table. It reads the footers of a few
    files."""
    selection = part.selection
    files = [live for live in selection.live_files() if not live.unchangeable]
    total = sum(live.bytes or 0 for live in files)
    sample = files[:: max(1, len(files) // _SAMPLE_FILES)][:_SAMPLE_FILES]
    share = _filter_share(part, sample)
    filter_bytes = None
    if share is not None:
        filter_bytes = int(total * share)
    shares_blocks = bool(files) and places.shares_blocks(files[0].path)
    return ChangeCost(len(files), total, filter_bytes, len(sample), shares_blocks)


def _filter_share(part: PlanPart, sample: Sequence[LiveFile]) -> float | None:
    """Return the bytes of new filters for each byte of these files; None if they are known for none
    of the files."""
    new_filters = part.verb.new_filters()
    table = part.selection.table
    if new_filters is None or part.work.edit is None or table is None:
        return None
    table_files = part.selection.table_files()
    data_bytes = 0
    filter_bytes = 0
    for live in sample:
        with table.access.through():
            estimate = _filter_bytes(table_files.file(live.path), part.work.context, *new_filters)
        if estimate is not None and live.bytes:
            data_bytes += live.bytes
            filter_bytes += estimate
    return filter_bytes / data_bytes if data_bytes else None


def _filter_bytes(
    path: TableFile, context: Context, spec: FilterSpec, rebuild: Rebuild | None
) -> int | None:
    """Return the bytes of a file's new filters if all values are distinct; None if the file cannot
    have them."""
    try:
        with ParquetFile.open(path, replace(context, strict=True)) as file:
            total = 0
            for key, size in choose_chunks(file, spec, rebuild).sizes.items():
                values = size.ndv or file.footer.chunk_meta(*key).most_values or 0
                wanted = bytes_for(max(values, 1), size.fpp)
                total += max(MIN_BYTES, min(wanted, size.largest, MAX_BYTES))
            return total
    except NoColumnError:
        return 0
    except SbbfError:
        return None
