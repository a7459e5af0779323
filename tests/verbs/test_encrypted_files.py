"""Files with modular encryption, by every operation: those of parquet-java in fixtures/encrypted,
and the conformance files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sbbf_tool import (
    AuthenticationError,
    RefusedError,
    SbbfError,
    add_filters,
    advise,
    check,
    explain,
    inspect,
    probe,
    remove_filters,
    repair,
    resize_filters,
    verify,
)
from sbbf_tool.cli import run
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.encryption.modules import Module
from sbbf_tool.file.context import Context
from sbbf_tool.file.keys import read_keys
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import build_header, parse_header
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.parquet.structs import build_struct, parse_struct
from support.corpus_edits import edit_footer
from support.parquet_java import COLUMNS, FIRST_ID, ROW_GROUPS, values_of
from support.samples import listing
from support.tables import each

FILES = ("java-columns", "java-signed", "java-ctr-supplied")
PLAIN = {
    "java-columns": {"id", "nested.code"},
    "java-signed": {"id", "nested.code"},
    "java-ctr-supplied": set(),
}
SECRET = json.loads(
    (Path(__file__).parent.parent.parent / "fixtures" / "encrypted" / "keys.json").read_text()
)["keys"]


def keys_of(name: str, **changes: object) -> dict[str, object]:
    return {
        "keys": SECRET,
        **({"aad_prefix": "fixtures"} if name == "java-ctr-supplied" else {}),
        **changes,
    }


@pytest.fixture
def file(fixtures, tmp_path) -> Callable[[str], Path]:
    """A copy of a fixture that a test may change."""

    def copy(name: str) -> Path:
        return Path(
            shutil.copy(
                fixtures / "encrypted" / f"{name}.parquet.encrypted", tmp_path / f"{name}.parquet"
            )
        )

    return copy


@each("name", FILES)
def test_every_value_is_verified(file, name):
    path = file(name)
    if name == "java-signed":
        add_filters(path, COLUMNS, in_place=True, keys=keys_of(name))
    report = verify(path, keys=keys_of(name))
    assert report.is_sound
    assert {
        (result.row_group, result.column): (result.verified_values, result.problem)
        for result in report.filters
    } == {
        (number, column): (len(values_of(column, number)), None)
        for number in range(ROW_GROUPS)
        for column in COLUMNS
    }
    assert {
        row.encrypted
        for row in inspect(path, keys=keys_of(name)).filters
        if row.column in PLAIN[name]
    } <= {False}
    assert all(
        row.encrypted
        for row in inspect(path, keys=keys_of(name)).filters
        if row.column not in PLAIN[name]
    )
    for column, absent in (("id", FIRST_ID + 1), ("name", "nobody"), ("nested.tag", "none")):
        assert probe(path, column, [absent], filters_only=True, keys=keys_of(name)).is_absent
        for number in range(ROW_GROUPS):
            answers = probe(path, column, values_of(column, number), keys=keys_of(name)).values
            assert {value.row_groups[number].answer for value in answers} == {"maybe"}


@each("append", [False, True])
@each("name", FILES)
def test_what_is_added_is_encrypted_and_comes_off_again(file, name, append):
    path, keys = file(name), keys_of(name)
    old = path.read_bytes()
    report = add_filters(path, COLUMNS, in_place=True, append=append, rebuild="all", keys=keys)
    new = path.read_bytes()
    assert new.startswith(old)
    for row in report.filters:
        module = new[row.offset : row.offset + 64]
        if row.column in PLAIN[name]:
            assert parse_header(module).num_bytes == row.bitset_bytes
        else:
            with pytest.raises(SbbfError):
                parse_header(module)
    assert verify(path, keys=keys).is_sound
    if name == "java-signed":
        remove_filters(path, in_place=True, keys=keys)
        assert path.read_bytes() == old
    else:
        assert {row.kind for row in inspect(path, keys=keys).unreferenced} == {
            "unreferenced filter",
            "superseded footer",
        }
        assert remove_filters(path, compact=True, in_place=True, keys=keys).unreferenced_bytes == 0
        assert path.stat().st_size < len(old)


def test_no_nonce_is_used_twice(file):
    path, keys = file("java-columns"), keys_of("java-columns")
    nonces = []
    for number in range(2):
        out = path.with_name(str(number))
        add_filters(path, ["name"], output=out, rebuild="all", keys=keys)
        with ParquetFile.open(out, Context(keys)) as parquet_file:
            starts = [
                start
                for row_group in range(ROW_GROUPS)
                for start in modules_of(parquet_file, row_group, 1)[:2]
            ]
            crypto = len(parquet_file.footer.cipher.crypto)
            starts.append(parquet_file.footer.start + crypto)
            ciphertext = [
                parquet_file.footer.column_chunk(row_group, 1).encrypted_column_metadata
                for row_group in range(ROW_GROUPS)
            ]
            nonces += [out.read_bytes()[start + 4 : start + 16] for start in starts] + [
                module[4:16] for module in ciphertext
            ]
    assert len(nonces) == len(set(nonces)) == 2 * 10


@each("name", FILES)
def test_resized_repaired_advised_explained_checked(file, name):
    path, keys = file(name), keys_of(name)
    add_filters(path, COLUMNS, in_place=True, rebuild="all", keys=keys)
    resized = resize_filters(path, max_bytes=64, in_place=True, keys=keys, force=True)
    assert resized.filters
    assert verify(path, keys=keys).is_sound
    assert {finding.rule for finding in check(path, keys=keys).findings} >= {"saturated"}
    assert repair(path, in_place=True, keys=keys).is_sound
    assert "saturated" not in {finding.rule for finding in check(path, keys=keys).findings}
    explanation = explain(path, "name", "nobody", keys=keys)
    assert {(group.filter, group.dictionary) for group in explanation.row_groups} <= {
        ("absent", "absent"),
        ("absent", None),
    }
    advice = {
        column.column: column
        for column in advise(str(path), queries=["name = 'name-31'"], keys=keys).columns
    }
    assert advice["name"].filters == ROW_GROUPS
    assert advice["name"].ndv == max(
        len(set(values_of("name", number))) for number in range(ROW_GROUPS)
    )


# Keys that are missing or wrong


@each("name", FILES)
@each("which", list(SECRET))
def test_a_wrong_key_is_an_authentication_error(file, name, which):
    path = file(name)
    wrong = {**SECRET, which: "ab" * (len(SECRET[which]) // 2)}
    if name == "java-ctr-supplied" and which != "tags":
        return
    before = listing(path.parent)
    for work in (
        lambda keys: inspect(path, keys=keys),
        lambda keys: probe(path, "name", ["x"], filters_only=True, keys=keys),
        lambda keys: verify(path, keys=keys),
        lambda keys: check(path, keys=keys),
        lambda keys: add_filters(path, ["id"], in_place=True, rebuild="all", keys=keys),
        lambda keys: remove_filters(path, in_place=True, keys=keys),
    ):
        with pytest.raises(AuthenticationError) as caught:
            work(keys_of(name, keys=wrong))
        assert str(path) in str(caught.value)
        assert not any(key in str(caught.value) for key in wrong.values())
    assert listing(path.parent) == before


def test_without_a_column_key(file):
    path, some = file("java-columns"), keys_of("java-columns", keys={"footer": SECRET["footer"]})
    report = inspect(path, keys=some)
    assert report.locked_columns == ("name", "nested.tag")
    assert {row.column for row in report.filters} == {"id", "score", "nested.code"}
    (value,) = probe(path, "name", ["x"], keys=some).values
    why = "its column is encrypted with a key of its own (key id 'names'), which was not given"
    assert {(answer.answer, answer.reason) for answer in value.row_groups} == {("cannot say", why)}
    before = listing(path.parent)
    for work, message in (
        (lambda: add_filters(path, ["name"], in_place=True, keys=some), "the column is encrypted"),
        (
            lambda: remove_filters(path, ["name"], in_place=True, keys=some),
            "the metadata of the column is encrypted",
        ),
        (
            lambda: remove_filters(path, in_place=True, keys=some),
            "the metadata of the column is encrypted",
        ),
    ):
        with pytest.raises(RefusedError, match=message) as caught:
            work()
        assert "key" in (caught.value.hint or "")
    assert listing(path.parent) == before
    add_filters(path, ["id", "score"], in_place=True, rebuild="all", keys=some)
    assert verify(path, keys=keys_of("java-columns")).is_sound


@each(
    "prefix, error, message",
    [
        (None, RefusedError, "does not store"),
        ("other", AuthenticationError, "the AAD prefix differs"),
    ],
)
def test_an_aad_prefix_that_is_missing_or_another(file, prefix, error, message):
    with pytest.raises(error, match=message):
        inspect(file("java-ctr-supplied"), keys=keys_of("java-ctr-supplied", aad_prefix=prefix))


def test_a_signed_file_that_is_no_longer_marked_as_signed(file):
    path = file("java-signed")

    def strip(metadata: FileMetaData) -> None:
        metadata.encryption_algorithm = metadata.footer_signing_key_metadata = None

    edit_footer(path, strip)
    with pytest.raises(AuthenticationError, match="neither encrypted nor signed"):
        inspect(path, keys=keys_of("java-signed"))


def test_row_groups_keep_their_ordinals(file):
    path, keys = file("java-columns"), keys_of("java-columns")
    with ParquetFile.open(path, Context(keys)) as parquet_file:
        footer = parquet_file.footer
        metadata = parse_struct(FileMetaData, footer.raw)
        del metadata.row_groups[0]
        pages = path.read_bytes()[: footer.start]
        path.write_bytes(b"".join([pages, *footer.stored(build_struct(metadata))]))
    assert verify(path, keys=keys).is_sound


# Bytes that are not the writer's


def flip(path: Path, data: bytes, bit: int) -> None:
    path.write_bytes(
        data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]
    )


def read_filter(path: Path, keys: dict[str, object], row_group: int, column: int) -> bytes:
    with ParquetFile.open(path, Context(keys)) as file:
        return file.read_bitset(file.stored_filter(row_group, file.footer.columns[column]))


@pytest.mark.slow
def test_a_flipped_bit_anywhere_in_a_filter(file):
    path, keys = file("java-columns"), keys_of("java-columns")
    data = path.read_bytes()
    (place,) = [row for row in inspect(path, ["name"], keys=keys).filters if row.row_group == 1]
    header = 8 * place.offset
    # Every bit of the header's module, and of length word, nonce and tag of the bitset's; one of
    # each byte between.
    bitset = header + 8 * (place.stated_length - place.bitset_bytes - 32)
    end = header + 8 * place.stated_length
    bits = [
        *range(header, bitset + 8 * 16),
        *range(bitset + 8 * 16, end - 8 * 16, 8),
        *range(end - 8 * 16, end),
    ]
    for bit in bits:
        flip(path, data, bit)
        with pytest.raises(AuthenticationError):
            read_filter(path, keys, 1, 1)
    report = verify(path, keys=keys)
    assert not report.is_sound
    assert [finding.rule for finding in report.findings if finding.severity == "error"] == [
        "damaged-encrypted-filter"
    ]


@pytest.mark.slow
@each("name", FILES)
def test_a_flipped_bit_anywhere_in_a_footer(file, name):
    path, keys = file(name), keys_of(name)
    data = path.read_bytes()
    with ParquetFile.open(path, Context(keys)) as parquet_file:
        first, last = 8 * parquet_file.footer.start, 8 * (parquet_file.footer.end - 8)
    outcomes = set()
    for bit in range(first + 1, last, 41):
        flip(path, data, bit)
        try:
            assert "signature was not verified" in inspect(path, keys=keys).notes[-1]
        except SbbfError as error:
            outcomes.add(type(error))
    assert AuthenticationError in outcomes
    # Parts of an encrypted footer and all of a signed one are plaintext: a flipped bit may also
    # make it unreadable, or require other keys.
    for bit in range(last - 8 * 28, last):
        flip(path, data, bit)
        with pytest.raises(AuthenticationError):
            inspect(path, keys=keys)


@each("column", ["name", "nested.tag", "score"])
def test_a_flipped_bit_in_pages(file, column):
    path, keys = file("java-columns"), keys_of("java-columns")
    data = path.read_bytes()
    with ParquetFile.open(path, Context(keys)) as parquet_file:
        index = COLUMNS.index(column)
        meta = parquet_file.footer.chunk(2, index)
        start = min(
            offset for offset in (meta.dictionary_page_offset, meta.data_page_offset) if offset
        )
        end = start + meta.total_compressed_size
    for bit in range(8 * start, 8 * end, 8 * 13 + 1):
        flip(path, data, bit)
        with pytest.raises(AuthenticationError):
            add_filters(path, [column], output=path.with_name("out"), rebuild="all", keys=keys)
        with pytest.raises(FileNotFoundError):
            path.with_name("out").stat()
    report = verify(path, [column], keys=keys)
    assert [result.row_group for result in report.filters if result.problem] == [2]
    assert len(report.unreadable) == 1


def modules_of(file: ParquetFile, row_group: int, column: int) -> tuple[int, int, int]:
    """First byte of header and bitset of a filter, and the byte behind it."""
    stored = file.stored_filter(row_group, file.footer.columns[column])
    return stored.place.offset, stored.bitset_offset, stored.end


@each("part", ["header", "bitset", "filter"])
@each("donor", {"row group": (1, 1), "column": (0, 2)})
def test_modules_of_another_chunk(file, part, donor):
    path, keys = file("java-ctr-supplied"), keys_of("java-ctr-supplied")
    with ParquetFile.open(path, Context(keys)) as parquet_file:
        mine, theirs = modules_of(parquet_file, 0, 1), modules_of(parquet_file, *donor)
    data = bytearray(path.read_bytes())
    first, last = {"header": (0, 1), "bitset": (1, 2), "filter": (0, 2)}[part]
    data[mine[first] : mine[last]] = data[theirs[first] : theirs[last]]
    path.write_bytes(data)
    message = (
        "the bitset: the module"
        if part == "bitset"
        else f"another chunk is there: column {COLUMNS[donor[1]]}, row group {donor[0]}"
    )
    with pytest.raises(AuthenticationError, match=message):
        probe(path, "name", ["x"], filters_only=True, keys=keys)
    (finding,) = [
        entry for entry in verify(path, ["name"], keys=keys).findings if entry.severity == "error"
    ]
    assert finding.rule == "damaged-encrypted-filter"
    assert message in finding.evidence[0].fact


@each("module", [Module.COLUMN_INDEX, Module.OFFSET_INDEX, Module.BLOOM_FILTER_BITSET])
def test_a_header_encrypted_as_another_module(file, module):
    """As parquet-go does, for which 6 and 7 are a filter's modules."""
    path, keys = file("java-columns"), keys_of("java-columns")
    with ParquetFile.open(path, Context(keys)) as parquet_file:
        start, bitset, _ = modules_of(parquet_file, 0, 1)
        plain = build_header(512).ljust(bitset - start - 32, b"\0")
        ciphertext = parquet_file.footer.cipher.encrypt((0, 1), module, plain)
    data = path.read_bytes()
    path.write_bytes(data[:start] + ciphertext + data[bitset:])
    with pytest.raises(
        AuthenticationError,
        match=rf"encrypted as a module of type {int(module)} \({module.words}\), not 8",
    ):
        probe(path, "name", ["x"], filters_only=True, keys=keys)


