"""The board: whole files or none, names that are safe, and no file read without need."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import InvalidInput, InvalidLocation
from catalog.realtime import Board
from catalog.realtime.follower import SETTLED, Watch
from tests.unit.realtime import Clock, Fickle, read_all

PLACES: list[Callable[[Path], str | Path]] = [
    lambda folder: folder / "board",
    lambda folder: f"{folder}/board/",
    lambda folder: f"file:{folder}/with a blank",
    lambda folder: f"file://{folder}/board",
    # Arrow's own file system in memory, by the same calls as an object store.
    lambda folder: "mock:///bucket/board",
]


@pytest.fixture(params=PLACES, ids=["path", "text", "file:", "file://", "arrow"])
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Board:
    return Board(request.param(tmp_path))


def test_a_folder_that_is_not_there_is_empty_and_made_by_the_first_write(board: Board) -> None:
    assert board.listing() == {}
    assert read_all(board) == {}
    assert board.read("w") is None
    board.remove("w")
    board.write("w", b"one")
    assert read_all(board) == {"w": b"one"}


def test_a_write_takes_the_place_of_the_one_before_and_of_no_other(board: Board) -> None:
    board.write("b", b"other")
    board.write("a", b"a long first one")
    board.write("a", b"two")
    assert read_all(board) == {"a": b"two", "b": b"other"}
    assert [(name, stamp.size) for name, stamp in board.listing().items()] == [("a", 3), ("b", 5)]


def test_what_is_removed_is_gone_and_may_be_removed_again(board: Board) -> None:
    board.write("a", b"1")
    board.write("b", b"2")
    board.remove("a")
    board.remove("a")
    assert read_all(board) == {"b": b"2"}
    assert board.read("a") is None


def test_the_same_folder_is_the_same_board_by_any_of_its_names(tmp_path: Path) -> None:
    Board(tmp_path / "a b").write("w", b"1")
    for path in (f"{tmp_path}/a b", f"file:{tmp_path}/a b", f"file://{tmp_path}/a b/"):
        assert read_all(Board(path)) == {"w": b"1"}


def test_only_files_of_writers_are_listed(tmp_path: Path) -> None:
    board = Board(tmp_path)
    board.write("w", b"1")
    (tmp_path / "folder.json").mkdir()
    for name in (
        ".w.json.12.tmp",
        ".hidden.json",
        "notes.txt",
        "two words.json",
        ".json",
        "w.JSON",
    ):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "nowhere.json").symlink_to(tmp_path / "not there")
    assert list(board.listing()) == ["w"]


GOOD = ["w", "9", "_", "-", "a.b", "orders-stream_2.json", "x" * 100]
BAD = ["", ".", "..", ".w", "a/b", "../w", "a b", "w\n", "ä", "a\0", "x" * 101, "a:b", None, 5]


@pytest.mark.parametrize("name", GOOD)
def test_names_that_are_safe_as_files_are_taken(name: str, tmp_path: Path) -> None:
    Board(tmp_path).write(name, b"1")
    assert read_all(Board(tmp_path)) == {name: b"1"}


@pytest.mark.parametrize("name", BAD)
def test_names_that_are_not_safe_as_files_are_refused(name: str, tmp_path: Path) -> None:
    board = Board(tmp_path / "board")
    for call in (
        lambda: board.write(name, b"1"),
        lambda: board.read(name),
        lambda: board.remove(name),
    ):
        with pytest.raises(InvalidInput, match="1 to 100 letters"):
            call()
    assert not (tmp_path / "board").exists()


@pytest.mark.parametrize("path", ["", " ", "dbfs:/x", "gopher://host/x", "a:b"])
def test_a_place_where_nothing_can_be_kept_is_refused(path: str) -> None:
    with pytest.raises(InvalidLocation):
        Board(path)


def test_spark_s_name_for_s3_is_understood() -> None:
    assert str(Board("s3a://bucket/board?region=us-east-1")).startswith("s3a://bucket")


def test_everybody_may_read_what_a_writer_wrote(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        Board(tmp_path).write("w", b"1")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "w.json").stat().st_mode) == 0o644


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_file_before_and_nothing_else(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board(tmp_path)
    board.write("w", b"before")

    def fail(*given: object) -> None:
        assert len(os.listdir(tmp_path)) == 2  # the new file has been begun
        assert read_all(board) == {"w": b"before"}
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, step, fail)
        with pytest.raises(OSError, match="No space left"):
            board.write("w", b"after")
    assert os.listdir(tmp_path) == ["w.json"]
    assert board.read("w") == b"before"


class Vanishing(Board):
    """A board whose files go between listing and reading."""

    gone: str = ""

    def read(self, name: str) -> bytes | None:
        if name == self.gone:
            self.remove(name)
        return super().read(name)


def test_a_file_that_goes_between_listing_and_reading_is_left_out(tmp_path: Path) -> None:
    board = Vanishing(tmp_path)
    board.write("a", b"1")
    board.write("b", b"2")
    board.gone = "a"
    look = Watch(board, Clock().monotonic).look()
    assert (look.names, look.changed, look.failed) == (frozenset("b"), {"b": b"2"}, {})
    board.write("a", b"1")
    assert read_all(board) == {"b": b"2"}


def test_a_reader_never_sees_half_a_file_while_it_is_replaced(tmp_path: Path) -> None:
    board, rounds = Board(tmp_path), 200
    contents = [bytes([65 + number % 26]) * (1 + number * 997) for number in range(rounds)]
    board.write("w", contents[0])
    done = threading.Event()

    def write() -> None:
        try:
            for content in contents:
                board.write("w", content)
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen, whole = [], set(contents)
    while not done.is_set():
        seen.append(read_all(board))
    writer.join()
    seen.append(read_all(board))
    assert all(found.keys() == {"w"} and found["w"] in whole for found in seen)
    assert len({found["w"] for found in seen}) > 1
    assert seen[-1] == {"w": contents[-1]}
    assert os.listdir(tmp_path) == ["w.json"]


# --- what changed ---


def test_a_file_that_does_not_change_is_not_read_again(tmp_path: Path) -> None:
    clock = Clock()
    board = Fickle(tmp_path, clock)
    watch = Watch(board, clock.monotonic)
    board.write("a", b"1")
    board.write("b", b"1")
    assert watch.look().changed == {"a": b"1", "b": b"1"}
    clock.advance(SETTLED + 1)
    # Once more, because it might have been replaced within the tick of its stamp.
    assert watch.look().changed == {}
    board.reads.clear()
    for _ in range(5):
        clock.advance(1)
        assert watch.look().names == {"a", "b"}
    assert board.reads == []
    board.write("b", b"2")
    assert watch.look().changed == {"b": b"2"}
    assert board.reads == ["b"]


def test_a_second_write_with_the_same_stamp_is_seen(tmp_path: Path) -> None:
    clock = Clock()
    board = Fickle(tmp_path, clock)
    watch = Watch(board, clock.monotonic)
    board.write("w", b"1")
    stamps = board.listing()
    assert watch.look().changed == {"w": b"1"}
    board.write("w", b"2")
    assert board.listing() == stamps
    assert watch.look().changed == {"w": b"2"}
    board.write("w", b"3")
    clock.advance(SETTLED + 1)
    assert board.listing() == stamps
    assert watch.look().changed == {"w": b"3"}


@pytest.mark.parametrize("error", [PermissionError(13, "no"), pa.ArrowInvalid("no")])
def test_a_file_that_cannot_be_read_is_told_and_tried_again(
    tmp_path: Path, error: Exception
) -> None:
    clock = Clock()
    board = Fickle(tmp_path, clock)
    board.error = error
    watch = Watch(board, clock.monotonic)
    board.write("a", b"1")
    board.write("b", b"2")
    board.unreadable.add("a")
    for _ in range(2):
        clock.advance(SETTLED + 1)
        look = watch.look()
        assert look.names == {"a", "b"}
        assert list(look.failed) == ["a"]
    board.unreadable.clear()
    assert watch.look().changed == {"a": b"1"}


def test_a_look_that_fails_as_a_whole_keeps_nothing_back_from_the_next(tmp_path: Path) -> None:
    board = Fickle(tmp_path, Clock())
    watch = Watch(board, board.clock.monotonic)
    board.write("a", b"1")
    board.write("b", b"2")
    board.unreadable, board.error = {"b"}, MemoryError()
    with pytest.raises(MemoryError):
        watch.look()
    board.unreadable.clear()
    assert watch.look().changed == {"a": b"1", "b": b"2"}


def test_a_file_that_went_and_came_back_is_news(tmp_path: Path) -> None:
    clock = Clock()
    board = Fickle(tmp_path, clock)
    watch = Watch(board, clock.monotonic)
    board.write("w", b"1")
    watch.look()
    board.remove("w")
    assert watch.look().names == frozenset()
    board.write("w", b"1")
    assert watch.look().changed == {"w": b"1"}
