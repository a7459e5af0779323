"""Locks as NFS gives them, and file systems that give none, by a library put before the system's.

Linux turns flock(2) on NFS into a lock of a byte range: an exclusive one needs a descriptor that
may write, a shared one a descriptor that may read, and EBADF is the answer to any other.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sbbf_tool import RefusedError, add_filters, inspect
from sbbf_tool.storage.system_calls import open_to_change
from support.tables import each

pytestmark = pytest.mark.slow

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

int flock(int fd, int operation) {
    static int (*real)(int, int);
    const char *answer = getenv("FLOCK_ANSWERS");
    int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
    if (!real) real = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
    if (answer) { errno = atoi(answer); return -1; }
    int unwritable = (operation & LOCK_EX) && mode == O_RDONLY;
    int unreadable = (operation & LOCK_SH) && mode == O_WRONLY;
    if (unwritable || unreadable) { errno = EBADF; return -1; }
    return real(fd, operation);
}

/* A file system on an object store, such as mountpoint-s3, has neither of these. */
#define FAIL(name, declared) int name declared { errno = ENOSYS; return -1; }
#ifdef NO_NAMES
FAIL(rename, (const char *from, const char *to))
FAIL(link, (const char *from, const char *to))
#endif
"""
REFUSED = RefusedError.exit_code
WAITS = (
    "import sys\n"
    "from sbbf_tool.editing import publish\n"
    "from sbbf_tool.cli import run\n"
    "from sbbf_tool.file.parquet_file import ParquetFile\n"
    "def wait(self, *arguments, **options):\n"
    "    ParquetFile.__init__ = init\n"
    "    init(self, *arguments, **options)\n"
    "    print('written', flush=True)\n"
    "    sys.stdin.readline()\n"
    "init, real = ParquetFile.__init__, publish.publish\n"
    "def begin(*arguments, **options):\n"
    "    ParquetFile.__init__ = wait\n"
    "    return real(*arguments, **options)\n"
    "import sbbf_tool.editing.open_edit as edit\n"
    "edit.publish = begin\n"
    "sys.exit(run(sys.argv[1:]))\n"
)
"""A command that stands still once its bytes are written and not yet accepted, until it gets a
line."""


