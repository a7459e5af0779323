"""Publication of a new version of an object of Google Cloud Storage in one step: the service joins the old object and the new bytes.

    256 KiB and less     one upload of the whole object
    above                the new bytes are uploaded as a temporary object, and a compose request joins the old object and that one

The last request requires the generation that was read, and its metadata (`ifGenerationMatch`, `ifMetagenerationMatch`), or that no object
exists. Temporary objects are deleted also after an error or an interrupt. Their names depend on the object's name alone, so the next change
of the object replaces and deletes what a killed process left; a lifecycle rule for the suffix `.sbbf-tail` deletes it too.

A compose request takes whole objects. So if the new object keeps only a part of the old one, or that is in another bucket, the kept bytes
are uploaded too. The parts of a composed object must have one storage class. It has a CRC32C, which is compared, and no MD5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from sbbf_tool.errors import MissingError, RefusedError, SbbfError, WriteError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.objects.cloud import CloudStore
from sbbf_tool.storage.objects.conditional import (
    PARQUET_TYPE,
    UNTOUCHED,
    UPLOAD_PART,
    WHOLE_BYTES,
    call_to_write,
    ensure_object_key,
    exists_error,
    md5_of,
    old_object,
    write_once,
    write_parts,
)
from sbbf_tool.storage.objects.crc32c import combine, parse_checksum
from sbbf_tool.storage.objects.google_rest import GoogleBucket, Metadata
from sbbf_tool.storage.objects.location import Location
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.objects.store import DeniedError, OtherVersionError
from sbbf_tool.storage.source import Piece, PlannedSource, Source
from sbbf_tool.storage.threads import cleaning_up

TEMPORARY_SUFFIX = ".sbbf-tail"
MOST_SOURCES = 32
"""Maximum number of objects that one request composes."""

_CARRIED = ("cacheControl", "contentDisposition", "contentEncoding", "contentLanguage", "contentType", "customTime", "metadata")


@dataclass(frozen=True)
class _StoredPart:
    """An object, or a part of the new one that is stored as an object."""

    name: str
    generation: str
    size: int
    checksum: int | None
    """CRC-32C."""


class GoogleStore(CloudStore):
    """An `ObjectStore` of a bucket of Google Cloud Storage. Reads are those of `CloudStore`."""

    @cached_property
    def bucket(self) -> GoogleBucket:
        """The bucket, for requests that obstore does not have. Raises DeniedError."""
        return GoogleBucket(self._store.config["bucket"])

    def ensure_writable(self, target: Location, in_place: bool) -> None:
        ensure_object_key(target)
        if not in_place:
            if self.version(target.key) is not None:
                raise exists_error()
            return
        _ensure_replaceable(self.bucket.find_metadata(target.key))

    def replace(self, source: Source, target: Location, keep: int, pieces: tuple[Piece, ...]) -> list[str]:
        old = old_object(source, "gs")
        in_place = old is not None and old.location == target
        with PlannedSource(target.name, source, keep, pieces) as planned_source:
            upload = _GoogleUpload(call_to_write(lambda: self.bucket), target, old, in_place, planned_source)
            call_to_write(upload.write)
        return upload.warnings


@dataclass
class _GoogleUpload:
    """The upload of one object."""

    bucket: GoogleBucket
    target: Location
    old: ObjectSource | None
    in_place: bool
    planned_source: PlannedSource
    warnings: list[str] = field(default_factory=list)

    def write(self) -> None:
        old = self._old_metadata()
        if self.in_place:
            _ensure_replaceable(old)
        attributes = _attributes(old) if self.old is not None else {"contentType": PARQUET_TYPE}
        key = {"kmsKeyName": old["kmsKeyName"].partition("/cryptoKeyVersions/")[0]} if old.get("kmsKeyName") else {}
        condition = {"ifGenerationMatch": "0"}
        if self.in_place:
            condition = {"ifGenerationMatch": str(old["generation"]), "ifMetagenerationMatch": str(old["metageneration"])}
        if self.planned_source.size <= WHOLE_BYTES:
            self._put(attributes, {**key, **condition})
        else:
            self._compose(old, attributes, key, condition)

    def _put(self, attributes: Metadata, query: dict[str, str]) -> None:
        data = self.planned_source.read(0, self.planned_source.size)
        metadata = {**attributes, "md5Hash": md5_of(data)}

        def is_stored() -> bool:
            now = self._metadata_or_none()
            return now is not None and (now.get("md5Hash"), now.get("size")) == (md5_of(data), str(len(data)))

        write_once(lambda: self._call(lambda: self.bucket.upload(self.target.key, metadata, data, **query)), is_stored, self.in_place)

    def _compose(self, old: Metadata, attributes: Metadata, key: dict[str, str], condition: dict[str, str]) -> None:
        keeps_old = self.old is not None and self.old.location.bucket == self.target.bucket and self.planned_source.keep == self.old.size
        old_parts = [_part_of(self.old.location.key, old)] if self.old is not None and keeps_old else []
        temporary = _Temporary(
            self.bucket, self.target.key, {name: attributes[name] for name in ("storageClass",) if name in attributes}, key
        )
        with cleaning_up(temporary.delete):
            self._compose_with(temporary, old_parts, attributes, {**key, **condition})

    def _compose_with(self, temporary: _Temporary, old_parts: list[_StoredPart], attributes: Metadata, query: dict[str, str]) -> None:
        try:
            start = self.planned_source.keep if old_parts else 0
            ranges = [
                (offset, min(offset + UPLOAD_PART, self.planned_source.size))
                for offset in range(start, self.planned_source.size, UPLOAD_PART)
            ]
            uploads = write_parts(lambda numbered: self._upload_part(temporary, *numbered), list(enumerate(ranges)))
            while len(old_parts) + len(uploads) > MOST_SOURCES:
                groups = [uploads[first : first + MOST_SOURCES] for first in range(0, len(uploads), MOST_SOURCES)]
                uploads = write_parts(temporary.compose, groups)
            self._compose_target([*old_parts, *uploads], attributes, query)
        finally:
            if warning := temporary.delete():
                self.warnings.append(warning)

    def _upload_part(self, temporary: _Temporary, number: int, bounds: tuple[int, int]) -> _StoredPart:
        return temporary.upload(number, self.planned_source.read(bounds[0], bounds[1] - bounds[0]))

    def _compose_target(self, parts: list[_StoredPart], attributes: Metadata, query: dict[str, str]) -> None:
        checksums = [(part.checksum, part.size) for part in parts if part.checksum is not None]
        checksum = combine(checksums) if len(checksums) == len(parts) else None
        sources = [(part.name, part.generation) for part in parts]

        def is_composed(metadata: Metadata | None) -> bool:
            return (
                metadata is not None
                and metadata.get("size") == str(self.planned_source.size)
                and (checksum is None or parse_checksum(metadata.get("crc32c")) == checksum)
            )

        def compose() -> None:
            metadata = self._call(lambda: self.bucket.compose(self.target.key, sources, attributes, **query))
            if not is_composed(metadata):
                hint = "the object was replaced; verify it"
                raise WriteError("the composed object does not have the checksum of its parts", hint=hint)

        write_once(compose, lambda: checksum is not None and is_composed(self._metadata_or_none()), self.in_place)

    def _call(self, request: Callable[[], Metadata]) -> Metadata:
        try:
            return request()
        except MissingError:
            # The old object is gone, or a concurrent run has replaced the temporary object.
            raise OtherVersionError from None

    def _metadata_or_none(self) -> Metadata | None:
        try:
            return self.bucket.find_metadata(self.target.key)
        except SbbfError:
            return None

    def _old_metadata(self) -> Metadata:
        """Return the metadata of the version that was read, empty without an old object; add a warning if others have access to it."""
        if self.old is None:
            return {}
        generation = self.old.version.generation
        if generation is None:
            raise RefusedError("the server states no generation of the object, so it is not Google Cloud Storage", hint=ELSEWHERE)
        assert isinstance(self.old.store, GoogleStore)
        bucket, key = self.old.store.bucket, self.old.location.key
        try:
            try:
                metadata = bucket.find_metadata(key, generation=generation, projection="full")
            except DeniedError:
                # The access list needs a permission of its own.
                metadata = bucket.find_metadata(key, generation=generation, projection="noAcl")
        except MissingError:
            raise OtherVersionError from None
        owner = metadata.get("owner", {}).get("entity")
        entities = [str(entry.get("entity")) for entry in metadata.get("acl", ())]
        if any(entity != owner and not entity.lower().startswith("project") for entity in entities):
            self.warnings.append("the old object's access list was not kept: the new one has the default of the bucket")
        return metadata


@dataclass
class _Temporary:
    """Objects with new bytes, which exist until the new object is composed."""

    bucket: GoogleBucket
    key: str
    attributes: Metadata
    """The storage class: all parts of a composed object must have the same."""
    query: dict[str, str]
    generations: dict[str, str | None] = field(default_factory=dict)
    """By the name of each object; None if its answer is missing, so that it may exist or not."""

    def upload(self, number: int, data: bytes) -> _StoredPart:
        name = self._name(number)
        metadata = self.bucket.upload(name, {**self.attributes, "md5Hash": md5_of(data)}, data, **self.query)
        self.generations[name] = str(metadata["generation"])
        if (metadata.get("md5Hash"), metadata.get("size")) != (md5_of(data), str(len(data))):
            raise WriteError("the service stored other bytes than those that were sent", hint=UNTOUCHED)
        return _part_of(name, metadata)

    def compose(self, parts: list[_StoredPart]) -> _StoredPart:
        """Join objects to one more of them."""
        name = f"{parts[0].name.removesuffix(TEMPORARY_SUFFIX)}+{TEMPORARY_SUFFIX}"
        self.generations[name] = None
        part = _part_of(name, self.bucket.compose(name, [(part.name, part.generation) for part in parts], self.attributes, **self.query))
        self.generations[name] = part.generation
        return part

    def delete(self) -> str | None:
        """Delete all objects; return a warning if some remain."""
        reason = None
        for name, generation in tuple(self.generations.items()):
            try:
                self.bucket.delete(name, **({} if generation is None else {"ifGenerationMatch": generation}))
            except (MissingError, OtherVersionError):
                # A concurrent run has replaced the object, and deletes it.
                continue
            except SbbfError as error:
                reason = error.message
        return reason and f"temporary objects with the suffix {TEMPORARY_SUFFIX} remain ({reason}): delete them, or set a lifecycle rule"

    def _name(self, number: int) -> str:
        """Return a name that listings of a lake skip, and remember it."""
        folder, slash, base = self.key.rpartition("/")
        digest = hashlib.sha256(base.encode()).hexdigest()[:24]
        name = f"{folder}{slash}.sbbf-{digest}-{number}{TEMPORARY_SUFFIX}"
        # Before the request: it may succeed although its answer is lost.
        self.generations[name] = None
        return name


def _part_of(name: str, metadata: Metadata) -> _StoredPart:
    return _StoredPart(name, str(metadata["generation"]), int(metadata["size"]), parse_checksum(metadata.get("crc32c")))


def _attributes(old: Metadata) -> Metadata:
    """Return the metadata that the new object keeps from the old one."""
    carried = {name: old[name] for name in (*_CARRIED, "storageClass") if old.get(name)}
    if contexts := old.get("contexts", {}).get("custom"):
        carried["contexts"] = {"custom": {name: {"value": context.get("value")} for name, context in contexts.items()}}
    return carried


def _ensure_replaceable(metadata: Metadata) -> None:
    """Raise RefusedError if an object with this metadata cannot be replaced, or its new version would lack an attribute."""
    if metadata.get("temporaryHold") or metadata.get("eventBasedHold"):
        raise RefusedError("the object is under a hold", hint="release it, run the command, and hold the new version")
    if metadata.get("retention") or metadata.get("retentionExpirationTime"):
        # Even if it has ended: the temporary objects of the change could not be deleted before the bucket's period is over.
        raise RefusedError("the object or its bucket has a retention policy", hint=ELSEWHERE)
    if metadata.get("customerEncryption"):
        raise RefusedError("the object is encrypted with a key that only its writer has (customer-supplied key)", hint=ELSEWHERE)
    if "gzip" in str(metadata.get("contentEncoding", "")):
        raise RefusedError("the object has the content encoding gzip: readers get other bytes than are stored", hint=ELSEWHERE)
