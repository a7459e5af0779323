"""Local files by name, folder or glob.

A folder that cannot be listed does not stop a listing: its name is returned, and opening it fails
with the reason. Names that vanish during the listing are omitted. A folder may have millions of
files: runs of names are sorted and compressed in blocks, and then merged, so that a name takes some
5 to 20 bytes, where a list of Python strings takes a hundred.
"""

from __future__ import annotations

import marshal
import os
import re
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar, cast
from zlib import compress, decompress

from sbbf_tool.errors import MissingError, UsageError
from sbbf_tool.extension import ensure_no_index
from sbbf_tool.storage.system_calls import READ

_MAGICS = (b"PAR1", b"PARE")
_MAGIC_BYTES = 4
WILDCARD = r"[*?\[]"
_WILDCARDS = {"**/": "(?:.*/)?", "**": "\2", "*": "\0", "?": "\1"}
_HUDI_LOG = r"(?s)\..+_.*\.log\.\d+(_\d+-\d+-\d+)?"
_IN_COPY = "._COPYING_"
_USUAL_SUFFIXES = frozenset(("", ".parquet", ".parq", ".pq", ".snappy", ".zstd", ".gz"))


class Entry(NamedTuple):
    """A Parquet file in a listing, or a link to a folder."""

    path: str
    is_link: bool = False
    """Whether listing the folder or glob led through a link."""
    is_folder: bool = False
    """Whether it is a link to a folder, which is not listed."""
    is_unfinished: bool = False
    """Whether it begins as a Parquet file below a folder, but its end or its name is that of an
    unfinished one, or cannot be read."""
    is_hudi_log: bool = False
    """Whether it is a log file in which a merge-on-read table of Hudi has its newest rows."""
    has_other_name: bool = False
    """Whether it is a Parquet file below a folder with an unusual name, such as `a.parquet.bak`."""
    bytes: int | None = None
    """Size of an object, if the listing of its store states it."""
    etag: str | None = None
    """ETag of an object, if the listing of its store states a strong one."""


def entries(name: str) -> Iterator[Entry]:
    """Yield the Parquet files of `name` in order: the file itself, all files below a folder, or all
    matches of a glob.

    Below a folder, names that start with a dot or `_` are skipped, as in Spark and Hive, except
    partition folders (`_day=1`). Files without .parquet are those that begin and end with the magic
    of Parquet. A link to a folder is yielded as such: another user may have created it, and it may
    lead anywhere. Raises MissingError if there is no file.
    """
    if os.path.isdir(name):
        matches = _walk(name)
    elif is_one_file(name):
        yield Entry(name)
        return
    else:
        matches = _match_glob(name)
    is_empty = True
    for entry in matches:
        is_empty = is_empty and (entry.is_folder or entry.is_unfinished or entry.is_hudi_log)
        yield entry
    if is_empty:
        ensure_no_index(name)
        if os.path.isdir(name):
            raise MissingError("no Parquet file below this folder", file=name)
        raise MissingError("no file matches", file=name)


def has_files(folder: str) -> bool:
    """Return whether `entries` yields a file of this local folder. The first file that the file
    system lists ends the search."""
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listing:
                for entry, is_folder in _children(listing):
                    if is_folder:
                        if not entry.is_symlink():
                            waiting.append(entry.path)
                        continue
                    file = _file_entry(entry.path)
                    if file is not None and not file.is_unfinished:
                        return True
        except FileNotFoundError:
            continue
        except OSError:
            # Its name stands in the listing, for the reason why it cannot be listed.
            return True
    return False


def is_one_file(name: str) -> bool:
    """Return whether `name` means one file, which need not exist, not a folder or glob. An existing
    file takes precedence over a glob."""
    return not os.path.isdir(name) and (os.path.lexists(name) or not re.search(WILDCARD, name))


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name holds none of a lake's data; partition folders
    such as `_day=1` do hold data."""
    if name.startswith("."):
        return not is_hudi_log(name)
    return name.startswith("_") and "=" not in name


def is_hudi_log(name: str) -> bool:
    """Return whether a file's name is that of a log file of Hudi, such as
    `.FILEID_INSTANT.log.1_0-2-2`."""
    return name.startswith(".") and re.fullmatch(_HUDI_LOG, name) is not None


def judge_name(name: str) -> bool | None:
    """Return whether a file of a folder is data by its name; None if its bytes decide, as with
    Hive's `000000_0`."""
    if name.endswith(".parquet") and not name.endswith(_IN_COPY):
        return True
    return None


