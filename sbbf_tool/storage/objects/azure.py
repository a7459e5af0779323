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
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

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
from sbbf_tool.storage.objects.azure_blocks import (
    build_block_list,
    encode_id,
    new_ids,
    plan_blocks,
)
from sbbf_tool.storage.objects.cloud_keys import AzureKeys, emulator_endpoint, uses_emulator
from sbbf_tool.storage.objects.conditional import (
    AZURE_HINT,
    PARQUET_TYPE,
    WHOLE_BYTES,
    CloudWriter,
    Part,
    Upload,
    md5_of,
    write_once,
    write_parts,
)
from sbbf_tool.storage.objects.lease import LeasePart
from sbbf_tool.storage.objects.retries import Retries
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import (
    CONNECT_SECONDS,
    READ_SECONDS,
    DeniedError,
    OtherVersionError,
    Version,
)


class _BlobUpload(Upload):
    store: AzureWriter
    blob: BlobClient

    def write(self) -> None:
        self.blob = self.store.blob(self.target.key)
        attributes = self._attributes()
        condition: dict[str, Any] = {"match_condition": MatchConditions.IfMissing}
        if self.replaced is not None:
            condition = _if_match(self.replaced)
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
        options = _if_match(self.old.version) if self.old.version.tag else {}
        options["raw_response_hook"] = lambda answer: headers.update(answer.http_response.headers)
        try:
            properties = writer.send(lambda: blob.get_blob_properties(**options))
        except MissingError:
            raise OtherVersionError from None
        if self.in_place:
            _ensure_blob_replaceable(properties)
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

    def __init__(
        self,
        retries: Retries,
        config: dict[str, Any],
        lease: LeasePart[AzureKeys] | None,
    ) -> None:
        super().__init__(retries, lease)
        if config.get("use_fabric_endpoint"):
            raise RefusedError("sbbf cannot write to Microsoft Fabric", hint=ELSEWHERE)
        self._open_container(config["container_name"], config.get("account_name"))

    def _open_container(self, container: str, account: str | None) -> None:
        """Make the client; `account` is that which the URL names."""
        self.account = account or _setting("AZURE_STORAGE_ACCOUNT_NAME")
        if uses_emulator() and not self.account:
            self.account = _EMULATOR
        if not self.account:
            raise DeniedError("no account is set", hint=AZURE_HINT)
        self._key = self._find_key()
        self._credential = self._make_credential()
        # `CloudWriter.send` repeats requests.
        limits: dict[str, Any] = {
            "connection_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "retry_total": 0,
        }
        try:
            self._container = ContainerClient(
                _find_endpoint(self.account),
                container,
                credential=self._credential,
                session=limited_session(),
                **limits,
            )
        except ValueError as error:
            raise DeniedError(f"no usable credentials ({error})", hint=AZURE_HINT) from None

    def _find_key(self) -> str:
        """Return the key of the account; empty if there is none."""
        if self._lease is not None:
            return str(self._lease.keys.account_key)
        key = _setting(
            "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY"
        )
        if uses_emulator() and not key:
            return EMULATOR_KEY
        return key

    @property
    def _signature(self) -> str:
        """The newest shared access signature; empty if there is none."""
        if self._lease is not None:
            return str(self._lease.keys.signature)
        return _setting("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN").lstrip("?")

    def _make_credential(self) -> Any:
        """Make what the client signs requests with."""
        if self._key:
            return {"account_name": self.account, "account_key": self._key}
        if self._lease is not None:
            return _LeasedSignature(self._lease)
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

    def ensure_object_replaceable(self, key: str) -> None:
        _ensure_blob_replaceable(self.send(self.blob(key).get_blob_properties))


class _LeasedSignature(AzureSasCredential):
    """The newest signature of a lease, for each request."""

    def __init__(self, lease: LeasePart[AzureKeys]) -> None:
        super().__init__(lease.keys.signature)
        self._lease = lease

    @property
    def signature(self) -> str:
        return self._lease.keys.signature


def _writer_of(old: ObjectSource) -> AzureWriter:
    store: Any = old.store
    writer: AzureWriter = store.writer
    return writer


def _if_match(version: Version) -> dict[str, Any]:
    return {"etag": version.tag or "*", "match_condition": MatchConditions.IfNotModified}


_LEASED = RefusedError(
    "the object is leased: another client has reserved it",
    hint="run the command again when the lease has ended",
)


def _ensure_blob_replaceable(blob: BlobProperties) -> None:
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


_SCOPE = "https://storage.azure.com/.default"
_COPY_TIME = timedelta(hours=6)

# Azurite's account and key are public:
# https://learn.microsoft.com/azure/storage/common/storage-use-azurite
_EMULATOR = "devstoreaccount1"
EMULATOR_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def _find_endpoint(account: str) -> str:
    if uses_emulator():
        return emulator_endpoint(account)
    endpoint = _setting("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
    return endpoint or f"https://{account}.blob.core.windows.net"


def _setting(*names: str) -> str:
    """Return the first of these environment variables that is set; empty if none is."""
    for name in names:
        value = os.environ.get(name)
        if value:
            return value
    return ""
