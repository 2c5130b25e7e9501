"""Single flight: concurrent callers that need the same value share one load of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from catalog.errors import LoadInterrupted

Value = TypeVar("Value")


@dataclass(frozen=True)
class Shared(Generic[Value]):
    """The values of one call: known ones, its own loads, and loads of other callers.

    The loads of the call itself are over; those of others may still run.
    """

    known: dict[str, Value] = field(default_factory=dict)
    mine: dict[str, Future[Value]] = field(default_factory=dict)
    theirs: dict[str, Future[Value]] = field(default_factory=dict)

    def result(self) -> dict[str, Value]:
        """All values, when the loads of others are over; raises the first failure."""
        loads = {**self.mine, **self.theirs}
        return self.known | {key: future.result() for key, future in loads.items()}


class SingleFlight(Generic[Value]):
    """Runs loads by key, at most one at a time for each key."""

    def __init__(self, interrupted: str) -> None:
        """`interrupted` is the message for callers whose load another thread did not finish."""
        self._interrupted = interrupted
        self._guard = threading.Lock()
        self._loads: dict[str, Future[Value]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._loads

    def run(
        self,
        keys: Iterable[str],
        known: Callable[[str], Value | None],
        load: Callable[[Sequence[str]], Mapping[str, Value | Exception]],
    ) -> Shared[Value]:
        """Loads the keys that are neither known nor being loaded.

        Args:
            keys: the keys of this call.
            known: the value of a key without a load. It is called under a lock, so that a value
                that `load` made known before it returned is not loaded again.
            load: the values of some keys, or their failures.
        """
        shared = Shared[Value]()
        mine = shared.mine
        try:
            with self._guard:
                for key in dict.fromkeys(keys):
                    value = known(key)
                    if value is not None:
                        shared.known[key] = value
                    elif key in self._loads:
                        shared.theirs[key] = self._loads[key]
                    else:
                        mine[key] = self._loads[key] = Future()
            loaded = load(tuple(mine)) if mine else {}
            for key, future in mine.items():
                self._end(key, future, loaded[key])
        except BaseException as error:
            # An interrupt is meant for this thread only; callers that wait may try again.
            failure = error if isinstance(error, Exception) else LoadInterrupted(self._interrupted)
            for key, future in mine.items():
                self._end(key, future, failure)
            raise
        return shared

    def settle(self, key: str, value: Value) -> None:
        """Ends a load of the key with a value that became known in another way."""
        future = self._loads.get(key)
        if future is not None:
            self._end(key, future, value)

    def _end(self, key: str, future: Future[Value], outcome: Value | Exception) -> None:
        with self._guard:
            if self._loads.get(key) is not future:
                return  # settled already
            # Before the key is removed: an interrupt in between must not leave callers waiting.
            if not future.done():
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
            del self._loads[key]
