"""Going back to a version or a backup: contents, revisions, what stays, what refuses it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Object
from catalog.errors import (
    BackupNotFound,
    ClaimConflict,
    InvalidInput,
    NumberTaken,
    ReadOnly,
    VersionNotFound,
)
from tests.spark.operating import refusal, revisions, staged
from tests.unit.builders import segment

Open = Callable[..., Catalog]


def contents(catalog: Catalog, as_of: int | None = None) -> dict[str, Any]:
    """What a rollback brings back, in the words of readers."""
    columns = ("segment_id", "fingerprint", "num_rows", "location", "published_at")
    return {
        "segments": sorted(map(str, catalog.segments(as_of).select(*columns).collect())),
        "objects": {
            each.key: (each.id, each.body, sorted(each.links), each.fingerprint, each.datasource)
            for each in catalog.objects.list(as_of=as_of)
        },
    }


def counted(report: Any) -> dict[str, tuple[int, int, int]]:
    return {each.kind: (each.inserted, each.updated, each.deleted) for each in report.changes}


@pytest.mark.stress  # in CI: the notebook on the platform, and what others write meanwhile
@pytest.mark.parametrize("there_and_back", [False, True])
def test_contents_go_back_and_everything_else_goes_on(
    catalog: Catalog, tmp_path: Path, there_and_back: bool
) -> None:
    catalog.publish([segment(f"orders/{n}", f"a INT, b{n} INT", n) for n in range(1, 5)])
    catalog.objects.put(
        [
            Object("db/x", {"n": 1}),
            Object("table/x/y", {"t": 1}, links=["db/x"], datasource="orders", schema="s INT"),
            Object("index/x/y", {}, links=["table/x/y"]),
            Object("node/gone", {"n": 1}),
        ]
    )
    catalog.objects.put(Object("node/gone", {"n": 2}))
    then = catalog.version
    backup = str(tmp_path / "backup")
    if there_and_back:
        catalog.backups.create(backup)
    before = contents(catalog)
    cache = catalog.cache()

    # Dropped, replaced, dropped and published again, new; changed, removed, created anew.
    catalog.drop(["orders/1", "orders/3"])
    catalog.publish([segment("orders/2", "other INT", 9)], on_existing="replace")
    catalog.publish([segment("orders/3", "a INT, b3 INT", 3), segment("visits/1", "v INT")])
    catalog.objects.put([Object("db/x", {"n": 2}), Object("node/gone", {"n": 3})])
    catalog.objects.remove(["index/x/y", "table/x/y", "node/gone"])
    catalog.objects.put([Object("node/gone", {"other": True}), Object("node/new", {})])
    staged(catalog, publish=[segment("visits/2")]).publish()
    catalog.operations.advance(7)
    catalog.cleanup(grace=timedelta(0))
    catalog.cleanup(grace=timedelta(0))
    after, head = contents(catalog), catalog.version
    assert before != after
    seen = revisions(catalog)
    ever = {**revisions(catalog, then), **seen}

    look = catalog.backups.rollback(then, dry_run=True)
    assert (look.version, look.dry_run, catalog.version) == (head, True, head)
    assert counted(look) == {
        "segment": (1, 2, 2),
        "object": (2, 2, 1),
        "schema": (3, 0, 0),  # two of the segments, and that of the table
    }
    first = {each.kind: each.first for each in look.changes}
    assert first["segment"][0] == ("insert", "orders/1")
    assert ("delete", "node/new") in first["object"]

    report = catalog.backups.rollback(then, actor="ann", reason="a bad day")
    assert (report.version, report.beside, counted(report)) == (head + 1, 0, counted(look))
    assert contents(catalog) == before
    assert catalog.operations.stable_epoch == 7
    for key, revision in revisions(catalog).items():
        assert revision > ever[key], key
    poll = cache.poll()
    assert not poll.reloaded
    assert cache.snapshot.content() == catalog.cache().snapshot.content()
    (row,) = catalog.audit.history(1).collect()
    assert (row["verb"], row["actors"]) == ("rollback", ["ann"])
    again = catalog.backups.rollback(then)
    assert (again.version, again.commit_id, again.changes) == (report.version, "", ())
    if there_and_back:
        # To what was undone, and by the backup to what it holds.
        catalog.backups.rollback(head)
        assert contents(catalog) == after
        over = catalog.backups.rollback(backup=backup, reason="by the backup")
        assert (over.target, over.rows) == (f"backup {backup}", report.rows - 3)
        assert contents(catalog) == before
        catalog.cleanup(grace=timedelta(0))
    verified = catalog.verify(since=0)
    assert verified.ok, verified


@pytest.mark.stress
def test_what_cannot_go_back_is_refused_and_writes_nothing(
    catalog: Catalog, open_catalog: Open, tmp_path: Path
) -> None:
    catalog.publish([segment("orders/1")])
    catalog.publish([segment("orders/2"), segment("visits/1")])
    catalog.objects.put(
        [Object("db/x", {}, datasource="rides"), Object("table/y", {}, links=["db/x"])]
    )
    head = catalog.version
    nothing = str(tmp_path / "nothing")
    reader = open_catalog(read_only=True)
    for kind, attempt in (
        (InvalidInput, lambda: catalog.backups.rollback()),
        (InvalidInput, lambda: catalog.backups.rollback(1, backup=nothing)),
        (BackupNotFound, lambda: catalog.backups.rollback(backup=nothing)),
        (VersionNotFound, lambda: catalog.backups.rollback(99)),
        (ReadOnly, lambda: reader.backups.rollback(1)),
    ):
        refusal(catalog, kind, attempt)
    assert reader.backups.rollback(1, dry_run=True).rows == 4

    # A claim on what would change: a segment, an object, or the datasource of either.
    for part in (
        {"publish": [segment("visits/9")]},
        {"put": [Object("index/z", {}, links=["db/x"])]},
        {"publish": [segment("rides/1")]},
    ):
        operation = staged(catalog, **part)
        error = refusal(catalog, ClaimConflict, lambda: catalog.backups.rollback(1), str(part))
        assert operation.id in str(error)
        operation.abort()
    # One that claims nothing of it is not in the way, before and after.
    other = staged(catalog, publish=[segment("trips/1")])
    assert catalog.backups.rollback(1).rows == 4
    assert other.publish().state == "published"
    assert catalog.backups.rollback(head).rows == 5
    assert {each.key for each in catalog.objects.list()} == {"db/x", "table/y"}
    report = catalog.verify(since=0)
    assert report.ok, report


@pytest.mark.stress
def test_a_name_comes_back_with_all_its_versions_or_not_at_all(
    spark: SparkSession, catalog: Catalog, tmp_path: Path
) -> None:
    older, newer, last = (str(tmp_path / name) for name in ("older", "newer", "last"))
    catalog.names.register("orders", "a INT")
    catalog.backups.create(older)
    catalog.names.register("orders", "a INT, b INT")
    catalog.backups.create(newer)
    Catalog.restore(spark, older, str(tmp_path / "copy"))
    copy = Catalog.open(spark, str(tmp_path / "copy"))
    # The backup has more versions than the catalog: who counts them comes along.
    report = copy.backups.rollback(backup=newer)
    assert counted(report) == {"named": (0, 1, 0), "schema": (1, 0, 0), "version": (1, 0, 0)}
    assert copy.backups.rollback(backup=older).rows == 0
    assert copy.names.register("orders", "a INT, b INT, c INT").version == 3
    # Both went on from there, each in its own way.
    catalog.names.register("orders", "a INT, b INT, d INT")
    catalog.backups.create(last)
    for dry_run in (True, False):
        error = refusal(
            copy, NumberTaken, lambda d=dry_run: copy.backups.rollback(backup=last, dry_run=d)
        )
        assert "orders/3" in str(error)
    verified = copy.verify(since=0)
    assert verified.ok, verified
    copy.close()
