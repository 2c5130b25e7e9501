"""What files and folders say of themselves."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from catalog.errors import BrokenFile
from catalog.files.footer import Footer, read_footer
from catalog.files.storage import Files
from catalog.schema import Schema

TABLE = pa.table({"a": [1, 2, 3]})
LINES = b'{"a":1}\n{"a":2}\n{"a":3}\n'
ROWS = b"a\n1\n2\n3\n"


def in_memory(write: Callable[[pa.Table, pa.BufferOutputStream], object]) -> bytes:
    sink = pa.BufferOutputStream()
    write(TABLE, sink)
    return sink.getvalue().to_pybytes()


WHOLE = {
    "parquet": in_memory(pq.write_table),
    "orc": in_memory(orc.write_table),
    "json": LINES,
    "csv": ROWS,
}


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def problem(path: Path | str, form: str, open_file: Any = None) -> BrokenFile:
    with pytest.raises(BrokenFile) as caught:
        read_footer(str(path), form, open_file or Files())
    assert str(path) in caught.value.message
    return caught.value


# --- one file ---


@pytest.mark.parametrize("form", WHOLE)
def test_a_file_says_its_schema_its_rows_and_its_size(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / f"a b%20.{form}", WHOLE[form])
    sampled = form in ("json", "csv")
    kind = "INT" if form == "csv" else "BIGINT"
    expected = Footer(Schema.of(f"a {kind}"), 3, len(WHOLE[form]), inferred=sampled)
    for prefix in ("", "file:", "file://"):
        assert read_footer(f"{prefix}{path}", form, Files()) == expected


@pytest.mark.parametrize("form", WHOLE)
def test_a_file_is_opened_once_and_closed(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / f"a.{form}", WHOLE[form])
    opened: list[pa.NativeFile] = []

    def open_file(path: str) -> pa.NativeFile:
        opened.append(Files()(path))
        return opened[-1]

    read_footer(str(path), form, open_file)
    assert [file.closed for file in opened] == [True]


@pytest.mark.parametrize("form", WHOLE)
def test_a_footer_travels(tmp_path: Path, form: str) -> None:
    footer = read_footer(str(put(tmp_path / "a", WHOLE[form])), form, Files())
    assert pickle.loads(pickle.dumps(footer)) == footer


def test_reading_travels_with_what_opens_files(tmp_path: Path) -> None:
    path = put(tmp_path / "a", WHOLE["orc"])
    read = pickle.loads(pickle.dumps(partial(read_footer, format="orc", open_file=Files())))
    assert read(str(path)).num_rows == 3


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("delta", "is of format delta, and only files of parquet, orc, json, csv say what they"),
        ("delta", "the log of a Delta table says it"),
        ("avro", "is of format avro, and only files of parquet, orc, json, csv"),
        ("", "is of format , and only"),
    ],
)
def test_other_formats_are_refused_by_name(tmp_path: Path, form: str, words: str) -> None:
    assert words in problem(put(tmp_path / "a", b"x"), form).message


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize(
    ("data", "words"),
    [(None, "there is no file"), (b"", "is empty"), (b"\0\xff\0\xff" * 50, "")],
)
def test_a_file_that_is_gone_empty_or_garbage_is_broken(
    tmp_path: Path, form: str, data: bytes | None, words: str
) -> None:
    path = tmp_path / f"a.{form}"
    if data is not None:
        put(path, data)
    assert words in problem(path, form).message


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("odd"), MemoryError()])
def test_whatever_goes_wrong_is_a_broken_file(error: Exception) -> None:
    def open_file(path: str) -> pa.NativeFile:
        raise error

    found = problem("/x/a.orc", "orc", open_file)
    assert "/x/a.orc cannot be read as orc" in found.message
    assert found.__cause__ is error
    assert pickle.loads(pickle.dumps(found)).message == found.message


def test_an_interrupt_is_no_broken_file() -> None:
    def open_file(path: str) -> pa.NativeFile:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_footer("/x/a.orc", "orc", open_file)


@given(
    form=st.sampled_from(sorted(WHOLE)),
    damage=st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=3)), min_size=1, max_size=5),
)
def test_damage_breaks_a_file_or_does_it_no_harm(
    form: str, damage: list[tuple[int, bytes]]
) -> None:
    data = WHOLE[form]
    for place, new in damage:
        # From the end, where footers are.
        cut = max(0, len(data) - place)
        data = data[:cut] + new + data[cut + 1 :]
    try:
        footer = read_footer("/x/a", form, lambda _: pa.BufferReader(data))
    except BrokenFile:
        return
    assert footer.size_bytes == len(data)
    assert Schema.of(footer.schema.struct()) == footer.schema


# --- folders ---


@pytest.mark.parametrize("form", WHOLE)
def test_a_folder_says_what_its_files_say_together(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "x.parts"
    for name in (f"part-0.{form}", f"part-1.{form}", f"k=1/part-2.{form}", "_k=2/part-3"):
        put(folder / name, WHOLE[form])
    for name in ("_SUCCESS", f".part-0.{form}.crc", f"_temporary/0/part-9.{form}", ".x/part-9"):
        put(folder / name, b"no data")
    for path in (str(folder), f"{folder}/", f"file:{folder}"):
        footer = read_footer(path, form, Files())
        assert (footer.num_rows, footer.size_bytes) == (12, 4 * len(WHOLE[form]))
        assert [column.name for column in footer.schema.columns] == ["a"]
        assert footer.inferred == (form in ("json", "csv"))


def test_a_hidden_folder_may_hold_the_folder(tmp_path: Path) -> None:
    put(tmp_path / "_hidden" / "x" / "a.json", LINES)
    assert read_footer(f"{tmp_path}/_hidden/x", "json", Files()).num_rows == 3


def test_a_folder_elsewhere_is_read_through_the_same_file_system(tmp_path: Path) -> None:
    for name in ("a.orc", "deep/b.orc"):
        put(tmp_path / "bucket" / "x" / name, WHOLE["orc"])

    def connect(uri: str) -> tuple[FileSystem, str]:
        return SubTreeFileSystem(str(tmp_path), LocalFileSystem()), "bucket"

    assert read_footer("s3a://bucket/x", "orc", Files(connect)).num_rows == 6


def test_a_sample_of_one_file_leaves_the_rows_of_all_open(tmp_path: Path) -> None:
    put(tmp_path / "x" / "a.json", LINES)
    put(tmp_path / "x" / "b.json", LINES * 1000)
    footer = read_footer(f"{tmp_path}/x", "json", Files())
    assert (footer.num_rows, footer.size_bytes) == (None, 1001 * len(LINES))


@pytest.mark.parametrize("empty", [b"", b"\n", gzip.compress(b"", mtime=0)])
def test_files_without_rows_do_not_count_in_a_folder(tmp_path: Path, empty: bytes) -> None:
    # Spark's first task writes a file in any case.
    put(tmp_path / "x" / ("part-0.json.gz" if empty[:1] == b"\x1f" else "part-0.json"), empty)
    assert (
        "is a folder without data files of format json" in problem(tmp_path / "x", "json").message
    )
    put(tmp_path / "x" / "part-1.json", LINES)
    assert read_footer(f"{tmp_path}/x", "json", Files()).num_rows == 3


def test_a_header_alone_says_nothing_of_types_in_a_folder(tmp_path: Path) -> None:
    put(tmp_path / "x" / "part-0.csv", b"a\n")
    assert read_footer(f"{tmp_path}/x", "csv", Files()) == Footer(Schema.of("a STRING"), 0, 2, True)
    put(tmp_path / "x" / "part-1.csv", ROWS)
    assert read_footer(f"{tmp_path}/x", "csv", Files()) == Footer(Schema.of("a INT"), 3, 10, True)


def test_a_folder_whose_files_differ_names_two_of_them(tmp_path: Path) -> None:
    for name, table in (("a", TABLE), ("b", TABLE), ("c", pa.table({"a": ["x"]}))):
        pq.write_table(table, put(tmp_path / "x" / name, b""))
    message = problem(tmp_path / "x", "parquet").message
    assert f"{tmp_path}/x/b has a BIGINT, and {tmp_path}/x/c has a STRING" in message


def test_samples_that_differ_are_no_schema_of_a_folder(tmp_path: Path) -> None:
    put(tmp_path / "x" / "a.json", LINES * 1000)
    put(tmp_path / "x" / "b.json", b'{"b":1}\n' * 3000)
    assert "is a folder whose files differ" in problem(tmp_path / "x", "json").message


def test_files_that_differ_in_the_order_of_columns_have_one_schema(tmp_path: Path) -> None:
    for name, columns in (("a", ["a", "b"]), ("b", ["b", "a"])):
        table = pa.table({column: [1] for column in columns})
        pq.write_table(table, put(tmp_path / "x" / name, b""))
    assert read_footer(f"{tmp_path}/x", "parquet", Files()).num_rows == 2


@pytest.mark.parametrize("form", WHOLE)
def test_a_broken_file_breaks_its_folder(tmp_path: Path, form: str) -> None:
    put(tmp_path / "x" / "a", WHOLE[form])
    put(tmp_path / "x" / "b.txt", b"\0 a note, somehow\nleft, here\n")
    assert f"{tmp_path}/x/b.txt" in problem(tmp_path / "x", form).message


def test_a_folder_without_data_is_broken(tmp_path: Path) -> None:
    put(tmp_path / "x" / "_SUCCESS", b"")
    (tmp_path / "x" / "deep").mkdir()
    words = "is a folder without data files of format parquet"
    assert words in problem(tmp_path / "x", "parquet").message
