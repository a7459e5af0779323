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

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError
from sbbf_tool.extensions.tables.iceberg.source import identity
from sbbf_tool.frozen import Frozen, field
from sbbf_tool.storage.access import Access
from sbbf_tool.storage.names import is_url
from sbbf_tool.storage.objects.lease import Issue, Lease, LeasePart
from sbbf_tool.storage.objects.store import (
    DeniedError,
    Location,
    ObjectStore,
    naming_the_extra,
    parse_location,
)

if TYPE_CHECKING:
    from sbbf_tool.storage.objects.s3_keys import S3Keys

Properties = Mapping[str, str]

_PATH_STYLE = "s3.path-style-access"
_VIRTUAL = "s3.force-virtual-addressing"
_REMOTE_SIGNING = "s3.remote-signing-enabled"
_SIGNER = "s3.signer"
_EXPIRIES = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at")
_EXPIRY_OF_SAS = "adls.sas-token-expires-at-ms."
_ENDPOINTS = (
    "client.refresh-credentials-endpoint",
    "gcs.oauth2.refresh-credentials-endpoint",
    "adls.refresh-credentials-endpoint",
)
_SECRETS = ("access-key-id", "secret-access-key", "session-token", "oauth2.token")
_ENVIRONMENT = (
    "the catalog hands out no credentials for this location, so those of the environment were used"
)
_OF_CATALOG = "the credentials are those of the catalog for {}"


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

    def s3_keys(self, prefix: str) -> S3Keys | None:
        """Return the keys for S3 that are handed out for a prefix, or those that are configured."""
        vended = self.vended.get(prefix, {})
        if _has_s3_keys(vended):
            return _s3_keys(vended, {**self.own, **vended})
        if _has_s3_keys(self.own):
            return _s3_keys(self.own, {**vended, **self.own})
        return None

    def signs_remotely(self, prefix: str) -> bool:
        """Return whether the catalog signs requests to S3 itself, in place of handing out keys."""
        if self.s3_keys(prefix) is not None:
            return False
        properties = {**self.vended.get(prefix, {}), **self.own}
        is_enabled = properties.get(_REMOTE_SIGNING, "").lower() == "true"
        return is_enabled or properties.get(_SIGNER) == "S3V4RestSigner"

    @property
    def expiry(self) -> float | None:
        """When the first of these credentials expires, in seconds since 1970; None if unknown."""
        return min(chain.from_iterable(map(_expiries, self.vended.values())), default=None)


def parse_grants(answer: object, own: Mapping[str, object]) -> Grants:
    """Read the credentials in the answer to a request for a table, or for its credentials. What has
    another form than the specification gives it is left out: PyIceberg refuses such an answer."""
    fields = answer if isinstance(answer, dict) else {}
    config = _texts(fields.get("config"))
    vended: dict[str, Properties] = {}
    entries = fields.get("storage-credentials")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("prefix"), str):
            prefix = _spell(entry["prefix"])
            vended[prefix] = {**config, **vended.get(prefix, {}), **_texts(entry.get("config"))}
    # Catalogs repeat the keys of the table's prefix for older clients: they are for no other file.
    repeated = {secret for properties in vended.values() for secret in _secrets(properties)}
    for_all = {name: text for name, text in config.items() if text not in repeated}
    return Grants({"": for_all, **vended}, _texts(own))


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(text) for name, text in value.items() if isinstance(text, str | int)}


def _secrets(properties: Properties) -> Iterator[str]:
    for name, text in properties.items():
        if name.endswith(_SECRETS) or name.startswith("adls.sas-token."):
            yield text


def _is_prefix(prefix: str, url: str) -> bool:
    """Return whether a prefix is one of a URL: as text, but the name of its bucket is whole."""
    if not url.startswith(prefix):
        return False
    has_key = "/" in prefix.partition("://")[2]
    return not prefix or has_key or "://" not in prefix or url[len(prefix) :][:1] in ("", "/")


def _spell(prefix: str) -> str:
    """Spell a prefix as `identity` spells locations. One of a scheme alone, such as `s3`, stays."""
    return identity(prefix) if "://" in prefix else prefix


def _has_s3_keys(properties: Properties) -> bool:
    return any(_find(properties, name) for name in ("access-key-id", "secret-access-key"))


def _find(properties: Properties, name: str) -> str:
    """Return a property of S3, or the one for all clients of AWS."""
    return properties.get(f"s3.{name}") or properties.get(f"client.{name}") or ""


