"""A local Spark session from the settings in conf/, for the demo and the tests.

Jobs that are run by spark-submit do not use this: their session comes from the cluster.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

CONF = Path(__file__).resolve().parent.parent / "conf" / "local.conf"


def settings(file: Path = CONF) -> dict[str, str]:
    """The settings of a Spark properties file."""
    lines = (line.strip() for line in file.read_text().splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


def jars_are_here() -> bool:
    """Whether an earlier session has fetched the Delta jars."""
    package = settings()["spark.jars.packages"]
    group, artifact, version = package.split(":")
    return any(Path.home().glob(f".ivy2*/jars/{group}_{artifact}-{version}.jar"))


def start(name: str, connect: bool = False, **more: str) -> SparkSession:
    """Starts a session; says so first, because it takes seconds, and what it has to fetch."""
    if not jars_are_here():
        package = settings()["spark.jars.packages"]
        print(f"Fetching the Delta jars once: {package} and 3 that it needs, 12 MB …", flush=True)
    # Workers must have the packages that the driver has.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for setting, value in {**settings(), **more}.items():
        builder = builder.config(setting, value)
    if not connect:
        return builder.getOrCreate()
    with warnings.catch_warnings():
        # The client sets everything once more on the server, which has the static settings already.
        warnings.filterwarnings("ignore", message="Failed to set spark")
        return builder.config("spark.api.mode", "connect").getOrCreate()
