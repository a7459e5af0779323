"""Settings of the session that a test changes."""

from __future__ import annotations

import pytest


@pytest.fixture
def set_conf(spark):
    before = {}

    def change(name, value):
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.set(name, value)
