"""Values in a file, one per line, and file names in a list."""

from __future__ import annotations

import codecs
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import IO, TYPE_CHECKING

import click

from sbbf_tool.cli.render import note
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.cli.key_files import KeyFile
    from sbbf_tool.running.selection import ListedNames

MAX_VALUES = 1_000_000
"""Maximum number of values from a file or a pipe, because all are held in memory and a pipe may be
endless."""

_MOST_LINE_BYTES = 64 << 20
_MOST_NAME_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 16


class _DashValue(str):
    """A `-` that is a value, rather than standard input."""


def as_value(text: str) -> str:
    """Return a text as an argument that is a value, whatever the text is."""
    return _DashValue(text) if text == "-" else text


def is_standard_input(argument: str | None) -> bool:
    """Return whether an argument stands for the values, or names, on standard input."""
    return argument == "-" and not isinstance(argument, _DashValue)


def collect_values(
    arguments: tuple[str, ...],
    values_file: str | None,
    ask_null: bool,
    column: str | None,
    wanted: str = "COLUMN VALUE",
) -> Sequence[object]:
    """Collect the values of a command line, each once: its arguments, values from standard input or
    a file, and None for null.

    A file with columns has typed values; `column` is the name of the queried one. Nulls in it are
    counted and left out. Raises click.UsageError if there are no values; a file may have none.
    """
    from sbbf_tool.file.texts import each_once

    values: Sequence[object]
    if values_file is None and not any(map(is_standard_input, arguments)):
        values = each_once([*map(str, arguments)])
        if ask_null:
            values = (None, *values)
    else:
        values = _collect_many(arguments, values_file, ask_null, column)
        count = len(values)
        values = each_once(values)
        if len(values) < count:
            repeats = count - len(values)
            verb = "repeats another" if repeats == 1 else "repeat others"
            note(f"{repeats:,} of {format_count(count, 'value')} {verb}: each is queried once")
    if values:
        return values
    if values_file is None and not arguments:
        raise click.UsageError(f"no value: give {wanted}")
    source = _source_of_values("-" if values_file is None else values_file)
    text = f"{source}: there are no values"
    if values_file is None or _is_pipe(values_file):
        # The program that should have written them may have failed.
        raise click.UsageError(text)
    note(text)
    return values


def _is_pipe(name: str) -> bool:
    """Return whether values come from another program, which may have failed."""
    if is_standard_input(name):
        return True
    with suppress(OSError):
        return stat.S_ISFIFO(os.stat(name).st_mode)
    return False


def _collect_many(
    arguments: tuple[str, ...], values_file: str | None, ask_null: bool, column: str | None
) -> Sequence[object]:
    from sbbf_tool.file.texts import Texts, values_of

    if values_file is not None and not is_standard_input(values_file):
        from sbbf_tool.cli.key_files import find_key_file

        key_file = find_key_file(values_file)
        if key_file is not None:
            texts = Texts.of(_read_values(arguments, None, column), nulls=int(ask_null))
            keys = _read_keys(key_file, column)
            return values_of([*texts, *keys])
    return Texts.of(_read_values(arguments, values_file, column), nulls=int(ask_null))


def _read_keys(file: KeyFile, column: str | None) -> list[object]:
    """Return the keys in a column of a file, without nulls, and report which column it is."""
    from sbbf_tool.cli.key_files import read_column
    from sbbf_tool.cli.text_checks import LineChecks

    source = file.source
    chosen = read_column(file, column)
    checks = LineChecks(source, "value")
    keys: list[object] = []
    nulls = 0
    for block in chosen.blocks:
        first = len(keys) + 1
        block_keys = [key for key in block if key is not None]
        nulls += len(block) - len(block_keys)
        if file.has_text:
            checks.check_values(first, block_keys)
            block_keys = [key.decode("utf-8", "surrogateescape") for key in block_keys]
        keys += block_keys
        if len(keys) > MAX_VALUES:
            raise click.UsageError(_too_many(source))
    if not keys and not nulls:
        return keys
    text = f"{source}: column {chosen.name}: {format_count(len(keys), 'value')}"
    if nulls:
        verb = "matches" if nulls == 1 else "match"
        text += f"; {format_count(nulls, 'null')} {verb} nothing"
    note(text)
    return keys


def _too_many(source: str) -> str:
    return f"{source}: more than {MAX_VALUES:,} values: query them in several runs"


def _source_of_values(name: str) -> str:
    return "standard input" if name == "-" else f"values file {name}"


def _read_values(
    arguments: tuple[str, ...], values_file: str | None, column: str | None
) -> Iterator[list[bytes]]:
    for argument in arguments:
        if is_standard_input(argument):
            yield from blocks_of("-", column)
        else:
            yield [os.fsencode(argument)]
    if values_file is not None:
        yield from blocks_of(values_file, column)


