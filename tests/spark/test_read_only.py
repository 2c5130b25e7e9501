"""A catalog that is opened for reading: every public verb is asked whether it writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Contract, Object, Run
from catalog.errors import ReadOnly
from catalog.objects.platform import PLATFORM
from catalog.sql.platform_views import PLATFORM_VIEWS
from catalog.sql.views import VIEWS
from catalog.tasks.kind import TaskKind, TaskStep, in_order
from tests.spark.files import parquet
from tests.spark.test_upgrade import LATER
from tests.unit.builders import segment

Open = Callable[..., Catalog]
Verbs = dict[str, Callable[[Catalog], Any]]
NOW = datetime(2024, 1, 31, tzinfo=UTC)

# A new verb of `Catalog` belongs into one of these, or the first test fails.
NEITHER = {"open", "close", "restore"}
VALUES = {"actor", "location", "stable_epoch", "table_id", "version"}
# Those that show a view all do the same, and one is asked for the others.
# Those of the types of the platform are for SQL alone.
SHOWN = {view.name for view in VIEWS if view not in PLATFORM_VIEWS} - VALUES
READS: Verbs = {
    # It writes, but not to the catalog.
    "backup": lambda c: c.backups.create(f"{c.location}/../backup"),
    "cache": lambda c: c.cache(datasources=["orders"]).num_rows("orders/1"),
    "changes": lambda c: c.audit.changes(0).collect(),
    "contract": lambda c: c.contracts.get("orders"),
    # At a path these are temporary views and functions of the user's session.
    "create_functions": lambda c: c.inspect.create_functions("r_"),
    "create_views": lambda c: c.inspect.create_views("r_"),
    "datasource_schema": lambda c: c.datasource_schema("orders"),
    "datasource_schemas": lambda c: c.datasource_schemas(),
    "get": lambda c: c.objects.get("table/a"),
    "get_setting": lambda c: c.settings.get("deadline"),
    "growth": lambda c: c.audit.growth(0),
    "history": lambda c: c.audit.history().collect(),
    "list": lambda c: c.objects.list(),
    "named_schema": lambda c: c.names.get("order"),
    "operation_metrics": lambda c: c.operations.metrics(),
    "read": lambda c: c.read("orders").collect(),
    "reload_settings": lambda c: c.settings.reload(),
    "runs": lambda c: c.audit.runs().collect(),
    "schema": lambda c: c.schema(segment().fingerprint or ""),
    "segments": lambda c: c.segments().collect(),
    "settings": lambda c: c.settings.list(),
    "stable_epoch_at": lambda c: c.operations.stable_epoch_at(c.version),
    "stats": lambda c: c.stats(),
    "still_works": lambda c: c.names.still_works("order", 1),
    "task": lambda c: c.tasks.get(c.tasks.list().collect()[0]["task_id"]),
    "tasks": lambda c: c.tasks.list().collect(),
    "types": lambda c: c.objects.types(),
    "verify": lambda c: c.verify(),
    "version_at_epoch": lambda c: c.operations.version_at_epoch(1),
}
# Those that can be asked what they would do answer that.
DRY_RUNS: Verbs = {
    "backfill": lambda c: c.backfill(dry_run=True),
    "cleanup": lambda c: c.cleanup(dry_run=True),
    "drop": lambda c: c.drop(["orders/1"], dry_run=True),
    "maintain": lambda c: c.maintain(dry_run=True),
    "publish_files": lambda c: c.publish_files("x", f"{c.location}/../lake", dry_run=True),
    "recover": lambda c: c.operations.recover(dry_run=True),
    "register": lambda c: c.names.register("order", "a INT", dry_run=True),
    "remove": lambda c: c.objects.remove("table/a", dry_run=True),
    "remove_contract": lambda c: c.contracts.remove("orders", dry_run=True),
    "retain": lambda c: c.retention.apply(dry_run=True),
    "roll_audit": lambda c: c.audit.roll(dry_run=True),
    "rollback": lambda c: c.backups.rollback(1, dry_run=True),
    "set_contract": lambda c: c.contracts.set("orders", Contract(max_rows=1), dry_run=True),
    "upgrade": lambda c: c.upgrade(dry_run=True),
}
WRITES: Verbs = {
    "adopt_settings": lambda c: c.settings.adopt({}, "strata.toml"),
    "advance": lambda c: c.operations.advance(1),
    "announcer": lambda c: c.announcer("job"),
    "backfill": lambda c: c.backfill(),
    "cancel_task": lambda c: c.tasks.cancel("7c1e"),
    "cleanup": lambda c: c.cleanup(),
    "declare": lambda c: c.objects.declare(PLATFORM),
    "drop": lambda c: c.drop(["orders/1"]),
    "ensure": lambda c: c.objects.ensure(Object("a/b")),
    "maintain": lambda c: c.maintain(),
    "operation": lambda c: c.operation("x"),
    "publish": lambda c: c.publish([segment("orders/2")]),
    "publish_files": lambda c: c.publish_files("orders", "/nowhere"),
    "publish_pending": lambda c: c.operations.publish_pending("orders/1"),
    "put": lambda c: c.objects.put(Object("a/b")),
    "record": lambda c: c.audit.record(Run("r", "verify", {}, "ann", NOW, NOW)),
    "recover": lambda c: c.operations.recover(),
    "register": lambda c: c.names.register("order", "a BIGINT"),
    "remove": lambda c: c.objects.remove("table/a"),
    "remove_contract": lambda c: c.contracts.remove("orders"),
    "rename": lambda c: c.objects.rename("table/a", "b"),
    "resume_task": lambda c: c.tasks.resume("7c1e"),
    "retain": lambda c: c.retention.apply(),
    "roll_audit": lambda c: c.audit.roll(),
    "rollback": lambda c: c.backups.rollback(1),
    "run_task": lambda c: c.tasks.run("cleanup"),
    "set_contract": lambda c: c.contracts.set("orders", Contract(max_rows=1)),
    "set_mode": lambda c: c.names.set_mode("order", "none"),
    "set_setting": lambda c: c.settings.set("deadline", 5),
    "unset_setting": lambda c: c.settings.unset("deadline"),
    "upgrade": lambda c: c.upgrade(),
}


def test_it_is_known_of_every_public_verb_whether_it_writes() -> None:
    public = {name for name in dir(Catalog) if not name.startswith("_")}
    assert public == {*NEITHER, *VALUES, *SHOWN, *READS, *WRITES}
    takes_dry_run = {name for name in WRITES if "dry_run" in getattr(Catalog, name).__annotations__}
    assert takes_dry_run == DRY_RUNS.keys()


def test_read_only_refuses_every_verb_that_writes_and_touches_no_file(
    open_catalog: Open, location: str, tmp_path: Path
) -> None:
    lake = parquet(tmp_path / "lake" / "1.parquet")
    writer = open_catalog()
    writer.publish([segment("orders/1", location=lake)])
    writer.objects.put([Object("table/a")])
    writer.names.register("order", "a INT")
    writer.operations.advance(1)
    writer.tasks.run(TaskKind("noted", in_order(TaskStep("note", lambda work: {}))))
    before = everything_in(Path(location))
    reader, old = open_catalog(read_only=True), open_catalog(read_only=True, layout=LATER)
    for name, write in WRITES.items():
        with pytest.raises(ReadOnly, match="read_only=True"):
            write(old if name == "upgrade" else reader)
    with pytest.raises(ReadOnly, match="read_only=True"):
        reader.cache(resolve=True)
    for read in READS.values():
        read(reader)
    for ask in DRY_RUNS.values():
        ask(reader)
    assert all(getattr(reader, name) is not None for name in VALUES)
    reader.close()
    assert everything_in(Path(location)) == before


def everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder with its size and the time of its last change."""
    found = [folder, *folder.rglob("*")]
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(found)}


@pytest.mark.stress
def test_read_only_makes_no_persistent_views_and_functions(
    spark: SparkSession, schema_name: str
) -> None:
    Catalog.open(spark, schema_name)
    with Catalog.open(spark, schema_name, read_only=True) as reader:
        for write in (reader.inspect.create_views, reader.inspect.create_functions):
            with pytest.raises(ReadOnly):
                write()
