"""`replace` where others are, and where calls fail: the file is the old one or the new one,
whole."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sbbf_tool.errors import ChangedError, RefusedError, UnreadableError, WriteError
from sbbf_tool.storage import leftovers, local, system_calls
from sbbf_tool.storage.leftovers import sweep
from sbbf_tool.storage.local import replace_local
from sbbf_tool.storage.source import LocalSource
from storage.replacing import NEW, OLD, accept, append, failing, names
from support.places import open_folder, small_disk, without_privileges
from support.tables import each


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(OLD)
    return path


# Who else is there


def test_a_second_writer_of_a_file_is_refused(path):
    refused = []

    def write_too(draft: LocalSource) -> None:
        with pytest.raises(RefusedError, match="another process is writing this file"):
            append(path)
        refused.append(draft.name)

    append(path, verify=write_too)
    assert len(refused) == 1
    assert path.read_bytes() == NEW


def test_the_second_of_two_writers_to_a_new_name_is_refused(path):
    out = path.with_name("out")
    with pytest.raises(RefusedError, match="the target exists"):
        append(path, out, pieces=[b"late"], verify=lambda draft: append(path, out) and None)
    assert out.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet", "out"]


def test_a_reader_of_a_replaced_file_may_not_replace_it_again(path):
    with LocalSource(path) as late:
        append(path)
        with pytest.raises(RefusedError, match="the file changed"):
            replace_local(late, str(path), late.size, [b"late"], accept)
    assert path.read_bytes() == NEW


# Other programs, which know no lock, between the last check and the exchange of names


def let_others_act(monkeypatch: pytest.MonkeyPatch, *changes: Callable[[], object]) -> None:
    """Let other writers make one of these changes right before each exchange of names."""
    exchange, remaining = system_calls.exchange, iter(changes)

    def act_first(first: str, second: str) -> None:
        next(remaining, lambda: None)()
        exchange(first, second)

    monkeypatch.setattr(system_calls, "exchange", act_first)


def put(path: Path, content: bytes) -> Callable[[], None]:
    """Return the change of a writer that replaces a file as programs do."""

    def change() -> None:
        path.with_name("other").write_bytes(content)
        os.rename(path.with_name("other"), path)

    return change


@each("length", [3, len(OLD)])
def test_a_file_that_came_after_the_last_check_stays(path, monkeypatch, length):
    let_others_act(monkeypatch, put(path, bytes(length)))
    with pytest.raises(ChangedError, match="the file changed"):
        append(path)
    assert path.read_bytes() == bytes(length)
    assert names(path.parent) == ["a.parquet"]


def test_bytes_that_came_after_the_last_check_stay(path, monkeypatch):
    let_others_act(monkeypatch, lambda: path.write_bytes(OLD[::-1]))
    with pytest.raises(ChangedError, match="the file changed"):
        append(path)
    assert path.read_bytes() == OLD[::-1]
    assert names(path.parent) == ["a.parquet"]


def test_a_file_that_was_removed_after_the_last_check_does_not_come_back(path, monkeypatch):
    let_others_act(monkeypatch, path.unlink)
    with pytest.raises(ChangedError, match="the file changed"):
        append(path)
    assert names(path.parent) == []


def test_of_two_files_that_came_after_the_last_check_the_later_has_the_name_and_both_are_kept(
    path, monkeypatch
):
    let_others_act(monkeypatch, put(path, b"first"), put(path, b"second"))
    with pytest.raises(RefusedError, match="several other processes replaced the file") as caught:
        append(path)
    assert not isinstance(caught.value, ChangedError), (
        "a command that began again would not report it"
    )
    assert path.read_bytes() == b"second"
    (kept,) = (name for name in names(path.parent) if name != path.name)
    assert path.with_name(kept).read_bytes() == b"first"
    assert kept in caught.value.message
    sweep(*os.path.split(path))
    assert path.with_name(kept).exists()


def test_a_file_is_kept_that_cannot_get_its_name_back(path, monkeypatch):
    let_others_act(monkeypatch, put(path, b"first"), path.unlink)
    with pytest.raises(RefusedError, match="is the file of one of them"):
        append(path)
    (kept,) = names(path.parent)
    assert path.with_name(kept).read_bytes() == b"first"


def sweep_all(path: Path) -> Callable[[str], None]:
    """Return what a second command does at its start."""
    return lambda temporary: sweep(*os.path.split(path))


def remove(temporary: str) -> None:
    os.unlink(temporary)


def act_around(
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[], object],
    between: Callable[[str], object],
    *,
    after: int,
) -> None:
    """Let one program act before the first exchange of names, and one at once after the exchange
    with this number; it gets the path that is exchanged with the file."""
    exchange, calls = system_calls.exchange, []

    def act(first: str, second: str) -> None:
        calls.append(first)
        if len(calls) == 1:
            before()
        exchange(first, second)
        if len(calls) == after:
            between(first)

    monkeypatch.setattr(system_calls, "exchange", act)


@each("base", ["of the file", "of the folder"])
def test_what_another_writer_put_there_is_not_swept_before_it_has_its_name_back(
    path, monkeypatch, base
):
    act_around(
        monkeypatch,
        put(path, b"theirs"),
        sweep_all(path) if base == "of the file" else lambda temporary: sweep(str(path.parent)),
        after=1,
    )
    with pytest.raises(ChangedError, match="the file changed"):
        append(path)
    assert path.read_bytes() == b"theirs"
    assert names(path.parent) == ["a.parquet"]


def test_a_file_that_is_removed_between_the_exchanges_is_reported_as_lost(path, monkeypatch):
    act_around(monkeypatch, put(path, b"theirs"), remove, after=1)
    with pytest.raises(WriteError, match="what it wrote was removed before it had its name back"):
        append(path)
    assert path.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet"]


@each("then", ["removed", "swept"])
def test_a_file_that_is_held_is_kept_between_the_exchanges(path, monkeypatch, then):
    """The second program acts when the file is open, right before the names are exchanged back."""
    exchange, calls = system_calls.exchange, []

    def act(first: str, second: str) -> None:
        calls.append(first)
        if len(calls) == 1:
            put(path, b"theirs")()
        elif len(calls) == 2 and then == "removed":
            os.unlink(first)
        elif len(calls) == 2:
            # Neither the target nor what has the temporary name is locked by another process.
            put(path, b"second")()
            sweep(*os.path.split(path))
        exchange(first, second)

    monkeypatch.setattr(system_calls, "exchange", act)
    with pytest.raises(RefusedError, match="is the file of one of them"):
        append(path)
    (kept,) = (name for name in names(path.parent) if name != path.name)
    assert {path.read_bytes(), path.with_name(kept).read_bytes()} == {
        b"theirs",
        NEW if then == "removed" else b"second",
    }


@each("code", system_calls.NO_EXCHANGE)
def test_file_systems_that_exchange_no_names(path, monkeypatch, code):
    monkeypatch.setattr(system_calls, "exchange", failing(code))
    append(path)
    assert path.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet"]


def test_a_file_system_that_ignores_the_flag(path, monkeypatch):
    monkeypatch.setattr(system_calls, "exchange", os.rename)
    append(path)
    assert path.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet"]


def test_a_system_without_the_call(path, monkeypatch):
    monkeypatch.setattr(system_calls, "_find_function", lambda name: None)
    append(path)
    assert path.read_bytes() == NEW


@each("precious", [False, True])
def test_file_systems_without_hard_links(path, monkeypatch, precious):
    out = path.with_name("out")
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    if precious:
        with pytest.raises(RefusedError, match="the target exists"):
            append(path, out, verify=lambda draft: out.write_bytes(b"precious") and None)
        assert out.read_bytes() == b"precious"
    else:
        append(path, out)
        assert out.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet", "out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from storage.replacing import append
link = os.link
def link_and_die(*names):
    link(*names)
    os.kill(os.getpid(), signal.SIGKILL)
os.link = link_and_die
append(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_command_that_was_killed_between_link_and_unlink_can_be_repeated(path):
    out = path.with_name("out")
    command = [sys.executable, "-c", KILLED, str(path), str(out)]
    tests = str(Path(__file__).parent.parent)
    paths = os.pathsep.join([tests, *sys.path])
    killed = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths})
    assert killed.returncode == -signal.SIGKILL
    assert out.stat().st_nlink == 2
    local.ensure_free(str(out))
    append(path, out)
    assert out.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet", "out"]
    with pytest.raises(RefusedError, match="the target exists"):
        append(path, out)


def test_a_new_name_of_a_command_that_still_runs_stays(path, monkeypatch):
    out = path.with_name("out")
    link = os.link

    def link_while_another_command_begins(*paths: str) -> None:
        link(*paths)
        with pytest.raises(RefusedError, match="the target exists"):
            local.ensure_free(str(out))

    monkeypatch.setattr(os, "link", link_while_another_command_begins)
    append(path, out)
    assert out.read_bytes() == NEW


@each("kind", ["another file has the temporary name", "another name", "a link"])
def test_a_target_that_no_killed_command_left_stays(path, kind):
    out = path.with_name("out")
    temporary = path.with_name(f".out.0123456789ab{leftovers.TEMPORARY_SUFFIX}")
    out.write_bytes(b"precious")
    if kind == "another name":
        os.link(out, path.with_name("other"))
    elif kind == "a link":
        temporary.symlink_to(out)
    else:
        os.link(path, temporary)
    with pytest.raises(RefusedError, match="the target exists"):
        append(path, out)
    assert out.read_bytes() == b"precious"
    for name in names(path.parent):
        if name != path.name:
            path.with_name(name).unlink()


# Permissions


def test_a_file_that_may_not_be_written_is_refused():
    with open_folder() as folder, without_privileges():
        path = folder / "a.parquet"
        path.write_bytes(OLD)
        path.chmod(0o444)
        with pytest.raises(RefusedError) as caught:
            append(path)
        assert "no permission" in caught.value.message
        assert "chmod u+w" in caught.value.hint
        assert path.read_bytes() == OLD
        append(path, folder / "b.parquet")
        assert names(folder) == ["a.parquet", "b.parquet"]


def test_a_folder_that_may_not_be_written_is_refused():
    with open_folder() as folder, without_privileges():
        path = folder / "closed" / "a.parquet"
        path.parent.mkdir()
        path.write_bytes(OLD)
        path.parent.chmod(0o555)
        for target in (path, path.with_name("b.parquet")):
            with pytest.raises(RefusedError) as caught:
                append(path, target)
            assert "cannot create a file" in caught.value.message
            assert caught.value.file == str(target)
            assert caught.value.hint == "write the result to another file"
        append(path, folder / "b.parquet")
        assert names(path.parent) == ["a.parquet"]
        path.parent.chmod(0o755)


def test_a_file_that_may_not_be_read_is_unreadable():
    with open_folder() as folder, without_privileges():
        path = folder / "a.parquet"
        path.write_bytes(OLD)
        path.chmod(0)
        with pytest.raises(UnreadableError, match="permission denied"):
            LocalSource(path)


# Sweeping


def test_what_dead_processes_left_is_swept_and_nothing_else(path):
    dead = f".a.parquet.0123456789ab{leftovers.TEMPORARY_SUFFIX}"
    foreign_files = [
        f".a.parquet.notes{leftovers.TEMPORARY_SUFFIX}",
        f".a.parquet.b.0123456789ab{leftovers.TEMPORARY_SUFFIX}",
        f".b.parquet.0123456789ab{leftovers.TEMPORARY_SUFFIX}",
        f"a.parquet.0123456789ab{leftovers.TEMPORARY_SUFFIX}",
        ".a.parquet.0123456789ab",
        "a.parquet.sbbf-tmp",
    ]
    for name in (dead, *foreign_files):
        path.with_name(name).write_bytes(b"x")
    append(path)
    assert names(path.parent) == sorted(["a.parquet", *foreign_files])


def test_what_a_living_process_writes_is_not_swept(path):
    results = []

    def sweep_meanwhile(draft: LocalSource) -> None:
        sweep(*os.path.split(path))
        results.append(os.path.exists(draft.name))

    append(path, verify=sweep_meanwhile)
    assert results == [True]
    assert path.read_bytes() == NEW


def test_a_temporary_file_that_was_swept_before_it_was_locked_is_created_again(path, monkeypatch):
    lock, swept = fcntl.flock, []

    def sweep_first(fd: int, how: int) -> None:
        name = os.readlink(f"/proc/self/fd/{fd}")
        if name.endswith(leftovers.TEMPORARY_SUFFIX) and not swept:
            swept.append(name)
            os.unlink(name)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    append(path)
    assert swept
    assert path.read_bytes() == NEW
    assert names(path.parent) == ["a.parquet"]


@pytest.mark.timeout(10)
@each("kind", ["link", "dangling link", "loop", "fifo", "folder"])
def test_files_of_other_users_under_such_names_are_not_touched(path, monkeypatch, kind):
    planted, victim = (
        path.with_name(f".a.parquet.0123456789ab{leftovers.TEMPORARY_SUFFIX}"),
        path.with_name("victim"),
    )
    if kind == "fifo":
        os.mkfifo(planted)
    elif kind == "folder":
        planted.mkdir()
    else:
        planted.symlink_to(planted if kind == "loop" else victim)
        if kind == "link":
            victim.write_bytes(b"x")
    paths: list[object] = []
    really_open = os.open
    monkeypatch.setattr(
        os,
        "open",
        lambda name, *more, **options: paths.append(name) or really_open(name, *more, **options),
    )
    append(path)
    assert str(planted) not in map(str, paths)
    assert os.path.lexists(planted)
    assert path.read_bytes() == NEW


# Holes


@each("by_kernel", [True, False])
@each("data", [(), (0,), (20,), (0, 31), (5, 6, 17)])
def test_a_copy_has_the_holes_of_its_source(path, monkeypatch, data, by_kernel):
    """A file of 4 MiB, of which only some have content; the last bytes are always such."""
    if not by_kernel:
        monkeypatch.setattr(os, "copy_file_range", failing(errno.EXDEV))
    with open(path, "wb") as stream:
        for place in data:
            os.pwrite(stream.fileno(), os.urandom(1 << 17), place << 17)
        os.ftruncate(stream.fileno(), 4 << 20)
    size = path.stat().st_blocks * 512
    if size >= 4 << 20:
        pytest.skip("this file system has no holes")
    for target in (path.with_name("b.parquet"), path):
        old = path.read_bytes()
        append(path, target)
        assert target.read_bytes() == old + b"new bytes"
        assert target.stat().st_blocks * 512 <= size + (1 << 17)


def test_a_copy_of_a_part_ends_within_data_and_within_holes(path):
    with open(path, "wb") as stream:
        os.pwrite(stream.fileno(), os.urandom(1 << 20), 1 << 20)
        os.ftruncate(stream.fileno(), 4 << 20)
    old = path.read_bytes()
    for keep in (0, 1, 1 << 20, (1 << 20) + 1, (2 << 20) - 1, 2 << 20, 3 << 20, 4 << 20):
        out = path.with_name(f"out{keep}")
        with LocalSource(path) as source:
            replace_local(source, str(out), keep, [b"new"], accept)
        assert out.read_bytes() == old[:keep] + b"new"


# Failing calls


def assert_fails_and_leaves_no_trace(path: Path, reason: str, target: Path | None = None) -> None:
    with pytest.raises(WriteError) as caught:
        append(path, target)
    assert caught.value.exit_code == 5
    assert reason in caught.value.message
    assert caught.value.file == str(target or path)
    assert caught.value.hint == "the old file is untouched"
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == ["a.parquet"]


# Copying without the kernel's help


@each("code", [errno.ENOSYS, errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.EIO])
def test_where_the_kernel_does_not_copy_bytes_are_copied(path, monkeypatch, code):
    monkeypatch.setattr(os, "copy_file_range", failing(code))
    append(path)
    assert path.read_bytes() == NEW


@each("then", ["goes on", "stops", "fails"])
def test_where_the_kernel_copies_a_part_the_rest_follows(path, monkeypatch, then):
    copy, calls = os.copy_file_range, []

    def in_parts(source: int, target: int, count: int, from_: int, to: int) -> int:
        calls.append(count)
        if len(calls) > 3 and then != "goes on":
            return 0 if then == "stops" else failing(errno.EXDEV)()
        return copy(source, target, min(count, 99_991), from_, to)

    monkeypatch.setattr(os, "copy_file_range", in_parts)
    append(path)
    assert path.read_bytes() == NEW
    assert len(calls) > 3


def test_writes_that_take_only_a_part_are_continued(path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:1021]))
    append(path)
    assert path.read_bytes() == NEW


def test_a_source_that_shrinks_while_it_is_copied_is_not_published(path, monkeypatch):
    def shrink(*arguments: object) -> int:
        os.truncate(path, 1000)
        return 0

    monkeypatch.setattr(os, "copy_file_range", shrink)
    with pytest.raises(UnreadableError, match="became shorter"):
        append(path)
    assert os.listdir(path.parent) == ["a.parquet"]


# Failing writes


def test_a_disk_that_is_full(tmp_path):
    with small_disk(tmp_path / "disk", "700k") as folder:
        path = folder / "a.parquet"
        path.write_bytes(OLD)
        assert_fails_and_leaves_no_trace(path, "no space left on device")


def test_a_checksum_that_cannot_be_removed(path, monkeypatch):
    """With it, Spark could not read the new file."""
    unlink = os.unlink
    monkeypatch.setattr(
        os,
        "unlink",
        lambda name: unlink(name) if not str(name).endswith(".crc") else failing(errno.EACCES)(),
    )
    path.with_name(".a.parquet.crc").write_bytes(b"crc")
    with pytest.raises(WriteError, match="permission denied"):
        append(path)
    assert path.read_bytes() == OLD
    assert sorted(os.listdir(path.parent)) == [".a.parquet.crc", "a.parquet"]


def test_a_failed_fsync_of_the_folder_is_reported_and_the_file_remains(path, monkeypatch):
    """The file has its name already: to call that a failure would be wrong, and so would be to say
    nothing."""
    monkeypatch.setattr(local, "sync_folder", failing(errno.EIO))
    (warning,) = append(path)
    assert "is in place, but may not survive a power failure: input/output error" in warning
    assert path.read_bytes() == NEW


def test_a_folder_that_cannot_be_synced_at_all_is_no_failure(path, monkeypatch):
    fsync = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda fd: fsync(fd) if os.path.isfile(f"/proc/self/fd/{fd}") else failing(errno.EINVAL)(),
    )
    assert append(path) == []
    assert path.read_bytes() == NEW
