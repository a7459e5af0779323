"""A new version of an S3 object: the store copies the old bytes itself, only new bytes are uploaded, and it appears in one step.

    5 MiB and more   multipart upload: UploadPartCopy of the old bytes, pinned to the ETag that was read, then the new bytes as last parts
    below            the whole in one PUT

Both require that the object is still the version that was read (`If-Match`), or that there is none (`If-None-Match: *`). Metadata,
tags, storage class and encryption are kept. An upload that cannot be completed is aborted; readers never see a part of an object.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

import botocore.exceptions as wrong

from sbbf_tool.errors import RefusedError, SbbfError, UsageError, WriteError
from sbbf_tool.hints import ELSEWHERE, Hint
from sbbf_tool.storage.objects.location import Location
from sbbf_tool.storage.objects.parts import Part, plan_parts
from sbbf_tool.storage.objects.s3_bucket import S3Bucket
from sbbf_tool.storage.objects.s3_errors import ERRORS, NotS3Error, answered, code_of, describe
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import Answer, DeniedError, MissingError, OtherVersionError
from sbbf_tool.storage.source import Piece, PlannedSource, Source

_CARRIED = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "Metadata",
    "WebsiteRedirectLocation",
    "StorageClass",
    "ServerSideEncryption",
    "SSEKMSKeyId",
    "BucketKeyEnabled",
)
_ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
_PARTS_IN_FLIGHT = 4
_UNTOUCHED = "the old object is untouched"
_UNCONDITIONAL = "this store has no conditional writes: whoever wrote the object in the moment of publishing was overwritten"


class S3Store(S3Bucket):
    """An `ObjectStore` of S3."""

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        """Raise RefusedError where the key is taken, or the object is of a kind that is not replaced."""
        if not target.key or target.key.endswith("/"):
            raise UsageError("this is a prefix and names no object")
        if not in_place:
            if self.version(target.key) is not None:
                raise _exists()
            return
        found = self.head(target.key)
        if found.get("StorageClass") in _ARCHIVES:
            raise RefusedError(
                f"it is in storage class {found['StorageClass']}, where a new version could not be read",
                hint=ELSEWHERE,
            )
        if found.get("ObjectLockMode") or found.get("ObjectLockLegalHoldStatus") == "ON":
            raise RefusedError(
                "it is locked, and the lock would not go along", hint=Hint("write elsewhere with {output}, and lock that", output=...)
            )

    def replace(self, source: Source, target: Location, keep: int, pieces: tuple[Piece, ...]) -> list[str]:
        old = source if isinstance(source, ObjectSource) and source.location.service == "s3" else None
        in_place = old is not None and old.location == target
        attributes, warnings = _attributes(old, in_place) if old is not None else ({"ContentType": "application/vnd.apache.parquet"}, [])
        if in_place:
            warnings += _unfinished(self, target.key)
        with PlannedSource(target.name, source, keep, pieces) as planned:
            writing = _Writing(self, target, old, in_place, planned, attributes)
            parts = plan_parts(keep, planned.size, can_copy=old is not None)
            if parts is None:
                writing.put()
            else:
                writing.put_together(parts)
        return warnings + ([_UNCONDITIONAL] if writing.was_unconditional else [])


@dataclass
class _Writing:
    """The upload of one object."""

    store: S3Bucket
    target: Location
    old: ObjectSource | None
    in_place: bool
    planned: PlannedSource
    attributes: dict[str, Any]
    was_unconditional: bool = False

    @property
    def _place(self) -> dict[str, str]:
        return {"Bucket": self.target.bucket, "Key": self.target.key}

    def put(self) -> None:
        data = self.planned.read(0, self.planned.size)
        self._on_condition(
            lambda condition: self.store.client.put_object(**self._place, Body=data, ContentMD5=_md5(data), **self.attributes, **condition),
            expected=hashlib.md5(data, usedforsecurity=False).hexdigest(),
        )

    def put_together(self, parts: tuple[Part, ...]) -> None:
        upload = self._written(lambda: str(self.store.client.create_multipart_upload(**self._place, **self.attributes)["UploadId"]))
        try:
            with ThreadPoolExecutor(_PARTS_IN_FLIGHT, thread_name_prefix="sbbf-put") as pool:
                try:
                    numbered = enumerate(parts, 1)
                    tags = list(pool.map(lambda one: self._written(lambda: self._part(upload, *one)), numbered))
                except BaseException:
                    # A part that arrives after the abort would stay: wait for those in flight.
                    pool.shutdown(cancel_futures=True)
                    raise
            self._ensure_complete(upload, parts, tags)
            listed = {"Parts": [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]}
            self._on_condition(
                lambda condition: self.store.client.complete_multipart_upload(
                    **self._place, UploadId=upload, MultipartUpload=listed, **condition
                ),
                expected=_tag_of(tags),
            )
        except BaseException as error:
            self._abort(upload, error)
            raise

    def _part(self, upload: str, number: int, part: Part) -> str:
        place = {**self._place, "UploadId": upload, "PartNumber": number}
        if not part.is_copy:
            data = self.planned.read(part.start, part.end - part.start)
            return str(self.store.client.upload_part(**place, Body=data, ContentMD5=_md5(data))["ETag"])
        assert self.old is not None
        answer = self.store.client.upload_part_copy(
            **place,
            CopySource={"Bucket": self.old.location.bucket, "Key": self.old.location.key},
            CopySourceIfMatch=self.old.version.tag,
            CopySourceRange=f"bytes={part.start}-{part.end - 1}",
        )
        tag = answer.get("CopyPartResult", {}).get("ETag")
        if not tag:
            raise WriteError("the store says that it copied a part and not which", hint=_UNTOUCHED)
        return str(tag)

    def _ensure_complete(self, upload: str, parts: tuple[Part, ...], tags: list[str]) -> None:
        """Ensure that every part has its planned size, and that copied bytes are still those that were read: some stores check neither."""
        found: dict[int, tuple[int, str]] = {}
        marker = 0
        while True:
            listed, following = self._written(partial(self._listed_parts, upload, marker))
            found |= listed
            if following is None:
                break
            if following <= marker:
                raise WriteError(NotS3Error().message, hint=_UNTOUCHED)
            marker = following
        meant = {number: (part.end - part.start, _bare(tag)) for number, (part, tag) in enumerate(zip(parts, tags, strict=True), 1)}
        if found != meant:
            raise WriteError("the store holds other parts than were sent and copied", hint=_UNTOUCHED)
        if self.old is not None and self.old.store.version(self.old.location.key) != self.old.version:
            raise OtherVersionError().at(file=self.old.name)

    def _listed_parts(self, upload: str, marker: int) -> tuple[dict[int, tuple[int, str]], int | None]:
        """Request one page of an upload's parts: size and ETag by number, and the number after which the next page begins."""
        page = self.store.client.list_parts(**self._place, UploadId=upload, PartNumberMarker=marker)
        parts = {part["PartNumber"]: (part["Size"], _bare(part["ETag"])) for part in page.get("Parts", ())}
        return parts, int(page["NextPartNumberMarker"]) if page.get("IsTruncated") else None

    def _on_condition(self, write: Callable[[dict[str, str]], object], expected: str | None) -> None:
        """Make the new object visible, on condition; where the store has no conditions, check first and write without."""
        condition = {"IfNoneMatch": "*"}
        if self.in_place:
            assert self.old is not None
            condition = {"IfMatch": self.old.version.tag or "*"}
        try:
            self._written(lambda: write(condition))
        except _NoConditionsError:
            now = self.store.version(self._place["Key"])
            if self.in_place and (self.old is None or now != self.old.version):
                raise OtherVersionError from None
            if not self.in_place and now is not None:
                raise _exists() from None
            self.was_unconditional = True
            self._written(lambda: write({}))
        except OtherVersionError:
            if self._is_there(expected):
                # The response to the first try was lost, and the second found the result of the first.
                return
            raise (OtherVersionError() if self.in_place else _exists()) from None
        except SbbfError:
            if self._is_there(expected):
                return
            raise

    def _is_there(self, tag: str | None) -> bool:
        with suppress(SbbfError):
            now = self.store.version(self._place["Key"])
            return now is not None and tag is not None and _bare(now.tag or "") == tag and now.size == self.planned.size
        return False

    def _written(self, ask: Callable[[], Answer]) -> Answer:
        """Return the store's answer, or raise its error as one of this package's about writing."""
        try:
            return ask()
        except ERRORS as error:
            if isinstance(error, wrong.ClientError) and code_of(error) == (501, "NotImplemented"):
                raise _NoConditionsError("the store cannot do what is needed (NotImplemented)", hint=_UNTOUCHED) from error
            reason = describe(error, self._place["Bucket"])
            if isinstance(reason, OtherVersionError | UsageError):
                raise reason from error
            if isinstance(reason, DeniedError):
                raise RefusedError(f"it may not be written: {reason.message}", hint=reason.hint) from error
            raise WriteError(reason.message, hint=_UNTOUCHED) from error

    def _abort(self, upload: str, why: BaseException) -> None:
        try:
            with suppress(MissingError):
                answered(lambda: self.store.client.abort_multipart_upload(**self._place, UploadId=upload), self._place["Bucket"])
        except SbbfError as error:
            if isinstance(why, SbbfError):
                why.hint = f"{_UNTOUCHED}, and an unfinished upload stays ({error.message}): aws s3api abort-multipart-upload removes it"


