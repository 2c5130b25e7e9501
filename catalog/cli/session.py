"""Spark sessions: one that is started here, one of a Connect server, or that of spark-submit."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from catalog.errors import CatalogError, InvalidInput, UnsuitableSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = resources.files("catalog.cli") / "local.conf"
_JARS = "spark.jars.packages"
# What is fetched for the package of local.conf: with its dependencies, less what pyspark has.
_SIZE = "4 jars, 13 MB"
_LINES = 40
_PORT = 15002
_SEPARATOR = re.compile(r"\s*[=:]\s*|\s+")  # as in Java's properties files


def read_properties(text: str) -> dict[str, str]:
    """The settings of a Spark properties file."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (_SEPARATOR.split(line, 1) for line in lines if line and line[0] not in "#!")
    return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}


def settings(file: str | None = None) -> dict[str, str]:
    """The settings of a file, or those for a local catalog."""
    if file is None:
        return read_properties(LOCAL.read_text(encoding="utf-8"))
    try:
        return read_properties(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The properties file {file} cannot be read: {error}.") from error


def missing_jars(chosen: Mapping[str, str]) -> str | None:
    """The package that has to be fetched first, or none if an earlier session has fetched it."""
    package = chosen.get(_JARS, "")
    if package.count(":") != 2:
        return None
    group, artifact, version = package.split(":")
    here = any(_home().glob(f".ivy2*/jars/{group}_{artifact}-{version}.jar"))
    return None if here else package


def _home() -> Path:
    return Path(os.path.expanduser("~"))


def start(
    name: str, chosen: Mapping[str, str] | None = None, connect: bool = False, **more: str
) -> SparkSession:
    """Starts a session with these settings, those for a local catalog if none are given."""
    from pyspark.sql import SparkSession

    # Workers must have the packages that the driver has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    wanted = {**(settings() if chosen is None else chosen), **more}
    for setting, value in wanted.items():
        builder = builder.config(setting, value)
    with fetching_alone(wanted), warnings.catch_warnings():
        if not connect:
            return builder.getOrCreate()
        # The client sets everything once more on the server, which has the static settings already.
        warnings.filterwarnings("ignore", message="Failed to set spark")
        return builder.config("spark.api.mode", "connect").getOrCreate()


@contextmanager
def fetching_alone(chosen: Mapping[str, str]) -> Iterator[None]:
    """Keeps other processes of the user from fetching the jars at the same time.

    Ivy's cache is not made for that: of two first sessions at once, both fail.
    """
    if missing_jars(chosen) is None:
        yield
        return
    with open(_home() / ".strata-fetching.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def local(
    chosen: Mapping[str, str], verbose: bool, tell: Callable[[str], None]
) -> Iterator[SparkSession]:
    """Starts Spark in this process. Its log goes to a file, kept after unexpected errors."""
    package = missing_jars(chosen)
    if package is not None:
        size = f" ({_SIZE})" if package == settings().get(_JARS) else ""
        tell(f"Fetching {package}{size}; later starts use the copy in {_home()}/.ivy2…")
    tell("Starting Spark, which takes about ten seconds …")
    _hush_the_client(verbose)
    if verbose:
        yield from _running(start("strata", chosen))
        return
    with tempfile.NamedTemporaryFile(
        "w+", prefix="strata-spark-", suffix=".log", delete=False
    ) as noise:
        try:
            with _written_to(noise.fileno()):
                spark = start("strata", chosen)
        except Exception as error:
            noise.seek(0)
            tell("".join(_without_frames(noise)[-_LINES:]).rstrip())
            os.unlink(noise.name)
            raise UnsuitableSession(
                f"Spark could not be started: {str(error).rstrip('.')}. What it wrote is above; "
                "it needs Java 17 on the PATH."
            ) from error
        kept = False
        try:
            yield from _running(spark)
        except Exception as error:
            kept = not isinstance(error, CatalogError)  # which says itself what is wrong
            if kept:
                tell(f"What Spark wrote is in {noise.name}")
            raise
        finally:
            if not kept:
                os.unlink(noise.name)


def _without_frames(noise: Iterable[str]) -> list[str]:
    """What Spark wrote, without the frames of its stack traces."""
    return [line for line in noise if not line.startswith(("\tat ", "\t... "))]


def _running(spark: SparkSession) -> Iterator[SparkSession]:
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def remote(url: str, verbose: bool, tell: Callable[[str], None]) -> Iterator[SparkSession]:
    """Connects to a Spark Connect server; nothing is started and nothing is stopped there."""
    from pyspark.sql import SparkSession

    _check_reachable(url)
    tell(f"Connecting to {url} …")
    _hush_the_client(verbose)
    yield from _running(SparkSession.builder.remote(url).getOrCreate())


def _check_reachable(url: str) -> None:
    """Raises if no server listens: the client itself would retry silently for minutes."""
    parts = urlsplit(url)
    if parts.scheme != "sc" or not parts.hostname:
        raise InvalidInput(f"A server is named as sc://host:port, not {url!r}.", remote=url)
    try:
        socket.create_connection((parts.hostname, parts.port or _PORT), timeout=10).close()
    except OSError as error:
        raise UnsuitableSession(f"No server answers at {url}: {error}.", remote=url) from error


@contextmanager
def submitted(verbose: bool = False) -> Iterator[SparkSession]:
    """The session of spark-submit or of a notebook, which brought its own settings."""
    from pyspark.sql import SparkSession

    _hush_the_client(verbose)
    # It is not stopped here: its owner does so, and a managed cluster must not be stopped.
    yield SparkSession.builder.getOrCreate()


def _hush_the_client(verbose: bool) -> None:
    # The client logs every error of Spark, also those that are caught and handled.
    if not verbose:
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


@contextmanager
def _written_to(descriptor: int) -> Iterator[None]:
    """Redirects the output of a process that is started inside, which keeps the streams."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        for target, original in zip((1, 2), saved, strict=True):
            os.dup2(original, target)
            os.close(original)
