"""Publication of a new version of an Azure block blob in one step: a new block list of the old
committed blocks and new ones.

    in place     Get Block List, Put Block for the new bytes, one Put Block List
    elsewhere    the same without old blocks: Put Block From URL, with which the service copies the
                 old bytes itself
    256 KiB      and less: one Put Blob of the whole object

The last request requires the ETag that was read (`If-Match`), or that no blob exists
(`If-None-Match: *`). It replaces all attributes of the blob, so those of the old one are sent
again. Blocks that no blob contains are invisible; the next change of the blob removes them, or
Azure after a week.

A blob has at most 50,000 blocks, whose ids all have the same length. A blob that was written by one
Put Blob has no blocks, nor does a file that the Data Lake API wrote. Up to 16 MiB of it are
uploaded as blocks; beyond, the service copies them (Put Block From URL), or, if it refuses, they
are uploaded too.

The client has the settings with which obstore reads: `AZURE_STORAGE_ACCOUNT_NAME` unless the URL
names the account, then an account key (`AZURE_STORAGE_ACCOUNT_KEY`), a shared access signature
(`AZURE_STORAGE_SAS_TOKEN`), a bearer token (`AZURE_STORAGE_TOKEN`), or what azure-identity finds: a
service principal, a workload or managed identity, or the login of a developer's tools.
`AZURE_STORAGE_ENDPOINT` names another endpoint, `AZURE_STORAGE_USE_EMULATOR` Azurite.
"""

from __future__ import annotations

import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, NamedTuple

import azure.core.exceptions as wrong
import urllib3
from azure.core import MatchConditions
from azure.core.credentials import AccessToken, AzureSasCredential
from azure.storage.blob import (
    BlobBlock,
    BlobClient,
    BlobProperties,
    BlobSasPermissions,
    BlobType,
    ContainerClient,
    ContentSettings,
    StandardBlobTier,
    generate_blob_sas,
)

from sbbf_tool.errors import MissingError, RefusedError, SbbfError, WriteError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.objects.answers import limited_session
from sbbf_tool.storage.objects.conditional import (
    AZURE_HINT,
    MIB,
    PARQUET_TYPE,
    UPLOAD_PART,
    WHOLE_BYTES,
    CloudWriter,
    Part,
    Upload,
    md5_of,
    write_once,
    write_parts,
)
from sbbf_tool.storage.objects.retries import Retries
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import (
    CONNECT_SECONDS,
    READ_SECONDS,
    DeniedError,
    OtherVersionError,
)


