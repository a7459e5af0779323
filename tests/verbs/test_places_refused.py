"""Places where a changed file cannot go: refused before the work, with one line and exit code 4."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from sbbf_tool.editing import build
from sbbf_tool.errors import RefusedError
from sbbf_tool.verbs.add_filter import add_filters
from sbbf_tool.verbs.remove_filter import remove_filters
from sbbf_tool.verbs.repair import repair
from sbbf_tool.verbs.resize import resize_filters
from support.places import as_user, needs_root
from support.tables import each

pytestmark = pytest.mark.slow

ME, OTHER_USER = 20001, 20002
FIXTURES = Path(__file__).parent.parent.parent / "fixtures"


@pytest.fixture
def folder(tmp_path_factory):
    folder = Path(f"/tmp/sbbf-shared-{os.getpid()}")
    folder.mkdir()
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


@pytest.fixture(scope="module", autouse=True)
def imported(tmp_path_factory):
    """All that the operations import, which another user may not be able to read."""
    folder = tmp_path_factory.mktemp("imported")
    first, second = folder / "a.parquet", folder / "b.parquet"
    shutil.copy(FIXTURES / "events.parquet", first)
    assert add_filters(first, ["user_id"], in_place=True).filters
    resize_filters(first, ["user_id"], max_bytes=64, output=second, force=True)
    assert repair(second, in_place=True).is_sound
    remove_filters(second, in_place=True)
    add_filters(second, ["user_id"], in_place=True, append=True)


@pytest.fixture
def no_work(monkeypatch):
    """Building a filter, or hashing values, is work."""

    def work(*arguments: object, **more: object) -> None:
        raise AssertionError("it was refused after the work")

    monkeypatch.setattr(build, "build_filter", work)


def shared(
    folder: Path, source: Path, folder_mode: int, owner: int = OTHER_USER, folder_owner: int = 0
) -> Path:
    path = folder / "a.parquet"
    shutil.copy(source, path)
    os.chown(path, owner, owner)
    path.chmod(0o666)
    os.chown(folder, folder_owner, folder_owner)
    folder.chmod(folder_mode)
    return path


CHANGES = {
    "add": lambda path: add_filters(path, ["amount"], in_place=True),
    "add, dry run": lambda path: add_filters(path, ["amount"], in_place=True, dry_run=True),
    "remove": lambda path: remove_filters(path, ["user_id"], in_place=True),
    "resize": lambda path: resize_filters(
        path, ["user_id"], max_bytes=64, in_place=True, force=True
    ),
}


@pytest.fixture
def filtered(tmp_path, fixtures):
    out = tmp_path / "filtered.parquet"
    add_filters(fixtures / "events.parquet", ["user_id"], output=out)
    return out


@needs_root
@each("mode, message", [(0o1777, "sticky"), (0o755, "no permission to write to the folder")])
@each("change", CHANGES)
def test_a_file_that_cannot_be_replaced_is_refused_before_the_work(
    folder, filtered, no_work, change, mode, message
):
    path = shared(folder, filtered, mode)
    before = path.read_bytes()
    with as_user(ME, ME), pytest.raises(RefusedError, match=message) as caught:
        change(path)
    assert caught.value.exit_code == 4
    assert caught.value.file == str(path)
    assert path.read_bytes() == before
    assert os.listdir(folder) == ["a.parquet"]


@needs_root
@each("owner, folder_owner", {"its own file": (ME, 0), "its own folder": (OTHER_USER, ME)})
def test_a_user_who_may_replace_a_file_in_a_sticky_folder_does(
    folder, filtered, owner, folder_owner
):
    path = shared(folder, filtered, 0o1777, owner, folder_owner)
    with as_user(ME, ME):
        assert add_filters(path, ["amount"], in_place=True).filters


@needs_root
def test_root_may_and_so_may_an_append(folder, filtered):
    path = shared(folder, filtered, 0o1777)
    with as_user(ME, ME):
        assert add_filters(path, ["amount"], in_place=True, append=True).filters
    assert remove_filters(path, ["amount"], in_place=True).filters


# Names for the new file


@each("name", ["x" * 300, "loop/out", "a.parquet/out", "loop", "\0", "missing/out"])
def test_a_name_that_no_file_can_have_is_refused_before_the_work(tmp_path, filtered, no_work, name):
    (tmp_path / "loop").symlink_to("loop")
    shutil.copy(filtered, tmp_path / "a.parquet")
    with pytest.raises(RefusedError):
        add_filters(filtered, ["amount"], output=str(tmp_path / name))
