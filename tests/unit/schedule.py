"""Runs actors in threads of which only one goes on at a time, in an order that is drawn."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

PATIENCE = 20.0


@dataclass
class _Actor:
    work: Callable[[], None]
    mover: bool
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    inside: bool = False
    done: bool = False
    error: BaseException | None = None


class Schedule:
    """Every order of steps can be drawn; the same seed draws the same order.

    An actor calls `point` between its steps. A mover that stops inside a lock is the only mover to
    go on until it has left it; readers go on at any time.
    """

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._actors: list[_Actor] = []
        self._here = threading.local()
        self._back = threading.Semaphore(0)

    def reader(self, work: Callable[[], None]) -> None:
        self._actors.append(_Actor(work, mover=False))

    def mover(self, work: Callable[[], None]) -> None:
        self._actors.append(_Actor(work, mover=True))

    def point(self, inside: bool = False) -> None:
        """The actor that calls it may have to wait here while others go on."""
        actor: _Actor | None = getattr(self._here, "actor", None)
        if actor is None:
            return  # nobody's step: what a test does before and after
        actor.inside = inside
        self._back.release()
        assert actor.go.acquire(timeout=PATIENCE)

    def run(self) -> None:
        """Runs all actors to their ends; raises what one of them raised."""
        threads = [threading.Thread(target=self._live, args=(a,)) for a in self._actors]
        for thread in threads:
            thread.start()
        while waiting := [actor for actor in self._actors if not actor.done]:
            held = [actor for actor in waiting if actor.inside]
            free = [actor for actor in waiting if not held or not actor.mover or actor in held]
            self.chance.choice(free).go.release()
            assert self._back.acquire(timeout=PATIENCE), "an actor hangs"
        for thread in threads:
            thread.join()
        for actor in self._actors:
            if actor.error is not None:
                raise actor.error

    def _live(self, actor: _Actor) -> None:
        actor.go.acquire()
        self._here.actor = actor
        try:
            actor.work()
        except BaseException as error:
            actor.error = error
        finally:
            actor.done, actor.inside = True, False
            self._back.release()
