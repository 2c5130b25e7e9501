"""Limits that tables give: checked by whatever writes segments of their datasources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Contract, Object
from catalog.errors import ClaimConflict, ContractViolation, RuleViolation
from catalog.objects.platform import PLATFORM
from tests.spark.operating import ids, ready, refusal, staged
from tests.unit.builders import segment

TYPES = [each for each in PLATFORM if each.name in ("database", "table")]
DATABASE = Object("database/sales")
TABLE = "table/sales/orders"


def table(limits: Any = None, key: str = TABLE, datasource: str = "orders", **body: Any) -> Object:
    return Object(key, {**body, **({"limits": limits} if limits else {})}, datasource=datasource)


def terms(catalog: Catalog, as_of: int | None = None) -> dict[str, tuple[Any, ...]]:
    """Of each datasource the contract's limit of rows, that of tables, and the tables."""
    rows = catalog.inspect.contracts(as_of).select(
        "datasource", "max_rows", "table_max_rows", "tables"
    )
    return {row[0]: (row[1], row[2], list(row[3])) for row in rows.collect()}


def refused_by(catalog: Catalog, attempt: Callable[[], object]) -> list[tuple[str, str | None]]:
    """The rules that a refused call breaks, with the tables that give them."""
    error = refusal(catalog, ContractViolation, attempt)
    return [
        (each["rule"], each["table"])
        for offence in error.values["breaches"]
        for each in offence["breaches"]
    ]


@pytest.mark.stress
def test_limits_of_tables_are_kept_by_every_way_in(spark: SparkSession, catalog: Catalog) -> None:
    limits = {"max_rows": 10, "max_columns": 1}
    # Free in form, a table is no limit; once its type is declared it is.
    catalog.objects.put([DATABASE, table(limits), table({"max_rows": 20}, "table/sales/more")])
    catalog.publish([segment("orders/1", rows=11)])
    assert terms(catalog) == {}
    begun = catalog.objects.declare(TYPES).version
    assert terms(catalog) == {"orders": (None, 10, [TABLE])}

    beyond = segment("orders/2", "a INT, b INT", rows=11)
    rules = [("max_columns", TABLE), ("max_rows", TABLE)]
    assert refused_by(catalog, lambda: catalog.publish([beyond])) == rules
    frame = spark.createDataFrame(
        [("orders/2", "a INT, b INT", 11)], "segment_id STRING, schema STRING, num_rows BIGINT"
    )
    assert refused_by(catalog, lambda: catalog.publish(frame)) == rules
    operation = catalog.operation("load", parts=1)
    assert refused_by(catalog, lambda: operation.stage(0, publish=[beyond])) == rules
    operation.abort()
    assert catalog.publish([segment("orders/3", rows=10)]).inserted == 1

    # A contract stands beside them, and comes and goes without them.
    catalog.contracts.set("orders", Contract(max_rows=5))
    assert terms(catalog) == {"orders": (5, 10, [TABLE])}
    assert refused_by(catalog, lambda: catalog.publish([segment("orders/4", rows=11)])) == [
        ("max_rows", None),
        ("max_rows", TABLE),
    ]
    catalog.objects.ensure(table({"max_rows": 30}))  # the other table gives the least from now on
    assert terms(catalog) == {"orders": (5, 20, ["table/sales/more"])}
    assert catalog.contracts.get("orders") == Contract(max_rows=5)
    catalog.contracts.set("orders", Contract(max_rows=5, enforcement="warn"))
    told = catalog.publish([segment("orders/4", rows=21)])
    assert [each.table for each in told.warnings[0].breaches] == [None, "table/sales/more"]
    catalog.contracts.remove("orders")
    catalog.objects.rename("table/sales/more", "less")
    assert terms(catalog) == {"orders": (None, 20, ["table/sales/less"])}

    # A datasource that came since stays in a rollback, and follows the tables that are there then.
    catalog.objects.put(table({"max_bytes": 1}, "table/sales/new", "new"))
    catalog.contracts.set("new", Contract(max_rows=1))
    updated = {each.kind: each.updated for each in catalog.backups.rollback(begun).changes}
    assert updated["datasource"] == 2
    assert terms(catalog) == {"orders": (None, 10, [TABLE]), "new": (1, None, [])}
    catalog.objects.remove("database/sales", cascade=True)
    assert set(terms(catalog)) == {"new"}
    assert catalog.publish([segment("orders/9", rows=99)]).inserted == 1
    assert catalog.verify().ok
    # What somebody leaves behind by hand is found.
    spark.sql(
        f"UPDATE {catalog._context.store.relation} SET payload = "
        '\'{"tables":{"max_rows":{"most":1,"table":"table/x/y"}}}\' '
        "WHERE kind = 'datasource' AND key = 'orders'"
    )
    broken = [each.what for each in catalog.verify().violations if each.promise == "rules"]
    assert broken == ["a datasource does not have the limits that its tables give"]


