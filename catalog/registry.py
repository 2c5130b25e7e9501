"""Schemas by fingerprint for a whole process: in memory, or loaded once for all who wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future

from catalog.errors import LoadInterrupted, UnknownSchema
from catalog.schema import Schema
from catalog.schema.stored import read_stored

KEEP = 600.0
_AGAIN = "The load that this call waited for was interrupted; call again."

Load = Callable[[Sequence[str]], Mapping[str, str]]
Held = Callable[[str], Schema | None]


def _nowhere(fingerprint: str) -> Schema | None:
    return None


class Registry:
    """Gives out schemas; one that is not in memory is loaded before use, never guessed.

    - Callers that want the same schema at one time share a load, and its failure; the next caller
      tries again.
    - What was loaded is believed only if it has the fingerprint that was asked for.
    - A schema that nobody asked for in a while is forgotten, unless a snapshot holds it.
    """

    def __init__(
        self,
        load: Load,
        held: Held = _nowhere,
        keep: float = KEEP,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        load: gives the payloads of those fingerprints that there are, in one query.
        held: gives a schema that somebody else has in memory, such as a cache's snapshot.
        keep: after how many seconds a schema that nobody asks for is forgotten.
        clock: seconds that only go forward.
        """
        self._load = load
        self._held = held
        self._keep = keep
        self._clock = clock
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

        `load` takes the place of the usual one, for who looks for them at an earlier version.
        """
        wanted = dict.fromkeys(fingerprints)
        found: dict[str, Schema] = {}
        mine: dict[str, Future[Schema]] = {}
        theirs: dict[str, Future[Schema]] = {}
        with self._guard:
            self._sweep()
            for fingerprint in wanted:
                schema = self._remembered(fingerprint)
                if schema is not None:
                    found[fingerprint] = schema
                elif fingerprint in self._loading:
                    theirs[fingerprint] = self._loading[fingerprint]
                else:
                    mine[fingerprint] = self._loading[fingerprint] = Future()
        if mine:
            self._fetch(mine, load or self._load)
        for fingerprint, future in {**mine, **theirs}.items():
            found[fingerprint] = future.result()
        return {fingerprint: found[fingerprint] for fingerprint in wanted}

    def find(self, fingerprint: str) -> Schema | None:
        """The schema if it is in memory; never waits."""
        with self._guard:
            return self._remembered(fingerprint)

    def learn(self, schema: Schema) -> None:
        """Remembers a schema that came another way; a load of it that is under way is over."""
        with self._guard:
            self._settle(schema.fingerprint, schema)

    def _remembered(self, fingerprint: str) -> Schema | None:
        entry = self._known.get(fingerprint)
        schema = self._held(fingerprint) if entry is None else entry[0]
        if schema is not None:
            self._known[fingerprint] = (schema, self._clock())
        return schema

    def _settle(self, fingerprint: str, schema: Schema) -> None:
        self._known[fingerprint] = (schema, self._clock())
        waiting = self._loading.pop(fingerprint, None)
        if waiting is not None:
            waiting.set_result(schema)

    def _fetch(self, mine: Mapping[str, Future[Schema]], load: Load) -> None:
        try:
            payloads = load(tuple(mine))
        except BaseException as error:
            # Who waits must not be told of an interrupt that was not meant for them.
            told = error if isinstance(error, Exception) else LoadInterrupted(_AGAIN)
            for fingerprint, future in mine.items():
                self._fail(fingerprint, future, told)
            raise
        for fingerprint, future in mine.items():
            try:
                if fingerprint not in payloads:
                    raise UnknownSchema(
                        f"No schema has the fingerprint {fingerprint}.", fingerprint=fingerprint
                    )
                schema = read_stored(fingerprint, payloads[fingerprint])
            except Exception as error:
                self._fail(fingerprint, future, error)
            else:
                self._arrive(fingerprint, future, schema)

    def _arrive(self, fingerprint: str, future: Future[Schema], schema: Schema) -> None:
        with self._guard:
            # Somebody may have taught it meanwhile, and what is known stays.
            if self._loading.get(fingerprint) is future:
                self._settle(fingerprint, schema)

    def _fail(self, fingerprint: str, future: Future[Schema], error: Exception) -> None:
        with self._guard:
            if self._loading.get(fingerprint) is not future:
                return
            del self._loading[fingerprint]
        future.set_exception(error)

    def _sweep(self) -> None:
        now = self._clock()
        if now - self._swept < self._keep / 2:
            return
        self._swept = now
        for fingerprint, (_, used) in list(self._known.items()):
            if now - used >= self._keep and self._held(fingerprint) is None:
                del self._known[fingerprint]
