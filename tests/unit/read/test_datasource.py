"""The schema of a datasource, from snapshots and as polls go on."""

from __future__ import annotations

import pickle
import random

import pytest

from catalog import Schema
from catalog.cache.index import Index
from catalog.cache.snapshot import Position, Snapshot, StoredSchema
from catalog.errors import CorruptSchema, InvalidInput, NotInSnapshot
from catalog.evolution import merged
from catalog.read.datasource import Merges

V1 = Schema.of("id BIGINT NOT NULL, amount INT")
V2 = Schema.of("id BIGINT NOT NULL, note STRING, amount BIGINT")
V3 = Schema.of("id BIGINT NOT NULL, amount STRING, tags ARRAY<STRUCT<k: STRING>>")


def snapshot(
    counts: dict[Schema | None, int], merges: Merges | None = None, *more: Schema
) -> Snapshot:
    """A snapshot of one datasource; schemas were published in the order in which they stand."""
    schemas = [each for each in (*counts, *more) if each is not None]
    live = {
        each.fingerprint: StoredSchema(each.payload, number) for number, each in enumerate(schemas)
    }
    named = {None if each is None else each.fingerprint: n for each, n in counts.items()}
    return Snapshot(
        Position("t", 1, ""), Index.empty(), (), live, {}, {"orders": named}, merges or Merges()
    )


def test_columns_stand_in_the_order_of_first_publication_and_know_where_they_are_from() -> None:
    found = snapshot({V1: 3, V2: 4, None: 2}).datasource_schema("orders")
    assert found.schema == Schema.of("id BIGINT NOT NULL, amount BIGINT, note STRING")
    assert [column.path for column in found.columns] == ["id", "amount", "note"]
    assert (found.segments, found.segments_without_schema) == (9, 2)
    assert found.fingerprints == (V1.fingerprint, V2.fingerprint)
    assert found.schemas == (V1, V2)
    amount, note = found.columns[1:]
    assert (amount.type, amount.types, amount.segments) == ("bigint", {"int": 3, "bigint": 4}, 7)
    assert (note.fingerprints, note.segments, note.nullable) == ((V2.fingerprint,), 4, True)
    assert found.conflicts == ()


def test_schemas_published_at_one_moment_stand_in_the_order_of_their_fingerprints() -> None:
    one = snapshot({V1: 1, V2: 1})
    same = {name: StoredSchema(each.payload, 0) for name, each in one.live.items()}
    found = Snapshot(one.position, one.index, (), same, {}, one.counts)
    assert list(found.datasource_schema("orders").fingerprints) == sorted(same)


def test_a_conflict_is_reported_beside_the_columns_that_merge() -> None:
    found = snapshot({V1: 1, V2: 1, V3: 5}).datasource_schema("orders")
    assert found.schema is not None
    assert [column.path for column in found.schema.columns if not column.depth] == [
        *("id", "amount", "note", "tags")
    ]
    (conflict,) = found.conflicts
    assert (conflict.path, conflict.seen, conflict.kept) == (
        "amount",
        ("bigint", "string"),
        "bigint",
    )
    assert found.columns[1].types == {"int": 1, "bigint": 1, "string": 5}
    widest = snapshot({V1: 1, V3: 1}).datasource_schema("orders", "widest")
    assert widest.columns[1].type == "string"


def test_the_schema_is_never_empty_while_segments_have_schemas() -> None:
    found = snapshot({Schema.of("a INT"): 1, Schema.of("a DATE"): 1}).datasource_schema("orders")
    assert (found.schema, len(found.conflicts)) == (Schema.of("a INT"), 1)
    unknown = snapshot({None: 7}).datasource_schema("orders")
    assert (unknown.schema, unknown.columns, unknown.segments) == (None, (), 7)


def test_columns_leave_with_their_last_segment() -> None:
    merges = Merges()
    assert snapshot({V1: 1, V2: 1}, merges).datasource_schema("orders").schema is not None
    later = snapshot({V1: 1}, merges, V2).datasource_schema("orders")
    assert later.schema == V1


def test_going_on_from_the_last_merge_is_merging_everything() -> None:
    """Segments of schemas come and go at random; each answer equals one made from nothing."""
    rng = random.Random(7)
    kinds = ["INT", "BIGINT", "DATE", "STRUCT<x: INT>", "STRUCT<y: STRING>"]
    pool = [
        Schema.of(", ".join(f"c{n} {rng.choice(kinds)}" for n in rng.sample(range(6), 3)))
        for _ in range(25)
    ]
    for policy in ("strict", "widest", "latest"):
        merges, counts = Merges(), dict.fromkeys(pool, 0)
        for _ in range(200):
            each = rng.choice(pool)
            counts[each] = max(0, counts[each] + rng.choice([1, 1, -1]))
            used = {schema: count for schema, count in counts.items() if count}
            if not used:
                continue
            shot = snapshot(counts, merges)
            shot = Snapshot(
                shot.position, shot.index, (), shot.live, {},
                {"orders": {each.fingerprint: n for each, n in used.items()}}, merges,
            )  # fmt: skip
            found = shot.datasource_schema("orders", policy)
            fresh = merged(list(used), policy)
            assert found.schema is not None
            assert found.schema.json == fresh.schema.json
            assert found.conflicts == fresh.conflicts


def test_a_merge_is_not_made_again_for_another_segment() -> None:
    merges = Merges()
    one = snapshot({V1: 1, V2: 1}, merges).datasource_schema("orders")
    two = snapshot({V1: 1, V2: 2}, merges).datasource_schema("orders")
    assert one.schema is two.schema
    assert (one.columns[2].segments, two.columns[2].segments) == (1, 2)


def test_a_snapshot_that_travelled_gives_the_same_answer() -> None:
    shot = snapshot({V1: 1, V3: 1})
    there = pickle.loads(pickle.dumps(shot)).datasource_schema("orders")
    assert there.schema == shot.datasource_schema("orders").schema


def test_what_is_not_there_or_not_what_it_should_be_is_named() -> None:
    shot = snapshot({V1: 1})
    with pytest.raises(NotInSnapshot, match="customers"):
        shot.datasource_schema("customers")
    with pytest.raises(InvalidInput, match="policy"):
        shot.datasource_schema("orders", "loose")
    wrong = {V1.fingerprint: StoredSchema(V2.payload, 0)}
    broken = Snapshot(shot.position, shot.index, (), wrong, {}, shot.counts)
    with pytest.raises(CorruptSchema, match=V1.fingerprint):
        broken.datasource_schema("orders")
