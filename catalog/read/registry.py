"""Schemas by fingerprint for a whole process: in memory, or loaded by a single flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from catalog.errors import CatalogError, UnknownSchema
from catalog.schema import Schema
from catalog.schema.model import read_stored
from catalog.single_flight import SingleFlight

KEEP = 600.0
_AGAIN = "The load that this call waited for was interrupted; call again."

Load = Callable[[Sequence[str]], Mapping[str, str]]


class Holders(Protocol):
    """Others that have schemas in memory, such as the snapshots of caches."""

    def holds(self, fingerprint: str) -> bool:
        """Whether one of them has the schema; never slow."""

    def held(self, fingerprint: str) -> Schema | None:
        """The schema, if one of them has it."""


class Registry:
    """Gives out schemas; one that is not in memory is loaded before use, never guessed.

    - Callers that need the same schema at one time share a load and its failure; the next caller
      tries again.
    - A loaded schema is used only if it has the requested fingerprint.
    - A schema that was not used for a while is forgotten, unless others hold it.
    """

    def __init__(
        self,
        load: Load,
        others: Holders | None = None,
        keep: float = KEEP,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        load: gives the payloads of those fingerprints that exist, in one query.
        others: others that have schemas in memory.
        keep: the seconds after which an unused schema is forgotten.
        clock: seconds that only go forward.
        """
        self._load = load
        self._others = others
        self._keep = keep
        self._clock = clock
        # Nothing is parsed, loaded or taken from others while it is held.
        self._guard = threading.Lock()
        self._known: dict[str, tuple[Schema, float]] = {}
        self._flight = SingleFlight[Schema](_AGAIN)
        self._swept = clock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, fingerprint: str) -> Schema:
        """The schema with this fingerprint.

        Raises:
            UnknownSchema: There is none.
            CorruptSchema: What is stored under it is something else.
        """
        return self.many([fingerprint])[fingerprint]

    def many(self, fingerprints: Iterable[str], load: Load | None = None) -> dict[str, Schema]:
        """The schemas with these fingerprints; those that are missing come in one load.

        `load` replaces the usual one, to load them as of an earlier version.
        """
        wanted = tuple(dict.fromkeys(fingerprints))
        self._sweep()
        for fingerprint in wanted:
            if self._others is not None and self.find(fingerprint) is None:
                schema = self._others.held(fingerprint)
                if schema is not None:
                    self.learn(schema)
        shared = self._flight.run(wanted, self.find, partial(self._fetch, load or self._load))
        found = shared.known | {name: future.result() for name, future in shared.mine.items()}
        for fingerprint, future in shared.theirs.items():
            try:
                found[fingerprint] = future.result()
            except UnknownSchema:
                # Others may have loaded it as of a version that does not have it.
                found |= self.many([fingerprint], load)
        return {fingerprint: found[fingerprint] for fingerprint in wanted}

    def find(self, fingerprint: str) -> Schema | None:
        """The schema if this registry has it in memory; never waits."""
        with self._guard:
            entry = self._known.get(fingerprint)
            if entry is None:
                return None
            self._known[fingerprint] = (entry[0], self._clock())
            return entry[0]

    def learn(self, schema: Schema) -> None:
        """Remembers a schema that came another way, and ends a load of it that is under way."""
        with self._guard:
            self._known[schema.fingerprint] = (schema, self._clock())
        self._flight.settle(schema.fingerprint, schema)

    def _fetch(self, load: Load, fingerprints: Sequence[str]) -> dict[str, Schema | Exception]:
        payloads = load(fingerprints)
        return {name: self._arrive(name, payloads) for name in fingerprints}

    def _arrive(self, fingerprint: str, payloads: Mapping[str, str]) -> Schema | CatalogError:
        try:
            schema = _read(fingerprint, payloads)
        except CatalogError as error:
            return error
        with self._guard:
            # It may have been learned meanwhile, and what is known stays.
            self._known.setdefault(fingerprint, (schema, self._clock()))
        self._flight.settle(fingerprint, schema)
        return schema

    def _sweep(self) -> None:
        now = self._clock()
        if now - self._swept < self._keep / 2:
            return
        self._swept = now
        with self._guard:
            old = [name for name, (_, used) in self._known.items() if now - used >= self._keep]
        for fingerprint in old:
            if self._others is None or not self._others.holds(fingerprint):
                with self._guard:
                    self._known.pop(fingerprint, None)


def _read(fingerprint: str, payloads: Mapping[str, str]) -> Schema:
    if fingerprint not in payloads:
        raise UnknownSchema(
            f"No schema has the fingerprint {fingerprint}.", fingerprint=fingerprint
        )
    return read_stored(fingerprint, payloads[fingerprint])
