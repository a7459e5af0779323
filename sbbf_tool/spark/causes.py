"""How the work of Spark ends: its errors as errors of this package, one line with the cause and
what to do about it, and interrupts.

Spark puts the cause into the middle of a long text: below the trace of a Python worker, behind the
call of py4j, or among `Caused by:` lines. If the JVM of the driver has ended, there is no text at
all, only a connection that fails.

After an interrupt, the driver stops waiting at once, and executors remove what they had begun. py4j
sends the calls of a thread through one connection, one after the other. A thread that is
interrupted in a call would have to wait for its end before it could stop the session, so jobs run
in a thread of their own. When Spark stops, it ends the Python workers by SIGHUP.
"""

from __future__ import annotations

import logging
import re
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from inspect import signature
from traceback import walk_tb
from typing import IO, TYPE_CHECKING, Any, TypeVar

from sbbf_tool import errors
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.storage.interrupts import forget_interrupt, interrupt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_OURS = re.compile(r"sbbf_tool\.errors\.(\w+): (.*)")
_NO_TABLE = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view (\S+) cannot be found")
_NO_MODULE = re.compile(r"^(?:ModuleNotFoundError|ImportError): No module named ('[^']+')")
_TRACEBACK = "Traceback (most recent call last):"
_FAILURE = re.compile(
    r"most recent failure: (?:Lost task [^\n]*?\(TID \d+\) \([^)\n]*\): )?([^\n]*)"
)
_CAUSE = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_RPC_DETAILS = re.compile(r'details = "(.*)"')
_LOST_WORKER = "Python worker exited unexpectedly"
_SECONDS_TO_END = 2
_SECONDS_OF_LAUNCHER = 10
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

_AGAIN = "files that are published stay changed; run the command again"
_ON_EXECUTORS = (
    "install this package and its dependencies for the Python of the executors "
    "(PYSPARK_PYTHON), or send the package with --py-files"
)
_PYTHON = "set PYSPARK_PYTHON to a Python of the driver's version that exists on every executor"
_EXECUTOR_MEMORY = (
    "if it ran out of memory, raise spark.executor.memoryOverhead, or lower spark.executor.cores; "
    + _AGAIN
)
_DRIVER_MEMORY = "if it ran out of memory, raise spark.driver.memory; " + _AGAIN
_HINTS = (
    (re.compile(r"^ModuleNotFoundError|^ImportError|PACKAGE_NOT_INSTALLED"), _ON_EXECUTORS),
    (re.compile(r"PYTHON_VERSION_MISMATCH|different version|Cannot run program"), _PYTHON),
    (
        re.compile(
            rf"^MemoryError|OutOfMemory|ExecutorLostFailure|exited with code 137|{_LOST_WORKER}"
        ),
        _EXECUTOR_MEMORY,
    ),
    (
        re.compile("No space left on device"),
        "free space in spark.local.dir, or set it to a larger folder; " + _AGAIN,
    ),
    (re.compile(r"maxResultSize"), "raise spark.driver.maxResultSize; " + _AGAIN),
)
"""What to do, by what the cause matches."""


@contextmanager
def convert_errors() -> Iterator[None]:
    """Convert Spark's errors to errors of this package: its own errors on executors keep their
    class, others become one line."""
    with quiet_pyspark(), quiet_about_pandas():
        try:
            yield
        except Exception as error:
            if not is_of_spark(error):
                raise
            converted = convert_error(error)
            # Where the hint says what to do, the traces of Java and of the worker would only hide
            # it.
            if converted.hint:
                raise converted from None
            raise converted from error


def is_of_spark(error: Exception) -> bool:
    """Return whether Spark or the connection to it raised the error. py4j raises the errors of the
    JVM for which PySpark has no class, and PySpark those of its files in `spark.local.dir`."""
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException | ConnectionError | EOFError):
        return True
    modules = [type(error).__module__]
    if isinstance(error, OSError):
        modules += [frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__)]
    return any(module.startswith(("pyspark.", "py4j.", "grpc.")) for module in modules)


def convert_error(error: Exception) -> SbbfError:
    """Return the error of this package for an error of Spark."""
    from pyspark.errors import PySparkException

    message = str(error)
    ours = _OURS.search(message)
    if ours is not None and hasattr(errors, ours[1]):
        kind: type[SbbfError] = getattr(errors, ours[1])
        return kind(ours[2])
    if table := _NO_TABLE.search(message):
        return UsageError(f"there is no table or view {table[1]} in Spark's catalog")
    if isinstance(error, PySparkException) and "[PATH_NOT_FOUND]" in message:
        path = (error.getMessageParameters() or {}).get("path", "")
        return UnreadableError("no such file or directory", file=path.removeprefix("file:"))
    has_answer = isinstance(error, PySparkException) or type(error).__name__ == "Py4JJavaError"
    if not has_answer and (ending := describe_ending()):
        return SbbfError(f"Spark failed: {ending}", hint=_DRIVER_MEMORY)
    cause = find_cause(message) or type(error).__name__
    if module := _NO_MODULE.match(cause):
        return SbbfError(f"the executors have no Python module {module[1]}", hint=_ON_EXECUTORS)
    hint = None if has_answer else _AGAIN
    for pattern, advice in _HINTS:
        if pattern.search(cause):
            hint = advice
            break
    return SbbfError(f"Spark failed: {cause}", hint=hint)


