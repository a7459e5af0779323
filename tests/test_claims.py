"""What README and the how-to guides say in prose is true: numbers are those of the code, and exit
codes those of the commands.

A row has the words of its page. `test_docs.py` runs the blocks of the pages.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from parts.commands import read_commands
from sbbf_tool import add_filters, inspect
from sbbf_tool.advice import sample, totals
from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.bloom.dialects import DIALECTS, GUAVA_SEED
from sbbf_tool.cli import COMMANDS, formats, output, page, progress, values
from sbbf_tool.cli.formats import ci
from sbbf_tool.cli.options import Option, settable_options
from sbbf_tool.encryption.modules import KEY_SIZES
from sbbf_tool.extension import named
from sbbf_tool.extensions.engine_runs.catalog import ALL, RUNNABLE
from sbbf_tool.extensions.index.build import MOST_SEGMENTS
from sbbf_tool.extensions.paimon import bloom64_spec
from sbbf_tool.extensions.paimon.verbs import inspect as paimon_inspect
from sbbf_tool.extensions.report.pictures import figure
from sbbf_tool.extensions.tables import copies
from sbbf_tool.extensions.tables.ducklake import catalog, metadata
from sbbf_tool.reports.probe import ABSENT, CANNOT_SAY, MANY_VALUES, MAYBE, NO_FILTER, PRESENT
from sbbf_tool.rules import filter_spec
from sbbf_tool.rules.satisfaction import FPP_TOLERANCE, SIZE_TOLERANCE
from sbbf_tool.running import discover, file_times, local
from sbbf_tool.spark import java, key_rows, lookup, session
from sbbf_tool.storage.objects import azure_blocks, cloud, conditional, retries, s3_facts, source
from sbbf_tool.storage.objects.store import _SERVICES
from sbbf_tool.writers.settings import WRITERS
from support.delta_logs import protocol, write_version
from support.pages import BLOCK, FIXTURES, PAGES, REPOSITORY, name_of, run_in_process
from support.recipes import break_filter
from support.tables import each

pytestmark = pytest.mark.slow

MIB = 1 << 20
WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 9: "nine", 10: "ten"}
TIMES = {
    0.5: "half a second",
    2.0: "two seconds",
    30.0: "half a minute",
    60.0: "minute",
    300.0: "five minutes",
}
COUNTS = {1_000_000: "a million"}
MB = {512 * MIB: "512 MB", 64 * MIB: "64 MB"}
"""Limits that pages round."""
PERCENT = f"{100 * DEFAULT_FPP:g} %"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
PYTHON = PROJECT["requires-python"].removeprefix(">=")
OLDEST_SPARK, DATA_SOURCES, JAVA_25 = (
    ".".join(map(str, numbers))
    for numbers in (session.OLDEST_SPARK, session.FIRST_WITH_DATA_SOURCES, java._SINCE_4_2)
)
OBJECTS_MB = 104
"""Measured; two pages have it."""
PAIMON_BITS, _ = bloom64_spec.compute_sizing(bloom64_spec.DEFAULT_ITEMS, bloom64_spec.DEFAULT_FPP)
*VERSIONS, NEWEST = metadata.VERSIONS


def in_words(numbers: tuple[int, ...], conjunction: str) -> str:
    *some, last = numbers
    return f"{', '.join(map(str, some))} {conjunction} {last}"


def javas(spark: tuple[int, int]) -> tuple[int, ...]:
    """Return the versions of Java that run this version of Spark, in the newest release of each."""
    return tuple(major for major in range(8, 30) if java.accepts(spark, (major, 99)))


NUMBERS = {
    "README.md": [f"Python {PYTHON} or newer"],
    "choose-columns.md": [
        f"counted in {WORDS[sample.SAMPLED_ROW_GROUPS]} row groups of each of up to "
        f"{WORDS[totals.SAMPLED_FILES]} files per column",
        f"a filter for {PERCENT} has often 0.1 %",
    ],
    "ci.md": [
        f"the first {WORDS[ci._MOST['error']]} errors, {WORDS[ci._MOST['warning']]} warnings and "
        f"{WORDS[ci._MOST['info']]} notices",
        f"of more than {ci.MOST_RESULTS:,} the worst",
    ],
    "declare.md": [
        f"the target false-positive rate; {DEFAULT_FPP} if left out",
        f"filters of {sizing.MIN_BYTES} bytes are always allowed",
        f"is at most {FPP_TOLERANCE} x the target, and its size at most {SIZE_TOLERANCE} x what",
        f"the measured rate is above {FPP_TOLERANCE} x the target",
        f"the filter is larger than {SIZE_TOLERANCE} x what its values need",
    ],
    "delta.md": [f"at work within the last {TIMES[copies._AT_WORK_SECONDS]}"],
    "ducklake.md": [
        f"waits for {TIMES[catalog.WAIT_SECONDS]} if another process has it open",
        f"catalogs of other versions than {', '.join(VERSIONS)} and {NEWEST} | refused",
    ],
    "encrypted-files.md": [f"A KEY has {in_words(KEY_SIZES, 'or')} bytes"],
    "index-a-lake.md": [
        f"at {PERCENT}, a value leaves {int(1_000_000 * DEFAULT_FPP):,} of a million files to open",
        f"waits {TIMES[file_times.COARSE_SECONDS]} before it reads",
        f"From the {MOST_SEGMENTS + 1}th on, segments are merged",
    ],
    "install.md": [
        f"Python {PYTHON} or newer",
        f"PySpark {DATA_SOURCES} or newer",
        f"PySpark {OLDEST_SPARK}",
        f"Azure, HTTP | {OBJECTS_MB} |",
    ],
    "many-files.md": [
        f"is at most {FPP_TOLERANCE} x the target, and if its size is at most {SIZE_TOLERANCE} x",
        f"is remembered {TIMES[file_times.COARSE_SECONDS]} after its last change",
    ],
    "many-keys.md": [
        f"Up to {COUNTS[values.MAX_VALUES]} values are read from a file",
        f"the values that min and max leave or, of more than {MANY_VALUES:,} values, any",
        f"of 20 keys at {PERCENT}, one row group in {WORDS[round(1 / (20 * DEFAULT_FPP))]}",
        f"of 1,000 absent keys, about {WORDS[round(1000 * DEFAULT_FPP)]} seem to be in each",
    ],
    "object-stores.md": [
        f"| `objects` | all of them | {OBJECTS_MB} MB |",
        f"For objects of {conditional.LEAST_PART // MIB} MiB and more, the store copies",
        f"Blobs of up to {conditional.WHOLE_BYTES >> 10} KiB are written by one Put Blob",
        f"Up to {azure_blocks.MOST_UPLOADED_AGAIN // MIB} MiB of old bytes are uploaded as blocks",
        f"Objects of up to {conditional.WHOLE_BYTES >> 10} KiB are written by one upload",
        f"up to {conditional.WHOLE_BYTES >> 10} KiB (S3: below {conditional.LEAST_PART // MIB}",
        f"1 Put Block per {conditional.UPLOAD_PART // MIB} MiB of new bytes",
        f"1 and 1 per {conditional.UPLOAD_PART // MIB} MiB), 1 compose",
        f"Up to {local.MOST_OPEN} objects are in work, and up to {retries.IN_FLIGHT} requests",
        f"The objects in work keep at most {MB[local.MOST_BYTES]} in memory",
        f"except for what exceeds {MB[source._CACHE_BYTES]} of it",
        f"listed once per prefix and {TIMES[s3_facts._UPLOADS_SECONDS]}",
        f"It is given up after {retries.TRIES} tries and {retries.PATIENCE_SECONDS / 60:g} minutes",
        f"at an HTTP server after {cloud._HTTP_BUDGET.tries} tries",
        f"Pauses grow to {retries.LONGEST_PAUSE:g} seconds",
        f"was never reached is given up after {retries.TRIES_TO_REACH} tries",
    ],
    "old-drafts.md": [
        f"low half, seed {GUAVA_SEED}",
        f"`-8 / log(1 - p^(1/8))`: {sizing.formula_bits_per_value(0.01):.2f} at 1 %",
        f"A split-block filter needs {sizing.bits_per_value(0.01):.2f} bits",
    ],
    "one-file.md": [f"The default is {DEFAULT_FPP}"],
    "output.md": [
        f"a terminal gets the first {page.MOST_ROWS} rows of a table",
        f"wrap to more than {page.MOST_LINES_OF_TABLE} lines",
        f"print details for at most {output.MOST_FILES}, on standard error too",
        f"Work that takes longer than {TIMES[progress.DELAY]} shows its progress",
        f"prints such a line every {progress.PERIOD_OF_LINES:g} seconds",
        f"A picture of more than {figure.MOST_MARKS:,} marks shows bins",
        f"a table has at most {figure._MOST_ROWS} rows",
    ],
    "paimon.md": [
        f"Paimon sizes each filter for {COUNTS[bloom64_spec.DEFAULT_ITEMS]} values, "
        f"{PAIMON_BITS // 8000} KB per column and data file",
        f"k of {paimon_inspect._FIRST_MISREAD_K} and more",
    ],
    "spark-job.md": [
        f"Spark 4 needs Java {in_words(javas((4, 0)), 'or')}, from 4.2 on also",
        f"from 4.2 on also {javas((4, 2))[-1]} ({JAVA_25} or newer)",
        f"Spark {OLDEST_SPARK} needs {in_words(javas(session.OLDEST_SPARK), 'or')}",
        f"While there are fewer files above {discover.TASK_COST // MIB} MiB than tasks",
        *(
            f"| {count:,} | {sizing.bytes_for(count, DEFAULT_FPP) // MIB} MiB |"
            for count in (1_000_000, 4_000_000, 16_000_000)
        ),
    ],
    "spark.md": [
        f'`spark.read.format("sbbf")` needs {DATA_SOURCES}',
        f"for more than {key_rows.MOST_KEYS:,} keys",
        f"of each row group the first {lookup._MOST_HITS} keys",
        f"of 1,000 keys that a filter of {PERCENT} does not hold, "
        f"{WORDS[round(1000 * DEFAULT_FPP)]} pass by chance",
    ],
    "verify-and-repair.md": [
        f"not a multiple of {BLOCK_BYTES} bytes, below {sizing.MIN_BYTES} bytes or above "
        f"{sizing.MAX_BYTES // MIB} MiB",
    ],
}  # fmt: skip


class Claim(NamedTuple):
    """Words of a page with exit codes, and commands that end with them, or other tests that see
    them."""

    page: str
    words: str
    codes: Mapping[str, int] = MappingProxyType({})
    tests: tuple[str, ...] = ()


CLAIMS = [
    Claim(
        "README.md",
        "`probe` ends with exit code 1 if no value is there",
        {"probe good.parquet user_id 42": 1, "probe good.parquet user_id 42 107919": 0},
    ),
    Claim(
        "README.md",
        "`check` is the gate in CI: exit code 1 if a filter is missing, weak or broken",
        {
            "check plain.parquet --require user_id": 1,
            "check good.parquet --max-fpp 1e-6": 1,
            "check broken.parquet": 1,
            "check good.parquet --require user_id --max-fpp 0.01": 0,
        },
    ),
    Claim(
        "README.md",
        "find where values may be, with an exit code for scripts",
        {"probe good.parquet user_id 42": 1, "probe good.parquet user_id 107919": 0},
    ),
    Claim(
        "questions.md",
        'Which exit code means "not there"? [Exit codes]',
        tests=("tests/test_docs.py::test_the_exit_codes_are_all_on_their_page",),
    ),
    Claim(
        "choose-columns.md",
        "Exit code 1 means that the value is absent from every row group",
        {"explain good.parquet user_id 42": 1, "explain good.parquet user_id 107919": 0},
    ),
    Claim(
        "choose-columns.md",
        "the command says so and ends with exit code 1",
        tests=(
            "tests/extensions/engine_runs/test_run.py"
            "::test_the_command_fails_loudly_for_false_negatives",
        ),
    ),
    Claim(
        "ci.md",
        "Exit code 1 means findings of the severity `--fail-on` (by default `error`) or worse",
        {
            "check broken.parquet": 1,
            "check fixtures/spark-96-bytes.parquet": 0,
            "check fixtures/spark-96-bytes.parquet --fail-on warning": 1,
            "check broken.parquet --fail-on warning": 1,
        },
    ),
    Claim(
        "configuration.md",
        "refuses a file that it found, with exit code 2",
        tests=("tests/cli/test_configuration.py::test_of_a_file_that_others_may_write",),
    ),
    Claim(
        "declare.md",
        "If no file has the column, because its name is misspelt, `apply` ends with exit code 2",
        {"apply --config misspelt.toml": 2},
    ),
    Claim(
        "declare.md",
        "Exit code 0: the files have the declared filters. 1: they do not. Otherwise, such as for "
        "a damaged file, the highest code of a file",
        {
            "apply good.parquet --config declared.toml": 0,
            "apply plain.parquet --config declared.toml": 1,
            "apply --config declared.toml": 3,
        },
    ),
    Claim(
        "delta.md",
        "a file whose copy a clean-up has deleted is left out, and the exit code is 4",
        tests=(
            "tests/extensions/tables/test_table_commands.py"
            "::test_copies_that_a_clean_up_deletes_before_the_commit",
        ),
    ),
    Claim(
        "delta.md",
        "refuses a table whose commits go through the catalog (`catalogManaged`), with exit code "
        "4; `--as-files` reads all files below its folder",
        {
            "probe managed user_id 3": 4,
            "inspect managed": 4,
            "add-filter managed -c user_id --dry-run": 4,
            "probe managed user_id 3 --as-files": 0,
            "probe managed user_id 99 --as-files": 1,
        },
    ),
    Claim(
        "delta.md",
        "left out; a file that cannot be read raises the exit code",
        {
            "add-filter orders -c user_id --dry-run": 3,
            "add-filter fixtures/delta/orders -c user_id --dry-run": 0,
        },
    ),
    Claim(
        "ducklake.md",
        "if they may hold the value, a warning says so, and the exit code is 0",
        tests=(
            "tests/extensions/tables/test_rows_elsewhere.py"
            "::test_rows_that_a_ducklake_catalog_keeps",
        ),
    ),
    Claim(
        "encrypted-files.md",
        "`verify` names the locked columns whose filters it could not verify, and ends with 3",
        {
            "verify encrypted.parquet": 3,
            "verify encrypted.parquet --keys keys.json": 0,
        },
    ),
    Claim(
        "encrypted-files.md",
        "A flipped bit, a wrong key or a module from another position is an error with exit code "
        "3; a filter that does not authenticate is a finding of `verify` and `check`, with exit "
        "code 1",
        {
            "probe encrypted.parquet name Ada --keys wrong.json": 3,
            "verify encrypted.parquet --keys wrong.json": 3,
            "probe flipped.parquet name Ada --filters-only --keys keys.json": 3,
            "inspect flipped.parquet --keys keys.json": 3,
            "verify flipped.parquet --keys keys.json": 1,
            "check flipped.parquet --keys keys.json": 1,
        },
        tests=("tests/verbs/test_encrypted_files.py::test_modules_of_another_chunk",),
    ),
    Claim(
        "find-and-delete.md",
        "exit code 0 if a key is there, 1 if none is",
        {
            "probe good.parquet user_id 42 107919 --confirm": 0,
            "probe good.parquet user_id 42 --confirm": 1,
        },
    ),
    Claim(
        "find-and-delete.md",
        "A part that values do not decide is an error there (exit code 2)",
        {
            "probe good.parquet \"user_id = 107919 AND session LIKE 'ab%'\" --rows": 2,
            "probe good.parquet \"user_id = 107919 AND session LIKE 'ab%'\" --confirm": 2,
        },
    ),
    Claim(
        "find-and-delete.md",
        "nothing is listed, and the exit code is 1",
        {
            "probe good.parquet user_id 42 --confirm --format names": 1,
            "probe fixtures/delta/orders user_id 99 --confirm --all-versions": 1,
        },
    ),
    Claim(
        "iceberg.md",
        "commands end with exit code 4 unless there are credentials as well",
        tests=(
            "tests/extensions/tables/iceberg/test_vended_credentials.py"
            "::test_remote_signing_is_refused_by_its_name",
        ),
    ),
    Claim(
        "index-a-lake.md",
        "takes the same options, with the same exit code",
        {
            "index lake -c user_id -o lake.sbbfx": 0,
            "probe lake.sbbfx user_id 107919": 0,
            "probe lake user_id 107919": 0,
            "probe lake.sbbfx user_id 42": 1,
            "probe lake user_id 42": 1,
            "probe lake.sbbfx nothing 42": 2,
            "probe lake nothing 42": 2,
        },
    ),
    Claim(
        "many-files.md",
        "`probe` and `explain` end with 0, since such a folder may hold the value",
        {"probe links user_id 42": 0, "explain links user_id 42": 0},
    ),
    Claim(
        "many-files.md",
        "The exit code is the highest of all files",
        {"verify good.parquet broken.parquet damaged.parquet": 3},
    ),
    Claim(
        "many-files.md",
        "`inspect`, `verify`, `add-filter`, `resize`, `repair` and `remove-filter` report such a "
        "file as *not applicable*, with exit code 0; `check` and `apply` require no filter of it",
        {
            "inspect lake -c user_id": 0,
            "verify lake -c user_id": 0,
            "add-filter lake -c user_id --dry-run": 0,
            "resize lake -c user_id --fpp 0.1 --dry-run": 0,
            "repair lake -c user_id --dry-run": 0,
            "remove-filter lake -c user_id --dry-run": 0,
            "check lake --require user_id": 0,
            "apply lake --config declared.toml": 0,
        },
    ),
    Claim(
        "many-files.md",
        "If no file has the column, the command ends with exit code 2",
        {"verify lake -c nothing": 2, "probe lake nothing 42": 2},
    ),
    Claim(
        "many-files.md",
        "Their findings count for the exit code as before",
        {
            "check broken.parquet good.parquet --state state --fail-on error": 1,
            "check good.parquet broken.parquet --state state --fail-on error": 1,
        },
    ),
    Claim(
        "many-keys.md",
        "there is a note, and the exit code is 1. Standard input or a pipe without values is an "
        "error with exit code 2",
        tests=(
            "tests/cli/test_key_files.py"
            "::test_an_empty_file_is_an_answer_and_an_empty_pipe_an_error",
        ),
    ),
    Claim(
        "object-stores.md",
        "(exit code 4; commands that read them end with 3)",
        tests=("tests/objects/test_s3_publish.py::test_archives_and_locks_are_refused",),
    ),
    Claim(
        "object-stores.md",
        "end the command within about two seconds, with exit code 130 or 143",
        tests=("tests/objects/test_interrupts.py::test_a_run_ends_while_its_requests_hang",),
    ),
    Claim(
        "one-file.md",
        "because `--ndv` or `--max-bytes` is too low, is left out: the other columns go on, the "
        "exit code is 4, and `--allow weak-filters` writes it",
        {
            "add-filter plain.parquet -c user_id -c country --ndv 1 -o ndv.parquet": 4,
            "add-filter plain.parquet -c user_id -c country --max-bytes 64 -o bytes.parquet": 4,
            "check bytes.parquet --require country": 0,
            "check bytes.parquet --require user_id": 1,
            "add-filter plain.parquet -c user_id --ndv 1 -o weak.parquet --allow weak-filters": 0,
        },
    ),
    Claim(
        "one-file.md",
        "Exit code 1 means that the value is absent from every row group; exit code 0 means that "
        "some row group may hold it",
        {"probe good.parquet user_id 42": 1, "probe good.parquet user_id 107919": 0},
    ),
    Claim(
        "one-file.md",
        "A wrong name of a column ends with exit code 2, and a file that cannot be read with 3",
        {"probe good.parquet user 42": 2, "probe damaged.parquet user_id 42": 3},
    ),
    Claim(
        "output.md",
        "`--report` still saves the results, and the exit code still answers",
        {
            "probe good.parquet user_id 42 --quiet --report quiet.json": 1,
            "probe good.parquet user_id 107919 --quiet --report quiet.json": 0,
        },
    ),
    Claim(
        "output.md",
        "Commands that change files write one row per file, with its status and exit code",
        tests=("tests/cli/test_saved_reports.py::test_each_file_in_both_formats",),
    ),
    Claim(
        "output.md",
        "the exit code is theirs, such as 3; findings do not change it",
        {
            "report damaged.parquet good.parquet -o damaged.html": 3,
            "report broken.parquet -o broken.html": 0,
        },
    ),
    Claim(
        "paimon.md",
        "Exit code 1 means that every data file is skipped",
        {
            "paimon add-index indexed": 0,
            "paimon probe indexed customer absent": 1,
            "paimon probe indexed customer 8fd593c4": 0,
        },
    ),
    Claim(
        "paimon.md",
        "Exit code 1 means that a finding is at or above the severity of `--fail-on`",
        {
            "paimon check fixtures/paimon/orders": 0,
            "paimon check fixtures/paimon/orders --fail-on warning": 1,
        },
    ),
    Claim(
        "schedule.md",
        "A file that is incomplete during a run is reported, with exit code 3",
        {"add-filter good.parquet damaged.parquet -c user_id --dry-run": 3},
    ),
    Claim(
        "schedule.md",
        "If `--where` selects no file, because none arrived, the exit code is 3",
        {"add-filter lake -c user_id --where \"day = '2030-01-01'\" --dry-run": 3},
    ),
    Claim(
        "schedule.md",
        "systemd marks a run as failed if its [exit code](../reference/exit-codes.md) is not 0",
        tests=("tests/test_guides.py::test_the_units_of_systemd",),
    ),
    Claim(
        "schedule.md",
        "removes its temporary files and ends with exit code 143",
        tests=("tests/running/test_local_runner.py::test_a_terminated_command_leaves_nothing",),
    ),
    Claim(
        "spark-job.md",
        "the exit code is 130 or 143",
        tests=(
            "tests/spark/test_interrupts_on_spark.py"
            "::test_an_interrupted_run_removes_what_it_began",
        ),
    ),
    Claim(
        "undo.md",
        "A file stays as it is, with exit code 4, if `check` calls a filter of then an error",
        tests=(
            "tests/verbs/test_remove.py"
            "::test_a_wrong_filter_that_a_repair_removed_does_not_come_back",
            "tests/verbs/test_remove.py::test_a_file_with_locked_columns_is_refused",
        ),
    ),
    Claim(
        "verify-and-repair.md",
        "reports the rule, the evidence and the fix, and ends with exit code 1",
        {"verify broken.parquet": 1, "verify good.parquet": 0},
    ),
    Claim(
        "verify-and-repair.md",
        "Exit code 1 means that a change is needed (`--dry-run`), or that an error remains",
        {
            "repair broken.parquet --dry-run": 1,
            "repair broken.parquet --rebuild none -o repaired.parquet": 0,
            "repair good.parquet --dry-run": 0,
        },
    ),
]
CODES = r"[Ee]xit code|\bends? with \d"


TEXT = {
    page.name: BLOCK.sub("", page.read_text())
    for page in PAGES
    if page.parent.name == "how-to" or name_of(page) in ("README.md", "docs/questions.md")
}
"""The pages without their blocks."""
PROSE = {name: " ".join(text.split()) for name, text in TEXT.items()}


def options_of_the_command_line() -> set[str]:
    """Return the options that neither a variable nor a key can set in some command."""
    names = set()
    for command in read_commands().values():
        settable = set(settable_options(command))
        for option in command.params:
            if isinstance(option, Option) and option not in settable:
                names.add(max(option.opts, key=len))
    return names


EXTRAS = PROJECT["optional-dependencies"].keys() - {"unit", "test"}
OF_A_STORE = {"s3", "azure", "gcs"}
NAMES = {
    "one-file.md": (r"^\| `([a-z ]+)` \|", {ABSENT, MAYBE, NO_FILTER, PRESENT, CANNOT_SAY}),
    "choose-columns.md": (r"^\| `([a-z][\w-]*)` \|", {*WRITERS, *named("writers")}),
    "declare.md": (r"^\| `([\w-]+)` \|", filter_spec._KEYS.keys()),
    "install.md": (r"^\| `(\w+)` \|", EXTRAS - OF_A_STORE),
    "object-stores.md": (r"`(\w+)://`", {*_SERVICES, "file"}),
    "old-drafts.md": (r"^\| `([\w-]+)` \|", {dialect.name for dialect in DIALECTS}),
    "output.md": (r"`(\.\w+)`", formats._SUFFIXES.keys()),
}


@each("name", list(NUMBERS))
def test_numbers_are_those_of_the_code(name):
    assert [words for words in NUMBERS[name] if words not in PROSE[name]] == []


def test_small_uploads_to_google_are_those_of_its_library():
    blob = pytest.importorskip("google.cloud.storage.blob")
    words = f"beyond {blob._MAX_MULTIPART_SIZE // MIB} MiB of new bytes"
    assert words in PROSE["object-stores.md"]


@each("name", list(NAMES))
def test_names_are_those_of_the_code(name):
    pattern, names = NAMES[name]
    assert set(re.findall(pattern, TEXT[name], re.MULTILINE)) == set(names)


def test_readme_names_every_command():
    named_there = re.findall(r"`([a-z-]+)`", TEXT["README.md"])
    assert {*COMMANDS, *named("commands")} - {*named_there, "help"} == set()


def test_options_without_variable_and_key_are_all_named():
    (sentences,) = re.findall(
        r"neither a variable nor a key: (.*?) have none", PROSE["configuration.md"]
    )
    there = {name.replace("`-o`", "`--output`") for name in re.findall(r"`-[\w-]+`", sentences)}
    assert there == {f"`{name}`" for name in options_of_the_command_line()}


def test_the_engines_of_explain_are_all_named():
    listed = re.search(r"Engines: (.*?) that are installed", PROSE["choose-columns.md"])
    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == [*RUNNABLE, ALL]


def make_managed_table(folder: Path) -> None:
    """Make a Delta table whose commits go through a catalog."""
    shutil.copytree(FIXTURES / "delta" / "orders", folder)
    write_version(
        folder,
        len(list((folder / "_delta_log").glob("*.json"))),
        protocol(features=["catalogManaged"]),
    )


def make_encrypted_files(folder: Path) -> None:
    """Make an encrypted file with filters, its keys, keys of which one is wrong, and a copy with a
    flipped bit in a filter."""
    keys = (FIXTURES / "encrypted" / "keys.json").read_text()
    for name, text in {"keys.json": keys, "wrong.json": keys.replace("1011", "1111")}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    path = folder / "encrypted.parquet"
    shutil.copy(FIXTURES / "encrypted" / "java-signed.parquet.encrypted", path)
    add_filters(path, "name", in_place=True, keys=json.loads(keys))
    first, *_ = inspect(path, "name", keys=json.loads(keys)).filters
    data = bytearray(path.read_bytes())
    data[first.offset + first.stated_length - 1] ^= 1
    (folder / "flipped.parquet").write_bytes(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the commands of the claims name."""
    folder = tmp_path_factory.mktemp("claims")
    (folder / "fixtures").symlink_to(FIXTURES)
    shutil.copy(FIXTURES / "events.parquet", folder / "plain.parquet")
    add_filters(folder / "plain.parquet", "user_id", output=folder / "good.parquet")
    shutil.copy(folder / "good.parquet", folder / "broken.parquet")
    break_filter(folder / "broken.parquet")
    (folder / "damaged.parquet").write_bytes((folder / "good.parquet").read_bytes()[:1000])
    lake = folder / "lake" / "day=2026-01-01"
    lake.mkdir(parents=True)
    shutil.copy(folder / "good.parquet", lake / "a.parquet")
    shutil.copy(FIXTURES / "pyarrow-filters.parquet", lake / "b.parquet")
    mixed = folder / "mixed"
    mixed.mkdir()
    for name in ("good", "plain", "damaged"):
        shutil.copy(folder / f"{name}.parquet", mixed)
    shutil.copy(FIXTURES / "pyarrow-filters.parquet", mixed / "b.parquet")
    links = folder / "links"
    links.mkdir()
    shutil.copy(folder / "good.parquet", links / "a.parquet")
    (links / "more").symlink_to(lake)
    shutil.copytree(FIXTURES / "delta" / "orders", folder / "orders")
    first, *_ = sorted((folder / "orders").rglob("*.parquet"))
    os.truncate(first, 1000)
    make_managed_table(folder / "managed")
    shutil.copytree(FIXTURES / "paimon" / "orders", folder / "indexed")
    make_encrypted_files(folder)
    for name, paths, column in (
        ("declared.toml", ["good.parquet", "plain.parquet", "damaged.parquet", "lake"], "user_id"),
        ("misspelt.toml", ["good.parquet"], "user_di"),
    ):
        (folder / name).write_text(f"[[filters]]\npaths = {paths}\ncolumns = '{column}'\n")
    return folder


