"""The stages that only read, file by file: inspect, probe, verify, check, and the survey that `advise` adds up.

Each function answers with another, from a path to the row of that file, that can be sent to other processes and machines. What was
given to it as `keys`, of encrypted files, goes with it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.advice.queries import Query
from sbbf_tool.advice.survey import FileSurvey, survey
from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.operations.check import Policy, checked
from sbbf_tool.operations.inspect import inspect
from sbbf_tool.operations.verify import verify
from sbbf_tool.reports.findings import CheckRow
from sbbf_tool.reports.inspect import InspectRow
from sbbf_tool.reports.lake import SurveyRow
from sbbf_tool.reports.lookup import LookupRow
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.runner.failures import Row, failure, row_of
from sbbf_tool.runner.lookup import probe_values

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven


def inspecting(columns: Iterable[str] = (), keys: KeysGiven = None) -> Callable[[str], InspectRow]:
    """`inspect`, of these columns, all where empty."""
    return partial(_reported, InspectRow, partial(inspect, columns=as_names(columns), keys=keys))


def probing(column: str, values: object, keys: KeysGiven = None) -> Callable[[str], LookupRow]:
    """Many values asked of one column, or one."""
    return partial(_reported, LookupRow, partial(probe_values, column=column, values=tuple(as_iterable(values)), keys=keys, reuse=Reuse()))


def verifying(columns: Iterable[str] = (), keys: KeysGiven = None, limit: MaxPageBytes = None) -> Callable[[str], VerifyRow]:
    """`verify`, of the filters of these columns, all where empty."""
    return partial(_reported, VerifyRow, partial(verify, columns=as_names(columns), keys=keys, max_page_bytes=limit, jobs=1))


def checking(policy: Policy, keys: KeysGiven = None, limit: MaxPageBytes = None) -> Callable[[str], CheckRow]:
    return partial(_checked, policy, keys, limit)


def surveying(queries: Iterable[Query] = (), keys: KeysGiven = None, limit: MaxPageBytes = None) -> Callable[[str], SurveyRow]:
    return partial(_surveyed, tuple(as_iterable(queries)), keys, limit, Reuse())


def survey_of(row: SurveyRow) -> FileSurvey:
    """The survey of a row whose status is `ok`."""
    assert row.survey is not None
    found: FileSurvey = pickle.loads(row.survey)
    return found


def _reported(row: type[Row], work: Callable[[str], object], path: str) -> Row:
    return row_of(row, path, lambda: {"report": work(path)})


def _checked(policy: Policy, keys: KeysGiven, limit: MaxPageBytes, path: str) -> CheckRow:
    def work() -> dict[str, object]:
        done = checked(path, policy, keys, limit)
        return {"report": done.report, **(failure(path, done.errors[0]) if done.errors else {})}

    return row_of(CheckRow, path, work)


def _surveyed(queries: tuple[Query, ...], keys: KeysGiven, limit: MaxPageBytes, reuse: Reuse, path: str) -> SurveyRow:
    return row_of(SurveyRow, path, lambda: {"survey": pickle.dumps(survey(path, queries, keys, limit, reuse))})