class _NoConditionsError(RefusedError):
    """The store does not support If-Match here."""


def _exists() -> RefusedError:
    return RefusedError("the target exists", hint="name another, or remove it first")


def _attributes(old: ObjectSource, in_place: bool) -> tuple[dict[str, Any], list[str]]:
    """Return what the new object takes over from the old one, as arguments; and warnings about what it cannot take over."""
    assert isinstance(old.store, S3Bucket)
    client, place = old.store.client, {"Bucket": old.location.bucket, "Key": old.location.key}
    head = old.store.head(old.location.key)
    carried = {name: head[name] for name in _CARRIED if head.get(name)}
    warnings = []
    try:
        if tags := answered(lambda: _tags(client, place), place["Bucket"]):
            carried["Tagging"] = urlencode(tags)
    except DeniedError as error:
        if in_place:
            hint = Hint("allow s3:GetObjectTagging, or write elsewhere with {output}", output=...)
            raise RefusedError("its tags cannot be read, and would be lost", hint=hint) from error
        warnings.append("the old object's tags could not be read, and were not carried over")
    except SbbfError as error:
        if "NotImplemented" not in error.message:
            raise
    with suppress(SbbfError):
        acl = answered(lambda: client.get_object_acl(**place), place["Bucket"])
        owner = acl.get("Owner", {}).get("ID")
        if any(grant.get("Grantee", {}).get("ID") != owner for grant in acl.get("Grants", ())):
            warnings.append("the old object's access list was not carried over: the new one is its owner's alone, or as the bucket says")
    return carried, warnings


def _tags(client: Any, place: dict[str, str]) -> list[tuple[str, str]]:
    return [(tag["Key"], tag["Value"]) for tag in client.get_object_tagging(**place).get("TagSet", ())]


def _unfinished(store: S3Bucket, key: str) -> list[str]:
    """List uploads of this key, by any client, that were neither completed nor aborted: they cost money and are invisible."""
    with suppress(SbbfError):
        answer = answered(lambda: store.client.list_multipart_uploads(Bucket=store.bucket, Prefix=key), store.bucket)
        count = sum(upload.get("Key") == key for upload in answer.get("Uploads", ()))
        if count:
            return [
                f"{count} unfinished upload{'s' * (count > 1)} of it from before: aws s3api abort-multipart-upload, or a lifecycle rule"
            ]
    return []


def _md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def _bare(tag: str) -> str:
    return tag.strip('"')


def _tag_of(tags: list[str]) -> str | None:
    """Return the ETag that most stores give an object of such parts; None where the parts' own ETags are no hashes."""
    try:
        joined = b"".join(bytes.fromhex(_bare(tag)) for tag in tags)
    except ValueError:
        return None
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(tags)}"
