"""Operations of an open catalog: opens, joins and publishes them, and moves the stable epoch."""

from __future__ import annotations

from datetime import timedelta

from catalog.cache.cache import Caches
from catalog.commit.claims import stable_epoch, view_operation
from catalog.commit.committer import Committer
from catalog.commit.operation_rows import OperationRow, OperationState
from catalog.context import Call, Context
from catalog.delta.store import check_epoch
from catalog.errors import InvalidInput, NothingPending
from catalog.operations.applier import Advance, Applier
from catalog.operations.decision import Decider, Decision
from catalog.operations.operation import Operation, check_id, check_lease, check_parts
from catalog.operations.stager import Stager
from catalog.operations.store import open_operations_on
from catalog.segments.frame import FramePublisher


class Operations:
    """What `OperationsApi` and every `Operation` work with; called from any thread."""

    def __init__(
        self, context: Context, committer: Committer, frames: FramePublisher, caches: Caches
    ) -> None:
        self.context = context
        self.committer = committer
        self.frames = frames
        self.caches = caches
        self.decider = Decider(committer)
        self.applier = Applier(committer)
        self.stager = Stager(committer)

    def open(
        self,
        name: str,
        parts: int | None,
        lease: timedelta,
        id: str | None,
        call: Call,
    ) -> Operation:
        """Opens an operation, or joins the one that has this id."""
        environment = self.context.environment
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
        """The operation with this id.

        Raises:
            UnknownOperation: There is none.
        """
        view = view_operation(self.context.store, check_id(id))
        return Operation(self, id, view.operation.name)

    def publish(self, operation: str, epoch: int | None, call: Call) -> Decision:
        """Publishes an operation now or at an epoch."""
        if epoch is None:
            return self.context.alone(call, lambda: self.applier.publish(operation, call))
        at = check_epoch(epoch)
        return self.context.alone(call, lambda: self.applier.make_ready(operation, at, call))

    def publish_pending(
        self, key: str, epoch: int | None, wait: bool, call: Call
    ) -> tuple[Decision, ...]:
        """Publishes every open operation that has changes of a key."""
        if not isinstance(key, str):
            raise InvalidInput(
                f"Give the id of a segment or the key of an object, not {key!r:.80}.", key=key
            )
        pending = open_operations_on(self.context.store, key)
        if not pending:
            raise NothingPending(
                f"No open operation has changes of {key}; `strata operations` lists those that "
                "there are.",
                key=key,
            )
        decisions = tuple(self.publish(each, epoch, call) for each in pending)
        if wait:
            self.caches.follow(max(each.version for each in decisions), decisions)
        return decisions

    @property
    def stable_epoch(self) -> int:
        """The stable epoch at the newest version."""
        store = self.context.store
        return stable_epoch(store, store.head().version).stable

    def advance(self, epoch: int, wait: bool, call: Call) -> Advance:
        """Raises the stable epoch."""
        to = check_epoch(epoch)
        done = self.context.alone(call, lambda: self.applier.advance(to, call))
        if wait:
            self.caches.follow(done.version, done)
        return done
