"""Optimistic commits: planned on what was read, and planned again when a check refuses them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.commit.rows import RowSet
from catalog.context import Call
from catalog.delta.statements import Statement
from catalog.delta.store import Store
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Deadline, Environment
from catalog.errors import ClaimConflict, FingerprintCollision
from catalog.model import Caller, Kind

log = logging.getLogger(__name__)
# A refusal may be for many keys; the log names some.
_SHOWN = 5


# --- the loop ------------------------------------------------------------------------------------


def _at_once(attempt: int) -> float:
    return 0.0


def commit_until_settled(
    writer: Writer,
    commit_id: str,
    verb: str,
    deadline: Deadline,
    *,
    plan: Callable[[bool], Statement],
    callers: Callable[[], Sequence[Caller]],
    learn: Callable[[RefusedByCheck], str | Executed | None],
    pause: Callable[[int], float] = _at_once,
) -> Executed:
    """Commits what `plan` makes, and plans again whenever a check in the statement refuses it.

    Args:
        writer: runs the statement, and settles conflicts of Delta and lost answers.
        commit_id: the same for all attempts, so that one which did commit is recognized.
        verb: what the commit is, for its metadata.
        deadline: how long to wait for others.
        plan: makes the statement from what is known; called before every attempt. Its argument
            says that an earlier attempt may have committed.
        callers: for whom the commit is, once it is planned.
        learn: reads what the refused plan did not know. It raises if the caller has to be refused,
            and returns the outcome if an earlier attempt turns out to have committed. Otherwise it
            says what the next attempt waits for, or nothing if that is another statement anyway.
        pause: seconds to wait before the n-th repetition.

    Raises:
        FingerprintCollision: A schema is stored under the same fingerprint with another definition.
        GaveUp: The deadline has passed; nothing was written.
    """
    attempt = 0
    while True:
        try:
            return writer.commit(plan, commit_id, verb, callers, deadline)
        except RefusedByCheck as refusal:
            if refusal.kind == Kind.SCHEMA:
                raise collision(refusal.key) from refusal
            attempt += 1
            found = learn(refusal)
        if isinstance(found, Executed):
            return found
        if found is not None:
            deadline.wait(pause(attempt), found)


def collision(fingerprint: str) -> FingerprintCollision:
    """The refusal of a definition whose fingerprint is that of another one."""
    return FingerprintCollision(
        f"The fingerprint {fingerprint} is stored for another definition; nothing was written. "
        "Run verify() to see the stored one; one of the two was damaged or made up.",
        fingerprint=fingerprint,
    )


# --- general commits -----------------------------------------------------------------------------


class Settled(Exception):
    """Raised by a plan that finds nothing to commit; carries the answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


@dataclass(frozen=True)
class Committed:
    """A commit that happened."""

    version: int
    commit_id: str
    retries: int


class Committer:
    """Commits sets of rows with their expectations; used in the commit thread."""

    def __init__(
        self, writer: Writer, buckets: int, environment: Environment, counters: OperationCounters
    ) -> None:
        self.writer = writer
        self.buckets = buckets
        self.environment = environment
        self.counters = counters

    @property
    def store(self) -> Store:
        return self.writer.store

    def commit(
        self,
        verb: str,
        call: Call,
        plan: Callable[[RowSet], Statement],
        figures: Callable[[], Mapping[str, int | str]] = dict,
    ) -> Committed:
        """Commits what `plan` makes of an empty set of rows; raises what it raises.

        `plan` reads the table, and is called again after every conflict and whenever a row was not
        as it had read it. What it reads it must expect, or know that it never reverses.
        """
        commit_id = self.environment.new_id()

        def make(uncertain: bool) -> Statement:
            with call.deadline.not_counting():
                rows = RowSet(commit_id, self.environment.clock(), call.caller.actor)
                statement = plan(rows)
            self.environment.at(f"{statement.point}.planned")
            return statement

        def learn(refusal: RefusedByCheck) -> str:
            self.counters.add(replans=1)
            log.info("%s: %s %s has changed; planning again", verb, refusal.kind, refusal.key)
            return f"a quiet moment for {refusal.key}"

        try:
            executed = commit_until_settled(
                *(self.writer, commit_id, verb, call.deadline),
                plan=make,
                callers=lambda: [call.caller.counting(**figures())],
                learn=learn,
                pause=self.environment.pause,
            )
        except ClaimConflict as refusal:
            self.counters.add(conflicts=1)
            _log_claim(figures().get("operation"), verb, refusal)
            raise
        self.counters.add(retries=executed.retries)
        if executed.version is None:
            # A plan that commits always changes a row; an earlier attempt did it.
            return self.lost(commit_id, self.store.head().version, executed.retries)
        return Committed(executed.version, commit_id, executed.retries)

    def lost(self, commit_id: str, version: int, retries: int = 1) -> Committed:
        """A commit whose answer was lost, as a later plan finds it at a version."""
        return Committed(self.store.find_commit(commit_id) or version, commit_id, retries)


def _log_claim(operation: int | str | None, verb: str, refusal: ClaimConflict) -> None:
    who = verb if operation is None else f"operation {operation}: {verb}"
    keys, holder = refusal.values["keys"], refusal.values["operation"]
    log.info("%s refused: %s, claimed by operation %s", who, ", ".join(keys[:_SHOWN]), holder)


# --- figures -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OperationMetrics:
    """Figures of this process, since the catalog was opened.

    Attributes:
        opened: operations that were opened.
        parts: parts that were staged.
        claimed: keys that were claimed for an operation.
        joined: keys that a part found claimed by its own operation.
        conflicts: calls on operations and objects that were refused because another operation
            claims a key.
        published: operations that were applied, at once or by an advance.
        made_ready: operations that were given an epoch to wait for.
        advances: steps of the stable epoch.
        aborted: operations that were aborted, by their owner or by a recovery.
        replans: commits that were planned again because something had changed.
        retries: statements that were tried again after a conflict or a lost answer.
    """

    opened: int = 0
    parts: int = 0
    claimed: int = 0
    joined: int = 0
    conflicts: int = 0
    published: int = 0
    made_ready: int = 0
    advances: int = 0
    aborted: int = 0
    replans: int = 0
    retries: int = 0


class OperationCounters:
    """Counts what a catalog does with operations, from many threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._metrics = OperationMetrics()

    def add(self, **more: int) -> None:
        """Adds to some figures."""
        with self._mutex:
            sums = {name: getattr(self._metrics, name) + by for name, by in more.items()}
            self._metrics = replace(self._metrics, **sums)

    @property
    def metrics(self) -> OperationMetrics:
        return self._metrics