class _BlobUpload(Upload):
    store: AzureWriter
    blob: BlobClient

    def write(self) -> None:
        self.blob = self.store.blob(self.target.key)
        attributes = self._attributes()
        condition: dict[str, Any] = {"match_condition": MatchConditions.IfMissing}
        if self.in_place:
            assert self.old is not None
            condition = _if_match(self.old)
        if self.planned_source.size <= WHOLE_BYTES:
            self._put(attributes | condition)
        else:
            self._put_blocks(attributes, condition)

    def _put(self, options: dict[str, Any]) -> None:
        data = self.read_all()

        def put() -> None:
            self.blob.upload_blob(data, overwrite=True, validate_content=True, **options)

        def is_stored() -> bool:
            now = self.store.send(self.blob.get_blob_properties)
            md5 = bytes(now.content_settings.content_md5 or b"")
            return md5 == b64decode(md5_of(data)) and bool(now.size == len(data))

        write_once(lambda: self.send(put), is_stored, self.in_place)

    def _put_blocks(self, attributes: dict[str, Any], condition: dict[str, Any]) -> None:
        blocks = self._committed_blocks() if self.in_place else []
        sizes = [size for _, size in blocks]
        planned = self.planned_source
        plan = plan_blocks(sizes, planned.keep, planned.size, self._can_copy)
        old_ids = [block_id for block_id, _ in blocks]
        ids = new_ids(old_ids, len(plan.parts))
        scope = {}
        if "encryption_scope" in attributes:
            scope["encryption_scope"] = attributes["encryption_scope"]
        write_parts(
            lambda numbered: self._put_block(*numbered, scope),
            list(zip(ids, plan.parts, strict=True)),
        )
        new_names = [encode_id(block_id) for block_id in ids]
        self._commit(old_ids[: plan.num_old], new_names, attributes | condition)

    def _commit(self, old: list[str], new: list[str], options: dict[str, Any]) -> None:
        """Make the blob visible that has these blocks, by their ids as the service states them."""
        body = build_block_list(old, new)

        def set_body(request: Any) -> None:
            request.http_request.set_bytes_body(body)

        def commit() -> None:
            # The library asks for the latest block of each id, whatever the state in its list is:
            # it would take a block that another client has begun to upload in place of an old one.
            # And it takes no id that is not text. So the list is a body by hand; the one that it
            # replaces names a block that does not exist.
            self.blob.commit_block_list(
                [BlobBlock("replaced")], raw_request_hook=set_body, **options
            )

        def is_stored() -> bool:
            # The new ids are random, so no other client has committed these.
            return [block_id for block_id, _ in self._list_blocks()] == [*old, *new]

        write_once(lambda: self.send(commit), is_stored, self.in_place)

    def _put_block(self, block_id: str, part: Part, scope: dict[str, Any]) -> None:
        if part.is_copy and self._copy_block(block_id, part, scope):
            return
        data = self.planned_source.read(part.start, part.end - part.start)
        self.send(lambda: self.blob.stage_block(block_id, data, validate_content=True, **scope))

    def _copy_block(self, block_id: str, part: Part, scope: dict[str, Any]) -> bool:
        """Let the service copy a block of the old blob; return False, and add a warning, if it
        refuses."""
        assert self.old is not None
        source = _writer_of(self.old).copy_source(self.old.location.key)
        # The library has no argument for this condition.
        headers = {"x-ms-source-if-match": self.old.version.tag or "*"}

        def copy() -> None:
            self.blob.stage_block_from_url(
                block_id,
                **source,
                source_offset=part.start,
                source_length=part.end - part.start,
                headers=headers,
                **scope,
            )

        try:
            self.send(copy)
        except OtherVersionError:
            raise
        except SbbfError as error:
            # A firewall may close the account to its own service.
            warning = (
                "the service did not copy old bytes itself, so they were uploaded "
                f"({error.message})"
            )
            if warning not in self.warnings:
                self.warnings.append(warning)
            return False
        return True

    def _committed_blocks(self) -> list[tuple[str, int]]:
        """Return ids and sizes of the blocks of the old version; none if it was written as a whole.

        If they are those of another version, the request that completes the blob fails.
        """
        assert self.old is not None
        blocks = self._list_blocks()
        if sum(size for _, size in blocks) != self.old.size:
            return []
        return blocks

    def _list_blocks(self) -> list[tuple[str, int]]:
        blocks: list[tuple[str, int]] = []

        def keep(_: Any, answer: Any, __: Any) -> Any:
            blocks[:] = [(block.name, block.size) for block in answer.committed_blocks or ()]
            return answer

        self.store.send(lambda: self.blob.get_block_list("committed", cls=keep))
        return blocks

    @property
    def _can_copy(self) -> bool:
        if self.old is None or self.old.version.tag is None:
            return False
        return _writer_of(self.old).account == self.store.account

    def _attributes(self) -> dict[str, Any]:
        """Return the arguments that give the new blob the attributes of the old one; add warnings
        about those that are lost."""
        if self.old is None:
            return {"content_settings": ContentSettings(content_type=PARQUET_TYPE)}
        writer = _writer_of(self.old)
        blob = writer.blob(self.old.location.key)
        headers: dict[str, str] = {}
        options = _if_match(self.old) if self.old.version.tag else {}
        options["raw_response_hook"] = lambda answer: headers.update(answer.http_response.headers)
        try:
            properties = writer.send(lambda: blob.get_blob_properties(**options))
        except MissingError:
            raise OtherVersionError from None
        if self.in_place:
            _ensure_replaceable(properties)
        # It is that of the old bytes.
        properties.content_settings.content_md5 = None
        carried: dict[str, Any] = {
            "content_settings": properties.content_settings,
            "metadata": properties.metadata,
        }
        if properties.blob_tier and not properties.blob_tier_inferred:
            carried["standard_blob_tier"] = StandardBlobTier(properties.blob_tier)
        if properties.encryption_scope:
            carried["encryption_scope"] = properties.encryption_scope
        if any(name.lower() == "x-ms-expiry-time" for name in headers):
            self.warnings.append("the time at which the old object would expire was not kept")
        # The number is stated even to those who may not read the tags.
        if properties.tag_count:
            carried["tags"] = self.read_tags(
                lambda: writer.send(blob.get_blob_tags), "sbbf to read and write blob tags"
            )
        return carried


