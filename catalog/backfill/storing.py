"""Stores what was found; a commit that fails is split until what fails is alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from catalog.backfill.completing import Completed
from catalog.backfill.waiting import Completion, troubled
from catalog.contracts.enforcement import reasons_of
from catalog.delta.failures import Failure, classify, first_line
from catalog.errors import CatalogError, ContractViolation, FingerprintCollision

log = logging.getLogger(__name__)

Commit = Callable[[Sequence[Completion]], Completed]


@dataclass
class Tally:
    """What became of some completions.

    Attributes:
        version: the last version that was reached.
        completed: those whose schema was stored.
        overtaken: those that somebody dropped, replaced or completed meanwhile.
        claimed: those that an operation claims: they wait as before.
        quarantined: those that were put aside with their trouble.
        retries: commits that were tried again because another came first.
    """

    version: int = 0
    completed: list[Completion] = field(default_factory=list)
    overtaken: list[Completion] = field(default_factory=list)
    claimed: list[Completion] = field(default_factory=list)
    quarantined: list[Completion] = field(default_factory=list)
    retries: int = 0


class Storer:
    """Stores completions in one commit, or in as many as it takes to get past those that fail."""

    def __init__(self, commit: Commit, clock: Callable[[], datetime]) -> None:
        self._commit = commit
        self._clock = clock

    def store(self, completions: Sequence[Completion]) -> Tally:
        """What became of each; raises what can be tried again, and what none of them is to blame
        for. What was stored by then is stored."""
        tally = Tally()
        self._store(completions, tally)
        return tally

    def _store(self, completions: Sequence[Completion], tally: Tally) -> None:
        if not completions:
            return
        try:
            done = self._commit(completions)
        except FingerprintCollision as error:
            wrong = error.values["fingerprint"]
            self._store([e for e in completions if e.segment.fingerprint != wrong], tally)
            self._put_aside(
                [e for e in completions if e.segment.fingerprint == wrong], error, tally
            )
        except ContractViolation as error:
            reasons = reasons_of(error)
            self._store([e for e in completions if e.segment.id not in reasons], tally)
            now = self._clock()
            broken = [e for e in completions if e.segment.id in reasons]
            self._store([troubled(e.before, reasons[e.segment.id], now) for e in broken], tally)
        except Exception as error:
            again = error.retryable if isinstance(error, CatalogError) else _is_lost(error)
            if again or (len(completions) == 1 and completions[0].trouble is not None):
                raise
            log.warning("Storing what was found for %d failed: %s", len(completions), error)
            if len(completions) == 1:
                self._put_aside(completions, error, tally)
                return
            middle = len(completions) // 2
            self._store(completions[:middle], tally)
            self._store(completions[middle:], tally)
        else:
            _count(completions, done, tally)

    def _put_aside(self, completions: Iterable[Completion], error: Exception, tally: Tally) -> None:
        now = self._clock()
        reason = error.message if isinstance(error, CatalogError) else first_line(error)
        self._store([troubled(each.before, reason, now) for each in completions], tally)


def _is_lost(error: Exception) -> bool:
    return classify(error) is Failure.LOST


def _count(completions: Sequence[Completion], done: Completed, tally: Tally) -> None:
    tally.version = max(tally.version, done.version)
    tally.retries += done.retries
    for each in completions:
        if each.segment.id in done.claimed:
            tally.claimed.append(each)
        elif each.segment.id not in done.stored:
            tally.overtaken.append(each)
        elif each.trouble is None:
            tally.completed.append(each)
        else:
            tally.quarantined.append(each)
