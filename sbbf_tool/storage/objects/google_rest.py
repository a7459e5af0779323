"""Requests to one bucket of Google Cloud Storage by its JSON API, with the credentials of the environment.

The settings are those with which obstore reads: the file or text of a service account's key (`GOOGLE_SERVICE_ACCOUNT`,
`GOOGLE_SERVICE_ACCOUNT_KEY`), or application default credentials (`GOOGLE_APPLICATION_CREDENTIALS`, gcloud's login, the machine's service
account), which google-auth finds. A service account's file with `gcs_base_url` names another endpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any
from urllib.parse import quote

import urllib3

from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.storage.objects import rest
from sbbf_tool.storage.objects.rest import Response, RestClient, RestRequest, StatusError, connections, proxy_of
from sbbf_tool.storage.objects.retries import retries_of
from sbbf_tool.storage.objects.store import CONNECT_SECONDS, READ_SECONDS, DeniedError

Metadata = dict[str, Any]
"""The metadata of an object, as the JSON API spells them."""

_ENDPOINT = "https://storage.googleapis.com"
_SCOPES = ["https://www.googleapis.com/auth/devstorage.full_control"]
_HINT = "check GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login"


class GoogleBucket:
    """A bucket."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._account = _service_account()
        self._endpoint = str(self._account.get("gcs_base_url") or _ENDPOINT).rstrip("/")
        self._client = RestClient(retries_of(os.getpid(), "gs", bucket, rest.BUDGET), self._authorize, _find_code, _describe, _HINT)
        self._lock = Lock()

    def find_metadata(self, name: str, **query: str) -> Metadata:
        """Return the metadata of an object. Raises MissingError."""
        return self._send("GET", self._object_url(name), query)

    def upload(self, name: str, metadata: Metadata, data: bytes, **query: str) -> Metadata:
        """Store an object in one request; the service compares its bytes with `md5Hash` of the metadata. Return its new metadata."""
        boundary = os.urandom(16).hex()
        content_type = metadata.get("contentType", "application/octet-stream")
        body = b"".join(
            (
                f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode(),
                json.dumps({**metadata, "name": name}).encode(),
                f"\r\n--{boundary}\r\nContent-Type: {content_type}\r\n\r\n".encode(),
                data,
                f"\r\n--{boundary}--\r\n".encode(),
            )
        )
        url = f"{self._endpoint}/upload/storage/v1/b/{quote(self._bucket, safe='')}/o"
        headers = {"Content-Type": f"multipart/related; boundary={boundary}"}
        return self._send("POST", url, {"uploadType": "multipart", **query}, body, headers)

    def compose(self, name: str, sources: list[tuple[str, str]], metadata: Metadata, **query: str) -> Metadata:
        """Make an object of the bytes of others, each given as name and generation. Return its metadata."""
        body = {
            "sourceObjects": [
                {"name": source, "generation": generation, "objectPreconditions": {"ifGenerationMatch": generation}}
                for source, generation in sources
            ],
            "destination": metadata,
        }
        headers = {"Content-Type": "application/json"}
        return self._send("POST", f"{self._object_url(name)}/compose", query, json.dumps(body).encode(), headers)

    def delete(self, name: str, **query: str) -> None:
        """Delete an object, also after the run has been interrupted. Raises MissingError."""
        self._client.send_last(RestRequest("DELETE", self._object_url(name), query))

    def _object_url(self, name: str) -> str:
        return f"{self._endpoint}/storage/v1/b/{quote(self._bucket, safe='')}/o/{quote(name, safe='')}"

    def _send(
        self, method: str, url: str, query: Mapping[str, str], body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Metadata:
        response = self._client.send(RestRequest(method, url, query, headers or {}, body))
        try:
            metadata = json.loads(response.body) if response.body else {}
        except ValueError:
            metadata = None
        if not isinstance(metadata, dict):
            raise UnreadableError("the server is not Google Cloud Storage: its answer is not JSON")
        return metadata

    def _authorize(self, request: RestRequest) -> RestRequest:
        if self._account.get("disable_oauth"):
            return request
        with self._lock:
            try:
                if not self._credentials.valid:
                    self._credentials.refresh(_send_for_token)
                headers = dict(request.headers)
                self._credentials.apply(headers)
            except SbbfError:
                raise
            except Exception as error:  # google-auth's own errors, and those of each kind of credential
                raise DeniedError(f"no usable credentials ({type(error).__name__})", hint=_HINT) from None
        return replace(request, headers=headers)

    @cached_property
    def _credentials(self) -> Any:
        try:
            import google.auth
            from google.oauth2 import service_account
        except ModuleNotFoundError:
            hint = "pip install 'sbbf-tool[objects]'"
            raise UsageError("credentials of Google Cloud Storage need the package google-auth", hint=hint) from None
        if self._account:
            key: Any = service_account.Credentials
            return key.from_service_account_info(self._account, scopes=_SCOPES)
        default: Any = google.auth.default
        return default(scopes=_SCOPES, request=_send_for_token)[0]


def _service_account() -> Metadata:
    """Return the key of a service account that the environment names; empty if it names none."""
    text = os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    try:
        if not text and (path := os.environ.get("GOOGLE_SERVICE_ACCOUNT") or os.environ.get("GOOGLE_SERVICE_ACCOUNT_PATH")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
        account = json.loads(text) if text else {}
    except (OSError, ValueError) as error:
        raise DeniedError(f"the service account's key cannot be read ({type(error).__name__})", hint=_HINT) from None
    return account if isinstance(account, dict) else {}


def _send_for_token(
    url: str, method: str = "GET", body: bytes | None = None, headers: Any = None, timeout: float | None = None, **_: Any
) -> Any:
    """Send a request of google-auth, which reads `status`, `headers` and `data` of the answer."""
    from google.auth import exceptions

    transport_error: Any = exceptions.TransportError
    try:
        return connections(os.getpid(), proxy_of(url)).request(
            method, url, body=body, headers=headers, retries=False, timeout=urllib3.Timeout(CONNECT_SECONDS, timeout or READ_SECONDS)
        )
    except urllib3.exceptions.HTTPError as error:
        raise transport_error(type(error).__name__) from None


def _find_code(response: Response) -> str:
    try:
        return str(json.loads(response.body)["error"]["errors"][0]["reason"])
    except (ValueError, LookupError, TypeError):
        return ""


def _describe(error: StatusError) -> SbbfError | None:
    return None
