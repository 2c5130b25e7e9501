"""Commits out of Delta's history: every caller of each, whatever the metadata holds."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from catalog.audit.model import COMMIT_DDL, Commit, columns_of, commit_of, lost_changes
from catalog.delta.writer import user_metadata
from catalog.model import Caller

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def row(metadata: Any, operation: str = "MERGE") -> dict[str, Any]:
    micros = int(NOON.timestamp() * 1_000_000)
    return {"version": 3, "micros": micros, "operation": operation, "userMetadata": metadata}


def test_a_commit_tells_of_every_caller_with_run_and_session_where_there_is_one() -> None:
    callers = [
        Caller("ann", "daily", "run-1", "s-1").counting(segments=2),
        Caller("bob", "", "run-1"),
        Caller("cem", "fix"),
    ]
    found = commit_of(row(user_metadata("c1", "publish", callers)))
    assert found == Commit(
        3,
        NOON,
        "publish",
        (
            ("ann", "daily", "run-1", "s-1"),
            ("bob", "", "run-1", None),
            ("cem", "fix", None, None),
        ),
        "c1",
    )
    assert columns_of(found.callers)[0] == ["ann", "bob", "cem"]
    assert found.first_version == 3
    assert len(found.row()) == COMMIT_DDL.count(", ") - 3 + 1  # the struct has three of its own
    assert columns_of(found.callers)[:4] == (
        ["ann", "bob", "cem"],
        ["daily", "", "fix"],
        ["run-1"],
        ["s-1"],
    )


@pytest.mark.parametrize(
    "metadata",
    [None, "", "{", "[]", "7", '{"verb": "publish", "callers": [{"actor": "ann"}]}'],
)
def test_metadata_of_others_says_nothing(metadata: str | None) -> None:
    found = commit_of(row(metadata, "VACUUM START"))
    assert (found.verb, found.callers, found.commit_id) == ("vacuum start", None, None)
    assert columns_of(found.callers) == (None,) * 5


def test_only_commits_that_change_rows_can_lose_their_changes() -> None:
    kept = [commit_of(row(None, name)) for name in ("OPTIMIZE", "VACUUM END", "CREATE TABLE")]
    assert lost_changes(kept) is None
    assert lost_changes([*kept, commit_of({**row(None), "version": 7})]) == (7, 7)
    changed = [commit_of({**row(None, "WRITE"), "version": version}) for version in (9, 4)]
    assert lost_changes([*changed, *kept]) == (4, 9)


def test_callers_that_are_no_callers_are_passed_by() -> None:
    document = {"strata": 1, "verb": 7, "commit": 8, "callers": [None, {"actor": 9}]}
    found = commit_of(row(json.dumps(document)))
    assert (found.verb, found.commit_id) == ("merge", None)
    assert found.callers == (("9", None, None, None),)
