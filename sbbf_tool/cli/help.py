"""`sbbf help`: topics of one screen, and the short help of a command."""

from __future__ import annotations

import click

from sbbf_tool.cli.command import BRIEF, Command, write_sections
from sbbf_tool.cli.options import SHARED, Option, is_shared
from sbbf_tool.cli.page import Page
from sbbf_tool.extension import load, named
from sbbf_tool.hints import suggest

OPTIONS = "options"
"""The topic of the options that mean the same in every command, which is longer than one screen."""
TOPICS = {
    "exit-codes": """
The exit codes of all commands; with several files, the highest of all files.

  0    done; probe, explain: some value may be there
  1    probe, explain: all values are absent; verify, check, repair: findings;
       apply: the files do not have the declared filters
  2    the request is wrong: no such column, option or setting, or a value that
       the column cannot hold in any file
  3    the input is wrong: missing, not Parquet, damaged; verify: the key of a
       column is missing
  4    refused: possible, but unsafe as requested; the key of the footer is
       missing
  5    a write failed: disk full, input/output error
  70   a defect of sbbf
  130  interrupted (129: terminal closed, 141: output closed, 143: terminated)

With several files, probe and explain end with 0 if any file may hold a value,
with 2 if no file has the column, or none can hold one of the values, and with
3 or 4 if one cannot be read.

An error is one line on standard error: file, place, what is wrong, what to
do. --verbose adds the traceback.
""",
    "settings": """
Most options can be set by a file, and by variables, which override the file.
The command line overrides both. The file is sbbf.toml, here or in a folder
above, or one that --config names:

  engines = ["duckdb", "spark-4.0"]    # before all tables: who reads the files
  [check]                              # a table for each command
  max-fpp = 0.05                       # --max-fpp, or SBBF_CHECK_MAX_FPP
  require = ["user_id"]                # in a variable: names, spaces between
  [[filters]]                          # what apply and check take
  paths = "events/**"
  columns = ["user_id"]
  max-bytes = "1MiB"
  [spark]                              # properties of Spark: sbbf help spark
  executor.instances = 100
  [indexes]                            # what probe and explain ask first
  "s3://lake/events" = "events.sbbfx"

In pyproject.toml, the tables are [tool.sbbf.check], [[tool.sbbf.filters]], ...
An unknown key is an error, as is a variable SBBF_... that nothing reads.

For the command line alone are targets (-o, --in-place), risks (--allow), what
else changes files (--rebuild, ...), --report, --state and --keys; keys have
variables for all commands, SBBF_KEYS and SBBF_KEYS_FILE.
""",
    "spark": """
The commands that take PATHs can do their work on the executors of Spark:

  sbbf verify s3://bucket/lake --on spark
  sbbf add-filter lake -c user_id --in-place --on 'spark:local[4]'
  sbbf inspect spark:db.events --on spark:sc://host:15002

After spark: is the address of a cluster or of a Connect server; without it,
Spark's configuration names one. The PATH spark:db.events is a table in Spark's
catalog. Settings of Spark are in sbbf.toml, in a table of their own:

  [spark]
  executor.instances = 100

Settings can run code: they are read from a file that --config names, or that
no other user can write.

Spark needs Java and the extra of this package, in a checkout:

  pip install '.[spark]'

Results and exit codes are those of the local runner, which is faster on one
machine. In Spark itself, spark.read.format("sbbf").load("lake") is a table
with a row per filter.
""",
}


@click.command(cls=Command)
@click.argument("words", metavar="[TOPIC | COMMAND]", nargs=-1)
def command(words: tuple[str, ...]) -> None:
    """Explain exit-codes, options or another topic, or a command on one screen.

    \b
    $ sbbf help exit-codes
    $ sbbf help add-filter
    """
    topics = {**TOPICS, **named("topics")}
    if len(words) == 1 and words[0] in topics:
        page = Page()
        text = TOPICS.get(words[0]) or load(topics[words[0]])
        for line in text.strip().split("\n"):
            page.say(line)
        return
    context = click.get_current_context().find_root()
    if words == (OPTIONS,):
        _explain_shared_options(context)
        return
    context.meta[BRIEF] = True
    for word in words:
        group = context.command
        known = group.get_command(context, word) if isinstance(group, click.Group) else None
        if known is None:
            names = [OPTIONS, *topics]
            if isinstance(group, click.Group):
                names += group.list_commands(context)
            hint = suggest(word, names)
            raise click.UsageError(f"unknown topic or command {word!r}; {hint}")
        context = known.context_class(known, info_name=word, parent=context)
    click.echo(context.get_help())


def _explain_shared_options(context: click.Context) -> None:
    """Print the options that mean the same in every command, by topic."""
    group = context.command
    assert isinstance(group, click.Group)
    options: dict[str, Option] = {}
    for name in group.list_commands(context):
        known = group.get_command(context, name)
        for parameter in known.params if known is not None else ():
            if is_shared(parameter):
                assert isinstance(parameter, Option)
                options.setdefault(parameter.key, parameter)
    sections: dict[str, list[tuple[str, str]]] = {topic: [] for topic in SHARED}
    introductions: dict[str, str] = {}
    for option in options.values():
        record = option.get_help_record(context)
        if record is not None:
            sections[option.topic].append(record)
        if option.introduction:
            introductions[option.topic] = option.introduction
    formatter = context.make_formatter()
    write_sections(formatter, sections, introductions)
    click.echo(formatter.getvalue().strip("\n"))
