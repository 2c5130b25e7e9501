"""The catalog's own session: derived from the user's, never changing it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from catalog.errors import UnsuitableSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# What the statements mean depends on these; a session that refuses one cannot be used.
_MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true",
}

# These make small commits quick or recognise one's own commit; a platform may refuse to set them.
_COMFORT = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stalenessLimit": "0",
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
}

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
LAST_VERSION = "spark.databricks.delta.lastCommitVersionInSession"

# Left in a session, these make a MERGE skip itself or carry somebody else's metadata.
_FOREIGN = (
    "spark.databricks.delta.write.txnAppId",
    "spark.databricks.delta.write.txnVersion",
    "spark.databricks.delta.write.txnVersion.autoReset.enabled",
    USER_METADATA,
    LAST_VERSION,
)


def is_connect(spark: SparkSession) -> bool:
    """True for a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def own_session(spark: SparkSession) -> SparkSession:
    """A session of the same application with the settings that the catalog relies on."""
    # A clone copies the user's settings, a new session starts from the application's: in both
    # what matters is set here.
    own: SparkSession = spark.cloneSession() if is_connect(spark) else spark.newSession()  # type: ignore[attr-defined]
    for name in _FOREIGN:
        own.conf.unset(name)
    for name, value in _MEANING.items():
        try:
            own.conf.set(name, value)
        except PySparkException as error:
            if own.conf.get(name, None) != value:
                raise UnsuitableSession(
                    f"The session refuses {name}={value}, which the catalog relies on; "
                    "allow it in the cluster's configuration.",
                    setting=name,
                    value=value,
                ) from error
    for name, value in _COMFORT.items():
        try:
            own.conf.set(name, value)
        except PySparkException:
            log.debug("The session refuses %s=%s; going on without it.", name, value)
    return own
