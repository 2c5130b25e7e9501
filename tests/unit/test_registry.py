"""The registry: one load for all, failures for all, nothing guessed, forgetting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from catalog import Schema
from catalog.errors import CorruptSchema, LoadInterrupted, UnknownSchema
from catalog.registry import Registry

A, B, C = (Schema.of(f"{name} INT") for name in "abc")
PAYLOADS = {each.fingerprint: each.payload for each in (A, B, C)}


class Table:
    """A store of payloads that counts loads, and can be stopped and broken."""

    def __init__(self, payloads: Mapping[str, str] = PAYLOADS) -> None:
        self.payloads = payloads
        self.loads: list[tuple[str, ...]] = []
        self.broken: BaseException | None = None
        self.entered = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def load(self, fingerprints: Sequence[str]) -> Mapping[str, str]:
        self.loads.append(tuple(fingerprints))
        self.entered.release()
        assert self.gate.wait(10)
        if self.broken is not None:
            raise self.broken
        return {name: self.payloads[name] for name in fingerprints if name in self.payloads}


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it did not come about")


def test_a_schema_is_loaded_once_and_then_in_memory() -> None:
    table = Table()
    registry = Registry(table.load)
    assert registry.find(A.fingerprint) is None
    assert registry.get(A.fingerprint) == registry.get(A.fingerprint) == A
    assert registry.find(A.fingerprint) == A
    assert table.loads == [(A.fingerprint,)]


def test_many_are_loaded_at_once_and_given_in_the_order_asked() -> None:
    table = Table()
    registry = Registry(table.load)
    registry.get(B.fingerprint)
    wanted = [C.fingerprint, B.fingerprint, A.fingerprint, C.fingerprint]
    assert list(registry.many(wanted).values()) == [C, B, A]
    assert table.loads == [(B.fingerprint,), (C.fingerprint, A.fingerprint)]


def _eight(registry: Registry, table: Table) -> list[Future[Schema]]:
    """Eight callers of one schema, all of them waiting for one load."""
    table.gate.clear()
    pool = ThreadPoolExecutor(8)
    calls = [pool.submit(registry.get, A.fingerprint) for _ in range(8)]
    assert table.entered.acquire(timeout=10)
    until(lambda: sum(not call.running() for call in calls) == 0)
    threading.Event().wait(0.05)
    assert registry.find(A.fingerprint) is None  # it does not wait
    pool.shutdown(wait=False)
    return calls


def test_callers_at_one_time_share_a_load() -> None:
    table = Table()
    registry = Registry(table.load)
    calls = _eight(registry, table)
    table.gate.set()
    assert {call.result(10) for call in calls} == {A}
    assert len(table.loads) == 1


def test_a_failed_load_is_the_failure_of_all_who_waited_and_the_next_tries_again() -> None:
    table = Table()
    registry = Registry(table.load)
    table.broken = OSError("no storage")
    calls = _eight(registry, table)
    table.gate.set()
    for call in calls:
        with pytest.raises(OSError, match="no storage"):
            call.result(10)
    assert len(table.loads) == 1
    table.broken = None
    assert registry.get(A.fingerprint) == A


def test_an_interrupt_is_for_the_caller_who_loads_and_others_may_try_again() -> None:
    table = Table()
    registry = Registry(table.load)
    table.broken = KeyboardInterrupt()
    calls = _eight(registry, table)
    table.gate.set()
    told = [call.exception(10) for call in calls]
    assert sorted(type(error).__name__ for error in told) == [
        "KeyboardInterrupt",
        *["LoadInterrupted"] * 7,
    ]
    assert all(error.retryable for error in told if isinstance(error, LoadInterrupted))
    table.broken = None
    assert registry.get(A.fingerprint) == A


def test_what_comes_another_way_ends_the_wait_and_a_late_answer_changes_nothing() -> None:
    table = Table({A.fingerprint: "broken"})
    registry = Registry(table.load)
    calls = _eight(registry, table)
    registry.learn(A)
    done = [call for call in calls if _ready(call)]
    assert len(done) == 7
    table.gate.set()
    assert {call.result(10) for call in calls} == {A}
    assert registry.get(A.fingerprint) == A


def _ready(call: Future[Schema]) -> bool:
    try:
        return call.result(0.5) == A
    except TimeoutError:
        return False


def test_what_is_not_there_is_named_and_asked_for_again() -> None:
    table = Table({})
    registry = Registry(table.load)
    with pytest.raises(UnknownSchema, match=A.fingerprint):
        registry.get(A.fingerprint)
    table.payloads = PAYLOADS
    assert registry.get(A.fingerprint) == A


@pytest.mark.parametrize("payload", [B.payload, "", "{}", '{"format": 7}', A.payload[:-1]])
def test_what_is_stored_under_another_fingerprint_is_never_given_out(payload: str) -> None:
    registry = Registry(Table({A.fingerprint: payload, B.fingerprint: B.payload}).load)
    with pytest.raises(CorruptSchema, match=A.fingerprint):
        registry.many([B.fingerprint, A.fingerprint])
    assert registry.find(A.fingerprint) is None
    assert registry.find(B.fingerprint) == B


def test_a_schema_that_nobody_asks_for_is_forgotten_unless_it_is_held() -> None:
    table, now = Table(), 0.0
    held: dict[str, Schema] = {}
    registry = Registry(table.load, held.get, keep=60, clock=lambda: now)
    registry.many([A.fingerprint, B.fingerprint, C.fingerprint])
    held[B.fingerprint] = B
    now = 50.0
    registry.get(C.fingerprint)
    now = 81.0
    registry.get(C.fingerprint)
    assert len(registry) == 2
    assert registry.find(A.fingerprint) is None
    assert len(table.loads) == 1
    registry.get(A.fingerprint)
    assert len(table.loads) == 2


def test_what_somebody_holds_is_not_loaded() -> None:
    table = Table({})
    assert Registry(table.load, {A.fingerprint: A}.get).get(A.fingerprint) is A
    assert table.loads == []
