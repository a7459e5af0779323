"""The blocks of a new version of an Azure block blob: which old ones stay, which parts become new
ones, their ids, and the list that commits them.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from sbbf_tool.errors import RefusedError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.objects.conditional import MIB, UPLOAD_PART, Part

MOST_BLOCKS = 50_000
MOST_UPLOADED_AGAIN = 16 * MIB
"""Maximum number of old bytes that are uploaded as blocks; the service copies more itself."""

_COPY_BLOCK = 32 * MIB
_ID_BYTES = 24
# Two runs that change the same blob at once must not choose the same id: the one would commit a
# block of the other.
_LEAST_ID_BYTES = 4


class BlockPlan(NamedTuple):
    num_old: int
    """Number of old blocks with which the new blob begins."""
    parts: tuple[Part, ...]
    """The bytes after them; each part becomes a block."""


def plan_blocks(sizes: Sequence[int], keep: int, size: int, can_copy: bool) -> BlockPlan:
    """Plan the blocks of a blob of `size` bytes that keeps the first `keep` bytes of an old one,
    whose blocks have these sizes.

    Old bytes after the last whole block that is kept become new blocks: copied by the service if
    there are many, otherwise uploaded. No block has old and new bytes, so that a later change keeps
    the blocks with the old ones.
    """
    ends = list(accumulate(sizes))
    count = sum(end <= keep for end in ends)
    while True:
        start = ends[count - 1] if count else 0
        copied = keep if can_copy and keep - start > MOST_UPLOADED_AGAIN else start
        parts = (
            *_split(start, copied, _COPY_BLOCK, True),
            *_split(copied, keep, UPLOAD_PART, False),
            *_split(keep, size, UPLOAD_PART, False),
        )
        excess = count + len(parts) - MOST_BLOCKS
        if excess <= 0:
            return BlockPlan(count, parts)
        if not count:
            raise RefusedError(
                f"the object would have more than {MOST_BLOCKS:,} blocks", hint=ELSEWHERE
            )
        count = max(0, count - excess)


def _split(start: int, end: int, usual: int, is_copy: bool) -> list[Part]:
    return [Part(offset, min(offset + usual, end), is_copy) for offset in range(start, end, usual)]


def new_ids(old: Sequence[str], count: int) -> list[str]:
    """Return random texts whose Base64 are block ids with the length of the old ones. Raises
    RefusedError if those are too short."""
    length = len(b64decode(old[0])) if old else _ID_BYTES
    if length < _LEAST_ID_BYTES:
        raise RefusedError(
            f"the object's block ids have {length} bytes: too few for new ones that no other run "
            "uses",
            hint=ELSEWHERE,
        )
    in_use = set(old)
    ids: dict[str, None] = {}
    while len(ids) < count:
        # The library takes an id as text: of each byte, the seven bits of an ASCII character.
        new_id = bytes(byte & 0x7F for byte in os.urandom(length)).decode()
        if encode_id(new_id) not in in_use:
            ids[new_id] = None
    return list(ids)


def encode_id(text: str) -> str:
    """Return a block id as the service states it."""
    return b64encode(text.encode()).decode()


def build_block_list(old: Sequence[str], new: Sequence[str]) -> bytes:
    """Build the body of Put Block List, of ids as the service states them: committed blocks, then
    uncommitted ones."""
    blocks = [f"<Committed>{block_id}</Committed>" for block_id in old]
    blocks += [f"<Uncommitted>{block_id}</Uncommitted>" for block_id in new]
    text = "".join(blocks)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{text}</BlockList>'.encode()