@pytest.fixture
def damaged_file(file) -> Path:
    path = file("java-columns")
    (place,) = [
        row
        for row in inspect(path, ["name"], keys=keys_of("java-columns")).filters
        if row.row_group == 1
    ]
    flip(path, path.read_bytes(), 8 * place.offset + 8 * 40)
    return path


def test_a_damaged_filter_is_dropped_or_rebuilt(damaged_file, tmp_path):
    keys_path = tmp_path / "keys.json"
    keys_path.write_text(json.dumps(keys_of("java-columns")))
    keys = read_keys(str(keys_path))
    (finding,) = [
        entry for entry in check(damaged_file, keys=keys).findings if entry.severity == "error"
    ]
    assert finding.fix is not None
    assert command_of(finding.fix) == (
        "sbbf",
        "repair",
        str(damaged_file),
        "-c",
        "name",
        "--in-place",
        "--keys",
        str(keys_path),
    )
    dropped = repair(damaged_file, ["name"], drop=True, output=tmp_path / "dropped", keys=keys)
    assert [(step.row_group, step.fix) for step in dropped.steps] == [(1, "drop")]
    assert run([*command_of(finding.fix)[1:]]) == 0
    assert verify(damaged_file, keys=keys).is_sound
    assert len(verify(damaged_file, ["name"], keys=keys).filters) == ROW_GROUPS


