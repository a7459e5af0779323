"""A Spark session with a supported Java, workers that run this Python, and no log: errors are
raised."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import sbbf_tool
from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.hints import install_extra
from sbbf_tool.spark.causes import (
    end_starting_jvm,
    find_cause,
    is_of_spark,
    quiet_about_pandas,
)
from sbbf_tool.spark.java import Version, find_java, home_without_vector_module, scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_SPARK: Version = (3, 5)
FIRST_WITH_DATA_SOURCES: Version = (4, 0)
"""The first version of Spark with data sources in Python."""

_ANSWER_SECONDS = 20
_MASTER = re.compile(r"local($|\[|-cluster\[)|spark://|yarn$|k8s://|sc://")
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Workers start in the current folder, but must not import modules from it.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # Spark kills a worker of a cancelled task after this time, so that its files stay. When the
    # session ends first, the worker removes them; on a busy machine that takes more than the
    # usual two seconds.
    "spark.python.task.killTimeout": "30s",
}
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_LOG4J = """\
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = fatal
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{1}
"""


def session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session of this process, or start a new one.

    `master` is a cluster's address, that of a Spark Connect server (`sc://host`), or `local[2]` for
    example; if None, Spark's own configuration determines it. `conf` overrides the settings of this
    tool. Raises UsageError if PySpark 3.5 or newer or a supported Java is missing, or if Spark does
    not start.
    """
    if master is not None and not _MASTER.match(master):
        hint = (
            "the masters are local[N], spark://host:port, yarn, k8s://https://host:port "
            "and sc://host:port"
        )
        raise UsageError(f"unknown master {master!r}", hint=hint)
    version = spark_version()
    _ensure_answer(master or "")
    settings = dict(conf or {})
    variables = {}
    if not is_connect(master):
        variables = _prepare(version, master)
        settings = {**_SETTINGS, **settings, **_quiet(settings.get(_JVM_OPTIONS, ""))}
    with quiet_about_pandas():
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("sbbf")
        if master is not None:
            builder = builder.remote(master) if is_connect(master) else builder.master(master)
        for name, value in settings.items():
            builder = builder.config(name, value)
        try:
            with _environment(variables):
                return builder.getOrCreate()
        except (KeyboardInterrupt, SystemExit) as error:
            end_starting_jvm(error)
            raise
        except Exception as error:
            if not is_of_spark(error):
                raise
            reason = find_cause(str(error)) or type(error).__name__
            raise UsageError(
                f"Spark failed to start: {reason}", place=redact(master or "") or None
            ) from error


def is_connect(master: str | None) -> bool:
    """Return whether this is the address of a Spark Connect server."""
    return (master or "").startswith("sc://")


def _ensure_answer(address: str) -> None:
    """Raise UsageError if the server of an `sc://` or `spark://` address does not answer: Spark
    itself would try for minutes."""
    reason = None
    if is_connect(address):
        reason = _call_connect_server(address)
    elif address.startswith("spark://"):
        reason = _call_masters(address)
    if reason is not None:
        raise UsageError(
            f"the server cannot be reached: {reason}",
            place=redact(address),
            hint="check the address and the network",
        )


def _call_connect_server(address: str) -> str | None:
    """Connect to the server of an `sc://` address; return why that fails, or None."""
    try:
        grpc = import_module("grpc")
        with quiet_about_pandas():
            core = import_module("pyspark.sql.connect.client.core")
    except ImportError:
        return None  # Spark says what is missing
    builder = getattr(core, "DefaultChannelBuilder", None) or core.ChannelBuilder
    try:
        with builder(address).toChannel() as channel:
            grpc.channel_ready_future(channel).result(timeout=_ANSWER_SECONDS)
    except grpc.FutureTimeoutError:
        return f"no answer of a Spark Connect server within {_ANSWER_SECONDS} seconds"
    except Exception as error:
        return str(error)
    return None


