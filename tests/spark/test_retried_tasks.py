"""A worker that dies after it has changed files: the next attempt of its task reports them as
changed."""

from __future__ import annotations

import os

import pytest

from support.clusters import Run
from support.lakes import assert_has_filters, small_files

pytestmark = [
    pytest.mark.engines,
    pytest.mark.heavy,
    pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc"),
]
pytest.importorskip("pyspark")

# A file is changed once its old version is removed; the first file that is removed is that of the
# trial whether the folder allows it.
DIES_ONCE = """\
import os
unlink, removed = os.unlink, []
def unlink_and_die(path, **options):
    unlink(path, **options)
    if str(path).endswith(".sbbf-tmp"):
        removed.append(path)
    if len(removed) == 3 and not os.path.exists({marker!r}):
        open({marker!r}, "x").close()
        os._exit(1)
os.unlink = unlink_and_die
"""


def test_files_of_a_lost_task_are_counted_as_changed(tmp_path):
    lake = small_files(tmp_path / "lake", 5)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    marker = scratch / "died"
    (scratch / "sitecustomize.py").write_text(DIES_ONCE.format(marker=str(marker)))
    with Run(lake, scratch, "-c", "id", master="local[1,2]", python_path=scratch) as run:
        assert run.process.wait(300) == 0, run.read_output()
    assert marker.exists()
    assert "5 files: 5 done; 5 filters added" in run.read_output()
    assert_has_filters(lake, ["id"])
