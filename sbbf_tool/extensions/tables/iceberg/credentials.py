"""Credentials for the files of a table of a catalog: those that a REST catalog hands out with the
table (Iceberg REST specification, `LoadTableResult`: `config` and `storage-credentials`), and those
that PyIceberg's configuration states for the catalog.

`storage-credentials`  for the files whose locations begin with their prefix; the longest one counts
`config`               for all other files of the table
the configuration      likewise, if the catalog hands out none for the service

PyIceberg keeps of the first those for the metadata. Where there are none, as for files that were
added from elsewhere, files are read and written with the credentials of the environment.

Nothing but keys of the catalog's own goes to a host that the catalog names: to the endpoint in its
answer go the keys in its answer, and pairs of S3 keys, of which a request has only a signature for
that host. The properties in a table's metadata, which every writer of the table sets, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from sbbf_tool.errors import RefusedError
from sbbf_tool.extensions.tables.iceberg.source import identity
from sbbf_tool.frozen import Frozen, field
from sbbf_tool.storage.objects.store import Location

if TYPE_CHECKING:
    from sbbf_tool.storage.objects.cloud_keys import AzureKeys, GoogleKeys
    from sbbf_tool.storage.objects.s3_keys import S3Keys

    Keys = S3Keys | AzureKeys | GoogleKeys

Properties = Mapping[str, str]

_PATH_STYLE = "s3.path-style-access"
_VIRTUAL = "s3.force-virtual-addressing"
_REMOTE_SIGNING = "s3.remote-signing-enabled"
_SIGNER = "s3.signer"
_EXPIRIES = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at")
_EXPIRY_OF_SAS = "adls.sas-token-expires-at-ms."
_SAS = "adls.sas-token."
_ENDPOINTS = (
    "client.refresh-credentials-endpoint",
    "gcs.oauth2.refresh-credentials-endpoint",
    "adls.refresh-credentials-endpoint",
)
_OF_STORAGE = ("s3.", "client.", "adls.", "gcs.")
_SECRETS = ("access-key-id", "secret-access-key", "session-token", "oauth2.token")


class Grants(Frozen):
    """What a catalog has handed out for a table, and what is configured for the catalog."""

    vended: Mapping[str, Properties] = field(repr=False)
    """Properties by the prefix of the locations that they are for, as `identity` spells it; the
    empty one is for all files of the table."""
    own: Properties = field(repr=False)
    """The user's properties of the catalog."""

    def find_prefix(self, url: str) -> str:
        """Return the longest prefix of a URL that has properties; the empty one if there is no
        other."""
        prefixes = [prefix for prefix in self.vended if _is_prefix(prefix, url)]
        return max(prefixes, key=len, default="")

    def keys(self, prefix: str, location: Location) -> Keys | None:
        """Return the keys for the service of a location that are handed out for its prefix, or
        those that are configured; None if there are none."""
        read = _KEYS.get(location.service)
        if read is None:
            return None
        vended = self.vended.get(prefix, {})
        own = self.own
        return read(vended, {**own, **vended}, location) or read(own, {**vended, **own}, location)

    def signs_remotely(self, prefix: str) -> bool:
        """Return whether the catalog signs requests to S3 itself, in place of handing out keys."""
        vended = self.vended.get(prefix, {})
        if _has_s3_keys(vended) or _has_s3_keys(self.own):
            return False
        properties = {**vended, **self.own}
        is_enabled = properties.get(_REMOTE_SIGNING, "").lower() == "true"
        return is_enabled or properties.get(_SIGNER) == "S3V4RestSigner"

    @property
    def expiry(self) -> float | None:
        """When the first of these credentials expires, in seconds since 1970; None if unknown."""
        return min(chain.from_iterable(map(_expiries, self.vended.values())), default=None)


def parse_grants(answer: object, own: Mapping[str, object]) -> Grants:
    """Read the credentials in the answer to a request for a table, or for its credentials. What has
    another form than the specification gives it is left out: PyIceberg refuses such an answer."""
    if not isinstance(answer, dict):
        return Grants({}, _texts(own))
    config = _texts(answer.get("config"))
    vended: dict[str, Properties] = {}
    for prefix, special in _entries(answer.get("storage-credentials")):
        general = config
        if _has_s3_keys(special):
            # A part of another set of keys would not fit.
            general = {name: text for name, text in config.items() if not _is_secret(name)}
        vended[prefix] = {**general, **vended.get(prefix, {}), **special}
    # Catalogs repeat the keys of the table's prefix for older clients: they are for no other file.
    repeated = set(chain.from_iterable(map(_secrets, vended.values())))
    for_all = {name: text for name, text in config.items() if text not in repeated}
    return Grants({"": for_all, **vended}, _texts(own))


def _entries(entries: object) -> Iterator[tuple[str, Properties]]:
    """Yield prefix and properties of each of the storage credentials."""
    if not isinstance(entries, list):
        return
    for entry in entries:
        if isinstance(entry, dict) and isinstance(entry.get("prefix"), str):
            yield _spell(entry["prefix"]), _texts(entry.get("config"))


def _texts(value: object) -> dict[str, str]:
    """Return the properties that are about storage: a catalog's own are not to leave this
    process."""
    texts: dict[str, str] = {}
    if not isinstance(value, Mapping):
        return texts
    for name, text in value.items():
        if str(name).startswith(_OF_STORAGE) and isinstance(text, str | int):
            texts[str(name)] = str(text)
    return texts


