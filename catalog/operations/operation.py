"""The operation that users hold: opened, staged in parts, and decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Unpack

from catalog.commit.claims import Claim
from catalog.context import CallOptions
from catalog.model import Segment
from catalog.objects.model import Object
from catalog.operations.decision import Decision
from catalog.operations.stager import StageResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from catalog.operations.service import Operations


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


class Operation:
    """Changes prepared in parts, from any process, that become visible in one commit.

    Made by `Catalog.operation`. Whoever knows the id can go on with it.
    """

    def __init__(self, operations: Operations, id: str, name: str) -> None:
        self._operations = operations
        self.id = id
        self.name = name

    def __repr__(self) -> str:
        return f"Operation({self.name!r}, id={self.id!r})"

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
            drop: ids of segments; those that are not there are claimed all the same.
            put: objects. Bodies that several parts give one object are united by their fields.
            remove: keys of objects.
            on_existing: what to do about segments that are there with other content: "refuse" the
                part, or "replace" them.

        Raises:
            ClaimConflict: Another operation has one of the keys.
            PartConflict: The part is there with other content, or contradicts another part.
            OperationDecided: The operation was published or aborted.
        """
        return self._operations.stage(
            self.id,
            part,
            publish=publish,
            drop=drop,
            put=put,
            remove=remove,
            on_existing=on_existing,
            call=self._operations.context.writing(**options),
        )

    def seal(
        self,
        parts: int | None = None,
        **options: Unpack[CallOptions],
    ) -> OperationStatus:
        """Says how many parts there are, where that was not known before.

        Args:
            parts: the number; if not given, up to the highest that is staged.
        """
        return self._operations.seal(self.id, parts, self._operations.context.writing(**options))

    def renew(
        self,
        lease: timedelta | None = None,
        **options: Unpack[CallOptions],
    ) -> OperationStatus:
        """Begins the lease anew, as long as before or as given."""
        return self._operations.renew(self.id, lease, self._operations.context.writing(**options))

    def status(self) -> OperationStatus:
        """Which parts are missing, and who claims what."""
        return self._operations.status(self.id)

    def publish(
        self,
        *,
        epoch: int | None = None,
        wait: bool = False,
        **options: Unpack[CallOptions],
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
        return self._operations.publish(
            self.id, epoch, wait, self._operations.context.writing(**options)
        )

    def abort(self, **options: Unpack[CallOptions]) -> Decision:
        """Gives it up; its claims are free at once."""
        return self._operations.abort(self.id, self._operations.context.writing(**options))
