"""Stored settings: read in one query, changed in one commit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.rows import RowSet
from catalog.context import Call
from catalog.delta.changes import RowChange
from catalog.delta.statements import Statement
from catalog.delta.store import Store
from catalog.model import Kind, from_micros
from catalog.settings.model import FILE, StoredSetting, known_setting

SETTING_BUCKET = 0

# From the stored settings, the payloads to write by name; None removes one.
Decide = Callable[[Mapping[str, StoredSetting]], Mapping[str, str | None]]


@dataclass(frozen=True)
class SettingResult:
    """The commit of a change; `changed` names the settings that it stored or removed."""

    version: int
    commit_id: str
    changed: tuple[str, ...]
    retries: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "commit_id": self.commit_id or None,
            "changed": len(self.changed),
            "retries": self.retries,
        }

    def figures(self) -> dict[str, float]:
        return {"changed": len(self.changed), "conflicts_retried": self.retries}


def setting(values: Mapping[str, Any]) -> Decide:
    """Stores checked values."""
    return lambda stored: _payloads(values)


def unsetting(name: str) -> Decide:
    """Removes a setting."""
    return lambda stored: {name: None}


def adopting(values: Mapping[str, Any], file: str) -> Decide:
    """Stores a file's values where none is stored, and the file; a second file changes nothing."""

    def decide(stored: Mapping[str, StoredSetting]) -> Mapping[str, str | None]:
        if FILE in stored:
            return {}
        new = {name: value for name, value in values.items() if name not in stored}
        return _payloads({**new, FILE: file})

    return decide


def _payloads(values: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: known_setting(name).payload(value) for name, value in values.items()}


def stored_settings(store: Store, version: int | None = None) -> dict[str, StoredSetting]:
    """All stored settings by name, at a version or the newest."""
    relation = store.relation if version is None else store.pinned(version)
    rows = store.session.sql(
        "SELECT key, payload, commit_id, unix_micros(changed_at) AS micros, changed_by "
        f"FROM {relation} WHERE kind = '{Kind.SETTING}' AND bucket = {SETTING_BUCKET}"
    ).collect()
    return {
        row["key"]: StoredSetting(
            *(row["key"], row["payload"], row["commit_id"]),
            *(from_micros(row["micros"]), row["changed_by"]),
        )
        for row in rows
    }


class SettingKeeper:
    """Changes settings; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def change(self, decide: Decide, verb: str, call: Call) -> SettingResult:
        """Commits what `decide` makes of the stored settings; no commit if nothing changes."""
        planned: list[tuple[str, ...]] = []

        def plan(rows: RowSet) -> Statement:
            version = self._store.head().version
            stored = stored_settings(self._store, version)
            _write(rows, stored, decide(stored))
            if not rows.rows:
                # An earlier try may have committed although its answer was lost.
                found = self._store.find_commit(rows.commit_id) if planned else None
                done = Committed(version, "", 0)
                raise Settled(done if found is None else Committed(found, rows.commit_id, 1))
            planned[:] = [tuple(sorted(row["key"] for row in rows.rows))]
            return rows.statement(verb, self._store)

        try:
            done = self._committer.commit(verb, call, plan)
        except Settled as settled:
            done = settled.answer
        changed = planned[0] if done.commit_id else ()
        return SettingResult(done.version, done.commit_id, changed, done.retries)


def _write(
    rows: RowSet, stored: Mapping[str, StoredSetting], wanted: Mapping[str, str | None]
) -> None:
    for name, payload in wanted.items():
        row = stored.get(name)
        seen = None if row is None else row.commit_id
        if payload is None:
            if row is not None:
                rows.add(Kind.SETTING, SETTING_BUCKET, name, RowChange.DELETE, seen=seen)
        elif row is None or row.payload != payload:
            rows.add(
                Kind.SETTING,
                SETTING_BUCKET,
                name,
                RowChange.INSERT if row is None else RowChange.UPDATE,
                seen=seen,
                payload=payload,
                digest=hashlib.sha256(payload.encode()).hexdigest(),
            )
