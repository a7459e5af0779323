"""The options of `sbbf check`, and what they state: the policy, also that of the configuration
file, and a baseline: an old report."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sbbf_tool.cli.config_file import Config, ensure_among, place_of_filters
from sbbf_tool.cli.options import RATIO, RULES, SIZE, VIEW, Option, engines_option, pure_setting
from sbbf_tool.cli.settings import ensure_kind, used_config
from sbbf_tool.errors import ErrorPlace, UsageError

if TYPE_CHECKING:
    from sbbf_tool.rules.catalog import PathEntry, PathPolicies, Policy
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.running.table import Table


RULE_OPTIONS = (
    RULES.option(
        "--select",
        "Run only this rule or group (repeat for more). The group declared has the filters of a "
        "table's properties and sbbf.toml.",
        multiple=True,
        metavar="RULE",
    ),
    RULES.option(
        "--ignore", "Skip this rule or group (repeat for more).", multiple=True, metavar="RULE"
    ),
    VIEW.flag("--quick", "Skip the rules that read data.", default=None),
    RULES.option("--fail-on", "Fail from this severity on.  [default: error]", metavar="SEVERITY"),
    RULES.option(
        "--baseline",
        "Do not fail on the findings of this report. It is one of an earlier check.",
        metavar="FILE",
    ),
)
"""The options of every check against rules."""
POLICY_OPTIONS = (
    RULES.option(
        "--require",
        "This column must have filters (repeat for more). Every row group needs one.",
        multiple=True,
        metavar="COLUMN",
    ),
    RULES.option(
        "--max-fpp", "Maximum false-positive rate of a filter.", type=RATIO, metavar="RATE"
    ),
    pure_setting(
        "--max-bytes-share",
        "Maximum bytes of filters per byte of column data.",
        type=RATIO,
        metavar="SHARE",
    ),
    pure_setting(
        "--min-ndv",
        "Minimum number of distinct values in a filter.",
        type=int,
        metavar="N",
    ),
    pure_setting(
        "--min-chunk-bytes",
        "Minimum size of a column chunk that has a filter.",
        type=SIZE,
        metavar="SIZE",
    ),
    engines_option,
    *RULE_OPTIONS,
)
"""The options of the policy of `sbbf check`."""


def from_options(
    ctx: click.Context, options: dict[str, Any], declared_by: Table | None
) -> Policy | PathPolicies:
    """Return the policy of the options, which the configuration file may set for all files or for
    some paths. Raises UsageError.

    The properties of a table can declare filters.
    """
    from sbbf_tool.rules.catalog import PathPolicies, make_policy

    config = used_config(ctx)
    overrides = {}
    in_file = {}
    for name, value in options.items():
        if value in (None, ()):
            continue
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
            in_file[name] = value
        else:
            overrides[name] = value
    filters = declare_filters(config)
    if declared_by is not None:
        filters = (*_filters_of_table(declared_by, is_required=not filters), *filters)
    if filters:
        overrides["filters"] = filters
    entries = list(_path_entries(ctx, config, options)) if config is not None else []
    if not entries:
        return make_policy({**in_file, **overrides})
    return PathPolicies(in_file, entries, overrides)


def _filters_of_table(table: Table, *, is_required: bool) -> Iterable[FilterSpec]:
    """Return the filters that the properties of a table declare. Raises UsageError."""
    from sbbf_tool.writers.settings import parse_settings

    with ErrorPlace(table.name):
        return parse_settings(table.properties, table.column_of_property, is_required=is_required)


def declare_filters(config: Config | None) -> tuple[FilterSpec, ...]:
    """Return the filters that the configuration file declares. Raises UsageError."""
    from sbbf_tool.rules.filter_spec import parse_specs

    if config is None or config.filters is None:
        return ()
    return parse_specs(
        config.filters, config.path, place_of_filters(config.path), is_named=config.is_named
    )


def _path_entries(ctx: click.Context, config: Config, names: Container[str]) -> Iterator[PathEntry]:
    """Yield the tables `paths` of a configuration file, which set options of these names. Raises
    UsageError."""
    from sbbf_tool.rules.catalog import PathEntry

    tables = config.table.get("paths", [])
    place = f"[{config.place.removesuffix(']')}.paths]]"
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"paths must be written as tables {place}", file=config.path)
    options = {
        option.key: option
        for option in ctx.command.params
        if isinstance(option, Option) and option.name in names
    }
    folder = os.path.dirname(os.path.abspath(config.path))
    for table in tables:
        globs = table.get("paths")
        settings = {}
        with ErrorPlace(config.path, place):
            ensure_among(table, ["paths", *options], place)
            if not _are_globs(globs):
                raise UsageError(f"paths must be a glob or a list of globs, not {globs!r}")
            for key, value in table.items():
                if key != "paths":
                    option = options[key]
                    ensure_kind(option, key, value)
                    settings[str(option.name)] = option.type_cast_value(ctx, value)
        globs = (globs,) if isinstance(globs, str) else tuple(globs)
        yield PathEntry(folder, globs, settings, f"{config.path}: {place}")


def _are_globs(value: object) -> bool:
    """Return whether the value of `paths` is a glob or a list of globs."""
    if isinstance(value, str):
        return bool(value)
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(glob, str) and glob for glob in value)
