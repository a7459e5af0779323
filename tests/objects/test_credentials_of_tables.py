"""Credentials of a table in Azurite and in the emulator of Google Cloud Storage: those of the
environment are wrong. (S3 is in the tests of Iceberg's catalogs.)"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

import sbbf_tool
from objects import azure_server
from objects.large_files import large
from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.iceberg.credentials import Grants, parse_grants
from sbbf_tool.extensions.tables.iceberg.table_access import TableAccess
from support.buckets import forget_clients

pytestmark = [pytest.mark.slow, pytest.mark.environment(minutes=1)]


def access_of(*answers: dict[str, object]) -> TableAccess:
    """Return an access with the credentials of the first answer of a catalog; renewals give those
    of the others."""
    rest = iter(answers)

    def issue() -> Grants:
        return parse_grants(next(rest), {})

    return TableAccess("lake:n.t", issue(), issue, lambda name: issue())


def signature(permissions: str, name: str, *, minutes: int = 60) -> str:
    """Sign for a container."""
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    from sbbf_tool.storage.objects.azure import EMULATOR_KEY

    text: str = generate_container_sas(
        azure_server.ACCOUNT,
        name,
        EMULATOR_KEY,
        permission=ContainerSasPermissions.from_string(permissions),
        expiry=datetime.now(UTC) + timedelta(minutes=minutes),
    )
    return text


HOST = f"{azure_server.ACCOUNT}.dfs.core.windows.net"


@pytest.fixture
def azure_file(container, monkeypatch):
    """The URL of a file, in the form that Iceberg stores."""
    container.put("t/data/a.parquet", large())
    for name in ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"):
        monkeypatch.setenv(name, "d3Jvbmc=")
    forget_clients()
    yield f"abfss://{container.name}@{HOST}/t/data/a.parquet"
    forget_clients()


def azure_answer(container, text, host=HOST):
    prefix = f"abfss://{container.name}@{HOST}"
    config = {f"adls.sas-token.{host}": text}
    return {"storage-credentials": [{"prefix": prefix, "config": config}]}


@pytest.mark.parametrize("host", [HOST, azure_server.ACCOUNT])
def test_a_signature_for_an_account(container, azure_file, host):
    access = access_of(azure_answer(container, signature("rwlcd", container.name), host))
    with access.through():
        sbbf_tool.add_filters(azure_file, columns="id", in_place=True)
        assert sbbf_tool.verify(azure_file).is_sound
    with pytest.raises(UnreadableError, match="denied"):
        sbbf_tool.inspect(azure_file)


def test_the_signature_of_another_account_is_not_used(container, azure_file):
    answer = azure_answer(
        container, signature("rwlcd", container.name), "other.dfs.core.windows.net"
    )
    with (
        pytest.raises(UnreadableError, match="the catalog hands out no credentials for this"),
        access_of(answer).through(),
    ):
        sbbf_tool.inspect(azure_file)


def test_a_signature_that_has_expired_is_renewed(container, azure_file):
    expired = signature("rwlcd", container.name, minutes=-60)
    later = signature("rwlcd", container.name)
    access = access_of(azure_answer(container, expired), azure_answer(container, later))
    with access.through():
        assert sbbf_tool.inspect(azure_file)
        sbbf_tool.add_filters(azure_file, columns="id", in_place=True)


@pytest.mark.parametrize("expires", [False, True])
def test_a_token_of_google(google_bucket, expires):
    proxy = google_bucket.proxy
    url = google_bucket.url("t/data/a.parquet")
    google_bucket.put("t/data/a.parquet", large())
    valid = {"second"} if expires else {"first"}
    proxy.fault = lambda exchange: (
        None if exchange.headers.get("authorization", "").split(" ")[-1] in valid else 401
    )

    def answer(token):
        config = {"gcs.oauth2.token": token, "gcs.service.host": proxy.url}
        return {"config": config}

    access = access_of(answer("first"), answer("second"))
    with access.through():
        sbbf_tool.add_filters(url, columns="id", in_place=True)
        assert sbbf_tool.verify(url).is_sound
    with pytest.raises(UnreadableError, match="denied"):
        sbbf_tool.inspect(url)