def blocks_of(name: str, column: str | None = None) -> Iterator[list[bytes]]:
    """Yield the non-empty lines of a file, or of standard input for `-`, in blocks, which are read
    as they are needed.

    A line ends with `\\n` or `\\r\\n`. The first line that ends with `\\r\\n` and the first that is
    not UTF-8 are reported on standard error, and so is the first with a blank at an end, because a
    stored value may differ from the value that was read. So are a first line that is the name of
    the queried column, and values that are all in quotes.
    """
    from sbbf_tool.cli.text_checks import LineChecks, ensure_text  # few queries have files

    source = _source_of_values(name)
    checks = LineChecks(source, "line", column)
    count = 0
    with _open(name, source) as stream:
        for first, pieces in _split(stream, b"\n", _MOST_LINE_BYTES, f"{source}: line"):
            if first == 1:
                ensure_text(source, pieces)
                pieces[0] = pieces[0].removeprefix(codecs.BOM_UTF8)
            lines = list(filter(None, checks.check(first, pieces)))
            count += len(lines)
            if count > MAX_VALUES:
                raise click.UsageError(_too_many(source))
            yield lines
    checks.finish()


@contextmanager
def _open(name: str, source: str) -> Iterator[IO[bytes]]:
    if name == "-" and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    try:
        with click.open_file(name, "rb") as stream:
            yield stream
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise click.UsageError(f"{source}: {reason}") from None


def _split(
    stream: IO[bytes], end: bytes, most: int, place: str, block: bytes = b""
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the pieces of each block without their ends, and the number of the first. Raises
    click.UsageError for too long a piece."""
    first = 1
    parts = [b""]
    while block := block or stream.read(_BLOCK_BYTES):
        head, has_end, tail = block.rpartition(end)
        block = b""
        parts.append(head if has_end else tail)
        size = sum(map(len, parts))
        if not has_end and size <= most:
            continue
        pieces = b"".join(parts).split(end)
        if size > most:
            _ensure_lengths(pieces, first, most, place)
        yield first, pieces
        first += len(pieces)
        parts = [tail]
    last = b"".join(parts)
    if last:
        yield first, [last]


def _ensure_lengths(pieces: Sequence[bytes], first: int, most: int, place: str) -> None:
    """Raise click.UsageError for a piece of more than `most` bytes; the first has this number."""
    for number, piece in enumerate(pieces, first):
        if len(piece) > most:
            raise click.UsageError(f"{place} {number:,} has more than {most:,} bytes")


def read_queries(texts: Iterable[str]) -> list[str]:
    """Return queries: each text is one, or @ and the name of a file with a query on each line,
    where `--` begins a comment."""
    queries = []
    for text in texts:
        if not text.startswith("@"):
            queries.append(text)
            continue
        source = f"queries file {text[1:]}"
        with _open(text[1:], source) as stream:
            try:
                content = stream.read().decode()
            except UnicodeDecodeError:
                raise click.UsageError(f"{source}: not UTF-8") from None
        lines = [line.strip() for line in content.splitlines()]
        queries += [line for line in lines if line and not line.startswith("--")]
    return queries


def read_names(name: str, *, as_files: bool) -> ListedNames:
    """Return the names in a file, or on standard input for `-`; see `names_of`. With `as_files`,
    that of a table means the files below it.

    Those from a pipe are kept, because it can be read only once and some commands list the files
    twice.
    """
    from sbbf_tool.running.selection import ListedNames

    if name != "-" and os.path.isfile(name):
        return ListedNames(partial(names_of, name), as_files=as_files)

    @cache
    def piped_names() -> tuple[str, ...]:
        return tuple(names_of(name))

    return ListedNames(lambda: iter(piped_names()), as_files=as_files)


def names_of(name: str) -> Iterator[str]:
    """Yield the names in a file, or on standard input for `-`: one per line or, in a list with NUL
    bytes, each up to a NUL.

    Names are read as they are needed; empty ones are skipped. Bytes that are not UTF-8 become
    surrogates, as in file names. Raises click.UsageError if the list is empty, because the program
    that wrote it then failed or found nothing.
    """
    source = f"list of files {name}"
    is_empty = True
    with _open(name, source) as stream:
        block = stream.read(_BLOCK_BYTES)
        # Names that end with NUL are exact.
        has_lines = b"\0" not in block
        end = b"\n" if has_lines else b"\0"
        if has_lines:
            block = block.removeprefix(codecs.BOM_UTF8)
        for _, pieces in _split(stream, end, _MOST_NAME_BYTES, f"{source}: name", block):
            if len(pieces) >= _BLOCK_BYTES - 1 and not any(pieces):
                raise click.UsageError(f"{source}: {_BLOCK_BYTES:,} bytes have no name")
            for line in pieces:
                piece = line.removesuffix(b"\r") if has_lines else line
                if b"\0" in piece:
                    raise click.UsageError(
                        f"{source}: the first names end with line feeds, a later one with a NUL "
                        "byte"
                    )
                if piece:
                    is_empty = False
                    yield os.fsdecode(piece)
    if is_empty:
        raise click.UsageError(f"{source}: the list is empty")
