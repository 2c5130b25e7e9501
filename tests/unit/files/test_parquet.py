"""The schemas of Parquet files; tests/spark/files/test_footers.py compares them with Spark."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as encryption
import pytest

from catalog.errors import BrokenFile
from catalog.files.footer import Footer, read_footer
from catalog.schema import Schema

# --- footers written by hand, as other writers than pyarrow and Spark make them ---

REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED")
UTF8, MAP, MAP_KEY_VALUE, LIST, ENUM, DECIMAL, DATE = range(7)
TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS = range(7, 11)
UINT_8, UINT_16, UINT_32, UINT_64, INT_8, INT_16, INT_32, INT_64 = range(11, 19)
JSON, BSON, INTERVAL = range(19, 22)
NOTHING: dict[int, Any] = {}
_SHORT = 15

Columns = list[dict[int, Any]]


class Long(int):
    """A number of 64 bits."""


class Byte(int):
    """A number of 8 bits."""


def leaf(name: str, kind: str, repetition: int = OPTIONAL, **more: Any) -> Columns:
    """A column of values; `more` are numbered fields of the format's SchemaElement."""
    fields = {int(key.removeprefix("f")): value for key, value in more.items()}
    return [{1: TYPES.index(kind), 3: repetition, 4: name, **fields}]


def group(name: str, *inner: Columns, repetition: int = OPTIONAL, **more: Any) -> Columns:
    fields = {int(key.removeprefix("f")): value for key, value in more.items()}
    head = {3: repetition, 4: name, 5: len(inner), **fields}
    return [head, *(each for columns in inner for each in columns)]


def mapped(name: str, *inner: Columns) -> Columns:
    return group(name, group("key_value", *inner, repetition=REPEATED), f6=MAP)


def written(
    *columns: Columns,
    rows: int = 0,
    stated: int | None = None,
    notes: Mapping[str, str] | None = None,
) -> bytes:
    """A Parquet file without data, with one row group if it has rows; `stated` is the number of
    rows that the file states for itself, if it is not the one of the row group."""
    root = {4: "root", 5: len(columns)}
    elements = [root, *(each for some in columns for each in some)]
    groups = [{1: [], 2: Long(0), 3: Long(rows)}] if rows else []
    total = rows if stated is None else stated
    footer: dict[int, Any] = {1: 2, 2: elements, 3: Long(total), 4: groups}
    if notes:
        footer[5] = [{1: key, 2: value} for key, value in notes.items()]
    body = _message(footer)
    return b"PAR1" + body + struct.pack("<I", len(body)) + b"PAR1"


def _message(fields: Mapping[int, Any]) -> bytes:
    """A struct of Thrift's compact protocol."""
    out, last = b"", 0
    for number, value in sorted(fields.items()):
        kind, body = _value(value)
        step = number - last
        out += bytes([step << 4 | kind]) if step <= _SHORT else bytes([kind]) + _zigzag(number)
        out, last = out + body, number
    return out + b"\0"


def _value(value: Any) -> tuple[int, bytes]:
    match value:
        case bool():
            return (1 if value else 2), b""
        case Byte():
            return 3, bytes([value])
        case int():
            return (6 if isinstance(value, Long) else 5), _zigzag(value)
        case str():
            return 8, _varint(len(value.encode())) + value.encode()
        case list():
            inner = b"".join(_value(each)[1] for each in value)
            kind = _value(value[0])[0] if value else 12
            size = len(value)
            head = (
                bytes([size << 4 | kind]) if size < _SHORT else bytes([0xF0 | kind]) + _varint(size)
            )
            return 9, head + inner
    return 12, _message(value)


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def timestamp(utc: bool, unit: int) -> dict[int, Any]:
    return {8: {1: utc, 2: {unit: NOTHING}}}


MILLIS, MICROS, NANOS = 1, 2, 3
VARIANT = {16: {1: Byte(1)}}
METADATA = leaf("metadata", "BYTE_ARRAY", REQUIRED)

