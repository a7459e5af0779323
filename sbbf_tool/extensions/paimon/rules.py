"""The rules for Paimon's file indexes: what `inspect_paimon` and `check_paimon` find."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sbbf_tool.reports.findings import ERROR, INFO, WARNING
from sbbf_tool.rules import correctness, efficiency, policy
from sbbf_tool.rules import format as format_rules
from sbbf_tool.rules.facts import Reads
from sbbf_tool.rules.rule import AnyRule


@dataclass(frozen=True, slots=True)
class IndexRule(AnyRule):
    """A rule for the indexes of the data files of a table, as a value; the finding's evidence
    states the facts."""

    verb: tuple[str, str | None] | None = None
    """The function that resolves the findings of a column, and which filters it rebuilds; None if
    there is none."""


_error = partial(IndexRule, severity=ERROR)
_warning = partial(IndexRule, severity=WARNING)
_info = partial(IndexRule, severity=INFO)
_ADD = ("add_paimon_index", None)
_REBUILD = ("add_paimon_index", "all")
_REMOVE = ("remove_paimon_index", None)

FALSE_NEGATIVES = "index-false-negatives"
WRONG_HASH = "index-wrong-hash"
EMPTY_INDEX = "empty-index"
EMPTY_INDEX_FILTER = "empty-index-filter"
UNREADABLE_INDEX = "unreadable-index"
DUPLICATE_INDEX = "duplicate-index"
UNREFERENCED_INDEX = "unreferenced-index"
OUTSIDE_TABLE = "outside-table"
UNKNOWN_COLUMN = "unknown-column"
UNKNOWN_KIND = "unknown-kind"
NO_HASH = "no-hash"
MANY_HASH_FUNCTIONS = "many-hash-functions"
NO_HASH_FUNCTIONS = "no-hash-functions"
SATURATED_INDEX = "saturated-index"
LARGE_FOR_ROWS = "large-for-rows"
LARGE_FOR_VALUES = "large-for-values"
UNUSED_INDEX = "unused-index"
MISSING_INDEX = "missing-index"

INDEX_RULES: tuple[IndexRule, ...] = (
    _error(
        name=FALSE_NEGATIVES,
        group=correctness.GROUP,
        reads=Reads.DATA,
        message="The index excludes stored values, so Paimon skips data files that have rows "
        "with them.",
        why="The index belongs to another data file, or its writer left out values. Paimon "
        "reads no row of a file that an index excludes.",
        verb=_REBUILD,
    ),
    _error(
        name=WRONG_HASH,
        group=correctness.GROUP,
        reads=Reads.DATA,
        message="The index holds the values, but not as Paimon hashes them, so Paimon skips "
        "data files that have rows with them.",
        why="The writer hashed values of another form, as Parquet's filters do or in another "
        "unit of time, or orders bits in another way.",
        verb=_REBUILD,
    ),
    _warning(
        name=EMPTY_INDEX,
        group=correctness.GROUP,
        message="The index states that it has no values, so Paimon skips the data file for "
        "every value.",
        why="Paimon writes such an entry if no row reached the index. It is correct only for "
        "a column without values.",
        verb=_REBUILD,
    ),
    _info(
        name=EMPTY_INDEX_FILTER,
        group=correctness.GROUP,
        message="The filter has no bit set, so Paimon skips the data file for every value.",
        why="Paimon and sbbf write such a filter for a column of nulls only, for which it is "
        "correct. Otherwise there are false negatives, which reading the data shows.",
    ),
    _error(
        name=UNREADABLE_INDEX,
        group=format_rules.GROUP,
        message="The index contradicts the format, is missing, or there are several, so "
        "Paimon fails on queries that use it.",
        why="A file was deleted or damaged, or a tool lists two index files. When such an "
        "index is removed, another one can be built.",
    ),
    _warning(
        name=DUPLICATE_INDEX,
        group=format_rules.GROUP,
        message="The data file has an index in the manifest and one in a file, of which "
        "Paimon reads the one in the manifest.",
        why="Before version 2.1, a rewrite by Paimon could leave an outdated index in the "
        "other place.",
    ),
    _info(
        name=UNREFERENCED_INDEX,
        group=format_rules.GROUP,
        message="The snapshot does not refer to an index file that is beside its data file.",
        why="Older snapshots may refer to the file. Paimon's remove_orphan_files deletes it "
        "when no snapshot does.",
    ),
    _warning(
        name=OUTSIDE_TABLE,
        group=format_rules.GROUP,
        message="The metadata of the table refers to a file outside the table, which is not read.",
        why="An external path, or a link, leads to another place than the options of the "
        "table allow.",
    ),
    _warning(
        name=UNKNOWN_COLUMN,
        group=format_rules.GROUP,
        message="The index names a column that the schema of its data file does not have, so "
        "no query uses it.",
        why="The writer used the name of another schema: an index names columns as the "
        "schema of its data file does.",
    ),
    _warning(
        name=UNKNOWN_KIND,
        group=format_rules.GROUP,
        message="The index is of a type that Paimon does not have, so its reader fails.",
        why="Paimon knows bloom-filter, bitmap, bsi and range-bitmap.",
    ),
    _warning(
        name=NO_HASH,
        group=format_rules.GROUP,
        message="The filter is of a column of a type without a hash in Paimon, so its reader "
        "fails.",
        why="Paimon has no Bloom filter for BOOLEAN, DECIMAL and nested types.",
        verb=_REMOVE,
    ),
    _warning(
        name=MANY_HASH_FUNCTIONS,
        group=format_rules.GROUP,
        message="The filter has 128 hash functions or more, which Paimon's Java reader "
        "misreads, so it skips fewer files or none.",
        why="The reader takes the bytes of the number as signed. No stored value is lost.",
        verb=_REBUILD,
    ),
    _warning(
        name=NO_HASH_FUNCTIONS,
        group=format_rules.GROUP,
        message="The filter has no hash functions, so it never skips a file.",
        why="The writer failed, or computed its size for no rows.",
        verb=_REBUILD,
    ),
    _warning(
        name=SATURATED_INDEX,
        group=efficiency.GROUP,
        message="The filter excludes fewer than half of the absent values, so it saves less "
        "than it costs.",
        why="The number of items in the options of the table is below the number of distinct "
        "values of a data file.",
        verb=_REBUILD,
    ),
    _warning(
        name=LARGE_FOR_ROWS,
        group=efficiency.GROUP,
        message="The filter is many times larger than the rows of its data file need.",
        why="Paimon sizes each filter for the items in the options of the table, by default "
        "a million, whatever number of rows came.",
        verb=_REBUILD,
    ),
    _info(
        name=LARGE_FOR_VALUES,
        group=efficiency.GROUP,
        message="The filter is several times larger than its distinct values need.",
        why="The number of items in the options of the table is far above the number of "
        "distinct values of a data file.",
        verb=_REBUILD,
    ),
    _warning(
        name=UNUSED_INDEX,
        group=efficiency.GROUP,
        message="Paimon's planner does not use the indexes of the table.",
        why="A table with a primary key uses indexes only with deletion vectors, and "
        "file-index.read.enabled turns them off.",
    ),
    _warning(
        name=MISSING_INDEX,
        group=policy.GROUP,
        message="The data file has no Bloom filter for a column that has one in other data "
        "files, or in the options of the table.",
        why="The file was written before the option was set. A query for a value reads every "
        "data file without a filter.",
        verb=_ADD,
    ),
)
"""All rules, in listing order."""
BY_NAME = {rule.name: rule for rule in INDEX_RULES}
