"""The verification of a version, or of every version of a range."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from catalog.progress import Progress, Step, silent
from catalog.table.store import Store
from catalog.table.views import complete, nulls
from catalog.verify import names, objects, operations
from catalog.verify.changes import steps
from catalog.verify.history import check_commits, check_polls, restored_versions
from catalog.verify.names import Names, check_names
from catalog.verify.objects import Links, check_objects
from catalog.verify.operations import Lives, check_operations
from catalog.verify.references import check_references, check_references_always
from catalog.verify.report import Findings, Problem, VerifyReport
from catalog.verify.rows import IDENTITY, check_rows, check_uniqueness
from catalog.verify.rules import CONTENT, Rules, check_rules, declares_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Check = tuple[str, Callable[[], None]]


class Verifier:
    """Checks one version, or every version of a range by a replay of the change feed."""

    def __init__(self, store: Store, buckets: int, progress: Progress = silent) -> None:
        self._store = store
        self._buckets = buckets
        self._progress = progress
        self._found = Findings(store.session)

    def verify(self, version: int, since: int | None) -> VerifyReport:
        """Checks what stands at `version`, and if wanted how it came about since another."""
        checks: list[Check] = [(f"version {version}", partial(self._check_version, version))]
        if since is not None and since < version:
            if since > 0:  # at version 0 the table is empty
                checks.append((f"version {since}", partial(self._check_version, since)))
            checks += self._range_checks(since, version)
        for done, (what, check) in enumerate(checks):
            self._progress(Step(f"verify: {what}", done, len(checks)))
            check()
        return VerifyReport(version, since, self._found.violations)

    def _check_version(self, version: int) -> None:
        session, found = self._store.session, self._found
        pinned = complete(session, self._store.pinned(version))
        check_rows(found, pinned, self._buckets)
        check_references(found, pinned)
        kinds = {
            row["kind"] for row in session.sql(f"SELECT DISTINCT kind FROM {pinned}").collect()
        }
        if kinds & operations.KINDS:
            check_operations(found, pinned)
        if objects.KIND in kinds:
            check_objects(found, pinned)
        # The guard stays when the last object has gone, and so might what tables have left.
        if kinds & {objects.KIND, "guard"}:
            check_rules(found, pinned)
        if kinds & set(names.KINDS):
            check_names(found, pinned)

    def _range_checks(self, first: int, last: int) -> list[Check]:
        found, store = self._found, self._store
        feed, events = self._events(first, last)
        return [
            ("keys at every version", partial(check_uniqueness, found, events)),
            ("references at every version", partial(check_references_always, found, events)),
            (
                "operations, objects, names and rules at every version",
                partial(self._check_lives, events, first),
            ),
            ("commits", partial(check_commits, found, store, feed, first)),
            (
                "replay of the change feed",
                partial(check_polls, found, store, first, last),
            ),
        ]

    def _events(self, first: int, last: int) -> tuple[DataFrame, DataFrame]:
        """The change feed of a range as rows that came (1) or went (-1), and the same with what
        was there at first."""
        store = self._store
        columns = (
            *IDENTITY,
            "commit_id",
            "state",
            # Whoever does not ask for these does not have Spark read them.
            *CONTENT,
            # Not the bodies of objects, which only rules ask for.
            "CASE WHEN kind IN ('operation', 'epoch', 'named', 'version') THEN payload "
            "WHEN kind = 'object' THEN get_json_object(payload, '$.links') END AS said",
        )
        feed = store.changes(first + 1, last)
        feed = feed.selectExpr("*", *nulls(feed.columns)).selectExpr(
            *columns,
            "_commit_version AS version",
            "IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS delta",
        )
        if first == 0:  # at version 0 the table is empty
            return feed, feed
        pinned = complete(store.session, store.pinned(first))
        there = store.session.sql(
            f"SELECT {', '.join(columns)}, CAST({first} AS BIGINT) AS version, 1 AS delta "
            f"FROM {pinned}"
        )
        return feed, feed.union(there)

    def _check_lives(self, events: DataFrame, first: int) -> None:
        followed = ("operation", "part", "epoch", "object", *names.KINDS)
        kinds = ", ".join(f"'{kind}'" for kind in followed)
        lean = events.drop("datasource", "digest", "payload")
        rows = lean.where(f"kind IN ({kinds})").toArrow().to_pylist()
        followers: list[Lives | Links | Names | Rules] = [Lives(), Links(), Names()]
        if declares_types(rows):
            followers.append(Rules())
            rows = [row for row in rows if row["kind"] != objects.KIND]
            rows += events.where(f"kind = '{objects.KIND}'").toArrow().to_pylist()
        problems: list[Problem] = []
        beginnings = {first, *restored_versions(self._store)}
        for step in steps(rows):
            for follower in followers:
                if step.version in beginnings:
                    follower.start(step)
                else:
                    problems += follower.follow(step)
        self._found.note(problems)
