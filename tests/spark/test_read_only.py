"""A catalog that is opened for reading: every public verb is asked whether it writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Contract, Object, Run
from catalog.audit.api import AuditApi
from catalog.backups.api import BackupsApi
from catalog.contracts.api import ContractsApi
from catalog.errors import ReadOnly
from catalog.names.api import NamesApi
from catalog.objects.api import ObjectsApi
from catalog.objects.platform import PLATFORM
from catalog.operations.api import OperationsApi
from catalog.retention.api import RetentionApi
from catalog.settings.api import SettingsApi
from catalog.sql.api import InspectApi
from catalog.sql.platform_views import PLATFORM_VIEWS
from catalog.sql.views import VIEWS
from catalog.tasks.api import TasksApi
from catalog.tasks.kind import TaskKind, TaskStep, in_order
from tests.spark.files import parquet
from tests.spark.test_upgrade import LATER
from tests.unit.builders import segment

Open = Callable[..., Catalog]
Verbs = dict[str, Callable[[Catalog], Any]]
NOW = datetime(2024, 1, 31, tzinfo=UTC)

# A new verb of `Catalog` belongs into one of these, or the first test fails.
NEITHER = {"open", "close", "restore"}
VALUES = {"actor", "location", "operations.stable_epoch", "table_id", "version"}
FACETS: dict[str, type] = {
    "audit": AuditApi,
    "backups": BackupsApi,
    "contracts": ContractsApi,
    "inspect": InspectApi,
    "names": NamesApi,
    "objects": ObjectsApi,
    "operations": OperationsApi,
    "retention": RetentionApi,
    "settings": SettingsApi,
    "tasks": TasksApi,
}
# Those that show a view all do the same, and one is asked for the others. Some views are for SQL
# alone: those of the types of the platform, and what another verb answers.
SHOWN = {
    "datasources",
    "schemas",
    "retention.rules",
    *(f"inspect.{view.name}" for view in VIEWS if view not in PLATFORM_VIEWS),
} - {"inspect.settings", "inspect.stable_epoch"}
READS: Verbs = {
    # It writes, but not to the catalog.
    "backups.create": lambda c: c.backups.create(f"{c.location}/../backup"),
    "cache": lambda c: c.cache(datasources=["orders"]).num_rows("orders/1"),
    "audit.changes": lambda c: c.audit.changes(0).collect(),
    "contracts.list": lambda c: c.contracts.list(),
    "contracts.get": lambda c: c.contracts.get("orders"),
    # At a path these are temporary views and functions of the user's session.
    "inspect.create_functions": lambda c: c.inspect.create_functions("r_"),
    "inspect.create_views": lambda c: c.inspect.create_views("r_"),
    "datasource_schema": lambda c: c.datasource_schema("orders"),
    "datasource_schemas": lambda c: c.datasource_schemas(),
    "objects.get": lambda c: c.objects.get("table/a"),
    "settings.get": lambda c: c.settings.get("deadline"),
    "audit.growth": lambda c: c.audit.growth(0),
    "audit.history": lambda c: c.audit.history().collect(),
    "objects.list": lambda c: c.objects.list(),
    "names.get": lambda c: c.names.get("order"),
    "names.versions": lambda c: c.names.versions("order"),
    "operations.get": lambda c: c.operations.get("load"),
    "operations.metrics": lambda c: c.operations.metrics(),
    "read": lambda c: c.read("orders").collect(),
    "settings.reload": lambda c: c.settings.reload(),
    "audit.runs": lambda c: c.audit.runs().collect(),
    "schema": lambda c: c.schema(segment().fingerprint or ""),
    "segments": lambda c: c.segments().collect(),
    "settings.list": lambda c: c.settings.list(),
    "operations.stable_epoch_at": lambda c: c.operations.stable_epoch_at(c.version),
    "stats": lambda c: c.stats(),
    "names.still_works": lambda c: c.names.still_works("order", 1),
    "tasks.get": lambda c: c.tasks.get(c.tasks.list().collect()[0]["task_id"]),
    "tasks.list": lambda c: c.tasks.list().collect(),
    "objects.types": lambda c: c.objects.types(),
    "verify": lambda c: c.verify(),
    "operations.version_at_epoch": lambda c: c.operations.version_at_epoch(1),
}
# Those that can be asked what they would do answer that.
DRY_RUNS: Verbs = {
    "backfill": lambda c: c.backfill(dry_run=True),
    "cleanup": lambda c: c.cleanup(dry_run=True),
    "drop": lambda c: c.drop(["orders/1"], dry_run=True),
    "maintain": lambda c: c.maintain(dry_run=True),
    "publish_files": lambda c: c.publish_files("x", f"{c.location}/../lake", dry_run=True),
    "operations.recover": lambda c: c.operations.recover(dry_run=True),
    "names.register": lambda c: c.names.register("order", "a INT", dry_run=True),
    "objects.remove": lambda c: c.objects.remove("table/a", dry_run=True),
    "contracts.remove": lambda c: c.contracts.remove("orders", dry_run=True),
    "retention.apply": lambda c: c.retention.apply(dry_run=True),
    "audit.roll": lambda c: c.audit.roll(dry_run=True),
    "backups.rollback": lambda c: c.backups.rollback(1, dry_run=True),
    "contracts.set": lambda c: c.contracts.set("orders", Contract(max_rows=1), dry_run=True),
    "upgrade": lambda c: c.upgrade(dry_run=True),
}
WRITES: Verbs = {
    "settings.adopt": lambda c: c.settings.adopt({}, "strata.toml"),
    "operations.advance": lambda c: c.operations.advance(1),
    "announcer": lambda c: c.announcer("job"),
    "backfill": lambda c: c.backfill(),
    "tasks.cancel": lambda c: c.tasks.cancel("7c1e"),
    "cleanup": lambda c: c.cleanup(),
    "objects.declare": lambda c: c.objects.declare(PLATFORM),
    "drop": lambda c: c.drop(["orders/1"]),
    "objects.ensure": lambda c: c.objects.ensure(Object("a/b")),
    "maintain": lambda c: c.maintain(),
    "operation": lambda c: c.operation("x"),
    "operations.open": lambda c: c.operations.open("x"),
    "publish": lambda c: c.publish([segment("orders/2")]),
    "publish_files": lambda c: c.publish_files("orders", "/nowhere"),
    "operations.publish_pending": lambda c: c.operations.publish_pending("orders/1"),
    "objects.put": lambda c: c.objects.put(Object("a/b")),
    "audit.record": lambda c: c.audit.record(Run("r", "verify", {}, "ann", NOW, NOW)),
    "operations.recover": lambda c: c.operations.recover(),
    "names.register": lambda c: c.names.register("order", "a BIGINT"),
    "objects.remove": lambda c: c.objects.remove("table/a"),
    "contracts.remove": lambda c: c.contracts.remove("orders"),
    "objects.rename": lambda c: c.objects.rename("table/a", "b"),
    "tasks.resume": lambda c: c.tasks.resume("7c1e"),
    "retention.apply": lambda c: c.retention.apply(),
    "audit.roll": lambda c: c.audit.roll(),
    "backups.rollback": lambda c: c.backups.rollback(1),
    "tasks.run": lambda c: c.tasks.run("cleanup"),
    "contracts.set": lambda c: c.contracts.set("orders", Contract(max_rows=1)),
    "names.set_mode": lambda c: c.names.set_mode("order", "none"),
    "settings.set": lambda c: c.settings.set("deadline", 5),
    "settings.unset": lambda c: c.settings.unset("deadline"),
    "upgrade": lambda c: c.upgrade(),
}


def test_it_is_known_of_every_public_verb_whether_it_writes() -> None:
    public = {name: getattr(Catalog, name) for name in dir(Catalog) if not name.startswith("_")}
    for facet, api in FACETS.items():
        public |= {f"{facet}.{n}": getattr(api, n) for n in vars(api) if not n.startswith("_")}
    assert public.keys() == {*NEITHER, *VALUES, *SHOWN, *READS, *WRITES}
    takes_dry_run = {name for name in WRITES if "dry_run" in public[name].__annotations__}
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
    writer.operation("load", id="load")
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
    assert all(attrgetter(name)(reader) is not None for name in VALUES)
    assert {name for name in vars(reader) if not name.startswith("_")} == FACETS.keys()
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
