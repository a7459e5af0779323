"""The recipe for dbt: dbt-duckdb writes a model as a Parquet file, and the scripts of the page add
and check its filters."""

from __future__ import annotations

from pathlib import Path

import pytest

import sbbf_tool
from support.pages import FIXTURES
from support.recipes import break_filter, install, run, write_recipe

pytestmark = [
    pytest.mark.nightly(minutes=1),
    pytest.mark.environment(minutes=3),
    pytest.mark.timeout(900),
]


class Project:
    """The project of the page in a folder, with a further model that lacks the columns."""

    def __init__(self, folder: Path) -> None:
        # dbt-core 1.12 needs a package that fetches itself from a code host.
        self._programs = install("dbt-duckdb", "1.11.1", "dbt-core==1.11.16", "dbt-duckdb==1.11.1")
        self._folder = folder
        self.lake = folder / "lake"
        self.lake.mkdir()
        write_recipe("dbt", folder)
        (folder / "models" / "countries.sql").write_text(
            "select country, count(*) as sessions from {{ ref('sessions') }} group by all\n"
        )

    @property
    def sessions(self) -> Path:
        return self.lake / "sessions.parquet"

    def run(self, *command: str) -> tuple[int, str]:
        variables = {
            "LAKE": str(self.lake),
            "SOURCE": str(FIXTURES / "events.parquet"),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }
        done = run([*command], self._folder, variables, programs=self._programs)
        return done.returncode, done.stdout


@pytest.fixture
def project(tmp_path) -> Project:
    new_project = Project(tmp_path)
    code, output = new_project.run("sh", "build.sh")
    assert code == 0, output
    return new_project


def test_the_files_of_the_models_get_filters_and_pass(project):
    assert {path.name for path in project.lake.iterdir()} == {
        "sessions.parquet",
        "countries.parquet",
    }
    assert {filter.column for filter in sbbf_tool.inspect(project.sessions).filters} >= {
        "user_id",
        "session",
    }
    assert sbbf_tool.verify(project.sessions).is_sound
    code, output = project.run("sh", "check.sh")
    assert code == 0, output


def test_the_check_fails(project):
    break_filter(project.sessions)
    code, output = project.run("sh", "check.sh")
    assert code == 1, output
    assert f"false-negatives: 1 finding in 1 file ({project.sessions})" in output
    code, output = project.run("dbt", "build")
    assert code == 0, output
    code, output = project.run("sh", "check.sh")
    assert code == 1, output
    assert f"missing-filter: 2 findings in 1 file ({project.sessions})" in output
