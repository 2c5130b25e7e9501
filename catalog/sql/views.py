"""The views that SQL users see, over the table or over any version of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catalog.delta.layout import View, complete
from catalog.delta.location import ENTRIES, Location
from catalog.schema.names import identifier, literal
from catalog.sql.operation_views import OPERATION_VIEWS
from catalog.sql.platform_views import PLATFORM_VIEWS
from catalog.sql.rule_views import (
    CONTRACT_VIEWS,
    NAMING_VIEWS,
    RETENTION_VIEWS,
    SETTING_VIEWS,
)
from catalog.sql.segment_views import SEGMENT_VIEWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS: tuple[View, ...] = (
    *SEGMENT_VIEWS,
    *NAMING_VIEWS,
    *CONTRACT_VIEWS,
    *OPERATION_VIEWS,
    *PLATFORM_VIEWS,
    *RETENTION_VIEWS,
    *SETTING_VIEWS,
)
BY_NAME = {view.name: view for view in VIEWS}


def query(view: str, entries: str) -> str:
    """The query of a view over a relation, which may be pinned to a version."""
    return BY_NAME[view].query.replace("{entries}", entries)


def query_at(session: SparkSession, view: str, pinned: str) -> str:
    """The query of a view over a version of the table, which may be of an older layout."""
    return query(view, complete(session, pinned) if BY_NAME[view].needs else pinned)


def create_views(
    session: SparkSession, location: Location, prefix: str = "", replace: bool = True
) -> list[str]:
    """Creates the views: persistent ones in a metastore, temporary ones for a path.

    A table of an older layout goes without those that need columns which it does not have: made up
    ones would stay empty after an upgrade.
    """
    temporary = location.path is not None
    present = set(session.sql(f"SELECT * FROM {location.table(ENTRIES)} LIMIT 0").columns)
    made: list[str] = []
    for view in VIEWS:
        if not present.issuperset(view.needs):
            continue
        name = identifier(prefix + view.name)
        if not temporary:
            name = ".".join([*map(identifier, location.schema), name])
        columns = ", ".join(
            f"{identifier(c)} COMMENT {literal(t)}" for c, t in view.columns.items()
        )
        how = "OR REPLACE " if replace else ""
        unless = "" if replace else "IF NOT EXISTS "
        session.sql(
            f"CREATE {how}{'TEMPORARY ' if temporary else ''}VIEW {unless}{name} ({columns}) "
            f"COMMENT {literal(view.comment)} AS {query(view.name, location.table(ENTRIES))}"
        )
        made.append(prefix + view.name)
    return made
