"""The commit queue: what waits together runs together, and nobody is left in the dark."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from catalog.delta.queue import CommitQueue, CommitRequest
from catalog.environment import Deadline
from catalog.errors import CommitFailed, GaveUp

PATIENCE = 30


class Watched(Deadline):
    """A deadline that tells when the queue first looks at it: then its request stands in line."""

    def __init__(self, seconds: float = PATIENCE) -> None:
        super().__init__(seconds)
        self.asked = threading.Event()

    @property
    def left(self) -> float:
        left = super().left
        self.asked.set()
        return left


class Desk:
    """A queue with its callers, and the list of what ran together, in order."""

    def __init__(self) -> None:
        self.queue = CommitQueue()
        self.ran: list[list[str]] = []
        self.callers = ThreadPoolExecutor(20)

    def request(
        self, name: str, group: str | None = None, seconds: float = PATIENCE
    ) -> CommitRequest:
        def run(requests: Sequence[Any]) -> None:
            self.ran.append([request.name for request in requests])
            for request in requests:
                request.finish(f"{request.name} done")

        made = CommitRequest(run, Watched(seconds), group)
        made.name = name  # type: ignore[attr-defined]
        return made

    def send(self, request: CommitRequest) -> Future[Any]:
        """Submits from a thread of its own; returns when the request stands in line."""
        sent = self.callers.submit(self.queue.submit, request)
        assert isinstance(request.deadline, Watched)
        assert request.deadline.asked.wait(PATIENCE)
        return sent

    def call(self, name: str, group: str | None = None, seconds: float = PATIENCE) -> Future[Any]:
        return self.send(self.request(name, group, seconds))


class Blocker(CommitRequest):
    """Work that runs until it is released."""

    def __init__(self) -> None:
        super().__init__(self.work, Watched())
        self.begun, self.released, self.ended = (threading.Event() for _ in range(3))

    def work(self, requests: Sequence[Any]) -> None:
        self.begun.set()
        assert self.released.wait(PATIENCE)
        self.ended.set()
        self.finish("version 3")


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    with made.callers:
        yield made


@pytest.fixture
def blocker(desk: Desk) -> Iterator[Blocker]:
    """Keeps the queue busy, so that what comes next has to wait, until it is released."""
    made = Blocker()
    sent = desk.send(made)
    assert made.begun.wait(PATIENCE)
    yield made
    made.released.set()
    assert sent.result(PATIENCE) == "version 3"


def answers(*calls: Future[Any]) -> list[Any]:
    return [call.result(PATIENCE) for call in calls]


def eventually(holds: Callable[[], bool], patience: float = PATIENCE) -> bool:
    until = time.monotonic() + patience
    while not holds() and time.monotonic() < until:
        time.sleep(0.005)
    return holds()


# --- order ---------------------------------------------------------------------------------------


def test_a_request_gets_its_result(desk: Desk) -> None:
    assert desk.queue.submit(desk.request("a")) == "a done"


def test_requests_of_a_group_that_wait_together_run_together(desk: Desk, blocker: Blocker) -> None:
    calls = [desk.call(name, "publish") for name in "abc"]
    blocker.released.set()
    assert answers(*calls) == ["a done", "b done", "c done"]
    assert desk.ran == [["a", "b", "c"]]


def test_requests_without_a_group_run_alone_in_order(desk: Desk, blocker: Blocker) -> None:
    calls = [desk.call(name) for name in "abc"]
    blocker.released.set()
    answers(*calls)
    assert desk.ran == [["a"], ["b"], ["c"]]


def test_a_group_runs_when_its_first_member_is_first_in_line(desk: Desk, blocker: Blocker) -> None:
    line = [("a", None), ("b", "x"), ("c", None), ("d", "y"), ("e", "x"), ("f", "y")]
    calls = [desk.call(name, group) for name, group in line]
    blocker.released.set()
    answers(*calls)
    assert desk.ran == [["a"], ["b", "e"], ["c"], ["d", "f"]]


def test_a_group_has_a_largest_size_and_the_rest_follows(
    desk: Desk, blocker: Blocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommitQueue, "LARGEST_GROUP", 2)
    calls = [desk.call(name, "publish") for name in "abcde"]
    blocker.released.set()
    answers(*calls)
    assert desk.ran == [["a", "b"], ["c", "d"], ["e"]]


def test_what_comes_while_a_group_runs_waits_for_the_next(desk: Desk) -> None:
    begun, released = threading.Event(), threading.Event()

    def run(requests: Sequence[Any]) -> None:
        begun.set()
        assert released.wait(PATIENCE)
        desk.ran.append(["slow"] * len(requests))
        requests[0].finish("slow done")

    slow = desk.send(CommitRequest(run, Watched(), "publish"))
    assert begun.wait(PATIENCE)
    late = desk.call("late", "publish")
    released.set()
    assert answers(slow, late) == ["slow done", "late done"]
    assert desk.ran == [["slow"], ["late"]]


# --- failures ------------------------------------------------------------------------------------


def test_an_error_of_the_work_reaches_each_caller_and_the_queue_goes_on(
    desk: Desk, blocker: Blocker
) -> None:
    def run(requests: Sequence[Any]) -> None:
        requests[1].finish("early")
        raise CommitFailed("no")

    calls = [desk.send(CommitRequest(run, Watched(), "publish")) for _ in range(3)]
    after = desk.call("after")
    blocker.released.set()
    for call in (calls[0], calls[2]):
        with pytest.raises(CommitFailed, match="no"):
            call.result(PATIENCE)
    assert answers(calls[1], after) == ["early", "after done"]


def test_an_interrupt_in_the_work_reaches_the_caller_and_the_queue_goes_on(desk: Desk) -> None:
    def run(requests: Sequence[Any]) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        desk.queue.submit(CommitRequest(run, Watched()))
    assert desk.queue.submit(desk.request("a")) == "a done"


def test_work_that_forgets_a_caller_is_an_error_for_that_caller(
    desk: Desk, blocker: Blocker
) -> None:
    def run(requests: Sequence[Any]) -> None:
        requests[0].finish("first")

    calls = [desk.send(CommitRequest(run, Watched(), "publish")) for _ in range(2)]
    blocker.released.set()
    assert calls[0].result(PATIENCE) == "first"
    with pytest.raises(RuntimeError, match="without an outcome"):
        calls[1].result(PATIENCE)


def test_the_first_outcome_stands() -> None:
    request = CommitRequest(lambda _: None, Watched())
    request.finish("version 1")
    request.fail(ValueError("late"))
    request.finish("version 2")
    assert (request.finished, request.outcome()) == (True, "version 1")


# --- deadlines -----------------------------------------------------------------------------------


def test_a_deadline_that_passes_in_line_withdraws_the_request(desk: Desk, blocker: Blocker) -> None:
    late, next_one = desk.call("late", seconds=0.05), desk.call("next")
    with pytest.raises(GaveUp, match="earlier commits of this process; nothing was written"):
        late.result(PATIENCE)
    blocker.released.set()
    assert next_one.result(PATIENCE) == "next done"
    assert desk.ran == [["next"]]


def test_a_deadline_that_has_passed_before_the_call_gives_up_at_once(
    desk: Desk, blocker: Blocker
) -> None:
    request = desk.request("late", seconds=0.001)
    assert eventually(lambda: request.deadline.left == 0)
    late = desk.callers.submit(desk.queue.submit, request)
    gave_up = eventually(late.done, patience=3)
    blocker.released.set()
    assert gave_up
    with pytest.raises(GaveUp):
        late.result(PATIENCE)
    assert desk.ran == []


def test_a_deadline_that_passes_while_the_work_runs_does_not_end_it(desk: Desk) -> None:
    made = Blocker()
    made.deadline = Watched(0.02)
    sent = desk.send(made)
    assert eventually(lambda: made.deadline.left == 0)
    time.sleep(0.02)
    assert not sent.done()
    made.released.set()
    assert sent.result(PATIENCE) == "version 3"


@pytest.mark.parametrize("seconds", [math.inf, 1e12])
def test_a_caller_may_wait_for_as_long_as_it_likes(desk: Desk, seconds: float) -> None:
    assert desk.queue.submit(desk.request("a", seconds=seconds)) == "a done"


# --- interrupts ----------------------------------------------------------------------------------


def interrupt(noticed: Callable[[], bool]) -> None:
    """Ctrl-C, as the main thread gets it, until it is noticed.

    Python loses sight of a signal that comes just before a thread goes to sleep; the next one
    shows it.
    """
    time.sleep(0.05)
    for _ in range(10):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if eventually(noticed, patience=2):
            return


def interrupted(
    queue: CommitQueue, request: CommitRequest, steps: Callable[[threading.Event], None]
) -> KeyboardInterrupt:
    """Submits from this, the main thread, while another takes the steps once this one waits.

    The event that the steps get is set when the call is over.
    """
    over = threading.Event()
    assert isinstance(request.deadline, Watched)
    waiting = request.deadline.asked

    def aside() -> None:
        assert waiting.wait(PATIENCE)
        steps(over)

    other = threading.Thread(target=aside)
    other.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        queue.submit(request)
    over.set()
    other.join(PATIENCE)
    return caught.value


def test_an_interrupted_caller_waits_for_the_work_and_is_told_the_outcome() -> None:
    request = Blocker()
    ended_early: list[bool] = []

    def steps(over: threading.Event) -> None:
        assert request.begun.wait(PATIENCE)
        interrupt(lambda: request.deadline.left == 0)
        ended_early.append(request.ended.is_set() or over.is_set())
        request.released.set()

    caught = interrupted(CommitQueue(), request, steps)
    assert ended_early == [False]
    assert request.ended.is_set()
    assert caught.__notes__ == ["strata: the call had begun, and it was completed: version 3"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CommitFailed("publish was refused"), "[COMMIT_FAILED] publish was refused"),
        (ValueError("odd"), "ValueError('odd')"),
    ],
)
def test_an_interrupted_caller_is_told_how_the_work_failed(error: Exception, told: str) -> None:
    begun, released = threading.Event(), threading.Event()

    def run(requests: Sequence[Any]) -> None:
        begun.set()
        assert released.wait(PATIENCE)
        raise error

    request = CommitRequest(run, Watched())

    def steps(over: threading.Event) -> None:
        assert begun.wait(PATIENCE)
        interrupt(lambda: request.deadline.left == 0)
        released.set()

    caught = interrupted(CommitQueue(), request, steps)
    assert caught.__notes__ == [f"strata: the call had begun, and it ended with {told}"]


def test_a_second_interrupt_does_not_wait_and_says_that_the_work_goes_on() -> None:
    request = Blocker()

    def steps(over: threading.Event) -> None:
        assert request.begun.wait(PATIENCE)
        interrupt(lambda: request.deadline.left == 0)
        interrupt(over.is_set)

    second = interrupted(CommitQueue(), request, steps)
    still_running = not request.ended.is_set()
    request.released.set()
    assert still_running
    assert second.__notes__ == [
        "strata: the call had begun, and it is still running and will finish by itself"
    ]
    assert request.ended.wait(PATIENCE)


def test_an_interrupted_caller_that_was_still_in_line_is_withdrawn(
    desk: Desk, blocker: Blocker
) -> None:
    request = desk.request("never")
    caught = interrupted(desk.queue, request, lambda over: interrupt(over.is_set))
    assert caught.__notes__ == ["strata: the call had not begun; nothing was written"]
    after = desk.call("after")
    blocker.released.set()
    assert after.result(PATIENCE) == "after done"
    assert desk.ran == [["after"]]


# --- the worker ----------------------------------------------------------------------------------


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "strata-commit"]


def test_the_worker_ends_when_there_is_no_work_and_comes_back_when_there_is(desk: Desk) -> None:
    seen: list[threading.Thread] = []

    def run(requests: Sequence[Any]) -> None:
        seen.append(threading.current_thread())
        requests[0].finish(None)

    for _ in range(2):
        desk.queue.submit(CommitRequest(run, Watched()))
        assert eventually(lambda: not seen[-1].is_alive())
    assert seen[0] is not seen[1]
    assert [thread.daemon for thread in seen] == [False, False]
    assert eventually(lambda: not workers())
