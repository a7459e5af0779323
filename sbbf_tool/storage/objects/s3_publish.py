"""Publication of a new version of an S3 object in one step: the store copies the old bytes itself,
and only new bytes are uploaded.

    5 MiB and more   multipart upload: UploadPartCopy of the old bytes, pinned to the ETag that was
                     read, then the new bytes as last parts
    below            one PUT of the whole object

Both require that the object is still the version that was read (`If-Match`), or that no object
exists (`If-None-Match: *`). Metadata, tags, storage class and encryption are kept. An upload that
cannot be completed is aborted; readers never see a partial object.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlencode

from sbbf_tool.errors import (
    MissingError,
    RefusedError,
    SbbfError,
    UncertainWriteError,
    UnreadableError,
    WriteError,
    exists_error,
)
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.objects.conditional import (
    PARQUET_TYPE,
    UNTOUCHED,
    Part,
    Upload,
    create,
    ensure_free,
    md5_of,
    plan_parts,
    remove,
    write_once,
    write_parts,
)
from sbbf_tool.storage.objects.lease import LeasePart
from sbbf_tool.storage.objects.paging import endless_error
from sbbf_tool.storage.objects.s3_bucket import COPIED_ATTRIBUTES, S3Bucket
from sbbf_tool.storage.objects.s3_errors import ARCHIVES, call
from sbbf_tool.storage.objects.s3_facts import S3Facts
from sbbf_tool.storage.objects.s3_keys import S3Keys
from sbbf_tool.storage.objects.store import (
    DeniedError,
    Location,
    OtherVersionError,
    UnsupportedError,
    Version,
)
from sbbf_tool.storage.source import PlannedSource, Source
from sbbf_tool.storage.threads import StoppedError, cleaning_up, ensure_running

_ABORTS = 3
_ABORT_PAUSE = 0.1
_UNFINISHED = (
    "earlier unfinished uploads of the object remain: remove them with aws s3api "
    "abort-multipart-upload, or a lifecycle rule"
)
_ABORT_HINT = "remove it with aws s3api abort-multipart-upload"
_NAME_OF_COPY = re.compile(r"sbbf-[0-9a-f]{16}-[0-9a-f]{8}-")
"""Beginning of the names that only one run has."""
_UNCONDITIONAL = (
    "this store has no conditional writes: a concurrent write to the object may have been "
    "overwritten"
)


class S3Store(S3Bucket):
    """An `ObjectStore` of S3."""

    def __init__(self, bucket: str, lease: LeasePart[S3Keys] | None) -> None:
        super().__init__(bucket, lease)
        self.facts = S3Facts(self)

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        """Raise RefusedError if the key is taken. Whether an object can be replaced is known when
        it is open, without another request."""
        ensure_free(self, target, in_place)

    def ensure_version_replaceable(self, version: Version) -> None:
        """Raise RefusedError for archived and locked objects."""
        attributes = version.attributes
        storage_class = attributes.get("StorageClass")
        if storage_class in ARCHIVES:
            raise RefusedError(
                f"the object is in storage class {storage_class}, in which a new version could "
                "not be read",
                hint=ELSEWHERE,
            )
        if attributes.get("ObjectLockMode") or attributes.get("ObjectLockLegalHoldStatus") == "ON":
            raise RefusedError(
                "the object is locked, and its new version would not be",
                hint=f"{ELSEWHERE}, and lock the new object",
            )

    def replace(self, source: Source, target: Location, planned_source: PlannedSource) -> list[str]:
        return _S3Upload(self, source, target, planned_source).publish()

    def create(self, key: str, data: bytes) -> None:
        def put() -> object:
            return self.client.put_object(
                Bucket=self.bucket, Key=key, Body=data, ContentMD5=md5_of(data), IfNoneMatch="*"
            )

        create(lambda: self.send(put), key)

    def remove(self, key: str) -> None:
        remove(lambda: self.send(lambda: self.client.delete_object(Bucket=self.bucket, Key=key)))


class _S3Upload(Upload):
    store: S3Store
    attributes: dict[str, Any]
    is_answered = False
    """Whether the store has answered that the upload is complete."""

    @property
    def _place(self) -> dict[str, str]:
        return {"Bucket": self.target.bucket, "Key": self.target.key}

    def write(self) -> None:
        self.attributes = self._attributes()
        if self.replaced is not None:
            self.store.ensure_version_replaceable(self.replaced)
            if self.store.facts.count_unfinished_uploads(self.target.key):
                # They cost money and are invisible.
                self.warnings.append(_UNFINISHED)
        parts = plan_parts(
            self.planned_source.keep, self.planned_source.size, can_copy=self._can_copy
        )
        if parts is None:
            self.put()
        else:
            self.put_in_parts(parts)

    @property
    def _can_copy(self) -> bool:
        """Whether the store can copy old bytes itself, which it reads with the credentials of the
        target."""
        if self.old is None:
            return False
        store = self.old.store
        return isinstance(store, S3Store) and store.lease is self.store.lease

    def put(self) -> None:
        data = self.read_all()

        def put(condition: dict[str, str]) -> object:
            return self.store.client.put_object(
                **self._place, Body=data, ContentMD5=md5_of(data), **self.attributes, **condition
            )

        self._on_condition(put, expected=hashlib.md5(data, usedforsecurity=False).hexdigest())

    def put_in_parts(self, parts: tuple[Part, ...]) -> None:
        # In a thread, which learns the id also after an interrupt.
        (upload_id,) = write_parts(self._create_upload, (self._place,))
        with cleaning_up(lambda: self._abort(upload_id)):
            try:
                tags = write_parts(
                    lambda numbered: self.send(lambda: self._write_part(upload_id, *numbered)),
                    enumerate(parts, 1),
                )
                self._ensure_complete(upload_id, parts, tags)
                self._complete(upload_id, tags)
            except UncertainWriteError as error:
                # An upload that may be complete is not aborted: some stores would remove its parts.
                error.hint = f"{error.hint}; if it was not, {_ABORT_HINT}, upload {upload_id}"
                raise
            except BaseException as error:
                self._abort(upload_id, error)
                raise
        if not self.is_answered:
            self._report_remaining(upload_id)

    def _complete(self, upload_id: str, tags: list[str]) -> None:
        """Make the object of the uploaded parts visible."""
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]

        def complete(condition: dict[str, str]) -> None:
            self.store.client.complete_multipart_upload(
                **self._place, UploadId=upload_id, MultipartUpload={"Parts": parts}, **condition
            )
            self.is_answered = True

        self._on_condition(complete, expected=_tag_of(tags))

    def _report_remaining(self, upload_id: str) -> None:
        """Add a warning if an upload remains although its object is stored: its answer was lost, or
        another client stored the same bytes."""
        with suppress(SbbfError):
            self._list_parts(upload_id)
            self.warnings.append(_remains(upload_id))

    def _create_upload(self, place: dict[str, str]) -> str:
        begin = time.monotonic()
        tries = 0

        def request() -> str:
            nonlocal tries
            tries += 1
            answer = self.store.client.create_multipart_upload(**place, **self.attributes)
            return str(answer["UploadId"])

        try:
            upload_id = self.send(request)
        except SbbfError as error:
            if tries > 1:
                error.hint = f"{UNTOUCHED}, but an unfinished upload may remain: {_ABORT_HINT}"
            raise
        if tries > 1:
            self._clear_lost_uploads(upload_id, time.monotonic() - begin)
        try:
            ensure_running()
        except StoppedError:
            self._abort(upload_id)
            raise
        return upload_id

    def _clear_lost_uploads(self, upload_id: str, seconds: float) -> None:
        """Abort the uploads that were created meanwhile without an answer, if no other client has
        this key; otherwise add a warning that names them."""
        # By the clock of the store.
        times: dict[str, Any] = {}
        with suppress(SbbfError):
            answer = self.store.send(
                lambda: self.store.client.list_multipart_uploads(
                    Bucket=self.target.bucket, Prefix=self.target.key
                )
            )
            for upload in answer.get("Uploads", ()):
                if upload.get("Key") == self.target.key:
                    times[upload.get("UploadId")] = upload.get("Initiated")
        begin = times.pop(upload_id, None)
        for other, initiated in times.items():
            is_earlier = begin and initiated and (begin - initiated).total_seconds() > seconds + 1
            if other is None or is_earlier:
                continue
            if _NAME_OF_COPY.match(self.target.key.rpartition("/")[2]):
                self._abort(other)
            else:
                self.warnings.append(_remains(other))

    def _write_part(self, upload_id: str, number: int, part: Part) -> str:
        place = {**self._place, "UploadId": upload_id, "PartNumber": number}
        if not part.is_copy:
            data = self.planned_source.read(part.start, part.end - part.start)
            answer = self.store.client.upload_part(**place, Body=data, ContentMD5=md5_of(data))
            return str(answer["ETag"])
        assert self.old is not None
        answer = self.store.client.upload_part_copy(
            **place,
            CopySource={"Bucket": self.old.location.bucket, "Key": self.old.location.key},
            CopySourceIfMatch=self.old.version.tag,
            CopySourceRange=f"bytes={part.start}-{part.end - 1}",
        )
        tag = answer.get("CopyPartResult", {}).get("ETag")
        if not tag:
            raise WriteError(
                "the store reports that it copied a part, but does not return the ETag of the part",
                hint=UNTOUCHED,
            )
        return str(tag)

    def _ensure_complete(self, upload_id: str, parts: tuple[Part, ...], tags: list[str]) -> None:
        """Ensure that all parts have their planned sizes and that the old object has not changed:
        some stores check neither."""
        stored_parts = self._list_parts(upload_id)
        sent_parts = [
            (part.end - part.start, _strip_quotes(tag))
            for part, tag in zip(parts, tags, strict=True)
        ]
        if stored_parts != dict(enumerate(sent_parts, 1)):
            raise WriteError(
                "the parts in the store are not those that were sent and copied", hint=UNTOUCHED
            )
        old = self.old
        if old is not None and old.store.version(old.location.key) != old.version:
            raise OtherVersionError().at(file=old.name)

    def _list_parts(self, upload_id: str) -> dict[int, tuple[int, str]]:
        """Return size and ETag of the parts in the store by their numbers; a page goes on after the
        last number of the page before."""
        parts: dict[int, tuple[int, str]] = {}
        mark = 0
        while True:
            place: dict[str, Any] = {**self._place, "UploadId": upload_id}
            if mark:
                place["PartNumberMarker"] = mark
            page = self.send(partial(self.store.client.list_parts, **place))
            for part in page.get("Parts", ()):
                parts[part["PartNumber"]] = (part["Size"], _strip_quotes(part["ETag"]))
            if not page.get("IsTruncated"):
                return parts
            last = max(parts, default=0)
            if last <= mark:
                raise endless_error("the store's list of parts goes on, but brings no other part")
            mark = last

    def _on_condition(
        self, write: Callable[[dict[str, str]], object], expected: str | None
    ) -> None:
        """Make the new object visible on a condition; if the store does not support conditions,
        check first and write without."""
        condition = {"IfNoneMatch": "*"}
        if self.replaced is not None:
            condition = {"IfMatch": self.replaced.tag or "*"}

        def write_object() -> None:
            is_supported = self._try_condition(lambda: write(condition))
            if not is_supported:
                self._write_without_condition(write)

        write_once(write_object, lambda: self._is_stored(expected), self.in_place)

    def _try_condition(self, write: Callable[[], object]) -> bool:
        """Send the conditional request; return False if the store does not support its
        condition."""
        if not self.in_place:
            return self._is_supported(write)
        facts = self.store.facts
        with facts.first_write():
            if facts.has_conditions is False:
                return False
            is_supported = self._is_supported(write)
            facts.has_conditions = is_supported
            return is_supported

    def _is_supported(self, write: Callable[[], object]) -> bool:
        """Send a request; return whether the store supports it."""
        try:
            self.send(write)
        except UnsupportedError:
            return False
        return True

    def _write_without_condition(self, write: Callable[[dict[str, str]], object]) -> None:
        if self.store.version(self.target.key) != self.replaced:
            if self.in_place:
                raise OtherVersionError from None
            raise exists_error() from None
        self.warnings.append(_UNCONDITIONAL)
        self.send(lambda: write({}))

    def _is_stored(self, tag: str | None) -> bool:
        """Return whether the planned object is stored. Raises UnreadableError if its ETag may be no
        hash of its bytes, as with SSE-KMS."""
        now = self.store.version(self.target.key)
        if now is None or now == self.replaced or now.size != self.planned_source.size:
            return False
        if tag is None or _strip_quotes(now.tag or "") != tag:
            raise UnreadableError(
                "an object of the planned size is stored, but its ETag does not say whether it is "
                "this one"
            )
        return True

    def _abort(self, upload_id: str, cause: BaseException | None = None) -> None:
        abort = partial(self.store.client.abort_multipart_upload, **self._place, UploadId=upload_id)
        # Not by `send`, which sends nothing after an interrupt.
        for tries in range(1, _ABORTS + 1):
            try:
                with suppress(MissingError):
                    call(abort, self.target.bucket)
                return
            except SbbfError as error:
                if tries < _ABORTS and not isinstance(error, DeniedError):
                    time.sleep(_ABORT_PAUSE)
                elif isinstance(cause, SbbfError):
                    cause.hint = (
                        f"{UNTOUCHED}, but an unfinished upload remains "
                        f"({error.message}): {_ABORT_HINT}, upload {upload_id}"
                    )

    def _attributes(self) -> dict[str, Any]:
        """Return the attributes that the new object keeps, as request arguments; add warnings about
        those that are lost."""
        if self.old is None:
            return {"ContentType": PARQUET_TYPE}
        store = self.old.store
        assert isinstance(store, S3Store)
        place = {"Bucket": self.old.location.bucket, "Key": self.old.location.key}
        attributes = self.old.version.attributes
        carried = {name: attributes[name] for name in COPIED_ATTRIBUTES if name in attributes}
        tags = self._read_old_tags(store, place)
        if tags:
            carried["Tagging"] = urlencode(tags)
        if store.facts.has_access_lists and _is_granted_to_others(store, place):
            self.warnings.append(
                "the old object's access list was not kept: only the owner, or the bucket's "
                "policy, grants access to the new one"
            )
        return carried

    def _read_old_tags(self, store: S3Store, place: dict[str, str]) -> list[tuple[str, str]] | None:
        """Return the tags of the old object; None if it has none that can be kept."""
        # The answer to a GET has the number of tags only if the user may read them, so tags are
        # requested of every object.
        if not store.facts.has_tags:
            return None
        request = partial(_tags, store.client, place)
        try:
            return self.read_tags(lambda: store.send(request), "s3:GetObjectTagging")
        except UnsupportedError:
            store.facts.has_tags = False
            return None


def _remains(upload_id: str) -> str:
    return (
        "an answer of the store was lost, and an unfinished upload of the object remains: "
        f"{_ABORT_HINT}, upload {upload_id}"
    )


def _tags(client: Any, place: dict[str, str]) -> list[tuple[str, str]]:
    tags = client.get_object_tagging(**place).get("TagSet", ())
    return [(tag["Key"], tag["Value"]) for tag in tags]


def _is_granted_to_others(store: S3Store, place: dict[str, str]) -> bool:
    """Return whether the access list of an object has others than its owner; False if it cannot be
    read."""
    with suppress(SbbfError):
        # A warning is not worth the pauses of retries.
        acl = call(lambda: store.client.get_object_acl(**place), store.bucket)
        owner = acl.get("Owner", {}).get("ID")
        return any(grant.get("Grantee", {}).get("ID") != owner for grant in acl.get("Grants", ()))
    return False


def _strip_quotes(tag: str) -> str:
    return tag.strip('"')


def _tag_of(tags: list[str]) -> str | None:
    """Return the ETag that most stores give an object of these parts; None if the ETags of the
    parts are not MD5 hashes."""
    try:
        digests = b"".join(bytes.fromhex(_strip_quotes(tag)) for tag in tags)
    except ValueError:
        return None
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(tags)}"