# What Spark reads, and as what.
READ: dict[str, tuple[list[Columns], str]] = {
    "plain": (
        [leaf(kind.lower(), kind) for kind in TYPES[:-1]] + [leaf("fixed", "FIXED", f2=4)],
        "boolean BOOLEAN, int32 INT, int64 BIGINT, int96 TIMESTAMP, float FLOAT, double DOUBLE, "
        "byte_array BINARY, fixed BINARY",
    ),
    "texts": (
        [
            leaf("utf8", "BYTE_ARRAY", f6=UTF8),
            leaf("enum", "BYTE_ARRAY", f10={4: NOTHING}),
            leaf("old_enum", "BYTE_ARRAY", f6=ENUM),
            leaf("json", "BYTE_ARRAY", f6=JSON),
            leaf("bson", "BYTE_ARRAY", f6=BSON),
        ],
        "utf8 STRING, enum STRING, old_enum STRING, json STRING, bson BINARY",
    ),
    "integers": (
        [
            leaf("u8", "INT32", f6=UINT_8),
            leaf("u16", "INT32", f6=UINT_16),
            leaf("u32", "INT32", f6=UINT_32),
            leaf("u64", "INT64", f6=UINT_64),
            leaf("i8", "INT32", f6=INT_8),
            leaf("i16", "INT32", f6=INT_16),
            leaf("i32", "INT32", f6=INT_32),
            leaf("i64", "INT64", f6=INT_64),
        ],
        "u8 SMALLINT, u16 INT, u32 BIGINT, u64 DECIMAL(20,0), i8 TINYINT, i16 SMALLINT, i32 INT, "
        "i64 BIGINT",
    ),
    "times": (
        [
            leaf("date", "INT32", f6=DATE),
            leaf("old_millis", "INT64", f6=TIMESTAMP_MILLIS),
            leaf("old_micros", "INT64", f6=TIMESTAMP_MICROS),
            leaf("millis", "INT64", f10=timestamp(True, MILLIS)),
            leaf("local_millis", "INT64", f10=timestamp(False, MILLIS)),
            leaf("local_micros", "INT64", f10=timestamp(False, MICROS)),
            leaf("time", "INT64", f10={7: {1: False, 2: {MICROS: NOTHING}}}),
        ],
        "date DATE, old_millis TIMESTAMP, old_micros TIMESTAMP, millis TIMESTAMP, "
        "local_millis TIMESTAMP_NTZ, local_micros TIMESTAMP_NTZ, time TIME(6)",
    ),
    "decimals": (
        [
            leaf("i32", "INT32", f6=DECIMAL, f7=2, f8=9),
            leaf("i64", "INT64", f6=DECIMAL, f7=2, f8=18),
            leaf("bytes", "BYTE_ARRAY", f6=DECIMAL, f7=3, f8=38),
            leaf("fixed", "FIXED", f2=16, f6=DECIMAL, f7=0, f8=38),
        ],
        "i32 DECIMAL(9,2), i64 DECIMAL(18,2), bytes DECIMAL(38,3), fixed DECIMAL(38,0)",
    ),
    # Spark takes a column that can only be null as what it would be stored as.
    "nulls": (
        [leaf(kind.lower(), kind, f10={11: NOTHING}) for kind in TYPES[:-1]],
        "boolean BOOLEAN, int32 INT, int64 BIGINT, int96 TIMESTAMP, float FLOAT, double DOUBLE, "
        "byte_array BINARY",
    ),
    "places on earth": (
        [
            leaf("flat", "BYTE_ARRAY", f10={17: NOTHING}),
            leaf("mercator", "BYTE_ARRAY", f10={17: {1: "EPSG:3857"}}),
            leaf("round", "BYTE_ARRAY", f10={18: {1: "OGC:CRS84"}}),
        ],
        "flat GEOMETRY(4326), mercator GEOMETRY(3857), round GEOGRAPHY(4326)",
    ),
    "lists": (
        [
            group("three", group("list", leaf("element", "INT32"), repetition=REPEATED), f6=LIST),
            group(
                "annotated",
                group("list", leaf("element", "INT96"), repetition=REPEATED),
                f10={3: NOTHING},
            ),
            group("bag", group("bag", leaf("array", "INT64"), repetition=REPEATED), f6=LIST),
            group("two", leaf("element", "INT32", REPEATED), f6=LIST),
            group("avro", group("array", leaf("x", "INT32"), repetition=REPEATED), f6=LIST),
            group("t", group("t_tuple", leaf("x", "INT32"), repetition=REPEATED), f6=LIST),
            group(
                "pair",
                group("p", leaf("x", "INT32"), leaf("y", "INT64"), repetition=REPEATED),
                f6=LIST,
            ),
            leaf("bare", "FLOAT", REPEATED),
            group("bare_group", leaf("x", "INT32"), repetition=REPEATED),
            group(
                "nested",
                group("array", leaf("array", "INT32", REPEATED), repetition=REPEATED, f6=LIST),
                f6=LIST,
            ),
        ],
        "three ARRAY<INT>, annotated ARRAY<TIMESTAMP>, bag ARRAY<BIGINT>, two ARRAY<INT>, "
        "avro ARRAY<STRUCT<x: INT>>, t ARRAY<STRUCT<x: INT>>, "
        "pair ARRAY<STRUCT<x: INT, y: BIGINT>>, bare ARRAY<FLOAT> NOT NULL, "
        "bare_group ARRAY<STRUCT<x: INT>> NOT NULL, nested ARRAY<ARRAY<INT>>",
    ),
    "maps": (
        [
            group(
                "plain",
                group(
                    "key_value",
                    leaf("key", "BYTE_ARRAY", REQUIRED, f6=UTF8),
                    leaf("value", "INT32"),
                    repetition=REPEATED,
                ),
                f6=MAP,
            ),
            group(
                "old",
                group(
                    "map",
                    leaf("k", "INT32", REQUIRED),
                    group("v", leaf("x", "INT96")),
                    repetition=REPEATED,
                ),
                f6=MAP_KEY_VALUE,
            ),
        ],
        "plain MAP<STRING, INT>, old MAP<INT, STRUCT<x: TIMESTAMP>>",
    ),
    # Keys of a map are never null in Spark, whatever the file says.
    "maps with optional keys": (
        [
            mapped("m", leaf("key", "BYTE_ARRAY", f6=UTF8), leaf("value", "BYTE_ARRAY", f6=UTF8)),
            group(
                "new",
                group(
                    "key_value",
                    leaf("key", "INT64", f10={10: {1: Byte(64), 2: True}}),
                    mapped("value", group("key", leaf("x", "INT32")), leaf("value", "INT32")),
                    repetition=REPEATED,
                ),
                f10={2: NOTHING},
            ),
            leaf("z", "INT32"),
        ],
        "m MAP<STRING, STRING>, new MAP<BIGINT, MAP<STRUCT<x: INT>, INT>>, z INT",
    ),
    "elements that repeat": (
        [group("a", group("list", leaf("element", "INT32", REPEATED), repetition=REPEATED), f6=3)],
        "a ARRAY<INT>",
    ),
    "names that end like an annotation": (
        [group("a (List)", leaf("x", "INT32")), group("b (Map)", leaf("y (String)", "INT32"))],
        "`a (List)` STRUCT<x: INT>, `b (Map)` STRUCT<`y (String)`: INT>",
    ),
    "names": (
        [
            leaf("a.b", "INT32"),
            group("c`d", leaf("e f", "INT64")),
            leaf("ä (Variant(1)) {", "FLOAT"),
        ],
        "`a.b` INT, `c``d` STRUCT<`e f`: BIGINT>, `ä (Variant(1)) {` FLOAT",
    ),
    "variants": (
        [
            group("v", METADATA, leaf("value", "BYTE_ARRAY", REQUIRED), f10=VARIANT),
            group(
                "shredded",
                METADATA,
                leaf("value", "BYTE_ARRAY"),
                leaf("typed_value", "INT32"),
                f10=VARIANT,
            ),
            group("like", METADATA, leaf("value", "BYTE_ARRAY", REQUIRED)),
            leaf("z", "INT32"),
        ],
        "v VARIANT, shredded VARIANT, "
        "like STRUCT<metadata: BINARY NOT NULL, value: BINARY NOT NULL>, z INT",
    ),
    "required": (
        [
            leaf("a", "INT32", REQUIRED),
            group("b", leaf("x", "INT32", REQUIRED), leaf("y", "INT32"), repetition=REQUIRED),
        ],
        "a INT NOT NULL, b STRUCT<x: INT NOT NULL, y: INT> NOT NULL",
    ),
}

