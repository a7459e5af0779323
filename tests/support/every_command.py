"""Every command of the CLI, with working arguments, its output formats, and the parameters that
take text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

FILE, TABLE, DATA_FILE, COLUMN = "<FILE>", "<TABLE>", "<DATA_FILE>", "<COLUMN>"

DECLARATION = str(Path(__file__).with_name("declared.toml"))

WORKING: dict[str, list[str]] = {
    "inspect": [FILE],
    "probe": [FILE, COLUMN, "1"],
    "apply": [FILE, "--config", DECLARATION],
    "add-filter": [FILE, "-c", COLUMN, "--rebuild", "all", "--in-place"],
    "remove-filter": [FILE, "--in-place"],
    "verify": [FILE],
    "check": [FILE, "--max-fpp", "1e-9", "--fail-on", "info"],
    "rule": ["saturated"],
    "repair": [FILE, "--in-place"],
    "resize": [FILE, "--fpp", "0.5", "--in-place"],
    "advise": [FILE],
    "explain": [FILE, COLUMN, "1"],
    "report": [FILE, "-o", "page.html", "--allow", "overwrite"],
    "index": [FILE, "-c", COLUMN, "-o", "../page.sbbfx", "--dry-run"],
    "engines": [],
    "size": ["--ndv", "1000"],
    "schema": ["inspect"],
    "help": ["exit-codes"],
    "conformance make": ["corpus", "--select", "types/int8.parquet"],
    "conformance run": [
        "--reader",
        "false {file} {column} {value}",
        "--select",
        "booleans/empty.parquet",
    ],
    "paimon inspect": [TABLE],
    "paimon probe": [TABLE, COLUMN, "1"],
    "paimon build": [DATA_FILE, "-c", COLUMN],
    "paimon verify": [TABLE],
    "paimon check": [TABLE],
    "paimon add-index": [TABLE, "-c", COLUMN],
    "paimon remove-index": [TABLE, "-c", COLUMN],
}


_EXACT = ("names", "names0")
"""Formats for programs, which get the bytes of names as they are."""


def formats_of(command: click.Command) -> list[list[str]]:
    """Return the options of each format of text, without any for the default."""
    for parameter in command.params:
        if parameter.name == "form":
            assert isinstance(parameter.type, click.Choice)
            return [
                [],
                *(
                    ["--format", str(choice)]
                    for choice in parameter.type.choices
                    if choice not in ("table", "parquet", *_EXACT)
                ),
            ]
    return [[]]


def text_options(command: click.Command) -> Iterator[str]:
    """Return the options that take any text."""
    for parameter in command.params:
        if (
            isinstance(parameter, click.Option)
            and not parameter.is_flag
            and parameter.type.name in ("text", "path")
        ):
            yield max(parameter.opts, key=len)
