"""The options that every command of `sbbf lake` has: which files, the keys of encrypted ones, and who does the work."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.page_limit import page_limit_option

if TYPE_CHECKING:
    from sbbf_tool.runner.engine import Engine

LOCAL, SPARK = "local", "spark"

_OPTIONS = (
    click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
    click.option("--where", metavar="PREDICATE", help="Only files of these partitions: \"dt >= '2026-01-01' and region = 'eu'\"."),
    keys_option,
    page_limit_option,
    click.option(
        "--engine",
        type=click.Choice((LOCAL, SPARK)),
        help="Who does the work: processes of this machine, or Spark.  [default: local; spark where --master or --remote is given]",
    ),
    click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes of the local engine.  [default: the cores]"),
    click.option("--master", metavar="URL", help="Spark's master: local[4], spark://host:port, yarn, k8s://...  [default: as configured]"),
    click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark (repeat for more)."),
    click.option("--remote", metavar="URL", help="A Spark Connect server: sc://host:port."),
)


def over_a_lake(function: Callable[..., int]) -> Callable[..., int]:
    """The command `function(engine, lake, ...)` with these options; each module's own come first in its help."""

    @wraps(function)
    def command(
        paths: tuple[str, ...],
        where: str | None,
        keys: Any,
        max_page_bytes: int | None,
        engine: str | None,
        jobs: int | None,
        master: str | None,
        conf: tuple[str, ...],
        remote: str | None,
        **options: Any,
    ) -> int:
        from sbbf_tool.file.page_limit import PageLimit
        from sbbf_tool.runner.engine import Lake
        from sbbf_tool.runner.partitions import parse_predicate

        lake = Lake(paths, parse_predicate(where) if where is not None else None, keys, PageLimit(max_page_bytes, jobs))
        with _chosen(engine, jobs, master, conf, remote) as chosen:
            return function(chosen, lake, **options)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _chosen(engine: str | None, jobs: int | None, master: str | None, conf: tuple[str, ...], remote: str | None) -> Engine:
    engine = engine or (SPARK if master is not None or remote is not None else LOCAL)
    if engine == LOCAL:
        if master is not None or remote is not None or conf:
            raise click.UsageError("--master, --conf and --remote are for --engine spark")
        from sbbf_tool.runner.local_engine import LocalEngine

        return LocalEngine(jobs)
    if jobs is not None:
        raise click.UsageError("--jobs is for --engine local; Spark has its executors")
    from sbbf_tool.spark.engine import SparkEngine

    return SparkEngine(master, dict(map(spark_setting, conf)), remote)


def spark_setting(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise click.UsageError(f"--conf {text}: write key=value")
    return key, value
