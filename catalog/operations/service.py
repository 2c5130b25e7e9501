"""Everything that operations need, in one place: called from any thread, committed in one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from catalog.cache.holders import Caches
from catalog.commit.claims import Claim, stable_epoch, view_operation
from catalog.commit.committer import Committer
from catalog.commit.operation_rows import Action, OperationRow, OperationState
from catalog.context import Call, Context
from catalog.delta.store import check_epoch
from catalog.errors import InvalidInput, NothingPending
from catalog.model import OnExisting, Segment, check_positive
from catalog.objects.changes import changes_of
from catalog.operations.applier import Advance, Applier
from catalog.operations.content import Content, checked_drops, framed_segments, listed_segments
from catalog.operations.decider import Decider
from catalog.operations.decision import Decision
from catalog.operations.operation import Operation, OperationStatus
from catalog.operations.stager import Stager, StageResult
from catalog.schema.names import literal
from catalog.segments.frame import FramePublisher
from catalog.words import chosen

T = TypeVar("T")
LARGEST_PARTS = 10_000
SHOWN_CLAIMS = 1_000


class Operations:
    """The verbs on operations, for `OperationsApi` and for the `Operation` that it gives out."""

    def __init__(
        self, context: Context, committer: Committer, frames: FramePublisher, caches: Caches
    ) -> None:
        self.context = context
        self._committer = committer
        self._store = context.store
        self._frames = frames
        self._caches = caches
        self.decider = Decider(committer)
        self._applier = Applier(committer)
        self._stager = Stager(committer)

    # --- its life ---------------------------------------------------------------------------------

    def open(
        self,
        name: str,
        parts: int | None,
        lease: timedelta,
        id: str | None,
        call: Call,
    ) -> Operation:
        """Opens an operation, or joins the one that has this id."""
        environment = self._committer.environment
        if parts is not None:
            check_parts(parts)
        now = environment.clock()
        row = OperationRow(
            id=environment.new_id() if id is None else check_id(id),
            name=name,
            state=OperationState.OPEN,
            parts=parts,
            owner=call.caller.actor,
            lease=check_lease(lease),
            lease_until=now + lease,
            epoch=None,
            order=None,
            commit_id="",
            opened_at=now,
        )
        opened = self.context.alone(call, lambda: self.decider.open(row, call))
        return Operation(self, opened.id, opened.name)

    def join(self, id: str) -> Operation:
        """The operation with this id, which must be there."""
        view = view_operation(self._store, check_id(id))
        return Operation(self, id, view.operation.name)

    def stage(
        self,
        operation: str,
        part: int,
        *,
        publish: Iterable[Segment] | DataFrame,
        drop: Iterable[str],
        put: Any,
        remove: Any,
        on_existing: str,
        call: Call,
    ) -> StageResult:
        """Stages a part from a list or from a frame."""
        check_part(part)
        mode = staged_mode(on_existing)
        drops, changes = checked_drops(drop), changes_of(put, remove)
        caller = call.caller

        def stage(content: Content) -> StageResult:
            if content.empty:
                raise InvalidInput(
                    f"Part {part} brings nothing; give it something to publish, drop, put or "
                    "remove.",
                    part=part,
                )
            return self.context.alone(
                call, lambda: self._stager.stage(operation, part, content, call)
            )

        if not isinstance(publish, DataFrame):
            if not isinstance(publish, Iterable):
                raise InvalidInput(
                    f"publish takes a list of Segment objects or a DataFrame, not {publish!r:.80}.",
                    publish=publish,
                )
            segments = listed_segments(
                publish,
                drops,
                caller,
                self._store,
                self._committer.buckets,
                self._committer.environment,
            )
            return stage(Content(segments, drops, changes, mode))
        with self._frames.described(publish, call.deadline, call.progress, "stage") as batch:
            segments = (
                None if batch is None else framed_segments(batch, self._frames, drops, caller.actor)
            )
            return stage(Content(segments, drops, changes, mode))

    def seal(self, operation: str, parts: int | None, call: Call) -> OperationStatus:
        """Fixes the number of parts."""
        if parts is not None:
            check_parts(parts)
        self.context.alone(call, lambda: self.decider.seal(operation, parts, call))
        return self.status(operation)

    def renew(self, operation: str, lease: timedelta | None, call: Call) -> OperationStatus:
        """Begins the lease anew."""
        if lease is not None:
            check_lease(lease)
        self.context.alone(call, lambda: self.decider.renew(operation, lease, call))
        return self.status(operation)

    def publish(self, operation: str, epoch: int | None, wait: bool, call: Call) -> Decision:
        """Publishes now or at an epoch."""
        if epoch is None:
            decision = self.context.alone(call, lambda: self._applier.publish(operation, call))
        else:
            at = check_epoch(epoch)
            decision = self.context.alone(
                call, lambda: self._applier.make_ready(operation, at, call)
            )
        if wait:
            self._caches.follow(decision.version, decision)
        return decision

    def abort(self, operation: str, call: Call) -> Decision:
        """Aborts an open operation."""
        return self.context.alone(call, lambda: self.decider.abort(operation, call))

    # --- epochs -----------------------------------------------------------------------------------

    @property
    def stable_epoch(self) -> int:
        return stable_epoch(self._store, self._store.head().version).stable

    def advance(self, epoch: int, wait: bool, call: Call) -> Advance:
        """Raises the stable epoch."""
        to = check_epoch(epoch)
        done = self.context.alone(call, lambda: self._applier.advance(to, call))
        if wait:
            self._caches.follow(done.version, done)
        return done

    def publish_pending(
        self, key: str, epoch: int | None, wait: bool, call: Call
    ) -> tuple[Decision, ...]:
        """Publishes every open operation that has changes of a key."""
        if not isinstance(key, str):
            raise InvalidInput(
                f"Give the id of a segment or the key of an object, not {key!r:.80}.", key=key
            )
        pending = self._holders(key)
        if not pending:
            raise NothingPending(
                f"No open operation has changes of {key}; `strata operations list` shows all.",
                key=key,
            )
        decisions = tuple(self.publish(each, epoch, False, call) for each in pending)
        if wait:
            self._caches.follow(max(each.version for each in decisions), decisions)
        return decisions

    def _holders(self, key: str) -> list[str]:
        version = self._store.head().version
        pinned = self._store.pinned(version)
        rows = self._store.session.sql(
            f"SELECT DISTINCT s.operation FROM {pinned} AS s JOIN {pinned} AS o "
            "ON o.key = s.operation WHERE s.kind = 'staged' AND o.kind = 'operation' "
            f"AND o.state = '{OperationState.OPEN}' AND s.key = {literal(key)} "
            f"AND s.action NOT IN ('{Action.HOLD}', '{Action.BUMP}') "
            "AND s.target IN ('segment', 'object') ORDER BY s.operation"
        ).collect()
        return [row["operation"] for row in rows]

    # --- status -----------------------------------------------------------------------------------

    def status(self, operation: str) -> OperationStatus:
        """An operation as it stands now."""
        view = view_operation(self._store, operation)
        row = view.operation
        claims, total = ((), 0) if row.decided else self._claims(view.version, row)
        now = self._committer.environment.clock()
        return OperationStatus(
            id=row.id,
            name=row.name,
            state=row.state.value,
            version=view.version,
            parts=row.parts,
            staged=tuple(view.parts),
            missing=view.missing,
            epoch=row.epoch,
            floor=view.floor,
            owner=row.owner,
            opened_at=row.opened_at,
            lease_until=row.lease_until,
            expired=row.state is OperationState.OPEN and row.lease_until <= now,
            claims=claims,
            num_claims=total,
        )

    def _claims(self, version: int, row: OperationRow) -> tuple[tuple[Claim, ...], int]:
        """Some of its claims, and how many keys it has for itself."""
        staged = (
            f"{self._store.pinned(version)} WHERE kind = 'staged' AND operation = {literal(row.id)}"
        )
        found = self._store.session.sql(
            f"SELECT target, key, part, action FROM {staged} ORDER BY target, key, part "
            f"LIMIT {SHOWN_CLAIMS}"
        ).collect()
        claims = tuple(Claim(r["target"], r["key"], r["part"], r["action"], row) for r in found)
        if len(claims) < SHOWN_CLAIMS:
            return claims, len({(each.target, each.key) for each in claims if not each.shared})
        total = self._store.session.sql(
            f"SELECT count(DISTINCT target, key) AS total FROM {staged} "
            f"AND action <> '{Action.HOLD}'"
        ).collect()
        return claims, total[0]["total"]


# --- what callers give ---------------------------------------------------------------------------


def check_part(part: Any) -> int:
    """The number of a part."""
    if isinstance(part, bool) or not isinstance(part, int) or not 0 <= part < LARGEST_PARTS:
        raise InvalidInput(
            f"A part is a whole number from 0 to {LARGEST_PARTS - 1}, not {part!r}.", part=part
        )
    return part


def check_parts(parts: Any) -> int:
    """How many parts an operation has."""
    if check_positive("parts", parts) > LARGEST_PARTS:
        raise InvalidInput(
            f"An operation has at most {LARGEST_PARTS} parts, not {parts}.", parts=parts
        )
    return int(parts)


def check_lease(lease: Any) -> timedelta:
    """How long an owner is waited for."""
    if not isinstance(lease, timedelta) or not timedelta(0) < lease <= timedelta(days=3650):
        raise InvalidInput(
            f"A lease is a timedelta above zero and of at most ten years, not {lease!r}.",
            lease=lease,
        )
    return lease


def check_id(id: Any) -> str:
    """The id of an operation: letters, digits, underscores and dashes."""
    if not isinstance(id, str) or not 0 < len(id) <= 128 or not _plain(id):
        raise InvalidInput(
            f"The id of an operation has 1 to 128 letters, digits, - or _, not {id!r:.80}.", id=id
        )
    return id


def _plain(text: str) -> bool:
    return text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def staged_mode(word: str) -> OnExisting:
    """What a part does with segments that are there with other content."""
    mode = chosen(OnExisting, "on_existing", word)
    if mode is OnExisting.SKIP:
        raise InvalidInput(
            'In an operation on_existing is "refuse" or "replace", not "skip": what is staged must '
            "not depend on what happens until it is published.",
            on_existing=word,
        )
    return mode
