"""Registering versions of named schemas, each call in one commit."""

from __future__ import annotations

from catalog.commit.changes import Change
from catalog.commit.committer import Committed, Committer, Settled
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.delta.statements import Statement
from catalog.evolution.compatibility import Mode
from catalog.model import Kind
from catalog.names.keys import name_bucket, version_key
from catalog.names.model import Head, ModeSet, Registered, Version
from catalog.names.plan import Planned, Wanted, plan
from catalog.names.reading import StoredName, find_name, history_of, stored_name


class Registrar:
    """Writes names and versions; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def rehearse(self, wanted: Wanted) -> Registered:
        """What a registration would do now."""
        version = self._store.head().version
        _, planned = self._planned(wanted, version)
        return _told(wanted.name, planned.version, planned.repeated, version, dry_run=True)

    def register(self, wanted: Wanted, call: Call) -> Registered:
        """Makes a schema the next version of its name, unless it is the current one."""
        planned: list[Planned] = []

        def make(rows: RowSet) -> Statement:
            version = self._store.head().version
            found = find_name(self._store, wanted.name, version)
            mine = None if found is None else found.of_commit(rows.commit_id)
            if mine is not None:
                done = self._committer.lost(rows.commit_id, version)
                raise Settled(_committed(wanted.name, mine.version, done))
            found, todo = self._planned(wanted, version, found)
            if todo.repeated:
                raise Settled(_told(wanted.name, todo.version, True, version))
            planned[:] = [todo]
            # I3: the rule of every commit that writes a reference.
            rows.schema(todo.schema)
            rows.add(
                Kind.VERSION,
                name_bucket(wanted.name),
                version_key(wanted.name, todo.version.number),
                Change.INSERT,
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
        return _committed(wanted.name, planned[0].version, done)

    def set_mode(self, name: str, mode: Mode, call: Call) -> ModeSet:
        """Gives a name another mode, which later registrations are judged by."""
        before: list[Mode] = []

        def make(rows: RowSet) -> Statement:
            version = self._store.head().version
            if before:
                # Somebody may have set another one since a commit whose answer was lost.
                found_at = self._store.find_commit(rows.commit_id)
                if found_at is not None:
                    raise Settled(ModeSet(name, mode, before[0], found_at, rows.commit_id, 1))
            found = stored_name(self._store, name, version)
            before[:] = [found.head.mode]
            if found.head.mode is mode:
                raise Settled(ModeSet(name, mode, mode, version))
            head = found.head
            # Its version refers to the schema already, and for good: nothing has to be carried.
            _write_head(
                rows,
                name,
                found,
                Head(mode, head.current, head.last_breaking, head.dropped),
                found.version(None).version.fingerprint,
            )
            return rows.statement("set-mode", self._store)

        try:
            done = self._committer.commit("set-mode", call, make, lambda: {"name": name})
        except Settled as settled:
            answer: ModeSet = settled.answer
            return answer
        return ModeSet(name, mode, before[0], done.version, done.commit_id, done.retries)

    def _planned(
        self, wanted: Wanted, version: int, found: StoredName | None = None
    ) -> tuple[StoredName | None, Planned]:
        found = found or find_name(self._store, wanted.name, version)
        history = None if found is None else history_of(self._store, found, version)
        return found, plan(history, wanted)


def _write_head(
    rows: RowSet, name: str, before: StoredName | None, head: Head, fingerprint: str
) -> None:
    """Writes the row of a name as it was read: whoever registers takes turns by it."""
    rows.add(
        Kind.NAMED,
        name_bucket(name),
        name,
        Change.INSERT if before is None else Change.UPDATE,
        seen=None if before is None else before.commit_id,
        fingerprint=fingerprint,
        payload=head.payload(),
    )


def _committed(name: str, version: Version, done: Committed) -> Registered:
    return _told(name, version, False, done.version, done.commit_id, done.retries)


def _told(
    name: str,
    version: Version,
    repeated: bool,
    version_of_table: int,
    commit_id: str = "",
    retries: int = 0,
    dry_run: bool = False,
) -> Registered:
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
        version_of_table=version_of_table,
        commit_id=commit_id,
        retries=retries,
        dry_run=dry_run,
    )
