"""A name and its versions without a table: registrations one after the other."""

from __future__ import annotations

from typing import Any

from catalog import Schema
from catalog.evolution import Mode
from catalog.names.plan import NameHistory, Planned, Registration, plan


class Book:
    """What a table would hold of one name."""

    def __init__(self, mode: str = "backward") -> None:
        self.mode = Mode(mode)
        self.history: NameHistory | None = None

    def register(self, schema: Schema | str, **wanted: Any) -> Planned:
        """Plans a registration, and writes what it plans."""
        asked = Registration("orders", Schema.of(schema), **wanted)
        if self.history is None and asked.mode is None:
            asked = Registration(
                "orders", asked.schema, self.mode, asked.base, asked.force, asked.note
            )
        planned = plan(self.history, asked)
        if not planned.repeated:
            before = self.history
            self.history = NameHistory(
                planned.head,
                (*(before.versions if before else ()), planned.version),
                {
                    **(before.schemas if before else {}),
                    planned.schema.fingerprint: planned.schema,
                },
            )
        return planned

    @property
    def written(self) -> NameHistory:
        assert self.history is not None
        return self.history

    @property
    def schema(self) -> Schema:
        return self.written.schema(self.written.head.current)

    @property
    def dropped(self) -> dict[str, tuple[str, int]]:
        return {path: (each.type, each.since) for path, each in self.written.head.dropped.items()}


def book(*schemas: str, mode: str = "backward") -> Book:
    """A name with these versions, forced where needed."""
    made = Book(mode)
    for schema in schemas:
        made.register(schema, force=True)
    return made
