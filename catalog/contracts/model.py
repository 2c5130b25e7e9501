"""A contract as a value, and what breaks it: no session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from catalog.contracts.limits import LIMITS
from catalog.errors import InvalidInput
from catalog.evolution.compatibility import ChangeKind, ColumnChange, Mode, compatibility
from catalog.evolution.merge import Policy
from catalog.model import check_positive
from catalog.schema import Schema
from catalog.schema.names import shown
from catalog.words import chosen

MODES = (Mode.NONE, Mode.BACKWARD, Mode.FORWARD, Mode.FULL)


class Enforcement(StrEnum):
    """How a segment's schema must get on with the contract's, and what becomes of one that does
    not."""

    # Columns are not compared.
    NONE = "none"
    # As subset, but what breaks the contract is reported and goes in.
    WARN = "warn"
    # The contract's schema can hold the segment's data.
    SUBSET = "subset"
    # The schemas are the same, up to the order of columns.
    STRICT = "strict"


@dataclass(frozen=True)
class Contract:
    """What the segments of a datasource must be like.

    Args:
        schema: anything that `Schema.of` takes; what segments' schemas are compared with.
        enforcement: "none", "warn", "subset" or "strict", see `Enforcement`.
        mode: "none", "backward", "forward" or "full": who must be able to read whose data, if the
            contract's schema is the old one and a segment's the new one, see `compatibility`.
        max_rows: of one segment.
        max_bytes: of one segment.
        max_columns: at the top of a segment's schema.
        policy: "strict", "widest" or "latest": what becomes of columns whose types have no common
            one where the datasource is read and the reader does not say, see `merge`.
    """

    schema: Schema | None = None
    enforcement: str = Enforcement.NONE
    mode: str = Mode.NONE
    max_rows: int | None = None
    max_bytes: int | None = None
    max_columns: int | None = None
    policy: str | None = None

    def __post_init__(self) -> None:
        if self.schema is not None:
            object.__setattr__(self, "schema", Schema.of(self.schema))
        enforcement = chosen(Enforcement, "enforcement", self.enforcement)
        if self.mode not in MODES:
            words = ", ".join(f'"{mode}"' for mode in MODES)
            raise InvalidInput(f"mode must be one of {words}, not {self.mode!r}.", mode=self.mode)
        for name in LIMITS:
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        if self.policy is not None:
            object.__setattr__(self, "policy", chosen(Policy, "policy", self.policy))
        object.__setattr__(self, "enforcement", enforcement)
        object.__setattr__(self, "mode", Mode(self.mode))
        if self.schema is None and (
            enforcement in (Enforcement.SUBSET, Enforcement.STRICT) or self.mode != Mode.NONE
        ):
            raise InvalidInput(
                f'A contract with enforcement "{enforcement}" and mode "{self.mode}" compares '
                "schemas; give it the schema to compare with.",
                enforcement=self.enforcement,
                mode=self.mode,
            )
        if self.schema is None and not self.limits and self.policy is None:
            raise InvalidInput(
                "The contract says nothing: give it a schema, a limit or a policy. To have none, "
                "call remove_contract."
            )

    @property
    def limits(self) -> dict[str, int]:
        """The limits that it sets, by their names."""
        given = {name: getattr(self, name) for name in LIMITS}
        return {name: limit for name, limit in given.items() if limit is not None}

    @property
    def refuses(self) -> bool:
        """Whether what breaks it is refused rather than reported."""
        return self.enforcement != Enforcement.WARN

    @property
    def fingerprint(self) -> str | None:
        """The id of its schema, if it has one."""
        return None if self.schema is None else self.schema.fingerprint

    def payload(self) -> str:
        """The terms as they are stored: one text for one contract, with the schema by its id."""
        return json.dumps(
            {
                "enforcement": self.enforcement,
                "fingerprint": self.fingerprint,
                "mode": self.mode,
                # Left out where it is not given: earlier texts have none.
                **({} if self.policy is None else {"policy": self.policy}),
                **self.limits,
            },
            sort_keys=True,
            separators=(",", ":"),
        )

    @classmethod
    def of_payload(cls, text: str, schema: Callable[[str], Schema]) -> Contract | None:
        """The contract that a row tells of, if any; `schema` gives the one with a fingerprint."""
        said: dict[str, Any] = json.loads(text)
        said.pop("tables", None)  # their limits are no part of it
        if not said:
            return None
        fingerprint = said.pop("fingerprint")
        return cls(schema=None if fingerprint is None else schema(fingerprint), **said)


@dataclass(frozen=True)
class Breach:
    """One thing that breaks a contract.

    Attributes:
        path: the column, by its names from the top; empty if it is about the segment as a whole.
        rule: what it breaks: "unknown", "missing", "type", "nullable" or "spelling" of a column, a
            mode, or the name of a limit.
        words: what is wrong.
        table: key of the table that gives the limit, if it is not the contract's.
    """

    path: str
    rule: str
    words: str
    table: str | None = None

    def __str__(self) -> str:
        return f"{shown(self.path)} {self.words}" if self.path else self.words


def check(
    contract: Contract, schema: Schema | None, num_rows: int | None, size_bytes: int | None
) -> tuple[Breach, ...]:
    """What of a segment breaks a contract; what is not known yet cannot.

    A contract that only warns is broken by the same as one of subset.
    """
    return (
        *check_schema(contract, schema),
        *check_size(contract, num_rows, size_bytes),
    )


def check_schema(contract: Contract, schema: Schema | None) -> tuple[Breach, ...]:
    """What of a schema breaks a contract, each column once."""
    if schema is None:
        return ()
    found = list(_columns(contract, schema))
    if contract.max_columns is not None:
        count = len(schema.struct().fields)
        found += beyond("max_columns", "columns", count, contract.max_columns)
    return tuple(found)


def check_size(
    contract: Contract, num_rows: int | None, size_bytes: int | None
) -> tuple[Breach, ...]:
    """What of a segment's size breaks a contract."""
    return (
        *beyond("max_rows", "rows", num_rows, contract.max_rows),
        *beyond("max_bytes", "bytes", size_bytes, contract.max_bytes),
    )


