"""The permissions that the guide to object stores lists for S3 suffice; without deletion, a table
is refused before any copy is made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import inspect
from sbbf_tool.cli import run
from support.buckets import environment, forget_clients
from support.environments import REPOSITORY
from support.swift_server import free_ports, wait_for

pytest.importorskip("moto", reason="moto is not installed")
import boto3

DELETE = "s3:DeleteObject"
Allow = Callable[[Sequence[str]], None]


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[object, Allow]]:
    """A client that may do everything, of a server that checks policies, and a function that sets
    what the user of `sbbf` may do."""
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", str(port)],
        env={**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "5"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(server, port)
        settings = environment(f"http://127.0.0.1:{port}")
        for name, value in settings.items():
            monkeypatch.setenv(name, value)

        def allow(iam: object, name: str, actions: Sequence[str]) -> None:
            policy = {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}],
            }
            iam.put_user_policy(
                UserName=name, PolicyName="policy", PolicyDocument=json.dumps(policy)
            )

        keys = {}
        iam = boto3.Session(region_name="us-east-1").client("iam")
        for name in ("owner", "user"):
            iam.create_user(UserName=name)
            keys[name] = iam.create_access_key(UserName=name)["AccessKey"]
        allow(iam, "owner", ["*"])
        owner = boto3.Session(
            keys["owner"]["AccessKeyId"], keys["owner"]["SecretAccessKey"], region_name="us-east-1"
        )
        s3, iam = owner.client("s3"), owner.client("iam")
        s3.create_bucket(Bucket="bucket")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["user"]["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["user"]["SecretAccessKey"])
        forget_clients()
        yield s3, lambda actions: allow(iam, "user", actions)
    finally:
        forget_clients()
        server.kill()
        server.wait()


def documented() -> list[str]:
    (row,) = re.findall(
        r"\| S3 \| `s3:GetObject`.*", (REPOSITORY / "docs/how-to/object-stores.md").read_text()
    )
    return re.findall(r"s3:\w+", row)


def test_the_documented_permissions_suffice(user, tmp_path: Path, fixtures: Path, capsys):
    s3, allow = user
    allow(documented())
    large = tmp_path / "large.parquet"
    pq.write_table(
        pa.table({"user_id": pa.array(range(700_000), pa.int64())}),
        large,
        use_dictionary=False,
        compression="none",
    )
    assert large.stat().st_size > 5 << 20
    for path, tags in ((fixtures / "events.parquet", "a=b"), (large, "")):
        s3.put_object(Bucket="bucket", Key=path.name, Body=path.read_bytes(), Tagging=tags)
        assert run(["add-filter", f"s3://bucket/{path.name}", "-c", "user_id", "--in-place"]) == 0
        assert inspect(f"s3://bucket/{path.name}").filters
    orders = fixtures / "delta" / "orders"
    files = {
        f"orders/{path.relative_to(orders)}": path.read_bytes()
        for path in orders.rglob("*")
        if path.is_file()
    }
    for key, data in files.items():
        s3.put_object(Bucket="bucket", Key=key, Body=data)
    words = [
        "add-filter",
        "s3://bucket/orders",
        "-c",
        "user_id",
        "--in-place",
        "--allow",
        "conditional-put",
    ]
    assert run(words) == 5
    assert "cannot be removed" in capsys.readouterr().err
    left = {
        entry["Key"] for entry in s3.list_objects_v2(Bucket="bucket", Prefix="orders/")["Contents"]
    } - files.keys()
    assert [re.sub(r"[0-9a-f]{16}-\d+", "", key) for key in left] == ["orders/_sbbf-run-"]
    allow([*documented(), DELETE])
    assert run(words) == 0
