"""pyarrow's datasets: prune by statistics only, and report nothing about it."""

from __future__ import annotations

import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sbbf_tool.extensions.engine_runs.dialects import parse_texts
from sbbf_tool.extensions.engine_runs.measure import Counts, Job, QueryCondition, RowDigest


class PyArrowDriver:
    version = pyarrow.__version__

    def __init__(self, request: QueryCondition) -> None:
        self._request = request

    def run(self, job: Job, rows: RowDigest) -> Counts:
        dataset = ds.dataset(job.files) if job.table is None else _open_table(job.table)
        first, *fields = self._request.path
        kind = dataset.schema.field(first).type
        for name in fields:
            kind = kind.field(name).type
        (value,) = parse_texts([self._request.text], kind)
        condition = pc.field(*self._request.path) == value
        scanner = dataset.scanner(filter=condition, batch_readahead=1, fragment_readahead=1)
        with rows.timed():
            rows.add_batches(scanner.to_batches())
        return Counts()


def _open_table(path: str) -> ds.Dataset:
    """Return a Delta table as a dataset. Raises ImportError without the package deltalake."""
    from deltalake import DeltaTable

    return DeltaTable(path).to_pyarrow_dataset()
