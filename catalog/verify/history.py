"""How versions came about: I4 by commit ids, I5 and I6 by a replay of what polls read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from catalog.cache.loader import Loader
from catalog.cache.snapshot import Position
from catalog.table.store import RESTORE_BACKUP, Store, commit_id_of, verb_of
from catalog.verify.report import Findings, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A raw RESTORE is outside the promises: it brings old rows back with their old ids. A VACUUM is two
# versions and changes no row.
_NOT_CLAIMED = {"RESTORE", "VACUUM START", "VACUUM END"}


def check_commits(found: Findings, store: Store, feed: DataFrame, first: int) -> None:
    """The rows of each version carry the commit id that its metadata claims, and no other does."""
    history = store.history().select("version", "operation", "userMetadata").collect()
    ours = {
        int(row["version"]): commit_id_of(row["userMetadata"])
        for row in history
        if row["version"] > first
        and row["operation"] not in _NOT_CLAIMED
        # A restored row tells of the commit that changed it last, in the table that there was.
        and verb_of(row["userMetadata"]) != RESTORE_BACKUP
    }
    known = store.session.createDataFrame(
        list(ours.items()) or [(-1, "")],
        "version BIGINT, expected STRING",
    )
    # Each version's commit has an id of its own, so this also says that the rows of a commit
    # are at one version.
    claims = Counter(commit for commit in ours.values() if commit is not None)
    found.note(
        Problem("I4", "two versions claim one commit", {"commit_id": commit, "versions": versions})
        for commit, versions in claims.items()
        if versions > 1
    )
    found.expect_none(
        "I4",
        "a version holds rows that its commit does not claim",
        feed.where("delta = 1")
        .join(known, "version")
        .where("NOT commit_id <=> expected")
        .select("version", "kind", "key", "commit_id", "expected"),
    )


def restored_versions(store: Store) -> set[int]:
    """The versions that came from a backup: how their rows came about was judged elsewhere."""
    history = store.history().select("version", "userMetadata").collect()
    return {
        int(row["version"]) for row in history if verb_of(row["userMetadata"]) == RESTORE_BACKUP
    }


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
