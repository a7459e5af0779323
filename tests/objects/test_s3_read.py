"""Reading S3 objects: how few requests it takes, that a changed object is an error and never a
mixture, errors, and the guide."""

from __future__ import annotations

import io
import subprocess
from itertools import cycle
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sbbf_tool
from objects.large_files import ABSENT, PRESENT, large, small
from sbbf_tool.cli import run
from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.objects.source import ObjectSource
from sbbf_tool.storage.places import open_source
from support import http_site
from support.buckets import Bucket, forget_clients
from support.pages import environment, example
from support.three_files import CASES, FEW, FORMS, words


def test_a_footer_comes_with_the_first_request(bucket):
    url = bucket.put("small.parquet", small())
    assert sbbf_tool.inspect(url).row_groups == 3
    assert bucket.proxy.operations() == ["GetObject"]


def test_a_probe_of_many_row_groups_takes_few_requests_in_one_round(bucket, capsys):
    url = bucket.put("large.parquet", large())
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    size = len(bucket.get("large.parquet"))
    bucket.proxy.forget()
    assert run(["probe", url, "id", str(ABSENT), "--verbose"]) == 1
    # The listing, the end of the object, and of each filter that is not in it the header and the
    # block.
    assert bucket.proxy.operations() == [
        "ListObjectsV2",
        *["GetObject"] * (bucket.proxy.count("GetObject")),
    ]
    assert bucket.proxy.count("GetObject") <= 4
    downloaded = sum(
        exchange.downloaded
        for exchange in bucket.proxy.exchanges
        if exchange.operation == "GetObject"
    )
    assert downloaded < size / 25
    requests = bucket.proxy.count("GetObject")
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == f"read {downloaded:,} bytes of 1 file in {requests} requests"
    )
    assert run(["probe", url, "id", str(PRESENT), "--quiet"]) == 0


def test_headers_alone_take_few_bytes(bucket):
    url = bucket.put("large.parquet", large())
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    whole = sbbf_tool.inspect(url)
    bucket.proxy.forget()
    report = sbbf_tool.inspect(url, quick=True)
    sizes, expected_sizes = (
        [(row.header_bytes, row.bitset_bytes) for row in each.filters] for each in (report, whole)
    )
    assert sizes == expected_sizes
    bitsets = sum(row.bitset_bytes for row in report.filters)
    # The end of the object, and the headers before it.
    assert bucket.proxy.downloaded < (64 << 10) + 20 * len(report.filters) < bitsets


def test_reads_return_the_stored_bytes(bucket):
    data = large()
    url = bucket.put("large.parquet", data)
    with open_source(url) as source:
        assert source.size == len(data)
        for offset, length in (
            (0, 4),
            (4, 100),
            (1000, 3_000_000),
            (len(data) - 8, 8),
            (len(data) - 100_000, 100_000),
            (5, 0),
        ):
            assert source.read(offset, length) == data[offset : offset + length]
        assert source.read_up_to(len(data) - 10, 100) == data[-10:]
        with pytest.raises(UnreadableError, match="outside the file"):
            source.read(len(data) - 1, 2)
        with source.open_arrow() as stream:
            assert (
                pq.ParquetFile(stream).read().num_rows
                == pq.read_metadata(io.BytesIO(data)).num_rows
            )


def test_a_stream_reads_ahead_and_never_much_too_far(bucket):
    data = large() * 2
    url = bucket.put("big", data)
    with open_source(url) as source, source.open_arrow() as stream:
        bucket.proxy.forget()
        chunks = [stream.read(100_000) for _ in range(20)]
        assert b"".join(chunks) == data[:2_000_000]
        assert bucket.proxy.count("GetObject") < 8
        assert bucket.proxy.downloaded < 6_000_000


def test_a_changed_object_is_an_error_and_no_mixture(bucket):
    url = bucket.put("large.parquet", large())
    with open_source(url) as source:
        assert source.is_unchanged()
        bucket.put("large.parquet", large()[::-1])
        assert not source.is_unchanged()
        with pytest.raises(UnreadableError, match="the object changed while it was worked on"):
            source.read(100, 100)
        with (
            pytest.raises(UnreadableError, match=f"{url}: the object changed"),
            source.open_arrow() as stream,
        ):
            stream.read(100)


def test_an_object_that_was_removed_is_an_error(bucket):
    url = bucket.put("large.parquet", large())
    with open_source(url) as source:
        bucket.client.delete_object(Bucket=bucket.name, Key="large.parquet")
        assert not source.is_unchanged()
        with pytest.raises(UnreadableError, match="no such object"):
            source.read(100, 100)


def test_a_truncated_response_is_requested_again(bucket):
    url = bucket.put("large.parquet", large())
    cuts = []

    def once(exchange):
        if exchange.operation == "GetObject" and len(cuts) < 2:
            cuts.append(exchange)
            return "cut answer"
        return None

    with open_source(url) as source:
        bucket.proxy.fault = once
        assert source.read(100, 300_000) == large()[100:300_100]
    assert len(cuts) == 2


