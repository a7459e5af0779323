"""Delta tables for tests, made by delta-rs or copied from real ones, and their rows by delta-rs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa


def rows_of(first: int, count: int, day: str = "a") -> pa.Table:
    return pa.table(
        {"id": pa.array(range(first, first + count), pa.int64()), "day": pa.array([day] * count)}
    )


def make_table(path: Path, files: int = 3, partitioned: bool = False, **options: Any) -> Path:
    """Write a table of `files` files with ten rows each, one version a file."""
    by = {"partition_by": ["day"]} if partitioned else {}
    for number in range(files):
        deltalake.write_deltalake(
            path,
            rows_of(number * 10, 10, "ab"[number % 2]),
            mode="append",
            **(options if number == 0 else {}),
            **by,
        )
    return path


def copy_table(source: Path, target: Path) -> Path:
    """Copy a table to a folder in which everything can be written."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for folder, _, _ in os.walk(target):
        os.chmod(folder, 0o755)
    return target


def read_rows(path: Path | str, version: int | None = None) -> list[str] | str:
    """Return the rows by delta-rs, sorted; or the first line of its error."""
    try:
        table = deltalake.DeltaTable(path, version=version)
        answer = deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}".replace(str(path), "")
    return sorted(map(repr, pa.table(answer).to_pylist()))


def ids_of(path: Path | str, version: int | None = None) -> list[int]:
    table = deltalake.DeltaTable(path, version=version)
    answer = (
        deltalake.QueryBuilder()
        .register("t", table)
        .execute("select id from t order by id")
        .read_all()
    )
    return pa.table(answer).column("id").to_pylist()
