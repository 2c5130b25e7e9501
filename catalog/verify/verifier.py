"""The verification of a version, or of every version of a range."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from catalog.delta.layout import complete
from catalog.delta.store import Store
from catalog.progress import Progress, Step, silent
from catalog.verify import names, objects, operations
from catalog.verify.changes import steps
from catalog.verify.feed import Feed
from catalog.verify.history import check_commits, check_polls
from catalog.verify.names import Names, check_names
from catalog.verify.nearby import kept_if_few
from catalog.verify.objects import Links, check_objects
from catalog.verify.operations import Lives, check_operations
from catalog.verify.references import check_references, check_references_always
from catalog.verify.report import Findings, Problem, VerifyReport
from catalog.verify.rows import check_rows, check_uniqueness
from catalog.verify.rules import Rules, check_rules, declares_types

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
        session = self._store.session
        pinned = complete(session, self._store.pinned(version))
        sizes = session.sql(
            "SELECT kind, count(*) AS rows, coalesce(sum(octet_length(payload)), 0) AS bytes "
            f"FROM {pinned} GROUP BY kind"
        ).collect()
        rows, size = (sum(row[name] for row in sizes) for name in ("rows", "bytes"))
        with kept_if_few(session, pinned, rows, size) as relation:
            self._check_rows(relation, {row["kind"] for row in sizes})

    def _check_rows(self, relation: str, kinds: set[str]) -> None:
        found = self._found
        check_rows(found, relation, self._buckets)
        check_references(found, relation)
        if kinds & operations.KINDS:
            check_operations(found, relation)
        if objects.KIND in kinds:
            check_objects(found, relation)
        # The guard stays when the last object has gone, and so might what tables have left.
        if kinds & {objects.KIND, "guard"}:
            check_rules(found, relation)
        if kinds & set(names.KINDS):
            check_names(found, relation)

    def _range_checks(self, first: int, last: int) -> list[Check]:
        found, feed = self._found, Feed(self._store, first, last)
        return [
            ("keys at every version", lambda: check_uniqueness(found, feed.lean)),
            ("references at every version", lambda: check_references_always(found, feed.lean)),
            (
                "operations, objects, names and rules at every version",
                lambda: self._check_lives(feed),
            ),
            ("commits", lambda: check_commits(found, feed.lean, feed.commits)),
            (
                "replay of the change feed",
                lambda: check_polls(found, self._store, first, last),
            ),
        ]

    def _check_lives(self, feed: Feed) -> None:
        followed = ("operation", "part", "epoch", "object", *names.KINDS)
        kinds = ", ".join(f"'{kind}'" for kind in followed)
        rows = feed.lean.where(f"kind IN ({kinds})").toArrow().to_pylist()
        followers: list[Lives | Links | Names | Rules] = [Lives(), Links(), Names()]
        if declares_types(rows):
            followers.append(Rules())
            rows = [row for row in rows if row["kind"] != objects.KIND]
            rows += feed.events.where(f"kind = '{objects.KIND}'").toArrow().to_pylist()
        problems: list[Problem] = []
        beginnings = {feed.first, *feed.restored}
        for step in steps(rows):
            for follower in followers:
                if step.version in beginnings:
                    follower.start(step)
                else:
                    problems += follower.follow(step)
        self._found.note(problems)
