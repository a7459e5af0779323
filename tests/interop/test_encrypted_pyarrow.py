"""Encrypted files of Arrow C++, whose Python interface writes and reads them by a key service
alone: pages of both versions, page indexes.

It cannot write filters into them. Ours are added, verified and removed, and it reads the rows as
before.
"""

from __future__ import annotations

import base64
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from sbbf_tool import add_filters, remove_filters, verify
from support.tables import each

MASTER_KEYS = {"kf": b"0123456789012345", "k1": b"1234567890123450"}
TABLE = pa.table(
    {
        "id": [i * 7919 % 5000 for i in range(5000)],
        "name": [None if i % 5 == 4 else f"n{i % 3000}" for i in range(5000)],
        "tags": [[f"t{i % 90}", f"u{i}"] for i in range(5000)],
    }
)
WAYS = list(
    product(
        ("AES_GCM_V1", "AES_GCM_CTR_V1"),
        ("uniform", "columns"),
        ("encrypted", "signed"),
        ("1.0", "2.0"),
    )
)


class Client(pe.KmsClient):  # type: ignore[misc]
    """Wraps a key by writing it behind its master key."""

    def __init__(self, config: object = None) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, master: str) -> bytes:
        return base64.b64encode(MASTER_KEYS[master] + key)

    def unwrap_key(self, wrapped: bytes, master: str) -> bytes:
        plain = base64.b64decode(wrapped)
        assert plain.startswith(MASTER_KEYS[master])
        return plain[len(MASTER_KEYS[master]) :]


FACTORY = pe.CryptoFactory(Client)


def write(path: Path, algorithm: str, keys: str, footer: str, pages: str) -> None:
    columns = (
        {"uniform_encryption": True}
        if keys == "uniform"
        else {"column_keys": {"k1": ["name"], "kf": ["tags.list.element"]}}
    )
    config = pe.EncryptionConfiguration(
        footer_key="kf",
        encryption_algorithm=algorithm,
        plaintext_footer=footer == "signed",
        double_wrapping=pages == "1.0",
        data_key_length_bits=256 if keys == "uniform" else 128,
        **columns,
    )
    properties = FACTORY.file_encryption_properties(pe.KmsConnectionConfig(), config)
    options = {
        "data_page_version": pages,
        "data_page_size": 2048,
        "write_batch_size": 100,
        "write_page_index": True,
        "write_page_checksum": True,
    }
    with pq.ParquetWriter(
        path, TABLE.schema, encryption_properties=properties, **options
    ) as writer:
        writer.write_table(TABLE, row_group_size=2000)


@pytest.mark.slow
@each("algorithm, keys, footer, pages", WAYS)
def test_filters_added(tmp_path: Path, algorithm: str, keys: str, footer: str, pages: str) -> None:
    path = tmp_path / "file.parquet"
    write(path, algorithm, keys, footer, pages)
    old = path.read_bytes()
    add_filters(path, ["id", "name", "tags"], in_place=True, keys=Client())
    report = verify(path, keys=Client())
    assert report.is_sound
    assert sum(result.verified_values for result in report.filters) == 5000 + 4000 + 10000
    assert [result.problem for result in report.filters] == [None] * 9
    # pyarrow 26 aborts the process when it reads a column with its own key in a signed file.
    readable = ["id"] if (keys, footer) == ("columns", "signed") else TABLE.column_names
    properties = FACTORY.file_decryption_properties(pe.KmsConnectionConfig())
    assert pq.read_table(path, columns=readable, decryption_properties=properties).equals(
        TABLE.select(readable)
    )
    remove_filters(path, in_place=True, keys=Client())
    assert path.read_bytes() == old
