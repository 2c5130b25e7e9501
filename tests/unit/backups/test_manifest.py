"""The manifest of a backup, digests in words, and how kinds go back."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.backups.difference import BEHAVIOURS, Behaviour, check_known, kinds_that
from catalog.backups.manifest import FORMAT, ContentDigest, Manifest, _digest, differences, hash_sql
from catalog.backups.rollback import RollbackReport
from catalog.delta.layout import row_bucket_sql
from catalog.errors import BrokenBackup, CommitFailed
from catalog.model import Kind

WHEN = datetime(2024, 1, 31, 12, tzinfo=UTC)
MADE = Manifest(
    layout=2,
    segment_buckets=16,
    table_id="7c1e",
    version=12,
    version_at=WHEN,
    made_at=WHEN,
    actor="ann",
    reason='naïve "quotes"\n',
    columns=("kind", "key"),
    entries={"segment": ContentDigest(3, "00ff"), "schema": ContentDigest(1, "01")},
    runs=ContentDigest(2, "aa"),
    properties={"delta.logRetentionDuration": "interval 30 days"},
    attempt="0a1b",
)
_texts = st.text(max_size=20)
_contents = st.builds(ContentDigest, st.integers(0, 1 << 40), _texts)


@given(
    st.builds(
        replace,
        st.just(MADE),
        actor=_texts,
        reason=_texts,
        version=st.integers(0),
        version_at=st.none() | st.just(WHEN),
        entries=st.dictionaries(_texts, _contents, max_size=4),
        runs=st.none() | _contents,
    )
)
def test_a_manifest_is_read_as_it_was_written(manifest: Manifest) -> None:
    text = manifest.to_json()
    assert "\n" not in text
    assert Manifest.from_json(text, "/b") == manifest
    assert Manifest.from_json(text, "/b").identity == manifest.identity


def test_other_backups_have_other_identities() -> None:
    others = [
        MADE,
        replace(MADE, version=13),
        replace(MADE, table_id="x"),
        replace(MADE, runs=None),
    ]
    assert len({each.identity for each in others}) == len(others)
    assert MADE.rows == 4


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(MADE.to_json()), **values})


def signed(**values: Any) -> str:
    """A manifest that was written as it is, by somebody who knows how."""
    document = {**json.loads(MADE.to_json()), **values}
    document.pop("digest")
    return json.dumps({**document, "digest": _digest(document)})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not a JSON document"),
        (MADE.to_json()[:-20], "not a JSON document"),
        ("[]", "not that of a backup"),
        ("{}", "not that of a backup"),
        (changed(strata_backup=FORMAT + 1), f"has format {FORMAT + 1}"),
        (changed(version=13), "was changed after it was written"),
        (changed(digest=None), "was changed after it was written"),
        (signed(entries=7), "does not say what it should"),
        (signed(made_at="soon"), "does not say what it should"),
        (signed(more=1), "does not say what it should"),
        (signed(entries={"segment": {"rows": 1}}), "does not say what it should"),
        (signed(attempt="../elsewhere"), "a directory that cannot be"),
        (signed(attempt=7), "does not say what it should"),
        (signed(properties={"delta.x": "'); DROP"}), "properties that cannot be"),
    ],
)
def test_a_manifest_that_is_not_right_is_refused(text: str, told: str) -> None:
    with pytest.raises(BrokenBackup, match=told) as caught:
        Manifest.from_json(text, "/b")
    assert caught.value.values["path"] == "/b"


def test_a_manifest_of_before_there_were_attempts_is_read() -> None:
    document = json.loads(MADE.to_json())
    del document["digest"], document["attempt"]
    text = json.dumps({**document, "digest": _digest(document)})
    assert Manifest.from_json(text, "/b") == replace(MADE, attempt="")


def test_accounts_that_differ_are_told_kind_by_kind() -> None:
    wanted = {
        "segment": ContentDigest(3, "a"),
        "schema": ContentDigest(1, "b"),
        "object": ContentDigest(1, "c"),
    }
    found = {
        "segment": ContentDigest(2, "x"),
        "schema": ContentDigest(1, "z"),
        "staged": ContentDigest(4, "s"),
    }
    assert differences(wanted, wanted) == []
    assert differences(wanted, found) == [
        "0 rows of kind object instead of 1",
        "the rows of kind schema have other contents",
        "2 rows of kind segment instead of 3",
        "4 rows of kind staged instead of 0",
    ]


def test_the_hash_of_a_row_tells_where_its_nulls_are() -> None:
    assert hash_sql(["a", "b"]) == "xxhash64(a, b, a IS NULL, b IS NULL)"


# --- kinds ----------------------------------------------------------------------------------------


def test_of_every_kind_it_is_said_how_it_goes_back() -> None:
    assert {kind.value for kind in Kind} <= BEHAVIOURS.keys()
    kept = {kind for kind, behaviour in BEHAVIOURS.items() if behaviour is Behaviour.KEPT}
    assert kept == {"retired", "epoch", "operation", "part", "staged", "guard"}
    assert BEHAVIOURS["version"] is Behaviour.GROW_ONLY
    assert kinds_that(Behaviour.RESTORED) == "'segment', 'setting'"  # objects go by themselves


def test_a_kind_that_nobody_knows_is_refused() -> None:
    check_known(["segment", "object"])
    with pytest.raises(CommitFailed, match="kind another, later go back") as caught:
        check_known(["segment", "later", "another"])
    assert caught.value.values == {"kinds": ["another", "later"]}


def test_only_rows_that_follow_their_datasource_change_their_bucket() -> None:
    sql = row_bucket_sql(7)
    assert "pmod(xxhash64(substring_index(key, '/', 1)), 7)" in sql
    assert sql.endswith("ELSE bucket END AS INT)")


def test_commits_that_came_in_between_are_counted() -> None:
    report = RollbackReport(9, "c", "version 3", 6)
    assert (report.beside, report.rows) == (2, 0)
    assert replace(report, version=7).beside == 0
    assert replace(report, commit_id="", version=6).beside == 0
