"""I3: every fingerprint that a row refers to leads to a payload, live or retired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from catalog.verify.report import Findings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_references(found: Findings, pinned: str) -> None:
    """The references at one version, those of staged changes too."""
    found.expect_none(
        "I3",
        "a fingerprint leads to no payload",
        f"SELECT s.kind, s.key, s.fingerprint FROM {pinned} AS s LEFT ANTI JOIN "
        f"(SELECT key FROM {pinned} WHERE kind IN ('schema', 'retired') "
        "AND payload IS NOT NULL) AS d ON s.fingerprint = d.key "
        "WHERE s.kind NOT IN ('schema', 'retired') AND s.fingerprint IS NOT NULL",
    )


def check_references_always(found: Findings, events: DataFrame) -> None:
    """The references at every version: `events` says when each row came (1) and went (-1)."""
    per_version = (
        events.where("fingerprint IS NOT NULL")
        .selectExpr(
            "fingerprint",
            "version",
            "IF(kind IN ('schema', 'retired'), delta, 0) AS definition",
            "IF(kind IN ('schema', 'retired'), 0, delta) AS reference",
        )
        .groupBy("fingerprint", "version")
        .agg(F.sum("definition").alias("definition"), F.sum("reference").alias("reference"))
    )
    window = "OVER (PARTITION BY fingerprint ORDER BY version)"
    totals = per_version.selectExpr(
        "fingerprint",
        "version",
        f"sum(definition) {window} AS definitions",
        f"sum(reference) {window} AS references",
    )
    found.expect_none(
        "I3",
        "a fingerprint was referred to and led to no payload",
        totals.where("references > 0 AND definitions <= 0"),
    )
