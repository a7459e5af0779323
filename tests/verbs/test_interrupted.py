"""Journals that no append left: a file is cut by no word of another user. And an append that goes
on is not one that was interrupted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sbbf_tool import RefusedError, UnreadableError, add_filters, repair
from sbbf_tool.cli import run
from sbbf_tool.parquet.footer import build_tail, parse_tail
from sbbf_tool.running import work
from support.journals import PLANTS, STRANGER, entry_of, place, planted
from support.places import needs_root
from support.tables import each

pytestmark = pytest.mark.slow

REFUSED = RefusedError.exit_code

CHANGES = {
    "add-filter": ["add-filter", "FILE", "-c", "session", "--in-place"],
    "add-filter --append": ["add-filter", "FILE", "-c", "session", "--in-place", "--append"],
    "remove-filter": ["remove-filter", "FILE", "--in-place"],
    "resize": ["resize", "FILE", "--max-bytes", "64", "--allow", "weak-filters", "--in-place"],
    "repair": ["repair", "FILE", "--quick", "--in-place"],
}
READS = {
    "inspect": ["inspect", "FILE"],
    "probe": ["probe", "FILE", "user_id", "1"],
    "verify": ["verify", "FILE"],
    "check": ["check", "FILE"],
    "add-filter --dry-run": ["add-filter", "FILE", "-c", "session", "--in-place", "--dry-run"],
    "add-filter -o": ["add-filter", "FILE", "-c", "session", "-o", "OUT"],
    "resize -o": ["resize", "FILE", "--max-bytes", "64", "--allow", "weak-filters", "-o", "OUT"],
}
ONLY_READS = ("inspect", "probe", "verify", "check")
"""Commands that look for a journal only where the file cannot be opened."""


@pytest.fixture(scope="module")
def contents(fixtures, tmp_path_factory) -> tuple[bytes, bytes]:
    """A file before and after filters were added to it: both are whole, and a journal can lead from
    one to the other."""
    path = Path(shutil.copy(fixtures / "events.parquet", tmp_path_factory.mktemp("contents")))
    old = path.read_bytes()
    add_filters(path, ["user_id"], in_place=True)
    return old, path.read_bytes()


@pytest.fixture
def path(contents, tmp_path) -> Path:
    path = tmp_path / "lake" / "a b.parquet"
    path.parent.mkdir()
    path.write_bytes(contents[1])
    return path


def run_sbbf(capfd, path: Path, command: list[str]) -> tuple[int, str, str]:
    """Exit code and what was printed; the command's output, if any, is removed."""
    out = path.parent / "out.parquet"
    code = run(
        [
            {"FILE": str(path), "FOLDER": str(path.parent), "OUT": str(out)}.get(word, word)
            for word in command
        ]
    )
    out.unlink(missing_ok=True)
    return (code, *capfd.readouterr())


@each("command", list(CHANGES))
def test_a_sound_journal_is_followed(path, contents, command, capfd):
    """What all others here differ from in one thing."""
    place(path, entry_of(*contents))
    code, _, output = run_sbbf(capfd, path, CHANGES[command])
    # Cut back, the file has no filter to resize or to remove, which is said.
    assert (code, "no column has a filter" in output) == (
        0,
        command in ("remove-filter", "resize"),
    ), output
    assert path.read_bytes()[: len(contents[0])] == contents[0]
    assert (path.read_bytes() == contents[0]) is ("add-filter" not in command)
    assert os.listdir(path.parent) == [path.name]


@each("plant", list(PLANTS))
def test_commands_that_change_a_file_refuse_a_planted_journal(path, contents, plant, capfd):
    if PLANTS[plant].needs_root and os.geteuid():
        pytest.skip("only root can make this")
    with planted(plant, path, entry_of(*contents)) as journal:
        owner = journal.lstat().st_uid
        for command, words in CHANGES.items():
            code, out, output = run_sbbf(capfd, path, words)
            assert code == REFUSED, (command, output)
            where = f"{path.name}.*journal {re.escape(str(journal))}, which belongs to user {owner}"
            assert re.search(f"{where}.*cannot be trusted: .*{PLANTS[plant].rule}", out + output), (
                command,
                output,
            )
            assert path.read_bytes() == contents[1], command
            assert journal.is_symlink() or journal.exists(), command


