"""Operations and epochs: the verbs of `Catalog` for changes that go together."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta

from catalog.commit.committer import OperationCounters, OperationMetrics
from catalog.context import Call
from catalog.delta.queue import CommitQueue
from catalog.delta.store import AsOf, Epoch
from catalog.discovery import Discovery
from catalog.errors import InvalidInput
from catalog.model import check_actor
from catalog.operations.applier import Advance
from catalog.operations.decision import Decision
from catalog.operations.operation import Operation
from catalog.operations.recovery import RecoverReport, Recovery
from catalog.operations.service import Operations
from catalog.progress import Progress, silent


class Operating(Discovery):
    """The verbs of `Catalog` that prepare changes."""

    _operations: Operations
    _counters: OperationCounters
    _queue: CommitQueue

    @abstractmethod
    def _asking(self, actor: str | None, reason: str, deadline: float | None) -> Call:
        """A call of whoever calls."""

    # --- operations -------------------------------------------------------------------------------

    def operation(
        self,
        name: str | None = None,
        *,
        parts: int | None = None,
        lease: timedelta | None = None,
        id: str | None = None,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> Operation:
        """Opens an operation: changes in parts that become visible in one commit.

        Without a name it gives the operation that has the id, from whatever process it was opened.

        Args:
            name: what it is, for people.
            parts: how many parts it has; if that is not known yet, call `seal` when it is.
            lease: how long its owner is waited for, unless it is renewed. After that a recovery may
                abort it. If not given, the setting operation.lease.
            id: its id, if it should not be a random one. Opening it again gives the same operation,
                with the lease that it has; another name or number of parts is refused.
            actor: who owns it.
            reason: why.
            deadline: seconds to wait for others before giving up.
        """
        if name is None:
            if id is None:
                raise InvalidInput("Give an operation a name to open it, or the id of one.")
            if parts is not None or lease is not None:
                raise InvalidInput(
                    "An operation keeps the parts and the lease with which it was opened: join it "
                    "by its id alone, and call seal() or renew() to change them.",
                    id=id,
                    parts=parts,
                    lease=lease,
                )
            return self._operations.join(id)
        if not check_actor("name", name):
            raise InvalidInput("The name of an operation must not be empty.", name=name)
        self._check_writable()
        lease = self._chosen("operation.lease", lease)
        return self._operations.open(name, parts, lease, id, self._asking(actor, reason, deadline))

    def publish_pending(
        self,
        key: str,
        *,
        epoch: int | None = None,
        wait: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> tuple[Decision, ...]:
        """Publishes what is pending on a segment or an object: the operation that has it, whole.

        Args:
            key: id of a segment, or key of an object.
            epoch: let it wait for this epoch; what waits for another already keeps that.
            wait: return when the caches of this catalog have reached the version.
            actor: who publishes.
            reason: why.
            deadline: seconds to wait for others before giving up.

        Raises:
            NothingPending: No open operation changes the key.
        """
        self._check_writable()
        call = self._asking(actor, reason, deadline)
        return self._operations.publish_pending(key, epoch, wait, call)

    @property
    def stable_epoch(self) -> int:
        """The epoch up to which operations are visible; 0 as long as none was set."""
        return self._operations.stable_epoch

    def stable_epoch_at(self, as_of: AsOf) -> int:
        """The stable epoch of a version, or of a moment; 0 if none had been set."""
        return self._store.stable_epoch(self._store.version_as_of(as_of))

    def version_at_epoch(self, epoch: int) -> int:
        """The last version before the stable epoch went past this one: what `as_of=Epoch(n)` reads.

        Raises:
            VersionNotFound: The epoch is not reached yet, or the history does not reach back to it.
        """
        return self._store.version_as_of(Epoch(epoch))

    def advance(
        self,
        epoch: int,
        *,
        wait: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
    ) -> Advance:
        """Raises the stable epoch, and applies every operation that waits for it in one commit.

        The same epoch again is no change.

        Args:
            epoch: the new stable epoch.
            wait: return when the caches of this catalog have reached the version.
            actor: who advances it.
            reason: why.
            deadline: seconds to wait for others before giving up.

        Raises:
            EpochRegression: The stable epoch is beyond it.
        """
        self._check_writable()
        return self._operations.advance(epoch, wait, self._asking(actor, reason, deadline))

    def recover(
        self,
        *,
        keep: timedelta | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str = "",
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> RecoverReport:
        """Aborts operations whose owners left them, and removes what decided ones have staged.

        Args:
            keep: how long it stays known what became of an operation; if not given, the setting
                recover.keep.
            dry_run: only say what would be done.
            actor: who recovers.
            reason: why.
            deadline: seconds to wait for others before giving up.
            progress: is told of each step.
        """
        keep = self._chosen("recover.keep", keep)
        if not isinstance(keep, timedelta) or keep < timedelta(0):
            raise InvalidInput(
                f"keep is a timedelta and must not be negative, not {keep!r}.", keep=keep
            )
        if not dry_run:
            self._check_writable()
        call = self._context.call(actor=actor, reason=reason, deadline=deadline, progress=progress)
        return Recovery(self._context, call, self._operations.decider).recover(keep, dry_run)

    def operation_metrics(self) -> OperationMetrics:
        """What this catalog did with operations since it was opened."""
        return self._counters.metrics
