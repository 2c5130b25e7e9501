"""Verify names each promise that was broken, with its rows. The damage is done by raw SQL."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from catalog import Catalog
from catalog.errors import InvalidInput, VersionNotFound
from tests.unit.builders import segment

DAMAGE = [
    ("UPDATE {t} SET payload = '{{}}' WHERE kind = 'schema'", "I1", "cannot be read"),
    (
        "UPDATE {t} SET payload = replace(payload, 'integer', 'long') WHERE kind = 'schema'",
        "I1",
        "fingerprint",
    ),
    (
        "INSERT INTO {t} SELECT * FROM {t} WHERE kind = 'segment' AND key = 'orders/1'",
        "I2",
        "orders/1",
    ),
    ("UPDATE {t} SET bucket = bucket + 1 WHERE kind = 'segment'", "I2", "bucket"),
    ("DELETE FROM {t} WHERE kind = 'schema'", "I3", "orders/1"),
    ("UPDATE {t} SET num_rows = 99 WHERE key = 'orders/1'", "I5", "orders/1"),
]


@pytest.mark.parametrize(("damage", "promise", "words"), DAMAGE)
def test_damage_is_named_with_its_promise_and_rows(
    spark: SparkSession, catalog: Catalog, location: str, damage: str, promise: str, words: str
) -> None:
    catalog.publish([segment("orders/1"), segment("orders/2")])
    spark.sql(damage.format(t=f"delta.`{location}/entries`"))
    report = catalog.verify()
    assert not report.ok
    assert promise in {violation.promise for violation in report.violations}
    assert words in str(report)
    assert catalog.verify(version=1).ok  # what was before the damage still holds


def test_many_rows_of_one_damage_do_not_hide_another(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    catalog.publish([segment(f"orders/{n}") for n in range(40)])
    table = f"delta.`{location}/entries`"
    spark.sql(f"UPDATE {table} SET bucket = bucket + 1 WHERE key LIKE 'orders/%'")
    spark.sql(f"UPDATE {table} SET num_rows = 99 WHERE key = 'orders/39'")
    counts = {violation.promise: violation.count for violation in catalog.verify().violations}
    assert (counts["I2"], counts["I5"]) == (40, 1)


def test_a_range_shows_what_was_broken_in_between_and_by_whom(
    spark: SparkSession, catalog: Catalog, location: str
) -> None:
    table = f"delta.`{location}/entries`"
    catalog.publish([segment("orders/1")])
    spark.sql(f"DELETE FROM {table} WHERE kind = 'schema'")
    spark.sql(f"INSERT INTO {table} SELECT * FROM {table} VERSION AS OF 1 WHERE kind = 'schema'")
    assert catalog.verify().ok  # now all is well again
    report = catalog.verify(since=0)
    found = {violation.promise: violation for violation in report.violations}
    assert found["I3"].rows[0]["version"] == 2
    assert found["I4"].rows[0]["version"] == 3
    assert catalog.verify(since=3).ok


def test_the_range_must_be_in_the_history(catalog: Catalog) -> None:
    with pytest.raises(VersionNotFound, match="newest is 0"):
        catalog.verify(version=5)
    catalog.publish([segment("orders/1")])
    with pytest.raises(InvalidInput, match="after"):
        catalog.verify(version=0, since=1)
    assert str(catalog.verify(since=0)) == "All promises hold at versions 0 to 1."
