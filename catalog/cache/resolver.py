"""Finds the schema of a segment that was published without one, when somebody asks for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime

from catalog.backfill.waiting import Completion, Trouble, Waiting, completed, troubled
from catalog.cache.courier import Courier
from catalog.cache.places import Found, Places
from catalog.errors import LoadInterrupted
from catalog.files.footers import Footer
from catalog.read.formats import Place, place_of

_AGAIN = "The reading of a file that this call waited for was interrupted; call again."

Outcome = Found | Trouble | None
Search = Callable[[Sequence[str]], list[Waiting]]
Describe = Callable[[Sequence[Place]], list[Footer | str]]


@dataclass(frozen=True)
class ResolverFigures:
    """What a resolver has done so far.

    Attributes:
        asked: segments that somebody asked for while their schema was not known.
        resolved: those whose data said it.
        failed: those whose data did not.
        seconds: time spent on asking the table and the data.
        refused: answers that were given but not kept, because too many were pending.
        resting: segments whose data did not say it, and that are not asked again yet.
    """

    asked: int = 0
    resolved: int = 0
    failed: int = 0
    seconds: float = 0.0
    refused: int = 0
    resting: int = 0


class Resolver:
    """Asks the data of segments, each once however many callers wait for it."""

    def __init__(
        self,
        places: Places,
        courier: Courier,
        search: Search,
        describe: Describe,
        clock: Callable[[], datetime],
        default_format: str | None = None,
    ) -> None:
        """Args:
        places: where answers are put until they are published.
        courier: stores them.
        search: gives those of some segments that wait for their schema in the table.
        describe: asks the data at some places.
        clock: the time.
        default_format: the format of locations that do not say theirs.
        """
        self._places = places
        self._courier = courier
        self._search = search
        self._describe = describe
        self._clock = clock
        self._format = default_format
        self._guard = threading.Lock()
        self._asking: dict[str, Future[Outcome]] = {}
        self._resting: dict[str, Trouble] = {}
        self._figures = ResolverFigures()

    @property
    def figures(self) -> ResolverFigures:
        """What was done so far."""
        with self._guard:
            return _with(self._figures, resting=len(self._resting))

    def resolve(self, segment_ids: Sequence[str]) -> dict[str, Outcome]:
        """What the data of segments says, or what is wrong with it.

        Nothing for a segment that the table no longer knows as one without a schema: a poll brings
        what became of it.
        """
        outcomes: dict[str, Outcome] = {}
        mine: dict[str, Future[Outcome]] = {}
        theirs: dict[str, Future[Outcome]] = {}
        now = self._clock()
        with self._guard:
            for name in dict.fromkeys(segment_ids):
                trouble = self._resting.get(name)
                placed = self._places.find(name)
                if placed is not None:  # found by another caller just now
                    outcomes[name] = placed[1]
                elif name in self._asking:
                    theirs[name] = self._asking[name]
                elif trouble is not None and now < trouble.retry_at:
                    outcomes[name] = trouble
                else:
                    mine[name] = self._asking[name] = Future()
            self._count(asked=len(outcomes) + len(theirs) + len(mine))
        if mine:
            self._ask(mine)
        for name, future in {**mine, **theirs}.items():
            outcomes[name] = future.result()
        return outcomes

    def forget(self) -> None:
        """Lets segments whose data did not say it be asked again at once."""
        with self._guard:
            self._resting.clear()

    def _ask(self, mine: dict[str, Future[Outcome]]) -> None:
        """Asks for some segments; whatever happens, nobody is left waiting."""
        began = time.monotonic()
        try:
            outcomes = self._outcomes(list(mine))
        except BaseException as error:
            # Who waits must not be told of an interrupt that was not meant for them.
            told = error if isinstance(error, Exception) else LoadInterrupted(_AGAIN)
            for name, future in mine.items():
                self._over(name)
                future.set_exception(told)
            raise
        finally:
            with self._guard:
                self._count(seconds=time.monotonic() - began)
        for name, future in mine.items():
            # What was found is in pending by now: who asks next finds it there.
            self._over(name)
            future.set_result(outcomes.get(name))

    def _outcomes(self, names: Sequence[str]) -> dict[str, Outcome]:
        waiting = self._search(names)
        places = [place_of(each.location, self._format) for each in waiting]
        described = self._describe(places) if waiting else []
        now = self._clock()
        completions = [
            troubled(self._as_before(each), outcome, now)
            if isinstance(outcome, str)
            else completed(each, outcome, now)
            for each, outcome in zip(waiting, described, strict=True)
        ]
        good = [each for each in completions if each.trouble is None]
        refused = self._places.found(good, time.monotonic())
        if good:
            self._courier.wake()
        outcomes: dict[str, Outcome] = {}
        with self._guard:
            self._count(resolved=len(good), failed=len(completions) - len(good), refused=refused)
            for each in completions:
                outcomes[each.segment.id] = self._settled(each)
        return outcomes

    def _as_before(self, waiting: Waiting) -> Waiting:
        """The segment with the trouble that was met here, so that pauses grow."""
        with self._guard:
            trouble = self._resting.get(waiting.id, waiting.trouble)
        return Waiting(waiting.segment, waiting.seen, trouble)

    def _settled(self, completion: Completion) -> Found | Trouble:
        name, schema = completion.segment.id, completion.segment.schema
        if completion.trouble is not None:
            self._resting[name] = completion.trouble
            return completion.trouble
        self._resting.pop(name, None)
        assert schema is not None
        return Found(schema, completion.segment.num_rows)

    def _over(self, name: str) -> None:
        with self._guard:
            self._asking.pop(name, None)

    def _count(self, **more: float) -> None:
        added = {name: getattr(self._figures, name) + value for name, value in more.items()}
        self._figures = _with(self._figures, **added)


def _with(figures: ResolverFigures, **values: float) -> ResolverFigures:
    return ResolverFigures(**{**vars(figures), **values})
