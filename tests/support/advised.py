"""Tables for which the right advice is known."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import advise
from sbbf_tool.verbs.advise import AdviceReport, ColumnAdvice

ROWS, GROUP = 20_000, 4_000


def table(seed: int = 1) -> pa.Table:
    random = Random(seed)
    ids = random.sample(range(10**12), ROWS)
    countries = [f"{first}{second}" for first in "ABCDE" for second in "ABCDE"]
    return pa.table(
        {
            "random_id": pa.array(ids, pa.int64()),
            "sorted_id": pa.array(sorted(ids), pa.int64()),
            "country": [random.choice(countries) for _ in range(ROWS)],
            "uuid": [str(uuid.UUID(int=random.getrandbits(128))) for _ in range(ROWS)],
            "flag": [random.random() < 0.5 for _ in range(ROWS)],
            "half": pa.array(
                [float(random.randrange(2000)) for _ in range(ROWS)], pa.float64()
            ).cast(pa.float16()),
            "nothing": pa.array([None] * ROWS, pa.int32()),
            "maybe": pa.array([number if number % 2 else None for number in ids], pa.int64()),
            "place": pa.array([{"code": f"{random.getrandbits(64):016x}"} for _ in range(ROWS)]),
            "tags": pa.array([[f"{random.getrandbits(64):x}"] for _ in range(ROWS)]),
        }
    )


def write(path: Path, rows: pa.Table | None = None, **options: object) -> Path:
    defaults = {"row_group_size": GROUP, "use_dictionary": ["country"], "store_schema": False}
    pq.write_table(table() if rows is None else rows, path, **{**defaults, **options})
    return path


def advice(
    paths: Path | Iterable[Path], **options: object
) -> tuple[AdviceReport, dict[str, ColumnAdvice]]:
    report = advise(paths, **options)
    return report, {column.column: column for column in report.columns}
