"""What a key of the encrypted fixtures would look like where no key should be: in what is printed, logged, planned."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

KEYS = Path(__file__).parents[2] / "fixtures" / "encrypted" / "keys.json"
SECRETS = [bytes.fromhex(key) for key in json.loads(KEYS.read_text())["keys"].values()]


def assert_no_key(text: str) -> None:
    """`text` may be bytes, as Latin-1."""
    for secret in SECRETS:
        assert not [form for form in _forms(secret) if form in text]


def _forms(secret: bytes) -> Iterator[str]:
    """In hexadecimal, base64, as it is, in numbers as Java and Scala print those of an array, escaped as protobuf does."""
    yield from (secret.hex(), b64encode(secret).decode().rstrip("="), secret.decode("latin-1"), ", ".join(map(str, secret)))
    yield "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in "\"'\\" else f"\\{byte:03o}" for byte in secret)
