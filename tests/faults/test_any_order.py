"""Adding, removing, resizing, repairing, in any order: the rows stay what they are, and no filter
ever denies a value that is there."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sbbf_tool import add_filters, inspect, remove_filters, repair, resize_filters, verify

COLUMNS = ("id", "name", "score")
ROWS = 60


def table() -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "id": pa.array([n * 7 for n in numbers], pa.int64()),
            "name": pa.array([f"name {n % 25}" if n % 4 else None for n in numbers]),
            "score": pa.array([(n - 30) / 4 for n in numbers], pa.float64()),
        }
    )


class AnyOrder(RuleBasedStateMachine):
    """One file of two row groups, whose own writer may have given `id` filters."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="sbbf-test-"))
        self.path = self.folder / "a.parquet"

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(theirs=st.booleans())
    def write(self, theirs: bool) -> None:
        options = {"bloom_filter_options": {"id": {"ndv": 100, "fpp": 0.1}}} if theirs else {}
        pq.write_table(table(), self.path, row_group_size=ROWS // 2, **options)
        self.original = self.path.read_bytes()
        self.with_filter = {"id"} if theirs else set()
        self.is_tail = not theirs
        """All filters are ours, and whatever was done since can be cut back."""

    @rule(
        columns=st.sets(st.sampled_from(COLUMNS), min_size=1),
        fpp=st.sampled_from([0.3, 0.01, 1e-6]),
        append=st.booleans(),
    )
    def add(self, columns: set[str], fpp: float, append: bool) -> None:
        add_filters(
            self.path, columns, fpp=fpp, in_place=True, append=append, rebuild="all", jobs=1
        )
        self.with_filter |= columns

    @precondition(lambda self: self.with_filter)
    @rule(columns=st.sets(st.sampled_from(COLUMNS)), compact=st.booleans())
    def remove(self, columns: set[str], compact: bool) -> None:
        chosen = columns & self.with_filter
        before = self.path.stat().st_size
        method = remove_filters(self.path, chosen, compact=compact, in_place=True).method
        self.with_filter -= chosen or set(COLUMNS)
        if not self.with_filter and self.is_tail:
            assert method == "truncated"
            assert self.path.read_bytes() == self.original
        elif method == "truncated":
            assert self.path.stat().st_size < before
        else:
            self.is_tail = False

    @precondition(lambda self: self.with_filter)
    @rule(size=st.sampled_from([64, 128, 1024]))
    def resize(self, size: int) -> None:
        before = [row.bitset_bytes for row in inspect(self.path).filters]
        resize_filters(self.path, max_bytes=size, in_place=True)
        assert [row.bitset_bytes for row in inspect(self.path).filters] == [
            min(each, size) for each in before
        ]

    @rule(drop=st.booleans(), quick=st.booleans())
    def repair(self, drop: bool, quick: bool) -> None:
        before = self.path.read_bytes()
        report = repair(self.path, drop=drop, quick=quick, in_place=True, jobs=1)
        # Our own filters have no false negatives; they may be full where a small size was requested
        # or the file was edited so.
        assert {step.fix for step in report.steps} <= (set() if drop else {"rebuild"})
        assert report.steps or self.path.read_bytes() == before
        assert repair(self.path, drop=drop, quick=quick, dry_run=True).is_clean

    @invariant()
    def rows_and_values_are_there(self) -> None:
        if not self.path.exists():
            return
        assert pq.read_table(self.path).equals(table())
        report = verify(self.path)
        assert {result.column for result in report.filters} == self.with_filter
        assert len(report.filters) == 2 * len(self.with_filter)
        assert all(result.is_verified for result in report.filters)
        assert [path.name for path in self.folder.iterdir()] == ["a.parquet"]


AnyOrder.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=12,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
test_any_order = AnyOrder.TestCase
