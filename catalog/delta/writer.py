"""Every commit goes through here: one at a time, locked where needed, and settled."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalog.delta.failures import Failure, classify, condition_of, is_misplaced, marked
from catalog.delta.location import TableLock
from catalog.delta.session import LAST_VERSION, USER_METADATA, Tuning, tune
from catalog.delta.statements import Statement
from catalog.delta.store import Store, replaced
from catalog.environment import Deadline, Environment
from catalog.errors import CatalogError, CommitFailed, GaveUp, OutcomeUnknown
from catalog.model import Caller

if TYPE_CHECKING:
    from pyspark.sql import Row

log = logging.getLogger(__name__)

_LOST_ANSWERS = 3
_OPTIMIZED = ("numFilesAdded", "numFilesRemoved")


class RefusedByCheck(Exception):
    """A check in the statement met a row that it must not meet; nothing was written."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"{kind} {key}")
        self.kind = kind
        self.key = key


@dataclass(frozen=True)
class Executed:
    """What became of a statement.

    `version` is None if nothing changed. `counts` are Delta's figures; they are empty if the
    answer was lost and the commit was found in the history.
    """

    version: int | None
    counts: dict[str, int] = field(default_factory=dict)
    retries: int = 0


class Writer:
    """Runs statements on one catalog until each is settled. Used by one thread at a time."""

    def __init__(
        self, store: Store, lock: TableLock, environment: Environment, tuning: Tuning
    ) -> None:
        self.store = store
        self.lock = lock
        self._environment = environment
        self._tuning = tuning

    def commit(
        self,
        make: Callable[[bool], Statement],
        commit_id: str,
        verb: str,
        callers: Callable[[], Sequence[Caller]],
        deadline: Deadline,
    ) -> Executed:
        """Runs what `make` gives, again after each conflict, until it is settled.

        `make` is called before every try, so that it may plan again; what it raises ends the work.
        Its argument says that an earlier try may have committed: then no error may claim that
        nothing was written.
        """
        lost = 0
        retries = 0
        while True:
            statement = make(lost > 0)
            metadata = user_metadata(commit_id, verb, callers())
            try:
                done = self._once(statement, commit_id, metadata, deadline)
                return Executed(done.version, done.counts, retries)
            except GaveUp as error:
                if lost:
                    raise self._unknown(commit_id, error) from error
                raise
            except CatalogError:
                raise
            except Exception as error:  # py4j, gRPC and Spark share no base
                failure = classify(error)
                log.info("%s: %s (%s)", statement.point, failure.value, condition_of(error))
                refusal = marked(error) if failure is Failure.RAISED else None
                # After a lost answer a check may have met the rows of this very commit.
                version = self._look_for(commit_id, error) if lost or not refusal else None
                if version is not None:
                    return Executed(version, {}, retries)
                if refusal:
                    raise RefusedByCheck(*refusal) from error
                if is_misplaced(error):
                    raise replaced(self.store.location) from error
                if failure in (Failure.REFUSED, Failure.RAISED):
                    raise CommitFailed(
                        f"{verb} was refused and nothing was written: {error}",
                        verb=verb,
                        condition=condition_of(error),
                    ) from error
                lost += failure is Failure.LOST
                if lost >= _LOST_ANSWERS or (lost and deadline.left <= 0):
                    raise self._unknown(commit_id, error) from error
            retries += 1
            self._environment.at(f"{statement.point}.retry")
            deadline.wait(self._environment.pause(retries), "other writers of the same rows")

    def _once(
        self, statement: Statement, commit_id: str, metadata: str, deadline: Deadline
    ) -> Executed:
        session = self.store.session
        with self.lock.held(deadline), deadline.not_counting():
            session.conf.unset(LAST_VERSION)
            session.conf.set(USER_METADATA, metadata)
            tune(session, self._tuning.large if statement.bulk else self._tuning.small)
            view = f"strata_source_{self._environment.new_id()}"
            try:
                if statement.source is not None:
                    frame = self._environment.source(statement.point, statement.source)
                    frame.createTempView(view)
                self._environment.at(f"{statement.point}.begins")
                rows = session.sql(statement.sql(view)).collect()
                self._environment.at(f"{statement.point}.answered")
                counts = _counts(rows, statement.point)
                version = session.conf.get(LAST_VERSION, None)
            finally:
                # The next statement sets what it needs; a dead connection must not hide the error.
                with suppress(Exception):
                    session.conf.unset(USER_METADATA)
                    tune(session, self._tuning.between)
                    session.catalog.dropTempView(view)
        if version is not None:
            return Executed(int(version), counts)
        if any(counts.values()):
            return Executed(self._look_for(commit_id, None), counts)
        return Executed(None, counts)

    def _look_for(self, commit_id: str, cause: BaseException | None) -> int | None:
        """Asks the history whether the commit happened after all."""
        try:
            version = self.store.find_commit(commit_id)
        except Exception as error:
            raise self._unknown(commit_id, error) from (cause or error)
        if cause is None and version is None:
            raise self._unknown(commit_id, cause)
        return version

    def _unknown(self, commit_id: str, cause: BaseException | None) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"Whether commit {commit_id} happened cannot be found out ({cause}). The same call "
            "again settles it; DESCRIBE HISTORY shows the id in userMetadata if it did.",
            commit_id=commit_id,
        )


def _counts(rows: Sequence[Row], point: str) -> dict[str, int]:
    # A statement that Delta skipped (txnAppId left in a session) answers with no row at all.
    if not rows:
        raise CommitFailed(
            f"Delta skipped the {point} statement without an answer; nothing was written. Look for "
            "txnAppId among the application's settings.",
            point=point,
        )
    answer = rows[0].asDict(recursive=True)
    # OPTIMIZE answers with a structure, in which it also counts files that it let be.
    metrics = answer.pop("metrics", None) or {}
    answer |= {name: metrics[name] for name in _OPTIMIZED if name in metrics}
    return {name: value or 0 for name, value in answer.items() if isinstance(value, int | None)}


def user_metadata(commit_id: str, verb: str, callers: Sequence[Caller]) -> str:
    """The commit's user metadata: its id, what it is, and for whom."""
    return json.dumps(
        {
            "strata": 1,
            "commit": commit_id,
            "verb": verb,
            "callers": [caller.told() for caller in callers],
        },
        ensure_ascii=False,
    )
