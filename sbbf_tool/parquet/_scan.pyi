from collections.abc import Callable

DECLINED: int
UNKNOWN_KIND: int

Kind = tuple[bytes, bytes, bytes, bytes, bytes]

def scan(
    names: bytes,
    kinds: tuple[Kind, ...],
    table: bytes,
    left_out: bytes,
    codecs: tuple[Callable[[memoryview, memoryview], int] | None, ...],
    /,
) -> tuple[bytes, bytes, bytes, bytes]: ...
def places(footer: bytes, table: bytes, start: int, /) -> tuple[bytes, bytes] | None: ...
def key(footer: bytes, table: bytes, left_out: bytes, /) -> bytes | None: ...
