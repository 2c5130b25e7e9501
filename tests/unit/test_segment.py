"""Segments: what is refused, and what their digest says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidInput, InvalidSegment
from catalog.model import (
    LARGEST_COUNT,
    LONGEST_DATASOURCE,
    LONGEST_ID,
    LONGEST_LOCATION,
    Segment,
    check_actor,
    micros,
)
from tests.unit.builders import segment

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


class Nowhere(tzinfo):
    """A time zone without an offset: Python takes such a datetime for a naive one."""

    def utcoffset(self, moment: datetime | None) -> None:
        return None

    def dst(self, moment: datetime | None) -> None:
        return None

    def __repr__(self) -> str:
        return "Nowhere()"


BAD = [
    ({"id": None}, ["must be a string", "None"]),
    ({"id": 7}, ["must be a string", "7"]),
    ({"id": b"orders/1"}, ["must be a string", "b'orders/1'"]),
    ({"id": ""}, ["''", "datasource/name", "such as orders/2024-01-01"]),
    ({"id": "orders"}, ["'orders'", "both parts filled"]),
    ({"id": "/"}, ["'/'", "both parts filled"]),
    ({"id": "/1"}, ["'/1'", "both parts filled"]),
    ({"id": "orders/"}, ["'orders/'", "both parts filled"]),
    ({"id": "o/" + "x" * (LONGEST_ID - 1)}, [f"has {LONGEST_ID + 1} characters", "at most 1024"]),
    ({"id": "o" * (LONGEST_DATASOURCE + 1) + "/1"}, ["(datasource 256)", "(255) are kept"]),
    ({"id": "orders/\n"}, ["'orders/\\n'", "control characters; remove them"]),
    ({"id": "ord\x00ers/1"}, ["'ord\\x00ers/1'", "control characters; remove them"]),
    ({"id": "orders/\x7f"}, ["control characters; remove them"]),
    ({"id": "orders/\x85"}, ["'orders/\\x85'", "control characters; remove them"]),
    ({"id": "orders/\ud800"}, ["'orders/\\ud800'", "lone surrogate", "remove it"]),
    ({"rows": None}, ["num_rows of segment orders/1", "whole number", "None"]),
    ({"rows": -1}, ["from 0 to 2^63-1", "not -1"]),
    ({"rows": True}, ["whole number", "not True"]),
    ({"rows": 1.0}, ["whole number", "not 1.0"]),
    ({"rows": "1"}, ["whole number", "not '1'"]),
    ({"rows": LARGEST_COUNT + 1}, ["from 0 to 2^63-1", "not 9223372036854775808"]),
    ({"ddl": None}, ["orders/1 comes without a schema", "must have a location", "a backfill"]),
    ({"ddl": None, "location": "/a", "inferred": True}, ["comes without a schema"]),
    ({"ddl": None, "location": "/a", "rows": -1}, ["num_rows", "not -1"]),
    ({"inferred": True, "rows": -1}, ["num_rows", "not -1"]),
    ({"size_bytes": -1}, ["size_bytes of segment orders/1", "not -1"]),
    ({"size_bytes": False}, ["size_bytes", "not False"]),
    ({"size_bytes": 2.5}, ["size_bytes", "not 2.5"]),
    ({"size_bytes": LARGEST_COUNT + 1}, ["size_bytes", "from 0 to 2^63-1"]),
    ({"location": ""}, ["location of segment orders/1", "not ''", "leave it out"]),
    ({"location": 5}, ["must be a string", "not 5"]),
    ({"location": "x" * (LONGEST_LOCATION + 1)}, ["1 to 4096 characters", "not 'xxx"]),
    ({"location": "/a\tb"}, ["location '/a\\tb'", "control characters; remove them"]),
    ({"location": "/a\x9f"}, ["location '/a\\x9f'", "control characters; remove them"]),
    ({"location": "/\udfff"}, ["location '/\\udfff'", "lone surrogate"]),
    ({"starts_at": NOON.replace(tzinfo=None)}, ["starts_at", "with a time zone", "2024, 1, 1"]),
    ({"ends_at": NOON.replace(tzinfo=None)}, ["ends_at", "with a time zone"]),
    ({"ends_at": NOON.date()}, ["ends_at", "with a time zone", "date(2024, 1, 1)"]),
    ({"starts_at": "2024-01-01"}, ["starts_at", "not '2024-01-01'"]),
    ({"starts_at": NOON.replace(tzinfo=Nowhere())}, ["starts_at", "with a time zone"]),
    (
        {"starts_at": NOON, "ends_at": NOON},
        ["starts at 2024-01-01T12:00:00+00:00", "not before its end 2024-01-01T12:00:00+00:00"],
    ),
    (
        {"starts_at": NOON, "ends_at": NOON.astimezone(timezone(timedelta(hours=9)))},
        ["not before its end 2024-01-01T21:00:00+09:00"],
    ),
    ({"starts_at": NOON, "ends_at": NOON - timedelta(microseconds=1)}, ["not before its end"]),
    (
        # 01:15 to 00:30 in UTC, though the clock on the wall says 02:15 to 02:30.
        {
            "starts_at": datetime(2024, 10, 27, 2, 15, fold=1, tzinfo=BERLIN),
            "ends_at": datetime(2024, 10, 27, 2, 30, fold=0, tzinfo=BERLIN),
        },
        ["starts at 2024-10-27T02:15:00+01:00", "not before its end 2024-10-27T02:30:00+02:00"],
    ),
]


@pytest.mark.parametrize(("changes", "fragments"), BAD)
def test_a_bad_segment_is_refused_with_the_value_and_the_way_out(
    changes: dict[str, Any], fragments: list[str]
) -> None:
    with pytest.raises(InvalidSegment) as caught:
        segment(**changes)
    assert caught.value.condition == "INVALID_SEGMENT"
    assert "segment_id" in caught.value.values
    for fragment in fragments:
        assert fragment in caught.value.message


def test_a_bad_schema_of_a_segment_is_refused_as_a_schema() -> None:
    with pytest.raises(InvalidInput) as caught:
        segment(ddl="a INTT")
    assert caught.value.condition == "INVALID_SCHEMA"


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "o" * LONGEST_DATASOURCE + "/" + "x" * (LONGEST_ID - LONGEST_DATASOURCE - 1)},
        {"id": "a//"},
        {"id": "größe/😀"},
        {"id": "a b/'`\""},
        {"rows": 0},
        {"rows": LARGEST_COUNT},
        {"rows": None, "inferred": True},
        {"ddl": None, "rows": None, "location": "/a"},
        {"ddl": None, "rows": 5, "location": "/a"},
        {"size_bytes": 0},
        {"location": "x" * LONGEST_LOCATION},
        {"starts_at": NOON},
        {"ends_at": NOON},
        {"starts_at": NOON, "ends_at": NOON + timedelta(microseconds=1)},
        # 00:30 to 01:15 in UTC, though the clock on the wall goes back.
        {
            "starts_at": datetime(2024, 10, 27, 2, 30, fold=0, tzinfo=BERLIN),
            "ends_at": datetime(2024, 10, 27, 2, 15, fold=1, tzinfo=BERLIN),
        },
    ],
)
def test_a_segment_at_the_edge_of_the_rules_is_kept_as_given(changes: dict[str, Any]) -> None:
    made = segment(**changes)
    fields = {"rows": "num_rows", "ddl": "schema"}
    assert {name: getattr(made, fields.get(name, name)) for name in changes} == changes


def test_the_datasource_is_the_part_before_the_first_slash() -> None:
    made = segment("orders/2024/01")
    assert (made.datasource, made.name) == ("orders", "2024/01")


@pytest.mark.parametrize("text", [None, 5, "x" * 1001, "ann\n", "\x9b"])
def test_a_bad_actor_is_refused_by_the_name_of_the_argument(text: Any) -> None:
    with pytest.raises(InvalidInput, match="reason must be a string of at most 1000") as caught:
        check_actor("reason", text)
    assert caught.value.values == {"reason": text}


# --- micros --------------------------------------------------------------------------------------


@given(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))
def test_micros_of_a_moment_are_exact_over_all_years(count: int) -> None:
    assert micros(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=count)) == count


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.timezones()))
def test_micros_do_not_depend_on_the_time_zone(moment: datetime) -> None:
    assert micros(moment) == micros(moment.astimezone(UTC))


# --- digest --------------------------------------------------------------------------------------

OTHERS = [
    {"ddl": "a BIGINT"},
    {"ddl": "a INT NOT NULL"},
    {"ddl": None},
    {"inferred": True},
    {"inferred": True, "rows": None},
    {"rows": 2},
    {"size_bytes": 11},
    {"size_bytes": None},
    {"location": "/b"},
    {"location": None},
    {"location": "-"},
    {"starts_at": NOON + timedelta(microseconds=1)},
    {"starts_at": None},
    {"ends_at": NOON + timedelta(days=1, microseconds=1)},
    {"ends_at": None},
]
FINGERPRINT = "2894bbaa6e69557785652dde4e7e9d46"
WHOLE: dict[str, Any] = {
    "size_bytes": 10,
    "location": "/a",
    "starts_at": NOON,
    "ends_at": NOON + timedelta(days=1),
}


@pytest.mark.parametrize("changes", OTHERS)
def test_the_digest_depends_on_each_field(changes: dict[str, Any]) -> None:
    assert segment(**WHOLE).digest != segment(**WHOLE | changes).digest


def test_the_digest_is_that_of_a_text_which_sql_can_build_too() -> None:
    text = f"{FINGERPRINT}|3|10|1704110400000000|1704196800000000|=/a"
    assert segment("orders/1", "a INT", 3, **WHOLE).digest == sha256(text.encode()).hexdigest()
    text = f"{FINGERPRINT}|3|-|-|-|-"
    assert segment("orders/1", "a INT", 3).digest == sha256(text.encode()).hexdigest()
    text = "-|-|-|-|-|=/a"
    assert Segment("orders/1", location="/a").digest == sha256(text.encode()).hexdigest()
    text = f"~{FINGERPRINT}|-|-|-|-|-"
    inferred = Segment("orders/1", "a INT", inferred=True)
    assert inferred.digest == sha256(text.encode()).hexdigest()


def test_the_digest_leaves_out_the_id_and_the_spelling() -> None:
    there = WHOLE | {"starts_at": NOON.astimezone(timezone(timedelta(hours=5)))}
    assert (
        segment("orders/1", "a INT, b STRING", **WHOLE).digest
        == segment("other/2", "b string, a integer COMMENT 'x'", **there).digest
    )


def content(made: Segment) -> tuple[Any, ...]:
    starts, ends = made.starts_at, made.ends_at
    return (
        made.fingerprint,
        made.inferred,
        made.num_rows,
        made.size_bytes,
        made.location,
        starts and micros(starts),
        ends and micros(ends),
    )


# So few values, and such that run into each other when joined, that ambiguity would show.
small = st.integers(0, 12)
near_epoch = st.integers(-12, 12).map(
    lambda count: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=count)
)
intervals = st.tuples(st.none() | near_epoch, st.none() | near_epoch).filter(
    lambda pair: None in pair or pair[0] < pair[1]
)
segments = st.builds(
    lambda ddl, rows, size, location, interval: segment(
        ddl=ddl if ddl != "b INT" or location is None else None,
        rows=rows,
        inferred=ddl == "c INT",
        size_bytes=size,
        location=location,
        starts_at=interval[0],
        ends_at=interval[1],
    ),
    st.sampled_from(["a INT", "b INT", "c INT"]),
    small,
    st.none() | small,
    st.none() | st.text("-|=1", min_size=1, max_size=4),
    intervals,
)


@given(segments, segments)
def test_two_segments_have_one_digest_exactly_if_they_have_one_content(
    one: Segment, other: Segment
) -> None:
    assert (one.digest == other.digest) == (content(one) == content(other))
