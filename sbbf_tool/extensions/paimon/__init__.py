"""Apache Paimon's file index: inspect, query, build and verify its Bloom filters, and add them to
existing tables.

From bytes to commits; modules import only from the same line and lines above:

    table_schema, fast_hash                types, and the hash of a value
    bloom64 (bloom64_spec)                 the filter
    index_container                        the container of the indexes of one file
    index_options, partition, manifest     the metadata files of a table
    files, snapshots, table                from a table to its data files, and to the index that
                                           Paimon uses
    file_in_table                          from a data file to its table
    data_file (arrow_columns,              values stored in data files
        orc_time_zones)
    known_fields, commit_plan, publish     a commit that adds indexes to data files

The verbs are in `verbs`, the commands in `commands`. No other module opens files or prints: callers
pass the storage, as in `files`.
"""

from __future__ import annotations

from sbbf_tool.exports import exports
from sbbf_tool.extension import Extension

EXTENSION = Extension(
    commands={
        "paimon": (
            f"{__name__}.commands",
            "Inspect, query, build, verify, check, add and remove Paimon's file indexes.",
        )
    },
    documents={
        "paimon-inspect": f"{__name__}.reports:PaimonInspectReport",
        "paimon-probe": f"{__name__}.reports:PaimonProbeReport",
        "paimon-verify": f"{__name__}.reports:PaimonVerifyReport",
        "paimon-build": f"{__name__}.reports:BuildReport",
        "paimon-check": "sbbf_tool.reports.findings:CheckReport",
        "paimon-add-index": f"{__name__}.reports:AddIndexReport",
        "paimon-remove-index": f"{__name__}.reports:RemoveIndexReport",
    },
    rules={"paimon-check": f"{__name__}.rules:INDEX_RULES"},
    fixes={
        "add_paimon_index": ("paimon", "add-index"),
        "remove_paimon_index": ("paimon", "remove-index"),
    },
    writers={"paimon": f"{__name__}.writer:PAIMON"},
    corpus={"paimon": f"{__name__}.corpus:make_paimon"},
    views={"paimon": f"{__name__}.view:make_view"},
)

__getattr__, __dir__ = exports(__name__)
