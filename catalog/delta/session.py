"""The catalog's own session: derived from the user's, never changing it."""

from __future__ import annotations

import atexit
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from catalog.errors import UnsuitableSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# The meaning of statements depends on these; a session that refuses one cannot be used.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true",
}

# These make small commits fast or recognise one's own commit; a platform may refuse them.
_COMFORT = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stalenessLimit": "0",
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    # Larger sources are distributed: up to 48 MB Spark would keep them in the plan, and the driver
    # would process them row by row.
    "spark.sql.execution.arrow.localRelationThreshold": "1MB",
}

# Planning and code generation take longer than running a commit of a few rows.
_SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
# Large statements run with the application's settings; with Spark's defaults where unknown.
_LARGE = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.shuffle.partitions": "200",
}

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"

# Left in a session, these make a MERGE skip itself or record other metadata.
_FOREIGN = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.write.txnVersion.autoReset.enabled",
    USER_METADATA,
    LAST_VERSION,
)


@dataclass(frozen=True)
class Tuning:
    """Settings for statements of few rows, and for statements of many."""

    small: dict[str, str]
    large: dict[str, str]

    @property
    def between(self) -> dict[str, str]:
        """For reads between statements, which may be large but hardly shuffle."""
        return {**self.large, "spark.sql.shuffle.partitions": "1"}


def tuning(spark: SparkSession) -> Tuning:
    """The settings for an application with this session."""
    large = {name: _value(spark, name) or value for name, value in _LARGE.items()}
    return Tuning(small=_SMALL, large=large)


def is_connect(spark: SparkSession) -> bool:
    """True for a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def own_session(spark: SparkSession) -> SparkSession:
    """A session of the same application with the settings that the catalog relies on."""
    # A clone copies the user's settings, a new session starts from the application's: in both
    # what matters is set here.
    own: Any = _clone(spark) if is_connect(spark) else spark.newSession()
    for name in _FOREIGN:
        own.conf.unset(name)
    for name, value in _MEANING.items():
        if _value(own, name) == value:
            continue  # setting a deprecated one warns, even to its default
        try:
            own.conf.set(name, value)
        except PySparkException as error:
            raise UnsuitableSession(
                f"The session refuses {name}={value}, which the catalog relies on; "
                "allow it in the cluster's configuration.",
                setting=name,
                value=value,
            ) from error
    tune(own, _COMFORT)
    return own  # type: ignore[no-any-return]


def _value(session: Any, name: str) -> str | None:
    try:
        value: str | None = session.conf.get(name)
    except PySparkException:
        return None  # neither set nor known
    return value


def _clone(spark: Any) -> Any:
    own = spark.cloneSession()
    # At exit the client sends a last command to its server, and tries for ten minutes if that is
    # gone. This runs before it, and a closed client sends nothing.
    atexit.register(own.client.close)
    return own


def release(own: Any) -> None:
    """Ends a session of the catalog's own; on classic Spark there is nothing to end."""
    if is_connect(own) and not own.client.is_closed:
        own.client.release_session()
        own.client.close()
        atexit.unregister(own.client.close)


def tune(session: SparkSession, settings: dict[str, str]) -> None:
    """Sets what only makes statements faster; settings that the session refuses are skipped."""
    for name, value in settings.items():
        try:
            session.conf.set(name, value)
        except PySparkException:
            log.debug("The session refuses %s=%s; going on without it.", name, value)
