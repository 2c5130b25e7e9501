"""The operation that users hold: staged in parts, and decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Unpack

from pyspark.sql import DataFrame

from catalog.cache.cache import Caches
from catalog.commit.claims import Claim, view_operation
from catalog.commit.committer import Committer
from catalog.commit.operation_rows import OperationState
from catalog.context import Call, CallOptions, Context
from catalog.delta.store import check_epoch
from catalog.errors import InvalidInput
from catalog.model import OnExisting, Segment, check_positive
from catalog.objects.changes import changes_of
from catalog.objects.model import Object
from catalog.operations.applier import Applier
from catalog.operations.decision import Decider, Decision
from catalog.operations.part import (
    FramedSegments,
    ListedSegments,
    PartContent,
    PartSegments,
)
from catalog.operations.stager import Stager, StageResult
from catalog.operations.store import claims_of
from catalog.segments.batch import batch_of
from catalog.segments.drop import checked_ids
from catalog.segments.frame import FramePublisher
from catalog.words import chosen

LARGEST_PARTS = 10_000


@dataclass(frozen=True)
class OperationStatus:
    """An operation as it stands at a version.

    Attributes:
        parts: how many there are to be; none until it is sealed.
        staged: the parts that are there.
        missing: those that are not, as far as the number is known.
        floor: the lowest epoch at which it can be published; 0 if there is no limit.
        claims: what it claims, by key and part, shared or not, up to 1,000 of them; none once it
            is decided.
        num_claims: how many keys it has for itself.
        expired: it is open and its lease is over, so that a recovery may abort it.
    """

    id: str
    name: str
    state: str
    version: int
    parts: int | None
    staged: tuple[int, ...]
    missing: tuple[int, ...]
    epoch: int | None
    floor: int
    owner: str
    opened_at: datetime
    lease_until: datetime
    expired: bool
    claims: tuple[Claim, ...]
    num_claims: int

    @property
    def complete(self) -> bool:
        """Whether all parts are there, so that it can be published."""
        return self.parts is not None and not self.missing


@dataclass(frozen=True)
class OperationTools:
    """What the verbs on operations work with."""

    context: Context
    committer: Committer
    frames: FramePublisher
    caches: Caches


class Operation:
    """Changes prepared in parts, from any process, that become visible in one commit.

    Made by `Catalog.operation`; every process that knows the id can join it.
    """

    def __init__(self, tools: OperationTools, id: str, name: str) -> None:
        self._tools = tools
        self._context = tools.context
        self.id = id
        self.name = name

    def __repr__(self) -> str:
        return f"Operation({self.name!r}, id={self.id!r})"

    # --- parts ------------------------------------------------------------------------------------

    def stage(
        self,
        part: int,
        *,
        publish: Iterable[Segment] | DataFrame = (),
        drop: Iterable[str] = (),
        put: Iterable[Object] | Object = (),
        remove: Iterable[str] | str = (),
        on_existing: str = "refuse",
        **options: Unpack[CallOptions],
    ) -> StageResult:
        """Prepares a part: durable and invisible, in any order; the same again is no change.

        Every key that it touches is claimed for the operation until that is decided.

        Args:
            part: its number, from 0.
            publish: segments, or a frame of them as `Catalog.publish` takes it.
            drop: ids of segments; those that are absent are claimed all the same.
            put: objects. Bodies that several parts give one object are united by their fields.
            remove: keys of objects.
            on_existing: what to do about segments that are there with other content: "refuse" the
                part, or "replace" them.

        Raises:
            ClaimConflict: Another operation has one of the keys.
            PartConflict: The part is there with other content, or contradicts another part.
            OperationDecided: The operation was published or aborted.
        """
        call = self._context.writing(**options)
        check_part(part)
        mode = staged_mode(on_existing)
        drops, changes = checked_ids("drop", drop), changes_of(put, remove)
        with self._segments(publish, drops, call) as segments:
            content = PartContent(segments, drops, changes, mode)
            if content.empty:
                raise InvalidInput(
                    f"Part {part} brings nothing; give it something to publish, drop, put or "
                    "remove.",
                    part=part,
                )
            stager = Stager(self._tools.committer)
            return self._context.alone(call, lambda: stager.stage(self.id, part, content, call))

    @contextmanager
    def _segments(
        self, publish: Iterable[Segment] | DataFrame, drops: tuple[str, ...], call: Call
    ) -> Iterator[PartSegments | None]:
        """The segments that a part publishes, if there are any; a frame stays staged meanwhile."""
        if isinstance(publish, DataFrame):
            frames, actor = self._tools.frames, call.caller.actor
            with frames.described(publish, call.deadline, call.progress, "stage") as staged:
                yield None if staged is None else FramedSegments(staged, drops, frames, actor)
            return
        if not isinstance(publish, Iterable):
            raise InvalidInput(
                f"publish takes a list of Segment objects or a DataFrame, not {publish!r:.80}.",
                publish=publish,
            )
        batch = batch_of(publish, call.caller)
        buckets = self._tools.committer.buckets
        where = (self._context.store, buckets, self._context.environment)
        yield ListedSegments(batch, drops, *where) if batch.segments else None

    def seal(self, parts: int | None = None, **options: Unpack[CallOptions]) -> OperationStatus:
        """Fixes the number of parts, where that was not known before.

        Args:
            parts: the number; if not given, up to the highest that is staged.
        """
        call = self._context.writing(**options)
        if parts is not None:
            check_parts(parts)
        decider = Decider(self._tools.committer)
        self._context.alone(call, lambda: decider.seal(self.id, parts, call))
        return self.status()

    def renew(
        self, lease: timedelta | None = None, **options: Unpack[CallOptions]
    ) -> OperationStatus:
        """Begins the lease anew, as long as before or as given."""
        call = self._context.writing(**options)
        if lease is not None:
            check_lease(lease)
        decider = Decider(self._tools.committer)
        self._context.alone(call, lambda: decider.renew(self.id, lease, call))
        return self.status()

    def status(self) -> OperationStatus:
        """The operation at the newest version: its state, missing parts, claims."""
        store = self._context.store
        view = view_operation(store, self.id)
        row = view.operation
        claims, total = ((), 0) if row.decided else claims_of(store, view.version, row)
        expired = row.lease_until <= self._context.environment.clock()
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
            expired=row.state is OperationState.OPEN and expired,
            claims=claims,
            num_claims=total,
        )

    # --- decisions --------------------------------------------------------------------------------

    def publish(
        self, *, epoch: int | None = None, wait: bool = False, **options: Unpack[CallOptions]
    ) -> Decision:
        """Makes all of it visible in one commit, now or when the stable epoch reaches one.

        Args:
            epoch: let it wait for this epoch, which must be above the stable one. That is final.
            wait: return when the caches of this catalog have reached the version.

        Raises:
            PartsMissing: Not all parts are staged, or their number is not known yet.
            EpochNotNewer: The epoch is not above the stable one.
            EpochOrder: An operation on the same keys comes first.
            OperationDecided: It was aborted, or published otherwise.
        """
        decision = publish_operation(self._tools, self.id, epoch, self._context.writing(**options))
        if wait:
            self._tools.caches.follow(decision.version, decision)
        return decision

    def abort(self, **options: Unpack[CallOptions]) -> Decision:
        """Gives it up; its claims are free at once."""
        call = self._context.writing(**options)
        decider = Decider(self._tools.committer)
        return self._context.alone(call, lambda: decider.abort(self.id, call))


def publish_operation(
    tools: OperationTools, operation: str, epoch: int | None, call: Call
) -> Decision:
    """Publishes an operation, now or at an epoch."""
    applier = Applier(tools.committer)
    if epoch is None:
        return tools.context.alone(call, lambda: applier.publish(operation, call))
    at = check_epoch(epoch)
    return tools.context.alone(call, lambda: applier.make_ready(operation, at, call))


# --- input ---------------------------------------------------------------------------------------


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
