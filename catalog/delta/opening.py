"""Finding, checking, creating and upgrading a catalog's table."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from catalog.delta.failures import Failure, classify, condition_of
from catalog.delta.layout import (
    BUCKETS_PROPERTY,
    LAYOUT_PROPERTY,
    REQUIRED_PROPERTIES,
    RESTORING_PROPERTY,
    TABLE_PROPERTY,
    Layout,
)
from catalog.delta.location import Location, is_relative, local_path
from catalog.delta.lock import TableLock
from catalog.delta.store import ENTRIES, Detail, read_detail
from catalog.environment import Deadline
from catalog.errors import (
    CatalogNotFound,
    InvalidInput,
    LayoutTooNew,
    NotACatalog,
    RestoreUnfinished,
    UnsuitableSession,
)
from catalog.schema.names import identifier

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
_SOMEBODY_ELSE_DID = {
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "TABLE_ALREADY_EXISTS",
    "SCHEMA_ALREADY_EXISTS",
}
_OCCUPIED = {
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
    "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
}
MOST_BUCKETS = 4096
_LOOKS = 10


@dataclass(frozen=True)
class Opened:
    """A catalog's table that was found and is ours."""

    location: Location
    detail: Detail
    layout_found: int
    segment_buckets: int


def absolute(session: SparkSession, location: Location) -> Location:
    """The location with a relative path spelled out, which Delta does not find otherwise."""
    if location.path is None or not is_relative(location.path):
        return location
    uri = _place(session, location)
    local = local_path(uri)
    return location.at(uri.removesuffix(f"/{ENTRIES}") if local is None else str(local.parent))


def find(
    session: SparkSession, location: Location, layout: Layout, restoring: bool = False
) -> Opened | None:
    """The catalog at a location, or nothing; raises if something else is there.

    One that is being restored is for nobody but the restore.
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
    """Creates the table unless somebody else is quicker, and returns what is there then.

    `more` are further properties; with that of a restore, it is found though it is not complete.
    """
    if not 1 <= segment_buckets <= MOST_BUCKETS:
        raise InvalidInput(
            f"segment_buckets must be between 1 and {MOST_BUCKETS}, not {segment_buckets}.",
            segment_buckets=segment_buckets,
        )
    table_uri = _place(session, location)
    local = local_path(table_uri)
    if location.path is not None and local is not None:
        location = location.at(_spelled_like(location.path, str(local.parent)))
    lock = TableLock.beside(local if locked else None)
    ddl = layout.ddl(location.table(ENTRIES), segment_buckets, more)
    restoring = RESTORING_PROPERTY in (more or {})
    for attempt in range(_LOOKS):
        try:
            with lock.held(deadline):
                create_table(session, ddl, str(location))
            found = find(session, location, layout, restoring)
        except NotACatalog:
            # Files that are no table yet may be somebody else's creation on its way.
            found = find(session, location, layout, restoring)
            if found is None and attempt == _LOOKS - 1:
                raise
        if found is not None:
            return found
        deadline.wait(0.1, "another creation of the catalog")
    # CREATE … IF NOT EXISTS passes by a directory with files that are no Delta table.
    raise NotACatalog(
        f"{location} already holds something else named {ENTRIES}; choose another location.",
        location=str(location),
    )


def create_table(session: SparkSession, ddl: str, place: str) -> None:
    """Runs a CREATE TABLE IF NOT EXISTS that others may be running too."""
    try:
        session.sql(ddl)
    except Exception as error:  # Delta's own exceptions reach Python in more than one class
        condition = condition_of(error)
        if condition in _OCCUPIED:
            raise NotACatalog(
                f"{place} already holds something else: {error}. Choose another location.",
                location=place,
            ) from error
        if condition not in _SOMEBODY_ELSE_DID and classify(error) is not Failure.CONFLICT:
            raise
        log.debug("Somebody else created %s at the same time.", place)


def _place(session: SparkSession, location: Location) -> str:
    """The URI that the table will have: only Spark knows which file system a bare path means."""
    if location.path is None:
        name = ".".join(identifier(part) for part in location.schema)
        try:
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
        except PySparkException as error:
            if condition_of(error) not in _SOMEBODY_ELSE_DID:
                raise
        rows = session.sql(f"DESCRIBE SCHEMA {name}").collect()
        places = [row["info_value"] for row in rows if row["info_name"] == "Location"]
        return f"{places[0]}/{ENTRIES}" if places else "unknown:"
    probe = f"/.strata-{uuid.uuid4().hex}"
    try:
        # Two paths: with a single one Spark logs a stack trace because it is not there.
        _ = session.read.text([f"{location.path}{probe}"] * 2).schema
    except PySparkException as error:
        getter = error.getMessageParameters() or {}
        found = getter.get("path", "")
        if condition_of(error) == "PATH_NOT_FOUND" and found.endswith(probe):
            return f"{found.removesuffix(probe)}/{ENTRIES}"
        raise CatalogNotFound(
            f"The location {location} cannot be reached: {error}", location=str(location)
        ) from error
    raise NotACatalog(f"{location} holds {probe}, which cannot be.", location=str(location))


def _inside_a_table(location: Location) -> NotACatalog:
    # The table's VACUUM would sweep a catalog away.
    return NotACatalog(
        f"{location} is, or lies in, a Delta table of its own, not a directory for a catalog; "
        "choose another location.",
        location=str(location),
    )


def _resolved(location: Location, detail: Detail) -> Location:
    """One spelling for each table: Delta excludes writers in a JVM by the path as it is spelled."""
    if location.path is None or detail.path is None:
        return location
    return location.at(_spelled_like(location.path, str(detail.path.parent)))


def _spelled_like(given: str, path: str) -> str:
    return f"file:{path}" if given.startswith("file:") else path


def check_restored(location: Location, detail: Detail) -> None:
    """Refuses a catalog that is being restored: it is empty, or nobody has compared it yet."""
    if RESTORING_PROPERTY in detail.properties:
        raise RestoreUnfinished(
            f"The catalog at {location} is being restored from a backup and is not complete. Wait "
            "for the restore, or run it again if it was stopped.",
            location=str(location),
            backup=detail.properties[RESTORING_PROPERTY],
        )


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
    """Whether there is a table of ours beside the entries; raises if it is somebody else's."""
    try:
        detail = read_detail(session, relation)
    except PySparkException as error:
        if condition_of(error).split(".")[0] in _MISSING:
            return False
        raise
    if detail.properties.get(TABLE_PROPERTY) != name:
        raise NotACatalog(
            f"{relation} is a table of somebody else's; a catalog keeps its own under that name. "
            "Rename it, or use another location.",
            location=relation,
        )
    return True


def present_columns(session: SparkSession, location: Location) -> set[str]:
    """The names of the columns that the table has now."""
    return set(session.sql(f"SELECT * FROM {location.table(ENTRIES)} LIMIT 0").columns)
