"""The reader's side: lives and clocks, replicas, and files that are broken."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catalog import Schema
from catalog.realtime import Announced, Announcer, Board, Follower, FollowerFigures
from tests.unit.realtime import Clock, Fickle

A = Schema.of("a INT, s STRING")
TTL = timedelta(seconds=60)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(tmp_path: Path, clock: Clock) -> Fickle:
    return Fickle(tmp_path, clock)


@pytest.fixture
def reader(board: Fickle) -> Follower:
    return follower(board)


def announcer(board: Fickle, writer: str = "w", **given: Any) -> Announcer:
    return Announcer(board, writer, **({"clock": board.clock.now, "ttl": TTL} | given))


def follower(board: Fickle, skew: float = 0.0) -> Follower:
    reader = Clock(skew)

    def now() -> Any:
        reader.seconds = board.clock.seconds
        return reader.now()

    return Follower(board, clock=board.clock.monotonic, now=now)


def shown(found: Mapping[str, Announced]) -> dict[str, tuple[str, int | None]]:
    return {name: (each.schema.ddl, each.num_rows) for name, each in found.items()}


# --- following ---


def test_an_empty_board_announces_nothing(reader: Follower) -> None:
    assert dict(reader.refresh()) == {}
    assert reader.figures == FollowerFigures()


def test_a_follower_sees_all_writers_and_what_becomes_of_their_segments(
    board: Fickle, reader: Follower
) -> None:
    one, two = announcer(board, "one"), announcer(board, "two")
    one.announce("o/1", A, 5)
    two.announce("p/1", "b DATE")
    assert shown(reader.refresh()) == {"o/1": (A.ddl, 5), "p/1": ("b DATE", None)}
    assert reader.living == 2
    one.announce({"o/1": ("t DATE", 6), "o/2": (A, 0)})
    assert shown(reader.refresh()) == {
        "o/1": ("a INT, s STRING, t DATE", 6),
        "o/2": (A.ddl, 0),
        "p/1": ("b DATE", None),
    }
    one.forget(["o/1"])
    assert shown(reader.refresh()) == {"o/2": (A.ddl, 0), "p/1": ("b DATE", None)}
    two.close()
    assert shown(reader.refresh()) == {"o/2": (A.ddl, 0)}
    assert reader.living == 1
    board.clock.advance(60)
    assert (dict(reader.refresh()), reader.living) == ({}, 0)
    assert reader.figures == FollowerFigures(read=4, expired=1)


def test_a_new_session_replaces_the_one_before(board: Fickle, reader: Follower) -> None:
    announcer(board).announce({"o/1": (A, 5), "o/2": (A, 5)})
    reader.refresh()
    announcer(board, takeover=True).announce("o/1", "a DATE", 1)
    assert shown(reader.refresh()) == {"o/1": ("a DATE", 1)}
    assert reader.figures == FollowerFigures(read=2)


def test_the_answer_is_the_same_object_until_something_changes(
    board: Fickle, reader: Follower
) -> None:
    ours = announcer(board)
    ours.announce("o/1", A, 5)
    first = reader.refresh()
    ours.renew()
    assert reader.refresh() is first
    assert reader.announced is first
    ours.announce("o/1", A, 6)
    assert reader.refresh() is not first
    assert shown(first) == {"o/1": (A.ddl, 5)}


def test_an_older_copy_of_a_file_changes_nothing(board: Fickle, reader: Follower) -> None:
    ours = announcer(board)
    ours.announce("o/1", A, 5)
    older = board.read("w")
    assert older is not None
    ours.announce("o/1", A, 6)
    first = reader.refresh()
    board.clock.advance(5)
    board.write("w", older)
    assert reader.refresh() is first
    board.clock.advance(55)
    assert dict(reader.refresh()) == {}


# --- files that are broken ---

BROKEN = [
    ("half", lambda content: content[: len(content) // 2]),
    ("empty", lambda content: b""),
    ("notes", lambda content: b"# notes"),
    ("newer", lambda content: content.replace(b'"format":2', b'"format":3')),
    ("another's", lambda content: content.replace(b'"writer":"w"', b'"writer":"v"')),
]


@pytest.mark.parametrize("broken", [each[1] for each in BROKEN], ids=[each[0] for each in BROKEN])
def test_a_broken_file_disturbs_nobody_and_what_was_known_of_it_stays_until_it_expires(
    board: Fickle,
    reader: Follower,
    broken: Callable[[bytes], bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    ours, other = announcer(board), announcer(board, "x", ttl=timedelta(days=1))
    ours.announce("o/1", A, 5)
    other.announce("p/1", A, 1)
    reader.refresh()
    board.clock.advance(30)
    board.write("w", broken(board.read("w") or b""))
    other.announce("p/1", A, 2)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert shown(reader.refresh()) == {"o/1": (A.ddl, 5), "p/1": (A.ddl, 2)}
    assert "announcements of w are ignored" in caplog.text
    assert reader.figures == FollowerFigures(read=4, broken=1)
    board.clock.advance(30)
    assert shown(reader.refresh()) == {"p/1": (A.ddl, 2)}
    ours = announcer(board, takeover=True)
    ours.announce("o/1", A, 7)
    assert shown(reader.refresh()) == {"o/1": (A.ddl, 7), "p/1": (A.ddl, 2)}


def test_a_file_that_cannot_be_read_disturbs_nobody_and_is_tried_again(
    board: Fickle, reader: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    ours, other = announcer(board), announcer(board, "x")
    ours.announce("o/1", A, 5)
    reader.refresh()
    ours.announce("o/1", A, 6)
    other.announce("p/1", A, 1)
    board.unreadable.add("w")
    with caplog.at_level(logging.WARNING):
        assert shown(reader.refresh()) == {"o/1": (A.ddl, 5), "p/1": (A.ddl, 1)}
    assert "announcements of w cannot be read now" in caplog.text
    board.unreadable.clear()
    assert shown(reader.refresh()) == {"o/1": (A.ddl, 6), "p/1": (A.ddl, 1)}
    assert reader.figures == FollowerFigures(read=3, broken=1)


def test_an_error_of_the_whole_folder_is_raised_and_what_was_known_expires(tmp_path: Path) -> None:
    clock = Clock()
    board = Fickle(tmp_path / "board", clock)
    announcer(board).announce("o/1", A, 5)
    reader = follower(board)
    known = reader.refresh()
    board.remove("w")
    board.folder.rmdir()
    board.folder.write_text("a file where the folder was")
    with pytest.raises(NotADirectoryError):
        reader.refresh()
    assert reader.announced is known
    clock.advance(60)
    assert dict(reader.announced) == {}


# --- lives ---


@pytest.mark.parametrize("skew", [0.0, 3600.0, -3600.0], ids=["right", "reader fast", "slow"])
def test_who_is_seen_to_renew_lives_and_who_is_not_expires_whatever_the_clocks_say(
    board: Fickle, skew: float
) -> None:
    reader = follower(board, skew)
    ours = announcer(board)
    ours.renew()
    reader.refresh()
    ours.announce("o/1", A, 5)
    for _ in range(5):
        assert shown(reader.refresh()) == {"o/1": (A.ddl, 5)}
        board.clock.advance(50)
        ours.renew()
    reader.refresh()
    board.clock.advance(59.5)
    assert shown(reader.refresh()) == {"o/1": (A.ddl, 5)}
    before = reader.figures.expired
    board.clock.advance(0.5)
    assert dict(reader.refresh()) == dict(reader.refresh()) == {}
    assert reader.figures.expired == before + 1
    ours.announce("o/1", A, 6)
    assert shown(reader.refresh()) == {"o/1": (A.ddl, 6)}


@pytest.mark.parametrize(("age", "lives"), [(59, True), (60, False), (10_000, False)])
def test_at_first_sight_the_time_of_day_decides(board: Fickle, age: float, lives: bool) -> None:
    announcer(board).announce("o/1", A, 5)
    board.clock.advance(age)
    reader = follower(board)
    assert ("o/1" in reader.refresh()) is lives
    assert reader.figures.expired == (0 if lives else 1)


def test_a_dead_writer_whose_clock_was_fast_is_believed_no_longer_than_its_ttl(
    board: Fickle,
) -> None:
    announcer(board).announce("o/1", A, 5)
    board.clock.advance(1000)
    reader = follower(board, skew=-3600)
    assert shown(reader.refresh()) == {"o/1": (A.ddl, 5)}
    board.clock.advance(60)
    assert dict(reader.refresh()) == {}


def test_a_living_writer_whose_clock_is_slow_is_believed_from_its_next_beat(board: Fickle) -> None:
    ours = announcer(board)
    ours.announce("o/1", A, 5)
    reader = follower(board, skew=3600)
    assert dict(reader.refresh()) == {}
    board.clock.advance(20)
    ours.renew()
    assert shown(reader.refresh()) == {"o/1": (A.ddl, 5)}


def test_touching_a_file_is_no_sign_of_life(board: Fickle, reader: Follower) -> None:
    announcer(board).announce("o/1", A, 5)
    reader.refresh()
    for _ in range(4):
        board.clock.advance(20)
        board.write("w", board.read("w") or b"")
        found = reader.refresh()
    assert dict(found) == {}


# --- replicas ---


def test_replicas_are_merged_and_the_larger_count_is_taken(board: Fickle, reader: Follower) -> None:
    announcer(board, "b").announce({"o/1": ("x DATE, a BIGINT", 7), "o/2": (A, 3)})
    announcer(board, "a").announce({"o/1": (A, 5), "o/2": (A, None)})
    announcer(board, "c").announce({"o/1": (A, 6), "o/2": (A, 2)})
    assert shown(reader.refresh()) == {
        "o/1": ("a BIGINT, s STRING, x DATE", 7),
        "o/2": (A.ddl, 3),
    }
    assert reader.figures.conflicts == 0


def test_replicas_in_conflict_keep_the_type_of_the_first_name_and_are_counted_once(
    board: Fickle, reader: Follower, caplog: pytest.LogCaptureFixture
) -> None:
    second, first = announcer(board, "b"), announcer(board, "a")
    second.announce("o/1", "a DATE, x INT", 1)
    first.announce("o/1", "a INT", 1)
    with caplog.at_level(logging.WARNING):
        for rows in range(2, 5):
            second.announce("o/1", "a DATE", rows)
            assert shown(reader.refresh()) == {"o/1": ("a INT, x INT", rows)}
    assert reader.figures.conflicts == 1
    assert caplog.text.count("o/1") == 1
    first.close()
    assert shown(reader.refresh()) == {"o/1": ("a DATE, x INT", 4)}


def test_replicas_with_more_columns_than_a_schema_may_have_are_in_conflict(
    board: Fickle, reader: Follower
) -> None:
    wide = [", ".join(f"{name}{number} INT" for number in range(6000)) for name in "ab"]
    announcer(board, "a").announce("o/1", wide[0])
    announcer(board, "b").announce("o/1", wide[1])
    announcer(board, "c").announce("o/2", A)
    found = reader.refresh()
    assert found["o/1"].schema == Schema.of(wide[0])
    assert found["o/2"].schema == A
    assert reader.figures.conflicts == 1


# --- at the same time ---


def test_a_reader_beside_a_writer_sees_only_states_that_were_announced(tmp_path: Path) -> None:
    rounds = 200
    board = Board(tmp_path)
    done = threading.Event()

    def write() -> None:
        with Announcer(board, "w") as ours:
            for number in range(rounds):
                # Rows and columns belong together: k columns after the k-th announcement.
                ours.announce("o/1", ", ".join(f"c{k} INT" for k in range(number + 1)), number)
            done.wait(30)

    writer = threading.Thread(target=write)
    writer.start()
    reader = Follower(board)
    seen = [-1]
    while seen[-1] != rounds - 1:
        for each in reader.refresh().values():
            assert each.num_rows is not None
            assert len(each.schema.columns) == each.num_rows + 1
            seen.append(each.num_rows)
    done.set()
    writer.join()
    assert seen == sorted(seen)
    assert dict(reader.refresh()) == {}
    assert reader.figures.broken == 0
