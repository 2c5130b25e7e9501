"""Sessions for the tests, from the settings that spark-submit and the demo use too."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

from catalog.cli.session import start as start_local

ROOT = Path(__file__).resolve().parent.parent
CONNECT = os.environ.get("STRATA_TEST_CONNECT") == "1"

# Eight slots: statements that a test holds up must leave room for the others.
MASTER = "local[8]"


# Small data: planning and compiling cost more than running. Delta's own log store for local files
# starts no process for each of them, which Hadoop's does. `make stress` runs with the defaults.
QUICK = (
    {}
    if os.environ.get("STRATA_TEST_DEFAULTS") == "1"
    else {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    }
)

# Tests run much code a few times: to compile it well took a quarter of the time of two workers on
# two cores. With one compiler the JVM keeps little room for its code; that of a long run is more.
# Most objects live as long as a statement: with room for them they need not be looked through.
SHORT_LIVED = {
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xmn384m"
    )
}


def start(
    master: str = MASTER, connect: bool = False, defaults: bool = False, **more: str
) -> SparkSession:
    """A new session for tests; with `defaults`, one as users have it."""
    settings = {"spark.master": master, **({} if defaults else QUICK), **more}
    return start_local("strata-tests", connect=connect, **settings)
