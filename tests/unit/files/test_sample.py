"""JSON lines and CSV, sampled."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog.errors import BrokenFile
from catalog.files.footer import Footer, read_footer
from catalog.files.storage import Files

MIB = 1 << 20

# Whole files that Spark reads, with the schema that it guesses.
LINES = {
    "plain": (b'{"b":1,"a":"x"}\n{"a":"y","c":[1.5]}\n', "a STRING, b BIGINT, c ARRAY<DOUBLE>"),
    "no end": (b'{"a":1}\n{"a":2}', "a BIGINT"),
    "windows": (b'{"a":1}\r\n{"a":2}\r\n', "a BIGINT"),
    "old mac": (b'{"a":1}\r{"a":2}\r', "a BIGINT"),
    "blank lines": (b'\n{"a":1}\n\n   \n{"a":2}\n', "a BIGINT"),
    "mark": (b'\xef\xbb\xbf{"a":1}\n', "a BIGINT"),
    "indented": (b'  {"a":1}\n', "a BIGINT"),
    "array": (b'[{"a":1},{"b":true}]\n{"a":3}\n', "a BIGINT, b BOOLEAN"),
    "nested": (
        b'{"s":{"y":1,"x":[{"q":null}]}}\n',
        "s STRUCT<x: ARRAY<STRUCT<q: STRING>>, y: BIGINT>",
    ),
    "unicode": ('{"\\u0061":1,"ä €":2}\n'.encode(), "a BIGINT, `ä €` BIGINT"),
    "members that never had a value": (b'{"a":1,"b":{},"c":[{}]}\n', "a BIGINT"),
}
TABLES = {
    "plain": (b"id,at,note\n1,2024-01-02,x\n2,2024-01-03,\n", "id INT, at DATE, note STRING"),
    "no end": (b"a,b\n1,true", "a INT, b BOOLEAN"),
    "windows": (b"a,b\r\n1,2\r\n", "a INT, b INT"),
    "old mac": (b"a,b\r1,2\r", "a INT, b INT"),
    "blank lines": (b"\n\na,b\n1,2\n\n   \n3,4\n", "a INT, b INT"),
    "mark": (b"\xef\xbb\xbfa,b\n1,2\n", "a INT, b INT"),
    "only a header": (b"a,b\n", "a STRING, b STRING"),
    "one column": (b"a\n1\n\n2\n", "a INT"),
    "quotes": (b'"a","b"\n"1","2"\n', "a INT, b INT"),
    "commas in quotes": (b'a,b\n"x, y",1\n', "a STRING, b INT"),
    "escaped quotes": (b'a,b\n"x \\"y\\", z",1\n', "a STRING, b INT"),
    "backslashes": (b'a,b\n"x\\\\",1\nx\\,1\n', "a STRING, b INT"),
    "text after quotes": (b'a,b\n"x"y,2\n', "a STRING, b INT"),
    "doubled quotes": (b'a,b\n"x ""y"" z",2\n', "a STRING, b INT"),
    "empty": (b'a,b\n"",\n,1\n', "a STRING, b INT"),
    "no value": (b"a,b\n,1\n,2\n", "a STRING, b INT"),
    "spaces": (b"a, b \n1, 2\n", "a INT, ` b ` DOUBLE"),
    "odd names": ("a.b,ä €\n1,2\n".encode(), "`a.b` INT, `ä €` INT"),
}


def footer_of(path: Path, data: bytes) -> Footer:
    path.write_bytes(data)
    form = "csv" if ".csv" in path.name else "json"
    return read_footer(str(path), form, Files())


def problem(path: Path, data: bytes) -> BrokenFile:
    with pytest.raises(BrokenFile) as caught:
        footer_of(path, data)
    assert str(path) in caught.value.message
    return caught.value


@pytest.mark.parametrize("case", LINES)
def test_json_lines_have_the_schema_that_spark_guesses(tmp_path: Path, case: str) -> None:
    data, ddl = LINES[case]
    footer = footer_of(tmp_path / "a.json", data)
    assert footer.schema.ddl == ddl
    assert (footer.inferred, footer.size_bytes) == (True, len(data))


@pytest.mark.parametrize("case", TABLES)
def test_csv_has_the_schema_that_spark_guesses(tmp_path: Path, case: str) -> None:
    data, ddl = TABLES[case]
    footer = footer_of(tmp_path / "a.csv", data)
    assert footer.schema.ddl == ddl
    assert (footer.inferred, footer.size_bytes) == (True, len(data))


@pytest.mark.parametrize(
    ("data", "rows"),
    [(LINES["plain"][0], 2), (LINES["blank lines"][0], 2), (LINES["array"][0], 3)],
)
def test_objects_are_counted(tmp_path: Path, data: bytes, rows: int) -> None:
    assert footer_of(tmp_path / "a.json", data).num_rows == rows


@pytest.mark.parametrize("case", ["plain", "blank lines", "only a header", "no end"])
def test_records_are_counted_without_the_header(tmp_path: Path, case: str) -> None:
    rows = {"plain": 2, "blank lines": 2, "only a header": 0, "no end": 1}[case]
    assert footer_of(tmp_path / "a.csv", TABLES[case][0]).num_rows == rows


# --- bad input ---


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b'{"a":1}\n{"a":\n', 2, "is no JSON object: Expecting value (character 6)"),
        (b'{"a":1}\n\n{"a":1} x\n', 3, "is no JSON object: Extra data"),
        (b'{\n  "a": 1\n}\n', 1, "is no JSON object"),
        (b'{"a":1,"a":2}\n', 1, "'a' is in it twice"),
        (b'{"x":{"a":1,"a":2}}\n', 1, "'a' is in it twice"),
        (b"1\n", 1, "is 1, which is no JSON object"),
        (b'{"a":1}\nnull\n', 2, "is null, which is no JSON object"),
        (b'[{"a":1},[]]\n', 1, "which is no JSON object"),
        (b'{"a":"\xff"}\n', 1, "is not UTF-8 at byte 6"),
        (b'{"a":"x\ty"}\n', 1, "Invalid control character"),
        (b"{'a':1}\n", 1, "is no JSON object"),
        (b'{"a":' + b"9" * 5000 + b"}\n", 1, "is no JSON object: Exceeds the limit"),
        (b'{"a":' + b"[" * 100_000 + b"\n", 1, "is nested too deeply"),
        ('{"a":1}\n'.encode("utf-16"), 1, "is not UTF-8"),
    ],
    ids=range(14),
)
def test_a_broken_line_of_json_is_named(tmp_path: Path, data: bytes, line: int, words: str) -> None:
    error = problem(tmp_path / "a.json", data)
    assert error.message.startswith(f"line {line} of {tmp_path}/a.json ")
    assert words in error.message
    assert error.values["line"] == line


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"a,b\n1,2\n1,2,3\n", 3, "does not fit the header: 3 for 2 names"),
        (b"a,b\n\n1\n", 3, "does not fit the header: 1 for 2 names"),
        (b'a,b\n"x ""y"", z",2\n', 2, 'write a quote inside a value as \\"'),
        (b'a,b\n1,"x\ny"\n', 2, "has a quote that is not closed"),
        (b'a,b\n"C:\\",2\n', 2, "has a quote that is not closed"),
        (b'a,"b\n1,2\n', 1, "has a quote that is not closed"),
        (b"a,b\n1,\xff\n", 2, "is not UTF-8 at byte 2"),
    ],
    ids=range(7),
)
def test_a_broken_line_of_csv_is_named(tmp_path: Path, data: bytes, line: int, words: str) -> None:
    error = problem(tmp_path / "a.csv", data)
    assert error.message.startswith(f"line {line} of {tmp_path}/a.csv ")
    assert words in error.message


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.json", b"", "is empty"),
        ("a.csv", b"", "is empty"),
        ("a.json", b"\n \n", "has no records"),
        ("a.csv", b"\n \n", "has no records"),
        ("a.json.gz", gzip.compress(b"", mtime=0), "has no records"),
        ("a.json", b"{}\n{}\n", "a schema must have at least one column"),
        ("a.json", b'{"a":{}}\n', "a schema must have at least one column"),
        ("a.json", b'{"a":1}\n{"A":2}\n', "differs from A only in case"),
        ("a.json", b'{"":1}\n', "has an empty name"),
        ("a.json", b'{"\\ud800":1}\n', "has half a surrogate pair in its name"),
        ("a.json", b'{"a":' * 100 + b"1" + b"}" * 100, "nested deeper than 64 levels"),
        ("a.csv", b"a,A\n1,2\n", "column A differs from a only in case"),
        ("a.csv", b"a,\n1,2\n", "has an empty name"),
        ("a.csv", b"a\0,b\n1,2\n", "has a control character in its name"),
        ("a.json", b"x" * (MIB + 1), "is longer than 1,048,576 bytes"),
        ("a.json.gz", b'{"a":1}\n', "cannot be read as json"),
        ("a.json.gz", gzip.compress(b'{"a":1}\n' * 999, mtime=0)[:-20], "cannot be read as json"),
        ("a.csv.xz", b"a\n1\n", "use no compression or .gz, .bz2, .zst"),
        ("a.csv.snappy", b"a\n1\n", "use no compression or .gz, .bz2, .zst"),
    ],
    ids=range(19),
)
def test_a_file_without_a_schema_is_broken(
    tmp_path: Path, name: str, data: bytes, words: str
) -> None:
    assert words in problem(tmp_path / name, data).message


# --- the sample ---


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


@pytest.mark.parametrize(
    ("ending", "packed"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstd), ("GZ", gzip.compress)],
)
def test_compressed_text_is_sampled_and_its_size_is_that_of_the_file(
    tmp_path: Path, ending: str, packed: Any
) -> None:
    for name, (data, ddl) in (("a.json", LINES["plain"]), ("a.csv", TABLES["plain"])):
        footer = footer_of(tmp_path / f"{name}.{ending}", packed(data))
        assert (footer.schema.ddl, footer.num_rows) == (ddl, 2)
        assert footer.size_bytes == len(packed(data)) != len(data)


def test_files_that_were_compressed_in_parts_are_read_on(tmp_path: Path) -> None:
    data = gzip.compress(b'{"a":1}\n') + gzip.compress(b'{"b":1}\n')
    footer = footer_of(tmp_path / "a.json.gz", data)
    assert (footer.schema.ddl, footer.num_rows) == ("a BIGINT, b BIGINT", 2)


def test_a_thousand_records_are_a_sample(tmp_path: Path) -> None:
    lines = b'{"a":1}\n' * 1000
    whole = footer_of(tmp_path / "a.json", lines)
    more = footer_of(tmp_path / "b.json", lines + b'{"a":"text"}\n')
    assert [(f.schema.ddl, f.num_rows) for f in (whole, more)] == [
        ("a BIGINT", 1000),
        ("a BIGINT", None),
    ]
    whole = footer_of(tmp_path / "a.csv", b"a,b\n" + b"1,2\n" * 1000)
    more = footer_of(tmp_path / "b.csv", b"a,b\n" + b"1,2\n" * 1000 + b"x,y,z\n")
    assert [(f.schema.ddl, f.num_rows) for f in (whole, more)] == [
        ("a INT, b INT", 1000),
        ("a INT, b INT", None),
    ]


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_mebibyte_is_a_sample_and_the_line_that_it_cuts_is_left_out(
    tmp_path: Path, packed: Any
) -> None:
    ending = ".gz" if packed is gzip.compress else ""
    wide = json.dumps({"a": "x" * 5000}).encode() + b"\n"
    filled = MIB - len(wide) * (MIB // len(wide))
    # The last line that is whole ends with the sample, or one byte after it.
    for spare, columns in ((0, "a STRING, b STRING"), (1, "a STRING")):
        last = b'{"b":"' + b"y" * (filled + spare - len('{"b":""}\n')) + b'"}\n'
        text = wide * (MIB // len(wide)) + last + b'{"c":1}\n'
        assert text.index(b'{"c"') == MIB + spare
        footer = footer_of(tmp_path / f"a{spare}.json{ending}", packed(text))
        assert (footer.schema.ddl, footer.num_rows) == (columns, None)


def test_a_file_as_large_as_the_sample_is_all_of_it(tmp_path: Path) -> None:
    text = b"a,b\n1," + b"x" * (MIB - 10) + b"\n2,y"
    assert len(text) == MIB
    assert footer_of(tmp_path / "a.csv", text).num_rows == 2
    assert footer_of(tmp_path / "a.csv", text + b"z").num_rows is None
