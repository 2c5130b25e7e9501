"""Which segments of a publish the table has, and which a commit wrote."""

from __future__ import annotations

from catalog.commit.rows import key_table, segment_bucket
from catalog.delta.statements import bounds_clause, partitions_clause
from catalog.delta.writer import Writer
from catalog.model import Kind
from catalog.segments.batch import GroupPlan, Known


def known_segments(writer: Writer, plan: GroupPlan, buckets: int) -> tuple[dict[str, Known], int]:
    """The rows of the plan's segments that are in the table, at a version that is returned too."""
    store = writer.store
    version = store.head().version
    keys = {key: (segment_bucket(key, buckets), None) for key in plan.segments}
    wanted = store.session.createDataFrame(key_table(Kind.SEGMENT, keys)).select("bucket", "key")
    partitions = [p for p in plan.partitions(buckets) if p[0] == Kind.SEGMENT]
    bounds = {Kind.SEGMENT.value: plan.bounds()[Kind.SEGMENT.value]}
    found = (
        store.session.sql(
            "SELECT bucket, key, digest, commit_id, num_rows, size_bytes, location, "
            "unix_micros(starts_at) AS starts_micros, unix_micros(ends_at) AS ends_micros "
            f"FROM {store.pinned(version)} AS t "
            f"WHERE ({partitions_clause(partitions)}) AND ({bounds_clause(bounds)})"
        )
        .join(wanted, ["bucket", "key"], "left_semi")
        .drop("bucket")
        .toArrow()
        .to_pylist()
    )
    known = {row.pop("key"): Known(**row) for row in found}
    return known, version


def written_segments(writer: Writer, version: int) -> tuple[set[str], set[str]]:
    """The segment ids that the commit of a version inserted and replaced, from the change feed."""
    changes = (
        writer.store.changes(version, version)
        .where("kind = 'segment' AND _change_type IN ('insert', 'update_postimage')")
        .select("key", "_change_type")
        .toArrow()
        .to_pylist()
    )
    inserted = {row["key"] for row in changes if row["_change_type"] == "insert"}
    return inserted, {row["key"] for row in changes} - inserted