def test_errors_are_one_line_with_the_right_code(bucket, capsys, monkeypatch):
    url = bucket.put("small.parquet", small())
    bucket.put("text.parquet", b"this is no Parquet file, and long enough to have a footer")

    def assert_error(
        name: str, code: int, message: str, command: tuple[str, ...] = ("inspect",)
    ) -> None:
        forget_clients()
        assert run([*command, name]) == code
        printed, complaint = capsys.readouterr()
        assert (
            printed,
            complaint.startswith("sbbf: "),
            complaint.count("\n"),
            "testing" in complaint,
        ) == ("", True, 1, False)
        assert message in complaint

    for name, code, message in (
        (bucket.url("none.parquet"), 3, f"{bucket.url('none.parquet')}: no such object"),
        (
            "s3://no-such-bucket/x.parquet",
            3,
            "s3://no-such-bucket/x.parquet: no such bucket: no-such-bucket",
        ),
        (bucket.put("empty.parquet", b""), 3, "0 bytes"),
        (bucket.url("text.parquet"), 3, bucket.url("text.parquet")),
        ("s3://", 2, "the URL names no bucket"),
        ("s3://no bucket/x.parquet", 2, "is not a valid bucket name"),
    ):
        assert_error(name, code, message)
    adding = ("add-filter", "-c", "id", "--in-place")
    for settings, message in (
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "rejects the credentials (SignatureDoesNotMatch)"),
        (
            {"AWS_ACCESS_KEY_ID": "test:guest", "AWS_SECRET_ACCESS_KEY": "guests"},
            "access denied (AccessDenied); check AWS_PROFILE",
        ),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "no usable credentials"),
        ({"AWS_PROFILE": "nobody"}, "the profile named by AWS_PROFILE"),
    ):
        for name, value in settings.items():
            monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
        assert_error(url, 3, message)
        if "denied" not in message:
            assert_error(url, 3, message, adding)


def test_credentials_of_a_profile(bucket, tmp_path, monkeypatch):
    url = bucket.put("small.parquet", small())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name)
    credentials, config = tmp_path / "credentials", tmp_path / "config"
    credentials.write_text(
        "[lake]\naws_access_key_id = test:tester\naws_secret_access_key = testing\n"
    )
    config.write_text(f"[profile lake]\nregion = us-east-1\nendpoint_url = {bucket.proxy.url}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_PROFILE", "lake")
    forget_clients()
    assert sbbf_tool.inspect(url).row_groups == 3


def test_a_store_that_ignores_ranges_is_not_misread(bucket):
    url = bucket.put("large.parquet", large())

    with open_source(url) as source:
        assert isinstance(source, ObjectSource)
        source.store.client.meta.events.register(
            "before-sign.s3.GetObject", lambda request, **_: request.headers.__delitem__("Range")
        )
        with pytest.raises(UnreadableError, match="does not support range requests"):
            source.read(100, 100)


def test_a_large_read_goes_in_parts_at_a_time(bucket):
    data = large() * 4
    url = bucket.put("big", data)
    with open_source(url) as source:
        bucket.proxy.forget()
        assert source.read(0, source.size) == data
        assert bucket.proxy.count("GetObject") == 3  # of at most 8 MiB


def ask_of_urls(bucket, cases, *options):
    for form in FORMS:
        for case in cases[form]:
            urls = [
                bucket.put(f"{case}/{name}.parquet", content)
                for name, content in zip("abc", CASES[case].files, strict=True)
            ]
            assert (
                run([*words(form, bucket.url(f"{case}/"), urls), *options]) == CASES[case].code
            ), (case, form)


@pytest.mark.heavy
def test_of_a_prefix_and_of_urls(moto_bucket):
    ask_of_urls(moto_bucket, FEW)


def test_of_urls_and_files_together(moto_bucket, tmp_path):
    for case, form in zip(
        list(CASES)[::2], cycle(("probe of files", "explain of files")), strict=False
    ):
        contents = CASES[case].files
        (tmp_path / "b.parquet").write_bytes(contents[1])
        names = [
            moto_bucket.put("a.parquet", contents[0]),
            str(tmp_path / "b.parquet"),
            moto_bucket.put("c.parquet", contents[2]),
        ]
        assert run(words(form, "", names)) == CASES[case].code, (case, form)


pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DAYS = ("2026-11-21", "2026-11-22")


@pytest.mark.heavy
def test_the_commands_of_the_guide(
    moto_bucket: Bucket, site: http_site.Site, fixtures: Path, tmp_path: Path
) -> None:
    content = (fixtures / "events.parquet").read_bytes()
    moto_bucket.client.create_bucket(Bucket="lake")
    for day in DAYS:
        moto_bucket.client.put_object(
            Bucket="lake", Key=f"events/day={day}/part-0.parquet", Body=content
        )
    site.put("events.parquet", content)
    outputs = []
    for command in (
        example("object-stores.md", "s3://lake/events/")
        .body.replace("https://example.org", site.url)
        .splitlines()
    ):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True
        )
        assert done.returncode == 0, command + done.stderr
        outputs.append(done.stdout + done.stderr)
    query, change, verification, file, prefix = outputs
    assert "2 files may hold 1 of the values" in query
    assert "requests" in query
    assert "Added 3 filters to s3://lake/events/day=2026-11-21/part-0.parquet" in change
    assert "2 files: 2 done; 3 of 3 filters verified" in verification
    assert file.startswith(f"{site.url}/events.parquet: 150,378 bytes")
    assert prefix.splitlines()[1].split()[:5] == ["user_id", "1", "3", "of", "6"]
