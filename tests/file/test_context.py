"""The context of a run: what is sent with it, and what a caller gives with an edit instead."""

from __future__ import annotations

import pickle

from sbbf_tool.editing.edit import Edit
from sbbf_tool.file.context import Context
from sbbf_tool.file.page_limit import PageLimit

KEYS = {"footer_key": "00112233445566778899aabbccddeeff"}


def test_a_copy_in_another_process_has_empty_caches():
    context = Context(KEYS, PageLimit(4096), strict=False, jobs=2)
    context.reuse.renames_in = "/lake"
    copy = pickle.loads(pickle.dumps(context))
    assert copy.reuse.renames_in is None
    assert (copy.keys, copy.limit, copy.strict, copy.jobs) == (KEYS, PageLimit(4096), False, 2)


def test_a_repr_shows_no_key():
    assert KEYS["footer_key"] not in repr(Context(KEYS))


def test_keys_and_limit_of_an_edit_are_those_of_the_run_unless_it_has_its_own():
    edit = Edit(in_place=True, keys=KEYS, max_page_bytes=4096)
    completed = edit.complete(Context(jobs=3))
    assert (completed.keys, completed.limit) == (KEYS, PageLimit(4096, 3))
    own = Context({"footer_key": "ff"}, PageLimit(8192), jobs=3)
    assert edit.complete(own) == own
