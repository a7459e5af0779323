"""From source distribution to installed package, with a C compiler and without one. Offline, in a
copy of the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.tables import each

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.nightly

WHICH_KERNEL = """
from sbbf_tool.bloom import kernels
from sbbf_tool.bloom.filter import BloomFilter
bloom = BloomFilter.empty(64)
bloom.insert_hashes(bytes(8))
from sbbf_tool.parquet import footer_structs
print(kernels.__file__, kernels.describe(), bloom.bits_set, footer_structs.describe(), sep="\\n")
"""


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.partition(".")[0]) < 77:
        pytest.skip(f"setuptools {setuptools.__version__} does not know all of pyproject.toml")
    pytest.importorskip("pip")
    work = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, work)
    shutil.copytree(
        ROOT / "sbbf_tool", work / "sbbf_tool", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    run(
        sys.executable,
        "-c",
        "from setuptools import build_meta; build_meta.build_sdist('dist')",
        cwd=work,
    )
    (archive,) = (work / "dist").glob("*.tar.gz")
    return archive


@each(
    "compiler, kernel, footers",
    {
        "with a compiler": (None, "kernel: compiled (", "footers: indexed"),
        "without a compiler": (
            "no-such-compiler",
            "kernel: numpy (no compiled kernel: ",
            "footers: parsed as a whole",
        ),
    },
)
def test_an_installation_has_what_it_can_compile(
    source_distribution: Path, tmp_path: Path, compiler: str | None, kernel: str, footers: str
) -> None:
    if compiler is None and not shutil.which(os.environ.get("CC", "cc")):
        pytest.skip("there is no C compiler")
    environment = {"CC": compiler} if compiler else {}
    options = [
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "--target",
        str(tmp_path / "site"),
    ]
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        str(source_distribution),
        cwd=tmp_path,
        **environment,
    )
    kernel_name = run(
        sys.executable,
        "-c",
        WHICH_KERNEL,
        cwd=tmp_path,
        PYTHONPATH=str(tmp_path / "site"),
        SBBF_KERNEL="",
    )
    place, description, bits_set, walker = kernel_name.splitlines()
    assert Path(place).is_relative_to(tmp_path)
    assert description.startswith(kernel)
    assert walker.startswith(footers)
    assert bits_set == "8"
    libraries = {path.name for path in (tmp_path / "site").rglob("*.so")}
    built = {"_kernel.abi3.so", "_compact.abi3.so", "_pages.abi3.so", "_scan.abi3.so"}
    assert libraries == (set() if compiler else built)
