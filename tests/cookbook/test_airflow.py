"""The recipe for Airflow: Airflow 3 runs the DAG of the page, with a database of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.recipes import DAYS, Lake, install, run, write_recipe
from support.tables import each

pytestmark = [
    pytest.mark.nightly(minutes=2),
    pytest.mark.environment(minutes=4),
    pytest.mark.timeout(900),
]

PROGRAM = """
import json, sys
from datetime import datetime, timezone
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
assert bag.import_errors == {}, bag.import_errors
day = datetime.fromisoformat(sys.argv[2]).replace(tzinfo=timezone.utc)
run = bag.dags["bloom_filters"].test(logical_date=day)
states = {task.task_id: task.state for task in run.get_task_instances()}
print("result:", json.dumps([run.state, states]))
"""


class Airflow:
    """Airflow with its database in a folder."""

    def __init__(self, folder: Path) -> None:
        self._programs = install("airflow", "3.3.2", "apache-airflow-core==3.3.2")
        self._folder = folder
        done = self._run("airflow", "db", "migrate")
        assert done.returncode == 0, done.stdout

    def _run(self, *command: str, lake: Path | None = None):
        settings = {"LOAD_EXAMPLES": "false", "DEFAULT_TASK_RETRY_DELAY": "1"}
        variables = {f"AIRFLOW__CORE__{name}": value for name, value in settings.items()}
        return run(
            [*command],
            self._folder,
            {**variables, "AIRFLOW_HOME": str(self._folder), "LAKE": str(lake)},
            programs=self._programs,
        )

    def run_day(self, lake: Path, day: str) -> tuple[str, dict[str, str], str]:
        """Run the DAG when a day begins; return the states of the run and of its tasks, and what
        they print."""
        write_recipe("airflow", self._folder)
        done = self._run("python", "-c", PROGRAM, str(self._folder / "dags"), day, lake=lake)
        lines = [line for line in done.stdout.splitlines() if line.startswith("result: ")]
        assert len(lines) == 1, done.stdout
        state, states = json.loads(lines[0].removeprefix("result: "))
        return state, states, done.stdout


@pytest.fixture(scope="module")
def airflow(tmp_path_factory) -> Airflow:
    return Airflow(tmp_path_factory.mktemp("airflow"))


def test_the_run_adds_the_filters_of_the_day_before_and_succeeds(airflow, tmp_path):
    lake = Lake(tmp_path / "lake", days=(DAYS[1],))
    assert lake.count_filters(DAYS[0]) == 0
    state, states, output = airflow.run_day(lake.folder, DAYS[1])
    assert (state, states) == ("success", {"add_filters": "success", "check_filters": "success"}), (
        output
    )
    assert lake.count_filters(DAYS[0]) == 3


@each("defect, rule", [("remove_filters", "missing-filter"), ("break_filter", "false-negatives")])
def test_the_run_fails(airflow, tmp_path, defect, rule):
    lake = Lake(tmp_path / "lake")
    getattr(lake, defect)(DAYS[1])
    state, states, output = airflow.run_day(lake.folder, DAYS[1])
    assert (state, states) == ("failed", {"add_filters": "success", "check_filters": "failed"}), (
        output
    )
    assert f"error: {rule}: 1 finding in 1 file ({lake.path(DAYS[1])})" in output
