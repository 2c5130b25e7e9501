"""Operations: invisible until they are decided, whole afterwards, and their claims respected."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, CatalogError, Object
from catalog.environment import Environment
from catalog.errors import (
    ClaimConflict,
    InvalidEpoch,
    InvalidInput,
    InvalidObject,
    InvalidSegment,
    ObjectInUse,
    OperationDecided,
    PartConflict,
    PartsMissing,
    ReadOnly,
    SegmentConflict,
    UnknownObject,
    UnknownOperation,
)
from catalog.operations.operation import Operation
from tests.concurrency.gates import assert_promises
from tests.spark.files import parquet
from tests.spark.operating import (
    changed,
    ids,
    refusal,
    remembered,
    revisions,
    rows,
    shown,
    staged,
    verbs,
)
from tests.unit.builders import segment

Open = Callable[..., Catalog]
HOUR = timedelta(hours=1)
# These change nothing of a segment that is there, so a claim on it need not refuse them.
LEFT_ALONE = ("publish the same", "skip")


def day(number: int) -> datetime:
    return datetime(2024, 1, number, tzinfo=UTC)


# --- invisible, then whole -----------------------------------------------------------------------


def test_what_is_staged_shows_nowhere_until_all_of_it_shows_at_one_version(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    narrow, wide = "a INT", "a INT, b STRING"
    first, second = (parquet(tmp_path / f"{n}.parquet", narrow) for n in (1, 2))
    catalog.publish(
        [
            segment("orders/1", narrow, location=first),
            segment("orders/2", narrow, location=second),
            segment("clicks/1", "c STRING"),
        ]
    )
    catalog.objects.put(
        [
            Object("table/orders", {"old": True}, datasource="orders"),
            Object("index/orders", links=["table/orders"]),
            Object("job/old"),
        ]
    )
    asked = ["orders/1", "orders/2", "orders/3", "visits/1"]
    catalog.inspect.create_functions("staged_")

    def in_sql() -> dict[str, str | None]:
        # A frame stays at the version at which it was made.
        values = ", ".join(f"('{key}')" for key in asked)
        found = spark.sql(
            f"SELECT id, staged_schema_of(id) AS ddl FROM VALUES {values} AS asked(id)"
        )
        return {row["id"]: row["ddl"] for row in found.collect()}

    cache, start = catalog.cache(), catalog.version
    before, before_sql, before_cache = shown(catalog), in_sql(), remembered(cache, asked)

    operation = catalog.operation("wider orders", parts=3)
    operation.stage(
        2,
        drop=["orders/2"],
        put=Object("table/orders", {"columns": 2}, datasource="orders"),
        remove="job/old",
    )
    location = parquet(tmp_path / "3.parquet", wide, rows=3)
    frame = spark.createDataFrame(
        [("orders/3", wide, 3, location), ("visits/1", "v DATE", 7, None)],
        "segment_id STRING, schema STRING, num_rows INT, location STRING",
    )
    operation.stage(0, publish=frame, put=Object("table/orders", {"rows": 4}))
    operation.stage(
        1,
        publish=[
            segment("orders/1", wide, location=parquet(tmp_path / "1b.parquet", wide)),
            segment("clicks/1", "c STRING"),  # which is there, and is to stay
        ],
        put=Object("view/orders", links=["index/orders"]),
        on_existing="replace",
    )
    assert catalog.version == start + 4
    assert shown(catalog) == before
    assert changed(catalog, start) == set()
    poll = cache.poll()
    assert (poll.added, poll.removed, poll.changed) == (0, 0, 0)
    assert remembered(cache, asked) == remembered(catalog.cache(), asked) == before_cache
    assert in_sql() == before_sql
    stats = catalog.stats()
    assert (stats.segments, stats.rows, stats.objects, stats.operations_open) == (3, 3, 3, 1)

    done = operation.publish(wait=True)
    assert (done.state, done.version, catalog.version) == ("published", start + 5, start + 5)
    assert {(change, key) for _, change, key in changed(catalog, start)} == {
        ("changed", "orders/1"),
        ("removed", "orders/2"),
        ("added", "orders/3"),
        ("added", "visits/1"),
        ("changed", "table/orders"),
        ("changed", "index/orders"),
        ("added", "view/orders"),
        ("removed", "job/old"),
    }
    assert {version for version, _, _ in changed(catalog, start)} == {done.version}
    assert shown(catalog, as_of=done.version - 1) == before
    after = shown(catalog)
    assert {name for name in before if before[name] == after[name]} == {"segments_without_schema"}
    assert after["schema"] == wide
    assert len(after["read"]) == 4
    assert rows(catalog) == {
        "orders/1": (1, 2),
        "orders/3": (3, 1),
        "visits/1": (7, 1),
        "clicks/1": (1, 1),
    }
    index, table, view = catalog.objects.list()
    assert (table.body, table.datasource) == ({"columns": 2, "rows": 4}, "orders")
    assert (table.revision, index.revision, view.revision) == (2, 2, 1)
    assert (index.links, view.links) == ({"table/orders": 2}, {"index/orders": 2})
    assert cache.version == done.version
    assert remembered(cache, asked) == remembered(catalog.cache(), asked)
    assert [row["found"] for row in remembered(cache, asked)["lookup"]] == [
        *(True, False, True, True)
    ]
    assert list(in_sql().values()) == [wide, None, wide, "v DATE"]
    for name in ("schema_of", "fingerprint_of", "segments_with", "columns_of"):
        spark.sql(f"DROP TEMPORARY FUNCTION staged_{name}")
    assert_promises(catalog)


@pytest.mark.stress
def test_a_hundred_thousand_segments_are_staged_as_a_frame_and_appear_at_once(
    spark: SparkSession, catalog: Catalog
) -> None:
    count = 100_000
    frame = spark.range(count).selectExpr(
        "concat('d', id % 300, '/', id) AS segment_id",
        "concat('a INT, c', id % 20, ' STRING') AS schema",
        "id AS num_rows",
    )
    catalog.publish(frame.where("num_rows < 10"))
    cache, start = catalog.cache(), catalog.version
    operation = catalog.operation("everything", parts=2)
    part = operation.stage(0, publish=frame)
    assert (part.segments, part.claimed) == (count, count + 300)
    assert operation.stage(0, publish=frame.repartition(7)).repeated
    operation.stage(1, put=Object("job/everything"))
    assert (cache.poll().added, catalog.segments().count()) == (0, 10)
    assert operation.status().num_claims == count + 1
    done = operation.publish(wait=True)
    assert done.version == start + 4
    assert (len(cache.snapshot), catalog.segments().count()) == (count, count)
    assert catalog.segments().where("revision > 1").count() == 0
    assert {row["version"] for row in catalog.audit.changes(done.version - 1).collect()} == {
        done.version
    }
    more = frame.selectExpr("segment_id", "schema", "num_rows + 1 AS num_rows")
    staged(catalog, "more rows", publish=more, on_existing="replace").publish()
    assert catalog.segments().where("revision = 2").count() == count
    assert catalog.stats().rows == sum(range(1, count + 1))
    assert_promises(catalog)


# --- the life of an operation --------------------------------------------------------------------


@pytest.mark.stress
def test_calls_are_repeated_without_harm_and_nothing_changes_what_is_decided(
    open_catalog: Open,
) -> None:
    time = [datetime(2024, 1, 1, tzinfo=UTC)]
    environment = Environment(clock=lambda: time[0])
    ann = open_catalog(actor="ann", environment=environment)
    bob = open_catalog(actor="bob", environment=environment)
    mine = ann.operation("load", parts=2, lease=HOUR, id="load-1")
    start = ann.version
    assert ann.operation("load", parts=2, id="load-1").id == "load-1"
    for others in ({"name": "load", "parts": 3}, {"name": "reload", "parts": 2}):
        error = refusal(
            ann, InvalidInput, lambda others=others: ann.operation(id="load-1", **others)
        )
        assert "another operation with the id load-1" in error.message
    his = bob.operations.get("load-1")
    assert (his.id, his.name) == ("load-1", "load")

    content: dict[str, Any] = {
        "publish": [segment("orders/1"), segment("orders/2")],
        "drop": ["orders/9"],
    }
    part = his.stage(1, **content)
    assert (part.segments, part.drops, part.objects, part.version) == (2, 1, 0, start + 1)
    assert (part.claimed, part.joined, part.repeated) == (4, 0, False)  # and the datasource
    content["publish"].reverse()
    again = mine.stage(1, **content)
    assert (again.segments, again.drops, again.claimed) == (2, 1, 0)
    assert (again.repeated, again.commit_id, ann.version) == (True, "", start + 1)
    error = refusal(ann, PartConflict, lambda: mine.stage(1, publish=content["publish"]))
    assert "Part 1 of operation 'load' (load-1, open, of ann) is staged already" in error.message
    error = refusal(ann, InvalidInput, lambda: mine.stage(2, drop=["orders/8"]))
    assert "has 2 parts, from 0 to 1; there is no part 2" in error.message
    for attempt in (mine.publish, lambda: mine.publish(epoch=1)):
        error = refusal(ann, PartsMissing, attempt)
        assert (error.values["missing"], error.retryable) == ((0,), True)

    status = his.status()
    assert (status.state, status.parts, status.staged, status.missing) == ("open", 2, (1,), (0,))
    assert (status.owner, status.opened_at, status.lease_until) == ("ann", time[0], time[0] + HOUR)
    assert (status.complete, status.expired, status.epoch, status.floor) == (False, False, None, 0)
    assert [(claim.target, claim.key, claim.action, claim.part) for claim in status.claims] == [
        ("datasource", "orders", "hold", 1),
        ("segment", "orders/1", "publish", 1),
        ("segment", "orders/2", "publish", 1),
        ("segment", "orders/9", "drop", 1),
    ]
    assert status.num_claims == 3
    time[0] += 2 * HOUR
    assert mine.status().expired
    assert mine.renew().lease_until == time[0] + HOUR
    assert not his.renew(2 * HOUR).expired
    assert mine.status().lease_until == time[0] + 2 * HOUR
    time[0] += 3 * HOUR

    # Nobody has recovered it, so its owner may go on, after the lease too.
    part = mine.stage(0, publish=[segment("orders/1")], put=Object("table/orders"))
    assert (part.claimed, part.joined) == (1, 1)
    done = his.publish()
    assert (done.operation, done.state, done.repeated) == ("load-1", "published", False)
    again = mine.publish()
    assert (again.version, again.commit_id, again.repeated) == (done.version, done.commit_id, True)
    assert mine.stage(1, **content).repeated
    for attempt in (
        lambda: mine.abort(),
        lambda: mine.renew(),
        lambda: mine.seal(),
        lambda: mine.publish(epoch=3),
    ):
        error = refusal(ann, OperationDecided, attempt)
        assert error.values["state"] == "published"
    status = his.status()
    assert (status.state, status.claims, status.num_claims) == ("published", (), 0)

    trial = staged(ann, "trial", publish=[segment("orders/3")])
    trial.abort(reason="not wanted")
    gone = trial.abort()
    assert (gone.state, gone.repeated) == ("aborted", True)
    for attempt in (
        trial.publish,
        lambda: trial.publish(epoch=1),
        lambda: trial.stage(1, drop=["orders/1"]),
    ):
        error = refusal(ann, OperationDecided, attempt)
        assert error.values["state"] == "aborted"
    assert ids(ann) == {"orders/1", "orders/2"}
    seen = ann.inspect.operations().orderBy("name").collect()
    assert [
        (row["name"], row["state"], row["parts"], row["parts_staged"], row["claims"], row["owner"])
        for row in seen
    ] == [("load", "published", 2, 2, 0, "ann"), ("trial", "aborted", 1, 1, 0, "ann")]
    figures = ann.operations.metrics()
    assert (figures.opened, figures.parts, figures.published, figures.aborted) == (2, 2, 0, 1)
    assert (figures.claimed, figures.joined) == (3, 1)
    assert bob.operations.metrics().published == 1
    assert_promises(ann)


@pytest.mark.stress
def test_an_operation_without_a_number_of_parts_is_sealed_before_it_is_published(
    catalog: Catalog,
) -> None:
    operation = catalog.operation("as many as come")
    assert "call seal()" in refusal(catalog, PartsMissing, operation.publish).message
    refusal(catalog, InvalidInput, operation.seal, "to seal it without a part")
    operation.stage(2, publish=[segment("orders/2")])
    operation.stage(0, publish=[segment("orders/0")])
    refusal(catalog, InvalidInput, lambda: operation.seal(2), "to seal it below its highest part")
    status = operation.seal()
    assert (status.parts, status.missing, status.complete) == (3, (1,), False)
    version = catalog.version
    assert operation.seal().parts == operation.seal(3).parts == 3
    assert catalog.version == version
    refusal(
        catalog, InvalidInput, lambda: operation.seal(4), "to seal it again with another number"
    )
    refusal(catalog, InvalidInput, lambda: operation.stage(3, drop=["orders/9"]), "part 3")
    assert refusal(catalog, PartsMissing, operation.publish).values["missing"] == (1,)
    operation.stage(1, publish=[segment("orders/1")])
    assert operation.status().complete
    operation.publish()
    assert ids(catalog) == {"orders/0", "orders/1", "orders/2"}
    # Whatever the number of parts: one commit.
    assert verbs(catalog, version) == ["stage", "publish operation"]


# --- claims --------------------------------------------------------------------------------------


def claimed_catalog(catalog: Catalog, data: Path) -> None:
    """What the operation below changes, and what it does not."""
    location = parquet(data / "pending.parquet", "p INT")
    within = {"starts_at": day(1), "ends_at": day(2)}
    catalog.publish(
        [
            segment("orders/1", **within),
            segment("orders/2"),
            segment("orders/3"),
            segment("clicks/1", starts_at=day(5), ends_at=day(6)),
            segment("pending/1", None, None, location=location),
        ]
    )
    catalog.objects.put(
        [
            Object("table/orders", datasource="orders"),
            Object("index/orders", links=["table/orders"]),
            Object("job/load"),
        ]
    )


CLAIMING: dict[str, Any] = {
    "publish": [
        segment("orders/1", rows=9),
        segment("orders/new"),
        segment("files/1.parquet"),
        segment("pending/1", "p INT"),
    ],
    "drop": ["orders/2", "orders/not there"],
    "put": Object("table/orders", {"claimed": True}, datasource="orders"),
    "remove": "job/load",
    "on_existing": "replace",
}


Attempts = dict[str, tuple[tuple[str, ...], Callable[[], object]]]
OBJECTS = ("index/orders", "table/orders")


def plain_attempts(spark: SparkSession, catalog: Catalog, data: Path) -> Attempts:
    """Every way to change what is claimed: the keys that stand in the way, and the call.

    All of them succeed, in this order, once nobody claims anything.
    """
    parquet(data / "files" / "1.parquet")
    same = segment("orders/1", starts_at=day(1), ends_at=day(2))
    mixed = [segment("orders/1", rows=5), segment("orders/4")]
    frame = spark.sql("SELECT 'orders/new' AS segment_id, 'a INT' AS schema, 1 AS num_rows")
    table = Object("table/orders", {"x": 1}, datasource="orders")
    index = Object("index/orders", {"y": 1}, links=["table/orders"])
    other = Object("index/other", links=["table/orders"])
    absent = segment("orders/not there")

    def files() -> object:
        return catalog.publish_files("files", f"{data}/files/*.parquet")

    return {
        "publish the same": (("orders/1",), lambda: catalog.publish([same])),
        "publish": (("orders/new",), lambda: catalog.publish([segment("orders/new")])),
        "publish a frame": (("orders/new",), lambda: catalog.publish(frame)),
        "publish what is to be dropped": (("orders/not there",), lambda: catalog.publish([absent])),
        "publish files": (("files/1.parquet",), files),
        "drop by id": (("orders/2",), lambda: catalog.drop(["orders/2", "orders/3"])),
        "drop by interval": (("orders/1",), lambda: catalog.drop(starts_at=day(1), ends_at=day(3))),
        "skip": (("orders/1",), lambda: catalog.publish(mixed, on_existing="skip")),
        "replace": (("orders/1",), lambda: catalog.publish(mixed, on_existing="replace")),
        "put": (OBJECTS, lambda: catalog.objects.put(table)),
        "put what links to it": (OBJECTS, lambda: catalog.objects.put(index)),
        "put a link to it": (("table/orders",), lambda: catalog.objects.put(other)),
        "remove": (("job/load",), lambda: catalog.objects.remove("job/load")),
        "remove what links to it": (
            ("index/orders",),
            lambda: catalog.objects.remove("index/orders"),
        ),
        "drop by datasource": (
            ("orders/1", "orders/2", "orders/new"),
            lambda: catalog.drop(datasource="orders"),
        ),
    }


def staging_attempts(rival: Operation) -> Attempts:
    """The same from another operation."""
    link = Object("index/other", links=["table/orders"])
    put = Object("table/orders", {"x": 1}, datasource="orders")
    return {
        "stage": (("orders/new",), lambda: rival.stage(0, publish=[segment("orders/new")])),
        "stage a drop": (("orders/2",), lambda: rival.stage(1, drop=["orders/2", "orders/3"])),
        "stage a put": (("index/orders",), lambda: rival.stage(2, put=put)),
        "stage a link": (("table/orders",), lambda: rival.stage(3, put=link)),
        "stage a removal": (("job/load",), lambda: rival.stage(4, remove="job/load")),
    }


@pytest.mark.stress
def test_whoever_meets_a_claim_is_told_the_holder_and_all_is_free_after_an_abort(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    claimed_catalog(catalog, tmp_path)
    holder = staged(catalog, "reload", **CLAIMING)
    rival = catalog.operation("rival")
    lease = holder.status().lease_until
    cases = {**staging_attempts(rival), **plain_attempts(spark, catalog, tmp_path)}
    for what in LEFT_ALONE:
        del cases[what]
    for what, (keys, attempt) in cases.items():
        error = refusal(catalog, ClaimConflict, attempt, what)
        assert error.values["keys"] == keys, what
        assert {name: error.values[name] for name in ("operation", "name", "state", "epoch")} == {
            "operation": holder.id,
            "name": "reload",
            "state": "open",
            "epoch": None,
        }, what
        assert error.values["lease_until"] == lease, what
        assert error.retryable, what
        assert f"operation 'reload' ({holder.id}, open, of tester)" in error.message, what
        assert lease.isoformat(timespec="seconds") in error.message, what
    version = catalog.version
    filled = catalog.backfill()
    assert catalog.version == version
    assert (filled.waiting, filled.completed, filled.claimed) == (1, 0, 1)

    # What nobody claims goes on beside it, in the same datasource and in the same bucket too.
    assert catalog.publish([segment("orders/5"), segment("clicks/2")]).inserted == 2
    assert catalog.drop(["orders/5"]).dropped == 1
    assert catalog.drop(starts_at=day(5), ends_at=day(6)).dropped == 1
    assert catalog.drop(datasource="clicks").dropped == 1
    assert catalog.objects.put(Object("job/other")).revisions == {"job/other": 1}
    assert holder.status().num_claims == 9

    holder.abort()
    for what, (_, attempt) in staging_attempts(rival).items():
        assert not attempt().repeated, what  # type: ignore[attr-defined]
    rival.abort()
    # Nothing was swept: the rows of both operations are still in the table.
    assert catalog.backfill().completed == 1
    done = {what: call() for what, (_, call) in plain_attempts(spark, catalog, tmp_path).items()}
    assert done["drop by id"].dropped == 2  # type: ignore[attr-defined]
    assert done["drop by interval"].dropped == 1  # type: ignore[attr-defined]
    assert done["replace"].existing == 2  # type: ignore[attr-defined]
    assert done["drop by datasource"].dropped == 4  # type: ignore[attr-defined]
    assert ids(catalog) == {"pending/1", "files/1.parquet"}
    assert revisions(catalog) == {"index/other": 1, "job/other": 1, "table/orders": 2}
    assert_promises(catalog)


@pytest.mark.parametrize(
    "mode",
    [
        "refuse",
        pytest.param("skip", marks=pytest.mark.stress),
        pytest.param("replace", marks=pytest.mark.stress),
    ],
)
def test_a_frame_respects_claims_in_every_mode(
    spark: SparkSession, catalog: Catalog, mode: str
) -> None:
    catalog.publish([segment("orders/1"), segment("orders/2"), segment("x/0")])
    holder = staged(catalog, "reload", drop=["orders/9"], put=Object("table/x", datasource="x"))
    frames = {
        key: spark.sql(
            f"SELECT segment_id, 'a INT' AS schema, 7 AS num_rows FROM VALUES ('{key}'), "
            "('clicks/1') AS t(segment_id)"
        )
        for key in ("orders/9", "x/1")
    }
    for key, frame in frames.items():
        error = refusal(
            catalog, ClaimConflict, lambda f=frame: catalog.publish(f, on_existing=mode), key
        )
        assert error.values["keys"] == (key.removesuffix("/1") if key == "x/1" else key,)
    # As a list it is another statement.
    error = refusal(
        catalog, ClaimConflict, lambda: catalog.publish([segment("x/1")], on_existing=mode)
    )
    assert error.values["keys"] == ("x",)
    assert ids(catalog) == {"orders/1", "orders/2", "x/0"}
    holder.publish()
    done = [catalog.publish(frame, on_existing=mode) for frame in frames.values()]
    assert [result.inserted for result in done] == [2, 1]
    assert_promises(catalog)


@pytest.mark.stress
def test_a_claim_ends_when_the_operation_is_published_or_its_epoch_is_reached(
    catalog: Catalog,
) -> None:
    catalog.publish([segment("orders/1")])
    catalog.objects.put(Object("table/x"))
    now = staged(catalog, "now", drop=["orders/1"], put=Object("job/a", links=["table/x"]))
    later = staged(catalog, "later", drop=["clicks/1"], put=Object("job/b", links=["table/x"]))
    # Both hold what they link to, and neither lets others change it.
    change = Object("table/x", {"changed": True})
    error = refusal(catalog, ClaimConflict, lambda: catalog.objects.put(change))
    assert error.values["keys"] == ("table/x",)
    assert error.values["operation"] in (now.id, later.id)
    assert catalog.objects.put(Object("job/c", links=["table/x"])).revisions == {"job/c": 1}

    later.publish(epoch=5)
    now.publish()
    assert catalog.publish([segment("orders/1", rows=2)]).inserted == 1
    for what, attempt in {
        "publish": lambda: catalog.publish([segment("clicks/1")]),
        "put": lambda: catalog.objects.put(change),
    }.items():
        error = refusal(catalog, ClaimConflict, attempt, what)
        assert (error.values["operation"], error.values["state"]) == (later.id, "ready")
        assert error.values["epoch"] == 5
        assert "It waits for epoch 5: advance the stable epoch to it" in error.message
    catalog.operations.advance(5)
    assert catalog.publish([segment("clicks/1")]).inserted == 1
    result = catalog.objects.put(change)
    assert (result.revisions, result.touched) == ({"table/x": 2}, ("job/a", "job/b", "job/c"))
    assert_promises(catalog)


@pytest.mark.stress
def test_a_part_takes_what_is_there_as_it_is_or_replaces_it(catalog: Catalog) -> None:
    catalog.publish([segment("orders/1"), segment("orders/2")])
    operation = catalog.operation("reload", parts=1)
    other = segment("orders/1", rows=7)
    error = refusal(catalog, SegmentConflict, lambda: operation.stage(0, publish=[other]))
    assert error.values["segment_ids"] == ("orders/1",)
    # The same content as another operation has decided on in vain.
    staged(catalog, "in vain", drop=["orders/2"]).abort()
    operation.stage(0, publish=[other, segment("orders/2")], on_existing="replace")
    actions = {claim.key: claim.action for claim in operation.status().claims}
    assert actions == {"orders": "hold", "orders/1": "replace", "orders/2": "keep"}
    before = catalog.segments().where("segment_id = 'orders/2'").collect()
    operation.publish()
    assert rows(catalog) == {"orders/1": (7, 2), "orders/2": (1, 1)}
    assert catalog.segments().where("segment_id = 'orders/2'").collect() == before


# --- several parts -------------------------------------------------------------------------------

CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "other content of a segment": {"publish": [segment("orders/1", rows=2)]},
    "the same segment without its schema": {
        "publish": [segment("orders/3", None, None, location="/data/3")]
    },
    "a drop of what is published": {"drop": ["orders/1"]},
    "a publish of what is dropped": {"publish": [segment("orders/2")]},
    "another value of a field": {"put": Object("table/x", {"a": 2})},
    "a field that looks the same": {"put": Object("table/x", {"a": True})},
    "another schema": {"put": Object("table/x", schema="b INT")},
    "another datasource": {"put": Object("table/x", datasource="other")},
    "a removal of what is put": {"remove": "table/x"},
    "a put of what is removed": {"put": Object("table/y")},
}


@pytest.mark.stress
def test_parts_that_contradict_each_other_are_refused_and_others_are_united(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.objects.put([Object("table/y"), Object("table/z")])
    operation = catalog.operation("reload", parts=3)
    first = Object("table/x", {"a": 1}, links=["table/z"], schema="a INT", datasource="x")
    published = [segment("orders/1"), segment("orders/3", location="/data/3")]
    operation.stage(1, publish=published, drop=["orders/2"], put=first, remove="table/y")
    for what, part in CONTRADICTIONS.items():
        error = refusal(catalog, PartConflict, lambda p=part: operation.stage(0, **p), what)
        assert "orders/" in error.message or "object table/" in error.message, what
    frame = spark.sql("SELECT 'orders/1' AS segment_id, 'a INT' AS schema, 1 AS num_rows")
    part = operation.stage(
        0,
        publish=frame,
        drop=["orders/2"],
        put=[Object("table/x", {"b": 2}, links=["job/new"]), Object("job/new")],
        remove="table/y",
    )
    assert (part.claimed, part.joined) == (1, 4)
    operation.stage(2, put=Object("table/x", {"a": 1, "c": None}, links=["table/z"]))
    operation.publish()
    made = catalog.objects.get("table/x")
    assert (made.body, made.revision) == ({"a": 1, "b": 2, "c": None}, 1)
    assert (made.links, made.datasource) == ({"job/new": 1, "table/z": 1}, "x")
    assert catalog.schema(made.fingerprint or "").ddl == "a INT"
    assert revisions(catalog) == {"job/new": 1, "table/x": 1, "table/z": 1}
    assert rows(catalog) == {"orders/1": (1, 1), "orders/3": (1, 1)}
    assert_promises(catalog)


@pytest.mark.stress
def test_what_an_operation_cannot_do_to_objects_is_refused_before_it_is_final(
    catalog: Catalog,
) -> None:
    catalog.objects.put([Object("table/x"), Object("index/x", links=["table/x"])])
    for what, kind, part in (
        ("a link to nowhere", UnknownObject, {"put": Object("job/a", links=["table/none"])}),
        ("a removal in use", ObjectInUse, {"remove": "table/x"}),
    ):
        wrong = staged(catalog, what, **part)  # another part may still put it right
        refusal(catalog, kind, wrong.publish, what)
        refusal(catalog, kind, lambda w=wrong: w.publish(epoch=1), what)
        wrong.abort()
    right = catalog.operation("put right", parts=2)
    right.stage(0, put=Object("job/a", links=["table/none"]), remove="table/x")
    right.stage(1, put=Object("table/none"), remove="index/x")
    right.publish()
    assert revisions(catalog) == {"job/a": 1, "table/none": 1}
    assert_promises(catalog)


# --- bad input -----------------------------------------------------------------------------------


def test_bad_input_is_refused_with_its_value_and_writes_nothing(
    spark: SparkSession, open_catalog: Open
) -> None:
    catalog = open_catalog()
    operation = catalog.operation("reload", parts=2)
    reader = open_catalog(read_only=True)
    joined = reader.operations.get(operation.id)
    one = [segment("orders/1")]
    nothing = spark.createDataFrame([], "segment_id STRING, schema STRING, num_rows INT")
    frame = spark.sql("SELECT 'orders/1' AS segment_id, 'a INT' AS schema, 1 AS num_rows")
    cases: list[tuple[type[CatalogError], str, Callable[[], object]]] = [
        *(
            (InvalidEpoch, repr(bad), lambda bad=bad, verb=verb: verb(bad))
            for bad in (0, -1, True, 1.0, "1", 1 << 63)
            for verb in (catalog.operations.advance, lambda epoch: operation.publish(epoch=epoch))
        ),
        *(
            (InvalidInput, repr(bad), lambda bad=bad: operation.stage(bad, publish=one))
            for bad in (-1, 10_000, True, "0", 0.0, None)
        ),
        *(
            (InvalidInput, repr(bad), lambda bad=bad: catalog.operation("x", parts=bad))
            for bad in (0, -1, 10_001, True, "3", 2.0)
        ),
        *(
            (InvalidInput, repr(bad), lambda bad=bad: catalog.operation("x", lease=bad))
            for bad in (timedelta(0), -HOUR, timedelta(days=3651), 60)
        ),
        *(
            (
                InvalidInput,
                "The id of an operation has",
                lambda bad=bad: catalog.operation("x", id=bad),
            )
            for bad in ("", "a b", "a/b", "ä", "a" * 129, 5)
        ),
        *(
            (InvalidInput, "name", lambda bad=bad: catalog.operation(bad))
            for bad in ("", "a\nb", "a" * 1001, 5)
        ),
        (UnknownOperation, "no operation nobody", lambda: catalog.operations.get("nobody")),
        (InvalidInput, "lease", lambda: operation.renew(timedelta(0))),
        (InvalidInput, "Part 0 brings nothing", lambda: operation.stage(0)),
        (InvalidInput, "Part 0 brings nothing", lambda: operation.stage(0, publish=nothing)),
        (InvalidInput, "list of ids", lambda: operation.stage(0, drop="orders/1")),
        (InvalidInput, "list of ids, not None", lambda: operation.stage(0, drop=None)),
        (InvalidInput, "or a DataFrame, not None", lambda: operation.stage(0, publish=None)),
        (InvalidInput, "not 5", lambda: catalog.operations.publish_pending(5)),
        (InvalidInput, "keep is a timedelta", lambda: catalog.operations.recover(keep="30d")),
        (InvalidSegment, "datasource/name", lambda: operation.stage(0, drop=["orders"])),
        (
            InvalidInput,
            "publishes and drops the same segments: orders/1",
            lambda: operation.stage(0, publish=one, drop=["orders/1"]),
        ),
        (
            InvalidInput,
            "publishes and drops the same segments: orders/1",
            lambda: operation.stage(0, publish=frame, drop=["orders/1"]),
        ),
        (
            InvalidInput,
            'on_existing is "refuse" or "replace", not "skip"',
            lambda: operation.stage(0, publish=one, on_existing="skip"),
        ),
        (InvalidInput, "on_existing", lambda: operation.stage(0, publish=one, on_existing="x")),
        (
            InvalidObject,
            "put and removed",
            lambda: operation.stage(0, put=Object("a/b"), remove="a/b"),
        ),
        (InvalidObject, "type/path", lambda: operation.stage(0, remove="nothing")),
        (InvalidInput, "parts", lambda: operation.seal(0)),
        (InvalidInput, "must not be negative", lambda: catalog.operations.recover(keep=-HOUR)),
        (ReadOnly, "read_only", lambda: reader.operation("x")),
        (ReadOnly, "read_only", lambda: joined.stage(0, publish=one)),
        (ReadOnly, "read_only", joined.publish),
        (ReadOnly, "read_only", joined.abort),
        (ReadOnly, "read_only", lambda: reader.operations.advance(1)),
        (ReadOnly, "read_only", lambda: reader.operations.publish_pending("orders/1")),
        (ReadOnly, "read_only", reader.operations.recover),
        (ReadOnly, "read_only", lambda: reader.objects.put(Object("a/b"))),
        (ReadOnly, "read_only", lambda: reader.objects.remove("a/b")),
    ]
    version = catalog.version
    for kind, said, attempt in cases:
        with pytest.raises(kind) as caught:
            attempt()
        assert type(caught.value) is kind
        assert said in caught.value.message
    assert catalog.version == version
    assert joined.status().staged == ()
    assert reader.operations.recover(dry_run=True).version == version
