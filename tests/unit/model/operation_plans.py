"""What a plan is in the model of operations: expectations, what is tracked, what is written.

A plan is made from one plain read. None at all means that there is nothing to do or that the caller
is refused; to try again later is to have planned later.
"""

from typing import Any, NamedTuple

from .operation_rows import HOLD, SCHEMA, STAGED, Partition, Row, Table, staged_rows


class Task(NamedTuple):
    """A verb with the key or operation that it is about, and its part or epoch."""

    verb: str
    name: str = ""
    number: int = 0
    fingerprint: str = ""
    seen: Table = ()  # what a broken rule lets it read at an earlier version

    def __str__(self) -> str:
        about = f"{self.name}/{self.number}" if self.verb == "stage" else self.name
        return f"{self.verb} {about or self.number or ''}".rstrip()

    def token(self) -> str:
        """Return what stands for the commit id of the row that a writer writes."""
        return f"{self.verb} {self.name} {self.number}"


class Claim(NamedTuple):
    """No operation but these may have a claim on the key that is not compatible."""

    key: str
    operation: str
    shared: bool
    allowed: tuple[str, ...]

    def holds(self, table: Table) -> bool:
        return not any(
            row.key == self.key
            and row.operation not in self.allowed
            and (row.operation == self.operation or not self.shared or row.action != HOLD)
            for row in staged_rows(table)
        )


class Plan(NamedTuple):
    """A statement to be run: what it tracks, what must be so where it begins, what it writes."""

    tracks: tuple[Partition, ...] = ()
    expects: Table = ()
    absent: tuple[Partition, ...] = ()
    claims: tuple[Claim, ...] = ()
    carries: tuple[str, ...] = ()  # schemas to be inserted if they are not there
    takes: tuple[Partition, ...] = ()  # removes whatever is there
    removes: Table = ()
    adds: Table = ()

    def evaluates(self) -> set[Partition]:
        """Return the partitions that decide what the statement does."""
        rows: set[Partition] = {partition(row) for row in (*self.expects, *self.removes)}
        claimed = {(STAGED, claim.key) for claim in self.claims}
        return rows | claimed | {*self.absent, *self.takes, *schemas(self.carries)}

    def united(self, other: "Plan") -> "Plan":
        fields: list[Any] = [mine + its for mine, its in zip(self, other, strict=True)]
        return Plan(*fields)


# The statements of a process, one after the other, that were planned from one read.
Plans = tuple[Plan, ...]
NOTHING: list[Plans] = [()]


def partition(row: Row) -> Partition:
    return row[0], row[1]


def schemas(fingerprints: tuple[str, ...]) -> tuple[Partition, ...]:
    return tuple((SCHEMA, fingerprint) for fingerprint in fingerprints)
