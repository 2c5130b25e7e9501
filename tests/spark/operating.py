"""Operations in one line each, what readers see of them, and how calls are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import DataFrame

from catalog import Cache, Catalog, CatalogError
from catalog.operations.operation import Operation

# Every view of the catalog but those of schemas, which parts carry, and of operations themselves.
_READ = (
    *("segments", "segment_schemas", "segments_without_schema", "datasources"),
    *("datasource_columns", "objects", "object_links"),
)


def staged(
    catalog: Catalog, name: str = "work", *, id: str | None = None, **part: Any
) -> Operation:
    """An operation of one part, which is staged."""
    operation = catalog.operation(name, parts=1, id=id)
    operation.stage(0, **part)
    return operation


def ready(
    catalog: Catalog, epoch: int, name: str = "work", *, id: str | None = None, **part: Any
) -> Operation:
    """The same, waiting for an epoch."""
    operation = staged(catalog, name, id=id, **part)
    operation.publish(epoch=epoch)
    return operation


# --- what readers see ----------------------------------------------------------------------------


def ids(catalog: Catalog, as_of: int | None = None) -> set[str]:
    """The segments that are there."""
    return {row["segment_id"] for row in catalog.segments(as_of).select("segment_id").collect()}


def rows(catalog: Catalog, as_of: int | None = None) -> dict[str, tuple[int, int]]:
    """The rows and the revision of every segment."""
    found = catalog.segments(as_of).select("segment_id", "num_rows", "revision").collect()
    return {row["segment_id"]: (row["num_rows"], row["revision"]) for row in found}


def revisions(catalog: Catalog, as_of: int | None = None) -> dict[str, int]:
    """The revision of every object."""
    return {each.key: each.revision for each in catalog.objects.list(as_of=as_of)}


def shown(catalog: Catalog, as_of: int | None = None) -> dict[str, Any]:
    """What a reader sees in every way there is, whatever the version: data, frames, objects."""
    return {
        **{name: _sorted(getattr(catalog.inspect, name)(as_of)) for name in _READ},
        "datasource_schemas": _sorted(catalog.datasource_schemas(as_of)),
        "read": _sorted(catalog.read("orders", as_of=as_of, segment_id="segment_id")),
        "list": catalog.objects.list(as_of=as_of),
        "schema": catalog.datasource_schema("orders", as_of=as_of).schema.ddl,
    }


def remembered(cache: Cache, asked: Iterable[str]) -> dict[str, Any]:
    """What a cache answers, but for its version and the schemas that it holds for nobody."""
    return {
        "lookup": cache.lookup(list(asked)).to_pylist(),
        "datasources": cache.datasources(),
        "schema": cache.datasource_schema("orders").schema.ddl,
    }


def changed(catalog: Catalog, after: int) -> set[tuple[int, str, str]]:
    """What the change feed tells since a version, but for schemas: version, change and key."""
    feed = catalog.audit.changes(after).where("kind <> 'schema'")
    return {(row["version"], row["change"], row["key"]) for row in feed.collect()}


def verbs(catalog: Catalog, after: int) -> list[str]:
    """The commits since a version, oldest first."""
    history = catalog.audit.history(1000).where(f"version > {after}").orderBy("version")
    return [row["verb"] for row in history.collect()]


def _sorted(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


# --- refusals -------------------------------------------------------------------------------------


def refusal(
    catalog: Catalog, kind: type[CatalogError], attempt: Callable[[], object], what: str = ""
) -> CatalogError:
    """The error of a call that is refused with just this one, and writes nothing."""
    before = catalog.version
    error = _raised(attempt, what)
    assert type(error) is kind, f"{what}: {error}"
    assert catalog.version == before, f"{what} wrote something"
    return error


def _raised(attempt: Callable[[], object], what: str) -> CatalogError:
    try:
        answer = attempt()
    except CatalogError as error:
        return error
    raise AssertionError(f"{what or 'it'} was not refused, and gave {answer}")
