"""Upgrades of DataFrames, checked on real Parquet files against Spark's own casts."""

from __future__ import annotations

from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from catalog import Schema, merge, upgrade
from catalog.errors import WouldLose

# Every step of every chain: old type, new type, two values.
STEPS = [
    ("tinyint", "smallint", "127Y", "-128Y"),
    ("tinyint", "int", "127Y", "-128Y"),
    ("tinyint", "bigint", "127Y", "-128Y"),
    ("smallint", "int", "32767S", "-32768S"),
    ("smallint", "bigint", "32767S", "-32768S"),
    ("int", "bigint", "2147483647", "-2147483648"),
    ("float", "double", "CAST('0.1' AS FLOAT)", "CAST('NaN' AS FLOAT)"),
    ("date", "timestamp_ntz", "DATE'9999-12-31'", "DATE'0001-01-01'"),
    ("decimal(5,2)", "decimal(7,2)", "999.99BD", "-999.99BD"),
    ("decimal(5,2)", "decimal(7,4)", "999.99BD", "0.01BD"),
    ("decimal(18,0)", "decimal(38,10)", "999999999999999999BD", "-1BD"),
    ("char(3)", "varchar(3)", "'abc'", "'a  '"),
    ("char(3)", "string", "'abc'", "'a  '"),
    ("varchar(3)", "varchar(5)", "'abc'", "''"),
    ("varchar(3)", "string", "'abc'", "''"),
    ("time(0)", "time(6)", "TIME'23:59:59'", "TIME'00:00:00'"),
    ("interval year", "interval year to month", "INTERVAL '5' YEAR", "INTERVAL '-5' YEAR"),
    ("interval month", "interval year to month", "INTERVAL '50' MONTH", "INTERVAL '-5' MONTH"),
    ("interval day", "interval day to second", "INTERVAL '5' DAY", "INTERVAL '-5' DAY"),
    ("interval hour to minute", "interval day to second", "INTERVAL '25:10' HOUR TO MINUTE",
     "INTERVAL '-0:01' HOUR TO MINUTE"),
]  # fmt: skip
TEXTS = [
    ("boolean", "true", "false"),
    ("bigint", "9223372036854775807", "-1"),
    ("double", "1.5E300D", "0.1D"),
    ("float", "CAST('0.1' AS FLOAT)", "CAST('-0.0' AS FLOAT)"),
    ("decimal(5,2)", "1.50BD", "-0.10BD"),
    ("date", "DATE'2026-02-28'", "DATE'0001-01-01'"),
    ("timestamp_ntz", "TIMESTAMP_NTZ'2026-02-28 01:02:03.4'", "TIMESTAMP_NTZ'2026-02-28 00:00:00'"),
    ("varchar(3)", "'abc'", "'a '"),
]

# How a column holds the type, and an expression that puts two values and a null there.
KINDS = {
    "plain": ("{0}", "IF(n = 2, NULL, IF(n = 0, {1}, {2}))"),
    "struct": ("struct<x:{0},y:int>", "IF(n = 2, NULL, named_struct('x', {1}, 'y', n))"),
    "array": ("array<{0}>", "IF(n = 2, NULL, array({1}, NULL, {2}))"),
    "value": ("map<string,{0}>", "IF(n = 2, NULL, map('p', {1}, 'q', NULL))"),
    "key": ("map<{0},int>", "IF(n = 2, NULL, map({1}, 1, {2}, NULL))"),
    "deep": (
        "array<struct<m:map<string,array<{0}>>>>",
        "IF(n = 2, NULL, array(named_struct('m', map('p', array({1}, {2}))), NULL))",
    ),
}


def in_frames(kind: str) -> str:
    """The type as frames have it: no lengths of text."""
    return "string" if kind.startswith(("char", "varchar")) else kind


