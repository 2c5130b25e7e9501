"""Progress for people: a bar with an estimate on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from catalog.progress import Progress, Step

EVERY = 10.0


def estimate(step: Step, spent: float) -> str:
    """How long the rest will take if it goes on as it went."""
    if step.done <= 0 or step.total <= step.done:
        return ""
    left = spent / step.done * (step.total - step.done)
    return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"


class Lines:
    """A line on a stream at most every ten seconds."""

    def __init__(self, err: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._err = err
        self._clock = clock
        self._began = self._told = clock()

    def __call__(self, step: Step) -> None:
        now = self._clock()
        if now - self._told >= EVERY:
            self._told = now
            rest = estimate(step, now - self._began)
            print(f"{step.what}: {step.done} of {step.total}{rest}", file=self._err, flush=True)


@contextmanager
def showing(err: TextIO | None = None) -> Iterator[Progress]:
    """Shows steps while inside."""
    err = err or sys.stderr
    if not err.isatty():
        yield Lines(err)
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars
    except ImportError:
        yield Lines(err)
        return
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=err),
        transient=True,
    )
    with bars:
        task = bars.add_task("working", total=None)
        yield lambda step: bars.update(
            task, description=step.what, completed=step.done, total=step.total
        )
