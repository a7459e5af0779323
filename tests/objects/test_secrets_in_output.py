"""Passwords, tokens and signatures in URLs: no command prints them, in no format, for any
parameter."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from xml.sax.saxutils import escape as xml_escape

import pytest

import sbbf_tool
from parts.commands import read_commands
from sbbf_tool.cli import run
from sbbf_tool.display import redact, redact_answer, redact_text
from sbbf_tool.errors import SbbfError
from sbbf_tool.storage.objects import cloud
from sbbf_tool.storage.objects.retries import Budget
from support.buckets import environment, forget_clients
from support.every_command import FILE, WORKING, formats_of, text_options
from support.http_site import Site, serve
from support.tables import each

SECRET = "hUsH%2Fs3cr3t"
URLS = {
    "signed": f"https://127.0.0.1:1/a.parquet?X-Amz-Credential=me&X-Amz-Signature={SECRET}",
    "plain-http": f"http://127.0.0.1:1/a.parquet?token={SECRET}#{SECRET}",
    "fragment": f"https://127.0.0.1:1/a.parquet#{SECRET}",
    "upper-case": f"HTTPS://127.0.0.1:1/a.parquet?sig={SECRET}",
    "mistyped": f"https:/host/a.parquet?sig={SECRET}",
    "after-a-space": f" https://127.0.0.1:1/a.parquet?sig={SECRET}",
    "password": f"https://me:{SECRET}@127.0.0.1:1/a.parquet",
    "token-for-user": f"https://{SECRET}@127.0.0.1:1/a.parquet",
    "password-with-slash": f"https://me:a/{SECRET}@127.0.0.1:1/a.parquet",
    "no-port": f"https://me:{SECRET}/a.parquet",
    "s3-keys": f"s3://AKIA:{SECRET}@bucket/a.parquet",
    "s3-keys-with-slash": f"s3a://AKIA:ab/{SECRET}@bucket/a.parquet",
    "s3-keys-alone": f"s3n://AKIA:{SECRET}/a.parquet",
    "s3-signed": f"s3://bucket/a.parquet?X-Amz-Signature={SECRET}",
    "sas": f"az://container/a.parquet?sv=2024-08-04&sp=r&sig={SECRET}/x=",
    "sas-of-lake": f"abfss://container@account.dfs.core.windows.net/day=1/a.parquet?sv=2024-08-04&sig={SECRET}",
    "sas-of-folder": f"wasbs://container@account.blob.core.windows.net/day?sig={SECRET}",
    "bare-token": f"azure://container/a.parquet?{SECRET}",
    "encoded-query": f"adl://account/folder?sig%3D{SECRET}",
    "google": f"gs://bucket/a.parquet?X-Goog-Signature={SECRET}",
    "hdfs": f"hdfs://me:{SECRET}@namenode:8020/a.parquet",
    "viewfs": f"viewfs://me:{SECRET}@cluster/a.parquet",
    "other-service": f"ftp://me:{SECRET}@host/a.parquet",
    "other-service-signed": f"oss://bucket/a.parquet?Signature={SECRET}",
    "key-of-s3": f"s3://{SECRET}@bucket/a.parquet",
    "user-of-google": f"gs://{SECRET}@bucket/a.parquet",
    "user-of-azure": f"az://{SECRET}@container/a.parquet",
    "user-of-hdfs": f"hdfs://{SECRET}@namenode/a.parquet",
    "password-of-file": f"file://me:{SECRET}@/a.parquet",
    "user-of-file": f"FILE://{SECRET}@host/a.parquet",
    "spark-connect": f"sc://127.0.0.1:1/;use_ssl=true;token={SECRET}",
}
DATA = {"--value", "--query", "--where", "--require"}
"""Values and names of columns, and conditions with them: a report prints them as they are."""
OF_SPARK = {"--on"}


@pytest.fixture(autouse=True)
def no_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every service refuses at once: no credentials are given, or nothing listens."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent")


@pytest.fixture
def local(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the words of `WORKING` mean, in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    path = shutil.copy(fixtures / "pyarrow-filters.parquet", tmp_path / "a.parquet")
    return {FILE: str(path), "<COLUMN>": "id", "<TABLE>": str(tmp_path), "<DATA_FILE>": str(path)}


def assert_silent(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    code = run(arguments)
    printed = "".join(capfd.readouterr())
    assert "hUsH" not in printed, f"sbbf {shlex.join(arguments)}"
    assert code != 70, printed
    return printed


@each("url", URLS.values(), every=10)
def test_a_url_as_the_file_that_a_command_is_about(url, local, capfd):
    for name, working in WORKING.items():
        words = [url, *(local.get(word, word) for word in working[1:])]
        for form in formats_of(read_commands()[name]):
            assert_silent([*name.split(), "--verbose", *form, *words], capfd)


@pytest.mark.nightly
@pytest.mark.parametrize("name", WORKING)
@each("url", URLS.values())
def test_a_url_for_any_option(name, url, local, capfd, fixtures):
    command = read_commands()[name]
    for option in sorted({*text_options(command)} - DATA - OF_SPARK):
        for form in formats_of(command):
            shutil.copy(fixtures / "pyarrow-filters.parquet", local[FILE])
            words = [local.get(word, word) for word in WORKING[name]]
            if option == "--output":
                words = [word for word in words if word != "--in-place"]
            assert_silent([*name.split(), *words, *form, option, url, "--verbose"], capfd)
    if name != "probe":  # there it is one more value, and values are printed as they are
        assert_silent(
            [*name.split(), *(local.get(word, word) for word in WORKING[name]), url], capfd
        )


SIGNED = f"X-Amz-Credential=me&X-Amz-Signature={SECRET}"


@pytest.fixture
def signed(site: Site, fixtures: Path) -> str:
    """A signed URL that can be read, of a file with findings."""
    return (
        f"{site.put('day/a.parquet', (fixtures / 'pyarrow-filters.parquet').read_bytes())}?{SIGNED}"
    )


def test_reports_on_a_signed_url_that_can_be_read(signed, local, capfd):
    count = 0
    for name in ("inspect", "probe", "verify", "check", "explain", "advise"):
        words = [signed, *(local.get(word, word) for word in WORKING[name][1:])]
        for form in formats_of(read_commands()[name]):
            printed = assert_silent([name, *words, *form], capfd)
            count += redact(signed).replace(":", "%3A") in printed or redact(signed) in printed
    assert count > 8
    for name in ("add-filter", "resize", "remove-filter", "repair"):
        words = [
            signed,
            *(local.get(word, word) for word in WORKING[name][1:] if word != "--in-place"),
        ]
        for form in formats_of(read_commands()[name]):
            assert_silent([name, *words, *form, "--dry-run"], capfd)
            assert_silent([name, *words, *form, "-o", f"{name}{len(form)}.parquet"], capfd)
            assert_silent([name, *words, *form, "--in-place"], capfd)


def test_python_gets_reports_and_errors_without_signatures(signed):
    advice = sbbf_tool.advise(signed)
    reports = [
        sbbf_tool.inspect(signed),
        sbbf_tool.verify(signed),
        sbbf_tool.check(signed),
        advice,
        sbbf_tool.explain(signed, "id", 1),
    ]
    reports += [
        sbbf_tool.add_filters(signed, ["id"], rebuild="all", dry_run=True),
        sbbf_tool.repair(signed, dry_run=True),
    ]
    assert not [report for report in reports if "hUsH" in repr(report)]
    assert advice.paths == (redact(signed),)
    for url in URLS.values():
        with pytest.raises(SbbfError) as caught:
            sbbf_tool.inspect(url)
        assert "hUsH" not in str(caught.value) + repr(caught.value) + str(caught.value.file)


@each(
    "name, printed",
    [
        ("https://host:8443/a.parquet?sig=x", "https://host:8443/a.parquet?..."),
        ("https://[::1]:80/a.parquet?sig=x", "https://[::1]:80/a.parquet?..."),
        ("https://me:x@host/a.parquet", "https://...@host/a.parquet"),
        ("hdfs://me@namenode:8020/user/me@home/a", "hdfs://...@namenode:8020/user/me@home/a"),
        (
            "abfss://container@account.dfs.core.windows.net/a",
            "abfss://container@account.dfs.core.windows.net/a",
        ),
        ("s3://bucket/part-?.parquet", "s3://bucket/part-?.parquet"),
        ("s3://bucket/year=20?4/month=1/*.parquet", "s3://bucket/year=20?4/month=1/*.parquet"),
        ("s3://bucket/a@b:c", "s3://bucket/a@b:c"),
        (
            "s3://arn:aws:s3:us-east-1:123456789012:accesspoint:mine/a",
            "s3://arn:aws:s3:us-east-1:123456789012:accesspoint:mine/a",
        ),
        ("file:///folder/a?b=c", "file:///folder/a?b=c"),
        ("/folder/a?b=c", "/folder/a?b=c"),
        ("what?=now.parquet", "what?=now.parquet"),
    ],
)
def test_redacted_names(name, printed):
    assert redact(name) == printed
    assert redact(printed) == printed


@each("text", ["a" * 200_000 + ":/ ", "s3://" + "?" * 200_000, "s3://b/" + "/?" * 100_000])
def test_long_text_is_redacted_in_little_time(text):
    """The name of a column in a file may be of any length."""
    start = time.process_time()
    assert redact_text(text) == text
    assert time.process_time() - start < 5


@each("url", URLS.values())
def test_urls_within_messages_of_libraries(url):
    for text in (
        f"cannot GET '{url.strip()}'",
        f"{url.strip()}: no",
        f"{redact(url.strip())}: no",
        f"Caused by: ({url.strip()})",
        f"<{url.strip()}>\nat line 1",
    ):
        assert "hUsH" not in redact_text(text)
        assert redact_text(redact_text(text)) == redact_text(text)
        assert "hUsH" not in str(SbbfError(text, hint=text))


@each("url", URLS.values())
def test_rows_of_files_that_cannot_be_read(url):
    pytest.importorskip("pyspark")
    from sbbf_tool.spark.views import failed

    for error in (
        SbbfError("no", file=url),
        SbbfError(f"cannot open {url}"),
        OSError(f"cannot open {url.strip()}"),
    ):
        row = failed(url, error)
        assert "hUsH" not in repr(row)
        assert row["file"] == redact(url)


PAGE = """<?xml version="1.0"?><Error><Code>{code}</Code><Message>cannot {line} with {headers}
</Message></Error>"""
JSON_PAGE = """{{"error": {{"code": {status}, "message": "{line} {headers}"}}}}"""


class _Echo(BaseHTTPRequestHandler):
    """A server whose errors repeat the request: its path and query, and its headers."""

    protocol_version = "HTTP/1.1"
    status = 500
    page = PAGE

    def log_message(self, *arguments: object) -> None:
        pass

    def respond(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        line = f"{self.command} {self.path}"
        headers = "\n".join(f"{name}: {value}" for name, value in self.headers.items())
        if self.page is JSON_PAGE:
            headers = repr(headers)[1:-1].replace('"', "'")
        fields = {"status": self.status, "code": "Broken", "line": line, "headers": headers}
        if self.page is PAGE:
            fields |= {"line": xml_escape(line), "headers": xml_escape(headers)}
        data = self.page.format(**fields).encode()
        self.send_response(self.status, line)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = respond  # noqa: N815


@each("status", [403], heavy=[200, 400, 500, 503])
@pytest.mark.parametrize("page", [PAGE, JSON_PAGE], ids=["lines", "json"])
def test_an_error_that_repeats_the_request(status, page, tmp_path, capfd, monkeypatch):
    handler = type("Handler", (_Echo,), {"status": status, "page": page})
    monkeypatch.setattr(cloud, "BUDGET", Budget.of_tries(2))
    with serve(handler) as server:
        settings = {
            **environment(server.url),
            "AWS_SESSION_TOKEN": SECRET,
            "AWS_MAX_ATTEMPTS": "2",
            "AZURE_STORAGE_ACCOUNT_NAME": "account",
            "AZURE_STORAGE_ENDPOINT": server.url,
            "AZURE_STORAGE_SAS_TOKEN": f"sv=2024-08-04&sig={SECRET}",
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        forget_clients()
        for url in (
            "s3://bucket/a.parquet",
            "s3://bucket/day/",
            "az://container/a.parquet",
            "az://container/day/",
            f"{server.url}/a.parquet?{SIGNED}",
        ):
            for command in ("inspect", "verify"):
                printed = assert_silent([command, url, "--verbose"], capfd)
                assert "AWS4-HMAC" not in printed
        change = ["add-filter", "-c", "id", "--in-place", "--verbose"]
        assert_silent([*change, "s3://bucket/a.parquet"], capfd)
        assert_silent([*change, "az://container/a.parquet"], capfd)
        forget_clients()


REPEATED = {
    "a query without a host": f"GET /a?X-Amz-Signature={SECRET}&X-Amz-Date=1 HTTP/1.1",
    "a page": f"<p>/a?x=1&amp;sig={SECRET}</p>",
    "an escaped query": f"/login?next=%2Fa%3Fsig%3D{SECRET}%26x%3D1",
    "JSON": f'{{"uri": "/a?x=1\\u0026sig={SECRET}"}}',
    "a header": f"Authorization: Bearer {SECRET}\nHost: x",
    "a signature": f"authorization: AWS4-HMAC-SHA256 Credential=me, Signature={SECRET}\r\n",
    "headers in JSON": f'{{"headers": {{"X-Amz-Security-Token": "{SECRET}", "Host": "x"}}}}',
    "headers as pairs": f"[('Cookie', 'a={SECRET}; b=c'), ('Host', 'x')]",
    "bytes": f"b'Proxy-Authorization: Basic {SECRET}\\r\\nHost: x'",
    "a table": f"<tr><td>x-goog-signature</td><td>{SECRET}</td></tr>",
    "a source": f"x-amz-copy-source: /bucket/a?{SECRET}",
    "a scheme": f"sent SharedKey account:{SECRET}",
    "a field": f"<SignatureProvided>{SECRET}</SignatureProvided>",
}


@each("text", REPEATED)
def test_texts_of_servers(text):
    redacted = redact_answer(text)
    assert "hUsH" not in redacted
    assert "..." in redacted
    assert "hUsH" not in redact_answer(repr(text))


@each("text", ["Connection reset by peer (os error 104)", "503 SlowDown", "no such key: a?b"])
def test_texts_of_servers_without_secrets_stay(text):
    assert redact_answer(text) == text


@each("url", [URLS["signed"], URLS["password"]])
def test_a_traceback_of_the_outermost_handler(url):
    program = """if True:
        import sys, sbbf_tool.cli
        def broken(args):
            raise OSError("cannot open " + args[0])
        sbbf_tool.cli.main = broken
        from sbbf_tool.__main__ import main
        main()
    """
    done = subprocess.run(
        [sys.executable, "-c", program, url, "--verbose"], capture_output=True, text=True
    )
    assert done.returncode == 70
    assert "hUsH" not in done.stderr
    assert done.stderr.count(redact(url)) == 2
