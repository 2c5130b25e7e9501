"""How versions came about: I4 by commit ids, I5 and I6 by a replay of what polls read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from catalog.cache.loader import Loader
from catalog.cache.snapshot import Position
from catalog.delta.store import Store
from catalog.verify.report import Findings, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_commits(found: Findings, events: DataFrame, claimed: Mapping[int, str | None]) -> None:
    """The rows of each version carry the commit id that its metadata claims, and no other does."""
    known = found.session.createDataFrame(
        list(claimed.items()) or [(-1, "")],
        "version BIGINT, expected STRING",
    )
    # Each version's commit has an id of its own, so this also says that the rows of a commit
    # are at one version.
    claims = Counter(commit for commit in claimed.values() if commit is not None)
    found.note(
        Problem("I4", "two versions claim one commit", {"commit_id": commit, "versions": versions})
        for commit, versions in claims.items()
        if versions > 1
    )
    found.expect_none(
        "I4",
        "a version holds rows that its commit does not claim",
        events.where("delta = 1")
        .join(known, "version")
        .where("NOT commit_id <=> expected")
        .select("version", "kind", "key", "commit_id", "expected"),
    )


def check_polls(found: Findings, store: Store, first: int, last: int) -> None:
    """I5 and I6: what polls arrive at is what a full read finds."""
    loader = Loader(store)
    start = Position("", first, "")
    before = loader.load_at(start) if first > 0 else loader.nothing(start)
    polled = loader.replay(before, Position("", last, "")).snapshot.content()
    loaded = loader.load_at(Position("", last, "")).content()
    what = f"the change feed from version {first} to {last} does not lead to what is there"
    found.note(
        Problem("I6", f"{what}: {part} differ", {"part": part})
        for part, value in loaded.items()
        if polled[part] != value
    )