def test_every_widening_of_every_kind_of_column_gives_what_a_cast_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    old, new, made, wanted = [], [], [], []
    for number, (before, after, one, other) in enumerate(STEPS):
        for kind, (shape, values) in KINDS.items():
            name = f"{kind}_{number}"
            old.append(f"{name} {shape.format(before)}")
            new.append(f"{name} {shape.format(after)}")
            made.append(
                f"CAST({values.format('', one, other)} AS {shape.format(in_frames(before))}) {name}"
            )
            wanted.append(f"CAST({name} AS {shape.format(in_frames(after))}) AS {name}")
    path = str(tmp_path / "old.parquet")
    rows = spark.range(3).withColumnRenamed("id", "n").coalesce(1)
    rows.selectExpr(*made).write.parquet(path)
    data = spark.read.parquet(path)
    assert merge(", ".join(old), ", ".join(new)) == Schema.of(", ".join(new))
    done = upgrade(data, ", ".join(new), source=", ".join(old))
    cast = data.selectExpr(*wanted)
    assert done.dtypes == cast.dtypes
    # As text: Spark compares no maps, and Python has no intervals of years.
    texts = [f"CAST({name} AS STRING) AS {name}" for name in done.columns]
    found = done.selectExpr(*texts).toArrow().to_pydict()
    assert found == cast.selectExpr(*texts).toArrow().to_pydict()
    assert all(len(set(values)) >= 2 and values[2] is None for values in found.values())


def test_text_gives_what_a_cast_gives(spark: SparkSession, tmp_path: Path) -> None:
    made = [
        f"CAST(IF(n = 2, NULL, IF(n = 0, {a}, {b})) AS {in_frames(kind)}) AS c{i}"
        for i, (kind, a, b) in enumerate(TEXTS)
    ]
    path = str(tmp_path / "old.parquet")
    spark.range(3).withColumnRenamed("id", "n").selectExpr(*made).write.parquet(path)
    data = spark.read.parquet(path)
    old = ", ".join(f"c{i} {kind}" for i, (kind, _, _) in enumerate(TEXTS))
    new = ", ".join(f"c{i} string" for i in range(len(TEXTS)))
    done = upgrade(data, new, source=old, text=True)
    wanted = data.selectExpr(*(f"CAST(c{i} AS STRING) AS c{i}" for i in range(len(TEXTS))))
    assert_df_equality(done, wanted, ignore_row_order=True, ignore_nullable=True)


def test_columns_come_go_and_move_at_every_depth(spark: SparkSession) -> None:
    data = spark.sql(
        "SELECT 1 AS a, named_struct('x', 1, 'y', 'p') AS s, "
        "array(named_struct('x', 1), NULL) AS l, map(1, named_struct('x', 5), 2, NULL) AS m, "
        "NULL AS v, named_struct('x', 1, 'y', 'p') AS `s.t` "
        "UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL"
    )
    target = (
        "v INT, m MAP<BIGINT, STRUCT<w: STRING, x: BIGINT>>, a BIGINT, l ARRAY<STRUCT<x: INT, "
        "w: INT>>, s STRUCT<y: STRING, w: INT, x: INT>, `s.t` STRUCT<y: STRING, `q``r`: DATE>, "
        "z ARRAY<STRUCT<k: INT>>"
    )
    done = upgrade(data, target, drop=True)
    assert Schema.of(done.schema).ddl == Schema.of(target).ddl
    first = done.where("a IS NOT NULL").collect()[0].asDict(recursive=True)
    assert first == {
        "v": None,
        "m": {1: {"w": None, "x": 5}, 2: None},
        "a": 1,
        "l": [{"x": 1, "w": None}, None],
        "s": {"y": "p", "w": None, "x": 1},
        "s.t": {"y": "p", "q`r": None},
        "z": None,
    }
    (empty,) = done.where("a IS NULL").collect()
    assert set(empty.asDict().values()) == {None}


def test_what_would_lose_data_is_refused_before_anything_runs(spark: SparkSession) -> None:
    data = spark.sql("SELECT 1L AS a, array(named_struct('x', 1.5D)) AS l")
    with pytest.raises(WouldLose, match=r"a is bigint.*l\.element\.x is double"):
        upgrade(data, "a INT, l ARRAY<STRUCT<x: FLOAT>>")
    done = upgrade(data, "a INT, l ARRAY<STRUCT<x: FLOAT>>", on_loss="null")
    assert done.collect()[0].asDict(recursive=True) == {"a": None, "l": [{"x": None}]}