def _call_masters(address: str) -> str | None:
    """Connect to one of the servers of a `spark://` address; return why the last one fails, or
    None."""
    reason = None
    servers = re.findall(r"(\[[^]]*\]|[^:,/]+):(\d+)", address.removeprefix("spark://"))
    for host, port in servers:
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
        except (OSError, OverflowError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
        else:
            return None
    return reason


def spark_version() -> Version:
    """Return the version of the installed PySpark. Raises UsageError if it is missing or too old,
    or if pandas is missing."""
    try:
        import pyspark
    except ImportError as error:
        raise UsageError("PySpark is not installed", hint=install_extra("spark")) from error
    version = _version_of(pyspark.__version__)
    if version < OLDEST_SPARK:
        raise UsageError(
            f"PySpark {pyspark.__version__} is too old: 3.5 is the first that is supported",
            hint=install_extra("spark"),
        )
    if version < (4, 0) and find_spec("distutils") is None:
        # Python 3.12 removed it; setuptools brings it.
        raise UsageError(
            f"PySpark {pyspark.__version__} needs distutils, and it is not installed",
            hint="pip install setuptools",
        )
    if find_spec("pandas") is None:
        raise UsageError(
            "PySpark needs pandas for programs in Python, and it is not installed",
            hint=install_extra("spark"),
        )
    return version


def _version_of(text: str) -> Version:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def describe_missing_data_sources() -> str | None:
    """Describe why the installed PySpark has no `format("sbbf")`; return None if it has data
    sources in Python."""
    import pyspark

    if _version_of(pyspark.__version__) >= FIRST_WITH_DATA_SOURCES:
        return None
    return (
        f"PySpark {pyspark.__version__} has no data sources in Python: format('sbbf') needs 4.0; "
        "with 3.5, use the functions of SQL or "
        "sbbf_tool.spark.run"
    )


def version_check() -> Callable[[], None]:
    """Return a function for executors, which raises UsageError if the package there is known to
    have another version than here.

    It is pickled by value: an executor with another version need not have it.
    """
    here = sbbf_tool.__version__

    def ensure_same() -> None:
        import sbbf_tool
        from sbbf_tool.errors import UsageError

        there = sbbf_tool.__version__
        if here != there and "unknown" not in (here, there):
            hint = "install the same version there, or send it as a zip"
            raise UsageError(
                f"executors have sbbf-tool {there}, and the driver has {here}", hint=hint
            )

    return ensure_same


def _prepare(version: Version, master: str | None) -> dict[str, str]:
    """Set the environment variables that workers need, and return those that only the start of the
    JVM needs."""
    # Workers of data sources inherit PYTHONSAFEPATH only from the JVM.
    variables = {"PYTHONSAFEPATH": "1"}
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # spark-submit started this process, and has set Java and the Python of the workers.
        return variables
    if not (master or "").startswith(("yarn", "k8s")):
        # By default, workers run the `python3` on their PATH. The path of this interpreter is
        # meaningless on other machines.
        python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if shutil.which(python) is None:
            raise UsageError(
                f"PYSPARK_PYTHON is {python!r}, and there is no such program",
                hint="set it to a Python, or unset it",
            )
    if (master or "").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return {**variables, "JAVA_HOME": home_without_vector_module(find_java(version))}


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while the block runs."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _quiet(jvm_options: str) -> dict[str, str]:
    """Return the setting that makes Spark log nothing that it raises, from its start; empty if the
    environment may configure the log."""
    if any(name in os.environ for name in ("SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_GATEWAY_PORT")):
        return {}
    return {
        _JVM_OPTIONS: f"{shlex.quote(f'-Dlog4j2.configurationFile={_log_configuration()}')} "
        f"{jvm_options}".rstrip()
    }


@cache
def _log_configuration() -> str:
    path = scratch_folder("logging") / "log4j2.properties"
    path.write_text(_LOG4J)
    return str(path)
