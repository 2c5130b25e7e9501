"""Publishing lists: what comes back, what is refused, what shares a commit."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, CatalogError, Segment
from catalog.delta.statements import BULK_ROWS
from catalog.environment import Environment
from catalog.errors import (
    CommitFailed,
    DuplicateSegment,
    FingerprintCollision,
    GaveUp,
    InvalidInput,
    InvalidSchema,
    InvalidSegment,
    SegmentConflict,
)
from tests.spark.together import Together
from tests.unit.builders import segment


def test_a_large_list_is_stored_as_small_ones_are(catalog: Catalog) -> None:
    def made(number: int) -> Segment:
        more: dict[str, Any] = {
            "location": f"/d/{number}",
            "size_bytes": number,
            "starts_at": datetime(2024, 1, 1, tzinfo=UTC),
        }
        return Segment(f"orders/{number}", f"a INT, c{number % 3} INT", number, **more)

    large = [made(number) for number in range(BULK_ROWS)]
    assert catalog.publish(large).inserted == BULK_ROWS
    # The digests that the engine computed are those of the segments.
    again = catalog.publish([*large[:5], segment("orders/new")])
    assert (again.inserted, again.existing) == (1, 5)
    assert catalog.verify().ok


def test_a_publish_says_what_it_inserted(catalog: Catalog) -> None:
    first = catalog.publish([segment("orders/1", "a INT"), segment("orders/2", "b INT")])
    assert (first.version, first.inserted, first.existing) == (1, 2, 0)
    assert len(first.fingerprints) == 2
    second = catalog.publish([segment("orders/3", "a INT")])
    assert (second.version, second.inserted, second.fingerprints) == (
        2,
        1,
        first.fingerprints[:1],
    )


def test_the_same_again_is_no_change(catalog: Catalog) -> None:
    batch = [segment("orders/1", location="x", size_bytes=3), segment("orders/2", "b INT")]
    catalog.publish(batch)
    again = catalog.publish(batch)
    assert (again.version, again.inserted, again.existing, again.commit_id) == (1, 0, 2, "")
    mixed = catalog.publish([*batch, segment("orders/3"), segment("other/1", "new STRING")])
    assert (mixed.version, mixed.inserted, mixed.existing) == (2, 2, 2)
    assert catalog.verify(since=0).ok


@pytest.mark.connect
def test_other_content_under_a_known_id_refuses_the_whole(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1")])
    with pytest.raises(SegmentConflict, match="orders/1") as caught:
        catalog.publish([segment("orders/0"), segment("orders/1", rows=2)])
    assert caught.value.values["segment_ids"] == ("orders/1",)
    assert not caught.value.retryable
    assert catalog.version == 1
    assert catalog.cache().datasources() == {"orders": 1}


def test_skip_leaves_and_replace_updates_what_is_there(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1")])
    skipped = catalog.publish(
        [segment("orders/1", rows=2), segment("orders/2", "b INT")], on_existing="skip"
    )
    assert (skipped.inserted, skipped.existing, skipped.replaced) == (1, 1, 0)
    cache = catalog.cache()
    assert cache.num_rows("orders/1") == 1
    replaced = catalog.publish(
        [segment("orders/1", "c INT", rows=5), segment("orders/2", "b INT"), segment("orders/3")],
        on_existing="replace",
    )
    assert (replaced.inserted, replaced.existing, replaced.replaced) == (1, 1, 1)
    poll = cache.poll()
    assert (poll.added, poll.changed, poll.removed) == (1, 1, 0)
    assert cache.num_rows("orders/1") == 5
    assert cache.schema_of("orders/1").ddl == "c INT"
    row = catalog.segments().where("segment_id = 'orders/1'").collect()[0]
    assert row["revision"] == 2
    assert row["published_at"] < row["changed_at"]
    nothing = catalog.publish([segment("orders/1", "c INT", rows=5)], on_existing="replace")
    assert (nothing.existing, nothing.version) == (1, replaced.version)
    assert catalog.verify(since=0).ok


def test_every_field_comes_back_as_it_went_in(catalog: Catalog) -> None:
    wanted = Segment(
        "orders' \\ \"` é😀/na/me; --",
        "id BIGINT NOT NULL COMMENT 'the ''id''', s STRUCT<a: INT, `b c`: STRING>",
        (1 << 63) - 1,
        size_bytes=0,
        location='s3://b/it\'s \\ "x"?a=1',
        starts_at=datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        ends_at=datetime(2024, 1, 1, tzinfo=UTC),
    )
    catalog.publish([wanted], actor="o'neil", reason='because "x" \\ é')
    row = catalog.segments().collect()[0]
    assert (row["segment_id"], row["datasource"], row["name"]) == (
        wanted.id,
        wanted.datasource,
        wanted.name,
    )
    assert (row["num_rows"], row["size_bytes"], row["location"]) == (
        wanted.num_rows,
        wanted.size_bytes,
        wanted.location,
    )
    assert row["starts_at"].astimezone(UTC) == wanted.starts_at
    assert row["changed_by"] == "o'neil"
    schema = catalog.schema(wanted.schema.fingerprint[:9].upper())
    assert (schema, schema.ddl) == (wanted.schema, wanted.schema.ddl)
    history = catalog.audit.history(1).collect()[0]
    assert (history["verb"], history["actors"], history["reasons"]) == (
        "publish",
        ["o'neil"],
        ['because "x" \\ é'],
    )
    assert catalog.verify().ok


BAD: list[tuple[Callable[[Catalog], Any], type[CatalogError], str]] = [
    (lambda c: c.publish([segment("")]), InvalidSegment, "datasource/name"),
    (lambda c: c.publish([segment("no-slash")]), InvalidSegment, "no-slash"),
    (lambda c: c.publish([segment("a/" + "x" * 2000)]), InvalidSegment, "1024"),
    (lambda c: c.publish([segment("a/\x00")]), InvalidSegment, "control"),
    (lambda c: c.publish([segment("a/1", rows=-1)]), InvalidSegment, "-1"),
    (lambda c: c.publish([segment("a/1", size_bytes=-1)]), InvalidSegment, "size_bytes"),
    (lambda c: c.publish([segment("a/1", ddl="")]), InvalidSchema, "column"),
    (lambda c: c.publish([segment("a/1", ddl="a INT, A INT")]), InvalidSchema, "case"),
    (lambda c: c.publish([segment("a/1", ddl="a NOTATYPE")]), InvalidSchema, "NOTATYPE"),
    (
        lambda c: c.publish([segment("a/1"), segment("a/1", rows=9)]),
        DuplicateSegment,
        "a/1",
    ),
    (lambda c: c.publish(["a/1"]), InvalidInput, "Segment"),
    (lambda c: c.publish([segment("a/1")], on_existing="merge"), InvalidInput, "merge"),
    (lambda c: c.publish([segment("a/1")], deadline=0), InvalidInput, "deadline"),
    (lambda c: c.publish([segment("a/1")], reason="a\x07b"), InvalidInput, "reason"),
    (lambda c: c.drop(), InvalidInput, "Say what"),
    (lambda c: c.drop("a/1"), InvalidInput, "list"),
    (lambda c: c.drop(["a"]), InvalidSegment, "datasource/name"),
    (lambda c: c.drop(["a/1"], datasource="a"), InvalidInput, "both"),
    (lambda c: c.drop(datasource="a/b"), InvalidInput, "slash"),
    (lambda c: c.drop(starts_at=datetime(2024, 1, 1)), InvalidInput, "time zone"),
    (lambda c: c.cleanup(limit=0), InvalidInput, "limit"),
    (lambda c: c.segments(as_of=99), CatalogError, "99"),
    (lambda c: c.segments(as_of="yesterday"), InvalidInput, "yesterday"),
    (lambda c: c.schema("zz"), InvalidInput, "zz"),
    (lambda c: c.schema("abcd1234"), CatalogError, "abcd1234"),
]


def test_bad_input_is_named_and_changes_nothing(catalog: Catalog) -> None:
    catalog.publish([segment("known/1")])
    for number, (call, error, words) in enumerate(BAD):
        with pytest.raises(error) as caught:
            call(catalog)
        assert words in str(caught.value), f"case {number}: {caught.value}"
        assert str(caught.value).startswith(f"[{caught.value.condition}]")
    assert catalog.version == 1


def test_a_fingerprint_that_stands_for_something_else_is_refused(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    catalog.publish([segment("orders/1", "a INT"), segment("orders/2", "b INT")])
    fingerprint = segment("x/1", "a INT").schema.fingerprint
    spark.sql(
        f"UPDATE delta.`{location}/entries` SET digest = 'made up' "
        f"WHERE kind = 'schema' AND key = '{fingerprint}'"
    )
    version = catalog.version
    with pytest.raises(FingerprintCollision, match=fingerprint):
        catalog.publish([segment("orders/3", "a INT")])
    frame = spark.sql("SELECT 'orders/4' segment_id, 'a INT' schema, 1 num_rows")
    with pytest.raises(FingerprintCollision, match=fingerprint):
        catalog.publish(frame)
    assert catalog.version == version
    assert catalog.publish([segment("orders/5", "b INT")]).inserted == 1
    assert {violation.promise for violation in catalog.verify().violations} == {"I1"}


def test_callers_that_wait_together_share_a_commit(catalog: Catalog) -> None:
    catalog.publish([segment("orders/0")])
    results = Together(catalog).publish(
        [[segment(f"orders/{n}"), segment(f"other/{n}", "b INT")] for n in range(1, 5)]
    )
    assert [(r.version, r.inserted) for r in results] == [(2, 2)] * 4
    assert len({r.commit_id for r in results}) == 1
    metadata = json.loads(
        catalog._context.store.history(1).select("userMetadata").collect()[0]["userMetadata"]
    )
    assert [c["actor"] for c in metadata["callers"]] == [f"caller {n}" for n in range(4)]
    assert catalog.verify(since=0).ok


def test_one_new_id_from_two_callers_is_written_once(catalog: Catalog) -> None:
    first, second, third = Together(catalog).publish(
        [[segment("orders/1")], [segment("orders/1")], [segment("orders/1", rows=7)]]
    )
    assert (first.inserted, first.existing) == (1, 0)
    assert (second.inserted, second.existing, second.version) == (0, 1, first.version)
    assert isinstance(third, SegmentConflict)
    assert catalog.cache().num_rows("orders/1") == 1
    assert catalog.verify(since=0).ok


def test_a_loser_inside_a_group_wins_when_the_winner_is_refused(catalog: Catalog) -> None:
    catalog.publish([segment("orders/0")])
    first, second = Together(catalog).publish(
        [[segment("orders/0", rows=9), segment("orders/1")], [segment("orders/1", rows=7)]]
    )
    assert isinstance(first, SegmentConflict)
    assert second.inserted == 1
    assert catalog.cache().num_rows("orders/1") == 7


def test_one_bad_request_does_not_fail_the_other_nine(catalog: Catalog) -> None:
    catalog.publish([segment("orders/5", rows=99)])
    results = Together(catalog).publish([[segment(f"orders/{n}")] for n in range(10)])
    assert isinstance(results[5], SegmentConflict)
    others = [r for n, r in enumerate(results) if n != 5]
    assert [(r.inserted, r.version) for r in others] == [(1, 2)] * 9
    assert catalog.cache().datasources() == {"orders": 10}
    assert catalog.verify(since=0).ok


@pytest.mark.exact
def test_a_deadline_counts_waiting_and_leaves_nothing_behind(
    catalog: Catalog, location: str
) -> None:
    import fcntl

    with (Path(location) / ".entries.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(GaveUp, match=r"entries\.lock") as caught:
            catalog.publish([segment("orders/1")], deadline=0.3)
    assert caught.value.retryable
    assert catalog.version == 0
    # A commit takes longer than this, but commits are not waiting.
    assert catalog.publish([segment("orders/1")], deadline=0.3).inserted == 1


def lose_the_first_answer(catalog: Catalog) -> list[Any]:
    """The first statement commits, but its answer does not arrive; returns what was run."""
    once, calls = catalog._context.writer._once, []

    def lose(*args: Any) -> Any:
        done = once(*args)
        calls.append(done)
        if len(calls) == 1:
            raise ConnectionResetError("the answer was lost on the way")
        return done

    catalog._context.writer._once = lose  # type: ignore[method-assign]
    return calls


def test_a_lost_answer_is_settled_by_the_history(catalog: Catalog) -> None:
    calls = lose_the_first_answer(catalog)
    result = catalog.publish([segment("orders/1"), segment("orders/2", "b INT")])
    assert (len(calls), result.version, result.inserted) == (1, 1, 2)
    assert catalog.verify(since=0).ok


def test_a_lost_answer_is_settled_by_running_again_if_the_history_does_not_know(
    catalog: Catalog,
) -> None:
    calls = lose_the_first_answer(catalog)
    store, asked = catalog._context.store, []

    def forgetful(commit_id: str, among: int = 200) -> int | None:
        asked.append(commit_id)
        return None if len(asked) == 1 else type(store).find_commit(store, commit_id, among)

    store.find_commit = forgetful  # type: ignore[method-assign]
    result = catalog.publish([segment("orders/1")])
    assert (result.version, result.inserted, result.existing) == (1, 1, 0)
    assert (len(calls), len(asked) >= 2) == (1, True)  # the second try refused itself
    assert catalog.version == 1


def test_a_refusal_of_spark_says_that_nothing_was_written(
    open_catalog: Callable[..., Catalog],
) -> None:
    def break_the_source(point: str, frame: Any) -> Any:
        return frame.drop("digest")

    catalog = open_catalog(environment=Environment(source=break_the_source))
    with pytest.raises(CommitFailed, match="nothing was written"):
        catalog.publish([segment("orders/1")])
    assert catalog.version == 0


def test_an_empty_publish_is_no_change(catalog: Catalog) -> None:
    assert catalog.publish([]).version == 0
