"""What happened in a range of versions, read when the first check asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from catalog.delta.layout import complete, nulls
from catalog.delta.store import RESTORE_BACKUP, Store, commit_id_of, verb_of
from catalog.verify.nearby import nearby
from catalog.verify.rows import IDENTITY
from catalog.verify.rules import CONTENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

# A raw RESTORE is outside the promises: it brings old rows back with their old ids. A VACUUM is two
# versions and changes no row.
_NOT_CLAIMED = {"RESTORE", "VACUUM START", "VACUUM END"}


@dataclass(frozen=True)
class Feed:
    """The change feed from one version to another, and what the table's history says of it."""

    store: Store
    first: int
    last: int

    @cached_property
    def lean(self) -> DataFrame:
        """The events without the bodies of objects, which only the rules of types ask for."""
        return nearby(self.events.drop("datasource", "digest", "payload"))

    @cached_property
    def events(self) -> DataFrame:
        """What was there at first and what changed, as rows that came (1) or went (-1)."""
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
            if row["version"] > self.first
            and row["operation"] not in _NOT_CLAIMED
            # A restored row tells of the commit that changed it last, in the table that there was.
            and verb_of(row["userMetadata"]) != RESTORE_BACKUP
        }

    @property
    def restored(self) -> set[int]:
        """The versions that came from a backup: how their rows came about was judged elsewhere."""
        return {
            int(row["version"])
            for row in self._history
            if verb_of(row["userMetadata"]) == RESTORE_BACKUP
        }

    @cached_property
    def _history(self) -> list[Row]:
        return self.store.history().select("version", "operation", "userMetadata").collect()
