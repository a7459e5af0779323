"""The first commands of the guide about object stores, as they stand there, with a server in place of S3 and of example.org."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import http_site
from support.buckets import Bucket
from support.pages import environment, example

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DAYS = ("2026-11-21", "2026-11-22")


@pytest.mark.heavy
def test_the_commands_of_the_guide(moto_bucket: Bucket, site: http_site.Site, fixtures: Path, tmp_path: Path) -> None:
    content = (fixtures / "events.parquet").read_bytes()
    moto_bucket.client.create_bucket(Bucket="lake")
    for day in DAYS:
        moto_bucket.client.put_object(Bucket="lake", Key=f"events/day={day}/part-0.parquet", Body=content)
    site.put("events.parquet", content)
    outputs = []
    for command in example("object-stores.md", "s3://lake/events/").body.replace("https://example.org", site.url).splitlines():
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, command + done.stderr
        outputs.append(done.stdout + done.stderr)
    query, change, verification, file, prefix = outputs
    assert "2 files may hold any of them, because filters gave no answer" in query
    assert "requests" in query
    assert "Added 3 filters to s3://lake/events/day=2026-11-21/part-0.parquet" in change
    assert "2 files: 2 done; 3 of 3 filters verified" in verification
    assert file.startswith(f"{site.url}/events.parquet: 150,378 bytes")
    assert prefix.splitlines()[1].split()[:5] == ["user_id", "1", "3", "of", "6"]