def _s3_keys(pair: Properties, settings: Properties) -> S3Keys:
    """Return the keys in `pair` for the service in `settings`."""
    from sbbf_tool.storage.objects.s3_keys import S3Keys

    path_style = None
    if settings.get(_PATH_STYLE):
        path_style = settings[_PATH_STYLE].lower() == "true"
    elif settings.get(_VIRTUAL):
        path_style = settings[_VIRTUAL].lower() != "true"
    return S3Keys(
        _find(pair, "access-key-id"),
        _find(pair, "secret-access-key"),
        _find(pair, "session-token"),
        _find(settings, "region"),
        settings.get("s3.endpoint", ""),
        path_style,
    )


def _expiries(properties: Properties) -> Iterator[float]:
    """Yield the times at which credentials in these properties expire, in seconds since 1970."""
    for name, text in properties.items():
        is_expiry = name in _EXPIRIES or name.startswith(_EXPIRY_OF_SAS)
        if is_expiry and text.isascii() and text.isdigit() and len(text) < 18:
            yield int(text) / 1000


class TableAccess(Access):
    """Access to the objects of a table with these credentials."""

    def __init__(
        self,
        table: str,
        grants: Grants,
        renew: Callable[[], Grants],
        load: Callable[[str], Grants],
        number: str = "",
    ) -> None:
        """`table` is the table as the user named it, and `renew` asks its catalog for others. In
        another process, `load` does that: a function of a module. Objects of one number are one
        access, which was sent to other processes."""
        self._table = table
        self._renew = renew
        self._load = load
        self._number = number or secrets.token_hex(8)
        self._lease = Lease(Issue(grants, grants.expiry), self._issue)
        self._stores: dict[tuple[object, ...], ObjectStore] = {}

    def __repr__(self) -> str:
        return f"TableAccess({self._table!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self._number, self._table, self._lease.keys, self._load)

    def replace(self, grants: Grants) -> None:
        """Use credentials that the catalog has handed out since."""
        self._lease.replace(Issue(grants, grants.expiry))

    def _issue(self) -> Issue[Grants]:
        grants = self._renew()
        return Issue(grants, grants.expiry)

    def find_store(self, location: Location) -> ObjectStore | None:
        grants = self._lease.keys
        prefix = grants.find_prefix(identity(location.url))
        if location.service == "s3" and grants.s3_keys(prefix) is not None:
            return self._keep(prefix, location, self._open_s3)
        return None

    def _keep(
        self, prefix: str, location: Location, open_store: Callable[[str, Location], ObjectStore]
    ) -> ObjectStore:
        # A forked process must not use its parent's connections.
        key = (os.getpid(), prefix, location.root)
        if key not in self._stores:
            with naming_the_extra(location.service):
                self._stores.setdefault(key, open_store(prefix, location))
        return self._stores[key]

    def _open_s3(self, prefix: str, location: Location) -> ObjectStore:
        from sbbf_tool.storage.objects.s3_publish import S3Store

        return S3Store(location.bucket, self._part(prefix, lambda grants: grants.s3_keys(prefix)))

    def _part(self, prefix: str, choose: Callable[[Grants], Any]) -> LeasePart[Any]:
        def choose_present(grants: Grants) -> Any:
            keys = choose(grants)
            if keys is None:
                raise UnreadableError(f"the catalog hands out no credentials for {prefix} any more")
            return keys

        return LeasePart(self._lease, choose_present)

    def explain(self, error: SbbfError) -> None:
        is_denied = isinstance(error, DeniedError) or isinstance(error.__cause__, DeniedError)
        if not is_denied or error.file is None or not is_url(error.file):
            return
        hint = f"{_ENVIRONMENT}: {error.hint}"
        location = parse_location(error.file)
        if self.find_store(location) is not None:
            prefix = self._lease.keys.find_prefix(identity(location.url))
            hint = _OF_CATALOG.format(prefix or self._table)
        if error.hint is None or not error.hint.startswith(_ENVIRONMENT):
            error.hint = hint


def _restore(number: str, table: str, grants: Grants, load: Callable[[str], Grants]) -> TableAccess:
    """Return the access that was sent here: its clients and newest credentials stay for the next
    task of this process."""
    with _RESTORING:
        found = _RESTORED.get(number)
        if found is None:
            found = _RESTORED[number] = TableAccess(
                table, grants, partial(load, table), load, number
            )
            while len(_RESTORED) > _MOST_RESTORED:
                del _RESTORED[next(iter(_RESTORED))]
    return found


_RESTORED: dict[str, TableAccess] = {}
_RESTORING = Lock()
_MOST_RESTORED = 16


def credentials_url(config: object, catalog: str) -> str | None:
    """Return the address at which a catalog hands out credentials of a table again; None if its
    `config` names none, or another server's, which must not get the catalog's token."""
    properties = _texts(config)
    for name in _ENDPOINTS:
        path = properties.get(name)
        if path:
            url = path if "://" in path else f"{catalog.rstrip('/')}/{path.lstrip('/')}"
            return url if _origin(url) == _origin(catalog) else None
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