@pytest.mark.stress
def test_operations_change_limits_and_are_checked_by_them(catalog: Catalog) -> None:
    catalog.objects.declare(TYPES)
    catalog.objects.put([DATABASE, table({"max_rows": 10})])
    catalog.publish([segment("orders/1", rows=10)])

    # What an operation has staged was checked by the limits that are there.
    load = staged(catalog, "load", publish=[segment("orders/2", rows=9)])
    other = catalog.operation("other", parts=1)
    for attempt in (
        lambda: catalog.objects.put(table({"max_rows": 5})),
        lambda: catalog.objects.remove(TABLE),
        lambda: catalog.objects.rename("database/sales", "shop"),
        lambda: other.stage(0, put=[table({"max_rows": 5})]),
    ):
        refusal(catalog, ClaimConflict, attempt)
    load.publish()

    # An operation with limits has the datasource for itself until it is decided.
    other.stage(0, put=[table({"max_rows": 5})])
    other.publish(epoch=5)
    refusal(catalog, ClaimConflict, lambda: catalog.publish([segment("orders/3")]))
    refusal(catalog, ClaimConflict, lambda: catalog.contracts.set("orders", Contract(max_rows=1)))
    assert terms(catalog)["orders"][1] == 10
    # Who comes after it is checked by what will be, and its own tables count as well.
    operation = catalog.operation("next", parts=2)
    assert refused_by(
        catalog, lambda: operation.stage(0, publish=[segment("orders/4", rows=6)])
    ) == [("max_rows", TABLE)]
    operation.stage(0, publish=[segment("orders/4", rows=4)])
    operation.stage(1, put=[table({"max_rows": 3})])
    assert refused_by(catalog, lambda: operation.publish(epoch=6)) == [("max_rows", TABLE)]
    operation.abort()
    catalog.operations.advance(5)
    assert terms(catalog)["orders"] == (None, 5, [TABLE])
    gone = staged(catalog, remove=[TABLE])
    gone.publish()
    assert terms(catalog) == {}
    assert catalog.publish([segment("orders/5", rows=99)]).inserted == 1
    assert catalog.verify().ok


@pytest.mark.stress
def test_a_type_is_not_declared_under_tables_that_wait_for_their_epochs(catalog: Catalog) -> None:
    catalog.objects.put([DATABASE, table()])
    ready(catalog, 5, put=[table({"max_rows": 5})])
    # What comes after it was staged without limits.
    ready(catalog, 6, publish=[segment("orders/1", rows=9)])
    error = refusal(catalog, ClaimConflict, lambda: catalog.objects.declare(TYPES))
    assert error.values["keys"] == (TABLE,)
    catalog.operations.advance(6)
    assert ids(catalog) == {"orders/1"}
    catalog.objects.declare(TYPES)
    assert terms(catalog) == {"orders": (None, 5, [TABLE])}
    assert catalog.verify(since=0).ok


@pytest.mark.stress
def test_a_table_names_a_schema_that_is_registered(catalog: Catalog) -> None:
    free = table(schema="nowhere", schema_version=7)
    catalog.objects.put([DATABASE, free])  # free in form
    error = refusal(catalog, RuleViolation, lambda: catalog.objects.declare(TYPES))
    assert (error.values["rule"], error.values["key"]) == ("reference", TABLE)
    catalog.objects.put(table())
    catalog.objects.declare(TYPES)
    catalog.names.register("orders", "a INT")
    for body in ({"schema": "nowhere"}, {"schema": "orders", "schema_version": 2}):
        error = refusal(
            catalog, RuleViolation, lambda body=body: catalog.objects.put(table(**body))
        )  # type: ignore[misc]
        assert error.values["rule"] == "reference"
    operation = staged(catalog, put=[table(schema="nowhere")])
    refusal(catalog, RuleViolation, operation.publish)
    refusal(catalog, RuleViolation, lambda: operation.publish(epoch=1))
    operation.abort()
    catalog.objects.put(
        [table(schema="orders"), table(None, "table/sales/b", schema="orders", schema_version=1)]
    )
    assert catalog.objects.get(TABLE).body == {"schema": "orders"}
    assert catalog.verify().ok