def _secrets(properties: Properties) -> Iterator[str]:
    for name, text in properties.items():
        if _is_secret(name):
            yield text


def _is_secret(name: str) -> bool:
    return name.endswith(_SECRETS) or name.startswith(_SAS)


def _is_prefix(prefix: str, url: str) -> bool:
    """Return whether a prefix is one of a URL: as text, but the name of its bucket is whole."""
    if not url.startswith(prefix):
        return False
    has_key = "/" in prefix.partition("://")[2]
    return not prefix or has_key or "://" not in prefix or url[len(prefix) :][:1] in ("", "/")


def _spell(prefix: str) -> str:
    """Spell a prefix as `identity` spells locations. One of a scheme alone, such as `s3`, stays."""
    if "://" not in prefix:
        return prefix
    return identity(prefix)


def _has_s3_keys(properties: Properties) -> bool:
    return any(_find(properties, name) for name in ("access-key-id", "secret-access-key"))


def _find(properties: Properties, name: str) -> str:
    """Return a property of S3, or the one for all clients of AWS."""
    return properties.get(f"s3.{name}") or properties.get(f"client.{name}") or ""


def _s3_keys(keys: Properties, settings: Properties, location: Location) -> S3Keys | None:
    if not _has_s3_keys(keys):
        return None
    # The packages of a service are imported with its first location.
    from sbbf_tool.storage.objects.s3_keys import S3Keys

    path_style = None
    if settings.get(_PATH_STYLE):
        path_style = settings[_PATH_STYLE].lower() == "true"
    elif settings.get(_VIRTUAL):
        path_style = settings[_VIRTUAL].lower() != "true"
    return S3Keys(
        _find(keys, "access-key-id"),
        _find(keys, "secret-access-key"),
        _find(keys, "session-token"),
        _find(settings, "region"),
        settings.get("s3.endpoint", ""),
        path_style,
    )


def _azure_keys(keys: Properties, settings: Properties, location: Location) -> AzureKeys | None:
    """Return the keys for the account in `CONTAINER@ACCOUNT.dfs.core.windows.net`, or for the
    configured one."""
    from sbbf_tool.storage.objects.cloud_keys import AzureKeys

    configured = keys.get("adls.account-name", "")
    host = configured
    if "@" in location.bucket:
        host = location.bucket.rpartition("@")[2]
    account = host.partition(".")[0]
    names = [f"{_SAS}{host}", f"{_SAS}{account}"]
    names += [f"{_SAS}{account}.{kind}.core.windows.net" for kind in ("dfs", "blob")]
    account_key = ""
    if account and account == configured:
        names.append("adls.sas-token")
        account_key = keys.get("adls.account-key", "")
    for name in names:
        if keys.get(name):
            return AzureKeys(keys[name].lstrip("?"), "", account)
    if not account_key:
        return None
    return AzureKeys("", account_key, account)


def _google_keys(keys: Properties, settings: Properties, location: Location) -> GoogleKeys | None:
    from sbbf_tool.storage.objects.cloud_keys import GoogleKeys

    token = keys.get("gcs.oauth2.token")
    if not token:
        return None
    # A token can be used by the host that receives it, so it goes to the one stated with it.
    return GoogleKeys(token, keys.get("gcs.service.host", ""))


_KEYS: dict[str, Callable[[Properties, Properties, Location], Keys | None]] = {
    "s3": _s3_keys,
    "azure": _azure_keys,
    "gs": _google_keys,
}
"""By service, what reads its keys in properties. The other properties state where they are for."""


def _expiries(properties: Properties) -> Iterator[float]:
    """Yield the times at which credentials in these properties expire, in seconds since 1970."""
    for name, text in properties.items():
        is_expiry = name in _EXPIRIES or name.startswith(_EXPIRY_OF_SAS)
        if is_expiry and text.isascii() and text.isdigit() and len(text) < 18:
            yield int(text) / 1000
        elif name.startswith(_SAS):
            # A signature states its end itself.
            for end in parse_qs(text.lstrip("?")).get("se", ()):
                with suppress(ValueError):
                    yield datetime.fromisoformat(end).timestamp()


def credentials_url(config: object, catalog: str) -> str | None:
    """Return the address at which a catalog hands out credentials of a table again; None if its
    `config` names none, or another server's, which must not get the catalog's token."""
    properties = _texts(config)
    for name in _ENDPOINTS:
        url = properties.get(name)
        if not url:
            continue
        if "://" not in url:
            url = f"{catalog.rstrip('/')}/{url.lstrip('/')}"
        if _origin(url) == _origin(catalog):
            return url
    return None


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def ensure_keys_for(grants: Grants, location: str, name: str) -> None:
    """Raise RefusedError if the catalog signs requests to the table's location itself."""
    url = identity(location)
    if url.startswith("s3://") and grants.signs_remotely(grants.find_prefix(url)):
        raise RefusedError(
            f"the catalog signs each request to S3 itself ({_REMOTE_SIGNING}), which is not "
            "supported",
            file=name,
            hint="let the catalog hand out credentials, state s3.access-key-id in the properties "
            f"of the catalog, or {_REMOTE_SIGNING}: false to use those of the environment",
        )