def find_cause(text: str) -> str:
    """Return the cause in the text of an error of Spark, in one line without a full stop.

    This is the last line of the last trace of Python; without one, the reason of the failed task,
    or the innermost Java exception.
    """
    if _TRACEBACK in text:
        lines = text.rpartition(_TRACEBACK)[2].splitlines()
        for line in lines[1:]:
            if line[:1].strip():
                return line.strip().rstrip(".:;, ")
    task = _FAILURE.search(text)
    causes = _CAUSE.findall(text if task is None else text[task.end() :])
    if task is not None and (not causes or _LOST_WORKER in task[1]):
        cause = task[1].partition(" Consider setting")[0]
    elif causes:
        cause = causes[-1]
    elif details := _RPC_DETAILS.search(text):
        cause = details[1]
    else:
        lines = [line for line in text.splitlines() if line.strip()]
        # py4j names its own call in the first line, and the exception in the second.
        exceptions = [line[2:] for line in lines if line.startswith(": ")]
        cause = next(iter(exceptions or lines), "")
    # A hint may follow, after other punctuation.
    return cause.strip().removeprefix("org.apache.spark.SparkException: ").rstrip(".:;, ")


@contextmanager
def quiet_pyspark() -> Iterator[None]:
    """Keep PySpark and py4j from printing errors that they also raise: failed queries, and a lost
    connection, with the root logger."""
    loggers = _loggers()
    for logger in loggers:
        logger.addFilter(_is_by_others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_by_others)


@contextmanager
def quiet_about_pandas() -> Iterator[None]:
    """Ignore the warning of PySpark 4 about pandas 3.0 and newer; this package does not use
    pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="PySpark does not yet fully support pandas", category=FutureWarning
        )
        yield


def describe_ending() -> str | None:
    """Describe how the JVM of the driver has ended; return None if it has not, or if another
    process started it."""
    context = sys.modules.get("pyspark")
    gateway = context.SparkContext._gateway if context is not None else None
    process = getattr(gateway, "proc", None)
    if process is None:
        return None
    with suppress(Exception):
        process.wait(_SECONDS_TO_END)
    code = process.poll()
    if code is None:
        return None
    if code < 0:
        return f"the driver's JVM was killed by signal {-code}"
    return f"the driver's JVM ended with exit code {code}"


def _loggers() -> list[logging.Logger]:
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:  # PySpark 3.5 logs only with the root logger
        return [logging.getLogger()]
    # PySpark needs loggers of its own class: the first call with a name determines the class.
    return [logging.getLogger(), *(PySparkLogger.getLogger(name) for name in _QUERY_LOGGERS)]


def _is_by_others(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname and record.name not in _QUERY_LOGGERS


Result = TypeVar("Result")


def wait_for(spark: SparkSession, job: Callable[[], Result]) -> Result:
    """Run a job in another thread and return its result, so that an interrupt of this thread ends
    the wait; see `convert_errors`."""
    with convert_errors():
        if not is_classic(spark):
            return job()  # a client of Spark Connect can be interrupted
        return start(spark, job).result()


def start(spark: SparkSession, job: Callable[[], Result], tag: str | None = None) -> Future[Result]:
    """Run a job in another thread, with the properties that jobs of this thread have, and with a
    tag by which `cancel_jobs` finds it."""
    from pyspark import InheritableThread

    future: Future[Result] = Future()

    def run() -> None:
        try:
            if tag is not None and is_classic(spark):
                spark.sparkContext.addJobTag(tag)
            elif tag is not None:
                spark.addTag(tag)
            future.set_result(job())
        except BaseException as error:
            future.set_exception(error)

    options: dict[str, Any] = {"name": "sbbf-job", "daemon": True}
    # PySpark 3.5 takes no session, and later releases need that of Spark Connect.
    if not is_classic(spark) and "session" in signature(InheritableThread).parameters:
        options["session"] = spark
    InheritableThread(run, **options).start()
    return future


def is_classic(spark: SparkSession) -> bool:
    """Return whether the session has a driver in this process, and is no client of Spark
    Connect."""
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def cancel_jobs(spark: SparkSession, tag: str) -> None:
    """Cancel the jobs that were started with this tag, as far as they can still be reached."""
    with suppress(Exception):
        if is_classic(spark):
            spark.sparkContext.cancelJobsWithTag(tag)
        else:
            spark.interruptTag(tag)


def cancel_all_jobs(spark: SparkSession) -> None:
    """Cancel the jobs of the session, as far as they can still be reached."""
    with suppress(Exception):
        if is_classic(spark):
            spark.sparkContext.cancelAllJobs()
        else:
            spark.interruptAll()


def end_starting_jvm(interrupt: BaseException) -> None:
    """Kill the JVM for which PySpark waited when it was interrupted, and wait until the processes
    that launch it have ended too.

    It would otherwise run for ever, and print that the folder of its answer is gone. The launcher's
    shell starts a Java to get the command of the JVM; that shell is not killed, and would print
    that the home which `home_without_vector_module` created is gone.
    """
    for frame, _ in walk_tb(interrupt.__traceback__):
        process = frame.f_locals.get("proc")
        if frame.f_code.co_name == "launch_gateway" and process is not None:
            process.kill()
            _wait_for_readers(process.stdin)


def _wait_for_readers(pipe: IO[bytes]) -> None:
    """Wait until no process has the end of this pipe open from which one reads: PySpark gives it to
    the launcher as standard input, and all its processes inherit it."""
    readers = select.poll()
    readers.register(pipe, 0)
    readers.poll(_SECONDS_OF_LAUNCHER * 1000)


@contextmanager
def keep_interrupt_handler() -> Iterator[None]:
    """Keep this process's handler of SIGINT; PySpark sets one for each session, which waits for the
    end of the job."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def end_with_spark() -> Iterator[None]:
    """Raise SystemExit where this worker is while the block runs, when Spark ends it, so that its
    temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGHUP, signal.SIGTERM)
    before = [signal.signal(number, _end) for number in signals]
    try:
        yield
    finally:
        forget_interrupt()
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _end(number: int, frame: object) -> None:
    # A second signal must not interrupt the removal of files.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupt(SystemExit(1))