# What Spark does not read, and what is said of it.
REFUSED: dict[str, tuple[list[Columns], str]] = {
    "half": ([leaf("a", "FIXED", f2=2, f10={15: NOTHING})], "write it as float"),
    "uuid": ([leaf("a", "FIXED", f2=16, f10={14: NOTHING})], "write it as text"),
    "interval": ([leaf("a", "FIXED", f2=12, f6=INTERVAL)], "as columns of their own"),
    "nanos": (
        [leaf("a", "INT64", f10=timestamp(False, NANOS))],
        "column a has the Parquet type INT64 (Timestamp, nanoseconds), which Spark does not read; "
        "write it in microseconds",
    ),
    "utc nanos": ([leaf("a", "INT64", f10=timestamp(True, NANOS))], "write it in microseconds"),
    "millis of a day": ([leaf("a", "INT32", f6=TIME_MILLIS)], "write it in microseconds"),
    "micros with a zone": ([leaf("a", "INT64", f6=TIME_MICROS)], "without a time zone"),
    "many digits": ([leaf("a", "BYTE_ARRAY", f6=DECIMAL, f7=2, f8=39)], "at most 38 digits"),
    "too few bits": ([leaf("a", "INT32", f6=DECIMAL, f7=2, f8=10)], "at most 38 digits"),
    "unknown": ([leaf("a", "BYTE_ARRAY", f10={40: NOTHING})], "write it as another type"),
    "unknown place": ([leaf("a", "BYTE_ARRAY", f10={17: {1: "moon"}})], "(Geometry, moon)"),
    "inside": ([group("a", group("b c", leaf("d", "FIXED", f2=2, f10={15: {}})))], "a.`b c`.d"),
    "twice": (
        [leaf("a", "INT32"), leaf("a", "INT64")],
        "differs from a only in case or not at all",
    ),
    "map without values": (
        [mapped("m", leaf("key", "INT32", REQUIRED)), leaf("z", "INT32")],
        "column m is a map without values, which Spark does not read; write it as an array",
    ),
    "contradiction": ([leaf("a", "INT32", f6=INT_64)], "INT_64 can only annotate INT64"),
}


