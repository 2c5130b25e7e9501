"""Stored settings: read in one small query, changed in one commit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.commit.changes import Change
from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.delta.statements import Statement
from catalog.delta.store import Store
from catalog.model import Kind, from_micros
from catalog.settings.known import FILE, known_setting
from catalog.settings.resolving import Stored

SETTING_BUCKET = 0

# What becomes of settings, given those that are stored: payloads by name, none to remove one.
Decide = Callable[[Mapping[str, Stored]], Mapping[str, str | None]]


@dataclass(frozen=True)
class SettingResult:
    """What a change of settings did; `changed` names those that it stored or removed."""

    version: int
    commit_id: str
    changed: tuple[str, ...]
    retries: int = 0


def setting(values: Mapping[str, Any]) -> Decide:
    """Stores checked values, whatever is there."""
    return lambda stored: _payloads(values)


def unsetting(name: str) -> Decide:
    """Removes one."""
    return lambda stored: {name: None}


def adopting(values: Mapping[str, Any], file: str) -> Decide:
    """Stores a file's values where nothing is, and from which file; nothing the second time."""

    def decide(stored: Mapping[str, Stored]) -> Mapping[str, str | None]:
        if FILE in stored:
            return {}
        new = {name: value for name, value in values.items() if name not in stored}
        return _payloads({**new, FILE: file})

    return decide


def _payloads(values: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: known_setting(name).payload(value) for name, value in values.items()}


def stored_settings(store: Store, version: int | None = None) -> dict[str, Stored]:
    """All stored settings by name, at a version or, in one query, as they are now."""
    relation = store.relation if version is None else store.pinned(version)
    rows = store.session.sql(
        "SELECT key, payload, commit_id, unix_micros(changed_at) AS micros, changed_by "
        f"FROM {relation} WHERE kind = '{Kind.SETTING}' AND bucket = {SETTING_BUCKET}"
    ).collect()
    return {
        row["key"]: Stored(
            row["key"],
            row["payload"],
            row["commit_id"],
            from_micros(row["micros"]),
            row["changed_by"],
        )
        for row in rows
    }


class SettingKeeper:
    """Changes settings; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def change(self, decide: Decide, verb: str, call: Call) -> SettingResult:
        """Commits what `decide` makes of the stored settings; nothing if they are so already."""
        planned: list[tuple[str, ...]] = []

        def plan(rows: RowSet) -> Statement:
            version = self._store.head().version
            stored = stored_settings(self._store, version)
            _write(rows, stored, decide(stored))
            if not rows.rows:
                # An earlier try may have done it, though its answer was lost.
                found = self._store.find_commit(rows.commit_id) if planned else None
                raise Settled(
                    Committed(version, "", 0)
                    if found is None
                    else Committed(found, rows.commit_id, 1)
                )
            planned[:] = [tuple(sorted(row["key"] for row in rows.rows))]
            return rows.statement(verb, self._store)

        try:
            done = self._committer.commit(verb, call, plan)
        except Settled as settled:
            done = settled.answer
        changed = planned[0] if done.commit_id else ()
        return SettingResult(done.version, done.commit_id, changed, done.retries)


def _write(rows: RowSet, stored: Mapping[str, Stored], wanted: Mapping[str, str | None]) -> None:
    for name, payload in wanted.items():
        row = stored.get(name)
        seen = None if row is None else row.commit_id
        if payload is None:
            if row is not None:
                rows.add(Kind.SETTING, SETTING_BUCKET, name, Change.DELETE, seen=seen)
        elif row is None or row.payload != payload:
            rows.add(
                Kind.SETTING,
                SETTING_BUCKET,
                name,
                Change.INSERT if row is None else Change.UPDATE,
                seen=seen,
                payload=payload,
                digest=hashlib.sha256(payload.encode()).hexdigest(),
            )
