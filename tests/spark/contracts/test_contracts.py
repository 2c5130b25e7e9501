"""Contracts: every way in is checked, with the reasons column by column."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Contract, Segment
from catalog.contracts.enforcement import KnownTerms
from catalog.delta.statements import BULK_ROWS
from catalog.environment import Environment
from catalog.errors import ClaimConflict, ContractViolation, InvalidInput, SegmentConflict
from tests.spark.files import parquet
from tests.spark.together import Together
from tests.unit.builders import segment

WIDE = "id BIGINT NOT NULL, at DATE, note STRING"
FITS = "id INT NOT NULL, at DATE"
STRANGE = "id STRING, colour STRING"


def breaches(error: ContractViolation) -> list[tuple[str | None, str]]:
    """Column and rule of everything that a refusal names."""
    return [(b["column"], b["rule"]) for each in error.values["breaches"] for b in each["breaches"]]


def frame(spark: SparkSession, *rows: tuple[str, str, int]) -> Any:
    return spark.createDataFrame(list(rows), "segment_id STRING, schema STRING, num_rows BIGINT")


@pytest.mark.connect
def test_each_enforcement_is_kept_by_lists_and_frames(
    spark: SparkSession, catalog: Catalog, open_catalog: Callable[..., Catalog]
) -> None:
    catalog.publish([segment("orders/old", STRANGE), segment("clicks/1", STRANGE)])
    strict = Contract(schema=WIDE, enforcement="strict", max_rows=1000)
    looked = catalog.contracts.set("orders", strict, dry_run=True)
    assert (looked.dry_run, looked.commit_id, catalog.contracts.get("orders")) == (True, "", None)
    done = catalog.contracts.set("orders", strict, reason="agreed")
    assert done.offences == looked.offences
    assert [(each.segments, each.segment_ids) for each in done.offences] == [(1, ("orders/old",))]
    assert (done.version, done.before, done.contract, done.changed) == (2, None, strict, True)
    # The same again is no change, and another catalog finds it.
    assert catalog.contracts.set("orders", strict).commit_id == ""
    other = open_catalog(actor="other")
    assert other.contracts.get("orders") == strict
    (row,) = other.inspect.contracts().collect()
    assert (row["datasource"], row["fingerprint"]) == ("orders", strict.fingerprint)
    assert (row["enforcement"], row["mode"], row["max_rows"]) == ("strict", "none", 1000)
    assert other.contracts.get("orders", as_of=1) is None

    for each in (catalog, other):
        with pytest.raises(ContractViolation) as refused:
            each.publish([segment("orders/2", FITS), segment("clicks/2", STRANGE)])
        assert breaches(refused.value) == [("id", "type"), ("note", "missing")]
        assert refused.value.values["segment_ids"] == ("orders/2",)
    with pytest.raises(ContractViolation) as refused:
        other.publish(frame(spark, ("orders/3", STRANGE, 1), ("orders/4", WIDE, 2000)))
    assert sorted(breaches(refused.value), key=str) == sorted(
        [
            *[("id", "nullable"), ("id", "type"), ("colour", "unknown"), ("at", "missing")],
            *[("note", "missing"), (None, "max_rows")],
        ],
        key=str,
    )
    assert catalog.version == 2
    # Drops are not checked. Order is not identity, and other datasources are free.
    assert other.drop(["orders/old"]).dropped == 1
    good = "note STRING, at DATE, id BIGINT NOT NULL"
    assert other.publish([segment("orders/5", good), segment("clicks/2", FITS)]).inserted == 2

    catalog.contracts.set("orders", Contract(schema=WIDE, enforcement="subset"))
    # The other one still remembers what was strict, and does not refuse by it.
    assert other.publish([segment("orders/7", FITS)]).warnings == ()
    for mode in ("skip", "replace"):
        with pytest.raises(ContractViolation):
            other.publish([segment("orders/7", STRANGE)], on_existing=mode)
    assert other.publish([segment("orders/7", WIDE)], on_existing="replace").replaced == 1

    catalog.contracts.set("orders", Contract(schema=WIDE, enforcement="warn", max_rows=10))
    told = other.publish([segment("orders/9", STRANGE, rows=11)])
    assert [b.rule for each in told.warnings for b in each.breaches] == [
        *("nullable", "type", "unknown", "max_rows")
    ]
    framed = other.publish(frame(spark, ("orders/10", STRANGE, 11)))
    assert [each.breaches for each in framed.warnings] == [each.breaches for each in told.warnings]

    assert catalog.contracts.remove("orders").before is not None
    assert catalog.contracts.remove("orders").commit_id == ""
    assert other.publish([segment("orders/11", STRANGE)]).warnings == ()
    assert catalog.inspect.contracts().isEmpty()
    assert catalog.verify(since=0).ok


def test_whoever_breaks_a_contract_is_refused_and_the_others_of_the_group_go_on(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.contracts.set("orders", Contract(schema=WIDE, enforcement="subset"))
    begun = catalog.publish([segment("orders/0", FITS), segment("clicks/0", STRANGE)])
    outcomes = Together(catalog).publish(
        [
            [segment("orders/1", FITS)],
            [segment("clicks/2", STRANGE), segment("orders/2", STRANGE)],
            [segment("orders/3", WIDE)],
            [segment("orders/0", WIDE)],
        ]
    )
    kinds = [ContractViolation if n == 1 else SegmentConflict if n == 3 else None for n in range(4)]
    assert [type(each) for each in outcomes if isinstance(each, Exception)] == list(
        filter(None, kinds)
    )
    assert [(outcomes[n].version, outcomes[n].inserted) for n in (0, 2)] == [
        (begun.version + 1, 1)
    ] * 2
    # What was seen once is remembered: a publish that keeps the contract reads nothing more.
    monkeypatch.setattr(KnownTerms, "learn_within", _unexpected)
    assert catalog.publish([segment("orders/4", FITS)]).version == begun.version + 2
    assert catalog.verify(since=0).ok


def _unexpected(*_: object) -> Any:
    raise AssertionError("contracts were read")


@pytest.mark.exact
def test_a_catalog_without_contracts_never_looks_for_any(
    spark: SparkSession, open_catalog: Callable[..., Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnownTerms, "learn_within", _unexpected)
    points: list[str] = []
    catalog = open_catalog(environment=Environment(at=points.append))
    catalog.publish([segment("orders/1")])
    catalog.publish([segment(f"orders/many {n}") for n in range(BULK_ROWS)])
    catalog.publish(frame(spark, ("orders/2", FITS, 1)))
    assert points.count("publish.begins") == 3
    # A digest would be taken for that of a contract.
    (row,) = catalog._context.store.rows(3).where("kind = 'datasource'").collect()
    assert (row["digest"], row["payload"]) == (None, None)


def test_files_and_backfills_put_aside_what_breaks_the_contract_and_go_on(
    catalog: Catalog, tmp_path: Path
) -> None:
    files = {
        name: parquet(tmp_path / "data" / f"{name}.parquet", ddl)
        for name, ddl in {"good": "id BIGINT, at DATE", "bad": STRANGE}.items()
    }
    catalog.publish([Segment(f"orders/{name}", location=path) for name, path in files.items()])
    contract = Contract(schema="id BIGINT, at DATE", enforcement="strict", max_rows=2)
    for datasource in ("orders", "files"):
        assert catalog.contracts.set(datasource, contract).offences == ()
    words = ": id is string; in the contract it is bigint; colour is not in the contract; at is "
    # What has no schema yet is only measured.
    with pytest.raises(ContractViolation, match="3 rows, at most 2"):
        catalog.publish([Segment("orders/more", num_rows=3, location="/d/x.parquet")])
    report = catalog.backfill()
    assert report.completed == 1
    (aside,) = report.quarantined
    assert aside.reason.startswith(f"breaks the contract of orders{words}")
    published = catalog.publish_files("files", tmp_path / "data")
    assert published.published == 1
    assert published.broken[0].reason.startswith(
        f"files/bad.parquet breaks the contract of files{words}"
    )
    # Without the contract it is let in.
    catalog.contracts.remove("orders")
    assert catalog.backfill(retry_quarantined=True).completed == 1
    assert catalog.verify(since=0).ok


@pytest.mark.stress
def test_parts_are_checked_when_they_are_staged_and_keep_the_contract_as_it_is(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.contracts.set("orders", Contract(schema=WIDE, enforcement="subset"))
    operation = catalog.operation("load", parts=2)
    with pytest.raises(ContractViolation) as refused:
        operation.stage(0, publish=[segment("orders/1", STRANGE)])
    assert breaches(refused.value) == [("id", "nullable"), ("id", "type"), ("colour", "unknown")]
    with pytest.raises(ContractViolation, match="colour is not in the contract"):
        operation.stage(0, publish=frame(spark, ("orders/1", STRANGE, 1)))
    operation.stage(0, publish=[segment("orders/1", FITS), segment("new/1", STRANGE)])
    # Whoever publishes beside it shares the datasource; who would change the contract does not.
    assert catalog.publish([segment("orders/2", FITS)]).inserted == 1
    strict = Contract(schema=WIDE, enforcement="strict")
    for datasource in ("orders", "new"):
        with pytest.raises(ClaimConflict, match=f"{datasource}: claimed by operation 'load'"):
            catalog.contracts.set(datasource, strict)
    with pytest.raises(ClaimConflict):
        catalog.contracts.remove("orders")
    operation.stage(1, publish=[segment("orders/3", FITS)])
    operation.publish()
    done = catalog.contracts.set("orders", strict)
    assert [(each.segments, each.refused) for each in done.offences] == [(3, True)]
    assert catalog.verify(since=0).ok


@pytest.mark.stress
def test_a_clean_up_keeps_the_schema_of_a_contract_and_a_lost_row_is_no_contract(
    spark: SparkSession, catalog: Catalog
) -> None:
    catalog.contracts.set("orders", Contract(schema=WIDE, enforcement="strict"))
    assert catalog.cleanup(grace=timedelta(0)).retired == ()
    with pytest.raises(ContractViolation):
        catalog.publish([segment("orders/1", FITS)])
    # As after a restore to a version before it; the catalog remembers the terms all the same.
    spark.sql(f"DELETE FROM {catalog._context.store.relation} WHERE kind = 'datasource'")
    assert catalog.publish([segment("orders/1", FITS)]).inserted == 1
    (row,) = (
        catalog.segments()
        .sparkSession.sql(
            f"SELECT digest, payload FROM {catalog._context.store.relation} "
            "WHERE kind = 'datasource'"
        )
        .collect()
    )
    assert (row["digest"], row["payload"]) == (None, None)
    assert len(catalog.cleanup(grace=timedelta(0)).retired) == 1
    with pytest.raises(InvalidInput, match="takes a Contract, not str"):
        catalog.contracts.set("orders", "strict")  # type: ignore[arg-type]
    assert catalog.verify().ok