class AzureWriter(CloudWriter):
    """The writing half of a container. Raises RefusedError for Microsoft Fabric, and
    DeniedError."""

    upload = _BlobUpload
    errors = (wrong.AzureError,)
    hint = AZURE_HINT
    connection_errors = (
        wrong.ServiceRequestError,
        wrong.ServiceResponseError,
        urllib3.exceptions.HTTPError,
    )

    def __init__(self, retries: Retries, config: dict[str, Any]) -> None:
        super().__init__(retries)
        if config.get("use_fabric_endpoint"):
            raise RefusedError("sbbf cannot write to Microsoft Fabric", hint=ELSEWHERE)
        self._open_container(config["container_name"], config.get("account_name"))

    def _open_container(self, container: str, account: str | None) -> None:
        """Make the client; `account` is that which the URL names."""
        setting = os.environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower()
        uses_emulator = setting in ("1", "true", "yes", "on", "y")
        self.account = account or _setting("AZURE_STORAGE_ACCOUNT_NAME")
        if uses_emulator and not self.account:
            self.account = _EMULATOR
        if not self.account:
            raise DeniedError("no account is set", hint=AZURE_HINT)
        self._key = _setting(
            "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY"
        )
        if uses_emulator and not self._key:
            self._key = EMULATOR_KEY
        self._signature = _setting("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN").lstrip("?")
        self._credential = self._make_credential()
        # `CloudWriter.send` repeats requests.
        limits: dict[str, Any] = {
            "connection_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "retry_total": 0,
        }
        try:
            self._container = ContainerClient(
                _find_endpoint(self.account, uses_emulator),
                container,
                credential=self._credential,
                session=limited_session(),
                **limits,
            )
        except ValueError as error:
            raise DeniedError(f"no usable credentials ({error})", hint=AZURE_HINT) from None

    def _make_credential(self) -> Any:
        """Make what the client signs requests with."""
        if self._key:
            return {"account_name": self.account, "account_key": self._key}
        if self._signature:
            return AzureSasCredential(self._signature)
        token = _setting("AZURE_STORAGE_TOKEN")
        if token:
            return SimpleNamespace(get_token=lambda *_, **__: AccessToken(token, sys.maxsize))
        # Other credentials do not need this package.
        from azure.identity import DefaultAzureCredential

        return DefaultAzureCredential()

    def blob(self, key: str) -> BlobClient:
        return self._container.get_blob_client(key)

    def copy_source(self, key: str) -> dict[str, Any]:
        """Return the arguments with which the service itself reads a blob of this container. They
        contain credentials."""
        url = self.blob(key).url
        if self._key:
            signature = generate_blob_sas(
                self.account,
                self._container.container_name,
                key,
                account_key=self._key,
                permission=BlobSasPermissions(read=True),
                expiry=datetime.now(UTC) + _COPY_TIME,
            )
            return {"source_url": f"{url}?{signature}"}
        if self._signature:
            return {"source_url": f"{url}?{self._signature}"}
        token = self._credential.get_token(_SCOPE).token
        return {"source_url": url, "source_authorization": f"Bearer {token}"}

    def status_of(self, error: Any) -> tuple[int, str]:
        code = getattr(error, "error_code", None)
        return getattr(error, "status_code", None) or 0, str(getattr(code, "value", code) or "")

    def describe(self, error: Exception) -> SbbfError:
        _, code = self.status_of(error)
        if code == "BlobAlreadyExists":
            return OtherVersionError()
        if code.startswith("Lease"):
            return _LEASED
        if code in ("BlobImmutableDueToPolicy", "BlobImmutableDueToLegalHold"):
            return RefusedError(f"the object must not be changed ({code})")
        if code == "InvalidBlobOrBlock":
            hint = "Azure removes blocks that are in no blob after a week"
            return WriteError(
                "another program has begun to write this object, with block ids of another length",
                hint=hint,
            )
        return super().describe(error)

    def ensure_replaceable(self, key: str) -> None:
        _ensure_replaceable(self.send(self.blob(key).get_blob_properties))


