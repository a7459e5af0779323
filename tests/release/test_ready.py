"""A release is refused until people have filled in what no program can know: authors, addresses and
the date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.tables import each

REPOSITORY = Path(__file__).parents[2]
PROJECT = (REPOSITORY / "pyproject.toml").read_text()
CHANGELOG = (REPOSITORY / "CHANGELOG.md").read_text()
ADDRESSES = ("Changelog", "Documentation", "Issues", "Source")

pytestmark = pytest.mark.slow


def check(folder: Path, tag: str, project: str, changelog: str) -> list[str]:
    """Run the script in a folder with these files; return what it says is not ready."""
    (folder / "release").mkdir()
    (folder / "release" / "ready.py").write_text((REPOSITORY / "release" / "ready.py").read_text())
    (folder / "pyproject.toml").write_text(project)
    (folder / "CHANGELOG.md").write_text(changelog)
    done = subprocess.run(
        [sys.executable, folder / "release" / "ready.py", tag], capture_output=True, text=True
    )
    lines = done.stderr.splitlines()
    assert done.returncode == bool(lines)
    assert all(line.startswith("not ready: ") for line in lines)
    return [line.removeprefix("not ready: ") for line in lines]


def fill_in(project: str, without: str = "") -> str:
    addresses = [
        f'{label} = "https://example.org/{label.lower()}"'
        for label in ADDRESSES
        if label != without
    ]
    project = re.sub(
        r"^authors = \[\].*$", 'authors = [{ name = "The authors" }]', project, flags=re.MULTILINE
    )
    return project.replace("[project.urls]\n", "\n".join(["[project.urls]", *addresses, ""]))


def date(changelog: str) -> str:
    return changelog.replace("## 0.1.0 (unreleased)", "## 0.1.0 (2026-12-01)")


def test_the_checkout_is_refused(tmp_path):
    assert check(tmp_path, "v0.1.0", PROJECT, CHANGELOG) == [
        "pyproject.toml: `authors` is empty; name a person or a group",
        *(
            f"pyproject.toml: [project.urls] has no address https://... for {label}"
            for label in ADDRESSES
        ),
        "CHANGELOG.md: there is no title `## 0.1.0 (YEAR-MONTH-DAY)`",
    ]


def test_a_filled_in_checkout_is_accepted(tmp_path):
    assert check(tmp_path, "v0.1.0", fill_in(PROJECT), date(CHANGELOG)) == []


def test_another_tag_is_refused(tmp_path):
    obstacles = check(tmp_path, "v0.2.0", fill_in(PROJECT), date(CHANGELOG))
    assert obstacles == ["the tag is v0.2.0, but the version in pyproject.toml is 0.1.0"]


@each("label", ADDRESSES)
def test_each_address_is_required(label, tmp_path):
    obstacles = check(tmp_path, "v0.1.0", fill_in(PROJECT, without=label), date(CHANGELOG))
    assert obstacles == [f"pyproject.toml: [project.urls] has no address https://... for {label}"]
