"""`catalog.operations`: changes in parts that become visible in one commit, and epochs."""

from __future__ import annotations

from datetime import timedelta
from typing import Unpack

from catalog.cache.cache import Caches
from catalog.commit.claims import view_operation
from catalog.commit.committer import Committer, OperationMetrics
from catalog.commit.operation_rows import OperationRow, OperationState
from catalog.context import CallOptions, Context
from catalog.delta.store import AsOf, Epoch, check_epoch
from catalog.errors import InvalidInput, NothingPending
from catalog.model import check_actor
from catalog.operations.applier import Advance, Applier
from catalog.operations.decision import Decider, Decision
from catalog.operations.operation import (
    Operation,
    OperationTools,
    check_id,
    check_lease,
    check_parts,
    publish_operation,
)
from catalog.operations.recovery import RecoverReport, Recovery
from catalog.operations.store import open_operations_on
from catalog.segments.frame import FramePublisher


class OperationsApi:
    """Operations and the stable epoch."""

    def __init__(
        self, context: Context, committer: Committer, frames: FramePublisher, caches: Caches
    ) -> None:
        self._context = context
        self._tools = OperationTools(context, committer, frames, caches)

    def open(
        self,
        name: str,
        *,
        parts: int | None = None,
        lease: timedelta | None = None,
        id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Operation:
        """Opens an operation.

        Args:
            name: a title, for people.
            parts: the number of parts; if that is not known yet, call `seal` when it is.
            lease: how long to wait for its owner, unless it is renewed; after that a recovery may
                abort it. By default the setting operation.lease.
            id: its id; by default a random one. Opening the same id again gives the same operation
                with its lease; another name or number of parts is refused.
        """
        if not check_actor("name", name):
            raise InvalidInput("The name of an operation must not be empty.", name=name)
        call = self._context.writing(**options)
        environment = self._context.environment
        lease = check_lease(self._context.chosen("operation.lease", lease))
        now = environment.clock()
        row = OperationRow(
            id=environment.new_id() if id is None else check_id(id),
            name=name,
            state=OperationState.OPEN,
            parts=None if parts is None else check_parts(parts),
            owner=call.caller.actor,
            lease=lease,
            lease_until=now + lease,
            epoch=None,
            order=None,
            commit_id="",
            opened_at=now,
        )
        decider = Decider(self._tools.committer)
        opened = self._context.alone(call, lambda: decider.open(row, call))
        return Operation(self._tools, opened.id, opened.name)

    def get(self, id: str) -> Operation:
        """The operation with this id, opened by any process.

        Raises:
            UnknownOperation: There is none.
        """
        view = view_operation(self._context.store, check_id(id))
        return Operation(self._tools, id, view.operation.name)

    def publish_pending(
        self,
        key: str,
        *,
        epoch: int | None = None,
        wait: bool = False,
        **options: Unpack[CallOptions],
    ) -> tuple[Decision, ...]:
        """Publishes, whole, the operations that have staged changes of a segment or an object.

        Args:
            key: id of a segment, or key of an object.
            epoch: publish them at this epoch; an operation that waits for another one keeps that.
            wait: return when the caches of this catalog have reached the version.

        Raises:
            NothingPending: No open operation changes the key.
        """
        call = self._context.writing(**options)
        if not isinstance(key, str):
            raise InvalidInput(
                f"Give the id of a segment or the key of an object, not {key!r:.80}.", key=key
            )
        pending = open_operations_on(self._context.store, key)
        if not pending:
            raise NothingPending(
                f"No open operation has changes of {key}; `strata operations list` shows all.",
                key=key,
            )
        decisions = tuple(publish_operation(self._tools, each, epoch, call) for each in pending)
        if wait:
            self._tools.caches.follow(max(each.version for each in decisions), decisions)
        return decisions

    @property
    def stable_epoch(self) -> int:
        """The epoch up to which operations are visible; 0 as long as none was set."""
        store = self._context.store
        return store.stable_epoch(store.head().version)

    def stable_epoch_at(self, as_of: AsOf) -> int:
        """The stable epoch of a version or a time; 0 if none had been set."""
        return self._context.store.stable_epoch(self._context.version(as_of))

    def version_at_epoch(self, epoch: int) -> int:
        """The last version before the stable epoch went past this: what `as_of=Epoch(n)` reads.

        Raises:
            VersionNotFound: The epoch is not reached yet, or the history does not reach back to it.
        """
        return self._context.version(Epoch(epoch))

    def advance(self, epoch: int, *, wait: bool = False, **options: Unpack[CallOptions]) -> Advance:
        """Raises the stable epoch, and applies every operation that waits for it in one commit.

        The same epoch again is no change.

        Args:
            epoch: the new stable epoch.
            wait: return when the caches of this catalog have reached the version.

        Raises:
            EpochRegression: The stable epoch is beyond it.
        """
        call = self._context.writing(**options)
        to = check_epoch(epoch)
        applier = Applier(self._tools.committer)
        done = self._context.alone(call, lambda: applier.advance(to, call))
        if wait:
            self._tools.caches.follow(done.version, done)
        return done

    def recover(
        self,
        *,
        keep: timedelta | None = None,
        dry_run: bool = False,
        **options: Unpack[CallOptions],
    ) -> RecoverReport:
        """Aborts operations with expired leases, and removes staged rows of decided ones.

        Args:
            keep: how long the outcome of an operation stays known; by default the setting
                recover.keep.
            dry_run: only report what would be done.
        """
        keep = self._context.chosen("recover.keep", keep)
        if not isinstance(keep, timedelta) or keep < timedelta(0):
            raise InvalidInput(
                f"keep is a timedelta and must not be negative, not {keep!r}.", keep=keep
            )
        if not dry_run:
            self._context.check_writable()
        call = self._context.call(**options)
        return Recovery(self._context, call, Decider(self._tools.committer)).recover(keep, dry_run)

    def metrics(self) -> OperationMetrics:
        """Counters of what this open catalog did with operations."""
        return self._tools.committer.counters.metrics