def footer_of(data: bytes) -> Footer:
    return read_footer("/data/x.parquet", "parquet", lambda _: pa.BufferReader(data))


def problem(data: bytes) -> BrokenFile:
    with pytest.raises(BrokenFile) as caught:
        footer_of(data)
    assert "/data/x.parquet" in caught.value.message
    return caught.value


@pytest.mark.parametrize("case", READ)
def test_columns_have_the_types_that_spark_reads_them_as(case: str) -> None:
    columns, ddl = READ[case]
    assert footer_of(written(*columns)).schema.ddl == ddl


@pytest.mark.parametrize("case", REFUSED)
def test_a_column_that_spark_does_not_read_is_named(case: str) -> None:
    columns, words = REFUSED[case]
    assert words in problem(written(*columns)).message


def test_elements_and_values_say_whether_they_may_be_null() -> None:
    def listed(repetition: int) -> Columns:
        inner = group("list", leaf("element", "INT32", repetition), repetition=REPEATED)
        return group("a", inner, f6=LIST)

    def mapped(repetition: int) -> Columns:
        value = leaf("value", "INT32", repetition)
        inner = group("key_value", leaf("key", "INT32", REQUIRED), value, repetition=REPEATED)
        return group("m", inner, f6=MAP)

    for repetition, nullable in ((OPTIONAL, True), (REQUIRED, False)):
        schema = footer_of(written(listed(repetition), mapped(repetition))).schema
        array, map_ = (field.dataType for field in schema.struct().fields)
        assert (array.containsNull, map_.valueContainsNull) == (nullable, nullable)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([], "a schema must have at least one column"),
        ([leaf("A", "INT32"), leaf("a", "INT32")], "column a differs from A only in case"),
        ([leaf("", "INT32")], "has an empty name"),
        ([leaf("a\nb", "INT32")], "has a control character in its name"),
    ],
)
def test_a_schema_that_breaks_a_rule_is_refused_with_its_words(
    columns: list[Columns], words: str
) -> None:
    assert words in problem(written(*columns)).message