@each("claim", {f"{claim.page}: {claim.words}": claim for claim in CLAIMS if claim.codes})
def test_commands_end_with_the_exit_codes_of_the_pages(claim, folder):
    codes = {}
    for command in claim.codes:
        codes[command], _ = run_in_process(shlex.split(command), folder)
    assert codes == claim.codes
    assert set(map(int, re.findall(r"\d+", claim.words))) <= set(codes.values())


WRITTEN = {
    "add-filter mixed -c user_id": {"good.parquet", "plain.parquet"},
    "remove-filter mixed -c user_id": {"good.parquet"},
    "resize mixed -c user_id --fpp 0.1": {"good.parquet"},
}


@each("command", list(WRITTEN))
def test_files_that_another_folder_gets(command, folder, tmp_path):
    """Those of one-file.md."""
    words = shlex.split(f"{command} -o {tmp_path / 'out'}/")
    code, _ = run_in_process(words, folder)
    written = {path.name for path in (tmp_path / "out").rglob("*.parquet")}
    assert (code, written) == (3, WRITTEN[command])


@each("claim", {f"{claim.page}: {claim.words}": claim for claim in CLAIMS if claim.tests})
def test_tests_that_a_claim_names_exist(claim):
    for test in claim.tests:
        path, _, name = test.partition("::")
        tree = ast.parse((REPOSITORY / path).read_text())
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@each("name", list(PROSE))
def test_every_exit_code_of_a_page_is_claimed(name):
    """A new sentence with an exit code needs a row above; one that is gone, or changed, has none
    left."""
    unclaimed = PROSE[name]
    for claim in CLAIMS:
        if claim.page == name:
            assert unclaimed.count(claim.words) == 1, claim.words
            unclaimed = unclaimed.replace(claim.words, "")
    assert re.findall(rf".{{0,80}}(?:{CODES}).{{0,80}}", unclaimed) == []
