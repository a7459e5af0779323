"""Publication of a new version of an Azure block blob in one step: a new block list of the old committed blocks and new ones.

    in place     Get Block List, Put Block for the new bytes, one Put Block List
    elsewhere    the same without old blocks: Put Block From URL, with which the service copies the old bytes itself
    256 KiB      and less: one Put Blob of the whole object

The last request requires the ETag that was read (`If-Match`), or that no blob exists (`If-None-Match: *`). It replaces all attributes of
the blob, so those of the old one are sent again. Blocks that no blob contains are invisible; the next change of the blob removes them, or
Azure after a week.

A blob that was written by one Put Blob has no blocks, nor does a file that the Data Lake API wrote. Up to 16 MiB of it are uploaded as
blocks; beyond, the service copies them (Put Block From URL), or, if it refuses, they are uploaded too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from urllib.parse import urlencode

from sbbf_tool.errors import MissingError, RefusedError, SbbfError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.objects.azure_blocks import Block, build_block_list, new_ids, parse_block_list, parse_tags, plan_blocks
from sbbf_tool.storage.objects.azure_rest import AzureContainer
from sbbf_tool.storage.objects.cloud import CloudStore
from sbbf_tool.storage.objects.conditional import (
    PARQUET_TYPE,
    WHOLE_BYTES,
    call_to_write,
    ensure_object_key,
    exists_error,
    md5_of,
    old_object,
    write_once,
    write_parts,
)
from sbbf_tool.storage.objects.location import Location
from sbbf_tool.storage.objects.parts import Part
from sbbf_tool.storage.objects.rest import Response
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import DeniedError, OtherVersionError
from sbbf_tool.storage.source import Piece, PlannedSource, Source

_CONTENT_HEADERS = ("Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control")


class AzureStore(CloudStore):
    """An `ObjectStore` of an Azure container. Reads are those of `CloudStore`."""

    @cached_property
    def container(self) -> AzureContainer:
        """The container, for requests that obstore does not have. Raises RefusedError and DeniedError."""
        config = self._store.config
        if config.get("use_fabric_endpoint"):
            raise RefusedError("sbbf cannot write to Microsoft Fabric", hint=ELSEWHERE)
        return AzureContainer(config["container_name"], config.get("account_name"))

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        ensure_object_key(target)
        if not in_place:
            if self.version(target.key) is not None:
                raise exists_error()
            return
        _ensure_replaceable(self.container.send("HEAD", target.key))

    def replace(self, source: Source, target: Location, keep: int, pieces: tuple[Piece, ...]) -> list[str]:
        old = old_object(source, "azure")
        in_place = old is not None and old.location == target
        with PlannedSource(target.name, source, keep, pieces) as planned_source:
            upload = _BlobUpload(call_to_write(lambda: self.container), target, old, in_place, planned_source)
            call_to_write(upload.write)
        return upload.warnings


@dataclass
class _BlobUpload:
    """The upload of one blob."""

    container: AzureContainer
    target: Location
    old: ObjectSource | None
    in_place: bool
    planned_source: PlannedSource
    warnings: list[str] = field(default_factory=list)

    def write(self) -> None:
        headers = self._attributes()
        if self.in_place:
            assert self.old is not None
            headers["If-Match"] = self.old.version.tag or "*"
        else:
            headers["If-None-Match"] = "*"
        if self.planned_source.size <= WHOLE_BYTES:
            self._put(headers)
        else:
            self._put_blocks(headers)

    def _put(self, headers: dict[str, str]) -> None:
        data = self.planned_source.read(0, self.planned_source.size)
        headers = {**headers, "x-ms-blob-type": "BlockBlob"}

        def is_stored() -> bool:
            now = self._head_or_none()
            return now is not None and (now.headers.get("Content-MD5"), _length(now)) == (md5_of(data), len(data))

        write_once(lambda: self._send("PUT", headers=headers, body=data), is_stored, self.in_place)

    def _put_blocks(self, headers: dict[str, str]) -> None:
        blocks = self._committed_blocks() if self.in_place else []
        plan = plan_blocks([block.size for block in blocks], self.planned_source.keep, self.planned_source.size, self._can_copy)
        old_ids = [block.id for block in blocks]
        ids = new_ids(old_ids, len(plan.parts))
        scope = {name: value for name, value in headers.items() if name == "x-ms-encryption-scope"}
        write_parts(lambda numbered: self._put_block(*numbered, scope), list(zip(ids, plan.parts, strict=True)))
        kept_ids = old_ids[: plan.num_old]
        body = build_block_list(kept_ids, ids)

        def is_stored() -> bool:
            # The new ids are random, so no other client has committed these.
            now = self._head_or_none()
            return now is not None and [block.id for block in self._list_blocks()[0]] == [*kept_ids, *ids]

        write_once(lambda: self._send("PUT", {"comp": "blocklist"}, headers, body), is_stored, self.in_place)

    def _put_block(self, block_id: str, part: Part, scope: Mapping[str, str]) -> None:
        query = {"comp": "block", "blockid": block_id}
        if part.is_copy:
            assert self.old is not None
            headers = {
                **scope,
                **self._container_of(self.old).copy_source(self.old.location.key),
                "x-ms-source-range": f"bytes={part.start}-{part.end - 1}",
                "x-ms-source-if-match": self.old.version.tag or "*",
            }
            try:
                self._send("PUT", query, headers)
                return
            except OtherVersionError:
                raise
            except SbbfError as error:
                # A firewall may close the account to its own service.
                warning = f"the service did not copy old bytes itself, so they were uploaded ({error.message})"
                if warning not in self.warnings:
                    self.warnings.append(warning)
        self._send("PUT", query, scope, self.planned_source.read(part.start, part.end - part.start))

    def _committed_blocks(self) -> list[Block]:
        """Return the blocks of the version that was read; none if it was written as a whole."""
        assert self.old is not None
        blocks, tag = self._list_blocks()
        if tag != self.old.version.tag:
            raise OtherVersionError
        return blocks if sum(block.size for block in blocks) == self.old.size else []

    def _list_blocks(self) -> tuple[list[Block], str | None]:
        answer = self._send("GET", {"comp": "blocklist", "blocklisttype": "committed"})
        return parse_block_list(answer.body), answer.headers.get("ETag")

    @property
    def _can_copy(self) -> bool:
        return self.old is not None and self.old.version.tag is not None and self._container_of(self.old).account == self.container.account

    def _container_of(self, old: ObjectSource) -> AzureContainer:
        assert isinstance(old.store, AzureStore)
        return self.container if old.location.root == self.target.root else old.store.container

    def _send(
        self, method: str, query: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        try:
            return self.container.send(method, self.target.key, query=query, headers=headers, body=body)
        except MissingError:
            if self.in_place:
                raise OtherVersionError from None
            raise

    def _head_or_none(self) -> Response | None:
        try:
            return self.container.send("HEAD", self.target.key)
        except SbbfError:
            return None

    def _attributes(self) -> dict[str, str]:
        """Return the headers that give the new blob the attributes of the old one; add warnings about those that are lost."""
        if self.old is None:
            return {"x-ms-blob-content-type": PARQUET_TYPE}
        container, key = self._container_of(self.old), self.old.location.key
        try:
            head = container.send("HEAD", key, headers={"If-Match": self.old.version.tag} if self.old.version.tag else {})
        except MissingError:
            raise OtherVersionError from None
        if self.in_place:
            _ensure_replaceable(head)
        carried = {f"x-ms-blob-{name.lower()}": head.headers[name] for name in _CONTENT_HEADERS if head.headers.get(name)}
        carried |= {name: value for name, value in head.headers.items() if name.lower().startswith("x-ms-meta-")}
        if head.headers.get("x-ms-access-tier") and head.headers.get("x-ms-access-tier-inferred", "").lower() != "true":
            carried["x-ms-access-tier"] = head.headers["x-ms-access-tier"]
        if head.headers.get("x-ms-encryption-scope"):
            carried["x-ms-encryption-scope"] = head.headers["x-ms-encryption-scope"]
        if head.headers.get("x-ms-expiry-time"):
            self.warnings.append("the time at which the old object would expire was not kept")
        if tags := self._tags(container, key, head):
            carried["x-ms-tags"] = urlencode(tags)
        return carried

    def _tags(self, container: AzureContainer, key: str, head: Response) -> list[tuple[str, str]]:
        # The number is stated even to those who may not read the tags.
        if head.headers.get("x-ms-tag-count", "0") == "0":
            return []
        try:
            return parse_tags(container.send("GET", key, query={"comp": "tags"}).body)
        except DeniedError as error:
            if self.in_place:
                hint = f"allow sbbf to read and write blob tags, or {ELSEWHERE}"
                raise RefusedError("the object's tags cannot be read, so the new version would lack them", hint=hint) from error
            self.warnings.append("the old object's tags could not be read, so the new object lacks them")
            return []


def _length(response: Response) -> int:
    return int(response.headers.get("Content-Length") or 0)


def _ensure_replaceable(head: Response) -> None:
    """Raise RefusedError if a blob with these headers cannot be replaced, or its new version would lack an attribute."""
    headers = head.headers
    kind, tier = headers.get("x-ms-blob-type", "BlockBlob"), headers.get("x-ms-access-tier", "")
    if kind != "BlockBlob":
        raise RefusedError(f"the object is no block blob but {kind}, which cannot be replaced in one step", hint=ELSEWHERE)
    if tier == "Archive" or headers.get("x-ms-archive-status"):
        raise RefusedError("the object is in tier Archive, in which a new version could not be read", hint="rehydrate it first")
    if headers.get("x-ms-lease-state") in ("leased", "breaking"):
        hint = "run the command again when the lease has ended"
        raise RefusedError("the object is leased: another client has reserved it", hint=hint)
    if headers.get("x-ms-legal-hold", "").lower() == "true":
        raise RefusedError("the object is under a legal hold", hint=ELSEWHERE)
    if _is_future(headers.get("x-ms-immutability-policy-until-date")):
        raise RefusedError("the object must not be changed until its immutability policy ends", hint=ELSEWHERE)
    if headers.get("x-ms-encryption-key-sha256"):
        raise RefusedError("the object is encrypted with a key that only its writer has (customer-provided key)", hint=ELSEWHERE)
    if headers.get("x-ms-copy-status") == "pending":
        raise RefusedError("the object is still being copied", hint="run the command again when the copy is complete")


def _is_future(date: str | None) -> bool:
    try:
        return date is not None and parsedate_to_datetime(date) > datetime.now(UTC)
    except (TypeError, ValueError):
        return True