@pytest.fixture
def usual(path, capfd) -> dict[str, tuple[int, str, str]]:
    """The results of the commands that read, without a journal."""
    return {command: run_sbbf(capfd, path, words) for command, words in READS.items()}


@each("plant", list(PLANTS), every=2)
def test_commands_that_do_not_change_the_file_go_on_with_a_planted_journal(
    path, contents, plant, usual, capfd
):
    if PLANTS[plant].needs_root and os.geteuid():
        pytest.skip("only root can make this")
    with planted(plant, path, entry_of(*contents)) as journal:
        for command, words in READS.items():
            code, out, output = run_sbbf(capfd, path, words)
            assert code == usual[command][0], (command, output)
            warned = [line for line in (out + output).splitlines() if str(journal) in line]
            assert bool(warned) is (command not in ONLY_READS), command
            assert all(re.search(PLANTS[plant].rule, line) for line in warned), command
            assert [line for line in out.splitlines() if line not in warned] == usual[command][
                1
            ].splitlines(), command
            assert path.read_bytes() == contents[1], command


DECOYS = {
    "no footer": lambda old: old + bytes(60) + b"PAR1",
    "a footer of no bytes": lambda old: old + build_tail(b""),
    "a footer that is none": lambda old: old + build_tail(b"\xff" * 100),
    "a footer longer than the file": lambda old: old + b"\xff\xff\xff\x7fPAR1",
    "a footer cut short": lambda old: old[:-8] + build_tail(footer_of(old)[:-40]),
    "an encrypted footer of no bytes": lambda old: old + build_tail(b"", b"PARE"),
    "an encrypted footer that is none": lambda old: old + build_tail(b"\xff" * 100, b"PARE"),
    "an encrypted footer without an algorithm": lambda old: (
        old + build_tail(b"\x00" + bytes(40), b"PARE")
    ),
    "twelve bytes": lambda old: b"PAR1" + build_tail(b""),
}
"""Bytes that end in a magic and are no Parquet file, made of those of one."""


def footer_of(content: bytes) -> bytes:
    """The footer with which a file ends, and its length and magic."""
    return content[parse_tail(content[-8:], len(content)).start :]


@each("name", list(DECOYS))
def test_a_length_at_which_no_footer_ends(path, contents, name, capfd):
    """A user who chooses values of a file can put a magic number anywhere in it."""
    old = contents[0]
    decoy = DECOYS[name](old)
    # The old bytes are where the footer says, but for the shortest.
    whole = decoy + (old[len(decoy) :] if len(decoy) < len(old) else b"") + footer_of(old)
    path.write_bytes(whole)
    place(path, entry_of(decoy, whole))
    for command, words in CHANGES.items():
        code, out, output = run_sbbf(capfd, path, words)
        assert code == REFUSED, (command, output)
        assert re.search(
            f"cannot be trusted: its length is {len(decoy):,} bytes, but no footer ends there",
            out + output,
        )
        assert path.read_bytes() == whole
    code, out, output = run_sbbf(capfd, path, READS["add-filter --dry-run"])
    assert "no footer ends there" in out + output
    assert code in (0, 1) or name == "twelve bytes"


