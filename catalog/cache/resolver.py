"""Finds the schema of a segment that was published without one, when somebody asks for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime

from catalog.backfill.model import Completion, Trouble, Waiting, completed, troubled
from catalog.cache.courier import Courier
from catalog.cache.places import Found, Places
from catalog.cache.quarantine import Quarantine
from catalog.cache.snapshot import Snapshot
from catalog.errors import LoadInterrupted, Unreadable
from catalog.files.footer import Describe
from catalog.files.paths import place_of

_AGAIN = "The reading of a file that this call waited for was interrupted; call again."

Outcome = Found | Trouble | None
Search = Callable[[Sequence[str]], list[Waiting]]


@dataclass(frozen=True)
class ResolverFigures:
    """What a resolver has done so far.

    Attributes:
        asked: segments that somebody asked for while their schema was not known.
        resolved: those whose data said it.
        failed: those whose data did not.
        seconds: time spent on asking the table and the data.
        refused: answers that were given but not kept, because too many were pending.
    """

    asked: int = 0
    resolved: int = 0
    failed: int = 0
    seconds: float = 0.0
    refused: int = 0


class Resolver:
    """Asks the data of segments, each once however many callers wait for it."""

    def __init__(
        self,
        places: Places,
        courier: Courier,
        quarantine: Quarantine,
        search: Search,
        describe: Describe,
        clock: Callable[[], datetime],
        default_format: str | None = None,
    ) -> None:
        """Args:
        places: where answers are put until they are published.
        courier: stores them.
        quarantine: what is not asked again yet.
        search: gives those of some segments that wait for their schema in the table.
        describe: asks the data at some places.
        clock: the time.
        default_format: the format of locations that do not say theirs.
        """
        self._places = places
        self._courier = courier
        self._quarantine = quarantine
        self._search = search
        self._describe = describe
        self._clock = clock
        self._format = default_format
        self._guard = threading.Lock()
        self._asking: dict[str, Future[Outcome]] = {}
        self._figures = ResolverFigures()

    @property
    def figures(self) -> ResolverFigures:
        """What was done so far."""
        with self._guard:
            return self._figures

    @property
    def resting(self) -> frozenset[str]:
        """Segments that are not asked again yet: their data did not say it, or what it says cannot
        be stored."""
        return self._quarantine.names

    def resolve(self, segment_ids: Sequence[str]) -> dict[str, Outcome]:
        """What the data of segments says, or what is wrong with it.

        Nothing for a segment that the table no longer knows as one without a schema: a poll brings
        what became of it.
        """
        outcomes: dict[str, Outcome] = {}
        mine: dict[str, Future[Outcome]] = {}
        theirs: dict[str, Future[Outcome]] = {}
        try:
            self._sort(segment_ids, outcomes, mine, theirs)
            if mine:
                self._ask(mine)
        except BaseException as error:
            # Who waits must not be told of an interrupt that was not meant for them.
            told = error if isinstance(error, Exception) else LoadInterrupted(_AGAIN)
            for name, future in mine.items():
                self._over(name, future)
                if not future.done():
                    future.set_exception(told)
            raise
        for name, future in {**mine, **theirs}.items():
            outcomes[name] = future.result()
        return outcomes

    def polled(self, snapshot: Snapshot) -> None:
        """Trouble may be over with what a poll has brought."""
        self._quarantine.polled(snapshot)

    def _sort(
        self,
        segment_ids: Sequence[str],
        outcomes: dict[str, Outcome],
        mine: dict[str, Future[Outcome]],
        theirs: dict[str, Future[Outcome]],
    ) -> None:
        """What is known, what this caller has to ask for, and what others are asking for."""
        with self._guard:
            for name in dict.fromkeys(segment_ids):
                trouble = self._quarantine.trouble_of(name)
                placed = self._places.find(name)
                if placed is not None:  # found by another caller just now
                    outcomes[name] = placed[1]
                elif name in self._asking:
                    theirs[name] = self._asking[name]
                elif trouble is not None:
                    outcomes[name] = trouble
                else:
                    mine[name] = self._asking[name] = Future()
            self._count(asked=len(outcomes) + len(theirs) + len(mine))

    def _ask(self, mine: dict[str, Future[Outcome]]) -> None:
        began = time.monotonic()
        outcomes = self._outcomes(list(mine))
        with self._guard:
            self._count(seconds=time.monotonic() - began)
        for name, future in mine.items():
            # What was found is in pending by now: who asks next finds it there.
            self._over(name, future)
            future.set_result(outcomes.get(name))

    def _outcomes(self, names: Sequence[str]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        waiting = []
        now = self._clock()
        for each in map(self._quarantine.as_known, self._search(names)):
            # In quarantine, here or in the table, and not published anew since.
            if each.trouble is not None and now < each.trouble.retry_at:
                self._quarantine.put(each, each.trouble)
                outcomes[each.id] = each.trouble
            else:
                waiting.append(each)
        places = [place_of(each.location, self._format) for each in waiting]
        described = self._describe(places) if waiting else []
        now = self._clock()
        completions = [
            troubled(each, outcome, now)
            if isinstance(outcome, str)
            else completed(each, outcome, now)
            for each, outcome in zip(waiting, described, strict=True)
        ]
        good = [each for each in completions if each.trouble is None]
        refused = self._places.found(good, time.monotonic())
        if good:
            self._courier.wake()
        with self._guard:
            self._count(resolved=len(good), failed=len(completions) - len(good), refused=refused)
        for completion in completions:
            outcomes[completion.segment.id] = self._settled(completion)
        return outcomes

    def _settled(self, completion: Completion) -> Found | Trouble:
        if completion.trouble is not None:
            self._quarantine.put(completion.before, completion.trouble)
            return completion.trouble
        self._quarantine.release(completion.segment.id)
        assert completion.segment.schema is not None
        return Found(completion.segment.schema, completion.segment.num_rows)

    def _over(self, name: str, future: Future[Outcome]) -> None:
        with self._guard:
            if self._asking.get(name) is future:
                del self._asking[name]

    def _count(self, **more: float) -> None:
        added = {name: getattr(self._figures, name) + value for name, value in more.items()}
        self._figures = replace(self._figures, **added)


def unreadable(segment_id: str, trouble: Trouble) -> Unreadable:
    """The error for who asked for the schema of a segment whose data does not say it."""
    return Unreadable(
        f"Segment {segment_id} is published without a schema, and its data does not say it: "
        f"{trouble.reason}. It is asked again after {trouble.retry_at:%H:%M:%S}.",
        segment_id=segment_id,
        reason=trouble.reason,
    )
