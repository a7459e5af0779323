"""The row of a survey, which `advise` adds up."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class SurveyRow(FileRow):
    """Survey of one file, which `advise` adds up."""

    survey: bytes | None = None
    """A pickled `FileSurvey`, for a process of the same version."""
