"""Publishing, against the plainest MERGE and against the usual two of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from catalog import Catalog, Segment
from catalog.commit.rows import entry_table
from tests.benchmarks import data
from tests.benchmarks.ground import Ground, PlainTable, TwoTables
from tests.benchmarks.measure import Work, interleave
from tests.benchmarks.report import Figure, at_most, slower


def rows_of(segments: Sequence[Segment]) -> pa.Table:
    """The rows that a publish of these segments writes."""
    schemas = {s.schema.fingerprint: (s.schema, "bench") for s in segments}
    return entry_table(
        segments, ["bench"] * len(segments), schemas, 16, "0" * 32, datetime.now(UTC)
    )


def one(ground: Ground) -> list[Figure]:
    """One segment: into a catalog, into one plain table, into two."""
    catalog = ground.catalog("one")
    bare, two = PlainTable(ground), TwoTables(ground)
    # The schema of every known-schema publish is there from the first warm-up on.
    known = data.schema(0)

    def fresh(new_schema: bool) -> list[Segment]:
        number = next(ground.fresh)
        schema = data.schema(number) if new_schema else known
        return [Segment(data.segment_id(number), schema, num_rows=number % 1000)]

    def ours(new_schema: bool) -> Work:
        def prepare() -> Callable[[], object]:
            segments = fresh(new_schema)
            return lambda: catalog.publish(segments)

        return prepare

    def bare_merge() -> Callable[[], object]:
        rows = rows_of(fresh(new_schema=False))
        return lambda: bare.merge(rows)

    def two_merges(new_schema: bool) -> Work:
        def prepare() -> Callable[[], object]:
            schemas, segments = split(rows_of(fresh(new_schema)))
            return lambda: two.merge(schemas, segments)

        return prepare

    times = interleave(
        {
            "known": ours(new_schema=False),
            "bare": bare_merge,
            "two": two_merges(new_schema=False),
            "new": ours(new_schema=True),
            "two new": two_merges(new_schema=True),
        },
        rounds=ground.scale.rounds,
        warmups=ground.scale.warm(5),
    )
    return [
        slower(
            "publish 1, known schema", times["known"], times["bare"], at_most(1.15), "bare MERGE"
        ),
        slower("publish 1, known schema", times["known"], times["two"], at_most(0.7), "two MERGEs"),
        slower("publish 1, new schema", times["new"], times["two new"], at_most(0.7), "two MERGEs"),
    ]


def split(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of schemas and rows of segments."""
    is_schema = pc.equal(rows.column("kind"), "schema")
    return rows.filter(is_schema), rows.filter(pc.invert(is_schema))


def bulk(ground: Ground) -> list[Figure]:
    """Many segments in one call, each time into a new catalog and into a new table."""
    size = ground.scale.bulk
    segments = data.segments(0, size, ground.scale.schemas)
    rows = rows_of(segments)

    def ours() -> Callable[[], object]:
        catalog = ground.catalog("bulk")
        return lambda: catalog.publish(segments)

    def bare_merge() -> Callable[[], object]:
        bare = PlainTable(ground)
        return lambda: bare.merge(rows, bulk=True)

    times = interleave(
        {"ours": ours, "bare": bare_merge},
        rounds=3 * ground.scale.few_rounds,
        warmups=ground.scale.warm(2),
    )
    name = f"publish {size:,} in one call"
    return [slower(name, times["ours"], times["bare"], at_most(1.25), "bare MERGE")]


def frame(ground: Ground) -> list[Figure]:
    """A frame of many segments, each time into a new catalog, against plain appends.

    Of the rows that the publish writes, and of the frame as it was given, which has neither
    fingerprints nor digests nor payloads.
    """
    size = ground.scale.many
    rows = data.frame(ground.spark, 0, size, ground.scale.schemas)
    first = ground.catalog("frame")
    first.publish(rows)
    written = ground.spark.read.format("delta").load(f"{first.location}/entries")

    def ours() -> Callable[[], object]:
        catalog = ground.catalog("frame")
        return lambda: catalog.publish(rows)

    def append(frame: DataFrame) -> Work:
        def prepare() -> Callable[[], object]:
            path = ground.path("appended")
            return lambda: frame.write.format("delta").mode("append").save(path)

        return prepare

    times = interleave(
        {"ours": ours, "written": append(written), "given": append(rows)},
        rounds=ground.scale.few_rounds,
        warmups=ground.scale.warm(),
    )
    name = f"publish {size:,} from a frame"
    return [
        slower(name, times["ours"], times["written"], at_most(6), "append of the rows it writes"),
        slower(name, times["ours"], times["given"], at_most(6), "append of the bare frame"),
    ]


def one_more(ground: Ground, catalog: Catalog) -> Work:
    """One segment whose id is among those that are there."""

    def prepare() -> Callable[[], object]:
        # Behind them, file statistics would spare the read.
        number = next(ground.fresh)
        inside = data.segment_id(number % ground.scale.small)
        segment = Segment(f"{inside}.{number}", data.schema(0), num_rows=1)
        return lambda: catalog.publish([segment])

    return prepare


def into(ground: Ground) -> list[Figure]:
    """One segment into a large and into a small catalog, both optimized."""
    times = interleave(
        {"large": one_more(ground, ground.large), "small": one_more(ground, ground.small)},
        rounds=ground.scale.rounds,
        warmups=ground.scale.warm(5),
    )
    return [
        slower(
            f"publish 1 into {ground.scale.many:,}",
            times["large"],
            times["small"],
            at_most(1.5),
            f"into {ground.scale.small:,}",
        )
    ]
