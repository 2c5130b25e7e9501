"""Data that is copied: whole, compared, never replaced."""

from __future__ import annotations

import gzip
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catalog.errors import BrokenFile
from catalog.files import storage
from catalog.files.storage import Copied, Copier, Files
from tests.spark.files import broken, parquet

COPIER = Copier(Files(), Files())


def files_in(folder: Path) -> dict[str, bytes]:
    """Everything below a folder, by path."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_a_file_is_copied_once_and_found_the_next_time(tmp_path: Path) -> None:
    source, target = Path(parquet(tmp_path / "x.parquet", rows=3)), tmp_path / "t" / "deep"
    content = source.read_bytes()
    first = COPIER.copy(str(source), "parquet", str(target), 3)
    assert first == Copied(1, len(content), sha256(content).hexdigest(), fresh=True)
    before = (target / "x.parquet").stat()
    assert COPIER.copy(f"file:{source}", "parquet", f"file:{target}", None) == Copied(
        1, len(content), first.sha256, fresh=False
    )
    assert files_in(target) == {"x.parquet": content}
    assert (target / "x.parquet").stat().st_mtime_ns == before.st_mtime_ns
    assert source.read_bytes() == content


def test_a_folder_keeps_its_paths_and_goes_without_what_spark_passes_by(tmp_path: Path) -> None:
    source, target = tmp_path / "data", tmp_path / "t"
    parquet(source / "part-0.parquet", rows=2)
    parquet(source / "day=1" / "part-1.parquet", rows=1)
    (source / "part-2.parquet").write_bytes(b"")
    (source / "_SUCCESS").write_bytes(b"")
    (source / ".part-0.parquet.crc").write_bytes(b"crc")
    copied = COPIER.copy(str(source), "parquet", str(target), 3)
    assert (copied.files, copied.fresh) == (3, True)
    expected = {k: v for k, v in files_in(source).items() if k.rpartition("/")[2][0] not in "._"}
    assert files_in(target) == expected
    assert copied.size_bytes == sum(map(len, expected.values()))
    # One file lost, as after a crash: the rest is found, and it is all the same data.
    (target / "part-0.parquet").unlink()
    again = COPIER.copy(str(source), "parquet", str(target), 3)
    assert again == copied
    assert files_in(target) == expected


def test_compressed_text_is_copied_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "x.json.gz"
    source.write_bytes(gzip.compress(b'{"a": 1}\n'))
    COPIER.copy(str(source), "json", str(tmp_path / "t"), 5)  # rows of text are not counted
    assert files_in(tmp_path / "t") == {"x.json.gz": source.read_bytes()}
    assert not COPIER.copy(str(source), "json", str(tmp_path / "t"), 5).fresh


def test_what_cannot_be_trusted_is_refused_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    (tmp_path / "table" / "_delta_log" / "0.json").write_text("{}")
    parquet(tmp_path / "table" / "x.parquet")
    cases: list[tuple[str, str]] = [
        (str(tmp_path / "gone.parquet"), "there is no file"),
        (broken(tmp_path / "broken.parquet"), "cannot be read as parquet"),
        (parquet(tmp_path / "other.parquet", rows=3), "has 3 rows, and 1 were published"),
        (str(tmp_path / "empty"), "a folder without data files"),
        (str(tmp_path / "table"), "is a Delta table"),
    ]
    for path, says in cases:
        with pytest.raises(BrokenFile) as refused:
            COPIER.copy(path, "parquet", str(tmp_path / "t"), 1)
        assert says in refused.value.message
    assert files_in(tmp_path / "t") == {}


def test_what_is_at_the_target_and_differs_is_never_replaced(tmp_path: Path) -> None:
    source = parquet(tmp_path / "x.parquet")
    target = tmp_path / "t" / "x.parquet"
    target.parent.mkdir()
    target.write_bytes(b"of somebody else")
    with pytest.raises(BrokenFile, match="is there already and is not what"):
        COPIER.copy(source, "parquet", str(tmp_path / "t"))
    assert target.read_bytes() == b"of somebody else"


def test_a_copy_that_fails_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = parquet(tmp_path / "x.parquet", rows=100)
    sums = storage._sum

    def lossy(stream: Any, out: Any = None) -> tuple[int, str]:
        # A storage that keeps less than it was given.
        return sums(pa.BufferReader(stream.read()[: -1 if out is None else None]), out)

    monkeypatch.setattr(storage, "_sum", lossy)
    with pytest.raises(BrokenFile, match=r"cannot be copied to .* which differ"):
        COPIER.copy(source, "parquet", str(tmp_path / "t"))
    assert files_in(tmp_path / "t") == {}

    def stops(stream: Any, out: Any = None) -> tuple[int, str]:
        out.write(stream.read(10))
        raise pa.ArrowException("the source went away")

    monkeypatch.setattr(storage, "_sum", stops)
    with pytest.raises(BrokenFile, match="the source went away"):
        COPIER.copy(source, "parquet", str(tmp_path / "t"))
    assert files_in(tmp_path / "t") == {}
