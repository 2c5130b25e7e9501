"""The rows of named schemas: read at a version, and written by the `Registrar`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.rows import RowSet
from catalog.context import Call
from catalog.delta.changes import RowChange
from catalog.delta.statements import Statement
from catalog.delta.store import Store
from catalog.errors import UnknownName
from catalog.evolution.compatibility import Mode
from catalog.model import Kind, from_micros
from catalog.names.model import (
    ModeSet,
    NamedSchema,
    NameHead,
    Registered,
    Version,
    name_bucket,
    parts_of,
    version_key,
)
from catalog.names.plan import NameHistory, Planned, Registration, plan, unknown_version
from catalog.schema import Schema
from catalog.schema.names import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StoredVersion:
    """A version with the commit that wrote its row."""

    version: Version
    commit_id: str
    registered_by: str | None
    registered_at: datetime


@dataclass(frozen=True)
class StoredName:
    """A name with its versions by number, and the commit that changed its row last."""

    name: str
    head: NameHead
    commit_id: str
    versions: Mapping[int, StoredVersion]

    def version(self, number: int | None) -> StoredVersion:
        """A version, or the current one."""
        found = self.versions.get(self.head.current if number is None else number)
        if found is None:
            raise unknown_version(self.name, number or 0, self.head.current)
        return found

    def of_commit(self, commit_id: str) -> Version | None:
        """The version that a commit wrote; versions never change, so it stays."""
        return next((v.version for v in self.versions.values() if v.commit_id == commit_id), None)

    def history(self, store: Store, version: int) -> NameHistory:
        """The name with the schemas of all its versions, at a version of the table."""
        versions = tuple(each.version for each in self.versions.values())
        schemas = store.schemas_of({each.fingerprint for each in versions}, version)
        return NameHistory(self.head, versions, schemas)

    def named(self, number: int | None, schema: Schema) -> NamedSchema:
        """One of the versions with its schema, as callers see it."""
        stored, head = self.version(number), self.head
        version = stored.version
        return NamedSchema(
            name=self.name,
            version=version.number,
            schema=schema,
            mode=head.mode,
            current=head.current,
            last_breaking=head.last_breaking,
            dropped=head.dropped,
            compatible=version.compatible,
            reasons=version.reasons,
            forced=version.forced,
            merged=version.merged,
            base=version.base,
            note=version.note,
            registered_by=stored.registered_by,
            registered_at=stored.registered_at,
            commit_id=stored.commit_id,
        )


def find_name(store: Store, name: str, version: int) -> StoredName | None:
    """A name at a version of the table; none if there is no such name."""
    rows = store.session.sql(
        "SELECT kind, key, commit_id, fingerprint, payload, changed_by, "
        f"unix_micros(published_at) AS published FROM {store.pinned(version)} "
        f"WHERE kind IN ('named', 'version') AND bucket = {name_bucket(name)} "
        f"AND (key = {literal(name)} OR startswith(key, {literal(name + '/')}))"
    ).collect()
    heads = [row for row in rows if row["kind"] == "named"]
    if not heads:
        return None
    versions = {}
    for row in rows:
        if row["kind"] == "version":
            number = parts_of(row["key"])[1]
            versions[number] = StoredVersion(
                Version.from_payload(row["key"], number, row["fingerprint"], row["payload"]),
                row["commit_id"],
                row["changed_by"],
                from_micros(row["published"]),
            )
    head = NameHead.from_payload(name, heads[0]["payload"])
    return StoredName(name, head, heads[0]["commit_id"], dict(sorted(versions.items())))


def stored_name(store: Store, name: str, version: int) -> StoredName:
    """A name at a version of the table; raises if there is no such name."""
    found = find_name(store, name, version)
    if found is None:
        raise UnknownName(
            f"There is no schema with the name {name} at version {version} of the table.", name=name
        )
    return found


def known_versions(
    session: SparkSession, pinned: str, names: Collection[str]
) -> dict[str, set[int]]:
    """The numbers of the versions of some names; `pinned` is the table at a version."""
    if not names:
        return {}
    buckets = ", ".join(map(str, sorted({name_bucket(name) for name in names})))
    rows = session.sql(
        f"SELECT key FROM {pinned} WHERE kind = 'version' "
        f"AND bucket IN ({buckets}) "
        f"AND regexp_replace(key, '/[0-9]+$', '') IN ({', '.join(map(literal, sorted(names)))})"
    ).collect()
    found: dict[str, set[int]] = {}
    for row in rows:
        name, number = parts_of(row["key"])
        found.setdefault(name, set()).add(number)
    return found


class Registrar:
    """Writes names and versions, each call in one commit; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def rehearse(self, wanted: Registration) -> Registered:
        """What a registration would do now."""
        version = self._store.head().version
        planned = self._plan(wanted, find_name(self._store, wanted.name, version), version)
        done = Committed(version, "", 0)
        return replace(_result(wanted.name, planned.version, done, planned.repeated), dry_run=True)

    def register(self, wanted: Registration, call: Call) -> Registered:
        """Makes a schema the next version of its name, unless it is the current one."""
        planned: list[Planned] = []

        def make(rows: RowSet) -> Statement:
            version = self._store.head().version
            found = find_name(self._store, wanted.name, version)
            mine = None if found is None else found.of_commit(rows.commit_id)
            if mine is not None:
                done = self._committer.lost(rows.commit_id, version)
                raise Settled(_result(wanted.name, mine, done))
            todo = self._plan(wanted, found, version)
            if todo.repeated:
                done = Committed(version, "", 0)
                raise Settled(_result(wanted.name, todo.version, done, repeated=True))
            planned[:] = [todo]
            # I3: every commit that writes a reference carries the schema.
            rows.schema(todo.schema)
            rows.add(
                Kind.VERSION,
                name_bucket(wanted.name),
                version_key(wanted.name, todo.version.number),
                RowChange.INSERT,
                fingerprint=todo.version.fingerprint,
                payload=todo.version.payload(),
            )
            _write_head(rows, wanted.name, found, todo.head, todo.version.fingerprint)
            return rows.statement("register", self._store)

        def figures() -> dict[str, int | str]:
            return {"name": wanted.name, "number": planned[0].version.number}

        try:
            done = self._committer.commit("register", call, make, figures)
        except Settled as settled:
            answer: Registered = settled.answer
            return answer
        return _result(wanted.name, planned[0].version, done)

    def set_mode(self, name: str, mode: Mode, call: Call) -> ModeSet:
        """Gives a name another mode for later registrations."""
        before: list[Mode] = []

        def make(rows: RowSet) -> Statement:
            version = self._store.head().version
            if before:
                # After a lost answer somebody else may have set another mode already.
                found_at = self._store.find_commit(rows.commit_id)
                if found_at is not None:
                    raise Settled(ModeSet(name, mode, before[0], found_at, rows.commit_id, 1))
            found = stored_name(self._store, name, version)
            before[:] = [found.head.mode]
            if found.head.mode is mode:
                raise Settled(ModeSet(name, mode, mode, version))
            # I3: the row of the version refers to the schema already, and stays.
            fingerprint = found.version(None).version.fingerprint
            _write_head(rows, name, found, replace(found.head, mode=mode), fingerprint)
            return rows.statement("set-mode", self._store)

        try:
            done = self._committer.commit("set-mode", call, make, lambda: {"name": name})
        except Settled as settled:
            answer: ModeSet = settled.answer
            return answer
        return ModeSet(name, mode, before[0], done.version, done.commit_id, done.retries)

    def _plan(self, wanted: Registration, found: StoredName | None, version: int) -> Planned:
        return plan(None if found is None else found.history(self._store, version), wanted)


def _write_head(
    rows: RowSet, name: str, before: StoredName | None, head: NameHead, fingerprint: str
) -> None:
    """Adds the row of a name, expected as it was read: registrations of a name serialize on it."""
    rows.add(
        Kind.NAMED,
        name_bucket(name),
        name,
        RowChange.INSERT if before is None else RowChange.UPDATE,
        seen=None if before is None else before.commit_id,
        fingerprint=fingerprint,
        payload=head.payload(),
    )


def _result(name: str, version: Version, done: Committed, repeated: bool = False) -> Registered:
    return Registered(
        name=name,
        version=version.number,
        fingerprint=version.fingerprint,
        compatible=version.compatible,
        reasons=version.reasons,
        forced=version.forced,
        breaking=version.breaking,
        repeated=repeated,
        merged=version.merged,
        version_of_table=done.version,
        commit_id=done.commit_id,
        retries=done.retries,
    )
