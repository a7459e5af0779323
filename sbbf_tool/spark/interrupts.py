"""Interrupts of a run: the driver stops waiting at once, and executors remove what they had begun.

py4j sends the calls of a thread through one connection, one after the other. A thread that is interrupted in a call would have to wait for
its end before it could stop the session, so jobs run in a thread of their own. When Spark stops, it ends the Python workers by SIGHUP.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.spark.causes import convert_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")


def wait_for(spark: SparkSession, job: Callable[[], Result]) -> Result:
    """Run a job in another thread and return its result, so that an interrupt of this thread ends the wait; see `convert_errors`."""
    from pyspark import InheritableThread

    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(job())
        except BaseException as error:
            future.set_exception(error)

    with convert_errors():
        if not is_classic(spark):
            return job()  # a client of Spark Connect can be interrupted
        InheritableThread(target=run, name="sbbf-job", daemon=True).start()
        return future.result()


def is_classic(spark: SparkSession) -> bool:
    """Return whether the session has a driver in this process, and is no client of Spark Connect."""
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def cancel_jobs(spark: SparkSession) -> None:
    """Cancel the jobs of the session, as far as they can still be reached."""
    with suppress(Exception):
        if is_classic(spark):
            spark.sparkContext.cancelAllJobs()
        else:
            spark.interruptAll()


@contextmanager
def keep_interrupt_handler() -> Iterator[None]:
    """Keep this process's handler of SIGINT; PySpark sets one for each session, which waits for the end of the job."""
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
    """Raise SystemExit where this worker is while the block runs, when Spark ends it, so that its temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGHUP, signal.SIGTERM)
    before = [signal.signal(number, _end) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _end(number: int, frame: object) -> None:
    # A second signal must not interrupt the removal of files.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1)
