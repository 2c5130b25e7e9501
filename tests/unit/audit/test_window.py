"""What people mean by since and until."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catalog.audit.model import GAP, Commit, HistoryQuery, Window, window
from catalog.errors import InvalidInput

NOW = datetime(2024, 1, 10, tzinfo=UTC)
DAY = timedelta(days=1)


def test_both_ends_belong_to_a_window_of_versions_or_moments() -> None:
    versions = window(3, 5, NOW)
    assert [v for v in range(8) if versions.has(v, NOW)] == [3, 4, 5]
    assert versions.sql() == "version >= 3 AND version <= 5"
    moments = window(2 * DAY, NOW - DAY, NOW)
    assert moments == Window(begins=NOW - 2 * DAY, ends=NOW - DAY)
    asked = [NOW - 3 * DAY, NOW - 2 * DAY, NOW - DAY, NOW]
    assert [moments.has(1, each) for each in asked] == [False, True, True, False]
    assert window(None, None, NOW).sql() == "true"
    assert moments.sql().count("timestamp_micros(") == 2


@pytest.mark.parametrize("bad", [-1, True, "7d", 1.5, datetime(2024, 1, 1)])
def test_an_end_is_a_version_a_moment_or_a_time_ago(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="since"):
        window(bad, None, NOW)
    with pytest.raises(InvalidInput, match="until"):
        window(None, bad, NOW)


def test_a_question_wants_commits_of_an_actor_and_every_gap() -> None:
    question = HistoryQuery(window(2, None, NOW), 10, actor="ann")
    ann, bob = ((name, "", None, None) for name in ("ann", "bob"))
    both = Commit(3, NOW, "publish", (bob, ann))
    assert question.wants(both)
    assert not question.wants(Commit(3, NOW, "publish", (bob,)))
    assert not question.wants(Commit(3, NOW, "vacuum start"))
    assert not question.wants(Commit(1, NOW, "publish", (ann,)))
    assert question.wants(Commit(3, NOW, GAP, first_version=0))


def test_values_reach_a_condition_escaped() -> None:
    hostile = "x' OR '1'='1"
    question = HistoryQuery(Window(), 1, key=hostile, kind="segment", actor=hostile)
    assert hostile not in question.condition()
    assert question.of_rows
    assert not HistoryQuery(Window(), 1, actor="ann").of_rows
