"""Which credentials of a catalog's answer are for which file, without a catalog and a store."""

from __future__ import annotations

import pickle

import pytest

pytest.importorskip("pyiceberg", reason="PyIceberg is not installed")

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.iceberg.catalog import load_grants
from sbbf_tool.extensions.tables.iceberg.credentials import (
    credentials_url,
    parse_grants,
)
from sbbf_tool.extensions.tables.iceberg.source import identity
from sbbf_tool.extensions.tables.iceberg.table_access import TableAccess
from sbbf_tool.storage.objects.store import parse_location
from support.tables import each


def pair(name):
    return {"s3.access-key-id": name, "s3.secret-access-key": f"secret of {name}"}


def keys_for(url, answer, own=()):
    grants = parse_grants(answer, dict(own))
    return grants.keys(grants.find_prefix(identity(url)), parse_location(url))


def name_of(url, answer, own=()):
    keys = keys_for(url, answer, own)
    return keys and keys.access_key


ANSWER = {
    "config": {"s3.region": "eu-west-1", "s3.endpoint": "http://store", "token": "hush"},
    "storage-credentials": [
        {"prefix": "s3://b", "config": pair("bucket")},
        {"prefix": "s3a://b/t/", "config": {**pair("table"), "s3.path-style-access": "false"}},
        {"prefix": "s3://b/t/data", "config": pair("data")},
        {"prefix": "s3://other/t", "config": pair("other")},
    ],
}


@each(
    "url, name",
    [
        ("s3://b/x", "bucket"),
        ("s3://b/tt/x", "bucket"),
        ("s3://b/t/x", "table"),
        ("s3n://b/t/data/x", "data"),
        ("s3://b2/t/data/x", None),
        ("s3://b.c/t/data/x", None),
        ("s3://other/u/x", None),
        ("gs://b/t/x", None),
        ("hdfs://b/t/x", None),
    ],
)
def test_the_longest_prefix_of_the_same_bucket(url, name):
    assert name_of(url, ANSWER) == name


def test_what_goes_with_the_keys():
    keys = keys_for("s3://b/t/x", ANSWER)
    assert (keys.region, keys.endpoint, keys.path_style) == ("eu-west-1", "http://store", False)
    assert "secret" not in repr(keys)
    own = {**pair("own"), "s3.force-virtual-addressing": "false", "client.region": "us-west-2"}
    keys = keys_for("s3://b2/x", {}, own)
    assert (keys.access_key, keys.region, keys.path_style) == ("own", "us-west-2", True)


def test_a_part_of_other_keys_is_not_mixed_in():
    config = {**pair("config"), "s3.session-token": "of config"}
    answer = {
        "config": config,
        "storage-credentials": [{"prefix": "s3://b/", "config": pair("static")}],
    }
    assert keys_for("s3://b/x", answer).token == ""
    assert keys_for("s3://c/x", answer).token == "of config"


def test_keys_of_a_prefix_that_the_config_repeats_are_for_that_prefix_alone():
    answer = {
        "config": pair("table"),
        "storage-credentials": [{"prefix": "s3://b/t", "config": pair("table")}],
    }
    assert name_of("s3://b/t/x", answer) == "table"
    assert name_of("s3://b/u/x", answer) is None
    assert name_of("s3://b/u/x", answer, pair("own")) == "own"
    assert name_of("s3://b/u/x", {"config": pair("table")}, pair("own")) == "table"


@each(
    "name, used",
    [
        ("adls.sas-token.a.dfs.core.windows.net", True),
        ("adls.sas-token.a.blob.core.windows.net", True),
        ("adls.sas-token.a", True),
        ("adls.sas-token.b.dfs.core.windows.net", False),
        ("adls.sas-token", False),
    ],
)
def test_a_signature_is_for_its_account(name, used):
    answer = {"config": {name: "?se=2030-01-01T00%3A00%3A00Z&sig=hush"}}
    keys = keys_for("abfss://c@a.dfs.core.windows.net/t/x", answer)
    assert (keys is not None) == used
    if used:
        assert keys.signature == "se=2030-01-01T00%3A00%3A00Z&sig=hush"
        assert "hush" not in repr(keys)


def test_the_account_that_is_configured():
    own = {"adls.account-name": "a", "adls.sas-token": "sig=1", "adls.account-key": "a2V5"}
    assert keys_for("az://c/x", {}, own).signature == "sig=1"
    assert keys_for("abfss://c@b.dfs.core.windows.net/x", {}, own) is None


def test_a_token_goes_to_the_host_that_is_stated_with_it():
    host = {"gcs.service.host": "http://other"}
    own = {"gcs.oauth2.token": "hush"}
    keys = keys_for("gs://b/x", {"config": host}, own)
    assert (keys.token, keys.endpoint) == ("hush", "")
    assert keys_for("gs://b/x", {"config": {**host, **own}}).endpoint == "http://other"
    assert "hush" not in repr(keys)


@each(
    "config, expiry",
    [
        ({"s3.session-token-expires-at-ms": "2000"}, 2),
        ({"gcs.oauth2.token-expires-at": "3000"}, 3),
        ({"adls.sas-token-expires-at-ms.a": "4000", "s3.session-token-expires-at-ms": "5000"}, 4),
        ({"adls.sas-token.a": "sp=r&se=1970-01-01T00%3A00%3A06Z&sig=x"}, 6),
        ({"adls.sas-token.a": "se=soon"}, None),
        ({"s3.session-token-expires-at-ms": "soon"}, None),
        ({"s3.session-token-expires-at-ms": "9" * 400}, None),
        ({}, None),
    ],
)
def test_when_they_expire(config, expiry):
    answer = {"storage-credentials": [{"prefix": "s3", "config": config}]}
    assert parse_grants(answer, {}).expiry == expiry


@each(
    "answer",
    [
        None,
        [],
        {"config": 5, "storage-credentials": {}},
        {"storage-credentials": [5, {}, {"prefix": 5}, {"prefix": "s3://b", "config": [1]}]},
    ],
)
def test_another_form_has_no_credentials(answer):
    assert keys_for("s3://b/x", answer) is None


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("v1/t/credentials", "https://catalog/api/v1/t/credentials"),
        ("https://catalog/else", "https://catalog/else"),
        ("https://catalog.evil/x", None),
        ("http://catalog/x", None),
        ("https://catalog@evil/x", None),
        ("", None),
    ],
)
def test_credentials_are_asked_of_the_catalog_alone(path, url):
    config = {"client.refresh-credentials-endpoint": path}
    assert credentials_url(config, "https://catalog/api/") == url


def load_nothing(name):
    raise AssertionError(name)


def test_what_is_sent_to_other_processes_has_no_credentials_of_the_catalog():
    own = {"token": "hush-1", "credential": "hush-2", "uri": "u", **pair("own")}
    grants = parse_grants({"config": {"token": "hush-3"}}, own)
    data = pickle.dumps(TableAccess("c:n.t", grants, lambda: grants, load_nothing))
    assert b"hush" not in data
    assert b"secret of own" in data
    # Its clients are those of the process.
    assert pickle.loads(data) is pickle.loads(data)


def test_a_process_without_the_catalog_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableError, match=r"cannot ask the catalog .*no catalog 'away'"):
        load_grants("away:n.t")
