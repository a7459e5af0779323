"""A bucket on the tests' server, and the settings that direct clients to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from support import counting_proxy, swift_server


@dataclass
class Bucket:
    name: str
    proxy: counting_proxy.Proxy
    client: Any

    def url(self, key: str) -> str:
        return f"s3://{self.name}/{key}"

    def put(self, key: str, data: bytes, **attributes: Any) -> str:
        """Store an object without counting the request; return its URL."""
        self.client.put_object(Bucket=self.name, Key=key, Body=data, **attributes)
        self.proxy.forget()
        return self.url(key)

    def get(self, key: str) -> bytes:
        data: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return data

    def head(self, key: str) -> dict[str, Any]:
        head: dict[str, Any] = self.client.head_object(Bucket=self.name, Key=key)
        return head

    def list_keys(self) -> list[str]:
        return [
            entry["Key"]
            for entry in self.client.list_objects_v2(Bucket=self.name).get("Contents", ())
        ]

    def unfinished(self) -> list[str]:
        return [
            upload["Key"]
            for upload in self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", ())
        ]


def environment(url: str) -> dict[str, str]:
    """Return the environment that directs S3 clients to this address."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": swift_server.ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": swift_server.SECRET_KEY,
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        # A request that a fault always fails is given up at once.
        "AWS_MAX_ATTEMPTS": "3",
    }


def forget_clients() -> None:
    """Discard the cached clients: a client reads the environment when it is made and then lives as
    long as the process."""
    from sbbf_tool.storage.objects import retries, s3_bucket, stores

    if s3_bucket.client.cache_info().currsize:
        s3_bucket.client(os.getpid()).close()
    s3_bucket.client.cache_clear()
    s3_bucket.budget.cache_clear()
    retries.retries_of.cache_clear()
    stores._store.cache_clear()