def test_too_many_levels_are_refused() -> None:
    deep = leaf("x", "INT32")
    for _ in range(70):
        deep = group("g", deep)
    assert "nested deeper than 64 levels" in problem(written(deep)).message


# --- what a Spark noted ---

NOTE = "org.apache.spark.sql.parquet.row.metadata"
NOTED = Schema.of("id BIGINT NOT NULL, at TIMESTAMP_NTZ, span INTERVAL HOUR, any VARIANT")
STORED = written(leaf("id", "INT32"), notes={NOTE: NOTED.json})


def test_the_note_of_a_spark_is_the_schema() -> None:
    assert footer_of(STORED).schema.json == NOTED.json


@pytest.mark.parametrize(
    "note",
    [
        "",
        "{",
        "[]",
        '"string"',
        json.dumps({"type": "struct", "fields": [{"name": "a", "type": {"type": "udt"}}]}),
        "StructType(List(StructField(a,IntegerType,true)))",
    ],
)
def test_a_note_that_cannot_be_read_leaves_the_columns(note: str) -> None:
    assert footer_of(written(leaf("id", "INT32"), notes={NOTE: note})).schema.ddl == "id INT"


def test_a_note_that_breaks_a_rule_is_refused() -> None:
    twice = json.dumps(
        {"type": "struct", "fields": [{"name": n, "type": "string"} for n in ("a", "A")]}
    )
    words = problem(written(leaf("a", "INT32"), notes={NOTE: twice})).message
    assert "column A differs from a only in case" in words


# --- what Arrow writes ---

UTC = "Europe/Berlin"
ARROW: list[tuple[pa.DataType, dict[str, Any], str]] = [
    (pa.bool_(), {}, "BOOLEAN"),
    (pa.uint32(), {}, "BIGINT"),
    (pa.uint32(), {"version": "1.0"}, "BIGINT"),
    (pa.large_string(), {}, "STRING"),
    (pa.string_view(), {}, "STRING"),
    (pa.json_(), {}, "STRING"),
    (pa.binary(4), {}, "BINARY"),
    (pa.date64(), {}, "DATE"),
    (pa.timestamp("s"), {}, "TIMESTAMP_NTZ"),
    (pa.timestamp("us", UTC), {}, "TIMESTAMP"),
    (pa.timestamp("ns"), {"use_deprecated_int96_timestamps": True}, "TIMESTAMP"),
    (pa.timestamp("us", UTC), {"use_deprecated_int96_timestamps": True}, "TIMESTAMP"),
    (pa.timestamp("ns"), {"coerce_timestamps": "us"}, "TIMESTAMP_NTZ"),
    (pa.timestamp("ns", UTC), {"version": "2.4"}, "TIMESTAMP"),
    (pa.time64("us"), {}, "TIME(6)"),
    (pa.duration("us"), {}, "BIGINT"),
    (pa.null(), {}, "INT"),
    (pa.decimal128(5, 2), {}, "DECIMAL(5,2)"),
    (pa.decimal128(5, 2), {"store_decimal_as_integer": True}, "DECIMAL(5,2)"),
    (pa.decimal256(38, 2), {}, "DECIMAL(38,2)"),
    (pa.dictionary(pa.int32(), pa.string()), {}, "STRING"),
    (pa.list_(pa.uint8(), 2), {}, "ARRAY<SMALLINT>"),
    (pa.large_list(pa.duration("s")), {}, "ARRAY<BIGINT>"),
    (pa.list_(pa.int32()), {"use_compliant_nested_type": False}, "ARRAY<INT>"),
    (
        pa.map_(pa.string(), pa.list_(pa.struct([("t", pa.timestamp("us")), ("u", pa.uint64())]))),
        {},
        "MAP<STRING, ARRAY<STRUCT<t: TIMESTAMP_NTZ, u: DECIMAL(20,0)>>>",
    ),
]