def beyond(
    rule: str, what: str, count: int | None, limit: int | None, table: str | None = None
) -> Iterator[Breach]:
    """What is wrong with a number that is larger than a limit; one that is not known is not."""
    if count is not None and limit is not None and count > limit:
        by = "" if table is None else f" by {table}"
        yield Breach("", rule, f"{count:,} {what}, at most {limit:,} are allowed{by}", table)


def _columns(contract: Contract, schema: Schema) -> Iterator[Breach]:
    if contract.schema is None or contract.schema == schema:
        return
    wanted, mode = Enforcement(contract.enforcement), Mode(contract.mode)
    for change in compatibility(contract.schema, schema).changes:
        if wanted is Enforcement.STRICT or (
            wanted is not Enforcement.NONE and change.kind not in _HELD
        ):
            yield Breach(change.path, _RULES[change.kind], _told(change))
        elif not mode.allows(change):
            yield Breach(change.path, mode.value, f"{_told(change)}: {change.reason}")


# What a schema that can hold the other's data may differ in: it is superior to the other.
_HELD = {ChangeKind.DROPPED_NULLABLE, ChangeKind.NARROWED, ChangeKind.MADE_REQUIRED}

_RULES = {
    ChangeKind.ADDED_NULLABLE: "unknown",
    ChangeKind.ADDED_REQUIRED: "unknown",
    ChangeKind.DROPPED_NULLABLE: "missing",
    ChangeKind.DROPPED_REQUIRED: "missing",
    ChangeKind.WIDENED: "type",
    ChangeKind.NARROWED: "type",
    ChangeKind.RETYPED: "type",
    ChangeKind.MADE_NULLABLE: "nullable",
    ChangeKind.MADE_REQUIRED: "nullable",
    ChangeKind.RESPELLED: "spelling",
}


def _told(change: ColumnChange) -> str:
    """What a column is like, and what the contract says."""
    match _RULES[change.kind]:
        case "unknown":
            return "is not in the contract"
        case "missing":
            must = " and must not be null" if change.kind is ChangeKind.DROPPED_REQUIRED else ""
            return f"is missing; in the contract it is {shown(change.old or '')}{must}"
        case "nullable":
            may = change.kind is ChangeKind.MADE_NULLABLE
            return f"{'may' if may else 'must not'} be null; in the contract it " + (
                "must not" if may else "may"
            )
        case _:
            return f"is {shown(change.new or '')}; in the contract it is {shown(change.old or '')}"
