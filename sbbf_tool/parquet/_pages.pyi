from collections.abc import Callable

Codec = Callable[[memoryview, memoryview], int]

ANY: int
PLAIN: int
INDICES: int

def measure(data: bytes, form: int, most_values: int, most_end: int, /) -> tuple[int, ...]: ...
def collect(
    data: bytes,
    form: int,
    codec: int,
    codecs: tuple[Codec | None, ...],
    width: int,
    definition: int,
    repetition: int,
    num_entries: int,
    most_values: int,
    /,
) -> tuple[int, int, int, int, int, bytearray, bytearray | None]: ...