def arrow_written(path: Path, kind: pa.DataType, options: Mapping[str, Any]) -> None:
    # Another column after it tells whether each took its own place.
    table = pa.schema([pa.field("a", kind), pa.field("z", pa.int8())]).empty_table()
    pq.write_table(table, path, **options)


@pytest.mark.parametrize(("kind", "options", "ddl"), ARROW, ids=str)
def test_notes_of_arrow_writers_do_not_count(
    tmp_path: Path, kind: pa.DataType, options: dict[str, Any], ddl: str
) -> None:
    arrow_written(tmp_path / "a.parquet", kind, options)
    footer = footer_of((tmp_path / "a.parquet").read_bytes())
    assert footer.schema.ddl == f"a {ddl}, z TINYINT"


def test_columns_that_arrow_says_are_never_null_are_not_null(tmp_path: Path) -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.int32())])
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("s", inner)])
    pq.write_table(schema.empty_table(), tmp_path / "a.parquet")
    footer = footer_of((tmp_path / "a.parquet").read_bytes())
    assert footer.schema.ddl == "a BIGINT NOT NULL, s STRUCT<x: INT NOT NULL, y: INT>"


def test_files_of_one_schema_share_it_whatever_else_is_noted(tmp_path: Path) -> None:
    schemas = []
    for number in range(3):
        table = pa.table({"a": [number]}).replace_schema_metadata({"written": str(number)})
        pq.write_table(table, tmp_path / "a.parquet")
        schemas.append(footer_of((tmp_path / "a.parquet").read_bytes()).schema)
    assert schemas[0] is schemas[1] is schemas[2]


# --- damage ---

WHOLE = written(leaf("a", "INT32"), rows=5)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "cannot be read as parquet"),
        (b"a,b\n1,2\n" * 100, "Parquet magic bytes not found"),
        (WHOLE[:-1], "Parquet magic bytes not found"),
        (WHOLE[: len(WHOLE) // 2], "cannot be read as parquet"),
        (WHOLE[:-8] + struct.pack("<I", 10_000) + b"PAR1", "smaller than the size reported"),
        (WHOLE[:-8] + struct.pack("<I", 3) + b"PAR1", "Couldn't deserialize thrift"),
        (WHOLE[:-8] + struct.pack("<I", 0) + b"PAR1", "cannot be read as parquet"),
        (written(leaf("a", "INT32"), rows=-5), "says that it has -5 rows"),
    ],
    ids=range(9),
)
def test_a_damaged_file_is_broken(data: bytes, words: str) -> None:
    assert words in problem(data).message


class Keys(encryption.KmsClient):
    """Keeps no secret."""

    def __init__(self, _: object) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def encrypted(plain_footer: bool) -> bytes:
    how = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["a"]}, plaintext_footer=plain_footer
    )
    factory = encryption.CryptoFactory(Keys)
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    table, sink = pa.table({"a": [1, 2]}), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_an_encrypted_file_is_broken_unless_its_footer_is_plain() -> None:
    assert "encrypted" in problem(encrypted(plain_footer=False)).message
    footer = footer_of(encrypted(plain_footer=True))
    assert (footer.schema.ddl, footer.num_rows) == ("a BIGINT", 2)


def test_the_rows_are_those_of_the_row_groups_as_spark_counts_them() -> None:
    assert footer_of(WHOLE) == Footer(Schema.of("a INT"), 5, len(WHOLE))
    assert footer_of(written(leaf("a", "INT32"), rows=6, stated=0)).num_rows == 6
    assert footer_of(written(leaf("a", "INT32"), rows=0, stated=6)).num_rows == 0


def understated(path: Path) -> None:
    """Writes a file of six rows that states none."""
    pq.write_table(pa.table({"a": range(6)}), path)
    data, total = path.read_bytes(), b"\x16\x0c\x19"
    assert data.count(total) == 1
    path.write_bytes(data.replace(total, b"\x16\x00\x19"))


def test_a_total_that_a_writer_left_at_nothing_does_not_count(tmp_path: Path) -> None:
    understated(tmp_path / "a.parquet")
    assert pq.read_metadata(tmp_path / "a.parquet").num_rows == 0
    assert footer_of((tmp_path / "a.parquet").read_bytes()).num_rows == 6
