"""The browser of all tests of this folder, and the pages of `site/` as the build script writes them."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from support.browser import browser
from support.environments import NotInstallableError, install_npm

__all__ = ["browser"]

SITE = Path(__file__).parents[2] / "site"


@pytest.fixture(scope="session")
def site_packages() -> Path:
    """The folder in which npm installed the packages of the page, once for each package-lock.json."""
    package, lock = ((SITE / name).read_text() for name in ("package.json", "package-lock.json"))
    try:
        return install_npm(f"sbbf-site-{sha256((package + lock).encode()).hexdigest()[:8]}", package, lock)
    except NotInstallableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def site(site_packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built pages."""
    folder = tmp_path_factory.mktemp("site")
    build_site(folder, site_packages)
    return folder


def build_site(folder: Path, packages: Path) -> None:
    command = [sys.executable, str(SITE / "build.py"), "--packages", str(packages), "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
