"""Credentials for Azure and Google that a table has in place of those of the environment."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from sbbf_tool.frozen import Frozen, field
from sbbf_tool.storage.objects.lease import LeasePart


def uses_emulator() -> bool:
    """Return whether the environment directs requests to Azure to an emulator."""
    setting = os.environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower()
    return setting in ("1", "true", "yes", "on", "y")


def emulator_endpoint(account: str) -> str:
    """Return the address of an account in the emulator."""
    emulator = os.environ.get("AZURITE_BLOB_STORAGE_URL") or "http://127.0.0.1:10000"
    return f"{emulator}/{account}"


class AzureKeys(Frozen):
    """A shared access signature for a storage account, or the account's key."""

    signature: str = field(default="", repr=False)
    account_key: str = field(default="", repr=False)
    account: str = ""
    """The account, where a URL does not name it."""

    def settings(self) -> dict[str, str]:
        """Return the settings of obstore for this account."""
        settings = {}
        if self.account:
            settings["account_name"] = self.account
        if uses_emulator():
            # obstore would take the emulator's own key.
            settings["use_emulator"] = "false"
            settings["endpoint"] = emulator_endpoint(self.account)
        return settings

    def for_reads(self) -> dict[str, str]:
        """Return the credentials as obstore spells them."""
        if self.signature:
            return {"sas_token": self.signature}
        return {"access_key": self.account_key}


class GoogleKeys(Frozen):
    """A bearer token, and the service that it is for: that of Google if empty."""

    token: str = field(repr=False)
    endpoint: str = ""

    def settings(self) -> dict[str, str]:
        """Return the settings of obstore for this service."""
        return {"base_url": self.endpoint} if self.endpoint else {}

    def for_reads(self) -> dict[str, str]:
        """Return the credentials as obstore spells them."""
        return {"token": self.token}


CloudKeys = AzureKeys | GoogleKeys


class NewestCredentials:
    """The callback by which obstore gets the newest credentials of a lease for each request."""

    def __init__(self, lease: LeasePart[CloudKeys]) -> None:
        self._lease = lease

    def __call__(self) -> dict[str, Any]:
        # obstore would keep those that have not expired.
        return {**self._lease.keys.for_reads(), "expires_at": datetime.now(UTC)}
