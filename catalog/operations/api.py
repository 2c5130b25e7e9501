"""`catalog.operations`: changes in parts that become visible in one commit, and epochs."""

from __future__ import annotations

from datetime import timedelta
from typing import Unpack

from catalog.cache.holders import Caches
from catalog.commit.committer import Committer
from catalog.commit.counters import OperationMetrics
from catalog.context import CallOptions, Context
from catalog.delta.store import AsOf, Epoch
from catalog.errors import InvalidInput
from catalog.model import check_actor
from catalog.operations.applier import Advance
from catalog.operations.decision import Decision
from catalog.operations.operation import Operation
from catalog.operations.recovery import RecoverReport, Recovery
from catalog.operations.service import Operations
from catalog.segments.frame import FramePublisher


class OperationsApi:
    """Operations and the stable epoch."""

    def __init__(
        self, context: Context, committer: Committer, frames: FramePublisher, caches: Caches
    ) -> None:
        self._context = context
        self._counters = committer.counters
        self._operations = Operations(context, committer, frames, caches)

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
        self._context.check_writable()
        lease = self._context.chosen("operation.lease", lease)
        return self._operations.open(name, parts, lease, id, self._context.call(**options))

    def get(self, id: str) -> Operation:
        """The operation with this id, opened by any process.

        Raises:
            UnknownOperation: There is none.
        """
        return self._operations.join(id)

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
        return self._operations.publish_pending(key, epoch, wait, call)

    @property
    def stable_epoch(self) -> int:
        """The epoch up to which operations are visible; 0 as long as none was set."""
        return self._operations.stable_epoch

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
        return self._operations.advance(epoch, wait, self._context.writing(**options))

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
        return Recovery(self._context, call, self._operations.decider).recover(keep, dry_run)

    def metrics(self) -> OperationMetrics:
        """Counters of what this open catalog did with operations."""
        return self._counters.metrics
