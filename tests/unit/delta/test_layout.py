"""The table's columns and what brings an older table to them."""

from __future__ import annotations

import re

import pytest

from catalog.commit.rows import CHANGE_ENTRY, ENTRY
from catalog.delta.layout import (
    BUCKETS_PROPERTY,
    COLUMNS,
    ENTRY_COLUMNS,
    LAYOUT,
    LAYOUT_PROPERTY,
    PARTITION_COLUMNS,
    REQUIRED_PROPERTIES,
    TABLE_PROPERTIES,
    ColumnSpec,
    Layout,
    LayoutStep,
    properties_sql,
)

NAMES = [column.name for column in COLUMNS]
ARROW = {
    "STRING": "string",
    "INT": "int32",
    "BIGINT": "int64",
    "TIMESTAMP": "timestamp[us, tz=UTC]",
}


def properties_of(sql: str) -> dict[str, str]:
    inside = re.search(r"TBLPROPERTIES \((.*)\)$", sql)
    assert inside is not None
    return dict(re.findall(r"'([^']+)' = '([^']+)'", inside[1]))


def test_rows_have_the_columns_of_the_table_in_their_order() -> None:
    assert [(field.name, str(field.type)) for field in ENTRY] == [
        (column.name, ARROW[column.type]) for column in ENTRY_COLUMNS
    ]
    assert CHANGE_ENTRY.names[: len(COLUMNS)] == NAMES


def test_keys_come_first_and_payloads_after_them() -> None:
    assert NAMES[:3] == ["kind", "bucket", "key"]
    assert len(NAMES) == len(set(NAMES))


def test_the_ddl_names_every_column_with_its_type_and_comment() -> None:
    sql = LAYOUT.ddl("delta.`/x/entries`", 32)
    assert sql.startswith("CREATE TABLE IF NOT EXISTS delta.`/x/entries` (\n")
    assert re.findall(r"^  (\w+) (\w+) COMMENT '.+'", sql, re.MULTILINE) == [
        (column.name, column.type) for column in COLUMNS
    ]
    assert f"PARTITIONED BY ({', '.join(PARTITION_COLUMNS)})" in sql


def test_the_ddl_sets_what_the_proofs_need_and_the_numbers() -> None:
    assert properties_of(LAYOUT.ddl("x", 32)) == {
        **TABLE_PROPERTIES,
        LAYOUT_PROPERTY: "3",
        BUCKETS_PROPERTY: "32",
    }
    assert REQUIRED_PROPERTIES == {
        "delta.isolationLevel": "Serializable",
        "delta.enableChangeDataFeed": "true",
    }
    assert TABLE_PROPERTIES.items() >= REQUIRED_PROPERTIES.items()


def test_properties_are_written_in_order() -> None:
    assert properties_sql({"b": "2", "a": "1"}) == "'a' = '1', 'b' = '2'"


# --- upgrades ------------------------------------------------------------------------------------

LATER = Layout(
    number=3,
    columns=(*COLUMNS, ColumnSpec("x", "INT", "it's new"), ColumnSpec("y", "STRING", "newer")),
    steps={
        1: LayoutStep((ColumnSpec("x", "INT", "it's new"), ColumnSpec("y", "STRING", "newer"))),
        2: LayoutStep(properties={"delta.a": "b"}),
    },
)
BOTH = r"ALTER TABLE t ADD COLUMNS (x INT COMMENT 'it\u0027s\u0020new', y STRING COMMENT 'newer')"
ONE = "ALTER TABLE t ADD COLUMNS (y STRING COMMENT 'newer')"
TO_2 = "ALTER TABLE t SET TBLPROPERTIES ('strata.layout' = '2')"
TO_3 = "ALTER TABLE t SET TBLPROPERTIES ('delta.a' = 'b', 'strata.layout' = '3')"


@pytest.mark.parametrize(
    ("found", "more", "statements"),
    [
        (1, set(), [BOTH, TO_2, TO_3]),
        (1, {"x"}, [ONE, TO_2, TO_3]),
        (1, {"x", "y"}, [TO_2, TO_3]),
        (2, {"x", "y"}, [TO_3]),
        (3, {"x", "y"}, []),
    ],
)
def test_an_upgrade_adds_what_is_missing_and_raises_the_number_last(
    found: int, more: set[str], statements: list[str]
) -> None:
    assert LATER.upgrade_statements("t", found, {*NAMES, *more}) == statements


def test_the_newest_layout_needs_no_upgrade() -> None:
    assert LAYOUT.upgrade_statements("t", LAYOUT.number, set(NAMES)) == []


@pytest.mark.parametrize("found", range(1, LAYOUT.number + 1))
def test_every_older_layout_has_a_way_up(found: int) -> None:
    statements = LAYOUT.upgrade_statements("t", found, set())
    assert len(statements) >= LAYOUT.number - found