class TestOfEncryptedFiles:
    @pytest.fixture
    def secret(self, fixtures, tmp_path) -> Path:
        return Path(
            shutil.copy(
                fixtures / "encrypted" / "java-columns.parquet.encrypted",
                tmp_path / "secret.parquet",
            )
        )

    def tear(self, path: Path) -> bytes:
        old = path.read_bytes()
        path.write_bytes(old + b"half of a filter")
        place(path, entry_of(old, old + bytes(1000)))
        return old

    def test_without_its_key_the_file_crypto_metadata_are_enough(self, secret, capfd):
        old = self.tear(secret)
        assert run(["repair", str(secret), "--in-place"]) == REFUSED
        assert "encrypted" in capfd.readouterr().err
        assert secret.read_bytes() == old

    def test_with_its_key_the_footer_is_opened(self, secret, fixtures):
        old = self.tear(secret)
        keys = str(fixtures / "encrypted" / "keys.json")
        assert run(["repair", str(secret), "--in-place", "--quick", "--keys", keys]) == 0
        assert secret.read_bytes() == old


# Other users


@needs_root
@each(
    "file, journal",
    {"the owner's": (STRANGER, STRANGER), "root's": (STRANGER, 0), "both root's": (0, 0)},
)
def test_whose_journals_are_followed(path, contents, file, journal):
    """Those of the file's owner, of root, and of the user who runs the command, who is root
    here."""
    os.chown(path, file, file)
    os.chown(place(path, entry_of(*contents)), journal, journal)
    assert repair(path, in_place=True, quick=True).truncated_to == len(contents[0])
    assert path.read_bytes() == contents[0]


# Going on, and interrupted


class killed_append:  # noqa: N801 - used as a function is
    """A process that appends `tail` to a file, and stands still before it is accepted; with
    `then="die"` it is killed there."""

    PROGRAM = (
        "import os, signal, sys\n"
        "from sbbf_tool.storage.append import append\n"
        "from sbbf_tool.storage.local import LocalSource\n"
        "tail = sys.stdin.buffer.read()\n"
        "def wait(written):\n"
        "    if sys.argv[2] == 'die': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    print('appended', flush=True)\n"
        "    signal.pause()\n"
        "append(LocalSource(sys.argv[1]), [tail], wait)\n"
    )

    def __init__(self, path: Path, tail: bytes, then: str = "wait") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM, str(path), then],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(tail)
        self._process.stdin.close()
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == (b"appended\n" if then == "wait" else b"")

    def __enter__(self) -> killed_append:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(params=["whole", "half"])
def tail(request, contents) -> bytes:
    """What is appended: all of it, so that the file can be read, or a part."""
    old, new = contents
    return new[len(old) :] if request.param == "whole" else new[len(old) : -100]


@pytest.fixture
def appending(path, contents, tail) -> Iterator[killed_append]:
    path.write_bytes(contents[0])
    with killed_append(path, tail) as process:
        yield process


def test_an_append_that_goes_on_is_not_called_interrupted(
    path, contents, tail, appending, capfd, monkeypatch
):
    monkeypatch.setattr(work, "_PATIENCE_SECONDS", 0.0)
    for command, words in READS.items():
        code, out, output = run_sbbf(capfd, path, words)
        is_silent = command in ONLY_READS and contents[0] + tail == contents[1]
        assert is_silent or "another process is appending to" in out + output, command
        assert "interrupted" not in out + output
        assert "not finished" not in out + output
        assert code in (UnreadableError.exit_code, REFUSED) or contents[0] + tail == contents[1]
    for command, words in CHANGES.items():
        code, out, output = run_sbbf(capfd, path, words)
        assert code == REFUSED, command
        assert re.search("another process is (appending to|writing)", out + output), command
        assert "interrupted" not in out + output
    assert path.read_bytes() == contents[0] + tail


def test_every_command_that_finds_a_killed_append_reports_it_as_interrupted(
    path, contents, tail, appending, capfd
):
    with appending:
        pass
    for command, words in READS.items():
        _, out, output = run_sbbf(capfd, path, words)
        is_silent = command in ONLY_READS and contents[0] + tail == contents[1]
        assert (
            bool(re.search("interrupted|not finished|truncated to", out + output)) is not is_silent
        ), command
        assert "another process" not in out + output, command
        assert path.read_bytes() == contents[0] + tail
    assert repair(path, in_place=True, quick=True).truncated_to == len(contents[0])
    assert path.read_bytes() == contents[0]
