"""A real S3 server on loopback: OpenStack Swift with its s3api, from PyPI, four processes over a
temporary folder.

One device per ring, one replica, tempauth for the keys. It is strict where it matters here: part
copies are pinned by `x-amz-copy-source-if-match`, a part below 5 MiB is refused, `If-None-Match: *`
holds; `If-Match` on writes is answered with 501.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ACCESS_KEY, SECRET_KEY = "test:tester", "testing"
SERVERS = ("account", "container", "object", "proxy")

# eventlet warns that it is deprecated; warnings of the servers are not tested.
_RUN = (
    "import sys, warnings; warnings.simplefilter('ignore'); from swift.{module} import "
    "main; sys.argv[1:] = [{conf!r}]; sys.exit(main())"
)

# In a separate process, one for all rings, because Swift imports eventlet, which then warns of
# every fork.
_RING = """
import sys, warnings
warnings.simplefilter('ignore')
from swift.common.ring import RingBuilder
for port, path in zip(sys.argv[1::2], sys.argv[2::2]):
    ring = RingBuilder(part_power=4, replicas=1, min_part_hours=0)
    place = {"region": 1, "zone": 1, "ip": "127.0.0.1", "port": int(port)}
    ring.add_dev({**place, "device": "disk", "weight": 1, "id": 0})
    ring.rebalance(seed=1)
    ring.get_ring().save(path)
"""

_BACKEND = """
[DEFAULT]
devices = {folder}/srv
mount_check = false
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {folder}
log_address = {folder}/log
user = {user}
fallocate_reserve = 0
[pipeline:main]
pipeline = {server}-server
[app:{server}-server]
use = egg:swift#{server}
[{server}-replicator]
[{server}-updater]
[{server}-auditor]
"""
_PROXY = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {folder}
log_address = {folder}/log
user = {user}
[pipeline:main]
pipeline = catch_errors cache listing_formats bulk s3api tempauth copy slo dlo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
check_bucket_owner = false
location = us-east-1
force_swift_request_proxy_log = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
user_test_guest = guests
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
"""
_SWIFT = """
[swift-hash]
swift_hash_path_suffix = sbbf
swift_hash_path_prefix = sbbf
[storage-policy:0]
name = only
default = yes
"""


@contextmanager
def running() -> Iterator[str]:
    """Run a server for the length of the block; yield its address, `http://127.0.0.1:PORT`."""
    with tempfile.TemporaryDirectory(prefix="swift-") as name:
        folder = Path(name)
        ports = dict(zip(SERVERS, free_ports(len(SERVERS)), strict=True))
        _configure(folder, ports)
        processes = [_start(folder, server) for server in SERVERS]
        try:
            for process, port in zip(processes, ports.values(), strict=True):
                wait_for(process, port, folder)
            yield f"http://127.0.0.1:{ports['proxy']}"
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.wait()


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for socket_ in sockets:
        socket_.bind(("127.0.0.1", 0))
    ports = [socket_.getsockname()[1] for socket_ in sockets]
    for socket_ in sockets:
        socket_.close()
    return ports


def _configure(folder: Path, ports: dict[str, int]) -> None:
    (folder / "srv" / "disk").mkdir(parents=True)
    (folder / "swift.conf").write_text(_SWIFT)
    user = _user()
    rings: list[str] = []
    for server, port in ports.items():
        text = _PROXY if server == "proxy" else _BACKEND
        (folder / f"{server}.conf").write_text(
            text.format(folder=folder, port=port, server=server, user=user)
        )
        if server != "proxy":
            rings += [str(port), str(folder / f"{server}.ring.gz")]
    subprocess.run([sys.executable, "-c", _RING, *rings], check=True)


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def _start(folder: Path, server: str) -> subprocess.Popen[bytes]:
    module = "obj.server" if server == "object" else f"{server}.server"
    with open(folder / f"{server}.out", "wb") as out:
        code = _RUN.format(module=module, conf=str(folder / f"{server}.conf"))
        return subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "SWIFT_DIR": str(folder)},
        )


def wait_for(process: subprocess.Popen[bytes], port: int, folder: Path | None = None) -> None:
    """Wait until the server listens. Raises RuntimeError with the content of the folder's `.out`
    files if it does not."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    output = "".join(path.read_text()[-2000:] for path in folder.glob("*.out")) if folder else ""
    raise RuntimeError(f"the server did not start: {output}")
