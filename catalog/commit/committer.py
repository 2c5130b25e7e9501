"""Commits that rest on what was read: planned again whenever something is otherwise by then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.commit.counters import Counters
from catalog.commit.rowset import RowSet
from catalog.context import Call
from catalog.delta.statements import Statement
from catalog.delta.store import Store
from catalog.delta.writer import Executed, RefusedByCheck, Writer
from catalog.environment import Environment
from catalog.errors import ClaimConflict, FingerprintCollision
from catalog.model import Caller, Kind

log = logging.getLogger(__name__)
# A refusal may be for many keys; the log names some.
_SHOWN = 5


class Settled(Exception):
    """A plan found that there is nothing to commit; carries the answer."""

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
    """Plans and commits until it is settled; used in the commit thread."""

    def __init__(
        self, writer: Writer, buckets: int, environment: Environment, counters: Counters
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
        caller, deadline = call.caller, call.deadline

        def make(uncertain: bool) -> Statement:
            with deadline.not_counting():
                rows = RowSet(commit_id, self.environment.clock(), caller.actor)
                statement = plan(rows)
            self.environment.at(f"{statement.point}.planned")
            return statement

        def callers() -> list[Caller]:
            return [caller.counting(**figures())]

        again = 0
        while True:
            try:
                executed = self.writer.commit(make, commit_id, verb, callers, deadline)
            except ClaimConflict as refusal:
                self.counters.add(conflicts=1)
                _log_refusal(figures().get("operation"), verb, refusal)
                raise
            except RefusedByCheck as refusal:
                if refusal.kind == Kind.SCHEMA:
                    raise collision(refusal.key) from refusal
                again += 1
                self.counters.add(replans=1)
                log.info("%s: %s %s has changed; planning again", verb, refusal.kind, refusal.key)
                deadline.wait(self.environment.pause(again), f"a quiet moment for {refusal.key}")
            else:
                self.counters.add(retries=executed.retries)
                return self._committed(executed, commit_id)

    def lost(self, commit_id: str, version: int) -> Committed:
        """A commit whose answer was lost, as a later plan finds it at a version."""
        return Committed(self.store.find_commit(commit_id) or version, commit_id, 1)

    def _committed(self, executed: Executed, commit_id: str) -> Committed:
        version = executed.version
        if version is None:
            # A plan that commits always changes a row; an earlier try did it.
            version = self.store.find_commit(commit_id) or self.store.head().version
        return Committed(version, commit_id, executed.retries)


def _log_refusal(operation: int | str | None, verb: str, refusal: ClaimConflict) -> None:
    who = verb if operation is None else f"operation {operation}: {verb}"
    keys, holder = refusal.values["keys"], refusal.values["operation"]
    log.info("%s refused: %s, claimed by operation %s", who, ", ".join(keys[:_SHOWN]), holder)


def named(operation: str) -> Callable[[], Mapping[str, int | str]]:
    """The operation as a commit's metadata names it."""
    return lambda: {"operation": operation}


def collision(fingerprint: str) -> FingerprintCollision:
    """The refusal of a definition whose fingerprint stands for another one."""
    return FingerprintCollision(
        f"The fingerprint {fingerprint} is stored for another definition; nothing was written. "
        "Run verify() to see the stored one; one of the two was damaged or made up.",
        fingerprint=fingerprint,
    )
