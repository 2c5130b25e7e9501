"""The writer's side: what stands in the file, whose name it is, renewals."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from catalog import Schema, Segment
from catalog.errors import InvalidInput, SchemaConflict
from catalog.model import PublishResult
from catalog.realtime import Announced, Announcer, Board
from catalog.realtime.announcer import StreamAnnouncer
from catalog.realtime.board import Announcement
from tests.unit.realtime import NOON, Clock, Fickle

A = Schema.of("a INT, s STRING")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(tmp_path: Path, clock: Clock) -> Fickle:
    return Fickle(tmp_path, clock)


def announcer(board: Fickle, writer: str = "w", **given: Any) -> Announcer:
    return Announcer(board, writer, **({"clock": board.clock.now} | given))


def file(board: Board, writer: str = "w") -> Announcement:
    content = board.read(writer)
    assert content is not None
    return Announcement.from_json(content)


def told(board: Board, writer: str = "w") -> dict[str, tuple[str, int | None]]:
    """What the file says, with names and order of columns."""
    segments = file(board, writer).segments
    return {name: (each.schema.ddl, each.num_rows) for name, each in segments.items()}


def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not come about")


# --- what is said ---


def test_an_announcement_says_who_and_when(board: Fickle) -> None:
    ours = announcer(board, new_id=lambda: "s1", ttl=timedelta(seconds=90))
    ours.announce("o/1", A, 5)
    found = file(board)
    assert (found.writer, found.session, found.beat) == ("w", "s1", 1)
    assert (found.renewed_at, found.ttl) == (NOON, 90.0)
    assert found.segments == {"o/1": Announced(A, 5)}


def test_every_announcement_has_all_open_segments(board: Fickle) -> None:
    ours = announcer(board)
    ours.announce({"o/1": (A, 5), "o/2": ("b DATE", None)})
    ours.announce("o/1", "a BIGINT, s STRING, t DATE", 6)
    ours.announce({"o/1": (A, 7), "o/3": (A, 1)})
    grown = Schema.of("a BIGINT, s STRING, t DATE")
    everything = {"o/1": Announced(grown, 7), "o/2": Announced("b DATE"), "o/3": Announced(A, 1)}
    assert file(board).segments == everything
    ours.forget("o/2")
    del everything["o/2"]
    assert file(board).segments == dict(ours.announced) == everything


def test_when_nothing_changed_only_the_beat_moves(board: Fickle) -> None:
    ours = announcer(board)
    ours.announce("o/1", A, 5)
    before = file(board)
    board.clock.advance(7)
    ours.announce("o/1", "s STRING, a INT", 5)
    ours.announce({})
    ours.forget(["o/9"])
    ours.renew()
    after = file(board)
    assert after.segments == before.segments
    assert (before.beat, after.beat) == (1, 5)
    assert after.renewed_at == NOON + timedelta(seconds=7)


def test_a_schema_only_grows_and_keeps_the_order_of_its_columns(board: Fickle) -> None:
    ours = announcer(board)
    for ddl in (
        "b INT, a INT NOT NULL",
        "a SMALLINT NOT NULL, c DATE",
        "c TIMESTAMP_NTZ, b BIGINT",
    ):
        ours.announce("o/1", ddl)
    assert told(board) == {"o/1": ("b BIGINT, a INT, c TIMESTAMP_NTZ", None)}


def test_without_a_count_the_earlier_one_stands(board: Fickle) -> None:
    ours = announcer(board)
    ours.announce("o/1", A, 5)
    ours.announce("o/1", "a INT, s STRING, t DATE")
    ours.announce("o/1", A, 4)
    assert told(board) == {"o/1": ("a INT, s STRING, t DATE", 4)}


def test_types_in_conflict_announce_nothing_of_the_call(board: Fickle) -> None:
    ours = announcer(board)
    ours.announce("o/1", A, 5)
    before = board.read("w")
    with pytest.raises(SchemaConflict, match=r"o/1.*a: int and date.*forget") as refused:
        ours.announce({"o/2": (A, 1), "o/1": ("a DATE, x INT", 6)})
    assert refused.value.values["segment_id"] == "o/1"
    assert refused.value.values["conflicts"][0]["path"] == "a"
    assert board.read("w") == before
    assert dict(ours.announced) == {"o/1": Announced(A, 5)}


def test_a_segment_that_was_forgotten_begins_anew(board: Fickle) -> None:
    ours = announcer(board)
    ours.announce("o/1", A, 5)
    ours.forget("o/1")
    assert told(board) == {}
    ours.announce("o/1", "a DATE")
    assert told(board) == {"o/1": ("a DATE", None)}


BAD_CALLS: list[tuple[str, Callable[[Announcer], None], str]] = [
    ("id", lambda ours: ours.announce("orders", A), "datasource/name"),
    ("ids", lambda ours: ours.announce({"o/1": (A, 1), 5: (A, 1)}), "must be a string, not 5"),  # type: ignore[dict-item]
    ("schema", lambda ours: ours.announce("o/1", ""), "at least one column"),
    ("no schema", lambda ours: ours.announce("o/1"), "NoneType"),  # type: ignore[call-overload]
    ("rows", lambda ours: ours.announce("o/1", A, -1), "num_rows must be a whole number"),
    ("a list", lambda ours: ours.announce(["o/1"]), "an id or a mapping"),  # type: ignore[call-overload]
    ("nothing", lambda ours: ours.announce(None), "an id or a mapping"),  # type: ignore[call-overload]
    ("extras", lambda ours: ours.announce({"o/1": (A, 1)}, A), "with a single id"),  # type: ignore[call-overload]
    ("extra rows", lambda ours: ours.announce({"o/1": (A, 1)}, num_rows=0), "with a single id"),  # type: ignore[call-overload]
    ("forget", lambda ours: ours.forget(5), "an id or several ids"),  # type: ignore[arg-type]
    ("forget an id", lambda ours: ours.forget([5]), "an id or several ids"),  # type: ignore[list-item]
    ("no pair", lambda ours: ours.announce({"o/1": A}), r"as \(schema, num_rows\)"),  # type: ignore[dict-item]
]


@pytest.mark.parametrize(
    ("call", "says"), [b[1:] for b in BAD_CALLS], ids=[b[0] for b in BAD_CALLS]
)
def test_bad_calls_are_refused_and_write_nothing(
    board: Fickle, call: Callable[[Announcer], None], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        call(announcer(board))
    assert board.listing() == {}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"writer": "a/b"}, "writer"),
        ({"ttl": timedelta()}, "ttl must be above zero"),
        ({"ttl": timedelta(days=8)}, "at most 7 days"),
        ({"ttl": 60}, r"ttl must be a timedelta, not 60"),
    ],
)
def test_bad_settings_are_refused(board: Fickle, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        announcer(board, **given)


@pytest.mark.parametrize("when", ["before", "after"])
def test_when_storage_fails_what_was_said_stands_and_the_next_write_carries_it(
    board: Fickle, when: str
) -> None:
    ours = announcer(board)
    ours.announce({"o/1": (A, 5), "o/2": (A, 5)})
    board.fails = when
    with pytest.raises(OSError, match="storage"):
        ours.announce("o/1", "t DATE", 6)
    with pytest.raises(OSError, match="storage"):
        ours.forget("o/2")
    board.fails = ""
    ours.renew()
    assert told(board) == {"o/1": ("a INT, s STRING, t DATE", 6)}
    assert file(board).beat == 4


def test_many_threads_announce_and_nothing_is_lost(board: Fickle) -> None:
    ours = announcer(board)
    ids = [f"o/{number}" for number in range(60)]

    def work(segment_id: str) -> None:
        ours.announce(segment_id, A, 1)
        ours.announce(segment_id, "t DATE", 2)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, ids))
    assert told(board) == dict.fromkeys(ids, ("a INT, s STRING, t DATE", 2)) | {}
    assert file(board).beat == 120


# --- whose name it is ---


def test_a_second_session_does_not_take_the_place_of_a_living_one(board: Fickle) -> None:
    first = announcer(board, new_id=lambda: "first")
    first.announce("o/1", A, 5)
    second = announcer(board)
    board.clock.advance(119)
    with pytest.raises(InvalidInput) as refused:
        second.announce("o/2", A)
    for said in ("'w'", "session first", NOON.isoformat(), "120 s", "takeover=True"):
        assert said in refused.value.message
    assert told(board) == {"o/1": (A.ddl, 5)}
    assert dict(second.announced) == {}


def test_a_session_that_has_expired_is_succeeded(board: Fickle) -> None:
    announcer(board).announce("o/1", A, 5)
    board.clock.advance(120)
    announcer(board).announce("o/2", A, 6)
    assert told(board) == {"o/2": (A.ddl, 6)}


def test_a_living_session_is_succeeded_by_who_says_takeover_and_then_holds_back(
    board: Fickle,
) -> None:
    first = announcer(board, new_id=lambda: "first")
    first.announce("o/1", A, 5)
    second = announcer(board, new_id=lambda: "second", takeover=True)
    second.announce("o/2", A, 6)
    for call in (first.renew, lambda: first.announce("o/3", A)):
        with pytest.raises(InvalidInput, match="session second"):
            call()
    first.close()
    assert told(board) == {"o/2": (A.ddl, 6)}
    second.renew()
    assert file(board).session == "second"


def test_takeover_is_for_the_first_write_and_lasts_until_it_succeeds(board: Fickle) -> None:
    announcer(board).announce("o/1", A, 5)
    second = announcer(board, new_id=lambda: "second", takeover=True)
    board.fails = "before"
    with pytest.raises(OSError, match="storage"):
        second.announce("o/2", A, 6)
    board.fails = ""
    second.renew()
    assert told(board) == {"o/2": (A.ddl, 6)}
    announcer(board, new_id=lambda: "third", takeover=True).renew()
    with pytest.raises(InvalidInput, match="session third"):
        second.renew()


def test_a_file_that_is_no_announcement_is_not_replaced_unless_told(board: Fickle) -> None:
    board.write("w", b"somebody's notes")
    with pytest.raises(InvalidInput, match=r"writer 'w' on .* cannot be read.*takeover=True"):
        announcer(board).announce("o/1", A)
    assert board.read("w") == b"somebody's notes"
    announcer(board, takeover=True).announce("o/1", A)
    assert told(board) == {"o/1": (A.ddl, None)}


def test_a_file_that_was_damaged_or_lost_later_is_written_anew(board: Fickle) -> None:
    ours = announcer(board)
    ours.announce("o/1", A, 5)
    board.write("w", (board.read("w") or b"")[:40])
    ours.renew()
    assert told(board) == {"o/1": (A.ddl, 5)}
    board.remove("w")
    ours.renew()
    assert told(board) == {"o/1": (A.ddl, 5)}


# --- from the first to the last beat ---


def test_closing_takes_the_file_away_and_ends_the_announcer(board: Fickle) -> None:
    with announcer(board) as ours, announcer(board, "other") as other:
        ours.announce("o/1", A)
        other.announce("o/2", A)
        ours.close()
        assert list(board.listing()) == ["other"]
        assert dict(ours.announced) == {}
        for call in (
            ours.renew,
            ours.start,
            lambda: ours.announce("o/1", A),
            lambda: ours.forget([]),
        ):
            with pytest.raises(InvalidInput, match="is closed"):
                call()
    assert board.listing() == {}


def test_a_stream_announcer_that_is_closed_publishes_nothing(board: Fickle) -> None:
    published: list[Sequence[Segment]] = []
    ours = streaming(board, published)
    ours.close()
    with pytest.raises(InvalidInput, match="is closed"):
        ours.publish([Segment("o/1", A, 1)])
    assert published == []


def test_publishing_what_was_never_announced_leaves_no_announcement(board: Fickle) -> None:
    published: list[Sequence[Segment]] = []
    ours = streaming(board, published)
    given = [Segment("o/1", A, 1), Segment("o/2", A, 1)]
    assert ours.publish(given) is RESULT
    assert (published, board.listing()) == ([given], {})
    ours.announce("o/2", A)
    assert ours.publish(given) is RESULT
    assert told(board) == {}


RESULT: Any = object()


def streaming(board: Fickle, published: list[Sequence[Segment]]) -> StreamAnnouncer:
    def publish(segments: Sequence[Segment]) -> PublishResult:
        published.append(segments)
        return cast(PublishResult, RESULT)

    return StreamAnnouncer(board, "w", ttl=timedelta(days=1), takeover=False, publish=publish)


def test_who_never_wrote_takes_nothing_away(board: Fickle) -> None:
    announcer(board).announce("o/1", A)
    announcer(board).close()
    assert told(board) == {"o/1": (A.ddl, None)}
    board.write("w", b"somebody's notes")
    announcer(board).close()
    assert board.read("w") == b"somebody's notes"


def test_closing_again_after_an_error_takes_the_file_away(board: Fickle) -> None:
    ours = announcer(board)
    ours.announce("o/1", A)
    board.unreadable.add("w")
    with pytest.raises(PermissionError):
        ours.close()
    board.unreadable.clear()
    ours.close()
    assert board.listing() == {}
    # Somebody else may have the name now.
    announcer(board).announce("o/2", A)
    ours.close()
    assert told(board) == {"o/2": (A.ddl, None)}
    board.write("w", b"somebody's notes")
    ours.close()
    assert board.read("w") == b"somebody's notes"


def test_the_background_renews_until_it_is_closed(board: Fickle) -> None:
    ours = announcer(board, ttl=timedelta(seconds=0.06)).start()
    assert ours.start() is ours
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("strata-announce") == 1
    ours.announce("o/1", A)
    until(lambda: file(board).beat >= 4)
    assert told(board) == {"o/1": (A.ddl, None)}
    ours.close()
    assert board.listing() == {}
    assert "strata-announce" not in [thread.name for thread in threading.enumerate()]


def test_a_renewal_that_fails_is_told_and_tried_again(
    board: Fickle, caplog: pytest.LogCaptureFixture
) -> None:
    with announcer(board, ttl=timedelta(seconds=0.06)) as ours:
        ours.announce("o/1", A)
        board.fails = "before"
        with caplog.at_level(logging.WARNING):
            ours.start()
            until(lambda: "announcements of w failed and will be tried again" in caplog.text)
        assert "the storage is away" in caplog.text
        assert isinstance(ours.last_error, OSError)
        assert file(board).beat == 1
        board.fails = ""
        until(lambda: ours.last_error is None)
        assert file(board).beat > 1