def test_no_filter_in_the_clear_is_made_for_an_encrypted_column(file):
    some = keys_of("java-columns", keys={"footer": SECRET["footer"]})
    with (
        ParquetFile.open(file("java-columns"), Context(some)) as parquet_file,
        pytest.raises(RefusedError, match="encrypted"),
    ):
        parquet_file.filter_parts(0, 1, bytes(64))


# The command line


class TestCommands:
    @pytest.fixture
    def keys_path(self, fixtures) -> str:
        return str(fixtures / "encrypted" / "keys.json")

    def test_keys_by_option_and_environment(self, file, keys_path, capsys, monkeypatch):
        path = str(file("java-columns"))
        assert run(["probe", path, "name", "nobody", "--keys", keys_path]) == 1
        assert run(["probe", path, "name", "nobody"]) == 4
        monkeypatch.setenv("SBBF_KEYS_FILE", keys_path)
        for arguments in (["inspect"], ["verify"], ["check", "--quick"], ["advise"]):
            assert run([*arguments, path]) == 0
        assert run(["explain", path, "name", "nobody"]) == 1
        monkeypatch.delenv("SBBF_KEYS_FILE")
        monkeypatch.setenv("SBBF_KEYS", Path(keys_path).read_text())
        assert run(["add-filter", path, "-c", "name", "--rebuild", "all", "--in-place"]) == 0
        assert run(["resize", path, "-c", "name", "--max-bytes", "64", "--in-place"]) == 0
        assert run(["remove-filter", path, "-c", "name", "--in-place"]) == 0
        assert run(["repair", path, "--in-place"]) == 0
        assert not any(secret in text for secret in SECRET.values() for text in capsys.readouterr())

    @each(
        "argument",
        ["000102030405060708090a0b0c0d0e0f", '{"footer_key": "000102030405060708090a0b0c0d0e0f"}'],
    )
    def test_a_key_instead_of_a_file_name(self, file, capsys, argument):
        assert run(["inspect", str(file("java-columns")), "--keys", argument]) == 2
        error = capsys.readouterr().err
        assert "not on the command line" in error
        assert "000102" not in error

    def test_without_the_package(self, file, keys_path):
        program = (
            "import sys; sys.modules['cryptography'] = None; from sbbf_tool.cli import main;"
            f"sys.exit(main(['inspect', {str(file('java-columns'))!r}, '--keys', {keys_path!r}]))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.returncode == 4
        assert [
            line for line in done.stderr.splitlines() if "can read the keys" not in line
        ] == done.stderr.splitlines()[-1:]
        assert done.stderr.endswith(
            "the package cryptography is not installed; pip install '.[encryption]'\n"
        )


# The conformance files


@each("missing", ["names", "tags"])
@each("name", ["java-columns", "java-signed"])
def test_the_filter_of_a_locked_column_is_no_unreferenced_byte(file, tmp_path, name, missing):
    """What removing `score` leaves behind is at most the filters of `score` and footers; without
    all keys, nothing is left out."""
    path = file(name)
    if name == "java-signed":
        add_filters(path, ["id", "name", "score", "nested.tag"], in_place=True, keys=keys_of(name))
    key_options = {key: value for key, value in SECRET.items() if key != missing}
    counts = []
    for step, keys in enumerate((keys_of(name), keys_of(name, keys=key_options))):
        report = remove_filters(path, ["score"], output=tmp_path / f"{step}.parquet", keys=keys)
        assert report.method == "new footer"
        counts.append(report.unreferenced_bytes)
    assert 0 < counts[0] <= counts[1] < 10_000


class TestLockedColumns:
    """Filters whose keys were not given are reported as not verified, whether or not the plaintext
    shows that they exist."""

    @pytest.fixture(params=["the place is known", "the place is encrypted"])
    def locked(self, request, file) -> tuple[Path, dict[str, object], tuple[str, ...]]:
        path = file("java-signed" if "known" in request.param else "java-columns")
        if path.stem == "java-columns":
            return (
                path,
                keys_of("java-columns", keys={"footer": SECRET["footer"]}),
                ("name", "nested.tag"),
            )
        add_filters(path, ["id", "name"], in_place=True, keys=keys_of("java-signed"))
        return path, {"columns": {"nested.tag": SECRET["tags"]}}, ("name",)

    def test_commands_name_them(self, locked, tmp_path, capsys):
        path, keys, names = locked
        keys_path = tmp_path / "some.json"
        keys_path.write_text(json.dumps(keys))
        keys_path.chmod(0o600)
        end = f"; locked columns not checked: {', '.join(names)}\n"
        assert run(["verify", str(path), "--keys", str(keys_path)]) == 3
        error = (
            f"sbbf: {path}: the filters of locked columns were not verified: "
            f"{', '.join(names)}; give --keys\n"
        )
        assert capsys.readouterr().err == error
        assert run(["verify", str(path), "-c", "id", "--keys", str(keys_path)]) == 0
        assert run(["check", str(path), "--keys", str(keys_path)]) == 0
        assert capsys.readouterr().out.endswith(end)
        run(["repair", "-n", str(path), "--keys", str(keys_path)])
        assert capsys.readouterr().out.endswith(end)
        for name in ("junit", "sarif", "github"):
            assert run(["check", str(path), "--keys", str(keys_path), "--format", name]) == 0
            assert "locked columns not checked: " in capsys.readouterr().out, name
        for command in (["check"], ["repair", "--rebuild", "none", "-n"]):
            assert (
                run(
                    [
                        *command,
                        str(path),
                        str(shutil.copy(path, tmp_path / "b.parquet")),
                        "--keys",
                        str(keys_path),
                    ]
                )
                == 0
            )
            assert capsys.readouterr().out.endswith("; locked columns not checked in 2 files\n")
