"""The report on rows that satisfy a condition, whatever column its parts are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbbf_tool.file.conditions import ColumnCondition, describe_columns
from sbbf_tool.file.hits import FileAnswers
from sbbf_tool.file.judgment import FileCondition
from sbbf_tool.file.missing_column import MissingColumn
from sbbf_tool.file.texts import text_of
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.predicates import AnyOf, Comparison, Constant, Expression, IsNull, columns_of
from sbbf_tool.reports.probe import CONDITION, Hit, ProbeReport, QueriedValue

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect

_MOST_IN_TEXT = 10


def report_rows(
    condition: FileCondition,
    first: ColumnCondition | None,
    *,
    dialect: Dialect | None,
    confirms: bool,
    with_rows: bool,
) -> ProbeReport:
    """Find the row groups that may have rows that satisfy a condition; with `confirms`, the rows.

    They are reported as those of one value: the text of the condition, or that of `first`, whose
    column the file lacks.
    """
    file = condition.file
    expression = condition.condition
    column = ", ".join(columns_of(expression))
    column_type: str | None = CONDITION
    text = expression.text
    if first is not None:
        assert isinstance(first.about, MissingColumn)
        column = first.about.name
        column_type = None
        possible = [value for value in first.values if first.about.answer(value) != ABSENT]
        text = ", ".join(map(text_of, possible))
    row_groups = condition.narrow(range(file.footer.num_row_groups), dialect)
    if confirms:
        from sbbf_tool.file.presence import confirm_condition  # most queries read filters alone

        answers = confirm_condition(condition, row_groups, column, text, with_rows=with_rows)
    else:
        hits = [Hit(text, tuple(row_groups))] if row_groups else []
        answers = FileAnswers(tuple(hits))
    return answers.report(
        file,
        1,
        condition.unreadable,
        column=column,
        type=column_type,
        notes=tuple(condition.notes()),
        queried=(QueriedValue(text),),
        **describe_columns(file, condition.conditions),
    )


def build_expression(condition: ColumnCondition) -> Expression:
    """Build the condition that a column has one of the values."""
    name = condition.named.name
    constants = [Constant(text_of(value)) for value in condition.values if value is not None]
    parts: list[Expression] = []
    if constants:
        texts = [f"'{constant.text}'" for constant in constants[:_MOST_IN_TEXT]]
        if len(constants) > _MOST_IN_TEXT:
            texts.append("...")
        text = f"{name} IN ({', '.join(texts)})"
        parts.append(Comparison(name, "=", tuple(constants), text))
    if len(constants) < len(condition.values):
        parts.append(IsNull(name, f"{name} IS NULL"))
    if len(parts) == 1:
        return parts[0]
    return AnyOf(tuple(parts), " OR ".join(part.text for part in parts))
