"""A catalog of PyIceberg, and a table of two files in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    from extensions.tables.iceberg.iceberg_tables import sql_catalog

    catalog = sql_catalog(tmp_path)
    yield catalog
    catalog.close()


@pytest.fixture
def table(catalog: SqlCatalog) -> Table:
    """Two files of 100 rows."""
    from extensions.tables.iceberg.iceberg_tables import rows

    table = catalog.create_table("n.t", schema=rows(0, 1).schema)
    table.append(rows(0, 100))
    table.append(rows(100, 100))
    return table
