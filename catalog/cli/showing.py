"""Progress for people: a bar with an estimate on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from catalog.progress import Progress, Step

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

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
        self._done = 0

    def __call__(self, step: Step) -> None:
        now = self._clock()
        if step.done < self._done:  # other work has begun
            self._began = now
        self._done = step.done
        if now - self._told >= EVERY:
            self._told = now
            rest = estimate(step, now - self._began)
            print(f"{step.what}: {step.done} of {step.total}{rest}", file=self._err, flush=True)


@contextmanager
def showing(long: bool, err: TextIO | None = None) -> Iterator[Progress]:
    """Shows steps while inside: of long work that prints nothing meanwhile, with a bar."""
    err = err or sys.stderr
    if not long or not err.isatty():
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
        from rich.progress import Progress as Drawn
    except ImportError:
        yield Lines(err)
        return
    bars = Drawn(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(file=err),
        transient=True,
        # What a command prints goes where it was sent, not through the bar's console.
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bars:
        yield _Bar(bars)


class _Bar:
    """One bar, begun anew when other work begins."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._task = bars.add_task("working", total=None)
        self._done = 0

    def __call__(self, step: Step) -> None:
        if step.done < self._done:
            self._bars.reset(self._task)
        self._done = step.done
        self._bars.update(self._task, description=step.what, completed=step.done, total=step.total)
