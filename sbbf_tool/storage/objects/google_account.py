"""The client of a bucket of Google Cloud Storage, which writes, with the settings with which obstore reads.

These are the file or text of a service account's key (`GOOGLE_SERVICE_ACCOUNT`, `GOOGLE_SERVICE_ACCOUNT_KEY`), or application default
credentials (`GOOGLE_APPLICATION_CREDENTIALS`, gcloud's login, the machine's service account). A service account's file with `gcs_base_url`
names another endpoint. `GOOGLE_CLOUD_QUOTA_PROJECT` names the project that pays for requests to a bucket whose requests the reader pays.
"""

from __future__ import annotations

import json
import os
from typing import Any

import google.auth
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud.storage import Bucket, Client
from google.oauth2.service_account import Credentials

from sbbf_tool.storage.objects.answers import limited_session
from sbbf_tool.storage.objects.cloud_writer import GOOGLE_HINT
from sbbf_tool.storage.objects.store import DeniedError

# Otherwise the library requests the bucket, to describe it in traces, whether it writes them or not.
os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")

_SCOPES = ["https://www.googleapis.com/auth/devstorage.full_control"]


def open_bucket(name: str) -> Bucket:
    """Return a bucket. Raises DeniedError if there are no usable credentials."""
    account = _service_account()
    try:
        credentials = _credentials(account)
    except Exception as error:  # google-auth's own errors, and those of each kind of credential
        raise DeniedError(f"no usable credentials ({type(error).__name__})", hint=GOOGLE_HINT) from None
    endpoint = str(account.get("gcs_base_url") or "https://storage.googleapis.com").rstrip("/")
    session = limited_session(AuthorizedSession(credentials))
    client = Client(None, credentials, session, client_options={"api_endpoint": endpoint})
    return client.bucket(name, user_project=os.environ.get("GOOGLE_CLOUD_QUOTA_PROJECT"))


def _credentials(account: dict[str, Any]) -> Any:
    if account.get("disable_oauth"):
        return AnonymousCredentials()
    if account:
        return Credentials.from_service_account_info(account, scopes=_SCOPES)
    return google.auth.default(scopes=_SCOPES)[0]


def _service_account() -> dict[str, Any]:
    """Return the key of a service account that the environment names; empty if it names none."""
    text = os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    try:
        if not text and (path := os.environ.get("GOOGLE_SERVICE_ACCOUNT") or os.environ.get("GOOGLE_SERVICE_ACCOUNT_PATH")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
        account = json.loads(text) if text else {}
    except (OSError, ValueError) as error:
        raise DeniedError(f"the service account's key cannot be read ({type(error).__name__})", hint=GOOGLE_HINT) from None
    return account if isinstance(account, dict) else {}
