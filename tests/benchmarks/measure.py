"""Timing side by side: works take turns in one run, so that noise meets all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Preparing happens outside of the clock; what it returns is timed.
Work = Callable[[], Callable[[], object]]


@dataclass(frozen=True)
class Timing:
    """The seconds that one work took, round by round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def low(self) -> float:
        """The first quartile; the smallest of fewer than four."""
        return self._quartile(0)

    @property
    def high(self) -> float:
        """The third quartile; the largest of fewer than four."""
        return self._quartile(2)

    @property
    def slowest(self) -> float:
        return max(self.seconds)

    def _quartile(self, which: int) -> float:
        if len(self.seconds) < 4:
            return (min if which == 0 else max)(self.seconds)
        return statistics.quantiles(self.seconds, n=4, method="inclusive")[which]


def interleave(works: Mapping[str, Work], rounds: int, warmups: int = 1) -> dict[str, Timing]:
    """Times every work once a round, each round beginning with another; warm-ups are discarded."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for turn in range(warmups + rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            run = works[name]()
            took = once(run)
            if turn >= warmups:
                seconds[name].append(took)
    return {name: Timing(tuple(taken)) for name, taken in seconds.items()}


def once(run: Callable[[], object]) -> float:
    """The seconds that one call takes, without a garbage collection that others caused."""
    gc.collect()
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def ready(run: Callable[[], object]) -> Work:
    """A work that needs no preparation."""
    return lambda: run
