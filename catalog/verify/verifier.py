"""The verification of a version, or of every version of a range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING
from uuid import uuid4

from catalog.delta.layout import complete, nulls
from catalog.delta.store import RESTORE_BACKUP, Store, commit_id_of, verb_of
from catalog.progress import Progress, Step, silent
from catalog.verify import replay
from catalog.verify.model import Counterexample, VerifyReport, Violations, steps
from catalog.verify.rows import CONTENT, IDENTITY, NAME_KINDS, OBJECT, check_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import Row as SparkRow

Check = tuple[str, Callable[[], None]]

# A raw RESTORE is outside the promises: it brings old rows back with their old ids. A VACUUM is two
# versions and changes no row.
_NOT_CLAIMED = {"RESTORE", "VACUUM START", "VACUUM END"}
# Few rows are read once and kept for all checks: every scan of a Delta table looks up its files
# again, and a change feed those of each version. So many fit into the driver easily; Spark needs as
# much again while it takes them over.
FEW_ROWS = 20_000
FEW_BYTES = 16 << 20


class Verifier:
    """Checks one version, or every version of a range by a replay of the change feed."""

    def __init__(self, store: Store, buckets: int, progress: Progress = silent) -> None:
        self._store = store
        self._buckets = buckets
        self._progress = progress
        self._found = Violations(store.session)

    def verify(self, version: int, since: int | None) -> VerifyReport:
        """Checks the rows at `version`, and with `since` those of every version from there on."""
        checks: list[Check] = [(f"version {version}", partial(self._check_version, version))]
        if since is not None and since < version:
            if since > 0:  # at version 0 the table is empty
                checks.append((f"version {since}", partial(self._check_version, since)))
            checks += self._range_checks(since, version)
        for done, (what, check) in enumerate(checks):
            self._progress(Step(f"verify: {what}", done, len(checks)))
            check()
        return VerifyReport(version, since, self._found.all())

    def _check_version(self, version: int) -> None:
        session = self._store.session
        pinned = complete(session, self._store.pinned(version))
        sizes = session.sql(
            "SELECT kind, count(*) AS rows, coalesce(sum(octet_length(payload)), 0) AS bytes "
            f"FROM {pinned} GROUP BY kind"
        ).collect()
        rows, size = (sum(row[name] for row in sizes) for name in ("rows", "bytes"))
        with _kept_if_few(session, pinned, rows, size) as relation:
            check_version(self._found, relation, {row["kind"] for row in sizes}, self._buckets)

    def _range_checks(self, first: int, last: int) -> list[Check]:
        found, feed = self._found, Feed(self._store, first, last)
        return [
            ("keys at every version", lambda: replay.check_uniqueness(found, feed.lean)),
            ("references at every version", lambda: replay.check_references(found, feed.lean)),
            (
                "operations, objects, names and rules at every version",
                lambda: found.add(_replayed(feed)),
            ),
            ("commits", lambda: replay.check_commits(found, feed.lean, feed.commits)),
            (
                "replay of the change feed",
                lambda: replay.check_polls(found, self._store, first, last),
            ),
        ]


def _replayed(feed: Feed) -> Iterator[Counterexample]:
    """What is wrong with operations, objects and names at any version."""
    kinds = ", ".join(f"'{kind}'" for kind in ("operation", "part", "epoch", OBJECT, *NAME_KINDS))
    rows = feed.lean.where(f"kind IN ({kinds})").toArrow().to_pylist()
    replays: list[replay.Replay] = [
        replay.OperationReplay(),
        replay.LinkReplay(),
        replay.NameReplay(),
    ]
    if replay.declares_types(rows):
        replays.append(replay.RuleReplay())
        rows = [row for row in rows if row["kind"] != OBJECT]
        rows += feed.events.where(f"kind = '{OBJECT}'").toArrow().to_pylist()
    starts = {feed.first, *feed.restored}
    for step in steps(rows):
        for each in replays:
            if step.version in starts:
                each.start(step)
            else:
                yield from each.follow(step)


@dataclass(frozen=True)
class Feed:
    """The change feed from one version to another, read when a check needs it."""

    store: Store
    first: int
    last: int

    @cached_property
    def lean(self) -> DataFrame:
        """The events without the bodies of objects, which only the rules of types need."""
        return nearby(self.events.drop("datasource", "digest", "payload"))

    @cached_property
    def events(self) -> DataFrame:
        """The rows at the first version and all changes, as rows that came (1) or went (-1)."""
        store, first = self.store, self.first
        columns = (
            *IDENTITY,
            "commit_id",
            "state",
            *CONTENT,
            "CASE WHEN kind IN ('operation', 'epoch', 'named', 'version') THEN payload "
            "WHEN kind = 'object' THEN get_json_object(payload, '$.links') END AS said",
        )
        feed = store.changes(first + 1, self.last)
        feed = feed.selectExpr("*", *nulls(feed.columns)).selectExpr(
            *columns,
            "_commit_version AS version",
            "IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS delta",
        )
        if first == 0:  # at version 0 the table is empty
            return feed
        pinned = complete(store.session, store.pinned(first))
        there = store.session.sql(
            f"SELECT {', '.join(columns)}, CAST({first} AS BIGINT) AS version, 1 AS delta "
            f"FROM {pinned}"
        )
        return feed.union(there)

    @property
    def commits(self) -> dict[int, str | None]:
        """The commit id that each version claims, if it claims to be one of ours."""
        return {
            int(row["version"]): commit_id_of(row["userMetadata"])
            for row in self._history
            # A restored row names the commit that changed it last, in the table of the backup.
            if row["version"] > self.first
            and row["operation"] not in _NOT_CLAIMED
            and int(row["version"]) not in self.restored
        }

    @cached_property
    def restored(self) -> set[int]:
        """The versions that came from a backup: how their rows came about was checked there."""
        return {
            int(row["version"])
            for row in self._history
            if verb_of(row["userMetadata"]) == RESTORE_BACKUP
        }

    @cached_property
    def _history(self) -> list[SparkRow]:
        return self.store.history().select("version", "operation", "userMetadata").collect()


@contextmanager
def _kept_if_few(session: SparkSession, relation: str, rows: int, size: int) -> Iterator[str]:
    """A relation for FROM clauses with the same rows, kept in the driver if there are few."""
    if not 0 < rows <= FEW_ROWS or size > FEW_BYTES:
        yield relation
        return
    view = f"strata_verified_{uuid4().hex}"
    kept = session.createDataFrame(session.sql(f"SELECT * FROM {relation}").toArrow())
    kept.createTempView(view)
    try:
        yield view
    finally:
        session.catalog.dropTempView(view)


def nearby(frame: DataFrame) -> DataFrame:
    """The same rows, kept in the driver if there are few."""
    rows = frame.limit(FEW_ROWS + 1).toArrow()
    if not 0 < rows.num_rows <= FEW_ROWS:
        return frame
    return frame.sparkSession.createDataFrame(rows)
