"""Each engine once per test session, started by the first test that needs it, skipped with a reason
where it is not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from interop.corpus_pairs import PairMaker
from interop.query_engines import ENGINES, AnyEngine, ClickHouse, Spark

Engines = Callable[[str], AnyEngine]


@pytest.fixture(scope="session")
def engines(request: pytest.FixtureRequest) -> Iterator[Engines]:
    """`engines(name)`: the engine of this name."""
    started: dict[str, AnyEngine] = {}

    def start(name: str) -> AnyEngine:
        package = {"spark": "pyspark", "clickhouse": "chdb"}.get(name, name)
        pytest.importorskip(package, reason=f"the Python package {package} is not installed")
        if name not in started:
            started[name] = (
                Spark(request.getfixturevalue("spark")) if name == "spark" else ENGINES[name]()
            )
        return started[name]

    yield start
    with suppress(KeyError):
        engine = started["clickhouse"]
        assert isinstance(engine, ClickHouse)
        engine.close()


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest, engines: Engines) -> AnyEngine:
    """The engine that a parameter names."""
    return engines(request.param)


@pytest.fixture(scope="session")
def pairs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PairMaker:
    """Files of every writer with many types, without filters and with ours."""
    return PairMaker(tmp_path_factory.mktemp("pairs"), lambda: request.getfixturevalue("spark"))
