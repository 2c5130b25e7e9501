"""The schemas of ORC files; tests/spark/files/test_footers.py holds them against Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import orc

from catalog.errors import BrokenFile
from catalog.files.footer import Footer, read_footer
from catalog.schema import Schema

# What Arrow can write, and as what Spark reads it.
ARROW: list[tuple[pa.DataType, str]] = [
    (pa.bool_(), "BOOLEAN"),
    (pa.int8(), "TINYINT"),
    (pa.int16(), "SMALLINT"),
    (pa.int32(), "INT"),
    (pa.int64(), "BIGINT"),
    (pa.float32(), "FLOAT"),
    (pa.float64(), "DOUBLE"),
    (pa.string(), "STRING"),
    (pa.large_string(), "STRING"),
    (pa.binary(), "BINARY"),
    (pa.binary(4), "BINARY"),
    (pa.date32(), "DATE"),
    (pa.date64(), "TIMESTAMP"),
    (pa.timestamp("s"), "TIMESTAMP"),
    (pa.timestamp("ns"), "TIMESTAMP"),
    (pa.timestamp("us", "Europe/Berlin"), "TIMESTAMP"),
    (pa.decimal128(5, 2), "DECIMAL(5,2)"),
    (pa.decimal128(38, 38), "DECIMAL(38,38)"),
    (pa.list_(pa.int8()), "ARRAY<TINYINT>"),
    (pa.list_(pa.int8(), 3), "ARRAY<TINYINT>"),
    (
        pa.map_(pa.string(), pa.struct([("x", pa.list_(pa.timestamp("us"))), ("y", pa.date32())])),
        "MAP<STRING, STRUCT<x: ARRAY<TIMESTAMP>, y: DATE>>",
    ),
]


def written(kind: pa.DataType, name: str = "a") -> bytes:
    sink = pa.BufferOutputStream()
    orc.write_table(pa.schema([(name, kind), ("z", pa.int8())]).empty_table(), sink)
    return sink.getvalue().to_pybytes()


def footer_of(data: bytes) -> Footer:
    return read_footer("/data/x.orc", "orc", lambda _: pa.BufferReader(data))


def problem(data: bytes) -> str:
    with pytest.raises(BrokenFile) as caught:
        footer_of(data)
    assert "/data/x.orc" in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(("kind", "ddl"), ARROW, ids=str)
def test_columns_have_the_types_that_spark_reads_them_as(kind: pa.DataType, ddl: str) -> None:
    assert footer_of(written(kind)).schema.ddl == f"a {ddl}, z TINYINT"


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_rows_and_size_are_those_of_the_file_however_it_is_compressed(compression: str) -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({f"column {number}": range(300) for number in range(50)})
    orc.write_table(table, sink, compression=compression)
    data = sink.getvalue().to_pybytes()
    footer = footer_of(data)
    assert (footer.num_rows, footer.size_bytes, footer.inferred) == (300, len(data), False)
    assert footer.schema == Schema.of(table.schema)


def test_names_are_kept_as_they_are() -> None:
    assert footer_of(written(pa.int32(), "ä.b `c")).schema.ddl == "`ä.b ``c` INT, z TINYINT"


def test_files_of_one_schema_share_it() -> None:
    one, other = footer_of(written(pa.string())), footer_of(written(pa.string()))
    assert one.schema is other.schema


WHOLE = written(pa.decimal128(5, 2))


def changed(kind: int, precision: int, scale: int) -> bytes:
    """The file with another type in place of its decimal; its footer is not compressed."""
    decimal = b"\x08\x0e\x20\x00\x28\x05\x30\x02"
    assert WHOLE.count(decimal) == 1
    return WHOLE.replace(decimal, bytes([8, kind, 32, 0, 40, precision, 48, scale]))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n" * 100, "cannot be read as orc"),
        (b"ORC", "cannot be read as orc"),
        (WHOLE[:-1], "cannot be read as orc"),
        (WHOLE[: len(WHOLE) // 2], "cannot be read as orc"),
        (WHOLE[:-1] + b"\xff", "cannot be read as orc"),
        (written(pa.int32(), "Z"), "column z differs from Z only in case"),
        (written(pa.int32(), ""), "has an empty name"),
        # The same file would end the process if pyarrow converted its types.
        (changed(14, 42, 2), "column a has the type decimal(42,2), which Spark does not read"),
        (changed(14, 5, 126), "column a has the type decimal(5,126), which Spark does not read"),
        (changed(14, 0, 0), "column a has the type decimal(0,0), which Spark does not read"),
        (changed(13, 0, 0), "Illegal UNION type"),
        (changed(85, 0, 0), "column a has the type number 85 of ORC's, which Spark does not read"),
    ],
    ids=range(13),
)
def test_a_file_that_is_damaged_or_that_spark_does_not_read_is_broken(
    data: bytes, words: str
) -> None:
    assert words in problem(data)
