"""Tables of catalogs (REST, SQL, Glue, Hive, ...), through PyIceberg: its configuration, its
catalogs, and its access to files.

A name is `CATALOG:NAMESPACE.TABLE`; a namespace or table with a dot, a quote or a space is written
in double quotes, as in SQL.

PyIceberg is an optional dependency, and is imported with the first table of a catalog.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sbbf_tool import log
from sbbf_tool.errors import MissingError, RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.tables.iceberg.credentials import (
    Grants,
    credentials_url,
    ensure_keys_for,
    parse_grants,
)
from sbbf_tool.extensions.tables.iceberg.metadata import (
    MAIN,
    MAX_METADATA,
    parse_metadata,
    read_clock,
    unsupported_version,
)
from sbbf_tool.extensions.tables.iceberg.source import (
    CommitConflictError,
    CommitStateUnknownError,
    MetadataSource,
    TableState,
    is_local,
    read_file,
)
from sbbf_tool.extensions.tables.iceberg.table_access import TableAccess
from sbbf_tool.hints import install_extra
from sbbf_tool.storage.folders import LocalFolders

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

_BLOCK = 1 << 20
_OK = 200
_SECONDS = 60
"""How long a catalog may take to answer."""
_LONGEST_WAIT = 60.0
_CLOCK_STEP = 0.5
"""Seconds to wait for a clock that is behind, and between two looks at it: it may be set
meanwhile."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PART = re.compile(r'"(?:[^"]|"")+"|[^".\s]+')
_TABLE = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))+")
_SPARK_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def has_catalog(name: str) -> bool:
    """Return whether PyIceberg's configuration has a catalog of this name; False if PyIceberg is
    not installed."""
    try:
        return _read_configuration(name)[0] is not None
    except ImportError:
        return False


def load_source(name: str) -> CatalogSource:
    """Return the source of `CATALOG:NAMESPACE.TABLE`.

    Raises MissingError if the configuration has no such catalog, and UsageError if the name has no
    namespace or table, or if PyIceberg or a package of the catalog is not installed.
    """
    catalog_name, _, table = name.partition(":")
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NotInstalledError

        properties, catalogs = _read_configuration(catalog_name)
    except ImportError as error:
        problem = "no such file, and a table of an Iceberg catalog needs the package pyiceberg"
        raise UsageError(problem, file=name, hint=install_extra("iceberg")) from error
    except UnreadableError as error:
        raise error.at(file=name) from error.__cause__
    if properties is None:
        hint = "it has no catalogs"
        if catalogs:
            hint = f"its catalogs are {', '.join(sorted(catalogs)[:20])}"
        raise MissingError(
            f"no such file, and PyIceberg's configuration has no catalog {catalog_name!r}",
            file=name,
            hint=hint,
        )
    parse_table(table, name)
    try:
        catalog = load_catalog(catalog_name, **properties)
    except (ImportError, NotInstalledError) as error:
        raise _package_error(error).at(file=name) from error
    except Exception as error:
        raise UnreadableError(
            f"PyIceberg cannot open the catalog: {_describe(error)}", file=name
        ) from error
    return CatalogSource(catalog, catalog_name, table, properties)


def load_grants(name: str) -> Grants:
    """Ask a catalog of this machine's configuration for the credentials of a table. Raises
    UnreadableError."""
    try:
        return load_source(name).renew()
    except (MissingError, UsageError) as error:
        raise UnreadableError(
            f"this process cannot ask the catalog ({error.message})",
            hint="configure PyIceberg on executors too, or let credentials live longer",
        ) from error


def _package_error(error: Exception) -> UsageError:
    """Return the error for a package that a catalog needs: PyIceberg itself is installed, and says
    how to install what this kind of catalog needs."""
    cause = error if isinstance(error, ImportError) else error.__cause__
    missing = getattr(cause, "name", None)
    module = f" {missing}" if missing else ""
    return UsageError(f"PyIceberg lacks the package{module} for this catalog: {_describe(error)}")


def parse_table(text: str, file: str) -> tuple[str, ...]:
    """Split `NAMESPACE.TABLE` into its parts. Raises UsageError, for this file, if it is not of
    this form."""
    if not _TABLE.fullmatch(text):
        hint = (
            "write CATALOG:NAMESPACE.TABLE; a part with a dot, a quote or a space is "
            'written in double quotes, such as lake:sales."a.b"'
        )
        raise UsageError(
            "the name of a table in a catalog needs a namespace and a table", file=file, hint=hint
        )
    return tuple(_unquote(match[0]) for match in _PART.finditer(text))


def _unquote(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _read_configuration(name: str) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the properties of a catalog in PyIceberg's configuration as it is now, None if it is
    not there, and the names of all."""
    from pyiceberg.utils.config import Config

    try:
        config = Config()
        return config.get_catalog_config(name), config.get_known_catalogs()
    except Exception as error:
        raise UnreadableError(
            f"PyIceberg's configuration cannot be read: {_describe(error)}"
        ) from error


class CatalogState(TableState):
    """State of a table of a catalog."""

    table: Table


class CatalogSource(MetadataSource):
    """A table of a catalog."""

    access: TableAccess

    def __init__(
        self,
        catalog: Catalog,
        catalog_name: str,
        table: str,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        """`properties` are those of the catalog in the user's configuration."""
        self.name = f"{catalog_name}:{table}"
        self._catalog = catalog
        self._catalog_name = catalog_name
        self._table = table
        self._identifier = parse_table(table, self.name)
        self._own = properties or {}
        self._config: dict[str, object] = {}
        """Properties for all files, as the catalog has handed them out."""
        self.access = TableAccess(self.name, parse_grants(None, self._own), self.renew, load_grants)

    def load(self) -> CatalogState:
        table, grants = self._load()
        ensure_keys_for(grants, table.metadata.location, self.name)
        self.access.replace(grants)
        files = CatalogFiles(table.io)
        location = table.metadata_location
        metadata = read_file(files, location, MAX_METADATA, parse_metadata)
        return CatalogState(metadata, location, files, table)

    def renew(self) -> Grants:
        """Ask the catalog for credentials again: at the address that it names for this, if it is
        the catalog's own, or with the table. Raises UnreadableError."""
        url = credentials_url(self._config, self._catalog.properties.get("uri", ""))
        if url is not None:
            with suppress(OSError, ValueError):
                # The library's session has the catalog's own credentials.
                answer = self._catalog._session.get(  # type: ignore[attr-defined]
                    url, allow_redirects=False, timeout=_SECONDS
                )
                if answer.status_code == _OK:
                    return parse_grants({"config": self._config, **answer.json()}, self._own)
        return self._load()[1]

    def _load(self) -> tuple[Table, Grants]:
        """Load the table, and the credentials that come with it."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            with _answers_of(self._catalog) as answers:
                table = self._catalog.load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise UnreadableError(
                f"the catalog has no table {self._table}", file=self.name
            ) from None
        except Exception as error:
            raise _load_error(error).at(file=self.name) from error
        if not answers:
            return table, parse_grants(None, self._own)
        answer = answers[-1]
        self._config = {**self._defaults(), **answer.get("config", {})}
        return table, parse_grants({**answer, "config": self._config}, self._own)

    def _defaults(self) -> dict[str, object]:
        """Return the properties that the catalog itself states for all its tables."""
        properties = self._catalog.properties
        return {name: text for name, text in properties.items() if name not in self._own}

    def ensure_changeable(self, state: TableState) -> None:
        if state.metadata.format_version > 2 and not self._commits_on_server():
            raise RefusedError(
                "PyIceberg cannot write metadata of format version 3; only a REST catalog "
                "commits such a table itself",
                file=self.name,
            )

    def _commits_on_server(self) -> bool:
        from pyiceberg.table.snapshots import Snapshot

        return self._is_rest() and "first_row_id" in Snapshot.model_fields

    def _is_rest(self) -> bool:
        from pyiceberg.catalog.rest import RestCatalog

        return isinstance(self._catalog, RestCatalog)

    def commit(
        self,
        state: TableState,
        snapshot: Mapping[str, Any] | None,
        properties: Mapping[str, str | None],
    ) -> None:
        from pyiceberg.exceptions import (
            BadRequestError,
            CommitFailedException,
            ForbiddenError,
            NoSuchTableError,
            UnauthorizedError,
            ValidationError,
        )

        assert isinstance(state, CatalogState)
        if snapshot is None and not self._is_rest():
            _wait_for_clock(state, self.name)
        try:
            self._catalog.commit_table(state.table, *_requests(state, snapshot, properties))
        except CommitFailedException as error:
            raise CommitConflictError from error
        # PyIceberg raises NotImplementedError for what a catalog's kind cannot do.
        except (
            BadRequestError,
            ForbiddenError,
            NoSuchTableError,
            NotImplementedError,
            UnauthorizedError,
            ValidationError,
        ) as error:
            raise RefusedError(
                f"the catalog refuses the commit: {_describe(error)}", file=self.name
            ) from error
        except Exception as error:
            raise CommitStateUnknownError(_describe(error)) from error

    def undo(self, snapshot_id: int) -> str:
        catalog = _quote(self._catalog_name)
        table = ".".join(map(_quote, self._identifier)).replace("\\", "\\\\").replace("'", "\\'")
        return (
            f"CALL {catalog}.system.rollback_to_snapshot('{table}', {snapshot_id}) in Spark, or "
            f"load_catalog({self._catalog_name!r}).load_table({self._identifier!r})"
            f".manage_snapshots().rollback_to_snapshot({snapshot_id}).commit() in PyIceberg"
        )


@contextmanager
def _answers_of(catalog: Catalog) -> Iterator[list[dict[str, Any]]]:
    """Yield a list that gets the tables with which a REST catalog answers in the block. PyIceberg
    keeps only the credentials in them for the metadata."""
    answers: list[dict[str, Any]] = []

    def note(answer: Any, *_: object, **__: object) -> None:
        with suppress(ValueError):
            fields = answer.json()
            if answer.status_code == _OK and isinstance(fields, dict) and "metadata" in fields:
                answers.append(fields)

    session = getattr(catalog, "_session", None)
    if session is None:
        yield answers
        return
    session.hooks["response"].append(note)
    try:
        yield answers
    finally:
        session.hooks["response"].remove(note)


def _wait_for_clock(state: TableState, name: str) -> None:
    """Wait until the clock is after each time in the metadata: a commit without a snapshot states
    PyIceberg's own time. Raises RefusedError if that would take too long."""
    latest = state.metadata.latest_ms
    seconds = (latest + 1 - read_clock()) / 1000
    if seconds <= 0:
        return
    if seconds > _LONGEST_WAIT:
        raise RefusedError(
            f"the clock of this machine says {_format_time(read_clock())}, and the last change of "
            f"the table was at {_format_time(latest)}: readers refuse a table whose time goes back",
            file=name,
            hint="correct the clock, or try again after that time",
        )
    log.info("waiting %.1f seconds for the clock to pass the last change of %s", seconds, name)
    while read_clock() <= latest:
        time.sleep(min(seconds, _CLOCK_STEP))


def _format_time(milliseconds: int) -> str:
    """Format a time as ISO 8601 in UTC; one beyond the year 9999 as its number of milliseconds."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds:,} ms after 1970"
    return moment.isoformat(sep=" ", timespec="milliseconds")


def _quote(name: str) -> str:
    """Write a name in SQL of Spark."""
    if _SPARK_NAME.fullmatch(name):
        return name
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def _requests(
    state: CatalogState, snapshot: Mapping[str, Any] | None, properties: Mapping[str, str | None]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the requirements and the updates of a commit on `main`."""
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.table.update import (
        AddSnapshotUpdate,
        AssertRefSnapshotId,
        AssertTableUUID,
        RemovePropertiesUpdate,
        SetPropertiesUpdate,
        SetSnapshotRefUpdate,
    )

    metadata = state.metadata
    requirements: list[Any] = [AssertTableUUID(uuid=state.table.metadata.table_uuid)]
    updates: list[Any] = []
    if snapshot is not None:
        # PyIceberg has a sequence number in format 1 too.
        model = Snapshot.model_validate({"sequence-number": 0, **snapshot})
        # The reference keeps its retention.
        reference = {
            **metadata.main_ref,
            "ref-name": MAIN,
            "type": "branch",
            "snapshot-id": model.snapshot_id,
        }
        parent = metadata.current.id if metadata.current else None
        requirements.append(
            AssertRefSnapshotId.model_validate({"ref": MAIN, "snapshot-id": parent})
        )
        updates.append(AddSnapshotUpdate(snapshot=model))
        updates.append(SetSnapshotRefUpdate.model_validate(reference))
    if properties:
        added = {name: text for name, text in properties.items() if text is not None}
        removed = [name for name, text in properties.items() if text is None]
        updates.append(SetPropertiesUpdate(updates=added))
        updates.append(RemovePropertiesUpdate(removals=removed))
    return tuple(requirements), tuple(updates)


class CatalogFiles:
    """The metadata files of a catalog's table: local ones directly, others through PyIceberg. See
    `source.TableFiles`."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._local = LocalFolders()

    def read(self, path: str, most: int | None = None) -> bytes:
        if is_local(path):
            return self._local.read(path, most)
        with _io_errors(), self._io.new_input(path).open() as stream:
            data = bytearray()
            while part := stream.read(_BLOCK):
                data += part
                if most is not None and len(data) > most:
                    raise OSError(f"has more than the limit of {most:,} bytes")
            return bytes(data)

    def create(self, path: str, data: bytes) -> None:
        if is_local(path):
            self._local.create(path, data)
            return
        with _io_errors(), self._io.new_output(path).create() as stream:
            stream.write(data)

    def remove(self, path: str) -> None:
        if is_local(path):
            self._local.remove(path)
            return
        with _io_errors(), suppress(FileNotFoundError):
            self._io.delete(path)


@contextmanager
def _io_errors() -> Iterator[None]:
    """Convert errors of PyIceberg's file access, which are those of many packages, to OSError."""
    try:
        yield
    except (OSError, ImportError, MemoryError):
        raise
    except Exception as error:
        raise OSError(_describe(error)) from error


def _load_error(error: Exception) -> SbbfError:
    """Return the error for an exception of PyIceberg's `load_table`; pydantic, which parses the
    metadata, lists all that it found."""
    list_findings = getattr(error.__cause__ or error, "errors", None)
    findings = list_findings() if callable(list_findings) else None
    if not findings:
        return UnreadableError(f"the catalog cannot load the table: {_describe(error)}")
    finding = findings[0]
    version = str(finding.get("ctx", {}).get("tag", ""))
    if finding["type"] == "union_tag_invalid" and version.isascii() and version.isdigit():
        return unsupported_version(int(version))
    # The first part is the format version by which pydantic chose the type.
    place = ".".join(str(part) for part in finding["loc"][1:])
    message = " ".join(finding["msg"].split())[:200]
    if place:
        message = f"{place}: {message}"
    return UnreadableError(f"the metadata of the table contradicts the format: {message}")


def _describe(error: BaseException) -> str:
    # PyIceberg quotes answers that it does not understand: the page of a debugger has the tokens of
    # the request.
    text = " ".join(str(error).split())
    text = re.split(r"(?i): (?:received unexpected|could not decode) json| \[type=", text)[0]
    return ": ".join(filter(None, (type(error).__name__, text)))[:300]
