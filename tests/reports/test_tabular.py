"""Every report of rows as a table: in pyarrow, polars, DuckDB and pandas, in a notebook, and at the
prompt."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sbbf_tool
from sbbf_tool.extensions.conformance import make_corpus, run_conformance
from sbbf_tool.extensions.engine_runs import run_engines
from sbbf_tool.extensions.index.build import build_index
from sbbf_tool.extensions.paimon import (
    add_paimon_index,
    build_paimon_index,
    inspect_paimon,
    probe_paimon,
    remove_paimon_index,
    verify_paimon,
)
from sbbf_tool.extensions.report import write_report
from sbbf_tool.extensions.tables.copies import AbandonedCopy, AbandonedReport
from sbbf_tool.reports.findings import RulesReport
from sbbf_tool.reports.probe import RowsReport
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.rules.catalog import Policy, list_rules
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.rules.rule import Limits
from sbbf_tool.verbs.inspect import InspectReport
from support.defects import missing_length, write_sound
from support.tables import each

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILTERS = FIXTURES / "pyarrow-filters.parquet"
TABLE = FIXTURES / "paimon" / "orders"


def report_types() -> list[type[Tabular]]:
    paths = [
        path
        for path in Path(sbbf_tool.__path__[0]).rglob("*.py")
        if re.search(r"^class .*(Tabular|ChangeReport)\)", path.read_text(), re.M)
    ]
    names = [
        ".".join(path.with_suffix("").parts[path.parts.index("sbbf_tool") :]) for path in paths
    ]
    members = [
        member
        for name in names
        for member in vars(importlib.import_module(name)).values()
        if inspect.isclass(member)
    ]
    return sorted(
        {each for each in members if issubclass(each, Tabular) and not inspect.isabstract(each)},
        key=name_of,
    )


def name_of(report: type) -> str:
    """Return the name of a report behind its module, or its extension."""
    parts = report.__module__.split(".")
    return f"{parts[2] if 'extensions' in parts else parts[-1]}.{report.__name__}"


def wrong_length(folder: Path) -> Path:
    path = folder / "defect.parquet"
    write_sound(path)
    missing_length(path)
    return path


def copy(folder: Path) -> Path:
    return Path(shutil.copy(FILTERS, folder / "copy.parquet"))


def paimon_file(folder: Path) -> Path:
    return next(iter(sorted(TABLE.rglob("*.parquet"))))


MAKERS: dict[str, Callable[[Path], Any]] = {
    "tables.AbandonedReport": lambda folder: AbandonedReport(
        "orders",
        (AbandonedCopy("orders/sbbf-0011-2233-part.parquet", "0011", 90_000.0),),
        deleted=False,
    ),
    "add_filter.AddReport": lambda folder: sbbf_tool.add_filters(
        FIXTURES / "events.parquet", ["user_id"], output=folder / "new"
    ),
    "advise.AdviceReport": lambda folder: sbbf_tool.advise(FIXTURES / "events.parquet"),
    "apply.ApplyReport": lambda folder: sbbf_tool.apply(
        copy(folder), Policy(Limits(filters=(FilterSpec("id"),)))
    ),
    "conformance.ConformanceReport": lambda folder: run_conformance(
        reader="false {file} {column} {value}", only="booleans/empty.parquet"
    ),
    "conformance.MadeCorpus": lambda folder: make_corpus(
        str(folder / "corpus"), only="types/int8.parquet"
    ),
    "engine_runs.EngineRunsReport": lambda folder: run_engines(FILTERS, "id", 42, "pyarrow"),
    "engines.EnginesReport": lambda folder: sbbf_tool.engines(),
    "explain.ExplainReport": lambda folder: sbbf_tool.explain(FILTERS, "id", 42),
    "findings.CheckReport": lambda folder: sbbf_tool.check(wrong_length(folder)),
    "index.IndexReport": lambda folder: build_index(FILTERS, "id", str(folder / "lake.sbbfx")),
    "inspect.InspectReport": lambda folder: sbbf_tool.inspect(FILTERS),
    "paimon.AddIndexReport": lambda folder: add_paimon_index(
        shutil.copytree(TABLE, folder / "orders"), ["customer"], dry_run=True
    ),
    "paimon.BuildReport": lambda folder: build_paimon_index(
        paimon_file(folder), ["customer"], output=folder / "new.index"
    ),
    "paimon.PaimonInspectReport": lambda folder: inspect_paimon(TABLE),
    "paimon.RemoveIndexReport": lambda folder: remove_paimon_index(
        shutil.copytree(TABLE, folder / "less"), dry_run=True
    ),
    "paimon.PaimonProbeReport": lambda folder: probe_paimon(TABLE, "customer", ["8fd593c4", None]),
    "report.PageReport": lambda folder: write_report(FILTERS, folder / "page.html"),
    "paimon.PaimonVerifyReport": lambda folder: verify_paimon(TABLE),
    "probe.ProbeReport": lambda folder: sbbf_tool.probe(FILTERS, "id", [1000, -1]),
    "probe.RowsReport": lambda folder: RowsReport(
        **vars(sbbf_tool.probe(FILTERS, "id", [1000, -1], rows=True))
    ),
    "prune.PruneReport": lambda folder: sbbf_tool.prune(FILTERS, "id", [1000]),
    "remove_filter.RemoveReport": lambda folder: sbbf_tool.remove_filters(
        copy(folder), in_place=True
    ),
    "repair.RepairReport": lambda folder: sbbf_tool.repair(
        wrong_length(folder), in_place=True, dry_run=True
    ),
    "resize.ResizeReport": lambda folder: sbbf_tool.resize_filters(
        copy(folder), max_bytes=64, in_place=True
    ),
    "findings.RulesReport": lambda folder: RulesReport(list_rules()),
    "size.SizeReport": lambda folder: sbbf_tool.size_filter(ndv=1000),
    "findings.VerifyReport": lambda folder: sbbf_tool.verify(FILTERS),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tabular]:
    report_by_name: dict[str, Tabular] = {}

    def report(name: str) -> Tabular:
        if name not in report_by_name:
            report_by_name[name] = MAKERS[name](tmp_path_factory.mktemp("report"))
        return report_by_name[name]

    return report


def test_every_report_is_tried() -> None:
    assert [name_of(each) for each in report_types()] == sorted(MAKERS)


@pytest.mark.slow
@each("name", list(MAKERS), every=2)
def test_pyarrow_polars_and_notebooks_show_it(reports: Callable[[str], Tabular], name: str) -> None:
    import polars

    report = reports(name)
    table = pa.table(report)
    table.validate(full=True)
    assert name_of(type(report)) == name
    assert table.num_rows
    assert table.equals(report.to_arrow())
    assert not any(pa.types.is_struct(field.type) for field in table.schema), "rows are flat"
    assert pa.RecordBatchReader.from_stream(report).read_all().equals(table)
    assert polars.DataFrame(report).to_dicts() == table.to_pylist()
    rows, _, figures = report._repr_html_().partition('<div class="sbbf">')
    tags = Cells(rows).tags
    assert tags.count("table") == 1
    assert tags.count("tr") <= 22
    assert bool(figures) == (name in ("inspect.InspectReport", "explain.ExplainReport"))
    assert len(set(ids := re.findall(r' id="([^"]+)"', figures))) == len(ids)


@pytest.mark.engines
@each("name", list(MAKERS))
def test_duckdb_and_pandas_read_it(reports: Callable[[str], Tabular], name: str) -> None:
    import duckdb
    import pandas

    report = reports(name)
    table = report.to_arrow()
    relation = duckdb.sql("SELECT * FROM report")
    assert (relation.columns, relation.fetchall()) == (
        table.column_names,
        [tuple(row.values()) for row in table.to_pylist()],
    )
    pandas.testing.assert_frame_equal(pandas.DataFrame.from_arrow(report), table.to_pandas())


EMPTY = {
    "inspect.InspectReport": ("filters",),
    "probe.ProbeReport": ("hits", "inconclusive"),
    "findings.CheckReport": ("findings",),
    "explain.ExplainReport": ("row_groups",),
    "paimon.PaimonVerifyReport": ("files",),
    "prune.PruneReport": ("files",),
}


@each("name", list(EMPTY))
def test_the_schema_of_an_empty_report_is_the_same(
    reports: Callable[[str], Tabular], name: str
) -> None:
    report = reports(name)
    empty: Tabular = replace(report, **dict.fromkeys(EMPTY[name], ()))
    table = empty.to_arrow()
    assert (table.num_rows, table.schema) == (0, report.to_arrow().schema)
    assert "<table>" in empty._repr_html_()


class Cells(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


HOSTILE = "<script>alert(1)</script>\x1b[31m\n\u202e&\udcff"


def hostile_reports() -> Iterator[InspectReport]:
    report = sbbf_tool.inspect(FILTERS)
    yield replace(report, file=HOSTILE)
    yield replace(
        report,
        filters=tuple(replace(row, column=HOSTILE, warnings=(HOSTILE,)) for row in report.filters),
    )


def test_small_numbers_in_html_have_digits() -> None:
    report = sbbf_tool.inspect(FILTERS)
    assert (
        ">1.23e-06<"
        in replace(
            report, filters=(replace(report.filters[0], estimated_fpp=1.2345e-6),)
        )._repr_html_()
    )


def test_names_in_html_are_escaped() -> None:
    for report in hostile_reports():
        page = report._repr_html_()
        cells = Cells(page)
        of_figures = {
            "div",
            "style",
            "figure",
            "h3",
            "figcaption",
            "svg",
            "title",
            "desc",
            "path",
            "text",
            "circle",
            "rect",
        }
        of_figures |= {"details", "summary", "ul", "li", "span"}
        assert (
            set(cells.tags)
            <= {"table", "caption", "tfoot", "thead", "tr", "th", "tbody", "td"} | of_figures
        )
        assert "<script>alert(1)</script>\\x1b[31m\\n\\u202e&\\udcff" in "".join(cells.text)
        assert page.replace("\n", "").isprintable()
        assert repr(report).isprintable()
