"""What a user may write. The type checkers must know every type: `assert_type` fails on `Any`."""

import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import assert_type

import sbbf_tool
from sbbf_tool.extensions.paimon import (
    add_paimon_index,
    build_paimon_index,
    inspect_paimon,
    probe_paimon,
    remove_paimon_index,
    verify_paimon,
)
from sbbf_tool.extensions.paimon.reports import (
    AddIndexReport,
    BuildReport,
    PaimonInspectReport,
    PaimonProbeReport,
    PaimonVerifyReport,
    RemoveIndexReport,
)
from sbbf_tool.reports.change import BuiltFilter
from sbbf_tool.reports.engines import EnginesReport
from sbbf_tool.reports.findings import CheckReport, Finding, VerifyReport
from sbbf_tool.reports.probe import ProbeReport
from sbbf_tool.verbs import AddFilter, Advise, Verify
from sbbf_tool.verbs.add_filter import AddReport
from sbbf_tool.verbs.advise import AdviceReport, ColumnAdvice
from sbbf_tool.verbs.explain import ExplainReport, RowGroupExplanation
from sbbf_tool.verbs.inspect import FilterReport, InspectReport
from sbbf_tool.verbs.prune import PruneReport
from sbbf_tool.verbs.remove_filter import RemoveReport
from sbbf_tool.verbs.repair import RepairReport
from sbbf_tool.verbs.resize import ResizeReport


def read(path: Path) -> None:
    report = sbbf_tool.inspect(path, "user_id")
    assert_type(report, InspectReport)
    assert_type(report.filters, tuple[FilterReport, ...])
    assert_type(report.filters[0].fill_ratio, float | None)
    assert_type(repr(report), str)
    assert_type(sbbf_tool.inspect(io.BytesIO()), InspectReport)
    assert_type(sbbf_tool.probe(path, "user_id", [42]), ProbeReport)
    assert_type(sbbf_tool.probe(path, "user_id", [42]).is_absent, bool)
    assert_type(sbbf_tool.verify(path).is_sound, bool)
    assert_type(sbbf_tool.verify(path), VerifyReport)
    policy = sbbf_tool.Policy(
        sbbf_tool.Limits(
            filters=(sbbf_tool.FilterSpec(("user_id",), judge="existence"),), max_fpp=0.01
        ),
        fail_on="warning",
    )
    assert_type(sbbf_tool.check(path, policy), CheckReport)
    assert_type(sbbf_tool.check(path).findings, tuple[Finding, ...])
    assert_type(sbbf_tool.explain(path, "user_id", 42), ExplainReport)
    assert_type(sbbf_tool.explain(path, "user_id", 42).row_groups, tuple[RowGroupExplanation, ...])
    assert_type(sbbf_tool.advise([path, "lake/"], queries=["user_id = 42"]), AdviceReport)
    assert_type(sbbf_tool.advise(path).columns, tuple[ColumnAdvice, ...])
    # pyarrow has no types, and a dataset of it is one of the forms of the first argument.
    assert_type(sbbf_tool.prune(path, "user_id", [42]), PruneReport)  # pyright: ignore[reportUnknownMemberType]
    assert_type(sbbf_tool.engines(), EnginesReport)


def change(path: Path) -> None:
    report = sbbf_tool.add_filters(path, ["user_id"], in_place=True, fpp=0.001)
    assert_type(report, AddReport)
    assert_type(report.filters, tuple[BuiltFilter, ...])
    assert_type(report.bytes_added, int)
    assert_type(sbbf_tool.resize_filters(path, max_bytes=64, output="new.parquet"), ResizeReport)
    assert_type(sbbf_tool.remove_filters(path, in_place=True), RemoveReport)
    assert_type(sbbf_tool.repair(path, in_place=True, dry_run=True), RepairReport)


def many(path: Path) -> None:
    paths = [path, "lake/*.parquet"]
    assert_type(Verify("user_id").columns, Iterable[str])
    for row in sbbf_tool.run(Verify(), paths, where="dt >= '2026-01-01'", jobs=2):
        assert_type(row.report, VerifyReport | None)
        assert_type(row.exit_code, int)
    assert_type(sbbf_tool.run(Advise(["user_id = 42"]), paths, jobs=2), AdviceReport)
    add, edit = AddFilter(sbbf_tool.FilterSpec(("user_id",))), sbbf_tool.Edit(in_place=True)
    assert_type(sbbf_tool.run(add, paths, edit=edit), sbbf_tool.Summary)
    assert_type(
        [commit.version for commit in sbbf_tool.run(add, paths, edit=edit).commits], list[str]
    )
    with sbbf_tool.run(add, paths, edit=edit, errors="return") as rows:
        for changed in rows:
            assert_type(changed.report, AddReport | None)


def paimon(path: Path) -> None:
    assert_type(inspect_paimon(path), PaimonInspectReport)
    assert_type(probe_paimon(path, "customer", ["a"]), PaimonProbeReport)
    assert_type(verify_paimon(path), PaimonVerifyReport)
    assert_type(build_paimon_index(path, ["customer:fpp=0.01"]), BuildReport)
    assert_type(add_paimon_index(path, ["customer"], dry_run=True), AddIndexReport)
    assert_type(remove_paimon_index(path, ["customer"], dry_run=True), RemoveIndexReport)


def in_memory() -> None:
    bloom = sbbf_tool.BloomFilter.sized_for(ndv=1_000_000, fpp=0.01)
    assert_type(bloom, sbbf_tool.BloomFilter)
    bloom.insert(b"a value's plain bytes")
    assert_type(b"another" in bloom, bool)
    assert_type(bloom.fpp, float)


try:
    read(Path(sys.argv[1]))
except (
    sbbf_tool.UsageError,
    sbbf_tool.UnreadableError,
    sbbf_tool.RefusedError,
    sbbf_tool.WriteError,
) as error:
    assert_type(error.message, str)
