"""The `entries` table of a catalog: found, checked, created, and completed by a restore."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from catalog.delta.failures import (
    ALREADY_THERE,
    BUCKETS_CONSTRAINT,
    Failure,
    classify,
    condition_of,
)
from catalog.delta.layout import (
    BUCKETS_PROPERTY,
    LAYOUT_PROPERTY,
    REQUIRED_PROPERTIES,
    RESTORING_PROPERTY,
    TABLE_PROPERTY,
    Layout,
    row_bucket_sql,
)
from catalog.delta.location import ENTRIES, Location, TableLock, local_path, table_uri
from catalog.delta.store import Detail, Store, read_detail
from catalog.environment import Deadline
from catalog.errors import (
    InvalidInput,
    LayoutTooNew,
    NotACatalog,
    RestoreUnfinished,
    UnsuitableSession,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_MISSING = {
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_ONLY_OPERATION",
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "PATH_NOT_FOUND",
}
_OCCUPIED = {
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
    "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
}
MOST_BUCKETS = 4096
_LOOKS = 10
_CONSTRAINT = f"delta.constraints.{BUCKETS_CONSTRAINT}"


@dataclass(frozen=True)
class Opened:
    """The table of a catalog, found and checked."""

    location: Location
    detail: Detail
    layout_found: int
    segment_buckets: int


def find(
    session: SparkSession, location: Location, layout: Layout, restoring: bool = False
) -> Opened | None:
    """The catalog at a location, or None; raises if something else is there.

    One that is being restored is found only with `restoring`.
    """
    relation = location.table(ENTRIES)
    try:
        detail = read_detail(session, relation)
    except PySparkException as error:
        condition = condition_of(error).split(".")[0]
        if condition in _MISSING:
            return None
        if condition == "DELTA_INVALID_PARTITION_PATH":
            raise _inside_a_table(location) from error
        raise UnsuitableSession(
            f"The session cannot read {location}: {error}. It needs the Delta extension and "
            "catalog; conf/local.conf shows the settings.",
            location=str(location),
        ) from error
    if not restoring:
        check_restored(location, detail)
    return _checked(session, _resolved(location, detail), detail, layout)


def create(
    session: SparkSession,
    location: Location,
    layout: Layout,
    segment_buckets: int,
    locked: bool,
    deadline: Deadline,
    more: Mapping[str, str] | None = None,
) -> Opened:
    """Creates the table unless a concurrent creation is first, and returns the table.

    `more` are further properties; with that of a restore, an incomplete table is found.
    """
    if not 1 <= segment_buckets <= MOST_BUCKETS:
        raise InvalidInput(
            f"segment_buckets must be between 1 and {MOST_BUCKETS}, not {segment_buckets}.",
            segment_buckets=segment_buckets,
        )
    local = local_path(table_uri(session, location))
    if location.path is not None and local is not None:
        location = location.at(str(local.parent))
    lock = TableLock.of(local if locked else None)
    ddl = layout.ddl(location.table(ENTRIES), segment_buckets, more)
    restoring = RESTORING_PROPERTY in (more or {})
    for attempt in range(_LOOKS):
        try:
            with lock.held(deadline):
                create_table(session, ddl, str(location))
            found = find(session, location, layout, restoring)
        except NotACatalog:
            # Files without a table may be a concurrent creation.
            found = find(session, location, layout, restoring)
            if found is None and attempt == _LOOKS - 1:
                raise
        if found is not None:
            return found
        deadline.wait(0.1, "another creation of the catalog")
    # CREATE … IF NOT EXISTS ignores a directory with files that are no Delta table.
    raise NotACatalog(
        f"{location} already holds something else named {ENTRIES}; choose another location.",
        location=str(location),
    )


def create_table(session: SparkSession, ddl: str, place: str) -> None:
    """Runs a CREATE TABLE IF NOT EXISTS, also concurrently with others."""
    try:
        session.sql(ddl)
    except Exception as error:  # Delta's own exceptions reach Python in more than one class
        condition = condition_of(error)
        if condition in _OCCUPIED:
            raise NotACatalog(
                f"{place} already holds something else: {error}. Choose another location.",
                location=place,
            ) from error
        if condition not in ALREADY_THERE and classify(error) is not Failure.CONFLICT:
            raise
        log.debug("%s was created concurrently.", place)


def _inside_a_table(location: Location) -> NotACatalog:
    # The table's VACUUM would remove the catalog.
    return NotACatalog(
        f"{location} is, or lies in, a Delta table of its own, not a directory for a catalog; "
        "choose another location.",
        location=str(location),
    )


def _resolved(location: Location, detail: Detail) -> Location:
    """One spelling for each table: in a JVM Delta excludes writers by the spelling of the path."""
    if location.path is None or detail.path is None:
        return location
    return location.at(str(detail.path.parent))


def check_restored(location: Location, detail: Detail) -> None:
    """Refuses a catalog that is being restored: it is empty or was not compared yet."""
    if RESTORING_PROPERTY in detail.properties:
        raise RestoreUnfinished(
            f"The catalog at {location} is being restored from a backup and is not complete. Wait "
            "for the restore, or run it again if it was stopped.",
            location=str(location),
            backup=detail.properties[RESTORING_PROPERTY],
        )


def is_complete(store: Store) -> bool:
    """Whether a table is not, or no longer, being restored."""
    return RESTORING_PROPERTY not in store.detail().properties


def constrain_buckets(store: Store, lock: TableLock, buckets: int, deadline: Deadline) -> None:
    """Makes the table refuse rows in buckets of another number of segment buckets.

    I2: an open catalog may know another number, from the table that was here before. Only the table
    itself can refuse its rows for certain, and at no cost to a publish.
    """
    with lock.held(deadline), deadline.not_counting():
        if _CONSTRAINT in store.detail().properties:
            return
        try:
            store.session.sql(
                f"ALTER TABLE {store.relation} ADD CONSTRAINT {BUCKETS_CONSTRAINT} "
                f"CHECK (bucket = {row_bucket_sql(buckets)})"
            )
        except Exception:  # a concurrent restore was first, or only the answer was lost
            if _CONSTRAINT not in store.detail().properties:
                raise


def complete_restore(store: Store, lock: TableLock, deadline: Deadline) -> None:
    """Removes the property of a restore: from now on the table is a catalog."""
    with lock.held(deadline), deadline.not_counting():
        try:
            store.session.sql(
                f"ALTER TABLE {store.relation} UNSET TBLPROPERTIES IF EXISTS "
                f"('{RESTORING_PROPERTY}')"
            )
        except Exception:  # a concurrent restore was first, or only the answer was lost
            if not is_complete(store):
                raise


def _checked(session: SparkSession, location: Location, detail: Detail, layout: Layout) -> Opened:
    number = detail.properties.get(LAYOUT_PROPERTY)
    if detail.format != "delta" or number is None or not number.isdigit():
        raise NotACatalog(
            f"The table {location.table(ENTRIES)} is not a Strata catalog (format "
            f"{detail.format or 'unknown'}, no {LAYOUT_PROPERTY}); choose another location.",
            location=str(location),
        )
    if int(number) > layout.number:
        raise LayoutTooNew(
            f"The catalog at {location} has layout {number}; this release knows up to "
            f"{layout.number}. Install a newer release.",
            location=str(location),
            layout=int(number),
        )
    _check_properties(location, detail)
    _check_columns(session, location, detail, layout, int(number))
    return Opened(
        location=location,
        detail=detail,
        layout_found=int(number),
        segment_buckets=int(detail.properties[BUCKETS_PROPERTY]),
    )


def _check_properties(location: Location, detail: Detail) -> None:
    wrong = {
        name: detail.properties.get(name)
        for name, value in REQUIRED_PROPERTIES.items()
        if (detail.properties.get(name) or "").lower() != value.lower()
    }
    if detail.properties.get("delta.columnMapping.mode", "none") != "none":
        wrong["delta.columnMapping.mode"] = detail.properties["delta.columnMapping.mode"]
    if not detail.properties.get(BUCKETS_PROPERTY, "").isdigit():
        wrong[BUCKETS_PROPERTY] = detail.properties.get(BUCKETS_PROPERTY)
    if wrong:
        raise NotACatalog(
            f"The table of {location} lacks what the promises rest on: {wrong}; needed are "
            f"{REQUIRED_PROPERTIES} and no column mapping. Set them with ALTER TABLE … SET "
            "TBLPROPERTIES while nobody writes.",
            location=str(location),
            properties=wrong,
        )


def _check_columns(
    session: SparkSession, location: Location, detail: Detail, layout: Layout, number: int
) -> None:
    found = present_columns(session, location)
    later = {c.name for n in range(number, layout.number) for c in layout.steps[n].columns}
    missing = [c.name for c in layout.columns if c.name not in found and c.name not in later]
    if missing or detail.partition_columns != ("kind", "bucket"):
        raise NotACatalog(
            f"The table of {location} does not have the layout it says: columns {missing} are "
            f"missing, partitioned by {detail.partition_columns}.",
            location=str(location),
            missing=missing,
        )


def ours_exists(session: SparkSession, relation: str, name: str) -> bool:
    """Whether a side table exists; raises if a table of its name is not ours."""
    try:
        detail = read_detail(session, relation)
    except PySparkException as error:
        if condition_of(error).split(".")[0] in _MISSING:
            return False
        raise
    if detail.properties.get(TABLE_PROPERTY) != name:
        raise NotACatalog(
            f"{relation} is another table; a catalog keeps a table of its own under that name. "
            "Rename it, or use another location.",
            location=relation,
        )
    return True


def present_columns(session: SparkSession, location: Location) -> set[str]:
    """The names of the columns that the table has now."""
    return set(session.sql(f"SELECT * FROM {location.table(ENTRIES)} LIMIT 0").columns)
