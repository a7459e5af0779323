"""What advised filters would have saved in the queries of a history."""

from __future__ import annotations

from collections.abc import Sequence

from sbbf_tool.advice.history.scans import History
from sbbf_tool.reports.advise import HistoryAdvice, HistoryGroup, QueryAdvice


def build_history_advice(history: History, advice: Sequence[QueryAdvice]) -> HistoryAdvice:
    """Apply the mean savings of the evaluated queries of each group to all of its scans; `advice` is that on `history.queries`."""
    groups, remaining = [], list(advice)
    for group in history.groups.values():
        samples, remaining = remaining[: len(group.samples)], remaining[len(group.samples) :]
        share = sum(map(_share_skipped, samples)) / len(samples) if samples else 0.0
        skipped = round(share * group.bytes_read)
        groups.append(HistoryGroup(group.columns, group.scans, group.bytes_read, len(samples), share, skipped))
    groups.sort(key=lambda group: (-group.bytes_skipped, -group.scans, group.columns))
    return HistoryAdvice(
        logs=history.logs,
        scans=history.scans,
        scans_without=history.scans_without,
        other_scans=history.other_scans,
        skipped_lines=history.skipped_lines,
        unreadable_logs=tuple(history.unreadable_logs),
        scans_by_file_size=history.scans_by_file_size,
        scans_without_bytes=history.scans_without_bytes,
        bytes_read=sum(group.bytes_read for group in groups),
        bytes_skipped=sum(group.bytes_skipped for group in groups),
        groups=tuple(groups),
    )


def _share_skipped(query: QueryAdvice) -> float:
    """Return the share of row groups that the query read and the advised filters exclude."""
    read = min(query.after_dictionary, query.after_filters)
    return max(0.0, 1 - query.after_advice / read) if read else 0.0
