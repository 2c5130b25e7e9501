"""Contracts, and the terms that they form with the limits of tables: values and checks, pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from catalog.errors import InvalidInput
from catalog.evolution.compatibility import ChangeKind, Mode, compatibility
from catalog.evolution.merge import Policy
from catalog.model import Breach, check_positive
from catalog.schema import Schema
from catalog.schema.names import shown
from catalog.words import chosen

MODES = (Mode.NONE, Mode.BACKWARD, Mode.FORWARD, Mode.FULL)
LIMITS = ("max_rows", "max_bytes", "max_columns")
_TABLES = "tables"


class Enforcement(StrEnum):
    """How a segment's schema is compared with the contract's, and whether a breach is refused."""

    # Columns are not compared.
    NONE = "none"
    # As subset, but breaches are only reported.
    WARN = "warn"
    # The contract's schema can hold the segment's data.
    SUBSET = "subset"
    # The schemas are the same, up to the order of columns.
    STRICT = "strict"


@dataclass(frozen=True)
class Contract:
    """What the segments of a datasource must be like.

    Args:
        schema: anything that `Schema.of` takes; segments' schemas are compared with it.
        enforcement: "none", "warn", "subset" or "strict", see `Enforcement`.
        mode: "none", "backward", "forward" or "full": who must be able to read whose data, with
            the contract's schema as the old and a segment's as the new one, see `compatibility`.
        max_rows: of one segment.
        max_bytes: of one segment.
        max_columns: at the top level of a segment's schema.
        policy: "strict", "widest" or "latest": how columns whose types have no common type are
            merged when the datasource is read and the reader names no policy, see `merge`.
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
                "call contracts.remove."
            )

    @property
    def limits(self) -> dict[str, int]:
        """The limits that it sets, by name."""
        given = {name: getattr(self, name) for name in LIMITS}
        return {name: limit for name, limit in given.items() if limit is not None}

    @property
    def refuses(self) -> bool:
        """Whether breaches are refused rather than reported."""
        return self.enforcement != Enforcement.WARN

    @property
    def fingerprint(self) -> str | None:
        """The id of its schema, if it has one."""
        return None if self.schema is None else self.schema.fingerprint

    def document(self) -> dict[str, Any]:
        """The JSON document that is stored, with the schema by its fingerprint."""
        return {
            "enforcement": self.enforcement,
            "fingerprint": self.fingerprint,
            "mode": self.mode,
            # Left out if not given: the digests of texts without one must not change.
            **({} if self.policy is None else {"policy": self.policy}),
            **self.limits,
        }

    @classmethod
    def of_document(cls, document: dict[str, Any], schema: Callable[[str], Schema]) -> Contract:
        """The contract in a stored document; `schema` finds a schema by its fingerprint."""
        given = dict(document)
        fingerprint = given.pop("fingerprint")
        return cls(schema=None if fingerprint is None else schema(fingerprint), **given)


# --- schemas --------------------------------------------------------------------------------------

# Differences that a schema may have if the contract's can hold its data.
_HELD = {ChangeKind.DROPPED_NULLABLE, ChangeKind.NARROWED, ChangeKind.MADE_REQUIRED}

_OTHER_TYPE = "is {new}; in the contract it is {old}"
_MISSING = "is missing; in the contract it is {old}"
# For each difference the rule that it breaks, and what is wrong.
_RULES = {
    ChangeKind.ADDED_NULLABLE: ("unknown", "is not in the contract"),
    ChangeKind.ADDED_REQUIRED: ("unknown", "is not in the contract"),
    ChangeKind.DROPPED_NULLABLE: ("missing", _MISSING),
    ChangeKind.DROPPED_REQUIRED: ("missing", f"{_MISSING} and must not be null"),
    ChangeKind.WIDENED: ("type", _OTHER_TYPE),
    ChangeKind.NARROWED: ("type", _OTHER_TYPE),
    ChangeKind.RETYPED: ("type", _OTHER_TYPE),
    ChangeKind.MADE_NULLABLE: ("nullable", "may be null; in the contract it must not"),
    ChangeKind.MADE_REQUIRED: ("nullable", "must not be null; in the contract it may"),
    ChangeKind.RESPELLED: ("spelling", _OTHER_TYPE),
}


def _column_breaches(contract: Contract, schema: Schema) -> Iterator[Breach]:
    """Columns of a schema that break a contract, each once."""
    if contract.schema is None or contract.schema == schema:
        return
    enforcement, mode = Enforcement(contract.enforcement), Mode(contract.mode)
    for change in compatibility(contract.schema, schema).changes:
        rule, text = _RULES[change.kind]
        words = text.format(old=shown(change.old or ""), new=shown(change.new or ""))
        if enforcement is Enforcement.STRICT or (
            enforcement is not Enforcement.NONE and change.kind not in _HELD
        ):
            yield Breach(change.path, rule, words)
        elif not mode.allows(change):
            yield Breach(change.path, mode.value, f"{words}: {change.reason}")