def _writer_of(old: ObjectSource) -> AzureWriter:
    store: Any = old.store
    writer: AzureWriter = store.writer
    return writer


def _if_match(old: ObjectSource) -> dict[str, Any]:
    return {"etag": old.version.tag or "*", "match_condition": MatchConditions.IfNotModified}


_LEASED = RefusedError(
    "the object is leased: another client has reserved it",
    hint="run the command again when the lease has ended",
)


def _ensure_replaceable(blob: BlobProperties) -> None:
    """Raise RefusedError if a blob cannot be replaced, or its new version would lack an
    attribute."""
    kind = BlobType(blob.blob_type or BlobType.BLOCKBLOB).value
    if kind != BlobType.BLOCKBLOB.value:
        raise RefusedError(
            f"the object is no block blob but {kind}, which cannot be replaced in one step",
            hint=ELSEWHERE,
        )
    if blob.blob_tier == "Archive" or blob.archive_status:
        raise RefusedError(
            "the object is in tier Archive, in which a new version could not be read",
            hint="rehydrate it first",
        )
    if blob.lease.state in ("leased", "breaking"):
        raise _LEASED
    if blob.has_legal_hold:
        raise RefusedError("the object is under a legal hold", hint=ELSEWHERE)
    until = blob.immutability_policy.expiry_time
    if until is not None and until > datetime.now(UTC):
        raise RefusedError(
            "the object must not be changed until its immutability policy ends", hint=ELSEWHERE
        )
    if blob.encryption_key_sha256:
        raise RefusedError(
            "the object is encrypted with a key that only its writer has (customer-provided key)",
            hint=ELSEWHERE,
        )
    if blob.copy.status == "pending":
        raise RefusedError(
            "the object is still being copied",
            hint="run the command again when the copy is complete",
        )


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


_SCOPE = "https://storage.azure.com/.default"
_COPY_TIME = timedelta(hours=6)

# Azurite's account and key are public:
# https://learn.microsoft.com/azure/storage/common/storage-use-azurite
_EMULATOR = "devstoreaccount1"
EMULATOR_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def _find_endpoint(account: str, uses_emulator: bool) -> str:
    if uses_emulator:
        emulator = os.environ.get("AZURITE_BLOB_STORAGE_URL") or "http://127.0.0.1:10000"
        return f"{emulator}/{account}"
    endpoint = _setting("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
    return endpoint or f"https://{account}.blob.core.windows.net"


def _setting(*names: str) -> str:
    """Return the first of these environment variables that is set; empty if none is."""
    for name in names:
        value = os.environ.get(name)
        if value:
            return value
    return ""
