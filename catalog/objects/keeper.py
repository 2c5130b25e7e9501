"""Putting and removing objects outside of operations, each call in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from catalog.objects.changes import Changes
from catalog.objects.reading import Objects, all_objects
from catalog.objects.state import Difference, Locks, applied, locks
from catalog.operations.committing import Committed, Committer, Request, Settled
from catalog.operations.objects import identity, write_objects
from catalog.operations.reading import Standing, claimed, standing_claims
from catalog.operations.rows import OBJECT_BUCKET
from catalog.operations.rowset import RowSet
from catalog.table.changes import Change, plain_clash
from catalog.table.layout import bucket_of
from catalog.table.statements import DATASOURCE, Statement

_OBJECT = "object"


@dataclass(frozen=True)
class PutResult:
    """What a put or a remove did.

    Attributes:
        revisions: the new revision of every object that was put and changed.
        unchanged: objects that had the content already.
        removed: keys that were removed.
        absent: keys that were to be removed and were not there.
        touched: objects that got a new revision because one that they link to changed.
    """

    version: int
    commit_id: str
    revisions: dict[str, int]
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    retries: int = 0


class Keeper:
    """Changes objects; runs in the commit thread."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._store = committer.store

    def change(self, changes: Changes, verb: str, request: Request) -> PutResult:
        """Puts and removes together; refused while an operation claims what it touches."""
        planned: list[tuple[Objects, Difference]] = []

        def plan(rows: RowSet) -> Statement:
            version = self._store.head().version
            objects = all_objects(self._store, version)
            if objects.guard == rows.commit_id:
                raise Settled(self._committer.lost(rows.commit_id, version))
            nodes = applied(objects.nodes, changes, partial(identity, rows.commit_id), touch=False)
            needed = locks(objects.nodes, changes)
            standing = self._claims(needed, version)
            in_the_way = [
                claim
                for claim in standing.claims
                if not (claim.shared and claim.key in needed.held and claim.target == _OBJECT)
            ]
            if in_the_way:
                raise claimed(in_the_way)
            if nodes == objects.nodes:
                raise Settled(self._result(changes, objects, None, Committed(version, "", 0)))
            planned[:] = [(objects, write_objects(rows, objects, nodes))]
            for put in changes.puts.values():
                if put.schema is not None:
                    rows.schema(put.schema)
            self._ask(rows, needed)
            return rows.statement(verb, self._store, plain_clash(standing.decided))

        try:
            done = self._committer.commit(verb, request, plan)
        except Settled as settled:
            if isinstance(settled.answer, PutResult):
                return settled.answer
            done = settled.answer
        objects, difference = planned[0]
        return self._result(changes, objects, difference, done)

    def _claims(self, needed: Locks, version: int) -> Standing:
        keys = [(_OBJECT, OBJECT_BUCKET, key) for key in sorted(needed.exclusive | needed.held)]
        keys += [
            (DATASOURCE, bucket_of(name, self._committer.buckets), name)
            for name in sorted(needed.datasources)
        ]
        frame = self._store.session.createDataFrame(keys, "target STRING, bucket INT, key STRING")
        return standing_claims(self._store, frame, {bucket for _, bucket, _ in keys}, version)

    def _ask(self, rows: RowSet, needed: Locks) -> None:
        """Adds the rows that are refused where an operation has a claim by then."""
        written = {row["key"] for row in rows.rows if row["kind"] == _OBJECT}
        for key in needed.exclusive - written:
            rows.add(_OBJECT, OBJECT_BUCKET, key, Change.PROBE)
        for key in needed.held:
            rows.add(_OBJECT, OBJECT_BUCKET, key, Change.PROBE, shared=True)
        for row in [row for row in rows.rows if row["kind"] == _OBJECT]:
            rows.reads("staged", [OBJECT_BUCKET], row["key"], row["key"])
        for name in needed.datasources:
            bucket = bucket_of(name, self._committer.buckets)
            rows.add(DATASOURCE, bucket, name, Change.PROBE, read=False)
            rows.reads("staged", [bucket], name, name)

    @staticmethod
    def _result(
        changes: Changes, objects: Objects, difference: Difference | None, done: Committed
    ) -> PutResult:
        written = {} if difference is None else {**difference.inserted, **difference.updated}
        removed = () if difference is None else tuple(sorted(difference.deleted))
        return PutResult(
            version=done.version,
            commit_id=done.commit_id,
            revisions={key: written[key].revision for key in changes.puts if key in written},
            unchanged=tuple(sorted(changes.puts.keys() - written.keys())),
            removed=removed,
            absent=tuple(sorted(changes.removes - objects.nodes.keys())),
            touched=tuple(sorted(written.keys() - changes.puts.keys())),
            retries=done.retries,
        )
