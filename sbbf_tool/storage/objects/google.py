"""Publication of a new version of an object of Google Cloud Storage in one step: the service joins
the old object and the new bytes.

    256 KiB and less     one upload of the whole object
    above                the new bytes are uploaded as a temporary object, and a compose request
                         joins the old object and that one

The last request requires the generation that was read, and its metadata (`ifGenerationMatch`,
`ifMetagenerationMatch`), or that no object exists. The temporary object is deleted also after an
error or an interrupt. Its name depends on the object's name alone, so the next change of the object
replaces and deletes what a killed process left; a lifecycle rule for the suffix `.sbbf-tail`
deletes it too.

A compose request takes whole objects. So if the new object keeps only a part of the old one, or
that is in another bucket, the kept bytes are uploaded too. The parts of a composed object must have
one storage class. It has a CRC32C, which is compared, and no MD5.

The client has the settings with which obstore reads: the file or text of a service account's key
(`GOOGLE_SERVICE_ACCOUNT`, `GOOGLE_SERVICE_ACCOUNT_KEY`), or application default credentials
(`GOOGLE_APPLICATION_CREDENTIALS`, gcloud's login, the machine's service account). A service
account's file with `gcs_base_url` names another endpoint. `GOOGLE_CLOUD_QUOTA_PROJECT` names the
project that pays for requests to a bucket whose requests the reader pays.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import google.auth
import google.auth.credentials
import google_crc32c
import requests
import urllib3
from google.api_core.exceptions import GoogleAPIError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.cloud.storage import Blob, Client
from google.cloud.storage.exceptions import DataCorruption
from google.oauth2.service_account import Credentials

from sbbf_tool.errors import MissingError, RefusedError, SbbfError, WriteError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.objects.answers import limited_session
from sbbf_tool.storage.objects.cloud_keys import GoogleKeys
from sbbf_tool.storage.objects.conditional import (
    GOOGLE_HINT,
    PARQUET_TYPE,
    UPLOAD_PART,
    WHOLE_BYTES,
    CloudWriter,
    Upload,
    md5_of,
    write_once,
)
from sbbf_tool.storage.objects.lease import LeasePart
from sbbf_tool.storage.objects.retries import Retries
from sbbf_tool.storage.objects.store import (
    CONNECT_SECONDS,
    READ_SECONDS,
    DeniedError,
    OtherVersionError,
)
from sbbf_tool.storage.source import Source, Stream
from sbbf_tool.storage.threads import cleaning_up

TEMPORARY_SUFFIX = ".sbbf-tail"
_BLOCK = 1 << 20

_CARRIED = (
    "cache_control",
    "content_disposition",
    "content_encoding",
    "content_language",
    "content_type",
    "custom_time",
    "metadata",
    "storage_class",
    "contexts",
)
_ONCE: dict[str, Any] = {"retry": None, "timeout": (CONNECT_SECONDS, READ_SECONDS)}
"""Arguments of all requests: `CloudWriter.send` repeats them."""


class _GoogleUpload(Upload):
    store: GoogleWriter

    def write(self) -> None:
        old = self._find_old()
        condition = {"if_generation_match": 0}
        if self.in_place:
            assert old is not None
            _ensure_blob_replaceable(old)
            condition = {
                "if_generation_match": old.generation,
                "if_metageneration_match": old.metageneration,
            }
        if self.planned_source.size <= WHOLE_BYTES:
            self._put(self._new_blob(self.target.key, old), condition)
        else:
            self._compose(old, condition)

    def _new_blob(
        self, name: str, old: Blob | None, attributes: tuple[str, ...] = _CARRIED
    ) -> Blob:
        """Return an object that is not stored yet, with attributes of the old one."""
        key = None
        if old is not None and old.kms_key_name:
            key = old.kms_key_name.partition("/cryptoKeyVersions/")[0]
        blob = self.store.bucket.blob(name, kms_key_name=key)
        if old is None:
            blob.content_type = PARQUET_TYPE
        for attribute in attributes:
            value = getattr(old, attribute, None)
            if value:
                setattr(blob, attribute, value)
        return blob

    def _put(self, blob: Blob, condition: dict[str, Any]) -> None:
        data = self.read_all()

        def put() -> None:
            blob.upload_from_string(data, blob.content_type, checksum="md5", **condition, **_ONCE)

        def is_stored() -> bool:
            now = self.store.find(self.target.key)
            return (now.md5_hash, now.size) == (md5_of(data), len(data))

        write_once(lambda: self.send(put), is_stored, self.in_place)

    def _compose(self, old: Blob | None, condition: dict[str, Any]) -> None:
        plan = self.planned_source
        tail = self._new_blob(_temporary_name(self.target.key), old, ("storage_class",))
        tail.chunk_size = UPLOAD_PART
        parts = [tail]
        new_bytes = plan
        if old is not None and self._keeps_whole:
            parts = [old, tail]
            new_bytes = plan.new_bytes()
        with cleaning_up(lambda: self._delete(tail)):
            try:
                self._upload(tail, new_bytes)
                self._compose_target(parts, self._new_blob(self.target.key, old), condition)
            finally:
                self._delete(tail)

    @property
    def _keeps_whole(self) -> bool:
        """Whether the new object begins with the whole old one, in the same bucket."""
        if self.old is None or self.old.location.bucket != self.target.bucket:
            return False
        return self.planned_source.keep == self.old.size

    def _upload(self, tail: Blob, source: Source) -> None:
        def upload() -> None:
            with closing(Stream(source)) as stream:
                tail.upload_from_file(stream, size=source.size, checksum="crc32c", **_ONCE)

        self.store.send(upload)

    def _compose_target(self, parts: list[Blob], blob: Blob, condition: dict[str, Any]) -> None:
        checksum = checksum_of((part.crc32c, part.size) for part in parts)

        def is_composed(now: Blob) -> bool:
            return (now.size, now.crc32c) == (self.planned_source.size, checksum)

        def request() -> None:
            generations = [part.generation for part in parts]
            blob.compose(parts, if_source_generation_match=generations, **condition, **_ONCE)

        def compose() -> None:
            try:
                self.store.send(request)
            except MissingError:
                # The old object is gone, or a concurrent run has replaced the temporary object.
                raise OtherVersionError from None
            if not is_composed(blob):
                raise WriteError(
                    "the composed object does not have the checksum of its parts",
                    hint="the object was replaced; verify it",
                )

        write_once(compose, lambda: is_composed(self.store.find(self.target.key)), self.in_place)

    def _delete(self, tail: Blob) -> None:
        """Delete the temporary object; add a warning if it remains."""

        def request() -> None:
            tail.delete(if_generation_match=tail.generation, **_ONCE)

        try:
            # Its answer may be missing: then it may exist or not.
            self.store.send(request, once=True)
        except (MissingError, OtherVersionError):
            # A concurrent run has replaced the object, and deletes it.
            return
        except SbbfError as error:
            self.warnings.append(
                f"temporary objects with the suffix {TEMPORARY_SUFFIX} remain ({error.message}): "
                "delete them, or set a lifecycle rule"
            )

    def _find_old(self) -> Blob | None:
        """Return the version that was read, None if there is none; add a warning if others have
        access to it."""
        if self.old is None:
            return None
        if self.old.version.generation is None:
            raise RefusedError(
                "the server states no generation of the object, so it is not Google Cloud Storage",
                hint=ELSEWHERE,
            )
        store: Any = self.old.store
        try:
            old: Blob = store.writer.find(self.old.location.key, self.old.version.generation)
        except MissingError:
            raise OtherVersionError from None
        if _is_granted_to_others(old):
            self.warnings.append(
                "the old object's access list was not kept: the new one has the default of the "
                "bucket"
            )
        return old


def _is_granted_to_others(blob: Blob) -> bool:
    """Return whether the access list of an object has others than its owner and the roles of the
    project."""
    owner = (blob.owner or {}).get("entity")
    # `blob.acl` would request them again.
    for entry in blob._properties.get("acl", ()):
        entity = str(entry.get("entity"))
        if entity != owner and not entity.lower().startswith("project"):
            return True
    return False


class GoogleWriter(CloudWriter):
    """The writing half of a bucket of Google Cloud Storage. Raises DeniedError."""

    upload = _GoogleUpload
    errors = (GoogleAPIError, GoogleAuthError, DataCorruption)
    hint = GOOGLE_HINT
    connection_errors = (requests.RequestException, urllib3.exceptions.HTTPError)

    def __init__(
        self,
        retries: Retries,
        config: dict[str, Any],
        lease: LeasePart[GoogleKeys] | None,
    ) -> None:
        super().__init__(retries, lease)
        account = {}
        try:
            if lease is not None:
                credentials: Any = _LeasedToken(lease)
                account["gcs_base_url"] = lease.keys.endpoint
            else:
                account = _service_account()
                credentials = _credentials(account)
        except Exception as error:
            # google-auth's own errors, and those of each kind of credential.
            raise DeniedError(
                f"no usable credentials ({type(error).__name__})", hint=GOOGLE_HINT
            ) from None
        endpoint = str(account.get("gcs_base_url") or "https://storage.googleapis.com").rstrip("/")
        session = limited_session(AuthorizedSession(credentials))
        client = Client(None, credentials, session, client_options={"api_endpoint": endpoint})
        self.bucket = client.bucket(
            config["bucket"], user_project=os.environ.get("GOOGLE_CLOUD_QUOTA_PROJECT")
        )

    def status_of(self, error: Any) -> tuple[int, str]:
        try:
            reason = str(error.errors[0]["reason"])
        except (AttributeError, LookupError, TypeError):
            reason = ""
        return int(getattr(error, "code", None) or 0), reason

    def describe(self, error: Exception) -> SbbfError:
        if isinstance(error, DataCorruption):
            return WriteError(
                "the service stored other bytes than those that were sent", hint="verify the object"
            )
        return super().describe(error)

    def find(self, key: str, generation: str | None = None) -> Blob:
        """Return an object with its metadata, and with its access list if that is readable. Raises
        MissingError."""
        blob = self.bucket.blob(key, generation=generation and int(generation))
        try:
            self.send(lambda: blob.reload(projection="full", **_ONCE))
        except DeniedError:
            # The access list needs a permission of its own.
            self.send(lambda: blob.reload(**_ONCE))
        return blob

    def ensure_object_replaceable(self, key: str) -> None:
        _ensure_blob_replaceable(self.find(key))


class _LeasedToken(google.auth.credentials.Credentials):
    """The newest token of a lease, for each request."""

    def __init__(self, lease: LeasePart[GoogleKeys]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._lease = lease

    def before_request(self, request: Any, method: str, url: str, headers: Any) -> None:
        headers["authorization"] = f"Bearer {self._lease.keys.token}"

    def refresh(self, request: Any) -> None:
        """Do nothing: `CloudWriter.send` renews the lease."""


def _temporary_name(key: str) -> str:
    """Return a name that listings of a lake skip."""
    folder, slash, base = key.rpartition("/")
    digest = hashlib.sha256(base.encode()).hexdigest()[:24]
    return f"{folder}{slash}.sbbf-{digest}{TEMPORARY_SUFFIX}"


def checksum_of(parts: Iterable[tuple[str | None, int]]) -> str:
    """Return the CRC-32C of bytes in parts, each given as checksum and length. Raises RefusedError
    if one has no checksum.

    It is linear: the checksum of the parts so far, continued over as many zeros, less that of the
    zeros, plus that of the part.
    """
    total = 0
    for checksum, length in parts:
        if checksum is None:
            raise RefusedError(
                "the server states no CRC32C of the object, so it is not Google Cloud Storage",
                hint=ELSEWHERE,
            )
        zeros = 0
        for start in range(0, length, _BLOCK):
            block = bytes(min(_BLOCK, length - start))
            total = google_crc32c.extend(total, block)
            zeros = google_crc32c.extend(zeros, block)
        total ^= zeros ^ int.from_bytes(b64decode(checksum), "big")
    return b64encode(total.to_bytes(4, "big")).decode()


def _ensure_blob_replaceable(blob: Blob) -> None:
    """Raise RefusedError if an object cannot be replaced, or its new version would lack an
    attribute."""
    # The library has no other name for the customer's key.
    metadata = blob._properties
    if metadata.get("temporaryHold") or metadata.get("eventBasedHold"):
        raise RefusedError(
            "the object is under a hold",
            hint="release it, run the command, and hold the new version",
        )
    if metadata.get("retention") or metadata.get("retentionExpirationTime"):
        # Even if it has ended: the temporary objects of the change could not be deleted before the
        # bucket's period is over.
        raise RefusedError("the object or its bucket has a retention policy", hint=ELSEWHERE)
    if metadata.get("customerEncryption"):
        raise RefusedError(
            "the object is encrypted with a key that only its writer has (customer-supplied key)",
            hint=ELSEWHERE,
        )
    if "gzip" in str(metadata.get("contentEncoding", "")):
        raise RefusedError(
            "the object has the content encoding gzip: readers get other bytes than are stored",
            hint=ELSEWHERE,
        )


# Otherwise the library requests the bucket, to describe it in traces, whether it writes them or
# not.
os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")

_SCOPES = ["https://www.googleapis.com/auth/devstorage.full_control"]


def _credentials(account: dict[str, Any]) -> Any:
    if account.get("disable_oauth"):
        return AnonymousCredentials()
    if account:
        return Credentials.from_service_account_info(account, scopes=_SCOPES)
    return google.auth.default(scopes=_SCOPES)[0]


def _service_account() -> dict[str, Any]:
    """Return the key of a service account that the environment names; empty if it names none."""
    text = os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    path = os.environ.get("GOOGLE_SERVICE_ACCOUNT") or os.environ.get("GOOGLE_SERVICE_ACCOUNT_PATH")
    try:
        if path and not text:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        account = json.loads(text) if text else {}
    except (OSError, ValueError) as error:
        raise DeniedError(
            f"the service account's key cannot be read ({type(error).__name__})", hint=GOOGLE_HINT
        ) from None
    return account if isinstance(account, dict) else {}
