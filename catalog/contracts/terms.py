"""The terms of a datasource: its contract and the limits that tables give, checked together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from catalog.contracts.limits import TableLimit, TableLimits, limits_document, limits_from
from catalog.contracts.model import Breach, Contract, beyond, check_schema, check_size
from catalog.schema import Schema

_TABLES = "tables"


@dataclass(frozen=True)
class Terms:
    """What the row of a datasource says that its segments must be like.

    A publish carries the digest of the terms that it was checked by. A row may have a digest and
    nothing else: larger publishes of an earlier release left one.

    Attributes:
        digest: of the terms as they are stored; none where there are none.
        contract: what was set for the datasource, if something was.
        limits: the least that tables which stand for the datasource give.
    """

    digest: str | None = None
    contract: Contract | None = None
    limits: TableLimits = field(default_factory=dict)

    @classmethod
    def of(cls, contract: Contract | None, limits: TableLimits | None = None) -> Terms:
        """The terms of a contract and of limits, either of which may be missing."""
        text = _text(contract, limits or {})
        digest = None if text is None else hashlib.sha256(text.encode()).hexdigest()
        return cls(digest, contract, dict(limits or {}))

    @classmethod
    def stored(
        cls, digest: str | None, payload: str | None, schema: Callable[[str], Schema]
    ) -> Terms:
        """The terms that a row tells of; `schema` gives the one with a fingerprint."""
        if payload is None:
            return cls(digest)
        return cls(digest, Contract.of_payload(payload, schema), stored_limits(payload))

    def payload(self) -> str | None:
        """The text that is stored: one text for the same terms; none if there are none."""
        return _text(self.contract, self.limits)

    # --- checking ---------------------------------------------------------------------------------

    @property
    def asks(self) -> bool:
        """Whether a segment can break them."""
        return self.contract is not None or bool(self.limits)

    @property
    def refuses(self) -> bool:
        """Whether what breaks them is refused: a contract that only warns speaks for tables too."""
        return self.contract is None or self.contract.refuses

    def most(self, name: str) -> int | None:
        """The least limit of a name, whoever gives it."""
        given = [] if self.contract is None else [self.contract.limits.get(name)]
        given += [self.limits[name].most] if name in self.limits else []
        return min((each for each in given if each is not None), default=None)

    def check_schema(self, schema: Schema | None) -> tuple[Breach, ...]:
        """What of a schema breaks them."""
        found = () if self.contract is None else check_schema(self.contract, schema)
        count = None if schema is None else len(schema.struct().fields)
        return (*found, *self._beyond("max_columns", "columns", count))

    def check_size(self, num_rows: int | None, size_bytes: int | None) -> tuple[Breach, ...]:
        """What of a segment's size breaks them."""
        found = () if self.contract is None else check_size(self.contract, num_rows, size_bytes)
        return (
            *found,
            *self._beyond("max_rows", "rows", num_rows),
            *self._beyond("max_bytes", "bytes", size_bytes),
        )

    def _beyond(self, rule: str, what: str, count: int | None) -> tuple[Breach, ...]:
        limit = self.limits.get(rule)
        return () if limit is None else (*beyond(rule, what, count, limit.most, limit.table),)


NO_TERMS = Terms()


def stored_limits(payload: str) -> dict[str, TableLimit]:
    """The limits of tables in terms as they are stored."""
    return limits_from(json.loads(payload).get(_TABLES, {}))


def _text(contract: Contract | None, limits: TableLimits) -> str | None:
    # A contract alone has the text that it had before tables could give limits.
    said: dict[str, Any] = {} if contract is None else json.loads(contract.payload())
    if limits:
        said[_TABLES] = limits_document(limits)
    return json.dumps(said, sort_keys=True, separators=(",", ":")) if said else None
