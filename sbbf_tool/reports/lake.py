"""The report of a survey, which `advise` adds up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PickledSurvey:
    """Survey of one file."""

    survey: bytes
    """A pickled `FileSurvey`, for a process of the same version."""
