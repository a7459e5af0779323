"""Full names of the columns of lists and maps, in the spelling of any writer (LogicalTypes.md,
"Backward-compatibility rules").

The element of the list `tags` is `tags.list.element` in the format, `tags.list.item` to older
writers on Arrow, `tags.bag.array_element` to Hive, and `tags.array` in lists of two levels; the
middle group of a map is `key_value`, `entries` or `map`. To readers they are one column.
"""

from __future__ import annotations

from collections.abc import Iterator

_GROUPS_OF_LISTS = ("list", "bag")
_ELEMENTS = ("element", "item", "array_element", "array")
_GROUPS_OF_MAPS = ("key_value", "key_values", "entries", "map")


def is_spelling(path: tuple[str, ...], short_path: tuple[str, ...], levels: int) -> bool:
    """Return whether a path is that of a column as a writer spells it, from its path without
    scaffolding and the number of lists and maps around its values."""
    if levels == 0 or len(path) == len(short_path):
        return False
    return (short_path, levels) in _short_paths(path)


def _short_paths(path: tuple[str, ...], at: int = 1) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield what may be left of a path without the scaffolding at a position or later, and the
    number of lists and maps that it belongs to."""
    if at >= len(path):
        yield path, 0
        return
    yield from _short_paths(path, at + 1)
    size = _size_of_scaffolding(path, at)
    if size:
        shorter = path[:at] + path[at + size :]
        for short, count in _short_paths(shorter, at):
            yield short, count + 1


def _size_of_scaffolding(path: tuple[str, ...], at: int) -> int:
    """Return how many parts at a position may encode one list or map; 0 if none."""
    part = path[at]
    following = path[at + 1 : at + 2]
    if part in _GROUPS_OF_LISTS and following and following[0] in _ELEMENTS:
        return 2
    if part in _GROUPS_OF_MAPS and following in (("key",), ("value",)):
        return 1
    return int(part in ("array", f"{path[at - 1]}_tuple"))
