"""The lines about data files that a command skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sbbf_tool.cli.page import Page
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import SkippedFile


def show_skipped(page: Page, skipped: Sequence[SkippedFile]) -> None:
    """Print a line for each reason, with the data file or their number."""
    for reason, count in Counter(file.reason for file in skipped).items():
        names = [file.data_file for file in skipped if file.reason == reason]
        page.say(f"skipped {names[0] if count == 1 else format_count(count, 'data file')}: {reason}")