@pytest.fixture(scope="module")
def shim(tmp_path_factory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no compiler for the library that answers as NFS does")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "flock.c").write_text(SHIM)
    for name, options in (("flock.so", []), ("no_names.so", ["-DNO_NAMES"])):
        subprocess.run(
            [
                compiler,
                "-shared",
                "-fPIC",
                *options,
                "-o",
                folder / name,
                folder / "flock.c",
                "-ldl",
            ],
            check=True,
        )
    return folder / "flock.so"


@pytest.fixture
def path(fixtures, tmp_path) -> Path:
    return Path(shutil.copy(fixtures / "events.parquet", tmp_path / "a.parquet"))


def add(path: Path, column: str, *options: str) -> list[str]:
    return ["add-filter", str(path), "-c", column, "--jobs", "1", "--in-place", *options]


def run(shim: Path, arguments: list[str], answer: int | None = None) -> tuple[int, str]:
    """A command under the library; with `answer` every lock gets that error."""
    impatient = (
        "from sbbf_tool.running import work; work._PATIENCE_SECONDS = 0.2; from "
        "sbbf_tool.__main__ import main; main()"
    )
    command = [sys.executable, "-c", impatient, *arguments]
    done = subprocess.run(command, env=environment(shim, answer), capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def environment(shim: Path, answer: int | None = None) -> dict[str, str]:
    more = {} if answer is None else {"FLOCK_ANSWERS": str(answer)}
    return {**os.environ, "LD_PRELOAD": str(shim), **more}


@contextmanager
def written_and_waiting(shim: Path, arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, *arguments],
        env=environment(shim),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "written\n"
        yield process
    finally:
        process.stdin.close()
        process.stdout.read()
        process.wait()
        process.stdout.close()


def columns_with_filter(path: Path) -> set[str]:
    return {row.column for row in inspect(path).filters}


@each("first", [(), ("--append",)])
@each("second", [(), ("--append",)])
def test_one_of_two_concurrent_commands_on_nfs_is_refused(shim, path, first, second):
    with written_and_waiting(shim, add(path, "user_id", *first)) as process:
        code, output = run(shim, add(path, "session", *second))
        assert code == REFUSED, output
        assert "another process is" in output
    assert process.returncode == 0
    assert columns_with_filter(path) == {"user_id"}
    assert run(shim, add(path, "session", *second))[0] == 0
    assert columns_with_filter(path) == {"user_id", "session"}
    assert os.listdir(path.parent) == [path.name]


def test_a_killed_append_is_undone_on_nfs(shim, path):
    old = path.read_bytes()
    with written_and_waiting(shim, add(path, "user_id", "--append")) as process:
        code, output = run(shim, ["repair", str(path), "--in-place", "--quick"])
        assert (code, "another process" in output) == (REFUSED, True)
        process.kill()
    assert path.read_bytes() != old
    assert run(shim, ["repair", str(path), "--in-place", "--quick"])[0] == 0
    assert path.read_bytes() == old


@each("answer", ["ENOLCK", "EBADF", "EIO"])
def test_without_locks_nothing_is_appended(shim, path, answer):
    old = path.read_bytes()
    code, output = run(shim, add(path, "user_id", "--append"), getattr(errno, answer))
    assert code == REFUSED
    assert "cannot be locked" in output
    assert "without a lock, two processes could change the file" in output
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == [path.name]
    if answer != "EIO":
        assert run(shim, add(path, "user_id"), getattr(errno, answer))[0] == 0
        assert columns_with_filter(path) == {"user_id"}


@each("answer", ["ENOLCK", "EIO"])
def test_without_locks_no_append_is_undone(shim, path, answer):
    """It may go on, on another machine."""
    with written_and_waiting(shim, add(path, "user_id", "--append")) as process:
        process.kill()
    torn = path.read_bytes()
    code, output = run(shim, ["repair", str(path), "--in-place", "--quick"], getattr(errno, answer))
    assert code == REFUSED
    assert "cannot be locked" in output
    assert path.read_bytes() == torn
    assert run(shim, ["repair", str(path), "--in-place", "--quick"])[0] == 0


# The functions themselves


def test_appending_alone_on_nfs(shim, path, tmp_path):
    add_filters(path, ["user_id"], output=tmp_path / "copy.parquet")
    assert run(shim, add(path, "user_id", "--append"))[0] == 0
    assert path.read_bytes() == (tmp_path / "copy.parquet").read_bytes()


CHANGES = {
    "add": ["add-filter", "a.parquet", "-c", "user_id", "--in-place"],
    "append": ["add-filter", "a.parquet", "-c", "user_id", "--in-place", "--append"],
    "elsewhere": ["add-filter", "a.parquet", "-c", "user_id", "-o", "b.parquet"],
    "remove": ["remove-filter", "filtered.parquet", "--in-place"],
    "report": ["check", "a.parquet", "--report", "r.json"],
}


@each("arguments", CHANGES)
def test_a_file_system_without_rename_is_refused_before_the_work(
    shim, path, arguments, fixtures, monkeypatch
):
    monkeypatch.chdir(path.parent)
    shutil.copy(fixtures / "pyarrow-filters.parquet", "filtered.parquet")
    before = {name: (path.parent / name).read_bytes() for name in os.listdir()}
    code, output = run(shim.with_name("no_names.so"), [*arguments, "--verbose"])
    assert code == REFUSED, output
    assert "cannot rename a file" in output
    assert "built" not in output
    assert {name: (path.parent / name).read_bytes() for name in os.listdir()} == before


def test_only_a_regular_file_is_opened(tmp_path):
    file, link, fifo = tmp_path / "file", tmp_path / "link", tmp_path / "fifo"
    file.write_bytes(b"bytes")
    link.symlink_to(file)
    os.mkfifo(fifo)
    os.close(open_to_change(str(file)))
    descriptors = set(os.listdir("/proc/self/fd"))
    for name in (link, fifo, tmp_path, tmp_path / "none"):
        with pytest.raises(OSError):  # noqa: PT011 - each has its own words
            open_to_change(str(name))
    assert set(os.listdir("/proc/self/fd")) == descriptors