# --- limits of tables -----------------------------------------------------------------------------


@dataclass(frozen=True)
class TableLimit:
    """The lowest limit of one name that tables set for their datasource, and which table does."""

    most: int
    table: str


# By the names of the limits.
TableLimits = Mapping[str, TableLimit]


def limits_in(document: Any) -> dict[str, int]:
    """The limits in the body of a table; values that break a rule of the type are ignored."""
    if not isinstance(document, Mapping):
        return {}
    given = {name: document.get(name) for name in LIMITS}
    return {name: most for name, most in given.items() if type(most) is int and most > 0}


def least(given: Iterable[tuple[str, Mapping[str, int]]]) -> dict[str, TableLimit]:
    """The lowest of each limit that some tables set; of equal ones, that of the first table."""
    found: dict[str, TableLimit] = {}
    for table, limits in sorted(given):
        for name, most in limits.items():
            if name not in found or most < found[name].most:
                found[name] = TableLimit(most, table)
    return found


def limits_document(limits: TableLimits) -> dict[str, Any]:
    """The limits as a JSON document."""
    return {
        name: {"most": limit.most, "table": limit.table} for name, limit in sorted(limits.items())
    }


def stored_limits(payload: str) -> dict[str, TableLimit]:
    """The limits of tables in the stored terms of a datasource."""
    document = json.loads(payload).get(_TABLES, {})
    return {name: TableLimit(each["most"], each["table"]) for name, each in document.items()}


# --- both together --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """What the row of a datasource says about its segments: a contract and limits of tables.

    A publish carries the digest of the terms that its segments were checked against. A row may
    have a digest and nothing else: large publishes of an earlier release wrote such rows.

    Attributes:
        digest: of the terms as they are stored; none where there are none.
        contract: the contract of the datasource, if there is one.
        limits: the lowest limits of the tables that represent the datasource.
    """

    digest: str | None = None
    contract: Contract | None = None
    limits: TableLimits = field(default_factory=dict)

    @classmethod
    def of(cls, contract: Contract | None, limits: TableLimits | None = None) -> Terms:
        """The terms of a contract and of limits, either of which may be missing."""
        terms = cls(None, contract, dict(limits or {}))
        text = terms.payload()
        digest = None if text is None else hashlib.sha256(text.encode()).hexdigest()
        return cls(digest, contract, terms.limits)

    @classmethod
    def stored(
        cls, digest: str | None, payload: str | None, schema: Callable[[str], Schema]
    ) -> Terms:
        """The terms in a row; `schema` finds a schema by its fingerprint."""
        if payload is None:
            return cls(digest)
        document = json.loads(payload)
        document.pop(_TABLES, None)
        contract = Contract.of_document(document, schema) if document else None
        return cls(digest, contract, stored_limits(payload))

    def payload(self) -> str | None:
        """The text that is stored, the same for equal terms; none if there are none."""
        # A contract alone has the text that it had before tables could set limits.
        document = {} if self.contract is None else self.contract.document()
        if self.limits:
            document[_TABLES] = limits_document(self.limits)
        # ASCII, unlike other payloads: digests of stored texts must not change.
        return json.dumps(document, sort_keys=True, separators=(",", ":")) if document else None

    @property
    def asks(self) -> bool:
        """Whether a segment can break them."""
        return self.contract is not None or bool(self.limits)

    @property
    def refuses(self) -> bool:
        """Whether breaches are refused: with a contract that only warns, limits only warn too."""
        return self.contract is None or self.contract.refuses

    def most(self, name: str) -> int | None:
        """The lowest limit of a name, from the contract or from tables."""
        return min((most for _, most, _ in self._limits([name])), default=None)

    def check_schema(self, schema: Schema | None) -> tuple[Breach, ...]:
        """How a schema breaks them; one that is not known yet does not."""
        if schema is None:
            return ()
        columns = () if self.contract is None else _column_breaches(self.contract, schema)
        return (*columns, *self._beyond(max_columns=len(schema.struct().fields)))

    def check_size(self, num_rows: int | None, size_bytes: int | None) -> tuple[Breach, ...]:
        """How the size of a segment breaks them; one that is not known does not."""
        return (*self._beyond(max_rows=num_rows, max_bytes=size_bytes),)

    def _beyond(self, **counts: int | None) -> Iterator[Breach]:
        for name, most, table in self._limits(counts):
            count = counts[name]
            if count is not None and count > most:
                what = name.removeprefix("max_")
                by = "" if table is None else f" by {table}"
                yield Breach("", name, f"{count:,} {what}, at most {most:,} are allowed{by}", table)

    def _limits(self, names: Iterable[str]) -> Iterator[tuple[str, int, str | None]]:
        """Name, value and table of the limits, those of the contract first."""
        wanted = list(names)
        own = {} if self.contract is None else self.contract.limits
        yield from ((name, own[name], None) for name in wanted if name in own)
        for name in wanted:
            if name in self.limits:
                yield name, self.limits[name].most, self.limits[name].table


NO_TERMS = Terms()