def judge_bytes(path: str, first: bytes | None, last: bytes) -> Entry | None:
    """Return the entry of a file that `judge_name` does not judge, by its first bytes, if they are
    known, and last; None without data."""
    ends = last in _MAGICS
    is_data = ends if first is None else first in _MAGICS
    if not is_data:
        return None
    base = path.rpartition("/")[2]
    if base.endswith(_IN_COPY) or not ends:
        return Entry(path, is_unfinished=True)
    suffix = os.path.splitext(base)[1].lower()
    return Entry(path, has_other_name=suffix not in _USUAL_SUFFIXES)


def translate(pattern: str) -> str:
    """Return the regular expression of a glob: `*`, `?`, `[...]` match within a segment, `**/`
    matches any folders, also none."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\])", pattern)
    text = "".join(map(_translate_part, parts))
    # A star before another one of its segment takes as little as it can, once: a hostile name must
    # not make it try again and again.
    text = re.sub(r"\0([^\0\2/]*)(?=\0)", r"(?>[^/]*?\1)", text)
    return text.replace("\0", "[^/]*").replace("\1", "[^/]").replace("\2", ".*")


def _translate_part(part: str) -> str:
    """Return the regular expression of a wildcard or of literal text. Wildcards of one character
    are returned as control characters, which `translate` replaces last."""
    if part in _WILDCARDS:
        return _WILDCARDS[part]
    if part.startswith("["):
        import fnmatch  # few names have wildcards

        # The end of what `fnmatch.translate` returns is `)\Z`, since Python 3.14 `)\z`.
        return fnmatch.translate(part)[len("(?s:") : -len(r")\Z")]
    return re.escape(part)


def is_behind_link(path: str, folder: str) -> bool:
    """Return whether `path`, which begins with `folder`, leads through a link below `folder`."""
    place = folder
    for part in path.removeprefix(folder).strip(os.sep).split(os.sep):
        place = os.path.join(place, part)
        if os.path.islink(place):
            return True
    return False


def ensure_unlisted(file: str, names: Iterable[str], role: str) -> None:
    """Raise UsageError if a listing of one of these folders would have `file`, which is no data but
    for example a report."""
    try:
        folder, name = os.path.split(os.path.realpath(file))
    except OSError:
        # The working folder is gone; opening the file says so.
        return
    if not name.endswith(".parquet") or is_hidden(name):
        return
    for path in filter(os.path.isdir, names):
        listed = os.path.realpath(path)
        if os.path.commonpath((folder, listed)) == listed:
            raise UsageError(
                f"the {role} would be one of the files of {path}: name it elsewhere, or without "
                ".parquet"
            )


def _match_glob(pattern: str) -> Iterator[Entry]:
    parts = pattern.split(os.sep)
    # The literal part of the pattern may contain links.
    num_literal = next(number for number, part in enumerate(parts) if re.search(WILDCARD, part))
    base = os.sep.join(parts[:num_literal]).rstrip(os.sep)
    if not base and pattern.startswith(os.sep):
        base = os.sep
    listed = "\0"
    # A folder comes before what is below it, and this before other names.
    for (name,) in sort_names((path.replace(os.sep, "\0"),) for path in set(_expand(parts))):
        match = name.replace("\0", os.sep)
        if match.startswith(listed):
            # `**` matches a folder and what is below it.
            continue
        is_link = is_behind_link(match, base)
        if is_link and "**" in parts and is_behind_link(os.path.dirname(match), base):
            # Skipped as below a folder: links to folders may form a cycle.
            continue
        if not os.path.isdir(match):
            yield Entry(match, is_link)
        elif is_link and "**" in parts:
            yield Entry(match, True, is_folder=True)
        else:
            listed = os.path.join(match, "")
            for entry in _walk(match):
                yield entry._replace(is_link=is_link or entry.is_link)


def _expand(parts: list[str]) -> Iterator[str]:
    """Yield what the parts of a glob match. `**` follows no link to a folder, as in bash: links may
    form a cycle."""
    import glob  # most runs name files and folders

    if "**" not in parts:
        yield from glob.iglob(os.sep.join(parts))
        return
    at = parts.index("**")
    rest = parts[at + 1 :] or ["*"]
    start = os.sep.join(parts[:at])
    tops: Iterable[str] = glob.iglob(start)
    if not start:
        # The working folder or the root.
        tops = [os.sep if at else ""]
    for top in tops:
        for folder, folders, _ in os.walk(top or os.curdir):
            folders[:] = [name for name in folders if not name.startswith(".")]
            below = folder if top else folder[len("./") :]
            if below:
                yield from _expand([*glob.escape(below).split(os.sep), *rest])
            else:
                yield from _expand(rest)


def _walk(top: str) -> Iterator[Entry]:
    """Yield the Parquet files below a folder, and the links to folders."""
    # A list replaces recursion: folders may be nested deeper than Python's stack.
    open_folders = [("", iter([(top, True, False)]))]
    while open_folders:
        folder, children = open_folders[-1]
        name, is_folder, is_link = next(children, ("", False, False))
        path = os.path.join(folder, name)
        if not name:
            open_folders.pop()
        elif is_folder and is_link:
            yield Entry(path, is_link, is_folder)
        elif not is_folder:
            entry = _file_entry(path)
            if entry is not None:
                yield entry._replace(is_link=True) if is_link else entry
        else:
            try:
                with os.scandir(path) as listing:
                    names = sort_names(
                        (child.name, is_folder, child.is_symlink())
                        for child, is_folder in _children(listing)
                    )
                open_folders.append((path, names))
            except FileNotFoundError:
                continue
            except OSError:
                yield Entry(path)


def _children(listing: Iterable[os.DirEntry[str]]) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """Yield the entries of a folder that may hold data of a lake: files, and folders or links to
    them, which come with True."""
    for entry in listing:
        if not is_hidden(entry.name):
            yield entry, _is_folder(entry)


def _file_entry(path: str) -> Entry | None:
    """Return the entry of a file below a folder; None if it holds no data."""
    base = os.path.basename(path)
    if is_hudi_log(base):
        return Entry(path, is_hudi_log=True)
    if judge_name(base):
        return Entry(path)
    try:
        fd = os.open(path, READ)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size < 2 * _MAGIC_BYTES:
                return None
            first = os.pread(fd, _MAGIC_BYTES, 0)
            last = os.pread(fd, _MAGIC_BYTES, status.st_size - _MAGIC_BYTES)
            return judge_bytes(path, first, last)
        finally:
            os.close(fd)
    except PermissionError:
        return Entry(path, is_unfinished=True)
    except OSError:
        return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; a broken or circular link is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


Name = TypeVar("Name", bound="tuple[str | bool, ...]")

_RUN = 10_000
"""Number of names that are sorted at once."""
_BLOCK = 250
"""Number of names of a run that are in memory while runs are merged."""
_LEVEL = 1


def sort_names(names: Iterable[Name]) -> Iterator[Name]:
    """Return the names in order. Each is a tuple of a string and what is known of the name. All are
    taken before the first is returned."""
    remaining = iter(names)
    first = sorted(islice(remaining, _RUN))
    if len(first) < _RUN:
        return iter(first)
    from heapq import merge  # few listings have several runs

    runs = [_compress(first)]
    del first
    while run := sorted(islice(remaining, _RUN)):
        runs.append(_compress(run))
    return merge(*map(_decompress, runs))


def _compress(run: list[Name]) -> list[bytes]:
    return [
        compress(marshal.dumps(run[start : start + _BLOCK]), _LEVEL)
        for start in range(0, len(run), _BLOCK)
    ]


def _decompress(blocks: list[bytes]) -> Iterator[Name]:
    for block in blocks:
        # The bytes come from this process.
        yield from cast("list[Name]", marshal.loads(decompress(block)))
