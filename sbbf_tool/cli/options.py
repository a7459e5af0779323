"""What every option is about: its section of the help, where it may be set, and what its value
names.

These tables cover all commands, because an option means the same everywhere. An option of an
extension may say it itself, as `about`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import parse_ratio, parse_size

# The sections of the help, in its order. Options of the shared ones mean the same in every command,
# and are in its full help alone.
COLUMNS = "Columns"
RULES = "Rules"
SAFETY = "Safety"
VIEW = "View"
FILES = "Files"
TABLES = "Tables"
KEYS = "Keys"
RUNNER = "Runner"
OUTPUT = "Output"
SETTINGS = "Settings"
SHARED = (FILES, TABLES, KEYS, RUNNER, OUTPUT, SETTINGS)

_OPTIONS = {
    COLUMNS: "--column --value --values-file --null --type --filters-only --confirm --engines --run"
    " --query --reader --writer --snapshot --advise --fpp --false-files --ndv"
    " --max-bytes --rebuild --compact --remove-undeclared",
    RULES: "--require --max-fpp --select --ignore --fail-on --baseline",
    SAFETY: "--output --in-place --append --allow --dry-run --also-new-files --abandoned --ours",
    VIEW: "--rows --row-groups --quick",
    FILES: "--files-from --where --strict --state",
    TABLES: "--as-files --all-versions",
    KEYS: "--keys",
    RUNNER: "--jobs --on",
    OUTPUT: "--format --report --all --quiet --verbose",
    SETTINGS: "--config --version --help"
    " --max-page-bytes --files-per-commit --timeout --max-bytes-share --min-ndv "
    "--min-chunk-bytes --dialect",
}
SECTIONS = tuple(_OPTIONS)

EXPLANATIONS = {
    "--files-from": "PATH is a Parquet file, a folder of them, a quoted glob, a URL or a table.",
    "--as-files": "Files of a table change in one commit: see sbbf help tables.",
    "--keys": "A key is never a word of the command line, which other users can read.",
    "--on": "Processes of this machine do the work, or Spark: see sbbf help spark.",
    "--format": "Results are on standard output, everything else on standard error.",
    "--config": "A file or variables can set most options, and what has no dashes here: see "
    "sbbf help settings.",
}
"""The explanation of a section, by the option that brings it."""

# Where an option may be set, besides the command line: an environment variable or a configuration
# file.
ANYWHERE = "anywhere"
# In commands that change no file; in the others it would allow or widen a change.
READING = "reading"
COMMAND_LINE = "command line"
_PLACES = {
    READING: "--column --value --values-file --null --run --files-from",
    # SBBF_KEYS and SBBF_KEYS_FILE are for all commands.
    COMMAND_LINE: "--reader --writer --advise --rebuild --compact --remove-undeclared"
    " --output --in-place --append --allow --also-new-files --abandoned --ours"
    " --report --keys --state --version --help",
}

# What a value names, for the completion of it.
COLUMN = "column"
FILE = "file"
GROUP_OR_RULE = "rule"
TYPE = "type"
_NAMED = {
    COLUMN: "--column --require",
    FILE: "--values-file --baseline --output --report --keys --files-from --state --config",
    GROUP_OR_RULE: "--select --ignore",
    TYPE: "--type",
}


class About(Frozen):
    section: str
    settable: str = ANYWHERE
    names: str | None = None


class PureSetting(click.Option):
    """A setting that is no option: a variable or the configuration file can state it."""

    def __init__(self, names: Sequence[str], **attributes: Any) -> None:
        super().__init__(names, **{**attributes, "hidden": True})

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Keep it from the parser of the command line."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return f"{name_of(self).lstrip('-')} = {self.metavar}", self.help or ""


def _key_of_option(lists: Mapping[str, str]) -> dict[str, str]:
    """Return, for each option, the key of the list that it is in."""
    keys: dict[str, str] = {}
    for key, options in lists.items():
        keys.update(dict.fromkeys(options.split(), key))
    return keys


_SECTION = _key_of_option(_OPTIONS)
_PLACE = _key_of_option(_PLACES)
_NAMES = _key_of_option(_NAMED)


def name_of(option: click.Parameter) -> str:
    """Return the long name of an option, such as `--fpp`."""
    return max(option.opts, key=len)


def about(option: click.Parameter) -> About:
    """Return what an option is about; one that neither says it nor is in the tables is a setting,
    and for the command line alone."""
    own: About | None = getattr(option, "about", None)
    if own is not None:
        return own
    name = name_of(option)
    if name not in _SECTION:
        return About(SETTINGS, COMMAND_LINE)
    return About(_SECTION[name], _PLACE.get(name, ANYWHERE), _NAMES.get(name))


def changes_files(command: click.Command) -> bool:
    """Return whether a command can change files; such a command has --dry-run."""
    return any("--dry-run" in parameter.opts for parameter in command.params)


def add_options(
    command: Callable[..., Any], options: Sequence[Callable[[Any], Any]]
) -> Callable[..., Any]:
    """Add options to a command in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def settable_options(command: click.Command) -> Iterator[click.Option]:
    """Yield the options of a command that a variable or a configuration file may set."""
    where = (ANYWHERE,) if changes_files(command) else (ANYWHERE, READING)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and about(parameter).settable in where:
            yield parameter


def split_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names in texts, which commas may separate."""
    names: dict[str, None] = {}
    for text in texts:
        names.update(dict.fromkeys(map(str.strip, text.split(","))))
    return tuple(names)


TABLE_FILES = "table-files"
CONDITIONAL_PUT = "conditional-put"
WEAK_FILTERS = "weak-filters"
OUTSIDE_FILES = "outside-files"
OVERWRITE = "overwrite"
RISKS = {
    TABLE_FILES: "change files that belong to tables",
    CONDITIONAL_PUT: "all writers of a log on S3 create versions by conditional requests",
    WEAK_FILTERS: "write filters whose false-positive rate is above 50 %, and far above the target",
    OVERWRITE: "replace an existing page",
    OUTSIDE_FILES: "read files outside the folder of the table that its metadata names",
}
"""What `--allow` confirms, by its value."""


def allow_option(*risks: str) -> Callable[[Any], Any]:
    """Build the option that confirms risks: it passes the set of their names as `allow`."""
    names = ", ".join(risks)
    explanations = ", ".join(f"{name} ({RISKS[name]})" for name in risks)
    return click.option(
        "--allow",
        multiple=True,
        type=click.Choice(risks),
        metavar="RISK",
        callback=lambda ctx, param, value: frozenset(value),
        help=f"Accept a risk: {names} (repeat for more). The risks: {explanations}.",
    )


engines_option = click.option(
    "--engines",
    multiple=True,
    metavar="NAMES",
    callback=lambda ctx, option, texts: split_names(texts),
    help="The query engines that read the files. Names or releases such as duckdb-1.4, "
    "separated by commas, or all.  [default: all]",
)


class _Bytes(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    name = "bytes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        size = parse_size(str(value))
        if size is None:
            self.fail(f"{value!r} is not a size; write 65536, 64KiB or 1MB", param, ctx)
        return size


class _Ratio(click.types.FloatParamType):
    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        ratio = parse_ratio(str(value))
        if ratio is None:
            self.fail(f"{value!r} is no number or percentage; write 0.01 or 1%", param, ctx)
        return ratio


SIZE = _Bytes()
"""Type of sizes: `65536`, `64KiB`, `1MB`."""
RATIO = _Ratio()
"""Type of ratios: `0.01`, `1%`."""
