"""Callers of one process queue; a worker takes what may go together as one commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, TypeVar, cast

from catalog.environment import Deadline
from catalog.errors import CatalogError

T = TypeVar("T")


class _State(Enum):
    QUEUED = auto()
    RUNNING = auto()
    DONE = auto()


class CommitRequest:
    """One caller's work.

    `run` gets the request, or all requests with the same `group` that were waiting together, and
    calls `finish` or `fail` on each of them.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Any]], None],
        deadline: Deadline,
        group: str | None = None,
    ) -> None:
        self.run = run
        self.deadline = deadline
        self.group = group
        self._state = _State.QUEUED
        self._done = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    @property
    def finished(self) -> bool:
        return self._done.is_set()

    def finish(self, result: Any) -> None:
        """Hands the caller its result."""
        if not self.finished:
            self._result = result
            self._state = _State.DONE
            self._done.set()

    def fail(self, error: BaseException) -> None:
        """Hands the caller an error."""
        if not self.finished:
            self._error = error
            self._state = _State.DONE
            self._done.set()

    def outcome(self) -> Any:
        """The result, or raises the error."""
        if self._error is not None:
            raise self._error
        return self._result

    def told(self) -> str:
        """Its outcome in words, for a caller that stopped waiting."""
        if not self.finished:
            return "it is still running and will finish by itself"
        if isinstance(self._error, CatalogError):
            return f"it ended with {self._error}"
        if self._error is not None:
            return f"it ended with {self._error!r}"
        return f"it was completed: {self._result}"


class CommitQueue:
    """Runs requests one after the other, or a group at once, in a thread of its own.

    The thread, not the caller, waits for the JVM. So an interrupt of the caller frees neither
    the lock nor the settings of a statement that still runs. The thread lives while there is work
    and is no daemon: an interpreter that exits lets it finish.
    """

    LARGEST_GROUP = 1000

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: list[CommitRequest] = []
        self._worker: threading.Thread | None = None

    def submit(self, request: CommitRequest) -> Any:
        """Waits for the request's outcome and returns or raises it."""
        with self._mutex:
            self._waiting.append(request)
            if self._worker is None:
                worker = threading.Thread(target=self._drain, name="strata-commit")
                worker.start()
                self._worker = worker
        try:
            # In slices: a signal that comes just before a wait begins would otherwise be noticed
            # only at its end.
            while not request._done.wait(min(request.deadline.left, 1.0) or 0.01):
                if request.deadline.left <= 0 and self._withdraw(request):
                    raise request.deadline.gave_up("earlier commits of this process")
        except (KeyboardInterrupt, SystemExit) as interrupt:
            self._interrupted(request, interrupt)
            raise
        return request.outcome()

    def alone(self, work: Callable[[], T], deadline: Deadline) -> T:
        """Runs work in the queue's thread, by itself, and returns or raises its outcome."""

        def run(requests: Sequence[CommitRequest]) -> None:
            requests[0].finish(work())

        return cast(T, self.submit(CommitRequest(run, deadline)))

    def _interrupted(self, request: CommitRequest, interrupt: BaseException) -> None:
        """Waits for a running request, to report its outcome; a second interrupt ends the wait."""
        if self._withdraw(request):
            interrupt.add_note("strata: the call had not begun; nothing was written")
            return
        # The running statement is awaited; no retry or further step is begun.
        request.deadline.expire()
        try:
            while not request._done.wait(1.0):
                pass
        except (KeyboardInterrupt, SystemExit) as second:
            interrupt = second
            raise
        finally:
            interrupt.add_note(f"strata: the call had begun, and {request.told()}")

    def _withdraw(self, request: CommitRequest) -> bool:
        with self._mutex:
            if request._state is not _State.QUEUED:
                return False
            self._waiting.remove(request)
            request._state = _State.DONE
            return True

    def _next(self) -> list[CommitRequest]:
        with self._mutex:
            if not self._waiting:
                self._worker = None
                return []
            head = self._waiting[0]
            taken = [head]
            if head.group is not None:
                taken = [r for r in self._waiting if r.group == head.group][: self.LARGEST_GROUP]
            for request in taken:
                self._waiting.remove(request)
                request._state = _State.RUNNING
            return taken

    def _drain(self) -> None:
        while taken := self._next():
            try:
                taken[0].run(taken)
            except BaseException as error:
                for request in taken:
                    request.fail(error)
            for request in taken:
                request.fail(RuntimeError("a commit ended without an outcome"))
