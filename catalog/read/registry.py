"""Schemas by fingerprint for a whole process: in memory, or loaded by a single flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

from catalog.errors import CatalogError, LoadInterrupted, UnknownSchema
from catalog.schema import Schema
from catalog.schema.stored import read_stored

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
        self._loading: dict[str, Future[Schema]] = {}
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
        names = tuple(dict.fromkeys(fingerprints))
        self._sweep()
        for fingerprint in names:
            if self._others is not None and self.find(fingerprint) is None:
                held = self._others.held(fingerprint)
                if held is not None:
                    self.learn(held)
        found, mine, theirs = self._claim(names)
        if mine:
            self._fetch(mine, load or self._load)
        for fingerprint, future in mine.items():
            found[fingerprint] = future.result()
        for fingerprint, future in theirs.items():
            try:
                found[fingerprint] = future.result()
            except UnknownSchema:
                # Others may have loaded it as of a version that does not have it.
                found |= self.many([fingerprint], load)
        return {fingerprint: found[fingerprint] for fingerprint in names}

    def find(self, fingerprint: str) -> Schema | None:
        """The schema if this registry has it in memory; never waits."""
        with self._guard:
            return self._remembered(fingerprint)

    def learn(self, schema: Schema) -> None:
        """Remembers a schema that came another way, and ends a load of it that is under way."""
        fingerprint = schema.fingerprint
        with self._guard:
            self._settle(fingerprint, schema)

    def _claim(
        self, names: Sequence[str]
    ) -> tuple[dict[str, Schema], dict[str, Future[Schema]], dict[str, Future[Schema]]]:
        """The known schemas, the loads that this caller has to do, and those of others."""
        found: dict[str, Schema] = {}
        mine: dict[str, Future[Schema]] = {}
        theirs: dict[str, Future[Schema]] = {}
        with self._guard:
            for fingerprint in names:
                schema = self._remembered(fingerprint)
                if schema is not None:
                    found[fingerprint] = schema
                elif fingerprint in self._loading:
                    theirs[fingerprint] = self._loading[fingerprint]
                else:
                    mine[fingerprint] = self._loading[fingerprint] = Future()
        return found, mine, theirs

    def _remembered(self, fingerprint: str) -> Schema | None:
        entry = self._known.get(fingerprint)
        if entry is None:
            return None
        self._known[fingerprint] = (entry[0], self._clock())
        return entry[0]

    def _settle(self, fingerprint: str, schema: Schema) -> None:
        self._known[fingerprint] = (schema, self._clock())
        waiting = self._loading.pop(fingerprint, None)
        if waiting is not None:
            waiting.set_result(schema)

    def _fetch(self, mine: Mapping[str, Future[Schema]], load: Load) -> None:
        """Loads schemas; whatever happens, no caller is left waiting."""
        try:
            payloads = load(tuple(mine))
            for fingerprint, future in mine.items():
                try:
                    self._end(fingerprint, future, _read(fingerprint, payloads))
                except CatalogError as error:
                    self._end(fingerprint, future, error)
        except BaseException as error:
            # An interrupt is meant for this caller, not for those that wait.
            shared = error if isinstance(error, Exception) else LoadInterrupted(_AGAIN)
            for fingerprint, future in mine.items():
                self._end(fingerprint, future, shared)
            raise

    def _end(self, fingerprint: str, future: Future[Schema], outcome: Schema | Exception) -> None:
        with self._guard:
            # A schema that was learned meanwhile has ended the load, and stays.
            if self._loading.get(fingerprint) is not future:
                return
            if isinstance(outcome, Schema):
                self._settle(fingerprint, outcome)
                return
            del self._loading[fingerprint]
        future.set_exception(outcome)

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
