"""Operations, their parts and the stable epoch: their rows as values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from catalog.delta.layout import OPERATION_BUCKETS, bucket_of
from catalog.model import from_micros, micros

ABSENT = "absent"
AFTER = "after"
# How long to wait for the owner of an operation.
DEFAULT_LEASE = timedelta(hours=1)
STABLE = "stable"
EPOCH_BUCKET = 0
OBJECT_BUCKET = 0


class OperationState(StrEnum):
    """The state of an operation; published and aborted are final."""

    OPEN = "open"
    # It waits for the stable epoch to reach its own; only an advance ends that.
    READY = "ready"
    PUBLISHED = "published"
    ABORTED = "aborted"

    @property
    def decided(self) -> bool:
        """Whether it is final, so that staged rows of the operation claim nothing."""
        return self in (OperationState.PUBLISHED, OperationState.ABORTED)


class StagedAction(StrEnum):
    """What a staged row does with its target."""

    PUBLISH = "publish"
    REPLACE = "replace"
    DROP = "drop"
    # Nothing: it is there with this content, and claimed so that it stays.
    KEEP = "keep"
    PUT = "put"
    REMOVE = "remove"
    # The object changes because one that it links to does.
    BUMP = "bump"
    # Nothing: the datasource is claimed while the table that represents it comes or goes.
    CLAIM = "claim"
    # Nothing: nobody else may change it, but others may hold it too.
    HOLD = "hold"


def operation_bucket(operation: str) -> int:
    """The bucket of an operation and its parts."""
    return bucket_of(operation, OPERATION_BUCKETS)


def part_key(operation: str, part: int) -> str:
    """The key of a part's row."""
    return f"{operation}/{part}"


@dataclass(frozen=True)
class OperationRow:
    """An operation, as its row has it.

    Attributes:
        parts: their number; none until it is sealed.
        lease_until: from then on a recovery may abort it.
        epoch: the one at which it is published, or none.
        order: its place among the ready operations, from 1.
        commit_id: of the commit that last changed the row.
    """

    id: str
    name: str
    state: OperationState
    parts: int | None
    owner: str
    lease: timedelta
    lease_until: datetime
    epoch: int | None
    order: int | None
    commit_id: str
    opened_at: datetime
    revision: int = 1

    @property
    def decided(self) -> bool:
        return self.state.decided

    def payload(self) -> str:
        """The JSON document in the row."""
        return json.dumps(
            {
                "name": self.name,
                "parts": self.parts,
                "owner": self.owner,
                "lease_seconds": self.lease.total_seconds(),
                "lease_micros": micros(self.lease_until),
                "epoch": self.epoch,
                "order": self.order,
            },
            ensure_ascii=False,
        )

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> OperationRow:
        """From a row of kind `operation`."""
        said = json.loads(row["payload"])
        return cls(
            id=row["key"],
            name=said["name"],
            state=OperationState(row["state"]),
            parts=said["parts"],
            owner=said["owner"],
            lease=timedelta(seconds=said["lease_seconds"]),
            lease_until=from_micros(said["lease_micros"]),
            epoch=said["epoch"],
            order=said["order"],
            commit_id=row["commit_id"],
            opened_at=from_micros(row["published_micros"]),
            revision=row["revision"],
        )

    def now(self, state: OperationState, **changes: Any) -> OperationRow:
        """The same operation in another state."""
        return replace(self, state=state, **changes)

    def __str__(self) -> str:
        return f"operation {self.name!r} ({self.id}, {self.state.value}, of {self.owner})"


@dataclass(frozen=True)
class PartRow:
    """A staged part, with what publishing needs to find its rows.

    Attributes:
        digest: of its content: the same again is no change.
        floor: the epoch of the latest operation that it is queued behind; 0 if there is none.
        buckets: the buckets of its staged rows.
        based: those buckets of segments that were there when they were claimed.
        low: the lowest key of these segments.
        high: the highest.
    """

    part: int
    digest: str
    segments: int = 0
    drops: int = 0
    objects: int = 0
    floor: int = 0
    buckets: tuple[int, ...] = ()
    based: tuple[int, ...] = ()
    low: str | None = None
    high: str | None = None

    def payload(self) -> str:
        """The JSON document in the row."""
        said = {name: each for name, each in asdict(self).items() if name not in ("part", "digest")}
        return json.dumps(said, ensure_ascii=False)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> PartRow:
        """From a row of kind `part`."""
        said = json.loads(row["payload"])
        said |= {name: tuple(said[name]) for name in ("buckets", "based")}
        return cls(part=row["part"], digest=row["digest"], **said)


@dataclass(frozen=True)
class EpochRow:
    """The stable epoch; `commit_id` is none as long as there is no row."""

    stable: int = 0
    commit_id: str | None = None
    revision: int = 0

    def payload(self) -> str:
        """The JSON document in the row."""
        return json.dumps({"stable": self.stable})

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> EpochRow:
        """From the row of kind `epoch`."""
        return cls(json.loads(row["payload"])["stable"], row["commit_id"], row["revision"])
