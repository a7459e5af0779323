"""What every option is about: its section of the help, where it may be set, and what its value names.

One table covers all commands, because an option has one meaning everywhere. An option of an extension may have it as its attribute `about`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import click

COLUMNS, RULES, SAFETY, OUTPUT, KEYS, MANY_FILES, GENERAL = "Columns", "Rules", "Safety", "Output", "Keys", "Many files", "General"
SECTIONS = (COLUMNS, RULES, SAFETY, OUTPUT, KEYS, MANY_FILES, GENERAL)
"""The sections of the help, in its order."""

# Where an option may be set, besides the command line: an environment variable or a configuration file.
ANYWHERE = "anywhere"
READING = "reading"  # in commands that change no file; in the others it would allow or widen a change
COMMAND_LINE = "command line"

# What a value names, for the completion of it.
COLUMN, FILE, GROUP_OR_RULE, TYPE = "column", "file", "rule", "type"


class About(NamedTuple):
    section: str
    settable: str = ANYWHERE
    names: str | None = None


_ABOUT = {
    "--column": About(COLUMNS, READING, COLUMN),
    "--any-column": About(COLUMNS),
    "--value": About(COLUMNS, READING),
    "--values-file": About(COLUMNS, READING, FILE),
    "--null": About(COLUMNS, READING),
    "--type": About(COLUMNS, names=TYPE),
    "--dialect": About(COLUMNS),
    "--filters-only": About(COLUMNS),
    "--confirm": About(COLUMNS),
    "--rows": About(OUTPUT),
    "--names": About(OUTPUT),
    "--null-separated": About(OUTPUT),
    "--strict": About(COLUMNS),
    "--all": About(COLUMNS),
    "--no-bitsets": About(COLUMNS),
    "--engine": About(COLUMNS),
    "--engines": About(COLUMNS),
    "--run": About(COLUMNS, READING),
    "--mine": About(COLUMNS, READING),
    "--all-types": About(COLUMNS),
    "--emit": About(OUTPUT),
    "--query": About(COLUMNS),
    "--queries": About(COLUMNS, names=FILE),
    "--reader": About(COLUMNS, COMMAND_LINE),
    "--writer": About(COLUMNS, COMMAND_LINE),
    "--only": About(COLUMNS),
    "--exact": About(RULES),
    "--snapshot": About(COLUMNS),
    "--branch": About(COLUMNS),
    "--advise": About(COLUMNS, COMMAND_LINE),
    "--fpp": About(COLUMNS),
    "--ndv": About(COLUMNS),
    "--bytes": About(COLUMNS),
    "--max-bytes": About(COLUMNS),
    "--drop": About(COLUMNS, COMMAND_LINE),
    "--rebuild": About(COLUMNS, COMMAND_LINE),
    "--compact": About(COLUMNS, COMMAND_LINE),
    "--unreadable": About(COLUMNS, COMMAND_LINE),
    "--remove-undeclared": About(COLUMNS, COMMAND_LINE),
    "--require": About(RULES, names=COLUMN),
    "--declared": About(RULES),
    "--max-fpp": About(RULES),
    "--max-bytes-share": About(RULES),
    "--min-ndv": About(RULES),
    "--min-chunk-bytes": About(RULES),
    "--select": About(RULES, names=GROUP_OR_RULE),
    "--ignore": About(RULES, names=GROUP_OR_RULE),
    "--quick": About(RULES),
    "--fail-on": About(RULES),
    "--against": About(COLUMNS, COMMAND_LINE, FILE),
    "--baseline": About(RULES, names=FILE),
    "--list-rules": About(RULES, COMMAND_LINE),
    "--output": About(SAFETY, COMMAND_LINE, FILE),
    "--in-place": About(SAFETY, COMMAND_LINE),
    "--append": About(SAFETY, COMMAND_LINE),
    "--force": About(SAFETY, COMMAND_LINE),
    "--dry-run": About(SAFETY),
    "--allow-table-files": About(SAFETY, COMMAND_LINE),
    "--files-per-commit": About(SAFETY),
    "--commit": About(SAFETY, COMMAND_LINE),
    "--also-new-files": About(SAFETY, COMMAND_LINE),
    "--abandoned": About(SAFETY, COMMAND_LINE),
    "--older-than": About(SAFETY, COMMAND_LINE),
    "--ours": About(SAFETY, COMMAND_LINE),
    "--allow-outside": About(SAFETY, COMMAND_LINE),
    "--max-page-bytes": About(SAFETY),
    "--format": About(OUTPUT),
    "--report": About(OUTPUT, COMMAND_LINE, FILE),
    "--each-file": About(OUTPUT),
    "--row-groups": About(OUTPUT),
    "--matrix": About(OUTPUT),
    "--wide": About(OUTPUT),
    "--stats": About(OUTPUT),
    "--quiet": About(OUTPUT),
    "--verbose": About(OUTPUT),
    "--color": About(OUTPUT),
    "--keys": About(KEYS, COMMAND_LINE, FILE),  # SBBF_KEYS and SBBF_KEYS_FILE are for all commands
    "--files-from": About(MANY_FILES, READING, FILE),
    "--as-files": About(MANY_FILES),
    "--all-versions": About(MANY_FILES),
    "--table": About(MANY_FILES),
    "--where": About(MANY_FILES),
    "--state": About(MANY_FILES, COMMAND_LINE, FILE),
    "--jobs": About(MANY_FILES),
    "--timeout": About(MANY_FILES),
    "--runner": About(MANY_FILES),
    "--master": About(MANY_FILES),
    "--conf": About(MANY_FILES),
    "--config": About(GENERAL, names=FILE),
    "--no-config": About(GENERAL),
    "--debug": About(GENERAL),
    "--version": About(GENERAL, COMMAND_LINE),
    "--help": About(GENERAL, COMMAND_LINE),
}
_UNKNOWN = About(GENERAL, COMMAND_LINE)


def name_of(option: click.Parameter) -> str:
    """Return the long name of an option, such as `--fpp`."""
    return max(option.opts, key=len)


def about(option: click.Parameter) -> About:
    """Return what an option is about; an option that neither says it nor is in the table is general, and for the command line alone."""
    return getattr(option, "about", None) or _ABOUT.get(name_of(option), _UNKNOWN)


def is_known(option: click.Parameter) -> bool:
    return about(option) is not _UNKNOWN


def changes_files(command: click.Command) -> bool:
    """Return whether a command can change files; such a command has --dry-run."""
    return any("--dry-run" in parameter.opts for parameter in command.params)


def settable_options(command: click.Command) -> Iterator[click.Option]:
    """Yield the options of a command that an environment variable or a configuration file may set."""
    where = (ANYWHERE,) if changes_files(command) else (ANYWHERE, READING)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and about(parameter).settable in where:
            yield parameter


def _split_names(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for text in texts for name in text.split(",")))


engines_option = click.option(
    "--engines",
    multiple=True,
    metavar="NAMES",
    callback=_split_names,
    help="The query engines that read the files, separated by commas: duckdb,spark or releases such as duckdb-1.4.  [default: all]",
)
