"""Rules for the filters of encrypted columns, which must be encrypted too. Only with the key is the check complete.

See parquet-format Encryption.md.
"""

from __future__ import annotations

from functools import partial

from sbbf_tool.hints import Fix
from sbbf_tool.reports.findings import ERROR
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import PLAINTEXT, ChunkFacts, ColumnFacts
from sbbf_tool.rules.rule import DROP_OR_REBUILD, Limits, Rule, at_each_filter

GROUP = "encryption"
_error = partial(Rule, group=GROUP, severity=ERROR)


def _plaintext(chunk: ChunkFacts) -> str | None:
    return "header and bitset can be read without the key" if chunk.module_defect == PLAINTEXT else None


def _module_defect(chunk: ChunkFacts) -> str | None:
    return chunk.module_defect if chunk.module_defect != PLAINTEXT else None


def _rebuild(column: ColumnFacts, limits: Limits) -> Fix | None:
    return None if any(chunk.encryption for chunk in column.filters) else fixes.rebuild(column, limits)


RULES = (
    _error(
        name="plaintext-filter-on-encrypted-column",
        message="The column is encrypted but its filter is not, so anyone can test which values the column holds.",
        why="arrow-rs writes plaintext filters into encrypted files. They disclose data, and readers with the key expect ciphertext "
        "and fail.",
        look=at_each_filter(_plaintext),
        fix=fixes.remove_bytes_too,
    ),
    _error(
        name="damaged-encrypted-filter",
        message="The filter of this encrypted column does not consist of two valid encrypted modules, so readers with the key fail.",
        why="The filter was truncated, overwritten, moved or exchanged, or was not encrypted as modules 8 and 9 (parquet-go uses 6 "
        "and 7). Without the key only the lengths of header and bitset are checked; with it, every bit.",
        look=at_each_filter(_module_defect),
        fix=_rebuild,
        repairs=DROP_OR_REBUILD,
    ),
)
