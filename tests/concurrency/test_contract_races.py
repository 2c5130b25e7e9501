"""A contract that is set while others write: what commits after it was checked by it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog, Contract, Segment
from catalog.environment import Environment
from catalog.errors import ClaimConflict, ContractViolation
from tests.concurrency.gates import Gate, Side, assert_promises
from tests.spark.files import parquet
from tests.unit.builders import segment

Open = Callable[..., Catalog]
STRICT = Contract(schema="a BIGINT", enforcement="strict")
FITS, STRANGE = "a BIGINT", "b STRING"


def ids(catalog: Catalog, datasource: str) -> set[str]:
    rows = catalog.segments().where(f"datasource = '{datasource}'").select("segment_id").collect()
    return {row["segment_id"] for row in rows}


def stopped(tmp_path: Path, where: str) -> tuple[Gate, Environment]:
    """A publish that stops before its statement begins, or while its source is read."""
    gate = Gate(tmp_path)
    return gate, gate.between("publish.begins") if where == "before" else gate.inside("publish")


@pytest.mark.parametrize(
    "chosen",
    [("known", "fresh"), pytest.param(("early", "framed"), marks=pytest.mark.stress)],
    ids=" and ".join,
)
def test_a_publish_meets_the_contract_that_is_set_under_it(
    spark: SparkSession, free: Open, tmp_path: Path, chosen: tuple[str, ...]
) -> None:
    setter = free()
    setter.publish([segment("known/0", STRANGE), segment("framed/0", STRANGE)])

    def framed(name: str) -> Any:
        columns = "segment_id STRING, schema STRING, num_rows BIGINT"
        return spark.createDataFrame([(name, STRANGE, 1)], columns)

    # With a row of the datasource that the contract changes, and without one.
    cases: list[tuple[str, str, Callable[[str], Any]]] = [
        ("known", "inside", lambda name: [segment(name, STRANGE)]),
        ("fresh", "inside", lambda name: [segment(name, STRANGE)]),
        ("early", "before", lambda name: [segment(name, STRANGE)]),
        ("framed", "inside", framed),
    ]
    for datasource, where, given in cases:
        if datasource not in chosen:
            continue
        gate, environment = stopped(tmp_path, where)
        publisher = free(environment)
        segments = given(f"{datasource}/1")
        publish = Side(lambda to=publisher, what=segments: to.publish(what))  # type: ignore[misc]
        gate.await_reached()
        setter.contracts.set(datasource, STRICT)
        gate.open()
        with pytest.raises(ContractViolation, match="b is not in the contract"):
            _ = publish.result
        assert f"{datasource}/1" not in ids(setter, datasource)
        # The publisher has learned it.
        assert publisher.publish([segment(f"{datasource}/2", FITS)]).inserted == 1
    assert_promises(setter)


def test_a_publish_meets_the_contract_that_is_set_after_its_conflict(
    free: Open, tmp_path: Path
) -> None:
    setter = free()
    first, second = Gate(tmp_path), Gate(tmp_path)
    publisher = free(
        Environment(
            source=first.inside("publish").source,
            at=second.between("publish.retry").at,
            pause=lambda attempt: 0.0,
        )
    )
    publish = Side(lambda: publisher.publish([segment("orders/1", STRANGE)]))
    first.await_reached()
    setter.publish([segment("orders/2", STRANGE)])
    first.open()
    second.await_reached()
    assert [each.segments for each in setter.contracts.set("orders", STRICT).offences] == [1]
    second.open()
    with pytest.raises(ContractViolation):
        _ = publish.result
    assert ids(setter, "orders") == {"orders/2"}
    assert_promises(setter)


def test_a_publish_that_commits_under_a_contract_came_before_it(free: Open, gate: Gate) -> None:
    publisher = free()
    setter = free(gate.inside("contract"))
    setting = Side(lambda: setter.contracts.set("orders", STRICT))
    gate.await_reached()
    published = publisher.publish([segment("orders/1", STRANGE)])
    gate.open()
    done = setting.result
    assert done.version > published.version
    assert [each.segment_ids for each in done.offences] == [("orders/1",)]
    with pytest.raises(ContractViolation):
        publisher.publish([segment("orders/2", STRANGE)])
    assert_promises(publisher)


@pytest.mark.stress
def test_a_stage_and_a_contract_never_pass_each_other(free: Open, tmp_path: Path) -> None:
    setter = free()
    setter.publish([segment("known/0", FITS)])
    for datasource in ("known", "fresh"):
        gate = Gate(tmp_path)
        other = free(gate.inside("stage"))
        operation = other.operation("load", parts=1)
        one = [segment(f"{datasource}/1", STRANGE)]
        stage = Side(lambda to=operation, what=one: to.stage(0, publish=what))  # type: ignore[misc]
        gate.await_reached()
        setter.contracts.set(datasource, STRICT)
        gate.open()
        with pytest.raises(ContractViolation):
            _ = stage.result
        operation.abort()
    # The other way round: the stage commits, and whoever sets the contract is refused.
    gate = Gate(tmp_path)
    late = free(gate.inside("contract"))
    setting = Side(lambda: late.contracts.set("later", STRICT))
    gate.await_reached()
    operation = setter.operation("load", parts=1)
    operation.stage(0, publish=[segment("later/1", STRANGE)])
    gate.open()
    with pytest.raises(ClaimConflict):
        _ = setting.result
    operation.publish()
    assert setter.contracts.get("later") is None
    assert ids(setter, "later") == {"later/1"}
    assert_promises(setter)


@pytest.mark.stress
def test_a_backfill_meets_the_contract_that_is_set_under_it(
    free: Open, gate: Gate, tmp_path: Path
) -> None:
    setter = free()
    setter.publish(
        [
            Segment(f"orders/{name}", location=parquet(tmp_path / f"{name}.parquet", ddl))
            for name, ddl in {"good": FITS, "bad": STRANGE}.items()
        ]
    )
    other = free(gate.inside("backfill"))
    backfill = Side(other.backfill)
    gate.await_reached()
    setter.contracts.set("orders", STRICT)
    gate.open()
    report = backfill.result
    assert (report.completed, [each.segment_id for each in report.quarantined]) == (
        1,
        ["orders/bad"],
    )
    assert_promises(setter)


@pytest.mark.stress
def test_a_contract_that_comes_and_goes_is_kept_by_everything_that_commits(free: Open) -> None:
    setter = free()
    setter.publish([segment("orders/0", FITS)])
    over = threading.Event()
    published: dict[str, int] = {}

    def work(number: int) -> None:
        rng, catalog, count = random.Random(number), free(), 0
        while not over.is_set():
            count += 1
            name = f"orders/{number}-{count}"
            ddl = rng.choice((FITS, STRANGE))
            try:
                if rng.random() < 0.3:
                    operation = catalog.operation(name, parts=1)
                    operation.stage(0, publish=[segment(name, ddl)])
                    result: Any = operation.publish()
                else:
                    result = catalog.publish([segment(name, ddl)])
            except ContractViolation:
                continue
            if ddl == STRANGE:
                published[name] = result.version

    workers = [Side(lambda n=n: work(n)) for n in range(3)]  # type: ignore[misc]
    flips: list[tuple[int, bool]] = [(0, False)]
    try:
        # Longer where the machine is busy: without a contract something strange gets through.
        while len(flips) < 9 or (not published and len(flips) < 100):
            try:
                done = (
                    setter.contracts.remove("orders")
                    if flips[-1][1]
                    else setter.contracts.set("orders", STRICT)
                )
            except ClaimConflict:
                continue
            flips.append((done.version, not flips[-1][1]))
    finally:
        over.set()
    for worker in workers:
        _ = worker.result
    for name, version in published.items():
        strict = max(flip for flip in flips if flip[0] < version)[1]
        assert not strict, (name, version, flips)
    assert published
    assert_promises(setter)


@pytest.mark.exact
def test_a_contract_whose_answer_is_lost_is_settled(free: Open) -> None:
    lost: list[str] = []

    def lose(point: str) -> None:
        if point == "contract.answered" and not lost:
            lost.append(point)
            raise ConnectionError("the answer is lost")

    catalog = free(Environment(at=lose, pause=lambda attempt: 0.0))
    done = catalog.contracts.set("orders", STRICT)
    assert (lost, done.changed, done.before) == (["contract.answered"], True, None)
    assert catalog.contracts.get("orders", as_of=done.version) == STRICT
    assert_promises(catalog)
