"""Every form in which a key of the encrypted fixtures could appear in output, logs and plans, which
must contain none."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

KEYS = Path(__file__).parents[2] / "fixtures" / "encrypted" / "keys.json"
SECRETS = [bytes.fromhex(key) for key in json.loads(KEYS.read_text())["keys"].values()]


def assert_no_key(text: str) -> None:
    """Assert that the text contains no key in any form; decode bytes as Latin-1."""
    for secret in SECRETS:
        assert not [form for form in _forms(secret) if form in text]


def _forms(secret: bytes) -> Iterator[str]:
    """Yield a key in hexadecimal, in base64, as it is, as numbers as Java and Scala print an array,
    and escaped as protobuf does."""
    yield from (
        secret.hex(),
        b64encode(secret).decode().rstrip("="),
        secret.decode("latin-1"),
        ", ".join(map(str, secret)),
    )
    yield "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in "\"'\\" else f"\\{byte:03o}"
        for byte in secret
    )
