"""Globs as configuration files write them."""

from __future__ import annotations

from sbbf_tool.storage.globs import matches_any
from support.tables import each


@each(
    "glob, folder, path",
    [
        (".", "/a/b", "/a/b/c"),
        ("./", "/a/b", "/a/b/c"),
        (".", "/", "/a"),
        ("..", "/a/b", "/a/x"),
        ("../x", "/a/b", "/a/x/y"),
        ("../..", "/a/b", "/q"),
        ("a/../c", "/f", "/f/c"),
        ("x//y", "/f", "/f/x/y"),
        ("x/./y", "/f", "/f/x/y"),
        ("/x/", "/f", "/x/y"),
        ("//x", "/f", "/x/y"),
        ("/", "/f", "/z"),
        ("*.p", "/f", "/f/a.p"),
        ("./*.p", "/f", "/f/a.p"),
        ("**", "/f", "/f/a/b"),
        ("[ab]?/**/c", "/f", "/f/ax/1/2/c"),
        ("s3://b/x*", "/f", "s3://b/xy/z"),
    ],
)
def test_a_glob_matches_a_file_and_what_is_below_a_folder(glob: str, folder: str, path: str) -> None:
    assert matches_any([glob], folder, path)


@each(
    "glob, path",
    [("x", "/f/xy"), (".", "/g/a"), ("*", "/g"), ("*.p", "/f/a/b.q"), ("s3://b/x", "s3://b/xy"), ("[a", "/f/a"), ("a+", "/f/aa")],
)
def test_a_glob_does_not_match_other_files(glob: str, path: str) -> None:
    assert not matches_any([glob], "/f", path)
