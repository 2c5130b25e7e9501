"""One shared session for all tests that need Spark; unit tests never start it."""

from __future__ import annotations

import logging
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import sessions
from tests.concurrency import conflicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from catalog import Catalog


def pytest_configure() -> None:
    # A shell without job control starts what runs in the background with interrupts ignored, and
    # tests that interrupt would wait in vain; the processes that they start inherit it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    warehouse = tmp_path_factory.mktemp("warehouse")
    options = sessions.SHORT_LIVED["spark.driver.extraJavaOptions"] if sessions.QUICK else ""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    session = sessions.start(
        connect=sessions.CONNECT,
        **{
            "spark.sql.warehouse.dir": str(warehouse),
            # Off until Spark has completed it; for all sessions: some code asks the active one.
            "spark.sql.timeType.enabled": "true",
            "spark.driver.extraJavaOptions": f"{options} -Dderby.system.home={warehouse}",
        },
    )
    if not sessions.CONNECT:
        session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=bool(conflicts.ONE_IN))
def conflicting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits of every catalog that is opened meet conflicts, but for tests that count them."""
    from catalog import Catalog

    if request.node.get_closest_marker("exact") is None:
        opening = conflicts.Chance(request.node.nodeid).into(Catalog.open)
        monkeypatch.setattr(Catalog, "open", staticmethod(opening))


def pytest_report_header() -> str | None:
    if not conflicts.ONE_IN:
        return None
    return f"one commit in {conflicts.ONE_IN} meets a conflict, STRATA_TEST_SEED={conflicts.SEED}"


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "meta")


@pytest.fixture
def open_catalog(spark: SparkSession, location: str) -> Iterator[Callable[..., Catalog]]:
    """Opens a catalog at this test's location, as often as wanted."""
    from catalog import Catalog

    opened: list[Catalog] = []

    def open_one(**options: Any) -> Catalog:
        opened.append(Catalog.open(spark, location, **options))
        return opened[-1]

    yield open_one
    for catalog in opened:
        catalog.close()


@pytest.fixture
def catalog(open_catalog: Callable[..., Catalog]) -> Catalog:
    return open_catalog(actor="tester")


@pytest.fixture
def schema_name(spark: SparkSession) -> Iterator[str]:
    """The name of a metastore schema that is dropped afterwards."""
    name = f"meta_{uuid.uuid4().hex[:8]}"
    yield name
    spark.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")
