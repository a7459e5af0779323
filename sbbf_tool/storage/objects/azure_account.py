"""The client of an Azure container, which writes, with the settings with which obstore reads.

These are `AZURE_STORAGE_ACCOUNT_NAME` unless the URL names the account, then an account key (`AZURE_STORAGE_ACCOUNT_KEY`), a shared access
signature (`AZURE_STORAGE_SAS_TOKEN`), a bearer token (`AZURE_STORAGE_TOKEN`), or what azure-identity finds: a service principal, a workload
or managed identity, or the login of a developer's tools. `AZURE_STORAGE_ENDPOINT` names another endpoint, `AZURE_STORAGE_USE_EMULATOR`
Azurite.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.core.credentials import AccessToken, AzureSasCredential
from azure.storage.blob import BlobClient, BlobSasPermissions, ContainerClient, generate_blob_sas

from sbbf_tool.storage.objects.answers import limited_session
from sbbf_tool.storage.objects.cloud_writer import AZURE_HINT
from sbbf_tool.storage.objects.store import CONNECT_SECONDS, READ_SECONDS, DeniedError

_SCOPE = "https://storage.azure.com/.default"
_COPY_TIME = timedelta(hours=6)

# Azurite's account and key are public: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
_EMULATOR = "devstoreaccount1"
EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class _Token:
    """A bearer token that the environment states."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        return AccessToken(self._token, sys.maxsize)


class AzureContainer:
    """A container. `account` is the account that its URL names, or None. Raises DeniedError."""

    def __init__(self, container: str, account: str | None) -> None:
        uses_emulator = os.environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower() in ("1", "true", "yes", "on", "y")
        self.account = account or _setting("AZURE_STORAGE_ACCOUNT_NAME") or (_EMULATOR if uses_emulator else "")
        if not self.account:
            raise DeniedError("no account is set", hint=AZURE_HINT)
        endpoint = _setting("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT") or f"https://{self.account}.blob.core.windows.net"
        if uses_emulator:
            endpoint = f"{os.environ.get('AZURITE_BLOB_STORAGE_URL') or 'http://127.0.0.1:10000'}/{self.account}"
        self._key = _setting("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
        self._key = self._key or (EMULATOR_KEY if uses_emulator else "")
        self._signature = _setting("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN").lstrip("?")
        self._credential: Any = None
        if self._key:
            self._credential = {"account_name": self.account, "account_key": self._key}
        elif self._signature:
            self._credential = AzureSasCredential(self._signature)
        else:
            self._credential = _Token(token) if (token := _setting("AZURE_STORAGE_TOKEN")) else _default_credential()
        # `CloudWriter.send` repeats requests.
        limits: dict[str, Any] = {"connection_timeout": CONNECT_SECONDS, "read_timeout": READ_SECONDS, "retry_total": 0}
        try:
            self.client = ContainerClient(endpoint, container, credential=self._credential, session=limited_session(), **limits)
        except ValueError as error:
            raise DeniedError(f"no usable credentials ({error})", hint=AZURE_HINT) from None

    def blob(self, key: str) -> BlobClient:
        return self.client.get_blob_client(key)

    def copy_source(self, key: str) -> dict[str, Any]:
        """Return the arguments with which the service itself reads a blob of this container. They contain credentials."""
        url = self.blob(key).url
        if self._key:
            expiry, read = datetime.now(UTC) + _COPY_TIME, BlobSasPermissions(read=True)
            place = (self.account, self.client.container_name, key)
            return {"source_url": f"{url}?{generate_blob_sas(*place, account_key=self._key, permission=read, expiry=expiry)}"}
        if self._signature:
            return {"source_url": f"{url}?{self._signature}"}
        return {"source_url": url, "source_authorization": f"Bearer {self._credential.get_token(_SCOPE).token}"}


def _default_credential() -> Any:
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()


def _setting(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name))), "")
