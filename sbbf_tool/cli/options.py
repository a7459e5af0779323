"""The options of commands: each says which topic of the help it is listed under, and where else
than on the command line it may be set.

An option means the same in every command, and has the same topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.numbers import parse_ratio, parse_size

# Where an option may be set, besides the command line: an environment variable or a configuration
# file.
ANYWHERE = "anywhere"
# In commands that change no file; in the others it would allow or widen a change.
READING = "reading"
COMMAND_LINE = "command line"

Decorator = Callable[[Any], Any]


class Topic(str):
    """What options are about: the heading above them in the help."""

    def option(self, *names_and_help: str, **attributes: Any) -> Decorator:
        """Build an option from its names and its explanation, as `click.option` does."""
        *names, text = names_and_help
        return click.option(*names, cls=Option, topic=self, help=text, **attributes)

    def flag(self, *names_and_help: str, **attributes: Any) -> Decorator:
        """Build an option that takes no value."""
        return self.option(*names_and_help, is_flag=True, **attributes)


COLUMNS = Topic("Columns")
RULES = Topic("Rules")
SAFETY = Topic("Safety")
VIEW = Topic("View")
FILES = Topic("Files")
TABLES = Topic("Tables")
KEYS = Topic("Keys")
RUNNER = Topic("Runner")
OUTPUT = Topic("Output")
SETTINGS = Topic("Settings")
SHARED = (FILES, TABLES, KEYS, RUNNER, OUTPUT, SETTINGS)
"""Topics whose options mean the same in every command: its full help only names them."""
SECTIONS = (COLUMNS, RULES, SAFETY, VIEW, *SHARED)
"""The topics in the order of the help."""


class Option(click.Option):
    """An option with its topic, and with its key in the configuration file."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        topic: Topic,
        place: str = ANYWHERE,
        introduction: str = "",
        peculiarity: str = "",
        **attributes: Any,
    ) -> None:
        super().__init__(names, **attributes)
        self.topic = topic
        self.place = place
        """Where it may be set."""
        self.introduction = introduction
        """What the help says below the heading of the topic, if the command has this option."""
        self.peculiarity = peculiarity
        """What an option that many commands have means in this one alone."""

    @property
    def key(self) -> str:
        return name_of(self).removeprefix("--")


class PureSetting(Option):
    """A setting that is no option: a variable or the configuration file can state it."""

    def __init__(self, names: Sequence[str], **attributes: Any) -> None:
        super().__init__(names, topic=SETTINGS, hidden=True, **attributes)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Keep it from the parser of the command line."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return f"{self.key} = {self.metavar}", self.help or ""


def pure_setting(name: str, text: str, **attributes: Any) -> Decorator:
    """Build a setting that is no option from the name that it would have, and its explanation."""
    return click.option(name, cls=PureSetting, help=text, **attributes)


def name_of(option: click.Parameter) -> str:
    """Return the long name of an option, such as `--fpp`."""
    return max(option.opts, key=len)


def topic_of(option: click.Parameter) -> Topic:
    """Return the topic of an option; those that click makes are about the program."""
    topic: Topic = getattr(option, "topic", SETTINGS)
    return topic


def is_shared(option: click.Parameter) -> bool:
    """Return whether `sbbf help options` explains an option, because it means the same in every
    command."""
    return (
        isinstance(option, Option)
        and not isinstance(option, PureSetting)
        and option.topic in SHARED
    )


def changes_files(command: click.Command) -> bool:
    """Return whether a command can change files; such a command has --dry-run."""
    return any("--dry-run" in parameter.opts for parameter in command.params)


def with_options(*options: Decorator) -> Decorator:
    """Add options to a command in their order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def settable_options(command: click.Command) -> Iterator[Option]:
    """Yield the options of a command that a variable or a configuration file may set."""
    places = (ANYWHERE,) if changes_files(command) else (ANYWHERE, READING)
    for option in command.params:
        if isinstance(option, Option) and option.place in places:
            yield option


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


def allow_option(*risks: str) -> Decorator:
    """Build the option that confirms risks: it passes the set of their names as `allow`."""
    names = ", ".join(risks)
    explanations = ", ".join(f"{name} ({RISKS[name]})" for name in risks)
    return SAFETY.option(
        "--allow",
        f"Accept a risk: {names} (repeat for more). The risks: {explanations}.",
        place=COMMAND_LINE,
        multiple=True,
        type=click.Choice(risks),
        metavar="RISK",
        callback=lambda ctx, param, value: frozenset(value),
    )


engines_option = COLUMNS.option(
    "--engines",
    "The query engines that read the files. Names or releases such as duckdb-1.4, separated by "
    "commas, or all.  [default: all]",
    multiple=True,
    metavar="NAMES",
    callback=lambda ctx, option, texts: split_names(texts),
)


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    """The type of values that a function parses, which returns None for others; `mistake` says
    what these are not, and how to write one."""

    def __init__(self, name: str, parse: Callable[[str], float | None], mistake: str) -> None:
        self.name = name
        self._parse = parse
        self._mistake = mistake

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        parsed = self._parse(str(value))
        if parsed is None:
            self.fail(f"{value!r} {self._mistake}", param, ctx)
        return parsed


SIZE = Parsed("bytes", parse_size, "is not a size; write 65536, 64KiB or 1MB")
"""Type of sizes: `65536`, `64KiB`, `1MB`."""
RATIO = Parsed("float", parse_ratio, "is no number or percentage; write 0.01 or 1%")
"""Type of ratios: `0.01`, `1%`."""

fpp_option = COLUMNS.option(
    "--fpp", "Target false-positive rate.", type=RATIO, default=DEFAULT_FPP, show_default=True
)
