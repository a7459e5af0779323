"""What a journal says, and what no bytes can make it say."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.storage import places
from sbbf_tool.storage.append import Journal, build_journal, parse_journal, recover
from support.journals import STRANGER, entry_of, place
from support.places import needs_root
from support.tables import each

pytestmark = pytest.mark.slow

OLD = b"the old bytes, as long as they may be; " * 10 + b"PAR1"
NEW = OLD + b"and the new, PAR1"


@given(
    st.integers(12, 1 << 62),
    st.integers(0, 1 << 40),
    st.binary(min_size=60, max_size=60),
    st.binary(max_size=64),
)
def test_parsing_reverses_building(length, more, ends_with, new_ends_with):
    journal = Journal(
        length, (ends_with + b"PAR1")[-min(64, length) :], length + more, new_ends_with
    )
    assert parse_journal(build_journal(journal)) == journal
    assert len(build_journal(journal)) < 1000


def ensure_parsed_or_refused(data: bytes) -> None:
    try:
        journal = parse_journal(data)
    except ValueError as error:
        assert str(error).startswith(("it ", "its "))  # noqa: PT017 - both ends are looked at
        return
    assert type(journal.length) is type(journal.new_length) is int
    assert 12 <= journal.length <= journal.new_length
    assert len(journal.ends_with) == min(64, journal.length)
    assert journal.ends_with.endswith((b"PAR1", b"PARE"))


@given(st.data())
def test_any_change_of_a_sound_journal(data):
    sound = bytearray(json.dumps(entry_of(OLD, NEW)).encode())
    for _ in range(data.draw(st.integers(1, 5))):
        sound[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    ensure_parsed_or_refused(bytes(sound))


def accept(read, end: int) -> None:
    assert read(end - 4, 4) == b"PAR1"


def refuse(read, end: int) -> None:
    raise UnreadableError("no footer")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.parquet"
    path.write_bytes(NEW[:-3])
    place(path, entry_of(OLD, NEW))
    return path


def test_a_file_without_a_footer_at_the_old_length_is_not_truncated(path):
    for changes in (True, False):
        with pytest.raises(RefusedError, match=r"no footer ends there \(no footer\)"):
            recover(str(path), refuse, changes=changes)
        assert path.read_bytes() == NEW[:-3]
    assert recover(str(path), accept, changes=False) == len(OLD)
    assert path.read_bytes() == NEW[:-3]
    assert recover(str(path), accept) == len(OLD)
    assert path.read_bytes() == OLD


def test_a_file_that_is_replaced_while_its_footer_is_looked_for(path):
    """What was opened is not what has the name by then."""
    other_path = path.with_name("other")
    other_path.write_bytes(b"another file, PAR1" * 100)

    def replace(read, end: int) -> None:
        os.rename(other_path, path)

    with pytest.raises(RefusedError, match="another process replaced the file"):
        recover(str(path), replace)
    assert path.read_bytes() == b"another file, PAR1" * 100


@needs_root
def test_a_stranger_is_named_by_number(path):
    os.chown(path.with_name(f".{path.name}.sbbf-journal"), STRANGER, STRANGER)
    with pytest.raises(RefusedError, match=f"belongs to user {STRANGER}, cannot be trusted"):
        recover(str(path), accept)


@each(
    "name, is_removed",
    [
        (".gone.parquet.sbbf-journal", True),
        (".a.parquet.sbbf-journal", False),
        (".link.parquet.sbbf-journal", False),
        ("gone.parquet.sbbf-journal", False),
    ],
)
def test_the_journal_of_a_deleted_file_is_swept(tmp_path, name, is_removed):
    (tmp_path / "a.parquet").write_bytes(OLD)
    (tmp_path / "link.parquet").symlink_to("nowhere")
    (tmp_path / name).write_bytes(build_journal(Journal(len(OLD), OLD[-64:], len(OLD) + 9, NEW)))
    places.sweep(str(tmp_path / "a.parquet"))
    assert (tmp_path / name).exists() != is_removed
    (tmp_path / name).unlink(missing_ok=True)
