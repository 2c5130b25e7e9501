"""What the model of operations works with: rows, the changes that are asked for, and the rules."""

from typing import NamedTuple

LIVE, STAGED, PART, OPERATION = "live", "staged", "part", "operation"
EPOCH, SCHEMA, RETIRED = "epoch", "schema", "retired"
# A schema row that a plan has seen and that was removed since. One that comes back later has
# another commit id, so the plan must not take it for the one it has seen.
GONE = "gone"

OPEN, READY, PUBLISHED, ABORTED = "open", "ready", "published", "aborted"
PUT, DROP, HOLD = "put", "drop", "hold"  # hold is shared, the others are exclusive
ABSENT, AFTER = "absent", "after"  # bases that are not the commit id of a row

# Kind and key. Each key has a partition of its own, which gives the fewest conflicts and so the
# most interleavings.
Partition = tuple[str, str]
STABLE: Partition = (EPOCH, "stable")


class Live(NamedTuple):
    """A segment or an object. Who wrote it stands for its commit id: nobody writes a key twice."""

    kind: str
    key: str
    writer: str
    revision: int
    fingerprint: str


class Staged(NamedTuple):
    """A change that an operation has prepared, which is also its claim on the key.

    `over` is not in the real table and no plan looks at it: the writer of the row that the change
    was meant for. The promises compare it with the row that it is applied to.
    """

    kind: str
    key: str
    operation: str
    part: int
    action: str
    fingerprint: str
    base: str
    over: str


class Part(NamedTuple):
    """A part that was acknowledged, and the epoch that its operation may not be published below."""

    kind: str
    key: str
    operation: str
    number: int
    floor: int


class Operation(NamedTuple):
    """An operation. The whole row stands for its commit id: it never is again as it was.

    Time is not in the model: the lease may have run out at any moment, unless it was renewed.
    """

    kind: str
    key: str
    state: str = OPEN
    epoch: int = 0
    order: int = 0
    renewed: bool = False


class Epoch(NamedTuple):
    """The stable epoch. With the number of bumps by ready operations it stands for a commit id."""

    kind: str
    key: str
    stable: int
    bumps: int


# Rows of schemas have a kind and a fingerprint. A table is a sorted multiset, so that it can hold
# a row too many.
Row = Live | Staged | Part | Operation | Epoch | Partition
Table = tuple[Row, ...]


class Change(NamedTuple):
    """What a part does to a key."""

    key: str
    action: str = PUT
    fingerprint: str = ""


Parts = tuple[tuple[Change, ...], ...]


class Rules(NamedTuple):
    """The protocol as designed; a field that is false breaks that part of it."""

    delta_refuses_conflicts: bool = True
    stage_tracks_operation: bool = True
    stage_tracks_claims: bool = True
    stage_tracks_base: bool = True
    stage_expects_part: bool = True
    stage_respects_holds: bool = True
    stage_joins_siblings: bool = True
    stage_expects_siblings: bool = True
    stage_expects_predecessor: bool = True
    stage_tracks_predecessor: bool = True
    stage_sets_floor: bool = True
    stage_carries_schemas: bool = True
    writers_respect_ready: bool = True
    writers_respect_claims: bool = True
    writers_track_claims: bool = True
    decisions_track_operation: bool = True
    publish_reads_once: bool = True
    publish_expects_base: bool = True
    publish_tracks_base: bool = True
    publish_checks_floor: bool = True
    ready_expects_epoch: bool = True
    ready_tracks_epoch: bool = True
    ready_bumps_epoch: bool = True
    ready_checks_floor: bool = True
    ready_is_final: bool = True
    recover_expects_lease: bool = True
    advance_expects_epoch: bool = True
    advance_tracks_epoch: bool = True
    advance_follows_order: bool = True
    advance_counts_operations: bool = True
    sweep_spares_ready: bool = True
    cleanup_counts_staged: bool = True
    cleanup_reads_once: bool = True
    purge_matches_token: bool = True


class Setting(NamedTuple):
    """The rules, and the operations with their parts."""

    rules: Rules
    operations: tuple[tuple[str, Parts], ...]

    def parts(self, operation: str) -> Parts:
        return dict(self.operations)[operation]


def live(key: str, writer: str = "start", revision: int = 1, fingerprint: str = "") -> Live:
    return Live(LIVE, key, writer, revision, fingerprint)


def part_key(operation: str, number: int) -> str:
    return f"{operation}/{number}"


def live_rows(table: Table, key: str) -> tuple[Live, ...]:
    return tuple(row for row in table if isinstance(row, Live) and row.key == key)


def staged_rows(table: Table) -> tuple[Staged, ...]:
    return tuple(row for row in table if isinstance(row, Staged))


def operations(table: Table) -> dict[str, Operation]:
    return {row.key: row for row in table if isinstance(row, Operation)}


def parts(table: Table, operation: str) -> tuple[Part, ...]:
    return tuple(row for row in table if isinstance(row, Part) and row.operation == operation)


def epoch_row(table: Table) -> Epoch | None:
    return next((row for row in table if isinstance(row, Epoch)), None)


def stable_epoch(table: Table) -> int:
    row = epoch_row(table)
    return row.stable if row else 0


def place(operation: Operation) -> tuple[int, int]:
    """Return what ready operations are applied by."""
    return operation.epoch, operation.order
