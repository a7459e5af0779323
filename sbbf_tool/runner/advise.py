"""`advise` over a lake: surveys from every engine, added up here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sbbf_tool.advice.queries import parse_query
from sbbf_tool.advice.survey import FileSurvey
from sbbf_tool.arguments import as_iterable
from sbbf_tool.errors import SbbfError
from sbbf_tool.operations.advise import advise_on
from sbbf_tool.reports.advise import AdviceReport
from sbbf_tool.reports.lake import SurveyRow
from sbbf_tool.reports.rows import OK
from sbbf_tool.runner.engine import Engine, Lake
from sbbf_tool.runner.failures import error_of
from sbbf_tool.runner.read import survey_of, surveying


def advise_lake(
    engine: Engine, lake: Lake, *, queries: Iterable[str] = (), fpp: float | None = None, readers: Iterable[str] = ()
) -> AdviceReport:
    """See `operations.advise`. Footers, filters and dictionaries are read by the engine, data of a few row groups here."""
    asked = tuple(parse_query(query) for query in as_iterable(queries))
    rows = engine.read(lake, surveying(asked, lake.keys, lake.limit), SurveyRow)
    return advise_on(lake.names, surveys(rows), queries=asked, fpp=fpp, engine_names=readers, keys=lake.keys, limit=lake.limit)


def surveys(rows: Iterable[SurveyRow]) -> Iterator[tuple[str, FileSurvey | SbbfError]]:
    """Each path with what is known of it, or why nothing is."""
    for row in rows:
        yield row.path, survey_of(row) if row.status == OK else error_of(row)
