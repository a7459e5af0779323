"""Requests to the blobs of one Azure container, with the credentials of the environment.

The settings are those with which obstore reads: `AZURE_STORAGE_ACCOUNT_NAME` unless the URL names the account, then an account key
(`AZURE_STORAGE_ACCOUNT_KEY`), a shared access signature (`AZURE_STORAGE_SAS_TOKEN`), a bearer token (`AZURE_STORAGE_TOKEN`), or what
azure-identity finds: a service principal, a workload or managed identity, or the login of a developer's tools. `AZURE_STORAGE_ENDPOINT`
names another endpoint, `AZURE_STORAGE_USE_EMULATOR` Azurite.

Signatures: https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key and create-service-sas.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from sbbf_tool.errors import RefusedError, SbbfError, UsageError, WriteError
from sbbf_tool.storage.objects import rest
from sbbf_tool.storage.objects.conditional import md5_of
from sbbf_tool.storage.objects.rest import Response, RestClient, RestRequest, StatusError
from sbbf_tool.storage.objects.retries import retries_of
from sbbf_tool.storage.objects.store import DeniedError, OtherVersionError

_API_VERSION = "2021-12-02"
_SCOPE = "https://storage.azure.com/.default"
_HINT = "check AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY and the like"
_COPY_HOURS = 6

# Azurite's account and key are public: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
_EMULATOR = "devstoreaccount1"
_EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

_SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


class AzureContainer:
    """A container. `account` is the account that its URL names, or None."""

    def __init__(self, container: str, account: str | None) -> None:
        uses_emulator = os.environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower() in ("1", "true", "yes", "on", "y")
        self.account = account or _setting("AZURE_STORAGE_ACCOUNT_NAME") or (_EMULATOR if uses_emulator else "")
        if not self.account:
            raise DeniedError("no account is set", hint=_HINT)
        endpoint = _setting("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT") or f"https://{self.account}.blob.core.windows.net"
        if uses_emulator:
            endpoint = f"{os.environ.get('AZURITE_BLOB_STORAGE_URL') or 'http://127.0.0.1:10000'}/{self.account}"
        self._container = container
        self._url = f"{endpoint.rstrip('/')}/{quote(container)}"
        self._key = _decode_key(
            _setting("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
            or (_EMULATOR_KEY if uses_emulator else "")
        )
        self._signature = _setting("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN").lstrip("?")
        self._client = RestClient(retries_of(os.getpid(), "azure", self._url, rest.BUDGET), self._authorize, _find_code, _describe, _HINT)

    def send(
        self, method: str, key: str, *, query: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        """Send a request about the blob with this key."""
        headers = {"x-ms-version": _API_VERSION, **(headers or {})}
        if body:
            headers["Content-MD5"] = md5_of(body)
        return self._client.send(RestRequest(method, self._url_of(key), query or {}, headers, body))

    def copy_source(self, key: str) -> dict[str, str]:
        """Return the headers with which the service itself reads a blob of this container. They contain credentials."""
        url = self._url_of(key)
        if self._key is not None:
            return {"x-ms-copy-source": f"{url}?{urlencode(self.read_signature(key))}"}
        if self._signature:
            return {"x-ms-copy-source": f"{url}?{self._signature}"}
        return {"x-ms-copy-source": url, "x-ms-copy-source-authorization": f"Bearer {self._find_token()}"}

    def read_signature(self, key: str) -> dict[str, str]:
        """Return the query of a URL that allows to read one blob for some hours, signed with the account key."""
        assert self._key is not None
        expiry = (datetime.now(UTC) + timedelta(hours=_COPY_HOURS)).strftime("%Y-%m-%dT%H:%M:%SZ")
        resource = f"/blob/{self.account}/{self._container}/{key}"
        # Permission, start, expiry, resource, identifier, addresses, protocol, version, kind, snapshot, scope, and five headers.
        lines = ["r", "", expiry, resource, "", "", "", _API_VERSION, "b", *[""] * 7]
        return {"sv": _API_VERSION, "sr": "b", "sp": "r", "se": expiry, "sig": self._sign("\n".join(lines))}

    def _url_of(self, key: str) -> str:
        return f"{self._url}/{quote(key, safe='/~')}"

    def _authorize(self, request: RestRequest) -> RestRequest:
        if self._key is not None:
            headers = {**request.headers, "x-ms-date": format_datetime(datetime.now(UTC), usegmt=True)}
            text = _text_to_sign(replace(request, headers=headers), self.account)
            return replace(request, headers={**headers, "Authorization": f"SharedKey {self.account}:{self._sign(text)}"})
        if self._signature:
            return replace(request, query={**request.query, **dict(parse_qsl(self._signature))})
        return replace(request, headers={**request.headers, "Authorization": f"Bearer {self._find_token()}"})

    def _sign(self, text: str) -> str:
        assert self._key is not None
        return base64.b64encode(hmac.new(self._key, text.encode(), hashlib.sha256).digest()).decode()

    def _find_token(self) -> str:
        return _setting("AZURE_STORAGE_TOKEN") or self._credential()

    @cached_property
    def _credential(self) -> Callable[[], str]:
        try:
            from azure.identity import DefaultAzureCredential
        except ModuleNotFoundError:
            raise UsageError("credentials of Azure need the package azure-identity", hint="pip install 'sbbf-tool[objects]'") from None
        credential: Any = DefaultAzureCredential()

        def find_token() -> str:
            try:
                return str(credential.get_token(_SCOPE).token)
            except Exception as error:  # its own errors, and those of each kind of credential
                raise DeniedError(f"no usable credentials ({type(error).__name__})", hint=_HINT) from None

        return find_token


def _setting(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name))), "")


def _decode_key(key: str) -> bytes | None:
    if not key:
        return None
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error:
        raise DeniedError("AZURE_STORAGE_ACCOUNT_KEY is not Base64", hint=_HINT) from None


def _text_to_sign(request: RestRequest, account: str) -> str:
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers["content-length"] = str(len(request.body) or "")
    own = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers) if name.startswith("x-ms-"))
    parameters = "".join(f"\n{name.lower()}:{request.query[name]}" for name in sorted(request.query, key=str.lower))
    lines = [request.method, *(headers.get(name, "") for name in _SIGNED_HEADERS)]
    return "\n".join(lines) + f"\n{own}/{account}{urlsplit(request.url).path}{parameters}"


def _find_code(response: Response) -> str:
    return str(response.headers.get("x-ms-error-code", ""))


def _describe(error: StatusError) -> SbbfError | None:
    if error.code == "BlobAlreadyExists":
        return OtherVersionError()
    if error.code.startswith("Lease"):
        return RefusedError("the object is leased: another client has reserved it", hint="run the command again when the lease has ended")
    if error.code in ("BlobImmutableDueToPolicy", "BlobImmutableDueToLegalHold"):
        return RefusedError(f"the object must not be changed ({error.code})")
    if error.code == "InvalidBlobOrBlock":
        hint = "Azure removes blocks that are in no blob after a week"
        return WriteError("another program has begun to write this object, with block ids of another length", hint=hint)
    return None
