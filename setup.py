"""The optional extensions; all else is in pyproject.toml.

SBBF_WITHOUT_EXTENSIONS=1 builds the wheel `py3-none-any`, whose numpy kernel does the same work.
"""

import os
import sysconfig

from setuptools import Extension, setup

# Where an extension cannot be built, the numpy kernel does the same work, footers are parsed as a
# whole, pages are read one by one, and so are files.
EXTENSIONS = [
    Extension(
        "sbbf_tool.bloom._kernel",
        ["sbbf_tool/bloom/_kernel.c"],
        depends=[
            "sbbf_tool/bloom/_cpu.h",
            "sbbf_tool/bloom/_sbbf.h",
            "sbbf_tool/bloom/_variants.h",
            "sbbf_tool/bloom/_xxh64.h",
        ],
        # Vectors are passed between functions that are always inlined; no calling convention is
        # involved.
        extra_compile_args=["-O3", "-Wno-psabi"],
        optional=True,
    ),
    Extension(
        "sbbf_tool.parquet._compact",
        ["sbbf_tool/parquet/_compact.c"],
        depends=["sbbf_tool/parquet/_definition.h", "sbbf_tool/parquet/_protocol.h"],
        extra_compile_args=["-O3"],
        optional=True,
    ),
    Extension(
        "sbbf_tool.parquet._pages",
        ["sbbf_tool/parquet/_pages.c"],
        depends=[
            "sbbf_tool/parquet/_codecs.h",
            "sbbf_tool/parquet/_crc32.h",
            "sbbf_tool/parquet/_levels.h",
            "sbbf_tool/parquet/_page_header.h",
            "sbbf_tool/parquet/_page_run.h",
            "sbbf_tool/parquet/_protocol.h",
            "sbbf_tool/parquet/_snappy.h",
        ],
        extra_compile_args=["-O3"],
        optional=True,
    ),
    Extension(
        "sbbf_tool.parquet._scan",
        ["sbbf_tool/parquet/_scan.c"],
        depends=[
            "sbbf_tool/bloom/_cpu.h",
            "sbbf_tool/bloom/_sbbf.h",
            "sbbf_tool/bloom/_xxh64.h",
            "sbbf_tool/parquet/_codecs.h",
            "sbbf_tool/parquet/_confirm.h",
            "sbbf_tool/parquet/_crc32.h",
            "sbbf_tool/parquet/_definition.h",
            "sbbf_tool/parquet/_fit.h",
            "sbbf_tool/parquet/_levels.h",
            "sbbf_tool/parquet/_page_header.h",
            "sbbf_tool/parquet/_page_run.h",
            "sbbf_tool/parquet/_protocol.h",
            "sbbf_tool/parquet/_scan.h",
            "sbbf_tool/parquet/_snappy.h",
        ],
        extra_compile_args=["-O3", "-Wno-psabi"],
        optional=True,
    ),
]

settings: dict[str, object] = {}
if not os.environ.get("SBBF_WITHOUT_EXTENSIONS"):
    settings["ext_modules"] = EXTENSIONS
    # Free-threaded Python has no limited API: there, an extension serves one version.
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        for extension in EXTENSIONS:
            extension.py_limited_api = True
        settings["options"] = {"bdist_wheel": {"py_limited_api": "cp311"}}

setup(**settings)
