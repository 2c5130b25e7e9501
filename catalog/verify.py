"""Checks the promises I1 to I6 on a live catalog and names what it finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from catalog.cache.loader import Loader
from catalog.cache.snapshot import Position
from catalog.errors import InvalidSchema
from catalog.progress import Progress, Step, silent
from catalog.rows import DIGEST_SQL
from catalog.schema import Schema
from catalog.table.layout import SCHEMA_BUCKETS
from catalog.table.store import Store, commit_id_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN = 10

# A raw RESTORE is outside the promises: it brings old rows back with their old ids. A VACUUM is two
# versions and changes no row.
_NOT_CLAIMED = {"RESTORE", "VACUUM START", "VACUUM END"}


@dataclass(frozen=True)
class Violation:
    """A promise that does not hold, with some of the rows that show it."""

    promise: str
    what: str
    count: int
    rows: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        return f"{self.promise}: {self.what} ({self.count} found, such as {self.rows[0]})"


@dataclass(frozen=True)
class VerifyReport:
    """What was checked and what was found; `since` is none if one version was checked."""

    version: int
    since: int | None
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        reach = f"version {self.version}"
        if self.since is not None:
            reach = f"versions {self.since} to {self.version}"
        if self.ok:
            return f"All promises hold at {reach}."
        return "\n".join([f"At {reach}:", *(f"  {v}" for v in self.violations)])


class Verifier:
    """Checks one version, or every version of a range by one replay of the change feed."""

    def __init__(self, store: Store, buckets: int, progress: Progress = silent) -> None:
        self._store = store
        self._buckets = buckets
        self._progress = progress
        self._found: list[Violation] = []

    def verify(self, version: int, since: int | None) -> VerifyReport:
        """Checks what stands at `version`, and if wanted how it came about since another."""
        checks: list[tuple[str, Callable[[], None]]] = [
            (f"version {version}", partial(self._check_version, version))
        ]
        if since is not None and since < version:
            if since > 0:  # at version 0 the table is empty
                checks.append((f"version {since}", partial(self._check_version, since)))
            checks += self._range_checks(since, version)
        for done, (what, check) in enumerate(checks):
            self._progress(Step(f"verify: {what}", done, len(checks)))
            check()
        return VerifyReport(version, since, tuple(self._found))

    # --- one version ------------------------------------------------------------------------------

    def _check_version(self, version: int) -> None:
        pinned = self._store.pinned(version)
        self._check_definitions(pinned)
        self._expect_none(
            "I2",
            "more than one row for a key of a kind",
            f"SELECT kind, key, count(*) AS rows FROM {pinned} GROUP BY kind, key "
            "HAVING count(*) > 1",
        )
        self._expect_none(
            "I3",
            "a segment's fingerprint leads to no payload",
            f"SELECT s.kind, s.key, s.fingerprint FROM {pinned} AS s LEFT ANTI JOIN "
            f"(SELECT key FROM {pinned} WHERE kind IN ('schema', 'retired') "
            "AND payload IS NOT NULL) AS d ON s.fingerprint = d.key "
            "WHERE s.kind NOT IN ('schema', 'retired') AND s.fingerprint IS NOT NULL",
        )
        self._check_rows(pinned)

    def _check_rows(self, pinned: str) -> None:
        """What each row must say of itself, in one scan."""
        schema_bucket = f"pmod(xxhash64(key), {SCHEMA_BUCKETS})"
        segment_bucket = f"pmod(xxhash64(datasource), {self._buckets})"
        misplaced = (
            f"(kind IN ('schema', 'retired') AND bucket <> {schema_bucket}) OR (kind = 'segment' "
            f"AND (bucket <> {segment_bucket} OR datasource <> substring_index(key, '/', 1)))"
        )
        altered = f"kind = 'segment' AND digest <> {DIGEST_SQL}"
        rows = self._store.session.sql(
            f"SELECT kind, bucket, key, digest, {misplaced} AS misplaced, {altered} AS altered "
            f"FROM {pinned} WHERE {misplaced} OR ({altered})"
        )
        if not rows.limit(1).collect():
            return
        for promise, what, flag in (
            ("I2", "a row stands in a bucket where nobody looks for its key", "misplaced"),
            ("I5", "a segment's content does not have its digest", "altered"),
        ):
            self._expect_none(promise, what, rows.where(flag).drop("misplaced", "altered"))

    def _check_definitions(self, pinned: str) -> None:
        rows = self._store.session.sql(
            f"SELECT kind, key, digest, payload FROM {pinned} WHERE kind IN ('schema', 'retired')"
        )
        wrong = rows.mapInArrow(_wrong_definitions, "kind STRING, key STRING, problem STRING")
        self._expect_none("I1", "a fingerprint does not stand for its definition", wrong)
        self._expect_none(
            "I1",
            "a live and a retired schema share a fingerprint but not a definition",
            rows.groupBy("key")
            .agg(F.count_distinct("digest").alias("definitions"))
            .where("definitions > 1"),
        )

    # --- every version of a range -----------------------------------------------------------------

    def _range_checks(self, first: int, last: int) -> list[tuple[str, Callable[[], None]]]:
        store = self._store
        feed = store.changes(first + 1, last).selectExpr(
            "kind",
            "key",
            "fingerprint",
            "commit_id",
            "_commit_version AS version",
            "IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS delta",
        )
        events = feed
        if first > 0:  # at version 0 the table is empty
            events = feed.union(
                store.session.sql(
                    "SELECT kind, key, fingerprint, commit_id, "
                    f"CAST({first} AS BIGINT) AS version, 1 AS delta FROM {store.pinned(first)}"
                )
            )
        return [
            ("keys at every version", partial(self._check_uniqueness, events)),
            ("references at every version", partial(self._check_references, events)),
            ("commits", partial(self._check_commits, feed, first)),
            ("replay of the change feed", partial(self._check_replay, first, last)),
        ]

    def _check_uniqueness(self, events: DataFrame) -> None:
        per_version = events.groupBy("kind", "key", "version").agg(F.sum("delta").alias("net"))
        totals = per_version.selectExpr(
            "kind",
            "key",
            "version",
            "sum(net) OVER (PARTITION BY kind, key ORDER BY version) AS rows",
        )
        self._expect_none(
            "I2", "a key of a kind did not have one row or none", totals.where("rows NOT IN (0, 1)")
        )

    def _check_references(self, events: DataFrame) -> None:
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
        self._expect_none(
            "I3",
            "a fingerprint was referred to and led to no payload",
            totals.where("references > 0 AND definitions <= 0"),
        )

    def _check_commits(self, feed: DataFrame, first: int) -> None:
        history = self._store.history().select("version", "operation", "userMetadata").collect()
        ours = {
            int(row["version"]): commit_id_of(row["userMetadata"])
            for row in history
            if row["version"] > first and row["operation"] not in _NOT_CLAIMED
        }
        known = self._store.session.createDataFrame(
            list(ours.items()) or [(-1, "")],
            "version BIGINT, expected STRING",
        )
        # Each version's commit has an id of its own, so this also says that the rows of a commit
        # are at one version.
        claims = Counter(commit for commit in ours.values() if commit is not None)
        for commit, versions in claims.items():
            if versions > 1:
                row = {"commit_id": commit, "versions": versions}
                self._found.append(Violation("I4", "two versions claim one commit", 1, (row,)))
        self._expect_none(
            "I4",
            "a version holds rows that its commit does not claim",
            feed.where("delta = 1")
            .join(known, "version")
            .where("NOT commit_id <=> expected")
            .select("version", "kind", "key", "commit_id", "expected"),
        )

    def _check_replay(self, first: int, last: int) -> None:
        """I5 and I6: what polls arrive at is what a full read finds."""
        loader = Loader(self._store, self._buckets)
        start = Position("", first, "")
        before = loader.load_at(start) if first > 0 else loader.nothing(start)
        polled = loader.replay(before, Position("", last, "")).snapshot.content()
        loaded = loader.load_at(Position("", last, "")).content()
        for part, value in loaded.items():
            if polled[part] != value:
                self._found.append(
                    Violation(
                        "I6",
                        f"the change feed from version {first} to {last} does not lead to what is "
                        f"there: {part} differ",
                        1,
                        ({"part": part},),
                    )
                )

    def _expect_none(self, promise: str, what: str, rows: str | DataFrame) -> None:
        frame = self._store.session.sql(rows) if isinstance(rows, str) else rows
        # One query for both: a second would run the replay again.
        found = frame.selectExpr("*", "count(*) OVER () AS total_found").limit(SHOWN).collect()
        if found:
            shown = tuple(_without_total(row.asDict()) for row in found)
            self._found.append(Violation(promise, what, found[0]["total_found"], shown))


def _without_total(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "total_found"}


def _wrong_definitions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        wrong = [
            {"kind": row["kind"], "key": row["key"], "problem": problem}
            for row in batch.to_pylist()
            if (problem := _problem(row)) is not None
        ]
        schema = pa.schema([("kind", pa.string()), ("key", pa.string()), ("problem", pa.string())])
        yield pa.RecordBatch.from_pylist(wrong, schema=schema)


def _problem(row: dict[str, Any]) -> str | None:
    try:
        schema = Schema.from_payload(row["payload"] or "")
    except InvalidSchema as error:
        return f"the payload cannot be read: {error.message}"
    if schema.fingerprint != row["key"]:
        return f"the payload has the fingerprint {schema.fingerprint}"
    if schema.digest != row["digest"]:
        return f"the payload has the digest {schema.digest}, the row {row['digest']}"
    return None
